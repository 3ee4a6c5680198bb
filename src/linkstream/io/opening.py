"""Open files, pipes and databases of vectors: detect the kind and choose the reader."""

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
from linkstream.io.arrow_files import open_ipc, open_parquet
from linkstream.io.arrow_metadata import FILE_MAGIC, PARQUET_MAGIC, STREAM_MAGIC
from linkstream.io.bytestream import ByteStream
from linkstream.io.databases import is_address, refuse_address
from linkstream.io.numpy_files import NPY_MAGIC, map_npy, open_npy, open_npz, open_raw, read_npz
from linkstream.io.postgres import open_postgres
from linkstream.io.qdrant import open_qdrant
from linkstream.io.source import BLOCK, BadRow, ReadOptions, Source, file_error
from linkstream.io.text_files import open_text

STDIN = "-"

# The first bytes decide; files without known first bytes go by their suffix.
_MAGIC = {
    NPY_MAGIC: "npy",
    b"PK\x03\x04": "npz",
    b"PK\x05\x06": "npz",
    PARQUET_MAGIC: "parquet",
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
    id_column: str | None = None,
    time_column: str | None = None,
    block: int = BLOCK,
    bad_row: BadRow | None = None,
) -> Source:
    """Open the vectors of a file, a pipe or a database; memory holds one block at a time.

    Args:
        source: a path; `-` for stdin; a binary stream; or the address of a table or collection as
            a text: `postgresql://host/database?table=faces&order=id`, `qdrant://host:6333/faces`.
            The kind of a file follows from its first bytes, or else from its suffix. A stream is
            a `.npy` by its first bytes, raw float32 (little endian) if `dimension` is given, and
            JSON lines otherwise; a BytesIO may be Arrow, too.
        key: name of the array in a `.npz`. Default: `X`, or the only array.
        column: name of the column of the vectors. Default: `embedding`, `vector`, or the only
            column of vectors.
        dimension: how many numbers a vector has. Required for raw float32; otherwise checked.
        payload: names of the columns that make the payload of a row, or `*` for all the others.
        id_column: name of the column of the vectors' own keys, `Block.ids`. A `.npz` has arrays.
        time_column: name of the column of the vectors' own times, `Block.at`: texts of ISO 8601
            with a zone, times of the file (without a zone: UTC), or seconds since 1970.
        block: most rows of a block, 1024 by default. A block holds at most 64 MiB of numbers.
        bad_row: gets the error of each row of a text, Parquet or Arrow file whose vector cannot be
            read; the row is left out. None (default) raises the error.

    Raises:
        InputFileError: the file, key or column does not exist, or the file is damaged or hostile.
            A wrong row raises when its block is read.
        MissingExtraError: a package that the file or the database needs is not installed.
    """
    options = ReadOptions(
        key, column, dimension, payload, block, id_column, time_column, bad_row=bad_row
    )
    if isinstance(source, str) and is_address(source):
        qdrant = source.lower().startswith("qdrant")
        return (open_qdrant if qdrant else open_postgres)(source, options)
    if not isinstance(source, str | os.PathLike):
        return _open_stream(str(getattr(source, "name", "the stream")), source, options)
    if source == STDIN:
        return _open_stream("stdin", sys.stdin.buffer, options)
    return _open_file(Path(source), options)


