"""Repair: afterwards the store opens and verifies, or nothing was changed; what a kill leaves."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sqlite3
import time

import numpy as np
import pytest

from linkstream import Links
from linkstream.clusterer.core import Core
from linkstream.engine import atomic_files
from linkstream.errors import DamagedStoreError, SnapshotError, StoreError
from linkstream.store import Store, copies, repair
from store.internals import change
from store.operations import new, state_of, vectors

X = vectors(np.random.default_rng(3), 60)


def contents(path):
    """All files of a store's folder but the lock, with what is in them."""
    return {f.name: f.read_bytes() for f in path.parent.iterdir() if f.suffix != ".lock"}


def spoil(path, table):
    """Make all rows of a table unreadable."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"UPDATE {table} SET crc = crc + 1")
        connection.commit()


def left_open(path, batches=4):
    """A store whose process ended without closing it."""
    child = os.fork()
    if child == 0:
        store = new(path)
        for start in range(0, batches * 10, 10):
            store.add_many(X[start : start + 10])
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    return batches


# What repair leaves can be opened.


@pytest.mark.parametrize(("table", "column"), [("vectors", "body"), ("operations", "result")])
def test_damage_in_the_newest_batch_is_repaired_to_a_store_that_opens(path, table, column):
    with new(path) as store:
        store.add_many(X[:20])
        before = store.state_hash()
    change(path, table, column, crc=False)
    repaired = repair(path)
    assert (repaired.kept, repaired.lost_before) == (1, 1)
    with Store.open(path) as store:
        assert store.verify().operations == 1
        assert store.state_hash() == before
        with pytest.raises(StoreError, match="which a repair could not read"):
            store.vectors([0])
        store.add_many(X[20:30])
        store.compact()
        assert store.verify().operations == 2
        assert np.array_equal(store.vectors(range(20, 30)), X[20:30])


def test_a_lost_description_is_written_again_from_a_snapshot(path):
    with new(path, min_size=2) as store:
        store.add_many(X[:20])
        before = state_of(store)
    spoil(path, "meta")
    with pytest.raises(DamagedStoreError):
        Store.open(path)
    assert repair(path).lost == 0
    with Store.open(path) as store:
        assert state_of(store) == before
        assert store.info()["min_size"] == 2


def test_a_store_without_intact_snapshots_is_replayed_from_the_beginning(path):
    with new(path, evidence="cluster", heal="join") as store:
        for start in range(0, 60, 10):
            store.add_many(X[start : start + 10])
        before = state_of(store)
    spoil(path, "chunks")
    assert repair(path).kept == 6
    with Store.open(path) as store:
        assert state_of(store) == before
        store.verify()


# Where it fails nothing is changed.


def test_a_full_disk_leaves_all_files_unchanged(path, monkeypatch):
    left_open(path)
    before = contents(path)

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    for module, name in (("shutil", "copy2"), ("os", "replace"), ("os", "fsync")):
        with monkeypatch.context() as broken:
            broken.setattr(f"{module}.{name}", full)
            with pytest.raises(StoreError, match=r"people\.links.*No space"):
                repair(path)
        assert contents(path) == before
    assert repair(path).kept == 4


def test_the_log_stays_until_the_new_file_is_in_place(path, monkeypatch):
    left_open(path)
    seen = []
    replace = os.replace

    def noted(source, target):
        if str(target) == str(path):
            seen.append(path.with_name(path.name + "-wal").stat().st_size)
        replace(source, target)

    monkeypatch.setattr(os, "replace", noted)
    repair(path)
    assert len(seen) == 1
    assert seen[0] > 0
    assert not path.with_name(path.name + "-wal").exists()


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("step", ["replace", "unlink", "sync"])
def test_a_store_opens_after_a_repair_was_killed_during_the_replacement(path, step, read_only):
    n = left_open(path)
    child = os.fork()
    if child == 0:
        die = lambda *a, **k: os._exit(7)  # noqa: E731
        if step == "replace":
            copies.os = type("os", (), {"replace": staticmethod(die)})
        elif step == "unlink":
            copies._remove_log = die
        else:
            count = iter(range(100))
            sync = atomic_files.sync
            atomic_files.sync = lambda path: die() if next(count) == 3 else sync(path)
        repair(path)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    with Store.open(path, read_only=read_only) as store:
        assert store.journal.n_operations == n
        store.verify()
    with Store.open(path) as store:
        store.add_many(X)
        assert store.verify().operations == n + 1
    assert not list(path.parent.glob(".*.repaired"))


# What is no store is left alone.

KINDS = {
    "text": b"hello\n" * 999,
    "zeros": bytes(8192),
    "nothing": b"",
    "a snapshot": b"LINKSNAP" + bytes(200),
    "one byte": b"x",
}


@pytest.mark.parametrize("data", KINDS.values(), ids=KINDS)
def test_a_file_that_is_no_store_is_refused_and_nothing_is_written_beside_it(path, data):
    path.write_bytes(data)
    for ask in (repair, Store.open, lambda path: Store.open(path, read_only=True)):
        with pytest.raises(StoreError, match="not a linkstream store") as refused:
            ask(path)
        assert not isinstance(refused.value, DamagedStoreError)
        assert {f.name: f.read_bytes() for f in path.parent.iterdir()} == {path.name: data}


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_a_database_of_another_program_is_no_store(path, mode):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode={mode}")
        connection.execute("CREATE TABLE operations (number INTEGER PRIMARY KEY, verb TEXT)")
        connection.execute("INSERT INTO operations VALUES (1, 'add')")
        connection.commit()
    data = path.read_bytes()
    for ask in (repair, Store.open, lambda path: Store.open(path, read_only=True)):
        with pytest.raises(StoreError, match="not a linkstream store"):
            ask(path)
        assert {f.name: f.read_bytes() for f in path.parent.iterdir()} == {path.name: data}


def test_a_store_without_its_first_page_is_recognised_and_repaired(path):
    with new(path) as store:
        store.add_many(X)
        before = state_of(store)
    data = path.read_bytes()
    path.write_bytes(bytes(4096) + data[4096:])
    with pytest.raises(DamagedStoreError):
        Store.open(path)
    assert repair(path).lost == 0
    with Store.open(path) as store:
        assert state_of(store) == before


# What a kill leaves is swept away.


def killed_while(work):
    """Fork a child that does some work, and kill it once it has begun."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return child


