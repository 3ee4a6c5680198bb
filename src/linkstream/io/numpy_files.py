"""Arrays by NumPy: `.npy`, arrays in a `.npz`, and raw float32.

What a header declares is compared with the bytes in the file before memory is allocated. Pickled
objects are never read. An archive that declares wrong sizes, or that would unpack to hundreds of
times its size, is refused before any of it is unpacked.
"""

from __future__ import annotations

import os
import struct
import tokenize
import warnings
import zipfile
import zlib
from contextlib import ExitStack
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from linkstream.errors import InputFileError
from linkstream.io.bytestream import ByteStream
from linkstream.io.source import (
    SAVE_AGAIN,
    Reader,
    ReadOptions,
    Source,
    Vectors,
    file_error,
    first_line,
    quoted,
)

NPY_MAGIC = b"\x93NUMPY"
DEFAULT_KEY = "X"

# Vectors are close to random numbers and hardly compress. An array above the floor that unpacks to
# hundreds of times its size does not hold vectors.
UNPACK_RATIO_MAX = 200
UNPACK_FLOOR = 64 * 2**20
FORTRAN_MAX = 256 * 2**20  # bytes of an array in Fortran order, which is unpacked as a whole

_HEADER_MAX = 2**16
_LISTED = 1000  # arrays of an archive that are named
# ValueError includes UnicodeError.
_HEADER_ERRORS = (
    *(ValueError, TypeError, KeyError, SyntaxError, RecursionError, MemoryError),
    tokenize.TokenError,
)
# What zipfile raises on a damaged or hostile archive; OSError for offsets outside the file.
_ARCHIVE_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, NotImplementedError),
    *(RuntimeError, ValueError, OverflowError, LookupError),
)
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_SUFFIX = ".npy"
_RAW: np.dtype[Any] = np.dtype("<f4")


