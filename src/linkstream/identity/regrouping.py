"""Regroup the subclusters of a state, or of whole clusters: cut edges, tie edges, keep IDs by rule.

Pure functions on `State`. At a cut the part with more nodes that claim the ID keeps it, then the
one with more vectors; the other part gets a new ID. At a tie a named cluster survives an unnamed
one, then the older. Every step is an event, so that replay gives the same result.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from linkstream.engine import events
from linkstream.engine.forest import CLAIM, PINNED, SETTLED, TESTED
from linkstream.engine.graph import column
from linkstream.engine.log import UNTRACKED_LIMIT
from linkstream.engine.regroup import Regrouped
from linkstream.engine.state import State

Edge = tuple[int, int]


@dataclass(slots=True)
class Regrouping:
    """A graph that is being changed; nodes are named by number."""

    state: State
    named: Collection[int] = ()  # clusters
    places: dict[int, int] = field(init=False)
    clusters: dict[int, int] = field(init=False)
    counts: dict[int, int] = field(init=False)
    neighbours: dict[int, set[int]] = field(init=False)
    rules: dict[Edge, int] = field(init=False)
    next_cluster: int = field(init=False)
    rows: list[tuple[int, ...]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        numbers = self.state.numbers.tolist()
        self.clusters = dict(zip(numbers, self.state.clusters.tolist(), strict=True))
        self.counts = dict(zip(numbers, self.state.counts.tolist(), strict=True))
        self.places = {number: place for place, number in enumerate(numbers)}
        self.neighbours = neighbours_of(self.state)
        edges = map(tuple, self.state.edges.tolist())
        self.rules = dict(zip(edges, self.state.edge_rules.tolist(), strict=True))
        self.next_cluster = self.state.free_cluster

    def begin(self, cuts: int, joins: int, *, asked: bool) -> None:
        """Begin a settlement: all edges become settled."""
        self._record(events.SETTLED, cuts, joins, int(asked))
        self.rules = {edge: max(rule, SETTLED) for edge, rule in self.rules.items()}

    def cut(self, a: int, b: int) -> None:
        """Cut an edge; one part keeps the ID, the other gets a new one."""
        cluster = self.clusters[a]
        self._remove(a, b)
        self._record(events.SEVERED, a, b, cluster)
        parts = self.part(a), self.part(b)
        inside, outside, leaving = (
            (a, b, parts[0]) if self._claim(parts[0]) < self._claim(parts[1]) else (b, a, parts[1])
        )
        fresh, self.next_cluster = self.next_cluster, self.next_cluster + 1
        for number in leaving:
            self.clusters[number] = fresh
        self._record(events.SPLIT, inside, outside, cluster, fresh)

    def sides(self, a: int, b: int) -> tuple[set[int], set[int]]:
        """Return the two parts that an edge holds together."""
        ones = self._reached(a, {a, b})
        return ones, self._reached(b, ones | {b})

    def rejoin(self, a: int, b: int, new: Edge) -> None:
        """Replace an edge between two parts by another that equation 22 tests."""
        cluster = self.clusters[a]
        self._remove(a, b)
        self._record(events.SEVERED, a, b, cluster)
        self._add(*new, TESTED)
        self._record(events.REJOINED, *new, cluster)

    def tie(self, a: int, b: int, rule: int = SETTLED) -> None:
        """Join two clusters by an edge between two of their subclusters."""
        one, other = self.clusters[a], self.clusters[b]
        kept, gone = sorted((one, other), key=lambda cluster: (cluster not in self.named, cluster))
        for number in self.part(a if gone == one else b):
            self.clusters[number] = kept
        self._add(a, b, rule)
        self._record(events.TIED if rule == PINNED else events.UNITED, a, b, kept, gone)

    def retie(self, a: int, b: int, old: Edge) -> None:
        """Replace an edge of a cluster by a pinned one."""
        self._remove(*old)
        self._add(a, b, PINNED)
        self._record(events.RETIED, a, b, *old)

    def hold(self, a: int, b: int, rule: int) -> None:
        """Set the rule of an edge."""
        if self.rules[edge_of(a, b)] != rule:
            self.rules[edge_of(a, b)] = rule
            self._record(events.HELD, a, b, rule)

    def part(self, start: int) -> set[int]:
        """Return the numbers of the nodes connected with `start`."""
        return self._reached(start, {start})

    def result(self) -> Regrouped:
        """Return the new edges and clusters."""
        edges = sorted(self.rules)
        return Regrouped(
            clusters=column(self.clusters[number] for number in self.state.numbers.tolist()),
            edges=np.array(edges, dtype=np.int64).reshape(-1, 2),
            edge_rules=column(self.rules[edge] for edge in edges),
            events=np.array(self.rows, dtype=np.int64).reshape(-1, events.WIDTH),
            free_cluster=self.next_cluster,
            numbers=self.state.numbers,
        )

    def finish(self) -> State:
        """Return the new state; its log continues the old one."""
        given = self.result()
        log = np.concatenate([self.state.events, given.events])
        if not self.state.track_vectors:
            log = log[-UNTRACKED_LIMIT:]
        fresh = given.free_cluster > self.state.free_cluster
        return replace(
            self.state,
            clusters=given.clusters,
            edges=given.edges,
            edge_rules=given.edge_rules,
            next_cluster=given.free_cluster if fresh else self.state.next_cluster,
            free_cluster=given.free_cluster,
            events=log,
            n_events=self.state.n_events + len(given.events),
        )

    def _claim(self, part: set[int]) -> tuple[int, int, int]:
        """Return the claim of a part to the ID, to be compared."""
        flags = self.state.flags
        claims = sum(bool(flags[self.places[number]] & CLAIM) for number in part)
        return claims, sum(self.counts[number] for number in part), -min(part)

    def _reached(self, start: int, closed: set[int]) -> set[int]:
        """Return the nodes connected with `start` without passing some nodes."""
        seen, todo = {start}, [start]
        while todo:
            new = self.neighbours[todo.pop()] - seen - closed
            seen |= new
            todo += new
        return seen

    def _add(self, a: int, b: int, rule: int) -> None:
        self.neighbours[a].add(b)
        self.neighbours[b].add(a)
        self.rules[edge_of(a, b)] = rule

    def _remove(self, a: int, b: int) -> None:
        self.neighbours[a].remove(b)
        self.neighbours[b].remove(a)
        del self.rules[edge_of(a, b)]

    def _record(self, code: int, *numbers: int) -> None:
        self.rows.append(events.row(code, max(self.state.n_vectors - 1, 0), *numbers))


def neighbours_of(state: State) -> dict[int, set[int]]:
    """Return the neighbours of each subcluster."""
    found: dict[int, set[int]] = {number: set() for number in state.numbers.tolist()}
    for a, b in state.edges.tolist():
        found[a].add(b)
        found[b].add(a)
    return found


def way(neighbours: Mapping[int, set[int]], start: int, end: int) -> list[int]:
    """Return the subclusters on the only path between two of one cluster."""
    before, todo = {start: start}, [start]
    while todo and end not in before:
        number = todo.pop()
        for other in neighbours[number]:
            if other not in before:
                before[other] = number
                todo.append(other)
    found = [end]
    while found[-1] != start:
        found.append(before[found[-1]])
    return found[::-1]


def edge_of(a: int, b: int) -> Edge:
    """Return an edge by its ends, the older first."""
    return (a, b) if a < b else (b, a)
