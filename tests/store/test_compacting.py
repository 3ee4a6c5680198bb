"""Compacting changes no answer; what lies before it can no longer be undone."""

from __future__ import annotations

import contextlib
import dataclasses

import numpy as np
import pytest

from linkstream.errors import IdempotencyError, UndoError
from linkstream.store import Store
from store.operations import VERBS, Shadow, new, state_of, vectors

X = vectors(np.random.default_rng(0), 60)


def without_lost_names(event, store):
    """An event as it is told after compacting, which blanks names that nobody bears."""
    lost = getattr(event, "name", None) not in (None, *(each.name for each in store.clusters()))
    return dataclasses.replace(event, name="") if lost else event


@pytest.mark.parametrize("seed", range(3))
def test_compacting_changes_no_answer(path, seed):
    verbs = VERBS | {"undo": 0, "undo_to": 0}
    shadow = Shadow(seed, verbs=verbs, sizes=(1, 7, 20))
    store = new(path)
    for number in range(50):
        assert shadow.do(store, number) == shadow.until(number + 1).answers[number]
        if number % 9 == 8:
            events = store.events()
            store.compact()
            assert state_of(store) == shadow.states[number + 1]
            assert store.events() == [without_lost_names(event, store) for event in events]
            assert store.clusters() == shadow.links.clusters()
        if number % 17 == 16:
            store.compact()
            store.close()
            store = Store.open(path, threads=1)
            assert state_of(store) == shadow.states[number + 1]
    store.verify()
    store.close()


def test_only_changes_after_a_compaction_can_be_undone(path):
    with new(path) as store:
        store.add_many(X[:10])
        store.remove(3)
        store.compact()
        before = state_of(store)
        for _ in range(2):
            with pytest.raises(UndoError):
                store.undo()
        with pytest.raises(UndoError):
            store.undo(to=2)
        assert state_of(store)[0] == before[0]
        store.add(X[10])
        store.name(0, "Ann")
        store.undo()
        store.undo()
        assert state_of(store)[::2] == before[::2]
        with pytest.raises(UndoError):
            store.undo()
    with Store.open(path) as store:
        assert state_of(store)[::2] == before[::2]
        with pytest.raises(UndoError):
            store.undo()
        store.verify()


def test_keys_remain_valid_after_a_compaction(path):
    with new(path) as store:
        kept = store.add_many(X[:5], idempotency_key="kept").tolist()
        partly = store.add_many(X[5:10], payloads=list("abcde"), idempotency_key="partly").tolist()
        alone = store.add(X[10], idempotency_key="gone")
        store.remove(7)
        store.remove(10)
        store.compact()
    for _ in range(2):
        with Store.open(path) as store:
            before = state_of(store)
            assert store.add_many(X[:5], idempotency_key="kept").tolist() == kept
            for call, right in (
                (
                    lambda: store.add_many(
                        X[5:10], payloads=list("abcde"), idempotency_key="partly"
                    ).tolist(),
                    partly,
                ),
                (lambda: store.add(X[10], idempotency_key="gone"), alone),
            ):
                # What it said may no longer be there to compare; it must not count again.
                with contextlib.suppress(IdempotencyError):
                    assert call() == right
            for other in (X[1:6], X[20:25]):
                with pytest.raises(IdempotencyError):
                    store.add_many(other, idempotency_key="kept")
            assert state_of(store) == before


def test_compacting_an_empty_store_or_twice_is_harmless(path):
    with new(path) as store:
        store.compact()
        store.compact()
        store.add_many(X[:10])
        store.remove(2)
        before = state_of(store)
        for _ in range(3):
            store.compact()
            assert state_of(store) == before
        store.verify()
    with Store.open(path) as store:
        assert state_of(store) == before


def test_compacting_makes_the_file_smaller(path):
    with new(path) as store:
        store.add_many(np.random.default_rng(0).standard_normal((400, 2_000)))
        store.handle.maintenance.write_snapshot()  # which holds all clusters
        for cluster in [view.id for view in store.clusters()][:300]:
            store.forget(cluster)
        size = path.stat().st_size + path.with_name("people.links-wal").stat().st_size
        store.compact()
        after = sum(
            file.stat().st_size for file in path.parent.iterdir() if "-shm" not in file.name
        )
        assert after < size / 2
