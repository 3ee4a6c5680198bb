"""Files written atomically, and tables in `.parquet`, `.npz`, `.jsonl` and `.csv`."""

from __future__ import annotations

import csv
import json
import os
import secrets
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BytesIO, StringIO
from itertools import chain
from pathlib import Path
from typing import IO, Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from linkstream.errors import ArgumentError
from linkstream.io.arrow_files import arrow

Column = npt.NDArray[Any] | Sequence[Any]
Table = Mapping[str, Column]

_COPY = 2**20


@contextmanager
def atomic_file(path: str | os.PathLike[str], mode: Literal["w", "wb"] = "wb") -> Iterator[IO[Any]]:
    """Open a stream to write to; the file replaces `path` when it is complete and on disk.

    If writing fails, an older file of the same name stays as it was. If `path` is a symbolic link,
    the file that it points to is replaced.

    Args:
        path: the file to write.
        mode: "w" for UTF-8 text, "wb" for bytes.

    Raises:
        ArgumentError: no file can be written there; nothing was written.
    """
    path = Path(os.path.realpath(path))
    partial = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.partial")
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    try:
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            raise ValueError("it is no file")
        stream = partial.open(mode.replace("w", "x"), **text)
    except (OSError, ValueError) as error:
        raise ArgumentError(
            f"{str(path)!r} cannot be written ({getattr(error, 'strerror', None) or error})",
            expected="a file in a folder that exists and may be written to",
            remedy="Create the folder first, or choose another one.",
        ) from None
    try:
        with stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
        sync_folder(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to disk, if the system can."""
    try:
        number = os.open(folder, os.O_RDONLY)
    except OSError:  # this system does not open folders
        return
    try:
        os.fsync(number)
    finally:
        os.close(number)


def write_table(
    path: str | os.PathLike[str], blocks: Iterable[Table], *, encoded: Collection[str] = ()
) -> int:
    """Write a table block by block; return how many rows it has.

    The file appears under its name only when it is complete.

    Args:
        path: the file to write; the suffix chooses the format: `.parquet`, `.npz`, `.jsonl` or
            `.csv`.
        blocks: the rows, at least one block. A block is a dict of columns of one length: arrays of
            numbers (two-dimensional for vectors), or lists of texts, which may be None. The first
            block, which may be empty, determines the columns.
        encoded: columns with values of any type that JSON has. They become JSON text in `.parquet`
            and `.csv`. A `.npz` has no texts without pickle: there, a column of texts is an array
            of bytes with one line of JSON a row.
    """
    path = Path(path)
    writer_of = _writer_of(path)
    rest = iter(blocks)
    first = next(rest, None)
    if first is None:
        raise ArgumentError(
            "a table without a block", expected="at least one", remedy="Give an empty one."
        )
    rows = 0
    with atomic_file(path, "wb") as stream, ExitStack() as resources:
        target = _Target(stream, first, frozenset(encoded), path.resolve().parent, resources)
        writer = writer_of(target)
        for block in chain([first], rest):
            rows += _check_block(first, block)
            writer.write(block)
    return rows


def _writer_of(path: Path) -> type[_Writer]:
    """Return the writer for a suffix; raise ArgumentError if there is none."""
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


@dataclass(frozen=True, slots=True)
class _Target:
    """What a writer is given: the stream, the first block, and where temporary files go."""

    stream: IO[bytes]
    first: Table
    encoded: frozenset[str]
    folder: Path
    resources: ExitStack

    def texts(self, name: str, column: Column) -> list[str | None]:
        """Return a column without numbers as texts."""
        if name not in self.encoded:
            return list(column)
        return [None if value is None else to_json(value) for value in column]


class _Writer(Protocol):
    """Writes tables of one format."""

    def __init__(self, target: _Target) -> None: ...

    def write(self, block: Table) -> None:
        """Write some rows."""


class _JsonLines:
    def __init__(self, target: _Target) -> None:
        self._stream = target.stream

    def write(self, block: Table) -> None:
        for line in json_lines(block):
            self._stream.write(line.encode())


class _Csv:
    def __init__(self, target: _Target) -> None:
        self._target = target
        self._write_rows([list(target.first)])

    def write(self, block: Table) -> None:
        cells = [self._cells(name, column) for name, column in block.items()]
        self._write_rows(zip(*cells, strict=True))

    def _cells(self, name: str, column: Column) -> list[Any]:
        if not isinstance(column, np.ndarray):
            return self._target.texts(name, column)
        return list(map(to_json, column.tolist())) if column.ndim == 2 else _listed(column)

    def _write_rows(self, rows: Iterable[Iterable[Any]]) -> None:
        text = StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._target.stream.write(text.getvalue().encode())


class _Parquet:
    def __init__(self, target: _Target) -> None:
        self._texts = target.texts
        self._schema = arrow().schema(
            [(name, _arrow_type(column)) for name, column in target.first.items()]
        )
        options = {"write_page_checksum": True, "use_dictionary": False}
        writer = arrow("pyarrow.parquet").ParquetWriter(target.stream, self._schema, **options)
        self._writer = target.resources.enter_context(writer)

    def write(self, block: Table) -> None:
        pa = arrow()
        arrays = []
        for field, (name, column) in zip(self._schema, block.items(), strict=True):
            if isinstance(column, np.ndarray) and column.ndim == 2:
                flat = pa.array(np.ascontiguousarray(column).reshape(-1))
                arrays.append(pa.FixedSizeListArray.from_arrays(flat, type=field.type))
            else:
                values = column if isinstance(column, np.ndarray) else self._texts(name, column)
                arrays.append(pa.array(values, type=field.type, from_pandas=True))  # NaN: null
        self._writer.write_batch(pa.record_batch(arrays, schema=self._schema))


def _arrow_type(column: Column) -> Any:
    pa = arrow()
    if not isinstance(column, np.ndarray):
        return pa.string()
    inner = pa.from_numpy_dtype(column.dtype)
    return pa.list_(inner, column.shape[1]) if column.ndim == 2 else inner


class _Npz:
    """Writes each column to a temporary file, and in the end all of them to the archive."""

    def __init__(self, target: _Target) -> None:
        self._stream = target.stream
        self._first = target.first
        self._rows = 0
        enter = target.resources.enter_context
        self._parts = {
            name: enter(tempfile.TemporaryFile(dir=target.folder))  # noqa: SIM115
            for name in target.first
        }
        target.resources.push(self._finish)

    def write(self, block: Table) -> None:
        for name, column in block.items():
            if isinstance(column, np.ndarray):
                data = np.ascontiguousarray(column, dtype=self._dtype(name)).tobytes()
            else:
                data = "".join(to_json(value) + "\n" for value in column).encode()
            self._parts[name].write(data)
        self._rows += len(next(iter(block.values())))

    def _finish(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:  # the file is dropped
            return
        with zipfile.ZipFile(self._stream, "w", zipfile.ZIP_STORED) as archive:
            for name, part in self._parts.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    column = self._first[name]
                    shape: tuple[int, ...] = (part.tell(),)
                    if isinstance(column, np.ndarray):
                        shape = (self._rows, *column.shape[1:])
                    member.write(_npy_header(self._dtype(name), shape))
                    part.seek(0)
                    shutil.copyfileobj(part, member, _COPY)

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
    """Return the header that numpy.save would write."""
    text = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    stream = BytesIO()
    npy.write_array_header_1_0(stream, text)
    return stream.getvalue()


def json_lines(block: Table) -> Iterator[str]:
    """Return the rows of a block, each as a line of JSON."""
    columns = block.values()
    lists = [_listed(column) if isinstance(column, np.ndarray) else column for column in columns]
    for row in zip(*lists, strict=True):
        yield to_json(dict(zip(block, row, strict=True))) + "\n"


def _listed(column: npt.NDArray[Any]) -> list[Any]:
    """Return the values of an array; None for NaN."""
    values: list[Any] = column.tolist()
    if column.dtype.kind != "f" or column.ndim > 1:
        return values
    return [None if value != value else value for value in values]


def to_json(value: Any) -> str:
    """Return a value as one line of JSON; raise ValueError for NaN and infinity."""
    return json.dumps(value, allow_nan=False)
