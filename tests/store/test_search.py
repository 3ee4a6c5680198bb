"""Search in payloads: it finds what is there, nothing else, and is never trusted."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import time

import numpy as np
import pytest

from linkstream.errors import (
    ArgumentError,
    DamagedStoreError,
    LinkstreamError,
    NotTrackedError,
    RemovedError,
    StoreError,
)
from linkstream.store import Store, repair, search_index, searching
from store.operations import do, make_operation, new, vectors
from store.test_erasure import assert_erased, found
from store.test_words import HOSTILE

X = vectors(np.random.default_rng(0), 60)
CARS = [{"file": f"{i}.jpg", "text": f"car number {i}", "even": i % 2 == 0} for i in range(60)]


@pytest.fixture
def cars(path):
    with new(path, search=True) as store:
        for start in range(0, 60, 20):
            store.add_many(X[start : start + 20], payloads=CARS[start : start + 20])
        yield store


def numbers(store, *words, **options):
    return [hit.vector for hit in store.search(*words, **options).hits]


def by_reading(store, word):
    """Vectors whose payload has a word, found without the index, newest first."""
    live = np.flatnonzero(store.labels() >= 0).tolist()
    payloads = store.payloads(live)
    texts = [str(list(p.values()) if isinstance(p, dict) else p).casefold() for p in payloads]
    some = zip(live, payloads, texts, strict=True)
    return [n for n, p, text in some if not isinstance(p, int) and word in text][::-1]


# What is found


def test_words_and_fields_find_vectors_with_cluster_and_payload_newest_first(cars):
    found = cars.search("CAR", where={"even": True}, limit=3)
    assert [hit.vector for hit in found.hits] == [58, 56, 54]
    labels = cars.labels()
    for hit in found.hits:
        assert (hit.cluster, hit.payload) == (labels[hit.vector], CARS[hit.vector])
        assert hit.rank == pytest.approx(1 / 5, abs=1e-6)
    assert numbers(cars, where={"file": "7.jpg"}) == [7]
    assert numbers(cars, '"number 7"', where={"file": "8.jpg"}) == []
    assert found.to_dict()["hits"][0]["payload"] == CARS[58]


def test_pages_by_before_and_by_offset_have_each_hit_once(cars):
    whole = numbers(cars, "car", limit=100)
    assert whole == list(range(59, -1, -1))
    pages, before = [], None
    while True:
        page = cars.search("car", limit=7, before=before)
        pages += [hit.vector for hit in page.hits]
        before = page.next
        if before is None:
            break
    assert pages == whole
    by_offset = [
        n for first in range(0, 60, 7) for n in numbers(cars, "car", limit=7, offset=first)
    ]
    assert by_offset == whole
    assert numbers(cars, "car", before=5) == [4, 3, 2, 1, 0]
    assert numbers(cars, "car", before=0) == []
    assert numbers(cars, "car", before=10**9, limit=1) == [59]


def test_a_cluster_limits_a_search_also_by_an_id_that_it_had(cars):
    a, b = np.unique(cars.labels())[:2].tolist()
    only = np.flatnonzero(cars.labels() == a)[::-1].tolist()
    assert numbers(cars, "car", cluster=a, limit=100) == only
    cars.same(a, b, of="clusters")
    both = np.flatnonzero(cars.labels() == cars.resolve(b))[::-1].tolist()
    assert numbers(cars, "car", cluster=b, limit=100) == both
    cars.forget(a)
    with pytest.raises(RemovedError):
        cars.search("car", cluster=b)


def test_the_best_hits_are_those_in_which_the_words_are_most_of_the_payload(path):
    texts = ["red", "a red car and a blue car", "red car", "blue", "red red green"]
    with new(path, search=True) as store:
        store.add_many(X[:5], payloads=texts)
        assert numbers(store, "red") == [4, 2, 1, 0]
        assert numbers(store, "red", order="best") == [0, 4, 2, 1]
        assert numbers(store, "red", order="best", limit=2, offset=1) == [4, 2]


def test_removed_and_undone_vectors_are_not_found_and_come_back_with_redo(cars):
    cars.remove(58)
    assert numbers(cars, "car", limit=3) == [59, 57, 56]
    cars.undo()
    assert numbers(cars, "car", limit=3) == [59, 58, 57]
    cars.undo()
    assert numbers(cars, "car", limit=2) == [58, 57]
    cars.redo()
    assert numbers(cars, "car", limit=2) == [59, 58]
    cars.undo()
    cars.add(X[0], payload="another thing")
    assert numbers(cars, "car", limit=1) == [58]
    assert numbers(cars, "thing") == [59]


def test_vectors_of_weight_zero_have_no_number_and_are_not_found(path):
    with new(path, search=True) as store:
        weights = [0.0, 1.0, 0.0, 0.5, 1.0]
        store.add_many(X[:5], weight=weights, payloads=[f"word w{i}" for i in range(5)])
        assert [(h.vector, h.payload) for h in store.search("word").hits] == [
            (2, "word w4"),
            (1, "word w3"),
            (0, "word w1"),
        ]
        assert numbers(store, "w0") == numbers(store, "w2") == []
        assert numbers(store, "word", before=2) == [1, 0]


def test_many_undone_hits_are_passed_over(path, monkeypatch):
    monkeypatch.setattr(searching, "_AT_ONCE", 4)
    monkeypatch.setattr(searching, "LOOKED_AT", 12)
    with new(path, search=True) as store:
        store.add_many(X[:3], payloads=["car"] * 3)
        for _ in range(5):
            before = store.n_events
            store.add_many(X[:20], payloads=["car"] * 20)
            store.undo(to=before)
        assert store.n_vectors == 3
        store.add_many(X[:2], payloads=["car"] * 2)
        assert numbers(store, "car") == [4, 3, 2, 1, 0]


def test_one_search_looks_at_a_bounded_number_of_rows_and_says_how_to_go_on(cars, monkeypatch):
    monkeypatch.setattr(searching, "_AT_ONCE", 4)
    monkeypatch.setattr(searching, "LOOKED_AT", 12)
    cluster = int(cars.labels()[0])
    only = np.flatnonzero(cars.labels() == cluster)[::-1].tolist()
    pages, before, turns = [], None, 0
    while turns == 0 or before is not None:
        page = cars.search("car", cluster=cluster, before=before)
        pages += [hit.vector for hit in page.hits]
        before, turns = page.next, turns + 1
    assert pages == only
    assert turns == 5


@pytest.mark.parametrize("seed", range(4))
def test_a_search_finds_what_reading_all_payloads_finds(path, seed):
    with new(path, search=seed != 0) as store:
        for number in range(60):
            do(store, make_operation(seed, number, store, sizes=(1, 7, 30)))
            if number == 30:
                store.compact()
                store.set_search(True)
        store.verify()
        for word in ("jpg", "text", "dünya"):
            assert numbers(store, word, limit=1000) == by_reading(store, word)
        assert by_reading(store, "text")


# What is refused


@pytest.mark.parametrize("text", HOSTILE)
def test_whatever_is_typed_finds_something_or_is_an_argument_error(cars, text):
    with contextlib.suppress(ArgumentError):
        cars.search(text, where={'"': "*", "file": text[:99].replace("\ud800", "")})
    with contextlib.suppress(ArgumentError):
        cars.search(text)


@pytest.mark.parametrize(
    "options",
    [
        *({"limit": 0}, {"limit": 1001}, {"offset": -1}, {"offset": 10**6}, {"before": -1}),
        *({"order": "rank"}, {"limit": True}, {"cluster": 10**6}, {"cluster": "Ann"}),
    ],
)
def test_wrong_options_are_refused(cars, options):
    with pytest.raises((ArgumentError, TypeError)):
        cars.search("car", **options)


def test_a_store_without_search_says_how_to_get_it(path):
    with new(path) as store:
        store.add_many(X[:20], payloads=CARS[:20])
        with pytest.raises(NotTrackedError, match=r"Store.open\(path, search=True\)"):
            store.search("car")
    with pytest.raises(ArgumentError, match="search True for"):
        Store.open(path, read_only=True, search=True)
    with pytest.raises(ArgumentError):
        Store.open(path, search="yes")


def test_a_sqlite_without_fts5_is_named(path, monkeypatch):
    new(path, search=True).close()
    monkeypatch.setattr(search_index, "is_available", lambda: False)
    with pytest.raises(StoreError, match="FTS5"):
        Store.open(path)
    with Store.open(path, read_only=True) as store, pytest.raises(StoreError, match="FTS5"):
        store.search("car")
    with pytest.raises(StoreError, match="FTS5"):
        new(path.with_name("other.links"), search=True)
    assert not path.with_name("other.links").exists()


# On and off


def test_search_is_switched_on_later_with_progress_and_off_without_a_trace(path, tmp_path):
    with new(path) as store:
        store.add_many(X, payloads=[*CARS[:-1], "ZEBULON car"])
        before, shares = store.state_hash(), []
        store.set_search(True, progress=shares.append)
        assert shares[-1] == 1.0
        assert numbers(store, "car", limit=2) == [59, 58]
        assert store.info()["search"] is True
        assert found(tmp_path, [b"zebulon"])
    with Store.open(path, search=False) as store:
        assert store.info()["search"] is False
        store.verify()
    assert found(tmp_path, [b"ZEBULON"])
    assert found(tmp_path, [b"zebulon"]) == []
    with Store.open(path, search=True) as store:
        assert numbers(store, "car", limit=2) == [59, 58]
        assert store.state_hash() == before
        store.verify()


def test_search_does_not_change_decisions_or_events(path):
    with new(path, search=True) as one, new(path.with_name("two.links")) as other:
        for store in (one, other):
            store.add_many(X, payloads=CARS)
        assert one.state_hash() == other.state_hash()
        assert one.labels().tolist() == other.labels().tolist()


def test_a_backup_and_a_reader_can_search(cars, path):
    cars.backup(path.with_name("copy.links"))
    for each in (path, path.with_name("copy.links")):
        with Store.open(each, read_only=True) as reader:
            assert numbers(reader, "car", limit=2) == [59, 58]
    with Store.open(path, read_only=True) as reader:
        cars.add(X[0], payload="newest car")
        assert numbers(reader, "car", limit=1) == [59]
        reader.refresh()
        assert numbers(reader, "car", limit=1) == [60]


# Erasing


def test_erased_payloads_leave_no_words_in_any_file(path, tmp_path):
    secret = ["zebulon", "quirina", "xanthippe"]
    with new(path, search=True) as store:
        for start in range(0, 30, 10):
            more = [f"common {secret[start // 10]}{i} word" for i in range(10)]
            store.add_many(X[start : start + 10], payloads=more)
        assert found(tmp_path, [b"zebulon", b"quirina"])
        for number in (*range(10), 29):
            store.remove(number)
        while store.n_vectors > 30:
            store.undo()
        store.compact()
        assert numbers(store, "zeb* common") == []
        assert len(numbers(store, "common", limit=100)) == 19
        assert_erased(store, tmp_path, [b"zebulon", b"xanthippe9"])


# Damage


def damaged(path, change):
    """Change the index with SQLite, behind the back of the store."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        change(connection)


