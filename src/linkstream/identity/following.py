"""Follow the log: which vectors and clusters each event changed, with undo and redo.

A `Follower` reads each event once and records what the event did to the labels of vectors and to
the IDs of clusters. A report on any two moments is then made from the records between them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable

import numpy as np

from linkstream.engine import events
from linkstream.engine.state import State
from linkstream.identity.change_records import ABSENT, GONE, HELD, Records, Rows

_AT_ONCE = 20_000  # events that are lists of Python's numbers together

Fetch = Callable[[int, int], Rows]  # events of the log from one sequence number up to another
Stretches = list[tuple[int, int]]
_Edges = dict[int, set[int]]


class _Node:
    """A subcluster: its cluster, its vectors, its neighbours (None until it has one)."""

    __slots__ = ("cluster", "neighbours", "vectors")

    def __init__(self, cluster: int, vectors: Iterable[int] = ()) -> None:
        self.cluster = cluster
        self.vectors = array("q", vectors)
        self.neighbours: set[int] | None = None


class Follower:
    """The subclusters after the events that were read, and the records of what each event did.

    Args:
        fetch: returns events that were read before; undo and redo read again what they name.
        base: the state before the first event; None if that is the first event of all.
        n_events: the sequence number of the first event to read.

    Attributes:
        fetch: as given.
        first_event: the sequence number of the first event that was read.
        n_events: the sequence number of the next event to read.
        vectors: records of vector, label before, label after.
        clusters: records of cluster, whether it was there before, and after, and another cluster:
            the one that it came out of or went into, or −1.
    """

    def __init__(self, fetch: Fetch, base: State | None = None, n_events: int = 0) -> None:
        self.fetch = fetch
        self.first_event = self.n_events = n_events
        self.vectors, self.clusters = Records(3), Records(4)
        self._nodes: dict[int, _Node] = {}
        self._kept: dict[int, _Node | int | _Edges] = {}  # what undoing an event needs, by number
        self._standing: Stretches = []
        self._taken: list[tuple[int, Stretches]] = []  # by each undo that can be redone
        self._now = n_events  # the event under which changes are recorded
        self._held: set[int] = set()
        self._decided: set[int] = set()  # events by which a vector was held no longer
        self._left = (-1, -1)  # the last vector that was taken out of a cluster, and the cluster
        if base is not None:
            self._begin(base)

    def hold(self, vectors: Iterable[int]) -> Follower:
        """Say which vectors are held in the base; return the follower."""
        self._held.update(vectors)
        return self

    def _begin(self, base: State) -> None:
        places = zip(base.numbers.tolist(), base.clusters.tolist(), strict=True)
        self._nodes = {number: _Node(cluster) for number, cluster in places}
        for vector, number in enumerate(base.vectors.tolist()):
            if number >= 0:
                self._nodes[number].vectors.append(vector)
        for a, b in base.edges.tolist():
            self._link(a, b)

    def read(self, rows: Rows) -> None:
        """Read the next events of the log."""
        turns = np.flatnonzero(np.isin(rows[:, 0], (events.UNDONE, events.REDONE))).tolist()
        start = 0
        for place in [*turns, len(rows)]:
            if place > start:
                self._go_on(rows[start:place])
            if place < len(rows):
                self._turn(int(rows[place, 0]), int(rows[place, 2]))
            start = place + 1

    def _go_on(self, rows: Rows) -> None:
        first, end = self.n_events, self.n_events + len(rows)
        self._taken.clear()
        if self._standing and self._standing[-1][1] == first:
            first_standing = self._standing.pop()[0]
        else:
            first_standing = first
        self._standing.append((first_standing, end))
        for start in range(0, len(rows), _AT_ONCE):
            some = rows[start : start + _AT_ONCE].tolist()
            for self._now, row in enumerate(some, first + start):
                player = _PLAYERS.get(row[0])
                if player is not None:
                    player(self, self._now, *row[1:])
        self.n_events = end

    def _turn(self, code: int, named: int) -> None:
        """Undo all from an event on, or redo what an undo took."""
        self._now = self.n_events
        if code == events.UNDONE:
            gone = [(max(first, named), end) for first, end in self._standing if end > named]
            kept = [(first, min(end, named)) for first, end in self._standing if first < named]
            self._standing = kept
            self._taken.append((self.n_events, gone))
            for first, end in reversed(gone):
                self._play(_BACKWARD, list(enumerate(self.fetch(first, end).tolist(), first))[::-1])
        elif self._taken and self._taken[-1][0] == named:
            gone = self._taken.pop()[1]
            self._standing += gone
            for first, end in gone:
                self._play(_PLAYERS, list(enumerate(self.fetch(first, end).tolist(), first)))
        self.n_events += 1

    def _play(
        self, players: dict[int, Callable[..., None]], rows: list[tuple[int, list[int]]]
    ) -> None:
        for sequence, row in rows:
            player = players.get(row[0])
            if player is not None:
                player(self, sequence, *row[1:])

    # What changes, with its record

    def _put(self, vector: int, number: int, before: int) -> None:
        node = self._nodes[number]
        node.vectors.append(vector)
        self.vectors.append(self._now, vector, before, node.cluster)

    def _decide(self, sequence: int, vector: int) -> int:
        """Hold a vector no longer; return its label before: HELD, or GONE if it was not held."""
        if vector not in self._held:
            return GONE
        self._held.remove(vector)
        self._decided.add(sequence)
        return HELD

    def _undecide(self, sequence: int, vector: int) -> int:
        """Take `_decide` back; return what it returned."""
        if sequence not in self._decided:
            return GONE
        self._decided.remove(sequence)
        self._held.add(vector)
        return HELD

    def _take(self, number: int, after: int) -> None:
        """Take the last vector out of a node."""
        node = self._nodes[number]
        self.vectors.append(self._now, node.vectors.pop(), node.cluster, after)

    def _relabel(self, start: int, cluster: int) -> None:
        """Give a tree of nodes to another cluster."""
        for number in self._tree(start):
            node = self._nodes[number]
            self.vectors.append_many(self._now, node.vectors, node.cluster, cluster)
            node.cluster = cluster

    def _came(self, cluster: int, out_of: int = -1) -> None:
        self.clusters.append(self._now, cluster, 0, 1, out_of)

    def _went(self, cluster: int, into: int = -1) -> None:
        self.clusters.append(self._now, cluster, 1, 0, into)

    # The graph

    def _link(self, a: int, b: int) -> None:
        for end, other in ((a, b), (b, a)):
            node = self._nodes[end]
            if node.neighbours is None:
                node.neighbours = set()
            node.neighbours.add(other)

    def _unlink(self, a: int, b: int) -> None:
        for end, other in ((a, b), (b, a)):
            neighbours = self._nodes[end].neighbours
            assert neighbours is not None, "the log names edges that are there"
            neighbours.remove(other)

    def _tree(self, start: int) -> set[int]:
        seen, todo = {start}, [start]
        while todo:
            for number in (self._nodes[todo.pop()].neighbours or set()) - seen:
                seen.add(number)
                todo.append(number)
        return seen

    def _give_edges(self, number: int, heir: int) -> _Node:
        """Remove a node; its edges go to an heir, or are removed if that is −1."""
        gone = self._nodes[number]
        for other in [*(gone.neighbours or ())]:
            self._drop_end(other, number)
            if other != heir and heir >= 0:
                self._link(heir, other)
        return self._nodes.pop(number)

    def _drop_end(self, number: int, other: int) -> None:
        neighbours = self._nodes[number].neighbours
        assert neighbours is not None, "edges have two ends"
        neighbours.remove(other)

    def _take_edges(self, number: int, node: _Node, heir: int) -> None:
        """Put a node back that `_give_edges` removed."""
        self._nodes[number] = node
        edges, node.neighbours = node.neighbours, None
        for other in edges or ():
            if other != heir and heir >= 0:
                self._unlink(heir, other)
            self._link(number, other)

    # Events, forward

    def _created(self, _: int, vector: int, number: int, cluster: int, *__: int) -> None:
        self._nodes[number] = _Node(cluster)
        self._came(cluster)
        self._put(vector, number, ABSENT)

    def _joined(self, _: int, vector: int, number: int, *__: int) -> None:
        node = self._nodes[number]  # as `_put`: most events are of this kind
        node.vectors.append(vector)
        self.vectors.append(self._now, vector, ABSENT, node.cluster)

    def _linked(
        self, _: int, vector: int, number: int, partner: int, cluster: int, *__: int
    ) -> None:
        self._nodes[number] = _Node(cluster)
        self._link(number, partner)
        self._put(vector, number, ABSENT)

    def _merged(self, sequence: int, _: int, number: int, absorbed: int, *__: int) -> None:
        gone = self._kept[sequence] = self._give_edges(absorbed, number)
        self._nodes[number].vectors.extend(gone.vectors)

    def _severed(self, _: int, __: int, a: int, b: int, *___: int) -> None:
        self._unlink(a, b)

    def _rejoined(self, _: int, __: int, a: int, b: int, *___: int) -> None:
        self._link(a, b)

    def _split(self, _: int, __: int, number: int, ___: int, cluster: int, fresh: int) -> None:
        self._came(fresh, cluster)
        self._relabel(number, fresh)

    def _united(self, sequence: int, _: int, a: int, b: int, kept: int, gone: int) -> None:
        start = self._kept[sequence] = a if self._nodes[a].cluster == gone else b
        self._went(gone, kept)
        self._relabel(start, kept)
        self._link(a, b)

    _tied = _united

    def _retied(self, _: int, __: int, a: int, b: int, old: int, old_partner: int) -> None:
        self._unlink(old, old_partner)
        self._link(a, b)

    def _removed(self, sequence: int, _: int, member: int, number: int, *__: int) -> None:
        node = self._nodes[number]
        place = self._kept[sequence] = node.vectors.index(member)
        node.vectors.pop(place)
        self._left = member, node.cluster
        self.vectors.append(self._now, member, node.cluster, GONE)

    def _moved(
        self, sequence: int, _: int, member: int, number: int, partner: int, cluster: int
    ) -> None:
        fresh = number not in self._nodes
        origin = self._left[1] if self._left[0] == member else -1
        self._kept[sequence] = origin if fresh else _OLD
        if fresh:
            self._nodes[number] = _Node(cluster)
            if partner >= 0:
                self._link(number, partner)
            else:
                self._came(cluster, origin)
        self._put(member, number, self._decide(sequence, member))

    def _deferred(self, _: int, vector: int, *__: int) -> None:
        self._held.add(vector)
        self.vectors.append(self._now, vector, ABSENT, HELD)

    def _dropped(self, sequence: int, _: int, member: int, *__: int) -> None:
        if self._decide(sequence, member) == HELD:
            self.vectors.append(self._now, member, HELD, GONE)

    def _vanished(self, sequence: int, _: int, number: int, heir: int, *__: int) -> None:
        node = self._kept[sequence] = self._give_edges(number, heir)
        self.vectors.append_many(self._now, node.vectors, node.cluster, GONE)
        if heir < 0:
            self._went(node.cluster)

    def _rebuilt(self, sequence: int, *_: int) -> None:
        edges = {number: node.neighbours for number, node in self._nodes.items() if node.neighbours}
        self._kept[sequence] = edges
        for number in edges:
            self._nodes[number].neighbours = None

    def _parted(self, _: int, __: int, cluster: int, fresh: int, *___: int) -> None:
        self._came(fresh, cluster)

    def _transferred(
        self, sequence: int, _: int, member: int, origin: int, number: int, cluster: int
    ) -> None:
        if member < 0:
            self._kept[sequence] = self._nodes[number].cluster
            self._relabel(number, cluster)
            return
        node = self._nodes[origin]
        place = self._kept[sequence] = node.vectors.index(member)
        node.vectors.pop(place)
        self._put(member, self._there(number, cluster), node.cluster)

    def _there(self, number: int, cluster: int) -> int:
        """Return a node's number; add the node to a cluster if there is none."""
        if number not in self._nodes:
            self._nodes[number] = _Node(cluster)
        return number

    def _replaced(self, _: int, __: int, kept: int, gone: int, *___: int) -> None:
        self._went(gone, kept)

    def _bound(self, _: int, __: int, a: int, b: int, *___: int) -> None:
        self._link(a, b)

    # Events, backward

    def _back_created(self, _: int, __: int, number: int, cluster: int, *___: int) -> None:
        self._take(number, ABSENT)
        del self._nodes[number]
        self._went(cluster)

    def _back_joined(self, _: int, __: int, number: int, *___: int) -> None:
        self._take(number, ABSENT)

    def _back_linked(self, _: int, __: int, number: int, partner: int, *___: int) -> None:
        self._take(number, ABSENT)
        self._drop_end(partner, number)
        del self._nodes[number]

    def _back_merged(self, sequence: int, _: int, number: int, absorbed: int, *__: int) -> None:
        gone = self._kept.pop(sequence)
        assert isinstance(gone, _Node)
        vectors = self._nodes[number].vectors
        del vectors[len(vectors) - len(gone.vectors) :]
        self._take_edges(absorbed, gone, number)

    def _back_split(self, _: int, __: int, number: int, ___: int, cluster: int, fresh: int) -> None:
        self._went(fresh, cluster)
        self._relabel(number, cluster)

    def _back_united(self, sequence: int, _: int, a: int, b: int, kept: int, gone: int) -> None:
        start = self._kept.pop(sequence)
        assert isinstance(start, int)
        self._unlink(a, b)
        self._came(gone, kept)
        self._relabel(start, gone)

    _back_tied = _back_united
    _back_severed, _back_rejoined = _rejoined, _severed

    def _back_retied(self, _: int, __: int, a: int, b: int, old: int, old_partner: int) -> None:
        self._unlink(a, b)
        self._link(old, old_partner)

    def _back_removed(self, sequence: int, _: int, member: int, number: int, *__: int) -> None:
        place = self._kept.pop(sequence)
        assert isinstance(place, int)
        node = self._nodes[number]
        node.vectors.insert(place, member)
        self.vectors.append(self._now, member, GONE, node.cluster)

    def _back_moved(
        self, sequence: int, _: int, member: int, number: int, partner: int, cluster: int
    ) -> None:
        origin = self._kept.pop(sequence)
        assert isinstance(origin, int)
        self._take(number, self._undecide(sequence, member))
        if origin == _OLD:
            return
        if partner >= 0:
            self._drop_end(partner, number)
        else:
            self._went(cluster, origin)
        del self._nodes[number]

    def _back_deferred(self, _: int, vector: int, *__: int) -> None:
        self._held.remove(vector)
        self.vectors.append(self._now, vector, HELD, ABSENT)

    def _back_dropped(self, sequence: int, _: int, member: int, *__: int) -> None:
        if self._undecide(sequence, member) == HELD:
            self.vectors.append(self._now, member, GONE, HELD)

    def _back_rebuilt(self, sequence: int, *_: int) -> None:
        edges = self._kept.pop(sequence)
        assert isinstance(edges, dict)
        for number, neighbours in edges.items():
            self._nodes[number].neighbours = neighbours

    def _back_parted(self, _: int, __: int, cluster: int, fresh: int, *___: int) -> None:
        self._went(fresh, cluster)

    def _back_transferred(
        self, sequence: int, _: int, member: int, origin: int, number: int, *__: int
    ) -> None:
        place = self._kept.pop(sequence)
        assert isinstance(place, int)
        if member < 0:
            self._relabel(number, place)
            return
        node = self._nodes[origin]
        self._take(number, node.cluster)
        if not self._nodes[number].vectors:
            del self._nodes[number]
        node.vectors.insert(place, member)

    def _back_replaced(self, _: int, __: int, kept: int, gone: int, *___: int) -> None:
        self._came(gone, kept)

    def _back_bound(self, _: int, __: int, a: int, b: int, *___: int) -> None:
        self._unlink(a, b)

    def _back_vanished(self, sequence: int, _: int, number: int, heir: int, *__: int) -> None:
        node = self._kept.pop(sequence)
        assert isinstance(node, _Node)
        self._take_edges(number, node, heir)
        self.vectors.append_many(self._now, node.vectors, GONE, node.cluster)
        if heir < 0:
            self._came(node.cluster)


_OLD = -2  # kept for a vector that was moved into a node that was there before
_PLAYERS: dict[int, Callable[..., None]] = events.methods(Follower)
_BACKWARD: dict[int, Callable[..., None]] = {
    code: getattr(Follower, f"_back_{events.CLASSES[code].kind}") for code in _PLAYERS
}
