"""Paths for stores, and crash harnesses, one of each kind for the whole run."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest

from store.crash_harness import CrashHarness

MEMORY = Path("/dev/shm")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "people.links"


@pytest.fixture
def folder(tmp_path):
    """A folder for many small stores: in memory if possible."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else tmp_path) as name:
        yield Path(name)


@pytest.fixture(scope="session")
def harness():
    with CrashHarness() as held:
        yield held


@pytest.fixture(scope="session")
def faulty(tmp_path_factory):
    """A harness in whose children writes can fail. It needs a C compiler."""
    library = tmp_path_factory.mktemp("faults") / "faults.so"
    source = Path(__file__).with_name("faults.c")
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl", "-pthread"]
    subprocess.run(command, check=True)
    with CrashHarness(preload=library) as held:
        yield held
