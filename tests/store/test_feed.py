"""Feeding: the same as adding one batch after the other, while the last is still being written."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from linkstream import Links
from linkstream.errors import StoreError, VectorError
from linkstream.store import Store
from store.child import batch
from store.internals import AHEAD, EarlyMaintenance, in_order
from store.operations import THRESHOLDS, new, state_of, vectors

X = vectors(np.random.default_rng(0), 240)


@pytest.fixture(autouse=True)
def _early():
    with EarlyMaintenance(20):
        yield


@pytest.mark.parametrize("sizes", [(1,), (5,), (1, 7, 40)])
def test_feed_gives_the_same_ids_as_add_many(path, tmp_path, sizes):
    batches = [batch(3, i, sizes) for i in range(12)]
    with new(path) as store, new(tmp_path / "other.links") as other:
        fed = [ids.tolist() for ids in store.feed(batches)]
        assert fed == [other.add_many(rows).tolist() for rows in batches]
        assert state_of(store) == state_of(other)
        assert [op.verb for op in store.journal.operations()] == ["add_many"] * 12
        before = state_of(store)
    with Store.open(path) as store:
        assert state_of(store) == before


def test_feed_reads_only_a_few_batches_ahead(path):
    asked = []

    def stream():
        for i in range(40):
            asked.append(i)
            yield batch(3, i, (4,))

    with new(path) as store:
        fed = store.feed(stream())
        assert len(asked) <= 1
        for i, _ in enumerate(fed):
            assert len(asked) <= i + 1 + AHEAD
            assert store.n_vectors >= 4 * (i + 1)
        assert store.n_vectors == 160


def test_feed_releases_answered_batches(path):
    rows = batch(3, 0, (4_000,))
    taken = []
    tracemalloc.start()
    try:
        with new(path, track_vectors=False) as store:
            fed = store.feed(rows.copy() for _ in range(60))
            taken.extend(tracemalloc.get_traced_memory()[0] for _ in fed)
    finally:
        tracemalloc.stop()
    assert max(taken[30:]) < max(taken[:30]) + 15 * rows.nbytes


def test_a_feed_that_is_abandoned_leaves_complete_batches(path):
    with new(path) as store:
        for _ in store.feed(batch(3, i, (4,)) for i in range(40)):
            if store.n_vectors >= 20:
                break
        n = store.n_vectors
        assert n % 4 == 0
        store.add_many(X[:3])
        assert store.n_vectors >= n + 3
        before = state_of(store)
    with Store.open(path) as store:
        assert state_of(store) == before
        store.verify()


def test_a_bad_batch_is_refused_after_the_batches_before_it(path):
    batches = [X[:4], X[4:8], np.full((2, 8), np.nan), X[8:12]]
    with new(path) as store:
        ids = []
        with pytest.raises(VectorError):
            ids.extend(store.feed(batches))
        assert len(ids) == 2
        assert store.n_vectors == 8
        store.add_many(X[8:12])
        links = Links.from_thresholds(THRESHOLDS)
        links.add_many(X[:12])
        assert store.state_hash() == links.state_hash()


def test_an_error_of_the_iterator_is_raised_and_nothing_is_lost(path):
    def stream():
        yield X[:4]
        yield X[4:8]
        raise KeyError("the caller's own")

    with new(path) as store:
        ids = []
        with pytest.raises(KeyError):
            ids.extend(store.feed(stream()))
        assert store.n_vectors == 8
        assert len(ids) == 2
        store.verify()


def test_other_threads_can_write_during_a_feed(path):
    with new(path) as store:
        for i, _ in enumerate(store.feed(batch(3, i, (4,)) for i in range(20))):
            store.add(X[i])
        links, _ = in_order(store)
        assert store.n_vectors == 100
        assert store.state_hash() == links.state_hash()


def test_a_store_can_be_closed_during_a_feed(path):
    with new(path) as store:
        fed = store.feed(batch(3, i, (4,)) for i in range(40))
        next(fed)
        next(fed)
        store.close()
        with pytest.raises(StoreError):
            list(fed)
    with Store.open(path) as store:
        assert store.n_vectors % 4 == 0
        assert store.n_vectors >= 8
        store.verify()
