"""The file of a store that was left open is damaged: reading changes nothing, repair loses nothing.

The process was killed, so that every call lies in an intact log, and the file itself holds only
what a new store has. Of this file bytes are cut off, changed, or pages of it are zeroed.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from linkstream.errors import ArgumentError, DamagedStoreError, StoreError
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space
from linkstream.store import Store, repair
from store.damage import NAME, WAL, fresh
from store.internals import PAGE, change, drop_mean
from store.operations import THRESHOLDS, new, vectors

X = vectors(np.random.default_rng(5), 60)
CALLS = 6
SPACES = {
    "plain": None,
    "mean": Space(np.full(8, 0.1), "my encoder"),
    "dimension": Space(None, "my encoder", 8),
}


def left_by_a_kill(path, **options):
    """Return the files of a store of some calls whose process ended without closing it."""
    child = os.fork()
    if child == 0:
        store = new(path, **options)
        for start in range(0, CALLS * 10, 10):
            store.add_many(X[start : start + 10])
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    return {name: path.with_name(name).read_bytes() for name in (NAME, WAL, NAME + "-shm")}


@pytest.fixture(scope="module", params=SPACES)
def left(request, tmp_path_factory):
    space = SPACES[request.param]
    options = {} if space is None else {"space": space}
    return left_by_a_kill(tmp_path_factory.mktemp("left") / NAME, **options)


def damages(data):
    """The file with its end cut off, with a changed bit, and with a page of zeros."""
    for n in (1, 20, 500, PAGE, PAGE + 1, 2 * PAGE):
        yield f"{n} bytes cut off", data[:-n]
    for offset in [*range(16, 100, 7), *range(PAGE - 40, len(data), 1009)]:
        yield f"bit at {offset}", data[:offset] + bytes([data[offset] ^ 1]) + data[offset + 1 :]
    for start in range(0, len(data), PAGE):
        yield f"zeros at {start}", data[:start] + bytes(PAGE) + data[start + PAGE :]


def contents(folder):
    """Return the files, except the lock and the index of the log, which SQLite writes anew."""
    return {
        file.name: file.read_bytes()
        for file in folder.iterdir()
        if not file.name.endswith((".lock", "-shm"))
    }


def is_refused(path, **options):
    try:
        Store.open(path, threads=1, **options).close()
    except DamagedStoreError:
        return True
    return False


def test_reading_a_damaged_store_changes_no_file_and_keeps_the_log(left, folder):
    refused = 0
    for what, data in damages(left[NAME]):
        files = left | {NAME: data}
        fresh(folder, files)
        before = contents(folder)
        refused += is_refused(folder / NAME, read_only=True)
        assert contents(folder) == before, what
        try:
            with Store.open(folder / NAME, read_only=True) as store:
                store.verify()
        except DamagedStoreError:
            pass
        assert contents(folder) == before, what
    assert refused > 3


def test_a_refused_opening_for_writing_changes_no_file_and_keeps_the_log(left, folder):
    refused = 0
    for what, data in damages(left[NAME]):
        fresh(folder, left | {NAME: data})
        before = contents(folder)
        if is_refused(folder / NAME):
            assert contents(folder) == before, what
            refused += 1
    assert refused > 3


def test_an_opening_that_is_refused_for_its_arguments_keeps_the_log(left, folder):
    fresh(folder, left)
    before = contents(folder)
    with pytest.raises(ArgumentError, match="thresholds"):
        Store.open(folder / NAME, thresholds=Thresholds(0.1, 0.2, 0.3))
    assert contents(folder) == before
    assert not is_refused(folder / NAME)
    assert WAL not in contents(folder), "a writer that closes the store removes the log"


def test_reading_an_intact_store_after_a_kill_changes_no_file(left, folder):
    fresh(folder, left)
    before = contents(folder)
    for _ in range(2):
        with Store.open(folder / NAME, read_only=True) as store:
            assert store.verify().operations == CALLS
            assert len(list(store.journal.operations())) == CALLS
    assert contents(folder) == before


def test_a_reader_of_a_closed_store_leaves_no_log_behind(path):
    with new(path) as store:
        store.add_many(X)
    for _ in range(2):
        with Store.open(path, read_only=True) as store:
            store.verify()
        assert {file.name for file in path.parent.iterdir()} == {NAME, NAME + ".lock"}


def test_a_reader_that_outlives_a_killed_writer_keeps_the_log(path):
    new(path).close()
    with Store.open(path, read_only=True) as reader:
        left_by_a_kill(path)
        before = contents(path.parent)
        assert reader.refresh() == CALLS
    assert contents(path.parent) == before


# Repair


def test_repair_saves_every_call_of_an_intact_log_also_without_a_snapshot(left, folder):
    repaired = 0
    for what, data in damages(left[NAME]):
        fresh(folder, left | {NAME: data})
        if not is_refused(folder / NAME, read_only=True):
            continue
        done = repair(folder / NAME)
        assert (done.kept, done.lost, done.vectors) == (CALLS, 0, len(X)), what
        with Store.open(folder / NAME, threads=1) as store:
            assert store.verify().operations == CALLS
            assert np.array_equal(store.vectors(range(len(X))), X)
        repaired += 1
    assert repaired > 3


def test_repair_takes_the_mean_of_a_preset_if_the_description_has_only_its_digest(path):
    rows = np.random.default_rng(6).standard_normal((30, 256)).astype(np.float32)
    with Store.open(path, preset="ge2e-windows") as store:
        store.add_many(rows)
        before = store.state_hash()
    drop_mean(path)
    for number in (1, 2):
        change(path, "chunks", "body", number=number, crc=False)
    assert repair(path).kept == 1
    with Store.open(path) as store:
        assert store.state_hash() == before


def test_a_repair_that_could_keep_no_call_is_refused_and_changes_nothing(path):
    with new(path) as store:
        for start in range(0, 60, 20):
            store.add_many(X[start : start + 20])
    change(path, "vectors", "body", number=1, crc=False)
    for number in (2, 1):  # the newest snapshot, then the base as well
        change(path, "chunks", "body", number=number, crc=False)
        before = contents(path.parent)
        with pytest.raises(DamagedStoreError, match=r"operation 1.*nothing can be saved") as error:
            repair(path)
        assert contents(path.parent) == before
        assert "linkstream repair" not in str(error.value)
        assert str(error.value).count(NAME) == 1


def test_a_repair_that_finds_no_trace_of_the_calls_in_a_cut_file_is_refused(left, folder):
    with new(folder / NAME) as store:
        store.add_many(X)
    data = (folder / NAME).read_bytes()
    fresh(folder, {NAME: data[: 2 * PAGE]})
    with pytest.raises(StoreError, match="nothing can be saved"):
        repair(folder / NAME)
    assert contents(folder) == {NAME: data[: 2 * PAGE]}


def test_an_empty_store_is_repaired_to_an_empty_store(path):
    new(path).close()
    change(path, "chunks", "body", crc=False)
    assert (repair(path).kept, repair(path).lost) == (0, 0)
    with Store.open(path, thresholds=THRESHOLDS) as store:
        assert store.n_vectors == 0
