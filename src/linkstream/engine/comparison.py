"""Compare whole clusters with one another, and the two parts on both sides of each edge.

Both give the similarity and s~ of two sums of vectors. Numerics are those of
engine/linkage.py: directions are rounded to 25 bits, so that products are exact on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from linkstream.engine import linkage
from linkstream.engine.fixed_point import dot, similarity
from linkstream.engine.forest import FULL
from linkstream.engine.linkage import CENTROID_SCALE, Floats, Progress
from linkstream.engine.state import Integers, State
from linkstream.paper.thresholds import Thresholds

_BLOCK = 512
SPREAD = 0.03  # margins so far from even odds have odds of e to one

# Of margins (rows × columns), sizes of the rows and of the columns: what each pair is worth.
Worth = Callable[[Floats, Floats, Floats], Floats]


def directions(sums: Integers) -> Floats:
    """Return unit centroids as integers of 25 bits; 0 where vectors cancel out."""
    some = np.any(sums != 0, axis=1)
    found = np.zeros(sums.shape)
    found[some] = linkage.centroids(sums[some])
    return found


def similarities(left: Floats, right: Floats) -> Floats:
    """Return the cosines of directions, row by row."""
    found: Floats = (left * right).sum(axis=1) / CENTROID_SCALE**2
    return found


def edge_figures(state: State) -> tuple[Floats, Floats]:
    """Return similarity and s~ of each edge."""
    ends = np.searchsorted(state.numbers, state.edges)
    units = linkage.centroids(state.sums)
    masses = state.masses()
    threshold = state.thresholds.edges(masses[ends[:, 0]], masses[ends[:, 1]])
    return similarities(units[ends[:, 0]], units[ends[:, 1]]), threshold


def elsewhere(state: State, vectors: npt.NDArray[np.int32], cluster: int) -> Floats:
    """Return the greatest similarity of each vector to another cluster; −1 if there is none."""
    totals = Totals.of(state)
    units = directions(totals.sums[totals.ids != cluster])
    scores = directions(vectors.astype(np.int64)) @ units.T / CENTROID_SCALE**2
    found: Floats = scores.max(axis=1, initial=-1.0)
    return found


def wholes(state: State, vector: npt.NDArray[np.int32]) -> tuple[Integers, Floats, Floats]:
    """Return the IDs of all clusters, their weights and exact similarities to a vector."""
    totals, q = Totals.of(state), vector.astype(np.int64)
    square = dot(q, q)
    scores = [
        similarity(dot(total, q), square, own) if (own := dot(total, total)) else -1.0
        for total in totals.sums
    ]
    return totals.ids, totals.masses, np.array(scores)


def near_clusters(
    state: State, vectors: npt.NDArray[np.int32], limit: int
) -> tuple[Integers, Floats]:
    """Return the clusters with the greatest margins to each vector, and these margins."""
    totals = Totals.of(state)
    squares = [dot(total, total) for total in totals.sums]
    apart = [i for i, square in enumerate(squares) if square]
    thresholds = state.thresholds.edges(totals.masses, np.ones_like(totals.masses))
    ids = np.full((len(vectors), limit), -1, dtype=np.int64)
    margins = np.full((len(vectors), limit), np.nan)
    for row, vector in enumerate(vectors.astype(np.int64)):
        own = dot(vector, vector)
        products = [similarity(dot(totals.sums[i], vector), own, squares[i]) for i in apart]
        found = np.array(products) - thresholds[apart]
        best = np.argsort(-found, kind="stable")[:limit]
        ids[row, : len(best)], margins[row, : len(best)] = totals.ids[apart][best], found[best]
    return ids, margins


def chance(lead: Floats, spread: float = SPREAD) -> Floats:
    """Return the logistic function of margins beyond even odds; e to one `spread` beyond."""
    return 1.0 / (1.0 + np.exp(np.clip(-lead / spread, -60.0, 60.0)))


@dataclass(frozen=True, slots=True)
class ClusterRestrictions:
    """Which clusters are not compared, by ID.

    Attributes:
        barred: pairs of clusters that corrections keep apart, in order, the older first.
        names: clusters of different names are apart, too.
        left_out: clusters that are not compared at all.
    """

    barred: Integers = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))
    names: Mapping[int, str] = field(default_factory=dict)
    left_out: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Comparison:
    """All clusters as wholes; a pair is two rows of `totals`.

    Attributes:
        barred: pairs that corrections keep apart.
        labels: a number for the name of each row, −1 for none; rows of two names are apart, too.
        left_out: rows of clusters that are not compared.
    """

    thresholds: Thresholds
    totals: Totals
    units: Floats
    barred: Integers
    labels: Integers
    left_out: Integers

    @classmethod
    def of(cls, state: State, given: ClusterRestrictions | None = None) -> Comparison:
        """Return the comparison of the clusters of a state."""
        given = given or ClusterRestrictions()
        totals = Totals.of(state)
        here = np.isin(given.barred, totals.ids).all(axis=1)
        barred = np.searchsorted(totals.ids, given.barred[here])
        names = [given.names.get(cluster) for cluster in totals.ids.tolist()]
        number = {name: i for i, name in enumerate(sorted({n for n in names if n is not None}))}
        labels = np.array([-1 if n is None else number[n] for n in names], dtype=np.int64)
        left_out = np.flatnonzero(np.isin(totals.ids, given.left_out))
        return cls(state.thresholds, totals, directions(totals.sums), barred, labels, left_out)

    def figures(self, pairs: Integers) -> tuple[Floats, Floats]:
        """Return similarity and s~ of each pair of clusters."""
        first, second = pairs[:, 0], pairs[:, 1]
        masses = self.totals.masses
        required = self.thresholds.edges(masses[first], masses[second])
        return similarities(self.units[first], self.units[second]), required

    def best(self, worth: Worth, limit: int, progress: Progress | None = None) -> Integers:
        """Return the pairs of the greatest worth, best first (tie: the lower rows).

        Costs n²·d steps for n clusters, and little memory. `progress` may raise to end it.
        """
        found: list[tuple[float, int, int]] = []
        for start in range(0, len(self.units), _BLOCK):
            if progress is not None:
                progress(start / len(self.units))
            values = self._worths(start, worth)
            floor = -found[-1][0] if len(found) == limit else -np.inf
            rows, columns = np.nonzero(values > floor)
            top = values[rows, columns]
            order = np.lexsort((columns, rows, -top))[:limit]
            pairs = -top[order], rows[order] + start, columns[order]
            found += zip(*(column.tolist() for column in pairs), strict=True)
            found = sorted(found)[:limit]
        return np.array([pair[1:] for pair in found], dtype=np.int64).reshape(-1, 2)

    def _worths(self, start: int, worth: Worth) -> Floats:
        """Return the worth of some rows with every later row; −∞ for barred or left-out pairs."""
        rows = np.arange(start, min(start + _BLOCK, len(self.units)))
        cosines = self.units[rows] @ self.units.T / CENTROID_SCALE**2
        masses, counts = self.totals.masses, self.totals.counts.astype(np.float64)
        required = self.thresholds.edges(
            np.broadcast_to(masses[rows, np.newaxis], cosines.shape),
            np.broadcast_to(masses, cosines.shape),
        )
        values = worth(cosines - required, counts[rows, np.newaxis], counts[np.newaxis])
        values[np.arange(len(masses)) <= rows[:, np.newaxis]] = -np.inf
        values[np.isin(rows, self.left_out)] = -np.inf
        values[:, self.left_out] = -np.inf
        both = np.concatenate([self.barred, self.barred[:, ::-1]])
        here = both[np.isin(both[:, 0], rows)]
        values[here[:, 0] - start, here[:, 1]] = -np.inf
        ours = self.labels[rows, np.newaxis]
        values[(ours >= 0) & (self.labels >= 0) & (ours != self.labels)] = -np.inf
        return values


@dataclass(frozen=True, slots=True)
class Parts:
    """The two parts that each edge holds together, as wholes, in the order of the state.

    Attributes:
        sizes: number of vectors on the side of the older end, and of the younger end.
        similarity, threshold: similarity of the centroids of the parts, and s~.
    """

    sizes: Integers
    similarity: Floats
    threshold: Floats

    @classmethod
    def of(cls, state: State, totals: Totals) -> Parts:
        """Return the parts of all edges; costs one addition of sums for each edge."""
        ends = np.searchsorted(state.numbers, state.edges)
        child, sums, counts, missing = _below(state, ends)
        place = totals.place[child]
        whole_missing = gathered(state.missing_weight, totals.place, len(totals.ids))
        rest = totals.counts[place] - counts[child]
        threshold = state.thresholds.edges(
            np.maximum(counts[child] - missing[child] / FULL, 1.0),
            np.maximum(rest - (whole_missing[place] - missing[child]) / FULL, 1.0),
        )
        similarity = similarities(
            directions(sums[child]), directions(totals.sums[place] - sums[child])
        )
        older = (ends[:, 0] == child)[:, np.newaxis]
        sizes = np.stack([counts[child], rest], axis=1)
        return cls(np.where(older, sizes, sizes[:, ::-1]), similarity, threshold)

    @property
    def margin(self) -> Floats:
        """Similarity − s~."""
        return self.similarity - self.threshold


def _below(state: State, ends: Integers) -> tuple[Integers, Integers, Integers, Integers]:
    """Return the lower end of each edge of the rooted trees, and the sum below each row."""
    order, above, child = _hung(len(state.numbers), ends)
    sums, counts, missing = (a.copy() for a in (state.sums, state.counts, state.missing_weight))
    for row in reversed(order):
        if above[row] >= 0:
            sums[above[row]] += sums[row]
            counts[above[row]] += counts[row]
            missing[above[row]] += missing[row]
    return child, sums, counts, missing


def _hung(n: int, ends: Integers) -> tuple[list[int], list[int], Integers]:
    """Return n rows, each after its parent (−1: none), and the lower end of each edge."""
    touching: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for edge, (a, b) in enumerate(ends.tolist()):
        touching[a].append((b, edge))
        touching[b].append((a, edge))
    above, order = [-2] * n, []
    child = np.zeros(len(ends), dtype=np.int64)
    for root in range(n):
        if above[root] != -2:
            continue
        above[root] = -1
        todo = [root]
        while todo:
            row = todo.pop()
            order.append(row)
            for other, edge in touching[row]:
                if above[other] == -2:
                    above[other], child[edge] = row, other
                    todo.append(other)
    return order, above, child


def members(state: State, totals: Totals) -> list[list[int]]:
    """Return the numbers of the subclusters of each cluster, in the order of `totals`."""
    order = np.argsort(totals.place, kind="stable")
    starts = np.searchsorted(totals.place[order], np.arange(1, len(totals.ids)))
    numbers: list[list[int]] = [part.tolist() for part in np.split(state.numbers[order], starts)]
    return numbers[: len(totals.ids)]


Rows = TypeVar("Rows", npt.NDArray[np.int64], npt.NDArray[np.float64])


@dataclass(frozen=True, slots=True)
class Totals:
    """Sum, count and weight of each cluster, by ID; `place` is the row of each subcluster."""

    ids: Integers
    sums: Integers
    counts: Integers
    masses: npt.NDArray[np.float64]
    oldest: Integers  # subcluster of each
    place: Integers

    @classmethod
    def of(cls, state: State) -> Totals:
        """Return the totals of a state."""
        ids, first, place = np.unique(state.clusters, return_index=True, return_inverse=True)
        sums = gathered(state.sums, place, len(ids))
        counts = gathered(state.counts, place, len(ids))
        missing_weight = gathered(state.missing_weight, place, len(ids))
        masses = np.maximum(counts - missing_weight / FULL, 1.0)
        return cls(ids, sums, counts, masses, state.numbers[first], place)


def gathered(rows: Rows, place: Integers, n: int) -> Rows:
    """Return the sum of the rows that belong to each of n places."""
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    sums = np.zeros((n, *rows.shape[1:]), dtype=rows.dtype)
    if len(order):
        sums[place[order[starts]]] = np.add.reduceat(rows[order], starts, axis=0)
    return sums
