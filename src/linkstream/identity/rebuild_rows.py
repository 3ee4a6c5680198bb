"""What a rebuild clusters: rows in an order that follows from the content alone.

A *unit* is what stays together: one vector, or a subcluster that a person spoke of as a whole. A
*row* is one unit, or the units that corrections tie. Rows are ordered by the digests of their
vectors; equal ones by the graph of the rows that may not share a group (canonical.py). Units are
in the order of their rows, then of their own digests. Numbers and order of arrival decide nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from linkstream.engine.forest import CLAIM, FULL, GIVEN_FLAGS, LOCKED, find_root
from linkstream.engine.graph import column
from linkstream.engine.linkage import Restrictions
from linkstream.engine.state import Integers, State
from linkstream.identity.canonical import canonical_order
from linkstream.identity.content import Content, Digests, digest_of, numbers_of
from linkstream.identity.ledger import GONE, Ledger

LIMIT = 20_000  # rows that are compared with one another; more are first gathered by a replay

# Takes a content, and places of vectors in it in order; returns a number for the subcluster of each
Replay = Callable[[Content, Integers], Integers]


@dataclass(frozen=True, slots=True)
class Relation:
    """Units of two sides that must share a cluster, or of which none of two may."""

    together: bool
    sides: tuple[tuple[int, ...], tuple[int, ...]]

    def renumbered(self, new: Integers) -> Relation:
        """Return the relation with other numbers of units."""
        one, other = (tuple(new[list(side)].tolist()) for side in self.sides)
        return Relation(self.together, (one, other))


@dataclass(frozen=True, slots=True)
class Labels:
    """A number for each name, and the names of clusters that are kept apart, by ID."""

    numbers: dict[str, int]
    clusters: dict[int, str] = field(default_factory=dict)

    def of(self, clusters: Integers) -> Integers:
        """Return the number of the name of each cluster that is kept apart, −1 for others."""
        found = np.full(len(clusters), -1, dtype=np.int64)
        for cluster, name in self.clusters.items():
            found[clusters == cluster] = self.numbers[name]
        return found


@dataclass(frozen=True, slots=True)
class Units:
    """Units in canonical order, and the row of each.

    Attributes:
        content: the vectors.
        owners: the unit of each vector, by its place in the content.
        nodes: of each unit, the number of the subcluster that it stays; −1: none.
        whole: of each unit, whether it stays one subcluster.
        clusters: the present cluster of each vector.
        names: of units that claim the ID of a named cluster, the name.
        relations: what corrections and groups require.
        rows: the row of each unit.
    """

    content: Content
    owners: Integers
    nodes: Integers
    whole: npt.NDArray[np.bool_]
    clusters: Integers
    names: dict[int, str]
    relations: list[Relation]
    rows: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @classmethod
    def of(cls, content: Content, state: State, ledger: Ledger) -> Units:
        """Return the units of a state."""
        fixed = _spoken_of(state, ledger)
        owners = _owners(content, state, ledger, fixed)
        n = int(owners.max(initial=len(fixed) - 1)) + 1
        nodes = np.full(n, -1, dtype=np.int64)
        nodes[: len(fixed)] = fixed
        held = np.searchsorted(state.numbers, state.vectors[content.numbers])
        names = _claimed(state, ledger, fixed)
        units = cls(content, owners, nodes, nodes >= 0, state.clusters[held], names, [])
        units = replace(units, relations=_relations(units, ledger))
        flags = state.flags[np.searchsorted(state.numbers, fixed)] & GIVEN_FLAGS
        return units._tied()._in_order(flags.tolist())

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.rows.max(initial=-1)) + 1

    def vector_rows(self) -> Integers:
        """Return the row of each vector."""
        return self.rows[self.owners]

    def restrictions(self, labels: Labels) -> Restrictions:
        """Return which rows may not share a group; `labels` are those of clusters, by ID."""
        found = np.full(self.n_rows, -1, dtype=np.int64)
        np.maximum.at(found, self.vector_rows(), labels.of(self.clusters))
        for unit, name in self.names.items():
            found[self.rows[unit]] = labels.numbers[name]
        return Restrictions(self._barred(), found)

    def _barred(self) -> Integers:
        """Return the pairs of rows that corrections or groups keep apart, in order."""
        return _pairs(self.rows[self._barred_units()])

    def _barred_units(self) -> Integers:
        """Return the pairs of units that corrections or groups keep apart, in order."""
        found = [
            (a, b)
            for relation in self.relations
            if not relation.together
            for a in relation.sides[0]
            for b in relation.sides[1]
            if a != b
        ]
        return _pairs(np.array(found, dtype=np.int64).reshape(-1, 2))

    def gathered(self, replay: Replay, labels: Labels, limit: int = LIMIT) -> Units:
        """Return units of fewer rows: those of single, untied vectors gathered by a replay.

        Vectors of different labels are replayed apart. Of the vectors that a replay puts into one
        subcluster, those that may not share a cluster stay units of their own.
        """
        if self.n_rows <= limit:
            return self
        single = (self.nodes < 0) & (np.bincount(self.rows) == 1)[self.rows]
        order = np.argsort(self.owners, kind="stable")
        order = order[single[self.owners[order]]]  # in the order of the units
        leader, apart = np.arange(len(self.nodes)), labels.of(self.clusters[order])
        for label in np.unique(apart).tolist():
            places = order[apart == label]
            units = self.owners[places]
            leader[units] = _firsts(replay(self.content, places), units)
        single[self._clashing(leader)] = False
        units = np.flatnonzero(single)
        found = np.arange(len(leader))
        found[units] = _firsts(leader[units], units)
        return self._merged(found, single)

    def _clashing(self, leader: Integers) -> Integers:
        """Return the units that may not share a group with another of the same leader."""
        pairs = self._barred_units()
        return np.unique(pairs[leader[pairs[:, 0]] == leader[pairs[:, 1]]])

    def _merged(self, leader: Integers, gathered: npt.NDArray[np.bool_]) -> Units:
        """Return units of which some were gathered into the first of them."""
        kept, new = np.unique(leader, return_inverse=True)
        return replace(
            self,
            owners=new[self.owners],
            nodes=self.nodes[kept],
            whole=(self.whole | gathered)[kept],
            names={int(new[unit]): name for unit, name in self.names.items()},
            relations=[each.renumbered(new) for each in self.relations],
        )._tied()

    def _in_order(self, flags: list[int]) -> Units:
        """Return the units in canonical order; `flags` are those of subclusters."""
        keys = self._digests(flags)
        ranks = _ranks(self._row_digests(keys), self._barred())
        order = np.lexsort((keys[:, 1], keys[:, 0], ranks[self.rows]))
        new = np.argsort(order)
        return replace(
            self,
            owners=new[self.owners],
            nodes=self.nodes[order],
            whole=self.whole[order],
            names={int(new[unit]): name for unit, name in self.names.items()},
            relations=[each.renumbered(new) for each in self.relations],
            rows=ranks[self.rows][order],
        )

    def _digests(self, flags: list[int]) -> Digests:
        """Return the digest of each unit; `flags` are those of subclusters, which come first."""
        digests = self.content.digests()
        found = np.zeros((len(self.nodes), 2), dtype=np.uint64)
        found[self.owners] = digests
        places = np.argsort(self.owners, kind="stable")
        starts = np.searchsorted(self.owners[places], np.arange(len(flags) + 1))
        for unit, flag in enumerate(flags):
            mine = digests[places[starts[unit] : starts[unit + 1]]]
            name = self.names.get(unit, "").encode()
            found[unit] = numbers_of(digest_of(bytes([flag]), name, _sorted_bytes(mine)))[0]
        return found

    def _row_digests(self, keys: Digests) -> Digests:
        """Return the digest of each row; `keys` are those of units."""
        found = np.zeros((self.n_rows, 2), dtype=np.uint64)
        found[self.rows] = keys
        order = np.argsort(self.rows, kind="stable")
        starts = np.searchsorted(self.rows[order], np.arange(self.n_rows + 1))
        for row in np.flatnonzero(np.diff(starts) > 1).tolist():
            mine = keys[order[starts[row] : starts[row + 1]]]
            found[row] = numbers_of(digest_of(_sorted_bytes(mine)))[0]
        return found

    def _tied(self) -> Units:
        """Return the units with their rows: those that must share a cluster share a row."""
        root = list(range(len(self.nodes)))
        for relation in self.relations:
            units = [*relation.sides[0], *relation.sides[1]] if relation.together else []
            for unit in units[1:]:
                one, other = sorted((find_root(root, units[0]), find_root(root, unit)))
                root[other] = one
        tops = column(find_root(root, unit) for unit in range(len(root)))
        return replace(self, rows=np.unique(tops, return_inverse=True)[1])


def _spoken_of(state: State, ledger: Ledger) -> Integers:
    """Return the subclusters that are locked, claim an ID, or were corrected as a whole."""
    given = state.numbers[state.flags & GIVEN_FLAGS > 0].tolist()
    whole = [pin.node for pin in ledger.pins if pin.vector < 0 and pin.node != GONE]
    return np.array(sorted({*given, *whole}), dtype=np.int64)


def _owners(content: Content, state: State, ledger: Ledger, fixed: Integers) -> Integers:
    """Return the unit of each vector: those of fixed subclusters come first, then single vectors.

    A vector that a locked subcluster did not learn from is a unit of its own.
    """
    holders = state.vectors[content.numbers]
    inside = np.isin(holders, fixed)
    lacking = ledger.missing_weights.items()
    stray = column(vector for vector, missing in lacking if missing == FULL)
    inside[content.places(stray[state.vectors[stray] >= 0])] = False
    owners = np.empty(len(content), dtype=np.int64)
    owners[inside] = np.searchsorted(fixed, holders[inside])
    owners[~inside] = len(fixed) + np.arange(np.count_nonzero(~inside))
    return owners


def _claimed(state: State, ledger: Ledger, fixed: Integers) -> dict[int, str]:
    """Return the names of clusters that a subcluster claims, by its unit."""
    places = np.searchsorted(state.numbers, fixed)
    claims = np.flatnonzero(state.flags[places] & (CLAIM | LOCKED)).tolist()
    clusters = state.clusters[places].tolist()
    return {u: ledger.names[clusters[u]] for u in claims if clusters[u] in ledger.names}


def _relations(units: Units, ledger: Ledger) -> list[Relation]:
    """Return what corrections and groups say of units."""
    of_node = {node: unit for unit, node in enumerate(units.nodes.tolist()) if node >= 0}

    def side(pins: Sequence[int]) -> tuple[int, ...]:
        standing = [ledger.pins[pin] for pin in pins if ledger.pins[pin].node != GONE]
        vectors = column(pin.vector for pin in standing if pin.vector >= 0)
        found = units.owners[units.content.places(vectors)].tolist()
        return (*found, *(of_node[pin.node] for pin in standing if pin.vector < 0))

    found = [
        Relation(law.together, (side(law.sides[0]), side(law.sides[1]))) for law in ledger.laws
    ]
    found += [Relation(False, (group, group)) for group in map(side, ledger.groups)]
    return [each for each in found if all(each.sides)]


def _sorted_bytes(digests: Digests) -> bytes:
    """Return digests in order, as bytes."""
    return digests[np.lexsort(digests.T[::-1])].astype(">u8").tobytes()


def _pairs(pairs: Integers) -> Integers:
    """Return pairs without their order or repetitions, the lower first."""
    return np.unique(np.sort(pairs, axis=1), axis=0)


def _firsts(labels: Integers, units: Integers) -> Integers:
    """Return the first of the units that have the label of each."""
    _, firsts, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return units[firsts][inverse]


def _ranks(digests: Digests, barred: Integers) -> Integers:
    """Return the place of each row: by digest, those that are barred after equal ones.

    Only barred rows that are equal need the graph of the pairs: digests tell the others apart.
    """
    named = np.unique(barred)
    later = np.zeros(len(digests), dtype=np.int64)
    later[named] = 1
    _, places, counts = np.unique(digests[named], axis=0, return_inverse=True, return_counts=True)
    alike = named[counts[places.reshape(-1)] > 1]
    ends = np.isin(barred, alike)
    graph = list(map(tuple, barred[ends.all(axis=1)].tolist()))
    order = canonical_order(_colours(alike, digests, barred[ends.any(axis=1)]), graph)
    later[order] = 1 + np.arange(len(order))
    return np.argsort(np.lexsort((later, digests[:, 1], digests[:, 0])))


def _colours(rows: Integers, digests: Digests, barred: Integers) -> dict[int, bytes]:
    """Return the digests of some rows, each with those of the other rows it is barred from."""
    told: dict[int, list[bytes]] = {row: [] for row in rows.tolist()}
    for pair in barred.tolist():
        for one, other in (pair, pair[::-1]):
            if one in told and other not in told:
                told[one].append(_sorted_bytes(digests[[other]]))
    return {
        row: digest_of(_sorted_bytes(digests[[row]]), *sorted(those)) for row, those in told.items()
    }
