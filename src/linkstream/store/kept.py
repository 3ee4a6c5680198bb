"""Vectors that the journal keeps: by number, as they were given or as the engine's numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from linkstream.store.index import Index
from linkstream.store.journal import Journal, Operation, Payloads, Rows, rows_of_piece

Fixed = npt.NDArray[np.int32]


class StoredVectors:
    """A `Keep` that takes no memory: the journal has the vectors."""

    def __init__(self, journal: Journal, index: Index, fixed: Callable[[Rows], Fixed]) -> None:
        self._journal, self._index, self._fixed = journal, index, fixed

    def __len__(self) -> int:
        raise NotImplementedError("the clusterer knows how many there are")

    def append(self, rows: Fixed) -> None:
        """Nothing: the journal has them."""

    def cut(self, size: int) -> None:
        """Nothing: the index learns of it with the operation that undoes."""

    def rows(self, numbers: npt.NDArray[np.int64]) -> Fixed:
        """The vectors of these numbers."""
        return self._fixed(given(self._journal, self._index, numbers))


def given(journal: Journal, index: Index, numbers: npt.NDArray[np.int64]) -> Rows:
    """Vectors by number, as they were given."""
    found: list[Rows] = [np.empty(0, dtype=np.float32)] * len(numbers)
    at, held, body = (-1, -1), None, np.empty(0, dtype=np.float32)
    for place in np.argsort(numbers, kind="stable").tolist():
        held, row = _row(journal, index, int(numbers[place]), held)
        size = rows_of_piece(held.dimension)
        piece = held.first_piece + row // size
        if at != (held.number, piece):
            at, body = (held.number, piece), journal.piece(held, piece)
        found[place] = body[row % size]
    return np.stack(found)


def payload_of(journal: Journal, index: Index, numbers: npt.NDArray[np.int64]) -> Payloads:
    """What was attached to vectors; None where nothing was."""
    found: Payloads = [None] * len(numbers)
    at, held, body = -1, None, None
    for place in np.argsort(numbers, kind="stable").tolist():
        held, row = _row(journal, index, int(numbers[place]), held)
        if at != held.number:
            at, body = held.number, journal.payloads(held)
        found[place] = None if body is None else body[row]
    return found


def _row(
    journal: Journal, index: Index, number: int, last: Operation | None
) -> tuple[Operation, int]:
    """The operation that brought a vector, and its row there."""
    operation, place = index.holding(number)
    held = last if last is not None and last.number == operation else journal.operation(operation)
    return held, held.row(place)