@dataclass(frozen=True, slots=True)
class Header:
    """Header of a `.npy`: what it declares, and its own length in bytes."""

    shape: tuple[int, int]
    fortran_order: bool
    dtype: np.dtype[Any]
    length: int

    @property
    def order(self) -> Literal["C", "F"]:
        """Memory order, in NumPy's letters."""
        return "F" if self.fortran_order else "C"

    @property
    def data_bytes(self) -> int:
        """Bytes of all rows."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize


def open_npy(stream: ByteStream, options: ReadOptions, file: IO[bytes] | None = None) -> Source:
    """Open an array; `file` is the file below the stream, None for a pipe."""
    options.refuse(stream.name, "key", "column", "payload")
    header = _read_header(stream)
    if stream.size is not None:
        _check_size(stream.name, header, stream.size)
    n, dimension = header.shape
    reader: Reader = _RowsReader(stream, header.dtype, dimension)
    if header.fortran_order:
        if file is None:
            raise file_error(
                f"{stream.name} is in Fortran order",
                "rows one after the other",
                "Save it to a file.",
            )
        reader = _FortranReader(file, header)
    return Source(stream.name, options, reader, kind="npy", n=n, dimension=dimension)


def open_raw(stream: ByteStream, options: ReadOptions) -> Source:
    """Open rows of raw float32 numbers."""
    options.refuse(stream.name, "key", "column", "payload")
    dimension = options.dimension
    if dimension is None:
        raise file_error(
            f"{stream.name} does not state the dimension",
            "how many float32 numbers a vector has",
            "Give it as dimension.",
        )
    rows, rest = divmod(stream.size or 0, dimension * _RAW.itemsize)
    if rest:
        raise file_error(
            f"{stream.name} has {stream.size} bytes",
            f"rows of {dimension} float32 numbers, {dimension * _RAW.itemsize} bytes each",
            "Check the dimension.",
        )
    n = None if stream.size is None else rows
    reader = _RowsReader(stream, _RAW, dimension)
    return Source(stream.name, options, reader, kind="raw", n=n, dimension=dimension)


def open_npz(name: str, file: IO[bytes], options: ReadOptions) -> Source:
    """Open an array of an archive; it is unpacked block by block."""
    options.refuse(name, "column", *(("payload",) if {*options.payload} - options.hidden else ()))
    with ExitStack() as opened:
        header, stream = _open_member(name, file, options.key, opened)
        n, dimension = header.shape
        reader: Reader = _RowsReader(stream, header.dtype, dimension)
        if header.fortran_order:
            _check_fortran(stream.name, header)
            reader = _ArrayReader(_read_all(stream, header))
        if options.own:
            reader = _OwnReader(reader, _own_arrays(name, file, options, n))
        source = Source(stream.name, options, reader, kind="npz", n=n, dimension=dimension)
        source.resources.push(opened.pop_all())
        return source


def read_array_names(name: str, file: IO[bytes]) -> list[str]:
    """Return the names of the arrays in an archive, without reading them."""
    try:
        with zipfile.ZipFile(file) as archive:
            found = [info.filename for info in archive.infolist()[:_LISTED]]
    except _ARCHIVE_ERRORS as error:
        raise file_error(
            f"{name} is not a sound archive ({first_line(error)})", "a .npz", SAVE_AGAIN
        ) from None
    return [each.removesuffix(_SUFFIX) for each in found]


def read_npz(name: str, file: IO[bytes], key: str | None) -> Vectors:
    """Return an array of an archive."""
    with ExitStack() as opened:
        header, stream = _open_member(name, file, key, opened)
        return _read_all(stream, header)


def map_npy(path: Path, file: IO[bytes]) -> npt.NDArray[Any]:
    """Return an array that stays on disk until its rows are used."""
    header = _read_header(ByteStream(str(path), file))
    _check_size(str(path), header, os.fstat(file.fileno()).st_size)
    if not header.data_bytes:
        return np.empty(header.shape, dtype=header.dtype)
    mapped: npt.NDArray[Any] = np.memmap(
        path, header.dtype, "r", offset=header.length, shape=header.shape, order=header.order
    )
    return mapped


class _RowsReader:
    """Reads rows that follow one another as bytes: a `.npy`, an array of a `.npz`, or raw."""

    def __init__(self, stream: ByteStream, dtype: np.dtype[Any], dimension: int) -> None:
        self._stream = stream
        self._dtype = dtype
        self._row_bytes = dimension * dtype.itemsize

    def take(self, source: Source, rows: int) -> tuple[Vectors, None]:
        data = self._stream.read_units(self._row_bytes, rows)
        complete = len(data) // self._row_bytes
        if len(data) % self._row_bytes or (source.n is not None and not complete):
            raise file_error(
                f"{source.name} ends in the middle of row {source.row + complete}",
                "complete rows" if source.n is None else f"{source.n} rows",
                "Check the dimension." if source.n is None else SAVE_AGAIN,
            )
        if source.row + complete == source.n and self._stream.peek(1):
            raise file_error(
                f"{source.name} goes on after its last row",
                f"{source.n} rows, as declared",
                SAVE_AGAIN,
            )
        return np.frombuffer(data, dtype=self._dtype).reshape(complete, source.dimension or 0), None

    def skip(self, source: Source, rows: int) -> int:
        return self._stream.skip(rows * self._row_bytes) // self._row_bytes


class _FortranReader:
    """Reads a `.npy` in Fortran order: a part of each column for each block."""

    def __init__(self, file: IO[bytes], header: Header) -> None:
        self._file = file
        self._header = header

    def take(self, source: Source, rows: int) -> tuple[Vectors, None]:
        (n, dimension), dtype = self._header.shape, self._header.dtype
        block = np.empty((rows, dimension), dtype=dtype)
        for column in range(dimension):
            self._file.seek(self._header.length + (column * n + source.row) * dtype.itemsize)
            data = self._file.read(rows * dtype.itemsize)
            if len(data) < rows * dtype.itemsize:
                raise file_error(f"{source.name} was cut short", f"{n} rows", SAVE_AGAIN)
            block[:, column] = np.frombuffer(data, dtype=dtype)
        return block, None

    def skip(self, source: Source, rows: int) -> int:
        return rows


class _ArrayReader:
    """Reads an array in memory."""

    def __init__(self, array: Vectors) -> None:
        self._array = array

    def take(self, source: Source, rows: int) -> tuple[Vectors, None]:
        return self._array[source.row : source.row + rows], None

    def skip(self, source: Source, rows: int) -> int:
        return rows


class _OwnReader:
    """Adds the vectors' own keys and times, which are arrays in memory, to another reader."""

    def __init__(self, reader: Reader, arrays: dict[str, npt.NDArray[Any]]) -> None:
        self._reader, self._arrays = reader, arrays

    def take(self, source: Source, rows: int) -> tuple[Vectors, None]:
        vectors, _ = self._reader.take(source, rows)
        part = slice(source.row, source.row + len(vectors))
        for name, values in self._arrays.items():
            source.own[name] = values[part] if values.dtype.kind == "M" else values[part].tolist()
        return vectors, None

    def skip(self, source: Source, rows: int) -> int:
        return self._reader.skip(source, rows)


