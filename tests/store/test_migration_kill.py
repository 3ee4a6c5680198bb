"""Kill −9 in the middle of a migration loses nothing that was acknowledged."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from linkstream.store import Store
from store import migration_child

CHILD = Path(migration_child.__file__)


def record_of(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def killed(path: Path, record: Path, after: int, delay: float, *, kept: bool) -> None:
    """Run the child until it has done some more steps and a little of the next one; kill it."""
    goal = len(record_of(record)) + after
    child = subprocess.Popen([sys.executable, CHILD, path, record, str(int(kept))])
    while len(record_of(record)) < goal and child.poll() is None:
        time.sleep(0.0005)
    time.sleep(delay)
    child.kill()
    child.wait()


def check(path: Path, record: Path) -> None:
    """Check that the store has what the record says."""
    done = len(record_of(record))
    with Store.open(path) as store:
        store.verify()
        migration = store.migration()
        if migration is None:
            assert store.dimension == 12 or done < 2
            return
        missing = set(migration.missing().tolist())
        assert not missing & migration_child.received(done)


@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.long)])
@pytest.mark.parametrize("kept", [True, False], ids=["kept", "not kept"])
def test_a_migration_that_is_killed_ends_as_one_that_is_not(
    tmp_path: Path, kills: int, kept: bool
) -> None:
    whole, record = tmp_path / "whole.links", tmp_path / "whole"
    migration_child.carry_out(whole, record, kept=kept)
    n_steps = len(record_of(record)) - 1
    rng = random.Random(kills)
    path, record = tmp_path / "killed.links", tmp_path / "killed"
    for kill in range(kills):
        least = n_steps * (kill + 1) // (kills + 1) - len(record_of(record))
        killed(path, record, max(least, 0), rng.choice((0.0, 0.001, 0.003, 0.01)), kept=kept)
        if path.exists():
            check(path, record)
    migration_child.carry_out(path, record, kept=kept)
    with Store.open(whole) as one, Store.open(path) as other:
        assert one.dimension == 12
        assert one.migration() is other.migration() is None
        assert other.state_hash() == one.state_hash()
        if kept:
            assert other.partition_hash() == one.partition_hash()
        assert other.n_events == one.n_events
