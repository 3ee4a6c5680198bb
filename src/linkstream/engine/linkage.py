"""Margin linkage: group subclusters by the paper's own test, greatest margin first.

A group has the exact sum S of its rows' sums, and the sum k of their weights. Its direction is
u = rint(S / |S| · 2²⁵). The margin of two groups is u·u' / 2⁵⁰ − s~(k, k') (equation 24). The two
groups with the greatest margin are united until no margin is 0 or more. A group is named by its
lowest row; of equal margins the lowest pair of names goes first.

This is the definition: for each group it keeps the best partner, in n·d bytes and n·d steps a look.
C++ twin: linkage.hpp, which finds the same pairs with far fewer products, bit for bit.

Numerics: every partial sum of u·u' is an integer below 2⁵³, so that any order of summation and any
matrix product give the same result. The rest is computed element by element, in one order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from linkstream.engine.fixed_point import norms
from linkstream.paper.thresholds import Thresholds

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Progress = Callable[[float], object]  # takes the share of the work that is done, from 0 to 1

CENTROID_SCALE = 2.0**25
SUM_SCALE = 2.0**30  # the length of one vector in a sum


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

    def groups(self, n: int) -> Integers:
        """Return the group of each of n rows: the lowest row in it."""
        root = list(range(n))
        for kept, gone in zip(self.kept[::-1].tolist(), self.gone[::-1].tolist(), strict=True):
            root[gone] = root[kept]
        return np.array(root, dtype=np.int64)


def _no_pairs() -> Integers:
    return np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Restrictions:
    """Which rows may not share a group; a group has the restrictions of all its rows.

    Attributes:
        barred: pairs of rows that may not share a group.
        labels: a label for each row, −1 for none; rows with different labels may not share a
            group. None: no row has a label.
        alike: the mean similarity of the vectors of two rows must be at least this many times the
            greater of the mean similarities within them. None: any two rows may share a group.
    """

    barred: Integers = field(default_factory=_no_pairs)
    labels: Integers | None = None
    alike: float | None = None


UNRESTRICTED = Restrictions()


@dataclass(frozen=True, slots=True)
class Blocs:
    """Rows of subclusters that are one from the start.

    Attributes:
        numbers: the subclusters.
        places: the row of each subcluster; each row has one or more.
        masses: the weight of each row.
    """

    numbers: Integers
    places: Integers
    masses: Floats


# Takes sums and weights of the rows.
Unite = Callable[[Integers, Floats, Thresholds, Restrictions, Progress | None], Unions]


def centroids(sums: Integers) -> Floats:
    """Return unit centroids as integers of 25 bits."""
    return _units(sums)[0]


def _units(sums: Integers) -> tuple[Floats, Floats]:
    """Return unit centroids, and the lengths of the sums."""
    wide = sums.astype(np.float64)
    lengths = np.maximum(norms(wide), 1.0)  # opposite vectors may sum to zero
    return np.rint(wide / lengths[:, np.newaxis] * CENTROID_SCALE), lengths


def unions(
    sums: Integers,
    masses: Floats,
    thresholds: Thresholds,
    restrictions: Restrictions = UNRESTRICTED,
    progress: Progress | None = None,
) -> Unions:
    """Unite the pair of greatest margin (tie: the lowest rows) while a margin is 0 or more.

    Args:
        sums: exact sum of each row, n × d.
        masses: weight of each row.
        thresholds: thresholds of the test s~.
        restrictions: which rows may not share a group.
        progress: called now and then with the share of the work done; it may raise to end it.
    """
    report = progress or (lambda _share: None)
    groups = _Groups(sums, masses, thresholds, restrictions)
    for row in range(len(masses)):
        groups.look(row)
        report(0.5 * (row + 1) / len(masses))
    found: list[tuple[int, int, float]] = []
    share = 0.5
    while (pair := groups.best()) is not None:
        found.append(pair)
        groups.unite(*pair[:2])
        share = max(share, 1.0 - 0.5 * pair[2] / max(found[0][2], 1e-9))
        report(share)
    report(1.0)
    return Unions.of(*(zip(*found, strict=True) if found else ((), (), ())))


class _Groups:
    """Groups, and for each the partner with the greatest margin (tie: the lowest row)."""

    def __init__(
        self, sums: Integers, masses: Floats, thresholds: Thresholds, restrictions: Restrictions
    ) -> None:
        n = len(masses)
        self.sums, self.masses, self.thresholds = sums.copy(), masses.copy(), thresholds
        self.units, lengths = _units(sums)
        self.live = np.ones(n, dtype=bool)
        self.partner = np.zeros(n, dtype=np.int64)
        self.margin = np.full(n, -np.inf)
        self.labels = np.full(n, -1) if restrictions.labels is None else restrictions.labels.copy()
        self.barred: dict[int, set[int]] = {}
        for a, b in restrictions.barred.tolist():
            self._bar(a, b)
        self.likeness = None
        if restrictions.alike is not None:
            self.likeness = _Likeness(self.units.copy(), lengths, masses, restrictions.alike)

    def best(self) -> tuple[int, int, float] | None:
        """Return the pair to unite and its margin, or None."""
        if len(self.margin) < 2:
            return None
        row = int(np.argmax(self.margin))  # the lowest of equals: the older end of its pair
        margin = float(self.margin[row])
        return (row, int(self.partner[row]), margin) if margin >= 0 else None

    def unite(self, row: int, gone: int) -> None:
        """Add one group to another, and update the partners of all groups."""
        self._add(row, gone)
        lost = self.live & ((self.partner == row) | (self.partner == gone))
        lost &= self.margin >= 0  # of all others, only the new group can be a partner by now
        margins = self._margins(row)
        nearer = (margins > self.margin) | ((margins == self.margin) & (row < self.partner))
        self._set_best(row, margins.copy())
        lost[row] = False
        for other in np.flatnonzero(nearer & self.live & ~lost).tolist():
            if other != row and self._alike(row, other):
                self.partner[other], self.margin[other] = row, margins[other]
        for other in np.flatnonzero(lost).tolist():
            self.look(other)

    def look(self, row: int) -> None:
        """Find the partner of a group among all others."""
        self._set_best(row, self._margins(row))

    def _add(self, row: int, gone: int) -> None:
        self.sums[row] += self.sums[gone]
        self.masses[row] += self.masses[gone]
        self.units[row] = centroids(self.sums[row : row + 1])[0]
        self.live[gone] = False
        self.margin[gone] = -np.inf
        self.labels[row] = max(self.labels[row], self.labels[gone])
        for other in self.barred.pop(gone, set()):
            self.barred[other].remove(gone)
            self._bar(row, other)
        if self.likeness is not None:
            self.likeness.unite(row, gone)

    def _bar(self, a: int, b: int) -> None:
        self.barred.setdefault(a, set()).add(b)
        self.barred.setdefault(b, set()).add(a)

    def _margins(self, row: int) -> Floats:
        """Return similarity − s~ of a group to every other; −∞ for those it may not join."""
        similarity = self.units @ self.units[row] / CENTROID_SCALE**2
        ours = np.full_like(self.masses, self.masses[row])
        margins: Floats = similarity - self.thresholds.edges(ours, self.masses)
        margins[row] = -np.inf
        margins[~self.live] = -np.inf
        margins[list(self.barred.get(row, ()))] = -np.inf
        if self.labels[row] >= 0:
            margins[(self.labels >= 0) & (self.labels != self.labels[row])] = -np.inf
        return margins

    def _set_best(self, row: int, margins: Floats) -> None:
        """Set the partner of a group; `margins` is overwritten."""
        partner = int(np.argmax(margins))
        while margins[partner] >= 0 and not self._alike(row, partner):
            margins[partner] = -np.inf
            partner = int(np.argmax(margins))
        self.partner[row], self.margin[row] = partner, margins[partner]

    def _alike(self, a: int, b: int) -> bool:
        return self.likeness is None or self.likeness.holds(a, b)


class _Likeness:
    """Whether each row of one group is alike to each row of another."""

    def __init__(self, units: Floats, lengths: Floats, masses: Floats, least: float) -> None:
        self.units, self.masses, self.least = units, masses, least
        self.lengths = lengths / SUM_SCALE
        squares = self.lengths * self.lengths
        self.within = (squares - masses) / (masses * np.maximum(masses - 1.0, 1.0))
        self.members = [[row] for row in range(len(masses))]

    def unite(self, row: int, gone: int) -> None:
        """Add the rows of one group to another."""
        self.members[row] += self.members[gone]

    def holds(self, a: int, b: int) -> bool:
        """Return whether no row of one group is unlike a row of the other."""
        ours, theirs = self.members[a], self.members[b]
        products = self.units[ours] @ self.units[theirs].T / CENTROID_SCALE**2
        products *= np.outer(self.lengths[ours], self.lengths[theirs])
        within = np.maximum.outer(self.within[ours], self.within[theirs])
        between = products / np.outer(self.masses[ours], self.masses[theirs])
        return not np.any(between < self.least * within)
