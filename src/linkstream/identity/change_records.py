"""Records of what each event did to labels and clusters, as `Follower` writes them."""

from __future__ import annotations

from array import array
from bisect import bisect_left

import numpy as np
import numpy.typing as npt

GONE = -1  # the label of a vector that was removed
ABSENT = -2  # of a number that no vector has, or none any more: the vector was undone
HELD = -3  # of a vector that is held, which `labels` tells as −1, too

Rows = npt.NDArray[np.int64]


class Records:
    """Rows of whole numbers under rising sequence numbers, one after the other in one array.

    Args:
        width: how many numbers a row has, beside its sequence number.
    """

    def __init__(self, width: int) -> None:
        self._width = width + 1
        self._flat = array("q")

    def append(self, *row: int) -> None:
        """Add a row, which begins with its sequence number."""
        self._flat.extend(row)

    def append_many(self, sequence: int, firsts: array[int], *rest: int) -> None:
        """Add a row for each of some numbers; the numbers after it are the same in all rows."""
        rows = np.empty((len(firsts), self._width), dtype=np.int64)
        rows[:] = (sequence, 0, *rest)
        rows[:, 1] = firsts
        self._flat.frombytes(rows.tobytes())

    def between(self, first: int, end: int) -> Rows:
        """Return the rows whose sequence numbers are in a range, without these; a copy."""
        start, stop = (self._place(sequence) * self._width for sequence in (first, end))
        part = np.array(self._flat[start:stop], dtype=np.int64)
        return part.reshape(-1, self._width)[:, 1:]

    def _place(self, sequence: int) -> int:
        """Return the first row whose sequence number is not lower."""
        places = range(len(self._flat) // self._width)
        return bisect_left(places, sequence, key=lambda row: self._flat[row * self._width])
