"""Which kind of file it is, and who reads it."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from linkstream.errors import InputFileError
from linkstream.io.archives import open_npz, read_npz
from linkstream.io.arrays import NPY_MAGIC, ColumnsSource, RowsSource, check_size, read_header
from linkstream.io.commas import CsvSource
from linkstream.io.databases import check_no_address, is_address
from linkstream.io.faults import fault
from linkstream.io.flow import Flow
from linkstream.io.ipc import FILE_MAGIC, STREAM_MAGIC, open_ipc, open_ipc_bytes
from linkstream.io.jsonlines import JsonLinesSource
from linkstream.io.parquet import open_parquet
from linkstream.io.postgres import open_postgres
from linkstream.io.qdrant import open_qdrant
from linkstream.io.source import BLOCK, Source, Wanted

STDIN = "-"

# By the first bytes, whatever the name; the rest by the name.
_MAGIC = {
    NPY_MAGIC: "npy",
    b"PK\x03\x04": "npz",
    b"PK\x05\x06": "npz",
    b"PAR1": "parquet",
    FILE_MAGIC: "arrow",
    STREAM_MAGIC: "arrow",
}
_SUFFIX = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".f32": "raw",
    ".raw": "raw",
    ".bin": "raw",
}
_KINDS = ".npy, .npz, .parquet, .arrow, .feather, .jsonl, .csv, or .f32 of raw float32"


def open_vectors(
    source: str | os.PathLike[str] | IO[bytes],
    *,
    key: str | None = None,
    column: str | None = None,
    dimension: int | None = None,
    payload: Sequence[str] | str = (),
    block: int = BLOCK,
) -> Source:
    """The vectors of a file, a pipe or a database, in blocks; memory holds one at a time.

    Args:
        source: a path; `-` for stdin; or a binary stream. A file is judged by its first bytes,
            else by its suffix. A stream is a `.npy` by its first bytes, raw float32 (little
            endian) if the dimension is given, else JSON lines; a BytesIO may be Arrow, too.
            Or the address of a table or collection, as a text:
            `postgresql://host/database?table=faces&order=id`, `qdrant://host:6333/faces`.
        key: name of the array in a `.npz`; without it, `X`, or the only one there is.
        column: name of the vectors in a file with columns; without it, `embedding`, `vector`,
            or the only one there is.
        dimension: how many numbers a vector has. Raw rows need it; elsewhere it is checked.
        payload: names of columns that make the payload of a row, or `*` for all the others.
        block: rows of a block, at most; 64 MiB of numbers are a block in any case.

    Raises:
        InputFileError: no such file, key or column; damaged, hostile, or not what it says. Rows
            that are wrong are told when their block is read.
        MissingExtraError: what the file or the database needs is not installed.
    """
    wanted = Wanted.of(key=key, column=column, dimension=dimension, payload=payload, block=block)
    if isinstance(source, str) and is_address(source):
        qdrant = source.lower().startswith("qdrant")
        return (open_qdrant if qdrant else open_postgres)(source, wanted)
    if not isinstance(source, str | os.PathLike):
        return _open_stream(getattr(source, "name", "the stream"), source, wanted)
    if source == STDIN:
        return _open_stream("stdin", sys.stdin.buffer, wanted)
    return _open_file(Path(source), wanted)


def read_vectors(
    path: str | os.PathLike[str],
    *,
    key: str | None = None,
    column: str | None = None,
    dimension: int | None = None,
) -> npt.NDArray[Any]:
    """The vectors of a file, one a row; a `.npy` stays on disk until its rows are used.

    Args:
        path: a file of any kind that `open_vectors` reads.
        key: name of the array in a `.npz`; without it, `X`, or the only one there is.
        column: name of the vectors in a file with columns.
        dimension: how many numbers a vector has; raw float32 needs it.

    Raises:
        InputFileError: no such file or key, not a table of numbers, damaged, or not what it says.
        MissingExtraError: the file needs pyarrow, which is not installed.
    """
    path = Path(path)
    wanted = Wanted.of(key=key, column=column, dimension=dimension)
    with regular(path) as file:
        kind = _kind(path, file)
        if kind == "npz":
            return read_npz(str(path), file, key)
        if kind == "npy":
            return _mapped(path, file, wanted)
    with _open_file(path, wanted) as source:
        blocks = [block.vectors for block in source]
        empty = np.empty((0, source.dimension or 0), dtype=np.float32)
        return np.concatenate(blocks) if blocks else empty


def _open_file(path: Path, wanted: Wanted) -> Source:
    with ExitStack() as owned:
        file = owned.enter_context(regular(path))
        source = _source(path, file, wanted)
        source.owns(owned.pop_all())
        return source


def _source(path: Path, file: IO[bytes], wanted: Wanted) -> Source:
    kind = _kind(path, file)
    if kind == "npz":
        return open_npz(str(path), file, wanted)
    if kind == "parquet":
        return open_parquet(path, file, wanted)
    if kind == "arrow":
        return open_ipc(path, wanted)
    size = os.fstat(file.fileno()).st_size
    flow = Flow(str(path), file, size=size, seekable=True)
    if kind == "jsonl":
        return JsonLinesSource(flow, wanted)
    if kind == "csv":
        return CsvSource(flow, wanted)
    wanted.refuse(str(path), "key", "column", "payload")
    if kind == "raw":
        return _open_raw(flow, wanted)
    header = read_header(str(path), flow)
    check_size(str(path), header, size)
    if header.fortran_order:
        return ColumnsSource(str(path), wanted, file, header)
    return RowsSource(flow, wanted, kind="npy", header=header)


def _open_stream(name: str, stream: IO[bytes], wanted: Wanted) -> Source:
    if isinstance(stream, BytesIO) and _is_arrow(stream):
        return open_ipc_bytes(str(name), stream.getvalue(), wanted)
    flow = Flow(str(name), stream)
    start = flow.peek(len(NPY_MAGIC))
    if start == NPY_MAGIC:
        wanted.refuse(flow.name, "key", "column", "payload")
        header = read_header(flow.name, flow)
        if header.fortran_order:
            raise fault(
                f"{name} is in Fortran order", "rows one after the other", "Save it to a file."
            )
        return RowsSource(flow, wanted, kind="npy", header=header)
    if wanted.dimension is not None:
        wanted.refuse(flow.name, "key", "column", "payload")
        return _open_raw(flow, wanted)
    if start.lstrip()[:1] in (b"[", b"{", b""):
        return JsonLinesSource(flow, wanted)
    raise fault(
        f"{name} is neither .npy nor JSON lines by its first bytes",
        "one of these, or raw float32 of a known dimension",
        "Give the dimension of raw vectors; give other files by name.",
    )


def _is_arrow(stream: BytesIO) -> bool:
    return stream.getbuffer()[: len(FILE_MAGIC)].tobytes().startswith((FILE_MAGIC, STREAM_MAGIC))


def _open_raw(flow: Flow, wanted: Wanted) -> Source:
    if wanted.dimension is None:
        raise fault(
            f"{flow.name} says no dimension",
            "how many float32 numbers a vector has",
            "Give it as dimension.",
        )
    return RowsSource(flow, wanted, kind="raw")


def _mapped(path: Path, file: IO[bytes], wanted: Wanted) -> npt.NDArray[Any]:
    wanted.refuse(str(path), "key", "column")
    flow = Flow(str(path), file)
    header = read_header(str(path), flow)
    check_size(str(path), header, os.fstat(file.fileno()).st_size)
    if not header.data_bytes:
        return np.empty(header.shape, dtype=header.dtype)
    mapped: npt.NDArray[Any] = np.memmap(
        path, header.dtype, "r", offset=header.length, shape=header.shape, order=header.order
    )
    return mapped


def _kind(path: Path, file: IO[bytes]) -> str:
    start = file.read(len(NPY_MAGIC))
    file.seek(0)
    suffix = path.suffix.lower()
    for magic, kind in _MAGIC.items():
        if start.startswith(magic) and (_SUFFIX.get(suffix) != "raw" or kind == "npy"):
            return kind
    if suffix in _SUFFIX:
        return _SUFFIX[suffix]
    if suffix in (".npy", ".npz"):
        raise fault(
            f"{path} is neither .npy nor .npz by its first bytes",
            "an array saved by numpy.save or numpy.savez",
            "Save the vectors with numpy.save(path, X).",
        )
    raise fault(
        f"{path} is no file of vectors by its first bytes and its name",
        _KINDS,
        "Save the vectors with numpy.save(path, X).",
    )


@contextmanager
def regular(path: Path) -> Iterator[IO[bytes]]:
    """A file, opened; links are followed, and a pipe that would never end is refused."""
    check_no_address(path)
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    _check_regular(path, status)
    try:
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        file = os.fdopen(os.open(path, flags), "rb")
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    with file:
        _check_regular(path, os.fstat(file.fileno()))
        yield file


def _unreadable(path: Path, error: OSError | ValueError) -> InputFileError:
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return fault(f"{path} does not exist", _KINDS, "Check the path.")
    said = getattr(error, "strerror", None) or error
    return fault(f"{path}: {said}", "a file to read", "Check its rights.")


def _check_regular(path: Path, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise fault(f"{path} is not a file but a folder", _KINDS, "Name one file in it.")
    if not stat.S_ISREG(status.st_mode):
        raise fault(f"{path} is not a file", _KINDS, "Check the path; - stands for stdin.")
