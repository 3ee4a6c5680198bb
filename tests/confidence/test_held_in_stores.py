"""A vector that is held is there: it has its number, key, payload and time in a store."""

from __future__ import annotations

import json

import numpy as np
import pytest

from confidence.sure import model_for
from linkstream import Links, Thresholds
from linkstream.errors import KeyTakenError, RemovedError, UnknownIdError
from linkstream.io import export, export_lines
from linkstream.store import Store
from streams import lobes

STREAM = lobes(np.random.default_rng(0), 700)
X = np.float32(STREAM.vectors)
MODEL, THRESHOLDS = model_for(STREAM.thresholds), Thresholds(*STREAM.thresholds)
N, SURE = 200, 0.8


def fill(store, n=N):
    """Add vectors to a store, and hold the unsure ones after the first."""
    own = {
        "payloads": [{"file": f"{i}.jpg", "text": f"word{i}"} for i in range(n)],
        "ids": [f"k{i}" for i in range(n)],
        "at": [1e9 + i for i in range(n)],
    }
    store.add_many(X[:1], **{name: column[:1] for name, column in own.items()})
    store.accept(SURE)
    store.add_many(X[1:n], **{name: column[1:] for name, column in own.items()})
    return [each.vector for each in store.held(limit=n)]


def opened(path, **options):
    return Store.open(path, thresholds=THRESHOLDS, confidence=MODEL, **options)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "people.links"


# Compaction


@pytest.mark.parametrize("gone", [(), (0,), "held"])
def test_compacting_keeps_the_vectors_that_are_held(path, gone):
    with opened(path, search=True) as store:
        waiting = fill(store)
        assert len(waiting) > 5
        removed = waiting[1:2] if gone == "held" else gone
        for vector in removed:
            store.remove(vector)
        left = [vector for vector in waiting if vector not in removed]
        before, told = store.vectors(left), store.held(limit=N)
        store.compact()
        assert np.array_equal(store.vectors(left), before)
        assert store.held(limit=N) == told
    with Store.open(path) as store:
        store.verify()
        assert store.held(limit=N) == told
        assert store.payloads(left) == [{"file": f"{i}.jpg", "text": f"word{i}"} for i in left]
        assert store.keys(left) == [f"k{i}" for i in left]
        assert store.assign(left[0], 0).cluster == 0
        store.add_many(X[N : N + 300])
        store.accept()
        assert store.held() == []
        store.verify()


def test_compacting_erases_a_held_vector_that_was_removed(path):
    with opened(path) as store:
        vector = fill(store)[0]
        store.remove(vector)
        store.compact()
    for file in path.parent.iterdir():
        content = file.read_bytes()
        assert X[vector].tobytes() not in content
        assert f'"{vector}.jpg"'.encode() not in content


def test_a_store_with_held_vectors_goes_on_after_compacting_as_without(path):
    with opened(path) as store, opened(path.with_name("other.links")) as other:
        fill(store)
        fill(other)
        store.compact()
        for each in (store, other):
            each.add_many(X[N : N + 400])
            each.accept(0.7)
        assert store.held(limit=N) == other.held(limit=N)
        assert (store.labels() == other.labels()).all()


# Keys, payloads, times


def test_the_key_of_a_held_vector_is_taken(path):
    with opened(path) as store:
        vector = fill(store)[0]
        with pytest.raises(KeyTakenError, match=f"of vector {vector}"):
            store.add(X[N], id=f"k{vector}")
        store.assign(vector, 0)
        assert store.number(f"k{vector}") == vector
        with pytest.raises(KeyTakenError):
            store.add(X[N], id=f"k{vector}")
        assert store.n_vectors == N


def test_a_held_vector_that_is_removed_or_undone_frees_its_key(path):
    with opened(path) as store:
        vector = fill(store)[0]
        store.remove(f"k{vector}")
        with pytest.raises(UnknownIdError):
            store.number(f"k{vector}")
        assert store.add(X[vector], id=f"k{vector}").sequence == N
        store.undo()
        store.undo()
        assert store.number(f"k{vector}") == vector
        store.undo(to=2)
        assert store.numbers([]).tolist() == []
        with pytest.raises(UnknownIdError):
            store.number(f"k{vector}")


def test_a_held_vector_is_looked_at_by_number_and_by_key(path):
    with opened(path) as store:
        vector = fill(store)[0]
        for name in (vector, f"k{vector}"):
            assert store.payloads([name]) == [{"file": f"{vector}.jpg", "text": f"word{vector}"}]
            assert store.number(name) == vector
            assert store.keys([name]) == [f"k{vector}"]
            assert store.time(name).timestamp() == 1e9 + vector
            assert np.array_equal(store.vectors([name])[0], X[vector])
        assert store.between(1e9 + vector, 1e9 + vector + 1).tolist() == [vector]


def test_a_held_vector_is_assigned_and_removed_by_key(path):
    with opened(path) as store:
        one, two, three, four = fill(store)[:4]
        assert store.assign(f"k{one}", 0).cluster == 0
        store.remove(f"k{two}")
        store.remove(np.int64(three))
        waiting = [each.vector for each in store.held(limit=N)]
        assert not {one, two, three} & set(waiting)
        with pytest.raises(RemovedError, match="which is held"):
            store.move(f"k{four}", 0)


