"""What is read: blocks of rows, front to back, with no more than a block in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.engine.fixed_point import DIMENSION_MAX
from linkstream.errors import ArgumentError, InputFileError
from linkstream.io.faults import SAVE_AGAIN, fault

BLOCK = 1024
BLOCK_BYTES = 64 * 2**20
ALL = "*"
DEFAULT_COLUMNS = ("embedding", "vector")

Vectors = npt.NDArray[Any]
Payloads = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the caller asks of a file; see `open_vectors`."""

    key: str | None
    column: str | None
    dimension: int | None
    payload: tuple[str, ...]
    block: int

    @classmethod
    def of(
        cls,
        *,
        key: str | None = None,
        column: str | None = None,
        dimension: int | None = None,
        payload: Sequence[str] | str = (),
        block: int = BLOCK,
    ) -> Wanted:
        """The same, checked."""
        names = (payload,) if isinstance(payload, str) else tuple(payload)
        if not all(isinstance(name, str) for name in names) or (ALL in names and len(names) > 1):
            raise ArgumentError(
                f"payload {payload!r}",
                expected=f"names of columns, or {ALL!r} alone for all the others",
                remedy='Try payload=["file", "time"].',
            )
        if dimension is not None and not 1 <= dimension <= DIMENSION_MAX:
            raise ArgumentError(
                f"dimension {dimension!r}",
                expected=f"a whole number from 1 to {DIMENSION_MAX}",
                remedy="It is how many numbers a vector has.",
            )
        if block < 1:
            raise ArgumentError(
                f"block {block!r}", expected="at least 1 row", remedy=f"Leave it at {BLOCK}."
            )
        return cls(key, column, dimension, names, block)

    def refuse(self, where: str, *names: str) -> None:
        """Refuse options that mean nothing for a file of this kind."""
        for name in names:
            if getattr(self, name):
                raise fault(
                    f"a {name} {getattr(self, name)!r} for {where}, which is a single array"
                    if name == "key"
                    else f"{name} {getattr(self, name)!r} for {where}, which has none",
                    {
                        "key": "a .npz archive",
                        "column": "a file with columns",
                        "payload": "a file with columns: .parquet, .arrow, .jsonl or .csv",
                    }[name],
                    f"Leave the {name} out.",
                )


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some rows of a file, one after the other.

    `vectors` has one vector a row, in the file's own type of number. `payloads` has one dict a
    row if payload columns were asked for, else it is None.
    """

    first_row: int
    vectors: Vectors
    payloads: Payloads | None

    def __len__(self) -> int:
        return len(self.vectors)


class Source(ABC):
    """Vectors that arrive in blocks, once, front to back.

    Iterate to get each `Block`; `skip` to begin further on. `n` and `dimension` are None where
    the file does not say them in advance. Close it, or use it in a `with`.
    """

    place = ""  # of rows that stay where they are and grow at their end: see `DatabaseSource`

    def __init__(
        self, name: str, wanted: Wanted, *, kind: str, n: int | None, dimension: int | None
    ) -> None:
        self.name = name
        self.kind = kind
        self.n = n
        self.dimension = dimension
        self.row = 0
        self._wanted = wanted
        self._owned = ExitStack()
        if dimension is not None:
            self._settle_dimension(dimension, f"{name} has vectors")

    @property
    def payload_columns(self) -> int:
        """How many columns make the payload of a row."""
        return 0

    @abstractmethod
    def _take(self, rows: int) -> tuple[Vectors, Payloads | None]:
        """At most so many of the next rows; none at the end."""

    @abstractmethod
    def _pass_over(self, rows: int) -> int:
        """Go over so many of the next rows; how many there were."""

    @property
    def progress(self) -> float | None:
        """How much has been read, from 0 to 1; None where nobody can know."""
        if self.n is None:
            return None
        return self.row / self.n if self.n else 1.0

    def skip(self, rows: int) -> None:
        """Leave out so many of the next rows.

        Raises:
            InputFileError: there are not that many left.
        """
        left = None if self.n is None else self.n - self.row
        there = left if left is not None and rows > left else self._pass_over(rows)
        if there < rows:
            raise fault(
                f"{self.name} has {self.row + there} rows, of which {self.row + rows} are to be "
                "left out",
                "at least as many",
                "Give the file that was begun with.",
            )
        self.row += rows

    def read(self, rows: int) -> Block:
        """The next rows as one block, exactly so many; InputFileError where there are fewer."""
        first = self.row
        parts: list[Vectors] = []
        payloads: Payloads = []
        while (left := first + rows - self.row) > 0:
            vectors, more = (
                self._take(left) if self.n is None or left <= self.n - self.row else _END
            )
            if not len(vectors):
                raise fault(
                    f"{self.name} ends after {self.row} rows",
                    f"at least {first + rows}",
                    SAVE_AGAIN,
                )
            self.row += len(vectors)
            parts.append(vectors)
            payloads += more or []
        whole = np.concatenate(parts) if parts else np.empty((0, self.dimension or 0))
        return Block(first, whole, payloads if self._wanted.payload else None)

    def __iter__(self) -> Iterator[Block]:
        while True:
            rows = self._rows_at_once() if self.n is None else self._rows_left()
            if not rows:
                return
            vectors, payloads = self._take(rows)
            if not len(vectors):
                return
            first, self.row = self.row, self.row + len(vectors)
            yield Block(first, vectors, payloads)

    def owns(self, stack: ExitStack) -> None:
        """Files that are closed with this source."""
        self._owned.push(stack)

    def close(self) -> None:
        """Let go of the file. A second time does nothing."""
        self._owned.close()

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _rows_left(self) -> int:
        assert self.n is not None
        return min(self._rows_at_once(), self.n - self.row)

    def _rows_at_once(self) -> int:
        """Rows of a block: as many as asked for, unless their numbers would be too many bytes."""
        return max(1, min(self._wanted.block, BLOCK_BYTES // (8 * (self.dimension or 1))))

    def _settle_dimension(self, dimension: int, where: str) -> None:
        """The dimension of the first row is that of all; refuse one nobody asked for."""
        if not 1 <= dimension <= DIMENSION_MAX:
            raise fault(
                f"{where} of dimension {dimension}",
                f"a dimension from 1 to {DIMENSION_MAX}",
                "Rows are vectors and columns are coordinates; transpose if need be.",
            )
        expected = self._wanted.dimension or self.dimension
        if expected is not None and dimension != expected:
            raise fault(
                f"{where} of dimension {dimension}",
                f"dimension {expected}",
                "Mend the row, or the dimension asked for.",
            )
        self.dimension = dimension


_END: tuple[Vectors, None] = (np.empty((0, 0)), None)


class ArraySource(Source):
    """An array that is in memory already."""

    def __init__(self, name: str, wanted: Wanted, array: Vectors, *, kind: str) -> None:
        n, dimension = array.shape
        super().__init__(name, wanted, kind=kind, n=n, dimension=dimension)
        self._array = array

    def _take(self, rows: int) -> tuple[Vectors, None]:
        return self._array[self.row : self.row + rows], None

    def _pass_over(self, rows: int) -> int:
        return rows


def finite_row(numbers: list[Any], where: str) -> npt.NDArray[np.float64]:
    """The numbers of a row of text; where one cannot be a coordinate the error says so."""
    try:
        row = np.array(numbers, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        raise not_finite(where) from None
    if not np.isfinite(row).all():
        raise not_finite(where)
    return row


def not_finite(where: str) -> InputFileError:
    """A coordinate that is too big for a float, NaN or infinite."""
    return fault(f"{where} holds a number that is not finite", "finite numbers", "Mend the row.")
