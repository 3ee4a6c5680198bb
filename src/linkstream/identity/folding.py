"""Fold the event log: the state at any moment, from the events and the kept vectors.

The events hold what the engines decided; nothing is decided again here. Undo takes the state after
the first n events.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, replace
from typing import Protocol

import numpy as np

from linkstream.engine import events, forest
from linkstream.engine.comparison import gathered
from linkstream.engine.corrections import share
from linkstream.engine.forest import FULL, GIVEN_FLAGS, PINNED, SETTLED, TESTED, Node
from linkstream.engine.graph import column, columns_of, nodes_of
from linkstream.engine.log import UNTRACKED_LIMIT
from linkstream.engine.state import Fixed, Integers, State
from linkstream.errors import SnapshotError
from linkstream.identity import records
from linkstream.identity.ledger import Ledger, Rows
from linkstream.identity.timeline import Timeline
from linkstream.paper.thresholds import Thresholds

_BLOCK = 1_024  # vectors summed at a time; other threads run in between
_ARROW = " → "
_SPACE = "; space: "


@dataclass(frozen=True, slots=True)
class Base:
    """Where folding begins: a state and its ledger; empty if the log is complete."""

    state: State
    ledger: Ledger


@dataclass(slots=True)
class Fold:
    """A graph built from events; nodes have no sums."""

    evidence_rule: int  # rule of an edge by which a vector is linked
    nodes: dict[int, Node] = field(default_factory=dict)
    holders: list[int] = field(default_factory=list)  # node of each vector when it came; −1 removed
    heirs: dict[int, int] = field(default_factory=dict)  # a merged node → the one that holds it
    missing_weights: dict[int, int] = field(default_factory=dict)
    next_subcluster: int = 0
    next_cluster: int = 0
    _enrolling: int = 0
    _missing_weight: int = 0

    def begin(self, base: Base) -> None:
        """Return a fold that starts from a base."""
        state, self.nodes = base.state, nodes_of(base.state)
        for node in self.nodes.values():
            node.flags &= GIVEN_FLAGS  # no event says which clusters are due
        self.holders = state.vectors.tolist()
        self.missing_weights = dict(base.ledger.missing_weights)
        self.next_subcluster, self.next_cluster = state.next_subcluster, state.next_cluster

    def play(self, rows: Rows) -> None:
        """Apply events in order."""
        for code, vector, *numbers in rows.tolist():
            player = _PLAYERS.get(code)
            if player is not None:
                player(self, vector, *numbers)

    def holder(self, vector: int) -> int:
        """Return the node that holds a vector; −1 if it was removed or its node is gone."""
        number = self.holders[vector]
        while number in self.heirs:
            number = self.heirs[number]
        return number if number in self.nodes else -1

    # One player for each kind of event: its vector, its numbers. First of vectors:

    def _created(self, vector: int, number: int, cluster: int, *_: int) -> None:
        self._born(vector, number, cluster)
        self._arrived(number)

    def _linked(self, vector: int, number: int, partner: int, cluster: int, *_: int) -> None:
        self._born(vector, number, cluster)
        rule = PINNED if self._enrolling else self.evidence_rule
        forest.add_edge(self.nodes[number], self.nodes[partner], rule=rule)
        self._arrived(number)

    def _joined(self, vector: int, number: int, *_: int) -> None:
        self._put(vector, number)
        self._arrived(number)

    def _arrived(self, number: int) -> None:
        self.holders.append(number)
        self._missing_weight = 0
        self._enrolling = max(self._enrolling - 1, 0)

    def _deferred(self, vector: int, *_: int) -> None:
        if self._missing_weight:
            self.missing_weights[vector] = self._missing_weight
        self._arrived(-1)

    def _born(self, member: int, number: int, cluster: int) -> None:
        if self._missing_weight:
            self.missing_weights[member] = self._missing_weight
        self.nodes[number] = Node(number, cluster, 1, 0, member, member, self._missing_weight)
        self.next_subcluster = number + 1
        self.next_cluster = max(self.next_cluster, cluster + 1)

    def _put(self, member: int, number: int) -> None:
        """Put a vector into an existing node."""
        node = self.nodes[number]
        missing_weight = FULL if node.locked else self._missing_weight
        node.count, node.missing_weight = node.count + 1, node.missing_weight + missing_weight
        node.first_seen, node.last_seen = min(node.first_seen, member), max(node.last_seen, member)
        if missing_weight:
            self.missing_weights[member] = missing_weight

    def _weighed(self, _vector: int, weight: int, *_: int) -> None:
        self._missing_weight = FULL - weight

    def _removed(self, _vector: int, member: int, number: int, *_: int) -> None:
        node = self.nodes[number]
        missing_weight = self.missing_weights.get(member, 0)
        node.count, node.missing_weight = node.count - 1, node.missing_weight - missing_weight
        if missing_weight == FULL:  # a locked node counted it, and did not learn
            del self.missing_weights[member]
        self.holders[member] = -1

    def _moved(self, _vector: int, member: int, number: int, partner: int, cluster: int) -> None:
        self._missing_weight = self.missing_weights.get(member, 0)
        if number in self.nodes:
            self._put(member, number)
        else:
            self._born(member, number, cluster)
            if partner >= 0:
                forest.add_edge(self.nodes[number], self.nodes[partner], rule=PINNED)
        self._missing_weight = 0
        self.holders[member] = number

    # The graph

    def _merged(self, _vector: int, number: int, absorbed: int, *_: int) -> None:
        node, gone = self.nodes[number], self.nodes[absorbed]
        node.take_in(gone)
        self._inherit(gone, node)
        self.heirs[absorbed] = number

    def _vanished(self, _vector: int, number: int, heir: int, *_: int) -> None:
        self._inherit(self.nodes[number], self.nodes[heir] if heir >= 0 else None)

    def _inherit(self, gone: Node, heir: Node | None) -> None:
        forest.move_edges(self.nodes, gone, heir)
        del self.nodes[gone.number]

    def _severed(self, _vector: int, a: int, b: int, *_: int) -> None:
        forest.remove_edge(self.nodes[a], self.nodes[b])

    def _rejoined(self, _vector: int, a: int, b: int, *_: int) -> None:
        forest.add_edge(self.nodes[a], self.nodes[b])

    def _split(self, _vector: int, number: int, _partner: int, _cluster: int, fresh: int) -> None:
        self.next_cluster = max(self.next_cluster, fresh + 1)
        self._relabel(number, fresh)

    def _united(
        self, _vector: int, a: int, b: int, kept: int, gone: int, rule: int = SETTLED
    ) -> None:
        self._relabel(a if self.nodes[a].cluster == gone else b, kept)
        forest.add_edge(self.nodes[a], self.nodes[b], rule=rule)

    def _tied(self, vector: int, a: int, b: int, kept: int, gone: int) -> None:
        self._united(vector, a, b, kept, gone, PINNED)

    def _relabel(self, start: int, cluster: int) -> None:
        for number in forest.part_of(self.nodes, self.nodes[start]):
            self.nodes[number].cluster = cluster

    def _retied(self, _vector: int, a: int, b: int, old: int, old_partner: int) -> None:
        forest.remove_edge(self.nodes[old], self.nodes[old_partner])
        forest.add_edge(self.nodes[a], self.nodes[b], rule=PINNED)

    def _held(self, _vector: int, a: int, b: int, rule: int, *_: int) -> None:
        forest.remove_edge(self.nodes[a], self.nodes[b])
        forest.add_edge(self.nodes[a], self.nodes[b], rule=rule)

    def _settled(self, _vector: int, *_: int) -> None:
        for node in self.nodes.values():
            node.rules = {
                other: max(node.rules.get(other, 0), SETTLED) for other in node.neighbours
            }

    # A rebuild

    def _rebuilt(self, _vector: int, *_: int) -> None:
        for node in self.nodes.values():
            node.neighbours, node.rules = set(), {}

    def _parted(self, _vector: int, _cluster: int, fresh: int, *_: int) -> None:
        self.next_cluster = max(self.next_cluster, fresh + 1)

    def _transferred(
        self, _vector: int, member: int, origin: int, number: int, cluster: int
    ) -> None:
        if member < 0:
            self.nodes[number].cluster = cluster
            return
        self._missing_weight = self.missing_weights.get(member, 0)
        node = self.nodes[origin]
        node.count, node.missing_weight = node.count - 1, node.missing_weight - self._missing_weight
        if self._missing_weight == FULL:  # a locked node counted it, and did not learn
            del self.missing_weights[member]
            self._missing_weight = 0
        if number in self.nodes:
            self._put(member, number)
        else:
            self._born(member, number, cluster)
        self._missing_weight = 0
        self.holders[member] = number

    def _bound(self, _vector: int, a: int, b: int, *_: int) -> None:
        forest.add_edge(self.nodes[a], self.nodes[b], rule=SETTLED)

    def _flagged(self, _vector: int, number: int, flags: int, *_: int) -> None:
        self.nodes[number].flags = flags

    def _enrolled(self, _vector: int, _name: int, size: int, *_: int) -> None:
        self._enrolling = size


_PLAYERS: dict[int, Callable[..., None]] = events.methods(Fold)


class HasVectors(Protocol):
    """What has vectors by number."""

    def rows(self, numbers: Integers) -> Fixed:
        """Return the vectors of these numbers."""


def state_after(present: State, timeline: Timeline, keep: HasVectors, base: Base) -> State:
    """Return the state that events lead to from a base; thresholds and log are the current ones.

    Raise SnapshotError if the events, which may come from a file, lead to no valid state.
    """
    with _distrusted():
        state = _folded(present, timeline, keep, base)
    replace(state, events=state.events[:0]).check()  # the log tells of what is now undone as well
    return state


def state_of_sums(present: State, rows: Rows, sums: Integers, base: Base) -> State:
    """Return the state that events lead to from a base, if no vector changes its subcluster.

    `sums` are those of all subclusters, in order of number.
    """
    fold = Fold(SETTLED if present.cluster_evidence else TESTED)
    fold.begin(base)
    fold.play(rows)
    columns = columns_of(fold.nodes)
    columns["flags"] &= GIVEN_FLAGS
    log = present.events if present.track_vectors else present.events[-UNTRACKED_LIMIT:]
    found = replace(present, next_cluster=fold.next_cluster, sums=sums, events=log, **columns)
    replace(found, events=log[:0]).check()
    return found


def without_sums(present: State, dimension: int) -> State:
    """Return a state from which no sum can be taken over, for vectors of another space."""
    nothing = np.empty((0, dimension), dtype=np.int64)
    return replace(present, dimension=dimension, numbers=present.numbers[:0], sums=nothing)


def change_of_settings(before: Thresholds, after: Thresholds, space: str | None = None) -> str:
    """Return the text on a change of settings in the event of a rebuild."""
    thresholds = _ARROW.join(" ".join(map(repr, astuple(each))) for each in (before, after))
    return thresholds if space is None else thresholds + _SPACE + space


def thresholds_after(
    present: Thresholds, log: Rows, timeline: Timeline, texts: list[str]
) -> Thresholds:
    """Return the thresholds that the events of a timeline lead to; `log` are all events."""
    with _distrusted():
        for rows, last in ((timeline.rows[::-1], 1), (log, 0)):
            changes = rows[(rows[:, 0] == events.REBUILT) & (rows[:, 2] >= 0), 2]
            if len(changes):
                side = texts[int(changes[0])].split(_SPACE)[0].split(_ARROW)[last]
                return Thresholds(*map(float, side.split()))
    return present


@contextmanager
def _distrusted() -> Iterator[None]:
    """Turn any error into a SnapshotError that names the log, which may come from a file."""
    try:
        yield
    except (LookupError, ValueError, TypeError, ArithmeticError) as error:
        raise SnapshotError(
            f"a log of events that cannot be followed ({type(error).__name__}: {error})",
            expected="the log that led to the present state",
            remedy="The file it came from is damaged or was made by another program; use a backup.",
        ) from error


def _folded(present: State, timeline: Timeline, keep: HasVectors, base: Base) -> State:
    fold = Fold(SETTLED if present.cluster_evidence else TESTED)
    fold.begin(base)
    fold.play(timeline.rows)
    columns = columns_of(fold.nodes)
    columns["flags"] &= forest.GIVEN_FLAGS  # no cluster is due to be settled after an undo
    vectors = column(fold.holder(vector) for vector in range(len(fold.holders)))
    return replace(
        present,
        n_vectors=len(vectors),
        next_subcluster=fold.next_subcluster,
        next_cluster=fold.next_cluster,
        sums=_sums(present, columns["numbers"], vectors, fold.missing_weights, keep),
        vectors=vectors,
        **columns,
    )


def ledger_after(present: Ledger, timeline: Timeline, base: Base, state: State) -> Ledger:
    """Return the ledger that events lead to from a base, with the current length of the log.

    Raise SnapshotError if it does not fit the state that the same events led to.
    """
    ledger = copy.deepcopy(base.ledger)
    ledger.texts = present.texts
    with _distrusted():
        ledger.read(timeline.rows, timeline.sequences)
    ledger.n_events = present.n_events
    records.check(ledger, state)
    return ledger


def _sums(
    present: State, numbers: Integers, vectors: Integers, missing: dict[int, int], keep: HasVectors
) -> Integers:
    """Return the sums of nodes: the current sum if a node has the same vectors, else a new sum."""
    sums = np.zeros((len(numbers), present.dimension), dtype=np.int64)
    changed = _changed(present, vectors, missing)
    same = np.isin(numbers, present.numbers) & ~np.isin(numbers, changed)
    sums[same] = present.sums[np.searchsorted(present.numbers, numbers[same])]
    members = np.flatnonzero(np.isin(vectors, numbers[~same]) & (vectors >= 0))
    for start in range(0, len(members), _BLOCK):
        block = members[start : start + _BLOCK]
        rows = keep.rows(block).astype(np.int64)
        for place, member in enumerate(block.tolist()):
            if member in missing:
                rows[place] = share(rows[place], missing[member])
        nodes, places = np.unique(vectors[block], return_inverse=True)
        sums[np.searchsorted(numbers, nodes)] += gathered(rows, places, len(nodes))
    return sums


def _changed(present: State, vectors: Integers, missing: dict[int, int]) -> Integers:
    """Return nodes whose vectors differ from the current ones, or have less than full weight."""
    n = max(len(vectors), len(present.vectors))
    now, then = np.full(n, -1, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    now[: len(present.vectors)] = present.vectors
    then[: len(vectors)] = vectors
    differ = np.flatnonzero(now != then)
    partial = vectors[[vector for vector in missing if vector < len(vectors)]]
    return np.unique(np.concatenate([now[differ], then[differ], partial.astype(np.int64)]))
