"""Tables as bytes of a file, block by block: Arrow, Parquet, CSV or JSON lines."""

from __future__ import annotations

import csv
import importlib
import json
from collections.abc import Callable, Iterator
from io import RawIOBase, StringIO
from typing import Any

import numpy as np

from linkstream.errors import ArgumentError
from linkstream.tables.columns import Column
from linkstream.tables.frames import check_kind, make_frame

Columns = dict[str, Column]


def check_format(form: str) -> None:
    """Raise ArgumentError for an unknown format, MissingExtraError if it is not installed."""
    if form not in FORMATS:
        raise ArgumentError(
            f"format {form!r:.80}",
            expected=" or ".join(map(repr, FORMATS)),
            remedy="Choose one of these.",
        )
    if form in ("arrow", "parquet"):
        check_kind("arrow")


def encoded(blocks: Iterator[Columns], form: str) -> Iterator[bytes]:
    """Yield a table as bytes of a file.

    Args:
        blocks: the columns of each block of rows, at least of one; their names and types are equal.
        form: "arrow", "parquet", "csv" or "jsonl".
    """
    return _ENCODERS[form](blocks)


def _json_lines(blocks: Iterator[Columns]) -> Iterator[bytes]:
    for columns in blocks:
        rows = zip(*map(_plain, columns.values()), strict=True)
        lines = (json.dumps(dict(zip(columns, row, strict=True)), allow_nan=False) for row in rows)
        yield "".join(f"{line}\n" for line in lines).encode()


def _csv(blocks: Iterator[Columns]) -> Iterator[bytes]:
    for number, columns in enumerate(blocks):
        text = StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        if number == 0:
            writer.writerow(columns)
        writer.writerows(zip(*map(_cells, columns.values()), strict=True))
        yield text.getvalue().encode("utf-8", "backslashreplace")


def _plain(column: Column) -> list[Any]:
    """Return values for JSON; None for a missing one."""
    if column.values.dtype.kind == "M":
        texts = np.datetime_as_string(column.values, unit="us").tolist()
        return [None if text == "NaT" else f"{text}Z" for text in texts]
    values = [each.tolist() for each in column.values] if column.lists else column.values.tolist()
    if column.missing is None:
        return values
    return [None if m else v for v, m in zip(values, column.missing.tolist(), strict=True)]


def _cells(column: Column) -> list[Any]:
    """Return values for CSV: texts and numbers as they are, others as JSON."""
    return [
        json.dumps(value) if isinstance(value, (bool, list)) else value for value in _plain(column)
    ]


class _Drain(RawIOBase):
    """A file that hands out what was written since."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        """Return that it can be written to."""
        return True

    def write(self, data: Any) -> int:
        """Keep some bytes."""
        self._parts.append(bytes(data))
        self._size += len(self._parts[-1])
        return len(self._parts[-1])

    def tell(self) -> int:
        """Return how many bytes were written in all."""
        return self._size

    def taken(self) -> bytes:
        """Return the bytes since the last call."""
        parts, self._parts = self._parts, []
        return b"".join(parts)


def _arrow(blocks: Iterator[Columns]) -> Iterator[bytes]:
    ipc = importlib.import_module("pyarrow.ipc")
    return _written(blocks, ipc.new_stream)


def _parquet(blocks: Iterator[Columns]) -> Iterator[bytes]:
    module = importlib.import_module("pyarrow.parquet")
    return _written(
        blocks, lambda sink, schema: module.ParquetWriter(sink, schema, write_page_checksum=True)
    )


def _written(
    blocks: Iterator[Columns], open_writer: Callable[[_Drain, Any], Any]
) -> Iterator[bytes]:
    sink, writer = _Drain(), None
    for columns in blocks:
        table = make_frame(columns, "arrow")
        writer = writer or open_writer(sink, table.schema)
        if table.num_rows:
            writer.write_table(table)
        yield sink.taken()
    if writer is not None:
        writer.close()
        yield sink.taken()


_ENCODERS: dict[str, Callable[[Iterator[Columns]], Iterator[bytes]]] = {
    "arrow": _arrow,
    "parquet": _parquet,
    "csv": _csv,
    "jsonl": _json_lines,
}
FORMATS = tuple(_ENCODERS)
