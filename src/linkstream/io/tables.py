"""Tables written in blocks: `.parquet`, `.npz`, `.jsonl`, `.csv`.

A block is a dict of columns, all of one length: arrays of numbers (of one dimension, or of two for
vectors), or lists of texts. The first block says which columns there are.
"""

from __future__ import annotations

import csv
import json
import os
import tempfile
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from linkstream.errors import ArgumentError
from linkstream.io.columns import arrow
from linkstream.io.whole import whole_file

Column = npt.NDArray[Any] | Sequence[Any]
Table = Mapping[str, Column]

_COPY = 2**20


def write_table(
    path: str | os.PathLike[str], blocks: Iterable[Table], *, encoded: Collection[str] = ()
) -> int:
    """Write a table, block by block; how many rows it has.

    The file appears under its name only when it is complete. Texts may be None.

    Args:
        path: where to; the suffix says what is written: `.parquet`, `.npz`, `.jsonl` or `.csv`.
        blocks: the rows, as dicts of columns; one block at least, which may have no rows.
        encoded: columns whose values are anything that JSON can say. They are JSON text in
            `.parquet` and `.csv`. In `.npz`, which has no texts without pickle, all texts are
            bytes: a line of JSON for each row.
    """
    path = Path(path)
    writer = _writer_of(path)
    whole = iter(blocks)
    first = next(whole, None)
    if first is None:
        raise ArgumentError(
            "a table without a block", expected="at least one", remedy="Give an empty one."
        )
    rows = 0
    with whole_file(path, "wb") as stream, ExitStack() as owned:
        to = writer(stream, first, frozenset(encoded), path.resolve().parent, owned)
        for block in chain([first], whole):
            rows += _check_block(first, block)
            to.write(block)
        to.finish()
    return rows


def _writer_of(path: Path) -> type[_Writer]:
    """Who writes a file of this name; ArgumentError for a suffix that nobody writes."""
    writer = _WRITERS.get(path.suffix.lower())
    if writer is None:
        raise ArgumentError(
            f"a table to {str(path)!r}",
            expected=f"a name that ends in {', '.join(_WRITERS)}",
            remedy="Choose one of these.",
        )
    return writer


def _check_block(first: Table, block: Table) -> int:
    lengths = {len(column) for column in block.values()}
    if list(block) != list(first) or len(lengths) != 1:
        raise ArgumentError(
            f"a block of columns {list(block)} of lengths {sorted(lengths)}",
            expected=f"columns {list(first)}, all of one length",
            remedy="Give all blocks the columns of the first.",
        )
    return lengths.pop()


class _Writer:
    def __init__(
        self,
        stream: IO[bytes],
        first: Table,
        encoded: frozenset[str],
        folder: Path,
        owned: ExitStack,
    ) -> None:
        self._stream = stream
        self._first = first
        self._encoded = encoded
        self._begin(folder, owned)

    def _begin(self, folder: Path, owned: ExitStack) -> None:
        """Get ready."""

    def write(self, block: Table) -> None:
        """Write some rows."""
        raise NotImplementedError

    def finish(self) -> None:
        """Write what comes last."""

    def _texts(self, name: str, column: Column) -> list[str | None]:
        """A column that holds no numbers, as texts."""
        if name not in self._encoded:
            return list(column)
        return [None if value is None else _json(value) for value in column]


class _JsonLines(_Writer):
    def write(self, block: Table) -> None:
        for line in json_lines(block):
            self._stream.write(line.encode())


class _Csv(_Writer):
    def _begin(self, folder: Path, owned: ExitStack) -> None:
        self._write_rows([list(self._first)])

    def write(self, block: Table) -> None:
        cells = [self._cells(name, column) for name, column in block.items()]
        self._write_rows(zip(*cells, strict=True))

    def _cells(self, name: str, column: Column) -> list[Any]:
        if not isinstance(column, np.ndarray):
            return self._texts(name, column)
        return list(map(_json, column.tolist())) if column.ndim == 2 else column.tolist()

    def _write_rows(self, rows: Iterable[Iterable[Any]]) -> None:
        text = _Lines()
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._stream.write("".join(text.lines).encode())


