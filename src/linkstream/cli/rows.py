"""Rows of a source: looked at before they are taken, and named in errors by where they stand."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from linkstream.errors import DimensionError, VectorError

if TYPE_CHECKING:
    from linkstream.io import Block, Source


class Rows:
    """The rows of a source, front to back; the next ones can be looked at first."""

    def __init__(self, source: Source) -> None:
        self._blocks = iter(source)
        self._held: deque[Block] = deque()
        self.row = source.row  # that comes next

    def peek(self, most: int) -> npt.NDArray[Any]:
        """The next rows, which stay where they are: so many, or fewer at the end."""
        there = sum(map(len, self._held))
        while there < most:
            block = next(self._blocks, None)
            if block is None:
                break
            self._held.append(block)
            there += len(block)
        if not self._held:
            return np.empty((0, 0), dtype=np.float32)
        held = [block.vectors for block in self._held]
        joined: npt.NDArray[Any] = held[0] if len(held) == 1 else np.concatenate(held)
        return joined[:most]

    def drop(self, rows: int) -> None:
        """Leave out rows that were looked at."""
        self.row += rows
        while rows:
            block = self._held.popleft()
            if len(block) > rows:
                self._held.appendleft(_tail(block, rows))
                return
            rows -= len(block)

    def __iter__(self) -> Iterator[Block]:
        while self._held:
            yield self._held.popleft()
        yield from self._blocks


def _tail(block: Block, rows: int) -> Block:
    kept = None if block.payloads is None else block.payloads[rows:]
    return type(block)(block.first_row + rows, block.vectors[rows:], kept)


@contextmanager
def rows_of(name: str, first_row: int) -> Iterator[None]:
    """Errors name the row of the source, not that of the block that begins with this row."""
    try:
        yield
    except VectorError as error:
        raise in_source(error, name, first_row) from error


def in_source(error: VectorError, name: str, first_row: int) -> VectorError:
    """The same error, of a row of a source."""
    row = first_row + (error.row or 0)
    seen = error.seen.removeprefix(f"row {error.row} ")
    other_encoder = isinstance(error, DimensionError)
    return type(error)(
        f"{name}, row {row} {seen}" if seen != error.seen else f"{name}, row {row}: {seen}",
        expected=error.expected,
        remedy=error.remedy if other_encoder else "Drop or mend such rows and run again.",
        row=row,
    )
