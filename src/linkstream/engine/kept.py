"""The vectors themselves, where they are kept: to be moved, removed or undone by number."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Fixed = npt.NDArray[np.int32]


class Kept:
    """Fixed-point vectors in order of arrival; 4 bytes a coordinate.

    Outlives the engines that add to it. The compiled core has a twin.
    """

    def __init__(self, dimension: int) -> None:
        self._rows = np.empty((16, dimension), dtype=np.int32)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def append(self, rows: Fixed) -> None:
        """Keep some more."""
        size = self._size + len(rows)
        if size > len(self._rows):
            grown = np.empty((2 * size, self._rows.shape[1]), dtype=np.int32)
            grown[: self._size] = self._rows[: self._size]
            self._rows = grown
        self._rows[self._size : size] = rows
        self._size = size

    def rows(self, numbers: npt.NDArray[np.int64]) -> Fixed:
        """The vectors of these numbers, each below the length."""
        found: Fixed = self._rows[: self._size][numbers]
        return found

    def cut(self, size: int) -> None:
        """Keep only the first so many."""
        self._size = min(self._size, size)


def share(vectors: npt.NDArray[np.integer], light: int) -> npt.NDArray[np.int64]:
    """What vectors add to a sum when they weigh `light` 256ths less than a full one.

    >>> share(np.array([[512, -3]]), 128)
    array([[256,  -1]])
    """
    wide = vectors.astype(np.int64)
    return (wide * (256 - light) + 128) >> 8 if light else wide
