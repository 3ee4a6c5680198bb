"""Files of vectors, read with care: `.npy` and `.npz`, never pickled objects.

A file is judged by its content, not by its name. What its header declares is compared with the
bytes that are there before anything is allocated; a file that lies, is cut short or holds Python
objects gives an InputFileError and costs nothing.
"""

from __future__ import annotations

import os
import tokenize
import warnings
import zipfile
import zlib
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from linkstream.errors import InputFileError

DEFAULT_KEY = "X"

# Random bytes hardly shrink and vectors are close to random. What unpacks to hundreds of times
# its size is no set of vectors; below the floor it can do no harm.
_PACKING_MAX = 200
_PACKING_FLOOR = 64 * 2**20
_BLOCK = 2**22

_NPY_MAGIC = b"\x93NUMPY"
_ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_BAD_HEADER = (
    ValueError,  # also UnicodeError
    TypeError,
    KeyError,
    SyntaxError,
    RecursionError,
    MemoryError,
    tokenize.TokenError,
)
_BAD_ARCHIVE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


@dataclass(frozen=True, slots=True)
class _Header:
    """What an array claims to be, and how many bytes of the file the claim itself takes."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]
    length: int

    @property
    def order(self) -> Literal["C", "F"]:
        return "F" if self.fortran_order else "C"

    @property
    def data_bytes(self) -> int:
        size = self.dtype.itemsize
        for n in self.shape:
            size *= n
        return size


def read_vectors(path: str | os.PathLike[str], *, key: str | None = None) -> npt.NDArray[Any]:
    """The vectors of a file, one a row; a `.npy` stays on disk until its rows are used.

    Args:
        path: a `.npy` file, or a `.npz` archive.
        key: name of the array in a `.npz`; without it, `X`, or the only one there is.

    Raises:
        InputFileError: no such file or key, not a table of numbers, damaged, or not what it says.
    """
    path = Path(path)
    if not path.is_file():  # neither there nor a pipe that would never end
        seen = "is not a file" if path.exists() else "does not exist"
        raise _error(f"{path} {seen}", "a .npy or .npz file", "Check the path.")
    try:
        with path.open("rb") as file:
            magic = file.read(len(_NPY_MAGIC))
            file.seek(0)
            if magic == _NPY_MAGIC:
                return _read_npy(path, file, key)
            if magic[:4] in _ZIP_MAGIC:
                return _read_npz(path, file, key)
    except OSError as error:
        raise _error(
            f"{path}: {error.strerror or error}", "a file to read", "Check its rights."
        ) from None
    raise _error(
        f"{path} is neither .npy nor .npz by its first bytes",
        "an array saved by numpy.save or numpy.savez",
        "Save the vectors with numpy.save(path, X).",
    )


def _read_npy(path: Path, file: BufferedReader, key: str | None) -> npt.NDArray[Any]:
    if key is not None:
        raise _error(
            f"a key {key!r} for {path}, which is a single array",
            "a .npz archive",
            "Leave the key out.",
        )
    header = _read_header(str(path), file)
    _check_size(str(path), header, os.fstat(file.fileno()).st_size)
    if not header.data_bytes:
        return np.empty(header.shape, dtype=header.dtype)
    mapped: npt.NDArray[Any] = np.memmap(
        path, header.dtype, "r", offset=header.length, shape=header.shape, order=header.order
    )
    return mapped


def _read_npz(path: Path, file: IO[bytes], key: str | None) -> npt.NDArray[Any]:
    try:
        with zipfile.ZipFile(file) as archive:
            names = [name[: -len(".npy")] for name in archive.namelist() if name.endswith(".npy")]
            info = archive.getinfo(f"{_chosen_key(path, names, key)}.npy")
            where = f"{path}, array {info.filename[: -len('.npy')]!r}"
            if info.file_size > max(_PACKING_FLOOR, _PACKING_MAX * info.compress_size):
                raise _error(
                    f"{where} would unpack {info.compress_size} bytes to {info.file_size}",
                    f"at most {_PACKING_MAX} times as many, as vectors do",
                    "If the file is to be trusted, save the vectors as .npy.",
                )
            with archive.open(info) as member:
                header = _read_header(where, member)
                _check_size(where, header, info.file_size)
                return _read_array(where, header, member)
    except _BAD_ARCHIVE as error:
        raise _error(
            f"{path} cannot be unpacked ({error})", "a sound .npz archive", _SAVE_AGAIN
        ) from None


def _chosen_key(path: Path, names: list[str], key: str | None) -> str:
    if key is None:
        key = names[0] if len(names) == 1 else DEFAULT_KEY
    if key in names:
        return key
    shown = ", ".join(map(repr, names[:10])) or "no arrays"
    raise _error(
        f"no array {key!r} in {path}", f"one of its arrays: {shown}", "Give its name as key."
    )


def _read_header(where: str, stream: IO[bytes]) -> _Header:
    """The header of an array, if it declares a table of numbers."""
    start = stream.tell()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on headers of Python 2
            version = npy.read_magic(stream)
            if version == (1, 0):
                shape, fortran_order, dtype = npy.read_array_header_1_0(stream)
            elif version == (2, 0):
                shape, fortran_order, dtype = npy.read_array_header_2_0(stream)
            else:
                raise ValueError(f"version {version}, which tables of numbers do not need")
    except _BAD_HEADER as error:
        reason = str(error).splitlines()[0][:100] if str(error) else type(error).__name__
        raise _error(
            f"{where} has a bad header ({reason})", "an array by numpy.save", _SAVE_AGAIN
        ) from None
    if dtype.kind not in "fiu" or dtype.hasobject:
        raise _error(
            f"{where} holds values of dtype {dtype}",
            "real numbers; pickled objects are never read",
            "Save numpy.asarray(X, dtype=numpy.float32).",
        )
    if len(shape) != 2 or not all(type(n) is int and n >= 0 for n in shape):
        raise _error(
            f"{where} has shape {shape}",
            "a table, one vector a row: shape (n, dimension)",
            "Reshape it, or choose another array.",
        )
    return _Header(shape, bool(fortran_order), dtype, stream.tell() - start)


def _check_size(where: str, header: _Header, size: int) -> None:
    there = size - header.length
    if header.data_bytes != there:
        raise _error(
            f"{where} declares shape {header.shape} of {header.dtype}, {header.data_bytes} bytes, "
            f"and holds {there}",
            "as many as declared",
            "It was cut short, added to or made up; " + _SAVE_AGAIN[0].lower() + _SAVE_AGAIN[1:],
        )


def _read_array(where: str, header: _Header, stream: IO[bytes]) -> npt.NDArray[Any]:
    """Unpack block by block into memory that is taken up only as the bytes arrive."""
    try:
        flat = np.empty(header.data_bytes, dtype=np.uint8)
    except MemoryError:
        raise _error(
            f"{where} takes {header.data_bytes} bytes", "what fits in memory", "Use .npy."
        ) from None
    done = 0
    while done < len(flat):
        block = stream.read(min(_BLOCK, len(flat) - done))
        if not block:
            raise _error(f"{where} ends after {done} bytes", f"{len(flat)}", _SAVE_AGAIN)
        flat[done : done + len(block)] = np.frombuffer(block, dtype=np.uint8)
        done += len(block)
    table: npt.NDArray[Any] = flat.view(header.dtype).reshape(header.shape, order=header.order)
    return table


_SAVE_AGAIN = "Save it again from its source."


def _error(seen: str, expected: str, remedy: str) -> InputFileError:
    return InputFileError(seen, expected=expected, remedy=remedy)
