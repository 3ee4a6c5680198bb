"""The vectors themselves in order of arrival. C++ twin: vector_store.hpp."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Fixed = npt.NDArray[np.int32]


class ReferenceVectorStore:
    """Fixed-point vectors, 4 bytes a coordinate; see `contract.VectorStore`."""

    def __init__(self, dimension: int) -> None:
        self._rows = np.empty((16, dimension), dtype=np.int32)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def append(self, rows: Fixed) -> None:
        """Append vectors."""
        size = self._size + len(rows)
        if size > len(self._rows):
            grown = np.empty((2 * size, self._rows.shape[1]), dtype=np.int32)
            grown[: self._size] = self._rows[: self._size]
            self._rows = grown
        self._rows[self._size : size] = rows
        self._size = size

    def rows(self, numbers: npt.NDArray[np.int64]) -> Fixed:
        """Return the vectors of these numbers."""
        return self._rows[: self._size][numbers]

    def cut(self, size: int) -> None:
        """Keep only the first `size` vectors."""
        self._size = min(self._size, size)
