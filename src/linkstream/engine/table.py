"""The reference engine's table of centroids: exact sums, and a float image of them to search.

The search proposes, it never decides. With u = 2⁻⁵³, each coordinate of the image is S_i/‖S‖
with a relative error of at most 4u, q_i is exact in double, and a product of d terms summed in
any order (BLAS may choose) errs by at most d·u·‖q‖ besides. So an estimate is within (d + 16)·2u
of the exact similarity, with room for the roundings of the exact one; that is `_bound`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt


class Table:
    """Rows of sums and of unit centroids by subcluster number; rows of the dead are used again."""

    def __init__(self, dimension: int) -> None:
        self._sums = np.zeros((16, dimension), dtype=np.int64)
        self._units = np.zeros((16, dimension))
        self._numbers = np.full(16, -1, dtype=np.int64)
        self._rows: dict[int, int] = {}
        self._bound = (dimension + 16) * 2.0**-52

    def set(self, number: int, total: npt.NDArray[np.int64], square: int) -> None:
        """Hold a subcluster's sum, of which the exact squared norm is given."""
        row = self._rows.get(number)
        if row is None:
            row = len(self._rows)
            self._grow(row + 1)
            self._rows[number] = row
        self._numbers[row] = number
        self._sums[row] = total
        # What cancels out has no direction and is similar to nothing.
        self._units[row] = total / math.sqrt(float(square)) if square else 0.0

    def remove(self, number: int) -> None:
        """Forget a subcluster: the last row takes its place."""
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
        """The sum of one subcluster."""
        total: npt.NDArray[np.int64] = self._sums[self._rows[number]]
        return total

    def sums(self, numbers: list[int]) -> npt.NDArray[np.int64]:
        """The sums of several, as a new array."""
        return self._sums[[self._rows[number] for number in numbers]]

    def near(self, q: npt.NDArray[np.int64], *, at_least: float) -> list[int]:
        """All subclusters that may be the most similar one and reach `at_least`."""
        if not self._rows:
            return []
        estimates = self._estimates(q)
        bar = max(float(estimates.max()) - 2.0 * self._bound, at_least - self._bound)
        found: list[int] = self._numbers[np.flatnonzero(estimates >= bar)].tolist()
        return found

    def reaching(self, q: npt.NDArray[np.int64], *, at_least: float) -> list[int]:
        """All whose similarity may reach `at_least`."""
        if not self._rows:
            return []
        found = np.flatnonzero(self._estimates(q) >= at_least - self._bound)
        numbers: list[int] = self._numbers[found].tolist()
        return numbers

    def top(self, q: npt.NDArray[np.int64], limit: int) -> list[int]:
        """All subclusters that may be among the `limit` most similar ones."""
        estimates = self._estimates(q)
        if limit >= len(estimates):
            return list(self._rows)
        bar = np.partition(estimates, -limit)[-limit] - 2.0 * self._bound
        found: list[int] = self._numbers[np.flatnonzero(estimates >= bar)].tolist()
        return found

    def _estimates(self, q: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        vector = q.astype(np.float64)
        estimates: npt.NDArray[np.float64] = self._units[: len(self._rows)] @ vector
        return estimates / math.sqrt(float(vector @ vector))

    def _grow(self, rows: int) -> None:
        if rows <= len(self._numbers):
            return
        more = len(self._numbers)
        sums = np.concatenate([self._sums, np.zeros_like(self._sums)])
        units = np.concatenate([self._units, np.zeros_like(self._units)])
        numbers = np.concatenate([self._numbers, np.full(more, -1, dtype=np.int64)])
        self._sums, self._units, self._numbers = sums, units, numbers
