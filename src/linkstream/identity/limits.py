"""Limits: memory that stays bounded. Clusters nobody cares for are forgotten, oldest use first.

Clusters with a name, with enrolled prototypes, or of which a person has said something are never
forgotten. A forgotten stranger who comes back is new. When to look is fixed by the stream alone, so
that decisions do not depend on how it is cut into calls.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from linkstream.engine import events
from linkstream.engine.log import UNTRACKED_LIMIT
from linkstream.engine.state import Integers, State
from linkstream.errors import ArgumentError

ASKED, CROWDED, IDLE = range(3)  # why a cluster is forgotten


@dataclass(frozen=True, slots=True)
class Limits:
    """How many subclusters there may be, and for how many vectors a cluster may be idle."""

    max_subclusters: int | None = None
    max_idle: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_subclusters", "max_idle"):
            value = getattr(self, name)
            if value is not None and not (type(value) is int and value >= 1):
                raise ArgumentError(
                    f"{name}={value!r}",
                    expected="a whole number of 1 or more, or None",
                    remedy="None sets no limit.",
                )

    def __bool__(self) -> bool:
        return self.max_subclusters is not None or self.max_idle is not None

    def room(self, n_vectors: int, n_subclusters: int) -> int:
        """How many vectors may come before one of the limits has to be looked at."""
        room = 2**62
        if self.max_subclusters is not None:
            room = max(self.max_subclusters - n_subclusters + 1, 1)
        if self.max_idle is not None:
            room = min(room, self._step - n_vectors % self._step)
        return room

    def exceeded(self, n_before: int, n_vectors: int, n_subclusters: int) -> bool:
        """Whether one of the limits has something to say now."""
        crowded = self.max_subclusters is not None and n_subclusters > self.max_subclusters
        idle = self.max_idle is not None and n_before // self._step < n_vectors // self._step
        return crowded or idle

    def apply(self, state: State, protected: Collection[int]) -> State:
        """The state without the clusters that have to go."""
        ids, place = np.unique(state.clusters, return_inverse=True)
        nodes, last_seen = np.bincount(place), np.full(len(ids), -1, dtype=np.int64)
        np.maximum.at(last_seen, place, state.last_seen)
        free = ~np.isin(ids, np.array(list(protected), dtype=np.int64))
        if self.max_idle is not None:
            idle = ids[free & (last_seen < state.n_vectors - self.max_idle)]
            if len(idle):
                state = forget(state, idle.tolist(), IDLE)
                return self.apply(state, protected)
        if self.max_subclusters is None or len(state.numbers) <= self.max_subclusters:
            return state
        order = np.lexsort((ids, last_seen, nodes > 1))
        order = order[free[order]]
        surplus = len(state.numbers) - self.max_subclusters + self.max_subclusters // 10
        going = int(np.searchsorted(np.cumsum(nodes[order]), surplus)) + 1
        return forget(state, ids[order[:going]].tolist(), CROWDED)

    @property
    def _step(self) -> int:
        assert self.max_idle is not None
        return max(self.max_idle // 10, 1)


def forget(state: State, clusters: list[int], reason: int) -> State:
    """The state without these clusters and all they held."""
    if not clusters:
        return state
    rows = []
    newest = max(state.n_vectors - 1, 0)
    for cluster in clusters:
        rows.append(events.row(events.FORGOTTEN, newest, cluster, reason))
        nodes = state.numbers[state.clusters == cluster].tolist()
        rows += [events.row(events.VANISHED, newest, number, -1, cluster) for number in nodes]
    kept = ~np.isin(state.clusters, clusters)
    tied = np.isin(state.edges[:, 0], state.numbers[kept])
    there = np.isin(state.vectors, state.numbers[kept])
    log = np.concatenate([state.events, np.array(rows, dtype=np.int64)])
    columns = ("numbers", "clusters", "counts", "first_seen", "last_seen", "light", "flags", "sums")
    return replace(
        state,
        **{name: getattr(state, name)[kept] for name in columns},
        edges=state.edges[tied],
        firm=state.firm[tied],
        vectors=_where(there, state.vectors),
        events=log if state.track_vectors else log[-UNTRACKED_LIMIT:],
        n_events=state.n_events + len(rows),
    )


def _where(there: np.typing.NDArray[np.bool_], vectors: Integers) -> Integers:
    return np.where(there, vectors, -1)
