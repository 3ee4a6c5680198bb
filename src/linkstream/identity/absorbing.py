"""Absorbing: what another clusterer has, in the order in which it comes in, and where it went.

The other's subclusters come as vectors that arrive together, the largest first (tie: the oldest),
under the tests that any vector has to pass (docs/choices.md, "Absorbing is arriving together").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.engine import events
from linkstream.engine.contract import Engine
from linkstream.engine.fixed_point import quantise
from linkstream.engine.forest import FULL, LAW
from linkstream.engine.state import Integers, State
from linkstream.identity.laws import Laws


@dataclass(frozen=True, slots=True, eq=False)
class Absorbed:
    """Where what another clusterer had is now.

    Attributes:
        clusters: for each ID that the other gave, the cluster here that holds the most of it; −1
            where nothing is left of it.
        vectors: for each vector of the other, its number here; −1 where it was removed. None where
            vectors are not tracked.
        subclusters: for each subcluster of the other, the one here that holds it.
        merged: for each subcluster that was here and is no more, the one that holds it.
        event: the number of the event with which it began; `undo(to=event)` takes all of it back.
    """

    clusters: dict[int, int]
    vectors: Integers | None
    event: int
    subclusters: dict[int, int] = field(default_factory=dict)
    merged: dict[int, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        vectors = None if self.vectors is None else self.vectors.tolist()
        return {
            "clusters": self.clusters,
            "vectors": vectors,
            "event": self.event,
            "subclusters": self.subclusters,
            "merged": self.merged,
        }


@dataclass(frozen=True, slots=True, eq=False)
class VectorGroup:
    """A subcluster of the other: its place in the state, its vectors, how much less each weighs."""

    row: int
    number: int
    cluster: int
    total: Integers
    members: Integers | None
    lights: Integers
    flags: int

    def direction(self) -> npt.NDArray[np.int32]:
        """Where it points, as a vector that the engine can be asked about."""
        rows: npt.NDArray[np.int32] = quantise(self.total[np.newaxis].astype(np.float64))[0]
        return np.ascontiguousarray(rows[0])


def vector_groups(state: State, lights: Mapping[int, int]) -> Iterator[VectorGroup]:
    """The subclusters, in the order in which they come in; `lights` by vector, where tracked."""
    order = np.lexsort((state.numbers, -state.masses()))
    members = _members(state) if state.track_vectors else None
    for row in order.tolist():
        mine = None if members is None else members[row]
        if mine is None:
            lighter = _spread(int(state.counts[row]), int(state.light[row]))
        else:
            lighter = np.array([lights.get(n, 0) for n in mine.tolist()], dtype=np.int64)
        yield VectorGroup(
            row=row,
            number=int(state.numbers[row]),
            cluster=int(state.clusters[row]),
            total=np.ascontiguousarray(state.sums[row]),
            members=mine,
            lights=lighter,
            flags=int(state.flags[row]),
        )


def _members(state: State) -> list[Integers]:
    """Vectors of each subcluster, in order of arrival."""
    order = np.argsort(state.vectors, kind="stable")
    held = state.vectors[order]
    starts = np.searchsorted(held, state.numbers)
    ends = np.searchsorted(held, state.numbers, side="right")
    return [order[start:end] for start, end in zip(starts, ends, strict=True)]


def _spread(count: int, light: int) -> Integers:
    """So much less in all, where nobody knows which of them weigh less."""
    lighter = np.zeros(count, dtype=np.int64)
    whole, rest = divmod(light, FULL)
    lighter[:whole] = FULL
    if rest:
        lighter[whole] = rest
    return lighter


def is_corrected(state: State, laws: Laws) -> bool:
    """Whether people said anything there that has to hold here."""
    ledger = laws.ledger
    said = ledger.pins or ledger.names or ledger.ignored or ledger.locked
    return bool(said or state.flags.any() or (state.firm == LAW).any())


def ties(state: State) -> Integers:
    """Pairs of subclusters that a person's word holds together."""
    tied: Integers = state.edges[state.firm == LAW]
    return tied


def bars(state: State, laws: Laws) -> list[tuple[int, int]]:
    """Pairs of subclusters that are never one."""
    return sorted(
        (number, other)
        for number in state.numbers.tolist()
        for other in laws.barred(number)
        if number < other
    )


def batches(groups: Iterable[VectorGroup], vectors: int) -> Iterator[list[VectorGroup]]:
    """Lots in order, some at a time: as many as hold so many vectors, but one at the least."""
    some: list[VectorGroup] = []
    held = 0
    for group in groups:
        if some and held + len(group.lights) > vectors:
            yield some
            some, held = [], 0
        some.append(group)
        held += len(group.lights)
    if some:
        yield some


@dataclass(slots=True)
class Renumbering:
    """Where each subcluster of the other went, through all merges since."""

    seen: int  # events that were read
    numbers: dict[int, int] = field(default_factory=dict)  # of the other → here, when it came
    _survivors: dict[int, int] = field(default_factory=dict)

    def read(self, engine: Engine) -> None:
        """Take in events since then: subclusters that are no more, and those that hold them."""
        # Where not all is kept, what is gone told of vectors that came; merges follow those.
        first, rows = engine.event_rows(max(self.seen, engine.oldest_event()))
        self.seen = first + len(rows)
        for _, _, survivor, absorbed, *_ in rows[rows[:, 0] == events.MERGED].tolist():
            self._survivors[absorbed] = survivor

    def __getitem__(self, number: int) -> int:
        return self._living(self.numbers[number])

    def merged(self) -> dict[int, int]:
        """Subclusters here that are no more, and those that hold them now."""
        return {gone: self._living(gone) for gone in self._survivors}

    def _living(self, here: int) -> int:
        while here in self._survivors:
            here = self._survivors[here]
        return here
