"""Margin linkage: group subclusters by the paper's own test, greatest margin first.

Two groups of weight k and k' may be one cluster if the similarity of their centroids is at least
s~(k, k') (equation 24). The pair with the greatest margin, similarity − s~, is united until no
margin is 0 or more. C++ twin: linkage.hpp, which gives the same pairs and margins bit for bit.

Numerics: centroids are rounded to 25 bits, so that every partial sum of a product is an integer
below 2⁵³ and any matrix product gives the same result. The rest is computed element by element, in
one order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.engine.fixed_point import norms
from linkstream.errors import ArgumentError
from linkstream.paper.thresholds import Thresholds

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

CENTROID_SCALE = 2.0**25
NODES_MAX = 40_000  # 8·n² bytes: 12 GiB
_BLOCK = 512


@dataclass(frozen=True, slots=True)
class Unions:
    """Pairs of rows united, in order, with their margins; `kept` then stands for both."""

    kept: Integers
    gone: Integers
    margins: Floats

    @classmethod
    def of(cls, kept: Iterable[int], gone: Iterable[int], margins: Iterable[float]) -> Unions:
        """Make the columns arrays."""
        ours, theirs = (np.array(column, dtype=np.int64) for column in (kept, gone))
        return cls(ours, theirs, np.array(margins, dtype=np.float64))


def centroids(sums: Integers) -> Floats:
    """Return unit centroids as integers of 25 bits."""
    return _units(sums)[0]


def _units(sums: Integers) -> tuple[Floats, Floats]:
    """Return unit centroids, and the lengths of the sums."""
    wide = sums.astype(np.float64)
    lengths = np.maximum(norms(wide), 1.0)  # opposite vectors may sum to zero
    return np.rint(wide / lengths[:, np.newaxis] * CENTROID_SCALE), lengths


def products(sums: Integers) -> tuple[Floats, Floats]:
    """Return S_i·S_j of all pairs in units of 2⁶⁰, and S_i·S_i; n²·d steps and 8·n² bytes."""
    if len(sums) > NODES_MAX:
        raise ArgumentError(
            f"{len(sums)} subclusters to compare with one another",
            expected=f"no more than {NODES_MAX}: the table takes 8 bytes for each pair",
            remedy="Lower subcluster_similarity, so that vectors share subclusters.",
        )
    units, lengths = _units(sums)
    lengths = lengths / 2.0**30
    table = np.empty((len(sums), len(sums)))
    for start in range(0, len(sums), _BLOCK):  # BLAS may crash on a large product in one piece
        rows = slice(start, start + _BLOCK)
        np.matmul(units[rows], units.T, out=table[rows])
        table[rows] /= CENTROID_SCALE**2
        table[rows] *= lengths[rows, np.newaxis] * lengths
    return table, lengths * lengths


def unions(table: Floats, squares: Floats, masses: Floats, thresholds: Thresholds) -> Unions:
    """Unite the pair of greatest margin (tie: the lowest rows) while a margin is 0 or more.

    `table` is overwritten.
    """
    forest = _Groups(table, squares.copy(), masses.copy(), thresholds)
    found = []
    while (pair := forest.best()) is not None:
        found.append(pair)
        forest.unite(*pair[:2])
    return Unions.of(*(zip(*found, strict=True) if found else ((), (), ())))


class _Groups:
    """Groups, and for each the partner with the greatest margin (tie: the lowest row)."""

    def __init__(
        self, table: Floats, squares: Floats, counts: Floats, thresholds: Thresholds
    ) -> None:
        self.table, self.squares, self.counts, self.thresholds = table, squares, counts, thresholds
        self.live = np.ones(len(counts), dtype=bool)
        self.partner = np.zeros(len(counts), dtype=np.int64)
        self.margin = np.full(len(counts), -np.inf)
        for row in range(len(counts)):
            self._look(row, self._margins(row))

    def best(self) -> tuple[int, int, float] | None:
        """Return the pair to unite and its margin, or None."""
        if len(self.margin) < 2:
            return None
        row = int(np.argmax(self.margin))  # the lowest of equals: the older end of its pair
        margin = float(self.margin[row])
        return (row, int(self.partner[row]), margin) if margin >= 0 else None

    def unite(self, row: int, gone: int) -> None:
        """Add one group to another, and update the partners of all groups."""
        self.squares[row] = self.squares[row] + self.squares[gone] + 2.0 * self.table[row, gone]
        self.counts[row] += self.counts[gone]
        self.table[row] += self.table[gone]
        self.table[:, row] = self.table[row]
        self.live[gone] = False
        self.margin[gone] = -np.inf
        margins = self._margins(row)
        self._look(row, margins)
        lost = self.live & ((self.partner == row) | (self.partner == gone))
        nearer = (margins > self.margin) | ((margins == self.margin) & (row < self.partner))
        found = nearer & self.live & ~lost
        lost[row] = found[row] = False
        self.partner[found], self.margin[found] = row, margins[found]
        for other in np.flatnonzero(lost).tolist():
            self._look(other, self._margins(other))

    def _margins(self, row: int) -> Floats:
        """Return similarity − s~ of a group to every other; −∞ for groups that are gone."""
        roots = np.sqrt(self.squares)
        similarity = self.table[row] / (roots[row] * roots)
        ours = np.full_like(self.counts, self.counts[row])
        margins: Floats = similarity - self.thresholds.edges(ours, self.counts)
        margins[row] = -np.inf
        margins[~self.live] = -np.inf
        return margins

    def _look(self, row: int, margins: Floats) -> None:
        self.partner[row] = np.argmax(margins)
        self.margin[row] = margins[self.partner[row]]
