"""Sources of vectors: blocks of rows, read front to back, with at most one block in memory."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from linkstream.engine.fixed_point import DIMENSION_MAX
from linkstream.errors import ArgumentError, InputFileError, MissingExtraError

BLOCK = 1024  # rows
BLOCK_BYTES = 64 * 2**20
ALL = "*"
DEFAULT_COLUMNS = ("embedding", "vector")
SAVE_AGAIN = "Save the file again from its source."

Vectors = npt.NDArray[Any]
Payloads = Sequence[Any]
Rows = tuple[Vectors, Payloads | None]
BadRow = Callable[[InputFileError], None]
Self = TypeVar("Self", bound="Source")


def file_error(seen: str, expected: str, remedy: str) -> InputFileError:
    """Return the error for a file or database that cannot be read."""
    return InputFileError(seen, expected=expected, remedy=remedy)


def first_line(error: BaseException) -> str:
    """Return the first line of another library's error, cut to 100 characters."""
    lines = str(error).strip().splitlines()
    return lines[0][:100] if lines else type(error).__name__


def import_extra(module: str, *, extra: str, purpose: str) -> Any:
    """Import a module of an optional package; raise MissingExtraError without it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise MissingExtraError(package, extra=extra, purpose=purpose) from None


def quoted(names: Sequence[str]) -> str:
    """Return the first ten names for an error message, each cut to 40 characters."""
    return ", ".join(repr(name[:40]) for name in list(names)[:10])


def default_column(names: Collection[str], vectors: list[str], seen: str, remedy: str) -> str:
    """Return the default column of the vectors: a usual name, or the only column of vectors."""
    usual = [name for name in DEFAULT_COLUMNS if name in names]
    if not usual and len(vectors) != 1:
        expected = f"one, or a column {' or '.join(map(repr, DEFAULT_COLUMNS))}"
        raise file_error(seen, expected, remedy)
    return (usual or vectors)[0]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of `open_vectors`; raise ArgumentError if one is wrong."""

    key: str | None
    column: str | None
    dimension: int | None
    payload: Sequence[str] | str = ()  # after construction always a tuple
    block: int = BLOCK
    id_column: str | None = None
    time_column: str | None = None
    hidden: frozenset[str] = frozenset()  # columns of the keys and times that are not payload
    bad_row: BadRow | None = None  # gets the error of each wrong row, which is then left out

    def __post_init__(self) -> None:
        payload, dimension, block = self.payload, self.dimension, self.block
        names = (payload,) if isinstance(payload, str) else tuple(payload)
        own = tuple(dict.fromkeys(self.own.values()))
        object.__setattr__(self, "hidden", frozenset(own) - {*names})
        added = () if names == (ALL,) else tuple(each for each in own if each not in names)
        object.__setattr__(self, "payload", names + added)
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

    @property
    def own(self) -> dict[str, str]:
        """The columns of the vectors' own keys and times, by the argument of the store."""
        found = {"ids": self.id_column, "at": self.time_column}
        return {name: column for name, column in found.items() if column is not None}

    def refuse(self, name: str, *options: str) -> None:
        """Raise InputFileError if an option is set that this kind of file does not have."""
        for option in options:
            value = getattr(self, option)
            if option == "payload" and value and {*value} <= {*self.own.values()}:
                columns = " and ".join(repr(each) for each in value)
                seen, remedy = (
                    f"{name} without columns",
                    "Give a file with columns, or leave it out.",
                )
                raise file_error(seen, f"one with the column {columns}", remedy)
            if value:
                raise file_error(
                    f"a {option} {value!r} for {name}, which is a single array"
                    if option == "key"
                    else f"{option} {value!r} for {name}, which has none",
                    {
                        "key": "a .npz archive",
                        "column": "a file with columns",
                        "payload": "a file with columns: .parquet, .arrow, .jsonl or .csv",
                    }[option],
                    f"Leave the {option} out.",
                )

    def checked(self, rows: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
        """Return rows; raise InputFileError if they are of another dimension than asked for."""
        if rows.ndim == 2 and self.dimension not in (None, rows.shape[1]):
            raise file_error(
                f"{name} has vectors of dimension {rows.shape[1]}",
                f"dimension {self.dimension}",
                "Correct the file, or the dimension asked for.",
            )
        return rows

    def payload_names(self, names: Sequence[str], *without: str | None) -> list[str]:
        """Return the payload columns: those asked for, or all of `names` but some."""
        if self.payload != (ALL,):
            return list(self.payload)
        found = [name for name in names if name not in without]
        return found + [name for name in self.own.values() if name not in found]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Consecutive rows of a source.

    Attributes:
        first_row: number of the first row in the source.
        vectors: one vector a row, in the number type of the file.
        payloads: one dict a row, or any value where a client marked a column as payload; None if no
            payload columns were asked for.
        ids: the vectors' own keys; None if no column was asked for.
        at: the vectors' own times; None if no column was asked for.
    """

    first_row: int
    vectors: Vectors
    payloads: Payloads | None
    ids: Sequence[Any] | None = None
    at: Any = None

    def tail(self, rows: int) -> Block:
        """Return the block without its first rows.

        Args:
            rows: how many rows to leave out.
        """
        columns = (self.payloads, self.ids, self.at)
        left = [None if column is None else column[rows:] for column in columns]
        return Block(self.first_row + rows, self.vectors[rows:], *left)

    def __len__(self) -> int:
        return len(self.vectors)


def key_of(value: Any) -> Any:
    """Return a key as text: a whole number becomes its digits, an empty cell None."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return str(value)
    return None if value == "" else value


def moments(values: Any) -> Any:
    """Return times as the store takes them: a text with a number counts as seconds since 1970."""
    return values if isinstance(values, np.ndarray) else list(map(_moment, values))


def _moment(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return float(value) if value else None
    except ValueError:
        return value


class Reader(Protocol):
    """Reads the rows of one kind of file or database for a `Source`."""

    def take(self, source: Source, rows: int) -> Rows:
        """Return at most `rows` of the next rows; none at the end."""

    def skip(self, source: Source, rows: int) -> int:
        """Skip at most `rows` rows; return how many there were."""


class Source:
    """Vectors that arrive in blocks, once, front to back.

    Iterate to get each `Block`; call `skip` to begin further on. Close the source, or use it in a
    `with` statement.

    Args:
        name: name of the file or database in error messages.
        options: what the caller asked for.
        reader: reads the rows.
        kind: kind of the file, such as "npy".
        n: number of rows, or None if it is not known in advance.
        dimension: numbers in a vector, or None if it is not known in advance.
        payload_columns: how many columns make the payload of a row.
        location: identifies a table whose rows stay where they are; "" for files.
        progress: returns the share that was read, from 0 to 1; None counts rows.

    Attributes:
        row: number of the next row.
        resources: what is closed together with the source.
        roles: values so far of columns that a client of linkstream marked: `weight`, `at`, `id`.
        own: keys and times of the rows that the reader has just taken, unless they are in payloads.
        places: the line or row in the file of each row of the last block; None if no row before was
            left out.
    """

    places: Sequence[int] | None = None

    def __init__(
        self,
        name: str,
        options: ReadOptions,
        reader: Reader,
        *,
        kind: str,
        n: int | None = None,
        dimension: int | None = None,
        payload_columns: int = 0,
        location: str = "",
        progress: Callable[[], float | None] | None = None,
    ) -> None:
        self.name = name
        self.options = options
        self.kind = kind
        self.n = n
        self.dimension: int | None = None
        self.row = 0
        self.payload_columns = payload_columns
        self.roles: dict[str, list[Any]] = {}
        self.own: dict[str, Any] = {}
        self.location = location
        self.resources = ExitStack()
        self.reader = reader
        self._progress = progress
        if dimension is not None and n != 0:
            self.set_dimension(dimension, f"{name} has vectors")

    @property
    def progress(self) -> float | None:
        """Share of the source that was read, from 0 to 1; None if it is not known."""
        if self._progress is not None:
            return self._progress()
        if self.n is None:
            return None
        return self.row / self.n if self.n else 1.0

    def skip(self, rows: int) -> None:
        """Skip the next rows; raise InputFileError if fewer are left."""
        left = None if self.n is None else self.n - self.row
        there = left if left is not None and rows > left else self.reader.skip(self, rows)
        if there < rows:
            raise file_error(
                f"{self.name} has {self.row + there} rows, of which {self.row + rows} are to be "
                "left out",
                "at least as many",
                "Give the file that was begun with.",
            )
        self.row += rows

    def read(self, rows: int) -> Block:
        """Return the next rows as one block; raise InputFileError if fewer are left."""
        first = self.row
        parts: list[Vectors] = []
        payloads: list[Any] = []
        while (left := first + rows - self.row) > 0:
            vectors, more = np.empty((0, 0)), None
            if self.n is None or left <= self.n - self.row:
                vectors, more = self.reader.take(self, left)
            if not len(vectors):
                raise file_error(
                    f"{self.name} ends after {self.row} rows",
                    f"at least {first + rows}",
                    SAVE_AGAIN,
                )
            self.row += len(vectors)
            parts.append(vectors)
            payloads += more or []
        joined = np.concatenate(parts) if parts else np.empty((0, self.dimension or 0))
        return Block(first, joined, payloads if self.options.payload else None)

    def __iter__(self) -> Iterator[Block]:
        while self.n is None or self.row < self.n:
            rows = self.rows_per_block()
            rows = rows if self.n is None else min(rows, self.n - self.row)
            vectors, payloads = self.reader.take(self, rows)
            if not len(vectors):  # `n` is known and 0 rows are left if wrong rows were left out
                return
            first, self.row = self.row, self.row + len(vectors)
            yield self._block(first, vectors, payloads)

    def _block(self, first: int, vectors: Vectors, payloads: Payloads | None) -> Block:
        own, self.own, hidden = self.own, {}, self.options.hidden
        if self.options.own and isinstance(payloads, list):
            for name, column in self.options.own.items():
                own[name] = [row.get(column) for row in payloads]
            payloads = [{k: v for k, v in row.items() if k not in hidden} for row in payloads]
        if not {*self.options.payload} - hidden:
            payloads = None
        ids, at = own.get("ids"), own.get("at")
        texts = None if ids is None else list(map(key_of, ids))
        return Block(first, vectors, payloads, texts, at if at is None else moments(at))

    def close(self) -> None:
        """Close the file or the connection. Closing twice is allowed."""
        self.resources.close()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def rows_per_block(self) -> int:
        """Return the rows of a block: as many as asked for that fit into 64 MiB of numbers."""
        return max(1, min(self.options.block, BLOCK_BYTES // (8 * (self.dimension or 1))))

    def set_dimension(self, dimension: int, where: str) -> None:
        """Set the dimension; raise InputFileError, which begins with `where`, if it is another."""
        if not 1 <= dimension <= DIMENSION_MAX:
            raise file_error(
                f"{where} of dimension {dimension}",
                f"a dimension from 1 to {DIMENSION_MAX}",
                "Rows are vectors and columns are coordinates; transpose the table if needed.",
            )
        expected = self.options.dimension or self.dimension
        if expected is not None and dimension != expected:
            raise file_error(
                f"{where} of dimension {dimension}",
                f"dimension {expected}",
                "Correct the row, or the dimension asked for.",
            )
        self.dimension = dimension
