"""A vector's own key and its own time: stored with it, found by it, and gone with it."""

from __future__ import annotations

import os
import sqlite3
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest

from linkstream.errors import (
    ArgumentError,
    DamagedStoreError,
    IdempotencyError,
    KeyTakenError,
    RemovedError,
    UnknownIdError,
)
from linkstream.io import export, import_store
from linkstream.store import Batch, Store, repair
from linkstream.store.own_columns import reference, to_text
from linkstream.store.value_index import ValueIndex
from store.internals import EarlyMaintenance
from store.operations import THRESHOLDS, state_of, vectors

X = vectors(np.random.default_rng(0), 60)
NOON = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)


@pytest.fixture
def store(path):
    with Store.open(path, thresholds=THRESHOLDS, threads=1) as store:
        yield store


def refused(store, call, error=ArgumentError, match=None):
    """Check that a call raises and changes nothing."""
    before = state_of(store), store.journal.n_operations
    with pytest.raises(error, match=match) as caught:
        call()
    assert (state_of(store), store.journal.n_operations) == before
    return caught.value


# Keys


def test_a_vector_is_found_by_its_own_key_also_after_opening_again(path, store):
    store.add(X[0], id="ticket-1")
    store.add_many(X[1:4], ids=["a/b.jpg", None, "Dünya 🙂"])
    store.add_group(X[4:6], ids=["left", "right"])
    store.enrol("Ann", X[6:8], ids=["ann-1", "ann-2"])
    right = ["ticket-1", "a/b.jpg", None, "Dünya 🙂", "left", "right", "ann-1", "ann-2"]
    for opened in (store, Store.open(path, read_only=True)):
        assert opened.keys(range(8)) == right
        assert opened.numbers([key for key in right if key]).tolist() == [0, 1, 3, 4, 5, 6, 7]
        assert opened.number("right") == 5
        assert opened.key(2) is None
    store.close()
    with Store.open(path) as again:
        assert again.keys(range(8)) == right
        assert again.number("Dünya 🙂") == 3
        again.verify()


BAD_KEYS = ["", "x" * 513, "é" * 257, "a\nb", "a\rb", "a\tb", "\x00", "\x85", "\u2028", "\ud800"]


@pytest.mark.parametrize("key", [*BAD_KEYS, 17, b"x", 1.5, ["a"]], ids=lambda key: repr(key)[:12])
def test_a_key_that_is_no_short_line_of_text_is_refused_with_its_row(store, key):
    refused(store, lambda: store.add(X[0], id=key), match="1 to 512 bytes")
    refused(store, lambda: store.add_many(X[:3], ids=["a", "b", key]), match="row 2 has")


def test_keys_of_other_counts_are_refused(store):
    for ids in (["a"], "abc", {"a": 1, "b": 2, "c": 3}, 5):
        refused(store, lambda ids=ids: store.add_many(X[:3], ids=ids), match="3 vectors")


def test_a_key_that_is_there_is_refused_with_row_and_vector_before_any_change(store):
    store.add_many(X[:3], ids=["a", "b", "c"])
    for call in (
        lambda: store.add_many(X[3:6], ids=["d", None, "b"]),
        lambda: store.add_group(X[3:6], ids=["d", None, "b"]),
        lambda: store.enrol("Ann", X[3:6], ids=["d", None, "b"]),
        lambda: list(store.feed([Batch(X[3:6], ids=["d", None, "b"])])),
    ):
        error = refused(store, call, KeyTakenError, "of vector 1")
        assert (error.row, error.vector) == (2, 1)
    error = refused(store, lambda: store.add_many(X[3:6], ids=["d", "e", "d"]), KeyTakenError)
    assert (error.row, error.vector) == (2, None)
    store.add_many(X[3:6], ids=["d", "e", "f"])


def test_batches_that_wait_together_do_not_share_a_key(path):
    batches = [Batch(X[i : i + 2], ids=[f"k{i % 8}", None]) for i in range(0, 20, 2)]
    with Store.open(path, thresholds=THRESHOLDS, threads=1) as store:
        answers = store.feed(batches)
        with pytest.raises(KeyTakenError, match="of vector 0"):
            list(answers)
        assert store.n_vectors == 8
        assert store.numbers(["k0", "k2", "k4", "k6"]).tolist() == [0, 2, 4, 6]


