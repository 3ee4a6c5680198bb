"""`.csv`: a row a line of numbers, with or without names for the columns."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from linkstream.io.faults import fault, reason
from linkstream.io.flow import Flow
from linkstream.io.source import ALL, DEFAULT_COLUMNS, Wanted
from linkstream.io.texts import LINE_MAX, Row, TextSource


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which cells of a row are what; `cell` is that of a whole vector, as a JSON array."""

    width: int
    numbers: tuple[int, ...]
    cell: int | None
    payload: dict[str, int]


class CsvSource(TextSource):
    """Vectors of a CSV file. Empty lines are no rows."""

    def __init__(self, flow: Flow, wanted: Wanted) -> None:
        wanted.refuse(flow.name, "key")
        self._layout: _Layout | None = None
        self._record_bytes = 0
        self._records = csv.reader(self._lines(), strict=True, skipinitialspace=True)
        super().__init__(flow, wanted, kind="csv")

    def _lines(self) -> Iterator[str]:
        while (line := self._next_line()) is not None:
            self._record_bytes += len(line)  # a row goes on over lines where a quote is open
            if self._record_bytes > LINE_MAX:
                raise fault(f"{self.where} ends no row", "rows of one line", "Close the quotes.")
            yield line

    def _record(self) -> list[str] | None:
        """The cells of the next row, or None at the end."""
        try:
            while (cells := next(self._records, None)) is not None:
                self._record_bytes = 0
                if cells:
                    return cells
        except csv.Error as error:
            raise fault(
                f"{self.where} is not CSV ({reason(error)})", "cells with commas", "Mend the line."
            ) from None
        return None

    def _next_row(self) -> Row | None:
        cells = self._record()
        if cells is not None and self._layout is None:
            named = not all(map(_is_number, cells))
            self._layout = self._layout_of(cells if named else None, len(cells))
            if named:
                cells = self._record()
        return None if cells is None else self._row(cells)

    def _skip_row(self) -> bool:
        return self._record() is not None

    def _row(self, cells: list[str]) -> Row:
        layout = self._layout
        assert layout is not None
        if len(cells) != layout.width:
            raise fault(
                f"{self.where} has {len(cells)} cells",
                f"{layout.width}, as before",
                "Mend the row.",
            )
        if layout.cell is not None:
            numbers = self._array(cells[layout.cell])
        else:
            numbers = [self._number(cells[place], place) for place in layout.numbers]
        if not self._wanted.payload:
            return numbers, None
        return numbers, {name: cells[place] or None for name, place in layout.payload.items()}

    def _number(self, cell: str, place: int) -> float:
        try:
            if "_" not in cell:  # Python reads 1_000, a file of numbers does not hold it
                return float(cell)
        except ValueError:
            pass
        raise fault(
            f"{self.where}, cell {place + 1}: {cell[:40]!r}",
            "a number",
            "Name columns of other things as payload, or those of the vectors as column.",
        )

    def _array(self, cell: str) -> list[Any]:
        try:
            value = json.loads(cell)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, list) or not set(map(type, value)) <= {int, float}:
            raise fault(
                f"{self.where}: {cell[:40]!r}",
                "an array of numbers, [0.1, 0.2, …]",
                "Mend the row.",
            )
        return value

    def _layout_of(self, names: list[str] | None, width: int) -> _Layout:
        if names is None:
            if self._wanted.column or self._wanted.payload:
                raise fault(
                    f"{self.where} has no names of columns",
                    "a first line with names",
                    "Add one, or leave column and payload out.",
                )
            return _Layout(width, tuple(range(width)), None, {})
        if len(set(names)) < len(names):
            raise fault(f"{self.where} names a column twice", "each once", "Mend the first line.")
        asked = [name for name in self._wanted.payload if name != ALL]
        vector = self._vector_columns(names, asked)
        rest = [name for name in names if name not in vector]
        missing = [name for name in asked if name not in rest]
        if missing:
            raise fault(
                f"no column {missing[0]!r} in {self.name}", _one_of(rest), "Check the name."
            )
        whole = len(vector) == 1 and (
            vector[0] in DEFAULT_COLUMNS or vector[0] == self._wanted.column
        )
        return _Layout(
            width,
            tuple(names.index(name) for name in vector),
            names.index(vector[0]) if whole else None,
            {name: names.index(name) for name in (asked or rest)},
        )

    def _vector_columns(self, names: list[str], payload: list[str]) -> list[str]:
        """One column of arrays, or those that are numbered, or all that are no payload."""
        column = self._wanted.column
        for stem in (column,) if column is not None else DEFAULT_COLUMNS:
            if stem in names:
                return [stem]
            numbered = [name for name in names if re.fullmatch(re.escape(stem) + r"[_.]?\d+", name)]
            if numbered:
                return numbered
        if column is not None:
            raise fault(f"no column {column!r} in {self.name}", _one_of(names), "Check the name.")
        if self._wanted.payload == (ALL,):
            raise fault(
                f"all columns of {self.name} as payload",
                "some left for the vectors",
                "Give the name of the vectors as column.",
            )
        return [name for name in names if name not in payload]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _one_of(names: list[str]) -> str:
    shown = ", ".join(repr(name[:40]) for name in names[:10])
    return f"one of its columns: {shown}" if shown else "one of its columns; there are none"