def test_the_hidden_file_of_a_killed_backup_is_removed_later(path, tmp_path, monkeypatch):
    with new(path) as store:
        store.add_many(X)

    def backup():
        monkeypatch.setattr("linkstream.store.file._settle", lambda *files: time.sleep(60))
        with Store.open(path, read_only=True) as store:
            store.backup(tmp_path / "first.links")

    child = killed_while(backup)
    while not list(tmp_path.glob(".first.links.*")):
        time.sleep(0.01)
    atomic_files.sweep(tmp_path)
    assert list(tmp_path.glob(".first.links.*")), "one that is under way must stay"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with Store.open(path) as store:
        store.backup(tmp_path / "second.links")
    assert [f.name for f in tmp_path.iterdir() if f.name.startswith(".")] == []


def test_hidden_files_of_other_programs_are_not_removed(tmp_path):
    for name in (".people.links.new", ".linkstream", ".a.12345678.linkstream.txt", "b.linkstream"):
        (tmp_path / name).write_text("mine")
    atomic_files.sweep(tmp_path)
    assert len(list(tmp_path.iterdir())) == 4


# Snapshots of `Links.save`.


def test_a_saved_snapshot_is_forced_to_disk_with_its_name(tmp_path, monkeypatch):
    forced = []
    fsync = os.fsync

    def noted(handle):
        forced.append(os.path.realpath(f"/proc/self/fd/{handle}"))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    links = Links(0.7, 0.6, 0.9)
    links.add_many(X)
    links.save(tmp_path / "a.snapshot")
    assert len(forced) == 2
    assert forced[1] == str(tmp_path)
    assert [f.name for f in tmp_path.iterdir()] == ["a.snapshot"]


def test_a_state_that_could_not_be_loaded_is_not_saved_over_a_file(tmp_path, monkeypatch):
    links = Links(0.7, 0.6, 0.9)
    links.add_many(X)
    links.save(tmp_path / "a.snapshot")
    before = (tmp_path / "a.snapshot").read_bytes()
    state = links.state()
    state.counts[0] += 1
    monkeypatch.setattr(Core, "state", lambda core: state)
    with pytest.raises(SnapshotError, match=r"in memory.*Nothing was written"):
        links.save(tmp_path / "a.snapshot")
    assert (tmp_path / "a.snapshot").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1