def _own_arrays(
    name: str, file: IO[bytes], options: ReadOptions, n: int
) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of keys and times: one text, number or datetime64 for each vector."""
    found: dict[str, npt.NDArray[Any]] = {}
    for argument, key in options.own.items():
        with ExitStack() as opened:
            where, stream = _member(name, file, key, opened)
            try:
                shape, _, dtype, length = _parse_header(stream)
            except _HEADER_ERRORS as error:
                raise _bad_header(where, error) from None
            if shape != (n,) or dtype.hasobject or dtype.kind not in "UMiuf":
                raise file_error(
                    f"{where} has shape {shape} and dtype {dtype}",
                    f"one text, number or datetime64 for each of {n} vectors",
                    "Choose another array.",
                )
            if length + n * dtype.itemsize != stream.size:
                raise file_error(f"{where} declares another size", "what it holds", SAVE_AGAIN)
            flat = stream.read(n * dtype.itemsize)
            found[argument] = np.frombuffer(flat, dtype=dtype)
    return found


def _bad_header(name: str, error: BaseException) -> InputFileError:
    what = f"{name} has a bad header ({first_line(error)})"
    return file_error(what, "an array by numpy.save", SAVE_AGAIN)


def _read_header(stream: ByteStream) -> Header:
    """Return the header if it declares a table of numbers; raise InputFileError otherwise."""
    try:
        shape, fortran_order, dtype, length = _parse_header(stream)
    except InputFileError:
        raise
    except _HEADER_ERRORS as error:
        raise _bad_header(stream.name, error) from None
    if dtype.kind not in "fiu" or dtype.hasobject:
        raise file_error(
            f"{stream.name} holds values of dtype {dtype}",
            "real numbers; pickled objects are never read",
            "Save numpy.asarray(X, dtype=numpy.float32).",
        )
    if len(shape) != 2 or not all(type(n) is int and n >= 0 for n in shape):
        raise file_error(
            f"{stream.name} has shape {shape}",
            "a table, one vector a row: shape (n, dimension)",
            "Reshape it, or choose another array.",
        )
    return Header((shape[0], shape[1]), bool(fortran_order), dtype, length)


def _parse_header(stream: ByteStream) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    start = stream.read(8)
    if len(start) < 8:
        raise ValueError("it ends too soon")
    readers = {(1, 0): (2, npy.read_array_header_1_0), (2, 0): (4, npy.read_array_header_2_0)}
    version = (start[6], start[7])
    if start[:6] != NPY_MAGIC or version not in readers:
        raise ValueError(f"version {version}, which tables of numbers do not need")
    width, read = readers[version]
    size = stream.read(width)
    length = int.from_bytes(size, "little")
    if length > _HEADER_MAX:
        raise ValueError(f"it is {length} bytes long")
    text = stream.read(length)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about headers written by Python 2
        shape, fortran_order, dtype = read(BytesIO(size + text))
    return shape, fortran_order, dtype, 8 + width + length


def _check_size(name: str, header: Header, size: int) -> None:
    """Raise InputFileError if an array has more or fewer bytes than it declares."""
    there = size - header.length
    if header.data_bytes != there:
        raise file_error(
            f"{name} declares shape {header.shape} of {header.dtype}, {header.data_bytes} bytes, "
            f"and holds {there}",
            "as many as declared",
            SAVE_AGAIN,
        )


def _read_all(stream: ByteStream, header: Header) -> npt.NDArray[Any]:
    """Return a complete array; its memory is touched only as the bytes arrive."""
    try:
        flat = np.empty(header.data_bytes, dtype=np.uint8)
    except MemoryError:
        raise file_error(
            f"{stream.name} takes {header.data_bytes} bytes", "what fits in memory", "Use .npy."
        ) from None
    done = 0
    while done < len(flat):
        block = stream.read(min(2**22, len(flat) - done))
        if not block:
            raise file_error(f"{stream.name} ends after {done} bytes", f"{len(flat)}", SAVE_AGAIN)
        flat[done : done + len(block)] = np.frombuffer(block, dtype=np.uint8)
        done += len(block)
    return np.asarray(flat.view(header.dtype).reshape(header.shape, order=header.order))


def _open_member(
    name: str, file: IO[bytes], key: str | None, opened: ExitStack
) -> tuple[Header, ByteStream]:
    where, stream = _member(name, file, key, opened)
    header = _read_header(stream)
    _check_size(where, header, stream.size or 0)
    return header, stream


def _member(
    name: str, file: IO[bytes], key: str | None, opened: ExitStack
) -> tuple[str, ByteStream]:
    """Return the name and the bytes of an array of an archive."""
    try:
        archive = opened.enter_context(zipfile.ZipFile(file))
        info = _find_member(name, archive, key)
        where = f"{name}, array {info.filename[: -len(_SUFFIX)]!r}"
        _check_member(where, info, os.fstat(file.fileno()).st_size)
        member = opened.enter_context(archive.open(info))
    except _ARCHIVE_ERRORS as error:
        if isinstance(error, InputFileError):
            raise
        raise file_error(
            f"{name} cannot be unpacked ({first_line(error)})", "a sound .npz archive", SAVE_AGAIN
        ) from None
    return where, ByteStream(where, member, size=info.file_size, read_errors=_ARCHIVE_ERRORS)


def _find_member(name: str, archive: zipfile.ZipFile, key: str | None) -> zipfile.ZipInfo:
    names = [each[: -len(_SUFFIX)] for each in archive.namelist() if each.endswith(_SUFFIX)]
    if key is None:
        key = names[0] if len(names) == 1 else DEFAULT_KEY
    if names.count(key) != 1:
        raise file_error(
            f"{'two arrays' if key in names else 'no array'} {key!r} in {name}",
            f"one of its arrays: {quoted(names) or 'no arrays'}",
            SAVE_AGAIN if key in names else "Give its name as key.",
        )
    return archive.getinfo(f"{key}{_SUFFIX}")


def _check_member(where: str, info: zipfile.ZipInfo, size: int) -> None:
    if info.compress_type not in _COMPRESSIONS:
        raise file_error(
            f"{where} is compressed by an unusual method ({info.compress_type})",
            "an archive by numpy.savez or numpy.savez_compressed",
            SAVE_AGAIN,
        )
    if info.header_offset + info.compress_size > size:
        raise file_error(
            f"{where} declares {info.compress_size} bytes in an archive of {size}",
            "no more bytes than the archive has",
            SAVE_AGAIN,
        )
    check_ratio(where, info.compress_size, info.file_size, "save the vectors as .npy")


def check_ratio(where: str, packed: int, unpacked: int, remedy: str) -> None:
    """Raise InputFileError if data would unpack to hundreds of times their size."""
    if unpacked > max(UNPACK_FLOOR, UNPACK_RATIO_MAX * packed):
        raise file_error(
            f"{where} would unpack {packed} bytes to {unpacked}",
            f"at most {UNPACK_RATIO_MAX} times as many, as vectors do",
            f"If you trust the file, {remedy}.",
        )


def _check_fortran(where: str, header: Header) -> None:
    if header.data_bytes > FORTRAN_MAX:
        raise file_error(
            f"{where} is in Fortran order and takes {header.data_bytes} bytes",
            f"rows one after the other, or at most {FORTRAN_MAX} bytes",
            "Save numpy.ascontiguousarray(X), or save it as .npy.",
        )
