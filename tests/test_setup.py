"""Set-up of a fresh machine (`.ci/packages`), and the version of the package."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import linkstream

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / ".ci" / "packages"


class Machine:
    """A machine whose only programs are fakes; `log` lists the calls that would change it."""

    def __init__(self, folder: Path, user: int, *programs: str) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.log.touch()
        self.program("id", f"echo {user}")
        self.program("sudo", f'echo sudo >> {self.log}; "$@"')
        self.program("env", 'shift; "$@"')
        self.program("apt-get", f'echo apt-get "$@" >> {self.log}')
        for name in programs:
            self.program(name, "exit 0")

    def program(self, name: str, body: str) -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def set_up(self, *needs: str, answer: str | None = None) -> subprocess.CompletedProcess:
        """Run the script, with a terminal on which the user types `answer` if it is given."""
        environment = {"PATH": str(self.folder), "PYTHON": sys.executable}
        options = {"env": environment, "capture_output": True, "text": True, "check": False}
        if answer is None:
            return subprocess.run([SCRIPT, *needs], stdin=subprocess.DEVNULL, **options)
        keyboard, terminal = pty.openpty()
        try:
            os.write(keyboard, f"{answer}\n".encode())
            return subprocess.run([SCRIPT, *needs], stdin=terminal, **options)
        finally:
            os.close(keyboard)
            os.close(terminal)

    def calls(self) -> list[str]:
        return self.log.read_text().splitlines()


INSTALL = "apt-get install -y -qq --no-install-recommends"
BOTH = f"{INSTALL} chromium openjdk-17-jre-headless"


@pytest.fixture
def machine(tmp_path):
    return lambda user, *programs: Machine(tmp_path, user, *programs)


def test_root_gets_the_missing_packages_without_a_question(machine):
    fresh = machine(0)
    done = fresh.set_up("python", "browser", "java")
    assert done.returncode == 0, done.stderr
    assert fresh.calls() == ["apt-get update -qq", BOTH]


def test_only_missing_packages_are_installed(machine):
    fresh = machine(0, "chromium")
    assert fresh.set_up("browser", "java").returncode == 0
    assert fresh.calls()[-1] == f"{INSTALL} openjdk-17-jre-headless"


@pytest.mark.parametrize("browser", ["chromium", "chromium-browser", "google-chrome"])
def test_a_complete_machine_is_left_alone(machine, browser):
    complete = machine(1000, browser, "java", "g++")
    done = complete.set_up("python", "browser", "java")
    assert (done.returncode, done.stdout, complete.calls()) == (0, "", [])


def test_a_user_sees_the_command_and_agrees(machine):
    fresh = machine(1000)
    done = fresh.set_up("browser", "java", answer="y")
    assert done.returncode == 0, done.stderr
    assert "sudo apt-get update -qq && sudo env DEBIAN_FRONTEND=noninteractive" in done.stdout
    assert "Run it now? [y/N]" in done.stdout
    assert fresh.calls() == ["sudo", "apt-get update -qq", "sudo", BOTH]


@pytest.mark.parametrize("answer", ["n", "", "what"])
def test_a_user_who_does_not_agree_gets_nothing_installed(machine, answer):
    fresh = machine(1000)
    done = fresh.set_up("browser", answer=answer)
    assert done.returncode == 1
    assert "Nothing was installed" in done.stderr
    assert fresh.calls() == []


def test_without_a_terminal_a_user_gets_the_command_and_an_error(machine):
    fresh = machine(1000)
    done = fresh.set_up("browser", "java")
    assert done.returncode == 1
    assert f"{BOTH}\n" in done.stdout
    assert "no terminal" in done.stderr
    assert fresh.calls() == []


def test_without_apt_the_missing_packages_are_named(machine):
    other = machine(0)
    (other.folder / "apt-get").unlink()
    done = other.set_up("browser")
    assert done.returncode == 1
    assert "Missing: chromium" in done.stderr


def test_an_unknown_need_is_refused(machine):
    done = machine(0).set_up("fortran")
    assert done.returncode == 2
    assert "unknown need 'fortran'" in done.stderr


def test_make_test_and_make_demo_set_up_the_machine_first():
    def steps(target):
        plan = subprocess.run(
            ["make", "--dry-run", "--always-make", target],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        return [line for line in plan.stdout.splitlines() if not line.startswith("make")]

    assert steps("test")[0].endswith(".ci/packages python compiler browser java")
    assert steps("demo")[0].endswith(".ci/packages python")


# The version


def test_lint_checks_python_cpp_and_the_page():
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", "lint"], cwd=ROOT, capture_output=True, text=True
    )
    for tool in ("ruff check", "lint-imports", "clang-format --dry-run", "deno fmt", "deno check"):
        assert tool in done.stdout, tool
    assert "mypy" in done.stdout


def test_the_version_is_written_in_one_place():
    """`__version__` is the source; the build reads it, and no other file repeats it."""
    assert metadata.version("linkstream") == linkstream.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+([a-z]+\d+)?", linkstream.__version__)
    stated = re.compile(r'^"?version"?\s*[:=]', re.MULTILINE)
    for name in ("pyproject.toml", "CITATION.cff", "CMakeLists.txt", "deno.json"):
        assert not stated.search((ROOT / name).read_text("utf-8")), name


def test_the_build_takes_the_version_of_the_package():
    from scikit_build_core.metadata.regex import dynamic_metadata

    settings = {"input": str(ROOT / "src/linkstream/__init__.py")}
    assert dynamic_metadata("version", settings) == linkstream.__version__