def read_vectors(
    path: str | os.PathLike[str],
    *,
    key: str | None = None,
    column: str | None = None,
    dimension: int | None = None,
) -> npt.NDArray[Any]:
    """Return the vectors of a file, one a row; a `.npy` stays on disk until its rows are used.

    Args:
        path: a file of any kind that `open_vectors` reads.
        key: name of the array in a `.npz`. Default: `X`, or the only array.
        column: name of the column of the vectors, as for `open_vectors`.
        dimension: how many numbers a vector has. Required for raw float32; otherwise checked.

    Raises:
        InputFileError: the file, key or column does not exist, or the file is damaged or hostile.
        MissingExtraError: the file needs pyarrow, which is not installed.
    """
    path = Path(path)
    options = ReadOptions(key, column, dimension)
    with open_regular(path) as file:
        kind = kind_of(path, file)
        if kind == "npz":
            return options.checked(read_npz(str(path), file, key), str(path))
        if kind == "npy":
            options.refuse(str(path), "key", "column")
            return options.checked(map_npy(path, file), str(path))
    with _open_file(path, options) as source:
        blocks = [block.vectors for block in source]
        empty = np.empty((0, source.dimension or 0), dtype=np.float32)
        return np.concatenate(blocks) if blocks else empty


def _open_file(path: Path, options: ReadOptions) -> Source:
    with ExitStack() as opened:
        file = opened.enter_context(open_regular(path))
        source = _source(path, file, options)
        source.resources.push(opened.pop_all())
        return source


def _source(path: Path, file: IO[bytes], options: ReadOptions) -> Source:
    kind = kind_of(path, file)
    if kind == "npz":
        return open_npz(str(path), file, options)
    if kind == "parquet":
        return open_parquet(path, file, options)
    if kind == "arrow":
        return open_ipc(str(path), options)
    size = os.fstat(file.fileno()).st_size
    stream = ByteStream(str(path), file, size=size, seekable=True)
    if kind == "npy":
        return open_npy(stream, options, file)
    return open_raw(stream, options) if kind == "raw" else open_text(stream, options, kind)


def _open_stream(name: str, stream: IO[bytes], options: ReadOptions) -> Source:
    arrow = (FILE_MAGIC, STREAM_MAGIC)
    if isinstance(stream, BytesIO) and bytes(stream.getbuffer()[:6]).startswith(arrow):
        return open_ipc(name, options, stream.getvalue())
    read = ByteStream(name, stream)
    start = read.peek(len(NPY_MAGIC))
    if start == NPY_MAGIC:
        return open_npy(read, options)
    if options.dimension is not None:
        return open_raw(read, options)
    if start.lstrip()[:1] in (b"[", b"{", b""):
        return open_text(read, options, "jsonl")
    raise file_error(
        f"{name} is neither .npy nor JSON lines by its first bytes",
        "one of these, or raw float32 of a known dimension",
        "Give the dimension of raw vectors; give other files by name.",
    )


def kind_of(path: Path, file: IO[bytes]) -> str:
    """Return the kind of an open file, by its first bytes or else by its suffix."""
    start = file.read(len(NPY_MAGIC))
    file.seek(0)
    suffix = path.suffix.lower()
    for magic, kind in _MAGIC.items():
        if start.startswith(magic) and (_SUFFIX.get(suffix) != "raw" or kind == "npy"):
            return kind
    if suffix in _SUFFIX:
        return _SUFFIX[suffix]
    if suffix in (".npy", ".npz"):
        raise file_error(
            f"{path} is neither .npy nor .npz by its first bytes",
            "an array saved by numpy.save or numpy.savez",
            "Save the vectors with numpy.save(path, X).",
        )
    raise file_error(
        f"{path} is no file of vectors by its first bytes and its name",
        _KINDS,
        "Save the vectors with numpy.save(path, X).",
    )


@contextmanager
def open_regular(path: Path) -> Iterator[IO[bytes]]:
    """Open a regular file; raise InputFileError for a folder, a pipe or a device."""
    refuse_address(path)
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
        return file_error(f"{path} does not exist", _KINDS, "Check the path.")
    reason = getattr(error, "strerror", None) or error
    return file_error(f"{path}: {reason}", "a file to read", "Check its permissions.")


def _check_regular(path: Path, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise file_error(f"{path} is not a file but a folder", _KINDS, "Name one file in it.")
    if not stat.S_ISREG(status.st_mode):
        raise file_error(f"{path} is not a file", _KINDS, "Check the path; - stands for stdin.")