def test_verify_finds_an_index_that_has_other_words(path, cars):
    cars.close()
    before = path.read_bytes()
    changes = (
        "INSERT INTO search (rowid, words, fields) VALUES (1, 'extra', '')",
        "INSERT INTO search (search) VALUES ('delete-all')",
        "INSERT INTO search (search, rowid, words, fields) "
        "VALUES ('delete', 4194304, 'car number 0', '')",
        "UPDATE search_idx SET pgno = pgno + 2 WHERE segid = 2",
    )
    for change in changes:
        path.write_bytes(before)
        damaged(path, lambda connection, change=change: connection.execute(change))
        with Store.open(path) as store:
            with contextlib.suppress(DamagedStoreError):
                assert set(numbers(store, "car", limit=100)) <= set(range(60))
            with pytest.raises(DamagedStoreError):
                store.verify()
        repair(path)
        with Store.open(path) as store:
            assert numbers(store, "car", limit=100) == list(range(59, -1, -1))
            store.verify()


def test_an_index_that_is_missing_or_not_described_is_refused(path, cars):
    cars.close()
    damaged(path, lambda connection: connection.execute("DROP TABLE search"))
    with pytest.raises(DamagedStoreError, match="search"):
        Store.open(path)
    repair(path)
    with Store.open(path) as store:
        assert numbers(store, "car", limit=1) == [59]


