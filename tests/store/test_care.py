"""Verify, repair, backup: whether it is sound, what can be saved, a copy while it is written to."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from linkstream import Links
from linkstream.errors import ArgumentError, DamagedStoreError, StoreError
from linkstream.store import Store, repair
from store.internals import EarlyMaintenance, change, snapshots_of
from store.operations import THRESHOLDS, Shadow, new, state_of, vectors

X = vectors(np.random.default_rng(0), 60)


def filled(path, operations=25, seed=6):
    """A store with something of everything, and the clusterer beside it."""
    shadow = Shadow(seed, sizes=(1, 7)).until(operations)
    with new(path) as store:
        for number in range(operations):
            shadow.do(store, number)
        assert state_of(store) == shadow.states[operations]
    return shadow


# Verify.


def test_verify_counts_what_it_has_read(path):
    with new(path) as store:
        store.add_many(X[:40], payloads=list(range(40)))
        store.remove(3)
        store.name(0, "Ann")
        found = store.verify()
        assert found.operations == store.journal.n_operations == 3
        assert found.vectors == 40
        assert found.events == len(store.events())
        assert found.snapshots >= 1
    with Store.open(path, read_only=True) as store:
        assert store.verify().vectors == 40


def test_verify_changes_nothing(path):
    filled(path)
    with Store.open(path) as store:
        before = state_of(store), path.read_bytes()
        store.verify()
        assert (state_of(store), path.read_bytes()) == before


CHANGES = {
    "an answer": ("operations", "result"),
    "what was decided": ("operations", "events"),
    "a vector": ("vectors", "body"),
    "what was said": ("operations", "arguments"),
    "the first vector": ("operations", "first_vector"),
    "the first event": ("operations", "first_event"),
    "the verb": ("operations", "verb"),
}


@pytest.mark.parametrize("value", CHANGES.values(), ids=CHANGES)
def test_a_change_with_a_correct_checksum_is_found_by_replaying(path, value):
    with EarlyMaintenance(10**9), new(path) as store:
        store.add_many(X[:10])
        store.name(0, "Ann")
        store.add_many(X[10:20], weight=0.5)
    change(path, *value)
    found = pytest.raises(DamagedStoreError, match=r"people\.links.*operation [123]")
    with found, Store.open(path) as store:
        store.verify()


def test_the_error_names_a_changed_decision(path):
    with new(path) as store:
        store.add_many(X[:10])
        store.add_many(X[10:20])
    change(path, "operations", "result")
    with pytest.raises(DamagedStoreError, match="decided again"), Store.open(path) as store:
        store.verify()


def test_verify_finds_a_changed_snapshot(path):
    with new(path) as store:
        store.add_many(X[:10])
    with Store.open(path) as store:
        store.add_many(X[10:20])
        before = state_of(store)
    change(path, "chunks", "body")
    try:
        with Store.open(path) as store:
            assert state_of(store) == before
            with pytest.raises(DamagedStoreError):
                store.verify()
    except DamagedStoreError as error:
        assert "people.links" in str(error)  # noqa: PT017 - either of the two


def test_opening_uses_an_older_snapshot_if_the_newest_is_damaged(path):
    with EarlyMaintenance(5), new(path) as store:
        for start in range(0, 60, 6):
            store.add_many(X[start : start + 6])
        before = state_of(store)
    numbers = snapshots_of(path)
    if len(numbers) < 2:
        pytest.skip("only one snapshot is kept")
    change(path, "chunks", "body", crc=False)
    with Store.open(path) as store:
        assert state_of(store) == before


# Repair.


def test_repairing_an_intact_store_changes_nothing(path):
    shadow = filled(path)
    before = path.read_bytes()
    repaired = repair(path)
    assert Path(repaired.copy).read_bytes() == before
    assert (repaired.lost_before, repaired.lost_after, repaired.reason) == (0, 0, None)
    with Store.open(path) as store:
        assert state_of(store) == shadow.states[25]
        assert store.journal.n_operations == repaired.kept
        assert store.n_vectors == repaired.vectors
        store.verify()


def test_repair_saves_the_longest_intact_prefix_after_copying_the_files(path, tmp_path):
    links = Links.from_thresholds(THRESHOLDS, threads=1)
    hashes = [links.state_hash()]
    with new(path) as store:
        for i in range(10):
            store.add_many(X[4 * i : 4 * i + 4], payloads=[i] * 4, idempotency_key=str(i))
            links.add_many(X[4 * i : 4 * i + 4])
            hashes.append(links.state_hash())
    change(path, "operations", "result", number=7, crc=False)
    change(path, "chunks", "body", crc=False)
    damaged = path.read_bytes()
    repaired = repair(path, copy=tmp_path / "aside.links")
    assert (tmp_path / "aside.links").read_bytes() == damaged
    with Store.open(path) as store:
        assert store.state_hash() in hashes
        assert store.journal.n_operations >= 6
        assert store.journal.n_operations == repaired.kept
        assert repaired.kept + repaired.lost_after == 10
        n = store.n_vectors
        assert np.array_equal(store.vectors(range(n)), X[:n])
        assert store.payloads(range(n)) == [i // 4 for i in range(n)]
        assert store.add_many(X[:4], payloads=[0] * 4, idempotency_key="0").tolist()
        assert store.n_vectors == n
        store.verify()
        store.add_many(X[40:])


def test_repair_does_not_overwrite_an_existing_copy(path, tmp_path):
    filled(path)
    before = path.read_bytes()
    taken = tmp_path / "taken.links"
    taken.write_text("mine")
    with pytest.raises((StoreError, ValueError)):
        repair(path, copy=taken)
    assert taken.read_text() == "mine"
    assert path.read_bytes() == before
    first, second = repair(path).copy, repair(path).copy
    assert first != second
    assert Path(first).exists()


def test_repair_refuses_other_files_and_leaves_them_unchanged(path):
    with pytest.raises(StoreError, match=r"people\.links"):
        repair(path)
    path.write_bytes(b"hello" * 1000)
    with pytest.raises(StoreError, match=r"people\.links"):
        repair(path)
    assert path.read_bytes() == b"hello" * 1000


def test_repair_copies_the_file_and_its_log(path, tmp_path):
    with new(path) as store:
        store.add_many(X[:20])
        before = state_of(store)
        for name in ("people.links", "people.links-wal"):
            (tmp_path / name.replace("people", "killed")).write_bytes(
                (tmp_path / name).read_bytes()
            )
    killed = tmp_path / "killed.links"
    log = killed.with_name("killed.links-wal").read_bytes()
    repaired = repair(killed)
    copied = Path(repaired.copy)
    assert copied.with_name(copied.name + "-wal").read_bytes() == log
    with Store.open(killed) as store:
        assert state_of(store) == before
    with Store.open(repaired.copy) as store:
        assert state_of(store) == before


# Backup.


def test_a_backup_is_an_independent_store(path, tmp_path):
    copy = tmp_path / "copy.links"
    shadow = filled(path)
    with Store.open(path, threads=1) as store:
        store.backup(copy)
        with Store.open(copy, threads=1) as other:  # while the first is still open
            assert state_of(other) == state_of(store) == shadow.states[25]
            other.verify()
            for number in range(25, 30):
                shadow.until(number + 1)
                assert shadow.do(other, number) == shadow.answers[number]
        assert state_of(store) == shadow.states[25]


@pytest.mark.parametrize("seed", range(2))
def test_a_backup_during_writes_holds_one_of_the_commits(path, tmp_path, seed):
    links = Links.from_thresholds(THRESHOLDS, threads=1)
    hashes, done = [links.state_hash()], threading.Event()
    rng = np.random.default_rng(seed)
    batches = [vectors(rng, 50) for _ in range(60)]
    for rows in batches:
        links.add_many(rows)
        hashes.append(links.state_hash())

    def write():
        for rows in batches:
            store.add_many(rows)
        done.set()

    with new(path) as store:
        writer = threading.Thread(target=write)
        writer.start()
        copies = []
        while not done.is_set() or not copies:
            least = store.journal.n_operations
            copies.append((tmp_path / f"{len(copies)}.links", least))
            store.backup(copies[-1][0])
        writer.join()
        assert store.state_hash() == hashes[-1]
    for copy, least in copies[:8]:
        with Store.open(copy, threads=1) as other:
            assert other.journal.n_operations >= least
            assert other.state_hash() == hashes[other.journal.n_operations]
            other.verify()


def test_a_backup_never_overwrites_and_leaves_nothing_when_it_fails(path, tmp_path):
    filled(path)
    taken = tmp_path / "taken.links"
    taken.write_text("mine")
    with Store.open(path) as store:
        before = state_of(store)
        for target in (taken, path, tmp_path, tmp_path / "nowhere" / "copy.links"):
            with pytest.raises((StoreError, ValueError)):
                store.backup(target)
        assert state_of(store) == before
        store.add_many(X)  # and it goes on
    assert taken.read_text() == "mine"
    assert {file.name for file in tmp_path.iterdir() if ".lock" not in file.name} == {
        "people.links",
        "taken.links",
    }


def lacks_memory_once(monkeypatch, name, at):
    """Let one call of a function of `os` fail, the one with this number."""
    function, calls = getattr(os, name), iter(range(1000))

    def call(*arguments, **options):
        if next(calls) == at:
            raise MemoryError
        return function(*arguments, **options)

    monkeypatch.setattr(os, name, call)


def files_beside(path):
    return {file.name for file in path.parent.iterdir()} - {path.name + ".lock"}


@pytest.mark.parametrize("name", ["fstat", "link"])
def test_a_backup_that_lacks_memory_before_the_renaming_leaves_no_file(path, monkeypatch, name):
    with new(path) as store:
        store.add_many(X)
        before = files_beside(path)
        lacks_memory_once(monkeypatch, name, 0)
        with pytest.raises(MemoryError):
            store.backup(path.with_name("copy.links"))
        assert files_beside(path) == before


@pytest.mark.parametrize(("name", "at"), [("fsync", 1), ("unlink", 0), ("unlink", 2)])
def test_a_backup_that_lacks_memory_once_after_the_renaming_succeeds(path, monkeypatch, name, at):
    with new(path) as store:
        store.add_many(X)
        before = files_beside(path)
        lacks_memory_once(monkeypatch, name, at)
        store.backup(path.with_name("copy.links"))
        assert files_beside(path) == before | {"copy.links"}
    with Store.open(path.with_name("copy.links")) as copy:
        assert copy.verify().operations == 1


class Named:
    """An object with a path, as `os.PathLike` says."""

    def __init__(self, named):
        self.named = named

    def __fspath__(self):
        return self.named


@pytest.mark.parametrize("kind", [str, Path, Named])
def test_a_path_that_the_system_refuses_for_lack_of_memory_raises_memory_error(
    path, monkeypatch, kind
):
    target, fspath = kind(str(path.with_name("copy.links"))), os.fspath

    def refuse(given):
        if given is target:
            raise TypeError("expected str, bytes or os.PathLike object")  # as CPython says then
        return fspath(given)

    with new(path) as store:
        monkeypatch.setattr(os, "fspath", refuse)
        with pytest.raises(MemoryError):
            store.backup(target)


@pytest.mark.parametrize("wrong", [3, b"copy.links", Named(3), Named(b"copy.links")])
def test_what_is_no_path_of_text_is_a_wrong_argument(path, wrong):
    with new(path) as store, pytest.raises(ArgumentError, match="path="):
        store.backup(wrong)


def test_a_reader_can_make_a_backup(path, tmp_path):
    shadow = filled(path)
    with Store.open(path, read_only=True) as store:
        store.backup(tmp_path / "copy.links")
    with Store.open(tmp_path / "copy.links") as store:
        assert state_of(store) == shadow.states[25]


def test_info_describes_the_store(path):
    with new(path, min_size=2) as store:
        store.add_many(X[:20])
        found = store.info()
        assert str(path) == str(found["path"])
        assert found["bytes"] > 0
        assert found["format"] == 2
        text = repr(found)
        assert "0.75" in text
        assert "min_size" in text
        json.dumps(found)
