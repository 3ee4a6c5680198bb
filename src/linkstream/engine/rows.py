"""The table of centroids: exact sums, and unit vectors in double precision to search.

C++ twins: rows.hpp for the table, scan.hpp for the search.

The search proposes, it never decides. With u = 2⁻⁵³, each coordinate of the image is S_i/‖S‖
with a relative error of at most 4u, q_i is exact in double, and a product of d terms summed in
any order (BLAS may choose) errs by at most d·u·‖q‖ besides. So an estimate is within (d + 16)·2u
of the exact similarity, with room for the roundings of the exact one; that is `_bound`.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np
import numpy.typing as npt


class Rows:
    """Sums and unit centroids by subcluster number; rows of removed subclusters are reused."""

    def __init__(self, dimension: int) -> None:
        self._sums = np.zeros((16, dimension), dtype=np.int64)
        self._units = np.zeros((16, dimension))
        self._numbers = np.full(16, -1, dtype=np.int64)
        self._rows: dict[int, int] = {}
        self._bound = (dimension + 16) * 2.0**-52

    def set(self, number: int, total: npt.NDArray[np.int64], square: int) -> None:
        """Set the sum of a subcluster, of which the exact squared norm is given."""
        row = self._rows.get(number)
        if row is None:
            row = len(self._rows)
            self._grow(row + 1)
            self._rows[number] = row
        self._numbers[row] = number
        self._sums[row] = total
        # A sum of zero has no direction: its similarity to every vector is 0.
        self._units[row] = total / math.sqrt(float(square)) if square else 0.0

    def remove(self, number: int) -> None:
        """Remove a subcluster; the last row moves into its row."""
        row, last = self._rows[number], len(self._rows) - 1
        if row != last:
            moved = int(self._numbers[last])
            self._sums[row] = self._sums[last]
            self._units[row] = self._units[last]
            self._numbers[row] = moved
            self._rows[moved] = row
        del self._rows[number]

    def __contains__(self, number: int) -> bool:
        return number in self._rows

    def sum(self, number: int) -> npt.NDArray[np.int64]:
        """Return the sum of one subcluster."""
        return cast("npt.NDArray[np.int64]", self._sums[self._rows[number]])

    def sums(self, numbers: list[int]) -> npt.NDArray[np.int64]:
        """Return the sums of several subclusters as a new array."""
        return self._sums[[self._rows[number] for number in numbers]]

    def near(self, q: npt.NDArray[np.int64], *, at_least: float) -> list[int]:
        """Return all subclusters that may be the most similar one and reach `at_least`."""
        if not self._rows:
            return []
        estimates = self._estimates(q)
        bar = max(float(estimates.max()) - 2.0 * self._bound, at_least - self._bound)
        return self._above(estimates, bar)

    def reaching(self, q: npt.NDArray[np.int64], *, at_least: float) -> list[int]:
        """Return all subclusters whose similarity may reach `at_least`."""
        return self._above(self._estimates(q), at_least - self._bound) if self._rows else []

    def top(self, q: npt.NDArray[np.int64], limit: int) -> list[int]:
        """Return all subclusters that may be among the `limit` most similar ones."""
        estimates = self._estimates(q)
        if limit >= len(estimates):
            return list(self._rows)
        return self._above(estimates, np.partition(estimates, -limit)[-limit] - 2.0 * self._bound)

    def _above(self, estimates: npt.NDArray[np.float64], bar: float) -> list[int]:
        return cast("list[int]", self._numbers[np.flatnonzero(estimates >= bar)].tolist())

    def _estimates(self, q: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        vector = q.astype(np.float64)
        estimates: npt.NDArray[np.float64] = self._units[: len(self._rows)] @ vector
        return estimates / math.sqrt(float(vector @ vector))

    def _grow(self, rows: int) -> None:
        if rows <= len(self._numbers):
            return
        sums = np.concatenate([self._sums, np.zeros_like(self._sums)])
        units = np.concatenate([self._units, np.zeros_like(self._units)])
        numbers = np.concatenate([self._numbers, np.full_like(self._numbers, -1)])
        self._sums, self._units, self._numbers = sums, units, numbers
