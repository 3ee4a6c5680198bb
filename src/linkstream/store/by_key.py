"""Vectors of a store by their own keys and times: functions that `StoreReader` has as methods."""

# ruff: noqa: D417 - self is the store

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import policies, views
from linkstream.clusterer.policies import HeldVector
from linkstream.engine.events import Decided, Event
from linkstream.store import index, own_columns
from linkstream.store.keyed import KeyedVectors, Vector, Vectors
from linkstream.store.model import Model
from linkstream.store.own_columns import Moment, microseconds

if TYPE_CHECKING:
    from linkstream.store.reader import StoreReader

T = TypeVar("T")


def number(self: StoreReader, key: Vector) -> int:
    """Return the number of the vector that has a key; raise UnknownIdError if none has it.

    The cost does not depend on how many vectors there are.

    Args:
        key: the vector's own key; or its number, which is returned if the vector is there.
    """
    return self.handle.read(lambda model: model.keyed.number(key))


def numbers(self: StoreReader, keys: Vectors) -> npt.NDArray[np.int64]:
    """Return the numbers of vectors; raise UnknownIdError if one is not there.

    Args:
        keys: the vectors by their own keys, or by number.
    """
    return self.handle.read(lambda model: model.keyed.numbers(keys))


def key(self: StoreReader, vector: Vector) -> str | None:
    """Return a vector's own key; None if it has none.

    Args:
        vector: the vector, by number.
    """
    return self.keys([vector])[0]


def keys(self: StoreReader, vectors: Vectors) -> list[str | None]:
    """Return the vectors' own keys; None for a vector without one.

    Args:
        vectors: the numbers of the vectors, in any order.
    """
    return self.handle.read(lambda model: _own(model, vectors, KeyedVectors.keys))


def time(self: StoreReader, vector: Vector) -> datetime | None:
    """Return a vector's own time in UTC; None if it has none.

    Args:
        vector: the vector, by number or by its own key.
    """
    found = self.handle.read(lambda model: _own(model, [vector], KeyedVectors.times))
    return own_columns.to_datetime(int(found[0]))


def times(self: StoreReader, vectors: Vectors) -> npt.NDArray[np.datetime64]:
    """Return the vectors' own times in UTC, as datetime64 in microseconds; NaT for none.

    Args:
        vectors: the vectors, by number or by their own keys.
    """
    found = self.handle.read(lambda model: _own(model, vectors, KeyedVectors.times))
    return found.astype("datetime64[us]")


def described(self: StoreReader, vectors: Vectors) -> list[dict[str, Any]]:
    """Return `vector`, `id` and `time` of vectors as plain values for JSON.

    Args:
        vectors: the vectors, by number or by their own keys.
    """
    return self.handle.read(lambda model: _own(model, vectors, KeyedVectors.described))


def between(
    self: StoreReader, start: Moment | None = None, end: Moment | None = None
) -> npt.NDArray[np.int64]:
    """Return the vectors with times from `start` up to but excluding `end`, by number.

    The cost is that of the vectors that are found.

    Args:
        start: the first time, as for `add`; None (default) for all before `end`.
        end: the time after the last; None (default) for all from `start` on.
    """
    first, last = (None if each is None else microseconds(each) for each in (start, end))

    def work(model: Model) -> npt.NDArray[np.int64]:
        with model.steady():
            return model.keyed.between(first, last)

    return self.handle.read(work)


def held(self: StoreReader, *, limit: int = 20, before: int | None = None) -> list[HeldVector]:
    """As `Links.held`.

    Each vector has its own key and its payload.
    """

    def work(model: Model) -> list[HeldVector]:
        found = policies.held(model.links.core, limit, before)
        numbers = np.array([each.vector for each in found], dtype=np.int64)
        with model.steady():
            payloads = index.payloads_by_number(model.journal, model.index, numbers)
            rows = zip(found, model.keyed.keys(numbers), payloads, strict=True)
            return [replace(each, id=key, payload=payload) for each, key, payload in rows]

    return self.handle.read(work)


def event_keys(self: StoreReader, events: Sequence[Event]) -> list[str | None]:
    """Return the key of the vector that each event is about, if that vector has one now.

    Args:
        events: events of this store.
    """
    return self.handle.read(lambda model: _event_keys(model, events))


def with_probabilities(self: StoreReader, events: Sequence[Event]) -> list[Event]:
    """Return events in which decisions have the probability that they are right, if it is known.

    The probability is that of the decision at its time, by the present model (docs/confidence.md).

    Args:
        events: events of this store.
    """
    return self.handle.read(lambda model: _with_probabilities(model, list(events)))


def how_sure(self: StoreReader, first: int, n: int) -> dict[str, list[float | None]]:
    """Return `cluster_margin` and `probability` of the decisions on some vectors; None for unknown.

    Without a model of confidence the answer is empty.

    Args:
        first: the number of the first vector.
        n: how many vectors.
    """
    numbers = np.arange(first, first + n, dtype=np.int64)
    margin, probability = self.handle.read(lambda model: _told_at(model, numbers))
    if margin is None:
        return {}
    columns = {"cluster_margin": margin, "probability": probability}
    return {
        name: [None if figure != figure else figure for figure in column.tolist()]
        for name, column in columns.items()
    }


def _told_at(model: Model, numbers: npt.NDArray[np.int64]) -> tuple[Any, Any]:
    confidence = model.links.confidence
    return confidence.told_at(numbers) if confidence.margins else (None, None)


def _with_probabilities(model: Model, events: list[Event]) -> list[Event]:
    core = model.links.core
    if core.confidence.holding() is None:
        return events
    numbers = {each.vector for each in events if isinstance(each, Decided)}
    with model.steady():
        began = _beginnings(model, {n for n in numbers if n < model.links.n_vectors})

    def stands(event: Decided) -> bool:
        return event.vector in began and began[event.vector] <= event.sequence

    return views.with_probabilities(core, events, stands)


def _event_keys(model: Model, events: Sequence[Event]) -> list[str | None]:
    found: list[str | None] = [None] * len(events)
    if not len(model.index.keys):
        return found
    with model.steady():
        places = [(i, _subject(each)) for i, each in enumerate(events)]
        there = [(i, n) for i, n in places if 0 <= n < model.links.n_vectors]
        began = _beginnings(model, {n for _, n in there})
        there = [(i, n) for i, n in there if began[n] <= events[i].sequence]
        for (i, _), key in zip(there, model.keyed.keys([n for _, n in there]), strict=True):
            found[i] = key
    return found


def _subject(event: Event) -> int:
    """Return the vector that an event is about; −1 if it is about no single one."""
    if event.kind in ("created", "joined", "linked"):
        return event.vector
    return int(getattr(event, "member", -1))


def _beginnings(model: Model, numbers: set[int]) -> dict[int, int]:
    """Return the first event of the call that brought each vector; a number may be used again."""
    holders = {number: model.index.holding(number)[0] for number in numbers}
    first = {each: model.journal.operation(each).first_event for each in {*holders.values()}}
    return {number: first[holder] for number, holder in holders.items()}


def _own(model: Model, vectors: Vectors, read: Callable[[KeyedVectors, Any], T]) -> T:
    """Return what vectors have of their own."""
    with model.steady():
        return read(model.keyed, model.keyed.numbers(vectors))
