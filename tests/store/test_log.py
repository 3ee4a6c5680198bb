"""The log: one changed bit must not make acknowledged calls vanish; a torn write is no damage."""

from __future__ import annotations

import os

import numpy as np
import pytest

from linkstream.errors import DamagedStoreError
from linkstream.store import Store, repair, wal
from store import internals
from store.operations import THRESHOLDS, new, vectors

X = vectors(np.random.default_rng(1), 300)
CALLS = 100


@pytest.fixture
def left(path):
    """A store of 100 acknowledged calls, whose process ended without closing it."""
    child = os.fork()
    if child == 0:
        store = new(path)
        for call in range(CALLS):
            store.add_many(X[3 * call : 3 * call + 3], idempotency_key=str(call))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    return path


def log_of(path):
    return path.with_name(path.name + "-wal")


def index_of(path):
    return path.with_name(path.name + "-shm")


def flip(path, offset):
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)
    return bytes(data)


def assert_refused(path):
    """Refused for reading and for writing; the log stays as it is."""
    before = log_of(path).read_bytes()
    for read_only in (True, False, True):
        with pytest.raises(DamagedStoreError, match=r"people\.links.*the log"):
            Store.open(path, read_only=read_only)
    assert log_of(path).read_bytes() == before


def calls_of(path):
    with Store.open(path, threads=1) as store:
        store.verify()
        return store.journal.n_operations


def test_the_checksums_of_a_log_are_those_of_sqlite(left):
    log = wal.read(left)
    assert log.header_intact
    assert log.chained.all()
    assert log.n_sound == log.n_committed == len(log.pages)
    assert log.commits.sum() == CALLS


@pytest.mark.parametrize("offset", [100, 3, 17, 29, 33, 44, 50])
@pytest.mark.parametrize("indexed", [True, False])
def test_one_changed_bit_at_the_beginning_of_the_log_is_damage(left, offset, indexed):
    flip(log_of(left), offset)
    if not indexed:
        index_of(left).unlink()
    assert_refused(left)
    assert repair(left).kept == calls_of(left) == CALLS


def test_a_changed_bit_in_the_middle_is_damage_and_repair_saves_the_calls_before(left):
    log = wal.read(left)
    middle = int(np.flatnonzero(log.commits)[49])
    flip(log_of(left), log.offset(middle) + 5)
    assert_refused(left)
    assert repair(left).kept >= 49
    assert calls_of(left) >= 49


def test_a_log_that_was_cut_short_is_damage_while_its_index_is_there(left):
    data = log_of(left).read_bytes()
    log_of(left).write_bytes(data[: len(data) // 2])
    assert_refused(left)
    kept = repair(left).kept
    assert CALLS // 3 < kept == calls_of(left) < CALLS


def test_an_emptied_log_is_damage_while_its_index_is_there(left):
    log_of(left).write_bytes(b"")
    assert_refused(left)


def test_a_changed_bit_in_the_last_write_is_damage_if_the_index_counts_it_as_durable(left):
    flip(log_of(left), -9)
    assert_refused(left)


def test_a_torn_last_write_is_no_damage(left):
    index_of(left).unlink()
    data = log_of(left).read_bytes()
    log_of(left).write_bytes(data[:-9])
    assert calls_of(left) == CALLS - 1


def test_a_last_write_without_its_beginning_is_no_damage(left):
    """Before a forced write returns, the disk may take its parts in any order."""
    log = wal.read(left)
    first = int(np.flatnonzero(log.commits)[-2]) + 1
    index_of(left).unlink()
    data = bytearray(log_of(left).read_bytes())
    start = log.offset(first) - wal.FRAME
    data[start : start + wal.FRAME + log.page_size] = bytes(wal.FRAME + log.page_size)
    log_of(left).write_bytes(data)
    assert calls_of(left) == CALLS - 1


def test_frames_of_an_earlier_generation_are_no_damage(left):
    with Store.open(left, threads=1) as store, Store.open(left, read_only=True):
        assert store.journal.n_operations == CALLS
        before = log_of(left).stat().st_size
        store.handle.run(store.handle.maintenance.checkpoint)  # all of the log is in the file now
        store.add(X[0])
        assert log_of(left).stat().st_size == before, "the log began anew, over its old frames"
        files = {name: name.read_bytes() for name in (left, log_of(left), index_of(left))}
    for indexed in (True, False):
        for name, data in files.items():
            name.write_bytes(data)
        if not indexed:
            index_of(left).unlink()
        assert wal.read(left).n_sound < len(wal.read(left).pages)
        assert calls_of(left) == CALLS + 1


def test_frames_of_a_transaction_that_was_rolled_back_are_no_damage(left):
    with Store.open(left, threads=1) as store:
        writer = internals.writer_of(store)
        writer.execute("BEGIN IMMEDIATE")
        for piece in range(10_000, 10_040):  # more than is kept in memory
            writer.execute("INSERT INTO vectors VALUES (?, ?, 0)", (piece, bytes(30_000)))
        writer.execute("ROLLBACK")
        store.add(X[0])
        files = {name: name.read_bytes() for name in (left, log_of(left))}
    for name, data in files.items():
        name.write_bytes(data)
    log = wal.read(left)
    assert (log.near[log.n_sound :] == 2).any(), "nothing was left over: nothing was tested"
    assert calls_of(left) == CALLS + 1


def test_verify_finds_a_log_that_is_changed_while_the_store_is_open(left):
    with Store.open(left, threads=1) as store:
        store.add(X[0])
        store.verify()
        data = log_of(left).read_bytes()
        flip(log_of(left), 60)
        with pytest.raises(DamagedStoreError, match="the log"):
            store.verify()
        log_of(left).write_bytes(data)
        store.verify()


def test_readers_are_not_delayed_by_the_log_of_a_writer(path):
    with new(path) as store:
        for call in range(20):
            store.add_many(X[3 * call : 3 * call + 3])
            with Store.open(path, read_only=True) as reader:
                assert reader.journal.n_operations == call + 1
        assert store.info()["format"] == 2


def test_a_single_vector_of_128_dimensions_costs_little_of_the_log(path):
    rows = np.random.default_rng(0).standard_normal((200, 128)).astype(np.float32)
    with Store.open(path, thresholds=THRESHOLDS) as store:
        for row in rows:
            store.add(row)
        assert log_of(path).stat().st_size / len(rows) < 12 << 10