class _Lines:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, line: str) -> None:
        self.lines.append(line)


class _Parquet(_Writer):
    def _begin(self, folder: Path, owned: ExitStack) -> None:
        pa = arrow()
        self._schema = pa.schema([(name, _type(column)) for name, column in self._first.items()])
        options = {"write_page_checksum": True, "use_dictionary": False}
        writer = arrow("pyarrow.parquet").ParquetWriter(self._stream, self._schema, **options)
        self._writer = owned.enter_context(writer)

    def write(self, block: Table) -> None:
        pa = arrow()
        arrays = []
        for field, (name, column) in zip(self._schema, block.items(), strict=True):
            if isinstance(column, np.ndarray) and column.ndim == 2:
                flat = pa.array(np.ascontiguousarray(column).reshape(-1))
                arrays.append(pa.FixedSizeListArray.from_arrays(flat, type=field.type))
            else:
                values = column if isinstance(column, np.ndarray) else self._texts(name, column)
                arrays.append(pa.array(values, type=field.type))
        self._writer.write_batch(pa.record_batch(arrays, schema=self._schema))

    def finish(self) -> None:
        self._writer.close()


def _type(column: Column) -> Any:
    pa = arrow()
    if not isinstance(column, np.ndarray):
        return pa.string()
    inner = pa.from_numpy_dtype(column.dtype)
    return pa.list_(inner, column.shape[1]) if column.ndim == 2 else inner


class _Npz(_Writer):
    """Columns side by side in files without a name, then one after the other in the archive."""

    def _begin(self, folder: Path, owned: ExitStack) -> None:
        self._rows = 0
        self._parts = {
            name: owned.enter_context(tempfile.TemporaryFile(dir=folder))  # noqa: SIM115
            for name in self._first
        }

    def write(self, block: Table) -> None:
        for name, column in block.items():
            if isinstance(column, np.ndarray):
                data = np.ascontiguousarray(column, dtype=self._dtype(name)).tobytes()
            else:
                data = "".join(_json(value) + "\n" for value in column).encode()
            self._parts[name].write(data)
        self._rows += len(next(iter(block.values())))

    def finish(self) -> None:
        with zipfile.ZipFile(self._stream, "w", zipfile.ZIP_STORED) as archive:
            for name, part in self._parts.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    for piece in self._pieces(name, part):
                        member.write(piece)

    def _pieces(self, name: str, part: IO[bytes]) -> Iterator[bytes]:
        column, size = self._first[name], part.tell()
        shape: tuple[int, ...] = (size,)
        if isinstance(column, np.ndarray):
            shape = (self._rows, *column.shape[1:])
        yield _npy_header(self._dtype(name), shape)
        part.seek(0)
        while piece := part.read(_COPY):
            yield piece

    def _dtype(self, name: str) -> np.dtype[Any]:
        column = self._first[name]
        return column.dtype if isinstance(column, np.ndarray) else np.dtype(np.uint8)


_WRITERS: dict[str, type[_Writer]] = {
    ".parquet": _Parquet,
    ".npz": _Npz,
    ".jsonl": _JsonLines,
    ".csv": _Csv,
}
SUFFIXES = tuple(_WRITERS)


def _npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """The header that numpy.save would write."""
    text = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    stream = BytesIO()
    npy.write_array_header_1_0(stream, text)
    return stream.getvalue()


def json_lines(block: Table) -> Iterator[str]:
    """Return the rows of a block, each as a line of JSON."""
    lists = [_plain(column) for column in block.values()]
    for row in zip(*lists, strict=True):
        yield _json(dict(zip(block, row, strict=True))) + "\n"


def _plain(column: Column) -> Sequence[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else column


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False)
