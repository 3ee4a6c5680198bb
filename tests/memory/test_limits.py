"""A plain limit of the system on memory (RLIMIT_AS), as a container or a shell sets it.

Each case is a process of its own (limited.py): it may not crash, a clusterer is where it was before
the batch that failed, and a sound store stays sound and is not called damaged.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from memory.machine import HERE
from streams import ENGINES

SMALL = {"native": (500_000, 6_000_000), "reference": (1_000_000,)}
LARGE = range(500_000, 11_000_000, 500_000)
LIMITS = (500_000, 4_000_000, 10_000_000)
HONEST = ("MemoryError", "StoreMemoryError", "NoneType")
NO_THREAD = ("RuntimeError", "can't start new thread")


def limited(task, more, path="nowhere"):
    """What a task reports; the test fails if its process ends by a signal or an error."""
    words = [sys.executable, HERE / "limited.py", task, str(more), str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-2000:]}"
    return json.loads(done.stdout)


def check_batches(engine, more):
    report = limited(f"add {engine}", more)
    assert report["raised"] == "MemoryError", report
    if not report.get("refuses"):
        assert report["state as before"], report
        assert report["later answers the same"], report


@pytest.mark.parametrize(
    ("engine", "more"), [(engine, more) for engine in ENGINES for more in SMALL[engine]]
)
def test_a_batch_that_a_memory_limit_stops_changes_nothing(engine, more):
    check_batches(engine, more)


@pytest.mark.long
@pytest.mark.parametrize("more", LARGE)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_batch_that_any_memory_limit_stops_changes_nothing(engine, more):
    check_batches(engine, more)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A store that was not closed, and what it holds."""
    folder = tmp_path_factory.mktemp("base")
    return folder, limited("fill", 0, folder / "people.links")


@pytest.fixture
def path(base, tmp_path):
    return shutil.copytree(base[0], tmp_path / "copy") / "people.links"


@pytest.mark.parametrize("more", LIMITS)
def test_opening_a_store_under_a_memory_limit_does_not_call_it_damaged(base, path, more):
    report = limited("open", more, path)
    assert report["raised"] in HONEST or (report["raised"], report["text"]) == NO_THREAD, report
    assert limited("look", 0, path) == base[1]


@pytest.mark.parametrize("more", LIMITS)
def test_repair_under_a_memory_limit_keeps_a_sound_store_whole(base, path, more):
    files = sorted(each.name for each in path.parent.iterdir())
    report = limited("repair", more, path)
    assert report["raised"] in HONEST, report
    if report["raised"] != "NoneType":
        assert sorted(each.name for each in path.parent.iterdir()) == files
    assert limited("look", 0, path) == base[1]
