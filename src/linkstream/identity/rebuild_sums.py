"""Rebuild from sums alone: cluster the subclusters again, where their vectors are not kept.

A subcluster stays what it is: its vectors move with it. Margin linkage (engine/linkage.py) groups
the subclusters, of which those that corrections tie are one row from the start. What corrections
and groups keep apart is never united, nor are subclusters that claim the IDs of different names.
IDs follow by majority as in any rebuild (rebuild_ids.py). The result depends on which vectors
share a subcluster, and so on their order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from linkstream.engine.forest import CLAIM, LOCKED
from linkstream.engine.graph import column
from linkstream.engine.linkage import Floats, Progress, Restrictions, Unite
from linkstream.engine.state import Integers, State
from linkstream.errors import ArgumentError
from linkstream.identity.content import Content
from linkstream.identity.laws import Laws, blocs
from linkstream.identity.ledger import Ledger
from linkstream.identity.rebuild_rows import Labels
from linkstream.identity.rebuilding import Partition, colliding_names, counted, edges_of
from linkstream.identity.sum_translation import Gathered, missing_weights
from linkstream.paper.thresholds import Thresholds

_PART = 2**21  # the numbers below it, and their negatives, are exact in single precision


@dataclass(frozen=True, slots=True, eq=False)
class SubclusterSums:
    """The sums of all subclusters in another encoder, in order of number.

    Attributes:
        of: what the sums are of, in a journal.
        sums: one exact sum a row.
    """

    of: ClassVar[str] = "subclusters"
    sums: Integers

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray[Any, Any]:
        """Return three rows for each sum: its high, middle and low 21 bits, exact as float32."""
        parts = (self.sums // _PART**2, self.sums // _PART % _PART, self.sums % _PART)
        rows = np.stack(parts, axis=1).reshape(3 * len(self.sums), -1)
        return rows.astype(np.float32)

    @classmethod
    def of_rows(cls, rows: np.ndarray[Any, Any] | None) -> SubclusterSums:
        """Return the sums whose rows these are."""
        if rows is None:
            raise ValueError("sums without rows")
        high, middle, low = (rows[part::3].astype(np.int64) for part in range(3))
        return cls((high * _PART + middle) * _PART + low)

    def equals(self, other: object) -> bool:
        """Return whether the other has the same sums."""
        return isinstance(other, SubclusterSums) and np.array_equal(self.sums, other.sums)


@dataclass(frozen=True, slots=True)
class Subclusters:
    """Subclusters in place of vectors.

    Attributes:
        numbers: their numbers.
        fixed: their sums.
        masses: the weight of each.
    """

    numbers: Integers
    fixed: Integers
    masses: Floats

    @classmethod
    def of(cls, state: State, sums: Integers) -> Subclusters:
        """Return the subclusters of a state with other sums; raise ArgumentError if they differ."""
        if len(sums) != len(state.numbers):
            raise ArgumentError(
                f"{len(sums)} sums for {len(state.numbers)} subclusters",
                expected="one sum for each subcluster",
                remedy="Compute them from the present state.",
            )
        return cls(state.numbers, sums, state.masses())

    def __len__(self) -> int:
        return len(self.numbers)

    def weights(self) -> Floats:
        """Return the weight of each subcluster."""
        return self.masses

    def sums(self, owners: Integers, n: int) -> Integers:
        """Return n sums: row i is the sum of the subclusters whose owner is i; −1 is none."""
        found = np.zeros((n, self.fixed.shape[1]), dtype=np.int64)
        inside = np.flatnonzero(owners >= 0)
        np.add.at(found, owners[inside], self.fixed[inside])
        return found


def clustered_subclusters(
    items: Subclusters,
    state: State,
    ledger: Ledger,
    thresholds: Thresholds,
    unite: Unite,
    progress: Progress | None = None,
) -> Partition:
    """Return the groups of subclusters, with their sums in the other encoder."""
    members = blocs(state)
    rows = _rows(state, members)
    masses = np.bincount(rows, items.masses, minlength=len(members)).astype(np.float64)
    totals, barred = items.sums(rows, len(members)), Laws.of(ledger).rows(state, members)
    labels = Labels({name: i for i, name in enumerate(sorted(ledger.names.values()))})
    while True:
        restrictions = Restrictions(barred, _row_labels(state, ledger, labels, rows))
        unions = unite(totals, masses, thresholds, restrictions, progress)
        groups = unions.groups(len(members))[rows]
        homes = _homes(state, groups)
        colliding = colliding_names(homes, ledger.names)
        if not colliding:
            break
        labels = replace(labels, clusters=labels.clusters | colliding)
    counts, places = state.counts, np.arange(len(rows))
    edges = edges_of(places.tolist(), rows.tolist(), unions, counts.tolist())
    return Partition(items, state.clusters, places, groups, state.numbers, edges, homes, counts)


def _rows(state: State, members: list[list[int]]) -> Integers:
    """Return the row of each subcluster."""
    row = {number: place for place, some in enumerate(members) for number in some}
    return column(row[number] for number in state.numbers.tolist())


def _row_labels(state: State, ledger: Ledger, labels: Labels, rows: Integers) -> Integers:
    """Return the number of the name that each row must keep; −1: none."""
    found = labels.of(state.clusters)
    for place in np.flatnonzero(state.flags & (CLAIM | LOCKED)).tolist():
        name = ledger.names.get(int(state.clusters[place]))
        found[place] = found[place] if name is None else labels.numbers[name]
    of_row = np.full(int(rows.max(initial=-1)) + 1, -1, dtype=np.int64)
    np.maximum.at(of_row, rows, found)
    return of_row


def _homes(state: State, groups: Integers) -> dict[int, int]:
    """Return the group that holds most of the vectors of each cluster (tie: the first).

    Subclusters that claim the ID of their cluster count before vectors.
    """
    claiming = (state.flags & CLAIM > 0).astype(np.int64)
    columns = state.clusters, groups
    best: dict[int, tuple[int, int, int]] = {}
    for (cluster, group, n), (_, _, claims) in zip(
        counted(*columns, state.counts), counted(*columns, claiming), strict=True
    ):
        claim = claims, n, -group
        best[cluster] = max(best.get(cluster, claim), claim)
    return {cluster: -claim[2] for cluster, claim in best.items()}


def exact_sums(content: Content, state: State, ledger: Ledger) -> Integers:
    """Return the sum of each subcluster; `content` are all vectors, in the other encoder."""
    missing, dimension = missing_weights(state, ledger), content.fixed.shape[1]
    found = Gathered.of(state, missing, content.numbers, content.rows, dimension)
    return directed(found.sums)


def directed(sums: Integers) -> Integers:
    """Return sums of which none is zero: where vectors cancel out, any direction will do."""
    sums[~sums.any(axis=1), 0] = 1
    return sums
