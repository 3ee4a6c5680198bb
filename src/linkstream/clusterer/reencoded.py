"""The vectors of another encoder that a migration has received, by the number of their item."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from linkstream.engine.state import Integers

Rows = npt.NDArray[np.float32]


class Reencoded(Protocol):
    """Vectors by number, one each; a later vector of an item replaces the one before."""

    def numbers(self) -> Integers:
        """Return the numbers that there is a vector of, in order."""

    def dimension(self) -> int | None:
        """Return the dimension of the vectors; None if there are none."""

    def rows(self, numbers: Integers) -> Rows:
        """Return the vectors of some items that there is one of."""

    def put(self, numbers: Integers, rows: Rows) -> None:
        """Add vectors; those of the same items before are replaced."""


class RowsInMemory:
    """Vectors by number, in memory.

    Attributes:
        revision: a number that each change makes greater.
    """

    def __init__(self) -> None:
        self.revision = 0
        self._rows = np.empty((0, 0), dtype=np.float32)  # more than are used
        self._places: dict[int, int] = {}

    def numbers(self) -> Integers:
        """Return the numbers that there is a vector of, in order."""
        return np.array(sorted(self._places), dtype=np.int64)

    def dimension(self) -> int | None:
        """Return the dimension of the vectors; None if there are none."""
        return self._rows.shape[1] if self._places else None

    def rows(self, numbers: Integers) -> Rows:
        """Return the vectors of some items that there is one of."""
        return self._rows[[self._places[number] for number in numbers.tolist()]]

    def put(self, numbers: Integers, rows: Rows) -> None:
        """Add vectors; those of the same items before are replaced."""
        if not self._places:
            self._rows = np.empty((0, rows.shape[1]), dtype=np.float32)
        size = len(self._places)
        fresh = [number for number in numbers.tolist() if number not in self._places]
        self._make_room(size, size + len(fresh))
        new = dict(zip(fresh, range(size, size + len(fresh)), strict=True))
        places = [
            new[number] if number in new else self._places[number] for number in numbers.tolist()
        ]
        self._rows[places] = rows
        self._places.update(new)  # last, since Ctrl-C may come at any moment
        self.revision += 1

    def _make_room(self, used: int, size: int) -> None:
        if size > len(self._rows):
            grown = np.empty((max(size, 2 * used), self._rows.shape[1]), dtype=np.float32)
            grown[:used] = self._rows[:used]
            self._rows = grown

    def cut(self, n: int) -> None:
        """Drop the vectors of items from number n on."""
        kept = np.array([number for number in self._places if number < n], dtype=np.int64)
        if len(kept) < len(self._places):
            rows = self.rows(kept)
            self.clear()
            if len(kept):
                self.put(kept, rows)

    def clear(self) -> None:
        """Drop all vectors."""
        self._places = {}
        self._rows = np.empty((0, 0), dtype=np.float32)
        self.revision += 1