def test_a_removed_or_undone_vector_frees_its_key_and_takes_it_back_with_undo_and_redo(store):
    store.add_many(X[:3], ids=["a", "b", "c"])
    store.remove("b")
    with pytest.raises(UnknownIdError, match="no vector has"):
        store.number("b")
    store.add(X[3], id="b")
    assert store.number("b") == 3
    store.undo()
    store.undo()
    assert store.number("b") == 1
    store.redo()
    store.redo()
    assert store.number("b") == 3
    store.undo()
    store.add(X[4], id="e")  # gets the number of the vector that was undone
    assert store.keys([3]) == ["e"]
    assert store.number("e") == 3
    refused(store, lambda: store.number("b"), UnknownIdError)
    store.verify()


def test_a_key_in_the_place_of_a_number_names_a_vector(store):
    store.add_many(X[:30], ids=[f"k{i}" for i in range(30)], payloads=list(range(30)))
    assert store.payloads(["k7", 3, "k0"]) == [7, 3, 0]
    assert np.array_equal(store.vectors(["k7"]), X[7:8])
    labels = store.labels()
    other = int(np.flatnonzero(labels != labels[0])[0])
    store.same("k0", f"k{other}")
    assert store.explain_pair("k0", other) == store.explain_pair(0, f"k{other}")
    assert len(set(store.explain_pair("k0", f"k{other}").clusters)) == 1
    store.undo()
    store.different("k0", other)
    store.undo()
    decision = store.move(f"k{other}", int(labels[0]))
    assert decision.cluster == store.labels()[other] == labels[0]
    store.remove("k7")
    assert store.labels()[7] == -1
    arguments = [each.arguments for each in store.journal.operations(1)]
    assert arguments[0] == {"a": 0, "b": other, "of": "vectors"}
    refused(store, lambda: store.move("k7", 0), UnknownIdError, "no vector has")
    refused(store, lambda: store.same("k0", "k1", of="clusters"), match="Only vectors have keys")
    refused(store, lambda: store.explain_pair("k0", 1, of="subclusters"), match="Only vectors")
    refused(store, lambda: store.move("", 0), match="1 to 512 bytes")
    store.verify()


def test_a_repeated_call_that_names_a_vector_by_key_counts_once(path, store):
    store.add_many(X[:4], ids=list("abcd"), at=NOON, idempotency_key="batch")
    for opened in (store, None):
        opened = opened or Store.open(path)
        first = opened.add_many(X[:4], ids=list("abcd"), at=NOON, idempotency_key="batch")
        assert first.tolist() == store_labels(opened)
        opened.remove("b", idempotency_key="gone")
        opened.remove("b", idempotency_key="gone")
        for ids, at in ((list("abce"), NOON), (list("abcd"), None), (None, NOON)):
            with pytest.raises(IdempotencyError):
                opened.add_many(X[:4], ids=ids, at=at, idempotency_key="batch")
        for other in ("a", 1):
            with pytest.raises(IdempotencyError):
                opened.remove(other, idempotency_key="gone")
        opened.close()


def store_labels(store):
    """Return the IDs that the first call got."""
    return store.journal.answer(next(store.journal.operations())).tolist()


def test_a_row_of_weight_zero_takes_no_key(store):
    store.add_many(X[:3], weight=[1.0, 0.0, 1.0], ids=["a", "b", "c"], at=[1, 2, 3])
    assert store.keys(range(2)) == ["a", "c"]
    assert [to_text(int(t)) for t in store.times(range(2)).astype(int)] == [
        "1970-01-01T00:00:01Z",
        "1970-01-01T00:00:03Z",
    ]
    store.add(X[3], id="b")
    assert store.number("b") == 2


@pytest.mark.parametrize("options", [{"keep_vectors": False}, {"track_vectors": False}])
def test_keys_and_times_are_kept_without_kept_vectors(path, options):
    with Store.open(path, thresholds=THRESHOLDS, threads=1, **options) as store:
        store.add_many(X[:3], ids=["a", "b", None], at=[NOON, None, 0])
        store.compact()
    with Store.open(path) as store:
        assert store.numbers(["a", "b"]).tolist() == [0, 1]
        assert store.time("a") == NOON
        refused_again = pytest.raises(KeyTakenError)
        with refused_again:
            store.add(X[4], id="a")
        store.verify()


def test_a_key_is_found_in_time_that_does_not_grow_with_the_store(path, monkeypatch):
    many = np.tile(X, (70, 1))[:4096]
    with Store.open(path, thresholds=THRESHOLDS, threads=1) as store:
        for start in range(0, 4096, 512):
            ids = [f"key-{i}" for i in range(start, start + 512)]
            store.add_many(many[start : start + 512], ids=ids, at=list(range(start, start + 512)))
        read = []
        lines = store.handle.read(lambda model: model.journal.lines)
        monkeypatch.setattr(
            "linkstream.store.journal.Journal.lines",
            lambda self, *place: read.append(place) or lines(*place),
        )
        assert store.number("key-4000") == 4000
        assert len(read) == 1
        with pytest.raises(UnknownIdError):
            store.number("key-4096")
        assert len(read) == 1


