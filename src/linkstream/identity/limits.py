"""Limits on memory: drop subclusters, the least recently used first.

Clusters of one subcluster are dropped first, then leaves of clusters without a name, then leaves of
named clusters. Prototypes, corrected subclusters, the last subcluster of a named cluster, and those
of the newest vectors are never dropped. A dropped identity that comes back is new. Limits are
checked at points that only the stream fixes, so that decisions do not depend on batches.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from linkstream.engine import events
from linkstream.engine.log import UNTRACKED_LIMIT
from linkstream.engine.state import PER_NODE, State
from linkstream.errors import ArgumentError
from linkstream.identity.regrouping import neighbours_of

Flags = npt.NDArray[np.bool_]

ASKED, CROWDED, IDLE = range(3)  # why a cluster is forgotten


@dataclass(frozen=True, slots=True)
class Limits:
    """The most subclusters, and the number of vectors after which an idle cluster is dropped."""

    max_subclusters: int | None = None
    max_idle: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_subclusters", "max_idle"):
            value = getattr(self, name)
            whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            if value is not None and not (whole and value >= 1):
                raise ArgumentError(
                    f"{name}={value!r}",
                    expected="a whole number of 1 or more, or None",
                    remedy="None sets no limit.",
                )
            object.__setattr__(self, name, None if value is None else int(value))

    def __bool__(self) -> bool:
        return self.max_subclusters is not None or self.max_idle is not None

    def room(self, n_vectors: int, n_subclusters: int) -> int:
        """Return how many vectors may be added before a limit must be checked."""
        room = 2**62
        if self.max_subclusters is not None:
            room = max(self.max_subclusters - n_subclusters + 1, 1)
        if self.max_idle is not None:
            room = min(room, self._step - n_vectors % self._step)
        return room

    def exceeded(self, n_before: int, n_vectors: int, n_subclusters: int) -> bool:
        """Return whether a limit must be applied now."""
        crowded = self.max_subclusters is not None and n_subclusters > self.max_subclusters
        idle = self.max_idle is not None and n_before // self._step < n_vectors // self._step
        return crowded or idle

    def apply(self, state: State, cared: Flags, named: Collection[int], since: int) -> State:
        """Return the state without what exceeds the limits; vectors from `since` on stay."""
        if self.max_idle is not None:
            ids, place = np.unique(state.clusters, return_inverse=True)
            last_seen = np.full(len(ids), -1, dtype=np.int64)
            np.maximum.at(last_seen, place, state.last_seen)
            kept = np.isin(ids, list(named)) | np.isin(ids, state.clusters[cared])
            idle = ids[~kept & (last_seen < state.n_vectors - self.max_idle)].tolist()
            cared = cared[~np.isin(state.clusters, idle)]
            state = forget(state, idle, IDLE)
        if self.max_subclusters is None or len(state.numbers) <= self.max_subclusters:
            return state
        going = len(state.numbers) - self.max_subclusters + self.max_subclusters // 10
        return _Crowd(state, cared, named, since).without(going)

    @property
    def _step(self) -> int:
        assert self.max_idle is not None
        return max(self.max_idle // 10, 1)


def forget(state: State, clusters: list[int], reason: int) -> State:
    """Return the state without these clusters and their vectors."""
    rows = []
    newest = max(state.n_vectors - 1, 0)
    for cluster in clusters:
        rows.append(events.row(events.FORGOTTEN, newest, cluster, reason))
        nodes = state.numbers[state.clusters == cluster].tolist()
        rows += [events.row(events.VANISHED, newest, number, -1, cluster) for number in nodes]
    return _without(state, np.isin(state.clusters, clusters), rows)


class _Crowd:
    """Subclusters that may be dropped, the least recently used first; only leaves of the trees."""

    def __init__(self, state: State, cared: Flags, named: Collection[int], since: int) -> None:
        self.state, self.named = state, named
        self.neighbours = neighbours_of(state)
        self.cluster = dict(zip(state.numbers.tolist(), state.clusters.tolist(), strict=True))
        self.last_seen = dict(zip(state.numbers.tolist(), state.last_seen.tolist(), strict=True))
        self.staying = set(state.numbers[cared | (state.last_seen >= since)].tolist())
        self.gone: set[int] = set()
        self.queue: list[tuple[int, int, int]] = []
        for number in self.cluster:
            self._offer(number)

    def without(self, n: int) -> State:
        """Return the state without the first n of them, or without all if there are fewer."""
        rows: list[tuple[int, ...]] = []
        newest = max(self.state.n_vectors - 1, 0)
        while self.queue and len(self.gone) < n:
            rank, _, number = heapq.heappop(self.queue)
            if number in self.gone or rank != self._rank(number):
                continue
            cluster, heir = self.cluster[number], next(iter(self.neighbours[number]), -1)
            if heir < 0:
                rows.append(events.row(events.FORGOTTEN, newest, cluster, CROWDED))
            rows.append(events.row(events.VANISHED, newest, number, heir, cluster))
            self.gone.add(number)
            if heir >= 0:
                self.neighbours[heir].remove(number)
                self._offer(heir)
        going = np.isin(self.state.numbers, list(self.gone))
        return _without(self.state, going, rows)

    def _offer(self, number: int) -> None:
        rank = self._rank(number)
        if rank is not None:
            heapq.heappush(self.queue, (rank, self.last_seen[number], number))

    def _rank(self, number: int) -> int | None:
        """Return 0 if alone, 1 for a leaf of an unnamed cluster, 2 of a named one, None to keep."""
        alone = not self.neighbours[number]
        named = self.cluster[number] in self.named
        if number in self.staying or len(self.neighbours[number]) > 1 or (alone and named):
            return None
        return 0 if alone else 1 + named


def _without(state: State, going: Flags, rows: list[tuple[int, ...]]) -> State:
    if not rows:
        return state
    kept = ~going
    tied = np.isin(state.edges, state.numbers[kept]).all(axis=1)
    there = np.isin(state.vectors, state.numbers[kept])
    log = np.concatenate([state.events, np.array(rows, dtype=np.int64)])
    return replace(
        state,
        **{name: getattr(state, name)[kept] for name in (*PER_NODE, "sums")},
        edges=state.edges[tied],
        edge_rules=state.edge_rules[tied],
        vectors=np.where(there, state.vectors, -1),
        events=log if state.track_vectors else log[-UNTRACKED_LIMIT:],
        n_events=state.n_events + len(rows),
    )
