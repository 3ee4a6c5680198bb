"""A state whose subclusters are grouped anew: edges cut, edges tied, IDs kept by the majority.

Pure functions on `State`. Cuts come first, each an edge between two groups: the part with more
vectors keeps the ID, the other gets a fresh one. Then ties, firm edges within a group: of two
clusters the one whose ID is older news survives, that is, one that was there before the cuts, then
the one with more vectors, then the lower ID. Every step is an event, so that replaying gives
the same map.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from linkstream.engine import events
from linkstream.engine.log import UNTRACKED_LIMIT
from linkstream.engine.state import Integers, State

Edge = tuple[int, int]


@dataclass(slots=True)
class Regrouping:
    """A graph on its way from one state to another; nodes are named by number."""

    state: State
    clusters: dict[int, int] = field(init=False)
    counts: dict[int, int] = field(init=False)
    neighbours: dict[int, set[int]] = field(init=False)
    firm: dict[Edge, int] = field(init=False)
    next_cluster: int = field(init=False)
    rows: list[tuple[int, ...]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        numbers = self.state.numbers.tolist()
        self.clusters = dict(zip(numbers, self.state.clusters.tolist(), strict=True))
        self.counts = dict(zip(numbers, self.state.counts.tolist(), strict=True))
        self.neighbours = neighbours_of(self.state)
        edges = map(tuple, self.state.edges.tolist())
        self.firm = dict(zip(edges, self.state.firm.tolist(), strict=True))
        self.next_cluster = self.state.next_cluster

    def cut(self, a: int, b: int) -> None:
        """Remove an edge; the part with fewer vectors gets a fresh ID (tie: the younger part)."""
        cluster = self.clusters[a]
        self.neighbours[a].remove(b)
        self.neighbours[b].remove(a)
        del self.firm[_edge(a, b)]
        self._record(events.SEVERED, a, b, cluster)
        sides = [(self._vectors(part), -min(part), part) for part in (self.part(a), self.part(b))]
        inside, outside = (a, b) if sides[0][:2] < sides[1][:2] else (b, a)
        fresh, self.next_cluster = self.next_cluster, self.next_cluster + 1
        for number in min(sides)[2]:
            self.clusters[number] = fresh
        self._record(events.SPLIT, inside, outside, cluster, fresh)

    def tie(self, a: int, b: int) -> None:
        """Join two clusters by a firm edge between two of their subclusters."""
        one, other = self.clusters[a], self.clusters[b]
        sizes = {self.clusters[end]: self._vectors(self.part(end)) for end in (a, b)}

        def claim(cluster: int) -> tuple[bool, int, int]:
            return cluster < self.state.next_cluster, sizes[cluster], -cluster

        kept, gone = (one, other) if claim(one) > claim(other) else (other, one)
        for number in self.part(a if gone == one else b):
            self.clusters[number] = kept
        self._add(a, b, 1)
        self._record(events.UNITED, a, b, kept, gone)

    def hold(self, a: int, b: int) -> None:
        """Make an edge firm: equation 22 no longer judges it."""
        self.firm[_edge(a, b)] = 1

    def part(self, start: int) -> set[int]:
        """Numbers of the nodes in one piece with `start`."""
        seen, todo = {start}, [start]
        while todo:
            new = self.neighbours[todo.pop()] - seen
            seen |= new
            todo += new
        return seen

    def finish(self) -> State:
        """The new state; its log goes on where the old one ended."""
        edges = sorted(self.firm)
        rows = np.array(self.rows, dtype=np.int64).reshape(-1, events.WIDTH)
        log = np.concatenate([self.state.events, rows])
        if not self.state.track_vectors:
            log = log[-UNTRACKED_LIMIT:]
        return replace(
            self.state,
            clusters=_column(self.clusters[number] for number in self.state.numbers.tolist()),
            edges=np.array(edges, dtype=np.int64).reshape(-1, 2),
            firm=_column(self.firm[edge] for edge in edges),
            next_cluster=self.next_cluster,
            events=log,
            n_events=self.state.n_events + len(rows),
        )

    def _vectors(self, part: set[int]) -> int:
        return sum(self.counts[number] for number in part)

    def _add(self, a: int, b: int, firm: int) -> None:
        self.neighbours[a].add(b)
        self.neighbours[b].add(a)
        self.firm[_edge(a, b)] = firm

    def _record(self, code: int, *numbers: int) -> None:
        row = (code, max(self.state.n_vectors - 1, 0), *numbers)
        self.rows.append(row + (-1,) * (events.WIDTH - len(row)))


def neighbours_of(state: State) -> dict[int, set[int]]:
    """The subclusters that each one is tied to."""
    found: dict[int, set[int]] = {number: set() for number in state.numbers.tolist()}
    for a, b in state.edges.tolist():
        found[a].add(b)
        found[b].add(a)
    return found


def _edge(a: int, b: int) -> Edge:
    return (a, b) if a < b else (b, a)


def _column(values: Iterable[int]) -> Integers:
    return np.array(list(values), dtype=np.int64)