# Times


TIMES = {
    "a datetime": NOON,
    "of another zone": NOON.astimezone(timezone(timedelta(hours=5, minutes=30))),
    "a datetime64": np.datetime64("2026-01-31T12:00"),
    "of nanoseconds": np.datetime64("2026-01-31T12:00:00.000000999"),
    "text": "2026-01-31T12:00:00Z",
    "text with a zone": "2026-01-31 13:00:00.0+01:00",
    "seconds": NOON.timestamp(),
    "whole seconds": int(NOON.timestamp()),
    "a number of numpy": np.int64(NOON.timestamp()),
}


@pytest.mark.parametrize("at", TIMES.values(), ids=TIMES)
def test_a_moment_may_be_given_in_several_ways(store, at):
    store.add(X[0], at=at)
    store.add_many(X[1:3], at=at)
    store.add_many(X[3:5], at=[None, at])
    if isinstance(at, np.generic):
        store.add_many(X[5:7], at=np.array([at, at]))
    assert store.time(0) == store.time(2) == store.time(4) == NOON
    assert store.time(3) is None
    assert store.times([3, 0]).tolist() == [None, NOON.replace(tzinfo=None)]


BAD_TIMES = [
    datetime(2026, 1, 31, 12),
    "2026-01-31T12:00:00",
    "2026-01-31",
    "2026-02-30T00:00:00Z",
    "2026-01-31T25:00:00Z",
    "yesterday",
    "",
    1.7e12,
    float("nan"),
    float("inf"),
    True,
    10**30,
    1e305,
    10**400,
    np.datetime64("12000-01-01"),
    b"x",
    {"a": 1},
]


@pytest.mark.parametrize("at", BAD_TIMES, ids=lambda at: repr(at)[:24])
def test_a_time_without_a_zone_or_out_of_range_is_refused(store, at):
    refused(store, lambda: store.add(X[0], at=at))
    refused(store, lambda: store.add_many(X[:2], at=[0, at]))


def test_times_of_other_counts_are_refused(store):
    for at in ([1, 2], np.array([1.0, 2.0]), np.array(["2026-01-01"] * 2, dtype="datetime64[s]")):
        refused(store, lambda at=at: store.add_many(X[:3], at=at), match="2 times for 3")


def test_the_extreme_moments_come_back(store):
    first = datetime(1, 1, 1, tzinfo=timezone.utc)
    last = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=timezone.utc)
    store.add_many(X[:2], at=[first, last])
    assert (store.time(0), store.time(1)) == (first, last)
    assert [each["time"] for each in store.described([0, 1])] == [
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999999Z",
    ]


def test_vectors_between_two_times_are_those_that_are_there(store):
    store.add_many(X[:6], at=[50, 10, None, 30, 10, 20])
    assert store.between(10, 30).tolist() == [1, 4, 5]
    assert store.between(None, 30).tolist() == [1, 4, 5]
    assert store.between(30).tolist() == [0, 3]
    store.remove(4)
    assert store.between(10, 30).tolist() == [1, 5]
    store.undo()
    assert store.between(10, 30).tolist() == [1, 4, 5]
    store.undo(step=True)
    assert store.between().tolist() == []
    store.add_many(X[:2], at=[60, 10])
    assert store.between(0, 55).tolist() == [1]


# Durable, checked and erased


def filled(store):
    for start in range(0, 40, 10):
        ids = [f"key-{i}" if i % 3 else None for i in range(start, start + 10)]
        at = [NOON + timedelta(minutes=i) if i % 4 else None for i in range(start, start + 10)]
        store.add_many(X[start : start + 10], ids=ids, at=at)
    store.remove("key-7")


def told(store):
    live = np.flatnonzero(store.labels() >= 0)
    keys = [key for key in store.keys(live) if key]
    return store.described(live), store.numbers(keys).tolist(), store.between(NOON).tolist()


def test_keys_and_times_survive_backup_repair_compaction_and_export(path, tmp_path):
    with EarlyMaintenance(2), Store.open(path, thresholds=THRESHOLDS, threads=1) as store:
        filled(store)
        right = told(store)
        store.backup(tmp_path / "copy.links")
        export(store, tmp_path / "files")
    import_store(tmp_path / "files", tmp_path / "imported.links")
    for name in ("copy.links", "imported.links"):
        with Store.open(tmp_path / name) as other:
            assert told(other) == right
            other.verify()
    repair(path)
    with Store.open(path) as store:
        assert told(store) == right
        store.compact()
        assert told(store) == right
        store.verify()
        refused(store, lambda: store.number("key-7"), UnknownIdError)
        store.add(X[50], id="key-7")
    with Store.open(path) as store:
        assert store.number("key-7") == 40
        assert told(store)[0][:39] == right[0]
        store.verify()


