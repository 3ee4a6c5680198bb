"""Installing always succeeds: without a compiler the reference engine runs; doctor reports it."""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PURE = "LINKSTREAM_PURE_PYTHON"


def call(*words, **options):
    """Run a program and return its output; fail with the output if the program fails."""
    words = [str(word) for word in words]
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    said = f"{' '.join(words)}\nexit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, said
    return done.stdout


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Install linkstream without a compiler; return the Python of that environment.

    Dependencies come from the running environment, which is fast. linkstream does not: a path file
    does not read the hooks of an editable installation.
    """
    folder = tmp_path_factory.mktemp("bare")
    package = folder / "package"
    no_compiler = {"CC": "/bin/false", "CXX": "/bin/false"}
    call(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--target", package),
        *("--no-deps", "--no-build-isolation", "--no-cache-dir", "--disable-pip-version-check"),
        *("--config-settings", f"build-dir={folder / 'build'}"),
        ROOT,
        env={name: v for name, v in os.environ.items() if name != PURE} | no_compiler,
        cwd=folder,
    )
    tried = folder / "build" / "CMakeFiles"
    assert tried.exists(), "the build of the compiled core was not tried"
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    places = {"base": str(folder / "venv"), "platbase": str(folder / "venv")}
    own = Path(sysconfig.get_path("purelib", "posix_prefix", places))
    lines = [str(package), *site.getsitepackages()]
    (own / "bare.pth").write_text("\n".join(lines) + "\n")
    return folder / "venv" / "bin" / "python"


@pytest.fixture
def variables():
    return os.environ | {PURE: "1"}


def test_a_machine_without_a_compiler_gets_the_package_without_the_core(bare):
    seen = Path(call(bare, "-c", "import linkstream; print(linkstream.__file__)").strip())
    assert seen.is_relative_to(bare.parents[2] / "package")
    assert (seen.parent / "py.typed").exists()
    assert (seen.parent / "_core.pyi").exists()
    assert not [path.name for path in seen.parent.rglob("*") if path.suffix in (".so", ".pyd")]


def test_doctor_reports_that_the_compiled_engine_is_missing_and_why(bare):
    main = "from linkstream.cli import main; main()"
    found = json.loads(call(bare, "-W", "error", "-c", main, "doctor", "--json"))
    native = found["engines"]["native"]
    assert not native["available"]
    assert "the compiled core is not installed" in native["why"]
    assert "_core" in native["why"]
    assert native["build"] is None
    assert found["engines"]["reference"]["available"]
    assert found["self_check"]["reference"]["passed"]
    assert set(found["self_check"]) == {"reference"}


ASK = """
from linkstream import Links
from linkstream.errors import EngineUnavailableError

assert Links(0.7, 0.6, 0.9).engine == "reference"
try:
    Links(0.7, 0.6, 0.9, engine="native")
except EngineUnavailableError as error:
    print(error)
"""


def test_requesting_the_compiled_engine_is_an_error_with_a_remedy(bare):
    said = call(bare, "-W", "error", "-c", ASK)
    assert "the compiled core is not installed" in said
    assert "engine='auto'" in said


def test_the_reference_engine_passes_its_tests_without_the_core(bare, variables):
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not long")
    parts = ("test_stories.py", "test_snapshot.py")
    files = [f"tests/engine/{name}" for name in parts]
    said = call(bare, "-m", "pytest", *options, *files, cwd=ROOT, env=variables)
    assert " passed" in said
    assert "skipped" not in said