@pytest.mark.parametrize("other", ["held", "in a cluster"])
def test_held_vectors_are_removed_together_with_others_in_one_step(path, other):
    with opened(path) as store:
        waiting = fill(store)
        both = [waiting[0], waiting[1] if other == "held" else 0]
        before = store.state_hash()
        store.remove([f"k{vector}" for vector in both])
        assert not set(both) & {each.vector for each in store.held(limit=N)}
        assert (store.labels()[both] == -1).all()
        after = store.state_hash()
        store.undo()
        assert store.state_hash() == before
        store.redo()
        assert store.state_hash() == after
        store.verify()
    with Store.open(path) as store:
        store.verify()
        assert store.state_hash() == after


@pytest.mark.parametrize("opened_anew", [False, True])
def test_a_removal_after_that_of_several_held_vectors_is_undone_alone(path, opened_anew):
    store = opened(path)
    one, two, three, *_ = waiting = fill(store)
    store.remove([one, two])
    store.remove(three)
    if opened_anew:
        store.close()
        store = Store.open(path)
    store.undo()
    assert {one, two, three} & {each.vector for each in store.held(limit=N)} == {three}
    store.undo()
    assert [each.vector for each in store.held(limit=N)] == waiting
    store.verify()
    store.close()


# Tables, search, changes


def test_held_shows_key_and_payload_in_a_store(path):
    with opened(path) as store:
        waiting = fill(store)
        for each in store.held(limit=N):
            assert (each.id, each.payload["file"]) == (f"k{each.vector}", f"{each.vector}.jpg")
            assert each.to_dict()["id"] == each.id
        assert [each.vector for each in store.held(limit=N)] == waiting
    links = Links.from_thresholds(THRESHOLDS, confidence=MODEL)
    links.add(X[0])
    links.accept(SURE)
    links.add_many(X[1:N])
    assert {(each.id, each.payload) for each in links.held(limit=N)} == {(None, None)}


@pytest.mark.parametrize("form", ["jsonl", "parquet", "npz", "csv"])
def test_tables_have_a_row_for_each_held_vector(path, form):
    with opened(path) as store:
        waiting = fill(store)
        store.remove(waiting[0])
        frame = store.to_frame("numpy")
        target = path.with_name(f"table.{form}")
        export(store, target)
        rows = [json.loads(line) for line in export_lines(store)]
    left = sorted(set(range(N)) - {waiting[0]})
    assert frame["vector"].tolist() == [row["vector"] for row in rows] == left
    assert np.flatnonzero(frame["held"]).size == len(waiting) - 1
    assert (frame["cluster"] < 0).tolist() == frame["held"].tolist()
    one = rows[left.index(waiting[1])]
    assert (one["cluster"], one["name"], one["held"]) == (-1, None, True)
    assert (one["id"], one["payload"]["file"]) == (f"k{waiting[1]}", f"{waiting[1]}.jpg")
    assert target.stat().st_size


def test_a_search_finds_held_vectors(path):
    with opened(path, search=True) as store:
        vector, other, *_ = fill(store)
        (hit,) = store.search(f"word{vector}").hits
        assert (hit.vector, hit.cluster, hit.payload["file"]) == (vector, -1, f"{vector}.jpg")
        assert store.search(f"word{vector}", cluster=0).hits == ()
        store.remove(other)
        assert store.search(f"word{other}").hits == ()
        store.compact()
        assert [hit.vector for hit in store.search(f"word{vector}").hits] == [vector]


def test_changes_count_held_vectors(path):
    with opened(path) as store:
        one, two, *_ = waiting = fill(store)
        start, end, labels = store.changes(0), store.n_events, store.labels()
        assert (len(start.added), len(start.removed), len(start.moved)) == (N, 0, 0)
        assert start.vectors[start.after == -3].tolist() == waiting[::-1]
        assert (start.apply([]) == labels).all()
        store.assign(one, 0)
        store.remove(two)
        found = store.changes(end)
        assert (found.moved.tolist(), found.removed.tolist()) == ([one], [two])
        assert found.added.tolist() == []
        assert (found.apply(labels) == store.labels()).all()
        store.undo()
        store.undo()
        assert store.changes(end).vectors.tolist() == []
        store.redo()
        store.redo()
        assert store.changes(end).counts() == found.counts()
        store.undo(to=end)
        store.add_many(X[N : N + 300])
        later = store.changes(end)
        assert len(later.added) == 300
        assert (later.apply(labels) == store.labels()).all()


def test_changes_of_a_snapshot_without_history_know_what_was_held():
    links = Links.from_thresholds(THRESHOLDS, confidence=MODEL)
    links.add(X[0])
    links.accept(SURE)
    links.add_many(X[1:N])
    again = Links.from_bytes(links.to_bytes(history=False))
    since, labels = again.n_events, again.labels()
    again.remove(again.held()[0].vector)
    again.assign(again.held()[0].vector, 0)
    found = again.changes(since)
    assert (len(found.removed), len(found.moved), len(found.added)) == (1, 1, 0)
    assert (found.apply(labels) == again.labels()).all()