def test_an_erased_vector_loses_its_key_and_time_on_the_disk(path, store):
    stamp = datetime(2021, 3, 4, 5, 6, 7, 890_123, tzinfo=timezone.utc)
    store.add_many(X[:4], ids=["keep-me", "erase-me", "me-too", "last"], at=stamp)
    store.remove("erase-me", idempotency_key="r")
    store.undo()
    store.remove("me-too")
    store.forget(int(store.labels()[1]))
    gone = [key for key, n in (("erase-me", 1), ("me-too", 2)) if store.labels()[n] < 0]
    assert gone == ["erase-me", "me-too"]
    store.compact()
    data = b"".join(p.read_bytes() for p in path.parent.iterdir() if p.name.startswith(path.name))
    for key in gone:
        assert key.encode() not in data
    if store.labels().max() < 0:
        assert stamp.timestamp().hex().encode() not in data
    store.verify()


@pytest.mark.parametrize("table", ["vector_keys", "vector_times"])
def test_a_changed_block_is_found(path, table):
    with Store.open(path, thresholds=THRESHOLDS, threads=1) as store:
        filled(store)
    connection = sqlite3.connect(path)
    body = connection.execute(f"SELECT body FROM {table} LIMIT 1").fetchone()[0]
    changed = bytes([body[0] ^ 1]) + body[1:]
    connection.execute(
        f"UPDATE {table} SET body = ? WHERE rowid = (SELECT min(block) FROM {table})", (changed,)
    )
    connection.commit()
    connection.close()
    with Store.open(path) as store, pytest.raises(DamagedStoreError):
        store.verify()


def test_an_index_that_lacks_a_key_is_found(path):
    with Store.open(path, thresholds=THRESHOLDS, threads=1) as store:
        filled(store)
        store.handle.read(lambda model: setattr(model.index, "keys", ValueIndex()))
    with Store.open(path) as store, pytest.raises(DamagedStoreError, match="snapshot"):
        store.verify()


def test_keys_and_times_of_what_was_acknowledged_survive_a_copy_of_the_files(path, tmp_path):
    with Store.open(path, thresholds=THRESHOLDS, threads=1) as store:
        filled(store)
        right = told(store)
        for name in os.listdir(path.parent):
            if name.endswith((".links", "-wal")):
                (tmp_path / f"cut{name.removeprefix(path.stem)}").write_bytes(
                    (path.parent / name).read_bytes()
                )
    with Store.open(tmp_path / "cut.links") as killed:
        assert told(killed) == right
        killed.verify()


def test_a_removed_vector_has_no_key_to_ask_for(store):
    store.add_many(X[:2], ids=["a", "b"])
    store.remove(1)
    for call in (lambda: store.key(1), lambda: store.time(1), lambda: store.number(1)):
        refused(store, call, RemovedError)


# The parts


def test_an_index_by_value_finds_what_a_list_finds():
    rng = np.random.default_rng(1)
    found, values, numbers = ValueIndex(), [], []
    for _ in range(60):
        n = int(rng.integers(0, 40))
        more = rng.integers(-50, 50, size=n)
        found.add(more, np.arange(len(values), len(values) + n))
        values += more.tolist()
        numbers = np.arange(len(values))
        asked = int(rng.integers(-55, 55))
        right = [i for i in numbers.tolist() if values[i] == asked]
        assert found.find(asked) == right[::-1]
        assert found.has(np.array([asked])).tolist() == [bool(right)]
        low, high = sorted(rng.integers(-55, 55, size=2).tolist())
        between = [i for i in numbers.tolist() if low <= values[i] < high]
        assert found.between(low, high).tolist() == between
    assert len(found) == len(values)
    found.add(np.array(values[:9]), np.arange(9))  # again, as after undo and redo
    assert [len(each) for each in found.entries()] == [len(values)] * 2
    found.keep(numbers % 2 == 0)
    assert not (found.entries()[1] % 2).any()


def test_digits_are_a_number_and_any_other_text_a_key():
    assert [reference(text) for text in ("17", "id:17", "t-17", "id:id:1", "-1", "１")] == [
        17,
        "17",
        "t-17",
        "id:1",
        "-1",
        "１",
    ]