@pytest.mark.parametrize("n", [40, pytest.param(2000, marks=pytest.mark.long)])
def test_a_flipped_bit_gives_no_wrong_answer_and_verify_finds_it_or_it_is_harmless(path, cars, n):
    cars.close()
    whole, rng = path.read_bytes(), np.random.default_rng(5)
    offsets = np.flatnonzero(np.frombuffer(whole, dtype=np.uint8))
    truth, missed = list(range(59, -1, -1)), 0
    for _ in range(n):
        flipped = bytearray(whole)
        flipped[rng.choice(offsets)] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped)
        for each in path.parent.glob(f"{path.name}-*"):
            each.unlink()
        try:
            with Store.open(path, read_only=True) as store:
                seen = numbers(store, "car", limit=100)
                assert set(seen) <= set(truth)
                missed += seen != truth
                with contextlib.suppress(StoreError):
                    store.verify()
                    assert seen == truth
        except StoreError:
            continue


@pytest.mark.parametrize("moment", range(6))
def test_a_killed_writer_leaves_payloads_and_index_together(path, moment):
    child = os.fork()
    if child == 0:
        with new(path, search=True) as store:
            for start in range(10**6):
                store.add_many(X[:20], payloads=[f"batch b{start} row"] * 20)
        os._exit(0)
    time.sleep(0.2 + 0.07 * moment)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if not path.exists():
        return
    with Store.open(path) as store:
        store.verify()
        assert len(numbers(store, "row", limit=1000)) == min(store.n_vectors, 1000)


def test_a_failed_switch_changes_nothing(path):
    with new(path) as store:
        store.add_many(X, payloads=CARS)

        def stop(share):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            store.set_search(True, progress=stop)
        assert store.info()["search"] is False
        with contextlib.suppress(LinkstreamError):
            store.search("car")
        store.add(X[0], payload="car")
        store.verify()
        store.set_search(True)
        assert numbers(store, "car", limit=1) == [60]
