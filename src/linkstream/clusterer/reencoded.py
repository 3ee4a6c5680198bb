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

    def n_pairs(self) -> int:
        """Return how many numbers are in use where pairs of vectors alone come."""

    def old_numbers(self) -> Integers:
        """Return the numbers of items that came with their vector of the old encoder, in order."""

    def old_rows(self, numbers: Integers) -> Rows:
        """Return the vectors of the old encoder of some items that came with one."""

    def put(self, numbers: Integers, rows: Rows, old: Rows | None = None) -> None:
        """Add vectors, `old` those of the old encoder; those of the same items are replaced."""


class RowsInMemory:
    """Vectors by number, in memory.

    Attributes:
        revision: a number that each change makes greater.
    """

    def __init__(self) -> None:
        self.revision = 0
        self._old: RowsInMemory | None = None
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

    def n_pairs(self) -> int:
        """Return how many numbers are in use where pairs of vectors alone come."""
        return len(self._places)

    def old_numbers(self) -> Integers:
        """Return the numbers of items that came with their vector of the old encoder, in order."""
        return np.zeros(0, np.int64) if self._old is None else self._old.numbers()

    def old_rows(self, numbers: Integers) -> Rows:
        """Return the vectors of the old encoder of some items that came with one."""
        assert self._old is not None, "they came with one"
        return self._old.rows(numbers)

    def put(self, numbers: Integers, rows: Rows, old: Rows | None = None) -> None:
        """Add vectors, `old` those of the old encoder; those of the same items are replaced."""
        if old is not None:
            self._old = self._old or RowsInMemory()
            self._old.put(numbers, old)
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
        if self._old is not None:
            self._old.cut(n)
        kept = np.array([number for number in self._places if number < n], dtype=np.int64)
        if len(kept) < len(self._places):
            rows, old = self.rows(kept), self._old
            self.clear()
            self._old = old
            if len(kept):
                self.put(kept, rows)

    def drop_old(self, *, pairs: bool) -> None:
        """Drop the vectors of the old encoder, and all if they are `pairs` without an item."""
        if pairs:
            self.clear()
        if self._old is not None:
            self._old, self.revision = None, self.revision + 1

    def clear(self) -> None:
        """Drop all vectors."""
        self._places, self._old = {}, None
        self._rows = np.empty((0, 0), dtype=np.float32)
        self.revision += 1
