"""Text files with one row a line: `.jsonl` and `.csv`. Lines are counted from 1."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from linkstream.errors import InputFileError
from linkstream.io.bytestream import ByteStream
from linkstream.io.source import (
    ALL,
    DEFAULT_COLUMNS,
    ReadOptions,
    Rows,
    Source,
    default_column,
    file_error,
    first_line,
    quoted,
)

# More than twice the bytes of the longest vector with every digit of its numbers.
LINE_MAX = 4 * 2**20
DIGITS_MAX = 1000

_NUMBERS = {int, float}

Row = tuple[list[Any], dict[str, Any] | None]
_Read = tuple[npt.NDArray[np.float64], dict[str, Any] | None, int]  # with the number of its line


def open_text(stream: ByteStream, options: ReadOptions, kind: str) -> Source:
    """Open JSON lines ("jsonl"), each an array or an object that holds one, or a CSV file."""
    options.refuse(stream.name, "key")
    lines = _Lines(stream)
    rows: _RowParser = _JsonRows(lines, options) if kind == "jsonl" else _CsvRows(lines, options)
    reader = _TextReader(stream, lines, rows, options)
    source = Source(stream.name, options, reader, kind=kind, progress=stream.progress)
    reader.read_dimension(source)
    return source


class _Lines:
    """Lines of a stream as text, counted."""

    def __init__(self, stream: ByteStream) -> None:
        self.name = stream.name
        self._stream = stream
        self._number = 0

    @property
    def number(self) -> int:
        """The number of the last line that was read."""
        return self._number

    @property
    def where(self) -> str:
        """The file and the last line that was read, for error messages."""
        return f"{self.name}, line {self._number}"

    def next(self) -> str | None:
        """Return the next line, or None at the end."""
        line = self._stream.read_line(LINE_MAX)
        if line is None:
            return None
        self._number += 1
        if len(line) > LINE_MAX:
            raise file_error(
                f"{self.where} is longer than {LINE_MAX} bytes",
                "one vector a line",
                "Check that the file holds one row a line.",
            )
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise file_error(
                f"{self.where} is not text (byte {line[error.start]:#04x} at {error.start})",
                "UTF-8",
                "Save the file as UTF-8.",
            ) from None
        return text.removeprefix("\ufeff") if self._number == 1 else text


class _RowParser(Protocol):
    """Splits a text into records, and reads the row of a record."""

    def next_record(self) -> Any:
        """Return the next record, or None at the end; raise if the text cannot be split."""

    def row(self, record: Any) -> Row:
        """Return the numbers and the payload of a record; raise if they are wrong."""


class _TextReader:
    """Reads rows of text. The first row is read at once, for the dimension."""

    def __init__(
        self,
        stream: ByteStream,
        lines: _Lines,
        rows: _RowParser,
        options: ReadOptions,
    ) -> None:
        self._stream = stream
        self._lines = lines
        self._rows = rows
        self._bad_row = options.bad_row
        self._first = self._next_row(None)

    def read_dimension(self, source: Source) -> None:
        """Set the dimension of the source to that of the first row."""
        if self._first is not None:
            source.set_dimension(len(self._first[0]), f"{self._lines.where} has a vector")

    def take(self, source: Source, rows: int) -> Rows:
        vectors: list[npt.NDArray[np.float64]] = []
        payloads: list[Any] = []
        places: list[int] = []
        while len(vectors) < rows and not (vectors and self._stream.line_is_late()):
            row, self._first = self._first or self._next_row(source), None
            if row is None:
                break
            numbers, payload, place = row
            vectors.append(numbers)
            places.append(place)
            if payload is not None:
                payloads.append(payload)
        source.places = places
        table = np.array(vectors, dtype=np.float64).reshape(len(vectors), source.dimension or 0)
        return table, payloads if source.options.payload else None

    def _next_row(self, source: Source | None) -> _Read | None:
        """Return the next row that is not wrong; raise for a wrong one if none may be left out."""
        while (record := self._rows.next_record()) is not None:
            try:
                numbers, payload = self._rows.row(record)
                row = _finite(numbers, self._lines.where)
                if source is not None and len(row) != source.dimension:
                    source.set_dimension(len(row), f"{self._lines.where} has a vector")
            except InputFileError as error:  # noqa: PERF203
                if self._bad_row is None:
                    raise
                self._bad_row(error)
            else:
                return row, payload, self._lines.number
        return None

    def skip(self, source: Source, rows: int) -> int:
        done = 0
        if rows and self._first is not None:
            self._first, done = None, 1
        while done < rows and self._rows.next_record() is not None:
            done += 1
        return done


def _finite(numbers: list[Any], where: str) -> npt.NDArray[np.float64]:
    """Return the numbers of a row; raise InputFileError if one is not finite."""
    try:
        row = np.array(numbers, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        row = np.array(np.nan)
    if not np.isfinite(row).all():
        raise file_error(
            f"{where} holds a number that is not finite", "finite numbers", "Correct the row."
        )
    return row


def read_start(stream: ByteStream, kind: str) -> dict[str, Any]:
    """Return the cells of the first row of a text by column; empty if the columns have no names."""
    lines = _Lines(stream)
    if kind == "csv":
        rows = _CsvRows(lines, ReadOptions(None, None, None))
        names = rows.record() or []
        if all(map(is_number, names)):
            return {}
        cells = rows.record() or []
        return dict(zip(names, [*cells, *[""] * len(names)], strict=False))
    read = _JsonRows(lines, ReadOptions(None, None, None))
    line = read.next_record()
    value = None if line is None else read.value(line)
    return value if isinstance(value, dict) else {}


class _JsonRows:
    """Rows of JSON lines. Empty lines are skipped."""

    def __init__(self, lines: _Lines, options: ReadOptions) -> None:
        self._lines = lines
        self._options = options
        self._column = options.column

    def next_record(self) -> str | None:
        """Return the next line that is not empty, or None at the end."""
        while (line := self._lines.next()) is not None:
            if line.strip():
                break
        return line

    def value(self, line: str) -> Any:
        """Return the value of a line."""
        try:
            return DECODER.decode(line)
        except (ValueError, RecursionError) as error:
            deep = isinstance(error, RecursionError)
            raise file_error(
                f"{self._lines.where} is not JSON that can be used "
                f"({'nested too deeply' if deep else first_line(error)})",
                "an array of numbers, or an object with one",
                "Correct the line.",
            ) from None

    def row(self, line: str) -> Row:
        """Return the numbers and the payload of a line."""
        value = self.value(line)
        if isinstance(value, dict):
            return self._row_of_object(value)
        if self._options.payload or self._options.column:
            raise file_error(
                f"{self._lines.where} has no columns", "an object", "Leave column and payload out."
            )
        return self._numbers(value, "the line"), None

    def _row_of_object(self, fields: dict[str, Any]) -> Row:
        if self._column is None:
            lists = [name for name, value in fields.items() if isinstance(value, list)]
            seen = f"{self._lines.where} has {len(lists)} fields that hold arrays"
            remedy = "Give the name of the vectors as column."
            self._column = default_column(fields, lists, seen, remedy)
        if self._column not in fields:
            raise file_error(
                f"{self._lines.where} has no {self._column!r}",
                f"one of its fields: {quoted(list(fields)) or 'none'}",
                "Give the name of the vectors as column.",
            )
        numbers = self._numbers(fields[self._column], repr(self._column))
        if not self._options.payload:
            return numbers, None
        names = self._options.payload_names(list(fields), self._column)
        return numbers, {name: fields.get(name) for name in names}

    def _numbers(self, value: Any, what: str) -> list[Any]:
        if not isinstance(value, list) or not set(map(type, value)) <= _NUMBERS:
            raise file_error(
                f"{self._lines.where}: {what} is no array of numbers",
                "numbers alone, none of them null",
                "Correct the line.",
            )
        return value


@dataclass(frozen=True, slots=True)
class _Layout:
    """Cells of a CSV row; `array` is the cell with a complete vector as a JSON array."""

    width: int
    numbers: tuple[int, ...]
    array: int | None
    payload: dict[str, int]


class _CsvRows:
    """Rows of a CSV file. Empty lines are skipped."""

    def __init__(self, lines: _Lines, options: ReadOptions) -> None:
        self._lines = lines
        self._options = options
        self._layout: _Layout | None = None
        self._record_bytes = 0
        self._records = csv.reader(self._physical_lines(), strict=True, skipinitialspace=True)

    def next_record(self) -> list[str] | None:
        """Return the cells of the next row after the names, or None at the end."""
        cells = self.record()
        if cells is not None and self._layout is None:
            named = not all(map(is_number, cells))
            self._layout = self._layout_of(cells if named else None, len(cells))
            if named:
                cells = self.record()
        return cells

    def _physical_lines(self) -> Iterator[str]:
        while (line := self._lines.next()) is not None:
            self._record_bytes += len(line)  # a row has several lines while a quote is open
            if self._record_bytes > LINE_MAX:
                raise file_error(
                    f"{self._lines.where} ends no row", "rows of one line", "Close the quotes."
                )
            yield line

    def record(self) -> list[str] | None:
        """Return the cells of the next row, or None at the end."""
        try:
            while (cells := next(self._records, None)) is not None:
                self._record_bytes = 0
                if cells:
                    return cells
        except csv.Error as error:
            raise file_error(
                f"{self._lines.where} is not CSV ({first_line(error)})",
                "cells with commas",
                "Correct the line.",
            ) from None
        return None

    def row(self, cells: list[str]) -> Row:
        """Return the numbers and the payload of a row."""
        layout = self._layout
        assert layout is not None
        if len(cells) != layout.width:
            raise file_error(
                f"{self._lines.where} has {len(cells)} cells",
                f"{layout.width}, as before",
                "Correct the row.",
            )
        if layout.array is not None:
            numbers = self._array(cells[layout.array])
        else:
            numbers = [self._number(cells[index], index) for index in layout.numbers]
        if not self._options.payload:
            return numbers, None
        return numbers, {name: cells[index] or None for name, index in layout.payload.items()}

    def _number(self, cell: str, index: int) -> float:
        try:
            if "_" not in cell:  # Python reads 1_000 as a number; CSV does not
                return float(cell)
        except ValueError:
            pass
        raise file_error(
            f"{self._lines.where}, cell {index + 1}: {cell[:40]!r}",
            "a number",
            "Name columns of other things as payload, or those of the vectors as column.",
        )

    def _array(self, cell: str) -> list[Any]:
        try:
            value = json.loads(cell)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, list) or not set(map(type, value)) <= _NUMBERS:
            raise file_error(
                f"{self._lines.where}: {cell[:40]!r}",
                "an array of numbers, [0.1, 0.2, …]",
                "Correct the row.",
            )
        return value

    def _layout_of(self, names: list[str] | None, width: int) -> _Layout:
        if names is None:
            if self._options.column or self._options.payload:
                raise file_error(
                    f"{self._lines.where} has no names of columns",
                    "a first line with names",
                    "Add one, or leave column and payload out.",
                )
            return _Layout(width, tuple(range(width)), None, {})
        if len(set(names)) < len(names):
            raise file_error(
                f"{self._lines.where} names a column twice", "each once", "Correct the first line."
            )
        takes_all = ALL in self._options.payload
        given = self._options.own.values() if takes_all else self._options.payload
        asked = list(given)
        vector = self._vector_columns(names, asked)
        rest = [name for name in names if name not in vector]
        missing = [name for name in asked if name not in rest]
        if missing:
            raise self._no_column(missing[0], rest)
        is_array = len(vector) == 1 and vector[0] in (*DEFAULT_COLUMNS, self._options.column)
        return _Layout(
            width,
            tuple(names.index(name) for name in vector),
            names.index(vector[0]) if is_array else None,
            {name: names.index(name) for name in (rest if takes_all else asked)},
        )

    def _vector_columns(self, names: list[str], payload: list[str]) -> list[str]:
        """Return the column of arrays, else the numbered columns, else all but the payload."""
        column = self._options.column
        for stem in (column,) if column is not None else DEFAULT_COLUMNS:
            if stem in names:
                return [stem]
            numbered = [name for name in names if re.fullmatch(re.escape(stem) + r"[_.]?\d+", name)]
            if numbered:
                return numbered
        if column is not None:
            raise self._no_column(column, names)
        if self._options.payload == (ALL,):
            raise file_error(
                f"all columns of {self._lines.name} as payload",
                "some left for the vectors",
                "Give the name of the vectors as column.",
            )
        return [name for name in names if name not in payload]

    def _no_column(self, name: str, there: list[str]) -> InputFileError:
        return file_error(
            f"no column {name!r} in {self._lines.name}",
            f"one of its columns: {quoted(there) or 'none'}",
            "Check the name.",
        )


def is_number(cell: str) -> bool:
    """Return whether a cell holds a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _parse_integer(digits: str) -> int:
    if len(digits) > DIGITS_MAX:
        raise ValueError(f"an integer of {len(digits)} digits")
    return int(digits)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name}, which JSON does not have")


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a field that is there twice")
    return fields


DECODER = json.JSONDecoder(
    parse_int=_parse_integer, parse_constant=_refuse_constant, object_pairs_hook=_unique_fields
)
