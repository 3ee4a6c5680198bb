"""What is refused: a typed error before any change; neither the state nor the file is touched."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream.errors import (
    ArgumentError,
    LinkstreamError,
    StoreError,
    VectorError,
)
from linkstream.store import Store
from store.operations import DIMENSION, new, state_of, vectors

X = vectors(np.random.default_rng(0), 30)


def files(path):
    """What lies in a store's folder; an empty log and shared memory are what readers leave."""
    beside = [file for file in path.parent.iterdir() if not file.name.endswith("-shm")]
    return {file.name: file.read_bytes() for file in beside if file.stat().st_size}


BAD_ROWS = {
    "NaN": [np.nan] * DIMENSION,
    "infinite": [np.inf] + [0.0] * (DIMENSION - 1),
    "zero": [0.0] * DIMENSION,
    "too large": [1e39] * DIMENSION,
    "another dimension": [1.0] * (DIMENSION + 1),
    "texts": ["a"] * DIMENSION,
    "nothing": [None] * DIMENSION,
    "complex": [1j] * DIMENSION,
}


@pytest.mark.parametrize("row", BAD_ROWS.values(), ids=BAD_ROWS)
def test_a_batch_with_a_bad_vector_is_refused_before_any_change(path, row):
    with new(path) as store:
        store.add_many(X[:5], payloads=list("abcde"))
        before, there = state_of(store), files(path)
        bad = [*X[:2].tolist(), row] if len(row) == DIMENSION else [row]
        for call in (
            lambda: store.add_many(bad),
            lambda: store.add_many(bad, payloads=["x"] * len(bad), idempotency_key="k"),
            lambda: store.add_group(bad),
            lambda: store.enrol("Ann", bad),
            lambda: list(store.feed([bad])),
            lambda: store.add(row),
            lambda: store.predict(bad),
        ):
            with pytest.raises(VectorError):
                call()
        assert state_of(store) == before
        assert files(path) == there
        store.add_many(X[5:])
        before = state_of(store)
    with Store.open(path) as store:
        assert state_of(store) == before
        store.verify()


def test_the_array_of_the_caller_is_not_changed(path):
    rows = X.astype(">f8")[::2]
    rows.flags.writeable = False
    before = rows.copy()
    with new(path) as store:
        store.add_many(rows)
        assert np.array_equal(store.vectors(range(len(rows))), X[::2])
    assert np.array_equal(rows, before)


def test_an_array_that_the_caller_changes_later_is_kept_as_it_was(path):
    rows = X.copy()
    payload = {"a": [1]}
    with new(path) as store:
        store.add_many(rows[:20])
        store.add(rows[20], payload=payload)
        rows[:] = 0.5
        payload["a"].append(2)
        assert np.array_equal(store.vectors(range(21)), X[:21])
        assert store.payloads([20])[0] == {"a": [1]}
    with Store.open(path) as store:
        assert np.array_equal(store.vectors(range(21)), X[:21])
        assert store.payloads([20])[0] == {"a": [1]}


WRONG = {
    "removing an unknown vector": lambda s: s.remove(99),
    "removing no number": lambda s: s.remove("0"),
    "removing half a vector": lambda s: s.remove(0.5),
    "removing a vector twice": lambda s: s.remove([0, 0]),
    "removing a vector and one that is unknown": lambda s: s.remove([0, 99]),
    "naming an unknown cluster": lambda s: s.name(99, "Ann"),
    "an empty name": lambda s: s.name(0, ""),
    "a name of no text": lambda s: s.name(0, 5),
    "claiming by no truth value": lambda s: s.name(0, "Ann", claim="yes"),
    "renaming by no text": lambda s: s.rename(0, b"Ann"),
    "ignoring by no truth value": lambda s: s.ignore(0, 1),
    "same of an unknown vector": lambda s: s.same(0, 99),
    "same of another kind": lambda s: s.same(0, 1, of="faces"),
    "different from itself": lambda s: s.different(1, 1),
    "moving nowhere": lambda s: s.move(0, 99),
    "forgetting an unknown cluster": lambda s: s.forget(99),
    "undoing to nowhere": lambda s: s.undo(to=10**6),
    "undoing to no number": lambda s: s.undo(to="all"),
    "undoing to half an event": lambda s: s.undo(to=1.5),
    "a negative weight": lambda s: s.add(X[5], weight=-1.0),
    "an odd weight": lambda s: s.add(X[5], weight=object()),
    "a weight that is no number": lambda s: s.add(X[5], weight=np.nan),
    "too few weights": lambda s: s.add_many(X[5:8], weight=[1.0, 1.0]),
    "a group of weight 0": lambda s: s.add_group(X[5:8], weight=0.0),
    "a group key of no text": lambda s: s.add_group(X[5:8], group=5),
    "a group of no text": lambda s: s.add(X[5], group=[1]),
    "a group in lone surrogates": lambda s: s.add(X[5], group="\ud800", payload=object()),
    "enrolling nobody": lambda s: s.enrol("", X[:2]),
    "enrolling nothing": lambda s: s.enrol("Ann", []),
    "locked by no truth value": lambda s: s.enrol("Ann", X[:2], locked="no"),
    "one vector for many": lambda s: s.add_many(X[0]),
    "many vectors for one": lambda s: s.add(X),
    "an unknown ID": lambda s: s.resolve(99),
    "the history of an unknown ID": lambda s: s.history(99),
    "an unknown name": lambda s: s.named("Nobody"),
    "no questions": lambda s: s.review_queue(0),
    "events since no number": lambda s: s.events("all"),
    "events since before the start": lambda s: s.events(-1),
    "a block of events since no number": lambda s: list(s.journal.events("all")),
    "operations since no number": lambda s: list(s.journal.operations("all")),
    "an unknown vector": lambda s: s.vectors([99]),
    "a negative vector": lambda s: s.vectors([-1]),
    "half a vector": lambda s: s.vectors([0.5]),
    "the payload of an unknown vector": lambda s: s.payloads([99])[0],
    "the payload of a negative vector": lambda s: s.payloads([-1])[0],
    "the payload of half a vector": lambda s: s.payloads([0.5])[0],
    "payloads of unknown vectors": lambda s: s.payloads([0, 99]),
    "too few payloads": lambda s: s.add_many(X[5:8], payloads=["a"]),
    "too many payloads": lambda s: s.add_group(X[5:8], payloads=list("abcd")),
    "payloads that are none": lambda s: s.add_many(X[5:8], payloads=5),
    "vectors of no list": lambda s: s.vectors(5),
    "payloads of no list": lambda s: s.payloads(None),
    "a backup to what is no path": lambda s: s.backup("a\0b"),
    "a backup over what is there": lambda s: s.backup(s.path),
    "a batch that is none": lambda s: list(s.feed([X[5:8], 5])),
    "what is no stream": lambda s: list(s.feed(5)),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_call_is_refused_before_any_change(path, wrong):
    with new(path) as store:
        store.add_many(X[:5])
        before, there, taken = state_of(store), files(path), store.journal.n_operations
        with pytest.raises(LinkstreamError) as refused:
            wrong(store)
        assert isinstance(refused.value, (ArgumentError, StoreError))
        if wrong is not WRONG["a batch that is none"]:
            assert state_of(store) == before
            assert files(path) == there
            assert store.journal.n_operations == taken
        store.add_many(X[5:])  # and it goes on
    with Store.open(path) as store:
        store.verify()
