"""The compiled core under gcc's sanitizers: memory out of bounds, undefined behaviour, data races.

Each kind has a build of its own in build/sanitize and an environment of its own there, which takes
everything from the running one but linkstream: an editable installation would else get in first.
The agreement suite then runs in that environment. A short form runs with the other tests; `make
sanitize` runs the whole.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import site
import subprocess
import sys
import sysconfig
import venv
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nanobind
import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "sanitize"
ENGINES = "tests/agreement/test_engines.py"
RECEIVING = "tests/agreement/test_absorb.py"


@dataclass(frozen=True)
class Kind:
    """What to build with, what to load before Python, what that is told, and its mark in the core.

    The C++ library is loaded early as well, or else exceptions thrown by the core are not found.
    """

    name: str
    flags: str
    libraries: tuple[str, ...]
    options: dict[str, str]
    mark: bytes


ADDRESS = Kind(
    "address",
    "address,undefined,float-cast-overflow",
    ("libasan.so", "libubsan.so", "libstdc++.so"),
    {
        # Python and NumPy keep memory until the process ends, and that is no leak of ours; that
        # the core's memory stays flat is for test_sums.py to see.
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    },
    b"__asan_report",
)
THREAD = Kind(
    "thread",
    "thread",
    ("libtsan.so", "libstdc++.so"),
    {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"},
    b"__tsan_read",
)


def tool(name):
    """A program of this environment or of the system."""
    found = shutil.which(
        name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    assert found, f"{name} is not there: pip install 'linkstream[test]'"
    return found


def call(*words, **options):
    """Run a program; fail with all it said if it fails."""
    words = [str(word) for word in words]
    done = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options
    )
    assert done.returncode == 0, f"{' '.join(words)}\nexit code {done.returncode}\n{done.stdout}"
    return done.stdout


@contextmanager
def alone():
    """One process at a time: the forms of a test may run side by side."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def build(kind):
    """The core of this kind, compiled where its sources are newer than it is."""
    folder = FOLDER / kind.name
    call(
        tool("cmake"),
        *("-S", ROOT, "-B", folder, "-G", "Ninja"),
        f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}",
        "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
        f"-DLINKSTREAM_SANITIZE={kind.flags}",
        "-DCMAKE_CXX_FLAGS=-fno-var-tracking",  # a quarter quicker; reports name the same lines
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-Dnanobind_DIR={nanobind.cmake_dir()}",
    )
    call(tool("cmake"), "--build", folder)
    return folder / f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"


def environment(kind, core):
    """The Python of an environment where linkstream has that core."""
    folder = FOLDER / f"{kind.name}-environment"
    package = folder / "package" / "linkstream"
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir(parents=True)
    sources = [path for path in (ROOT / "src" / "linkstream").iterdir() if path.suffix != ".so"]
    for path in (*sources, core):
        (package / path.name).symlink_to(path)
    venv.create(folder, with_pip=False, symlinks=True)
    places = {"base": str(folder), "platbase": str(folder)}
    own = Path(sysconfig.get_path("purelib", "posix_prefix", places))
    # Of a folder named in such a file, the files that would install hooks are not read.
    lines = [str(package.parent), *site.getsitepackages()]
    (own / "linkstream-sanitized.pth").write_text("\n".join(lines) + "\n")
    return folder / "bin" / "python"


def variables(kind):
    """Environment variables for a run: Python itself knows nothing of sanitizers."""
    cache = (FOLDER / kind.name / "CMakeCache.txt").read_text()
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", cache, re.MULTILINE)[1]
    paths = [call(compiler, f"-print-file-name={name}").strip() for name in kind.libraries]
    absent = [path for path in paths if not Path(path).is_absolute()]
    assert not absent, f"{compiler} has no {', '.join(absent)}; build with CXX=g++"
    return os.environ | kind.options | {"LD_PRELOAD": " ".join(paths), "PYTHONDEVMODE": "0"}


def run_sanitized(kind, *arguments):
    """Run tests on the sanitized core; fail with what they said if they fail."""
    with alone():
        core = build(kind)
        python = environment(kind, core)
    variables_ = variables(kind)
    where = "import linkstream; from linkstream import _core; print(linkstream.__file__)"
    seen = call(python, "-c", f"{where}; print(_core.__file__)", env=variables_).split()
    package = python.parents[1] / "package" / "linkstream"
    assert [Path(path).parent for path in seen] == [package, package], "another core was imported"
    assert kind.mark in core.read_bytes(), "the core was built without the sanitizer"
    # Nothing is captured at the level of files, so that a report of the sanitizer is seen.
    options = ("-q", "--capture=sys", "-p", "no:cacheprovider", "-p", "no:xdist")
    return call(python, "-m", "pytest", *options, *arguments, cwd=ROOT, env=variables_)


def test_a_part_of_the_agreement_suite_holds_under_the_address_sanitizer():
    streams = "test_every_stream_of_the_oracle_is_decided_alike[10]"
    large = "test_large_streams_are_decided_alike"
    run_sanitized(
        ADDRESS,
        f"{ENGINES}::{streams}",
        *(f"{ENGINES}::{large}[{name}]" for name in ("winding", "crowd")),
        f"{ENGINES}::test_budgets_hold_on_large_streams_too",
        f"{ENGINES}::test_a_snapshot_of_one_engine_goes_on_in_the_other",
        f"{ENGINES}::test_asking_and_explaining_give_the_same_answers",
        f"{ENGINES}::test_fixed_point_rows_are_the_same_bits",
        f"{ENGINES}::test_without_tracking_the_compiled_log_keeps_the_newest_hundred_thousand_too",
    )


@pytest.mark.long
def test_the_agreement_suite_and_the_engines_tests_hold_under_the_address_sanitizer():
    # The sanitizer keeps freed memory for a while, so that memory is not flat under it.
    run_sanitized(
        ADDRESS,
        "-m",
        "not long",
        "--ignore=tests/engine/test_sums.py",
        ENGINES,
        RECEIVING,
        "tests/engine",
    )


@pytest.mark.long
def test_threads_do_not_race():
    run_sanitized(
        THREAD,
        f"{ENGINES}::test_large_streams_are_decided_alike[scatter]",
        f"{ENGINES}::test_budgets_hold_on_large_streams_too",
        "tests/engine/test_native.py",
        "-k",
        "large_streams or thread or fork or interrupt",
    )
