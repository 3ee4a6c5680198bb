"""Arrays by NumPy: `.npy`, arrays in a `.npz`, and raw float32; their headers are not believed.

What a header declares is compared with the bytes that are there before anything is allocated.
Rows are read as the bytes come, a block at a time; pickled objects never.
"""

from __future__ import annotations

import tokenize
import warnings
from dataclasses import dataclass
from io import BytesIO
from typing import IO, Any, Literal

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from linkstream.errors import InputFileError
from linkstream.io.faults import SAVE_AGAIN, fault, reason
from linkstream.io.flow import Flow
from linkstream.io.source import Source, Vectors, Wanted

NPY_MAGIC = b"\x93NUMPY"

_HEADER_MAX = 2**16
_BAD_HEADER = (
    ValueError,  # also UnicodeError
    TypeError,
    KeyError,
    SyntaxError,
    RecursionError,
    MemoryError,
    tokenize.TokenError,
)


@dataclass(frozen=True, slots=True)
class Header:
    """What an array claims to be, and how many bytes of the file the claim itself takes."""

    shape: tuple[int, int]
    fortran_order: bool
    dtype: np.dtype[Any]
    length: int

    @property
    def order(self) -> Literal["C", "F"]:
        """How the numbers lie, in NumPy's letters."""
        return "F" if self.fortran_order else "C"

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self.shape[1] * self.dtype.itemsize

    @property
    def data_bytes(self) -> int:
        """Bytes of all rows."""
        return self.shape[0] * self.row_bytes


def read_header(where: str, flow: Flow) -> Header:
    """The header of an array, if it declares a table of numbers."""
    try:
        shape, fortran_order, dtype, length = _parsed_header(flow)
    except InputFileError:
        raise
    except _BAD_HEADER as error:
        raise fault(
            f"{where} has a bad header ({reason(error)})", "an array by numpy.save", SAVE_AGAIN
        ) from None
    if dtype.kind not in "fiu" or dtype.hasobject:
        raise fault(
            f"{where} holds values of dtype {dtype}",
            "real numbers; pickled objects are never read",
            "Save numpy.asarray(X, dtype=numpy.float32).",
        )
    if len(shape) != 2 or not all(type(n) is int and n >= 0 for n in shape):
        raise fault(
            f"{where} has shape {shape}",
            "a table, one vector a row: shape (n, dimension)",
            "Reshape it, or choose another array.",
        )
    return Header((shape[0], shape[1]), bool(fortran_order), dtype, length)


def _parsed_header(flow: Flow) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    start = flow.read(8)
    if len(start) < 8:
        raise ValueError("it ends too soon")
    readers = {
        (1, 0): (2, npy.read_array_header_1_0),
        (2, 0): (4, npy.read_array_header_2_0),
    }
    version = (start[6], start[7])
    if start[:6] != NPY_MAGIC or version not in readers:
        raise ValueError(f"version {version}, which tables of numbers do not need")
    width, read = readers[version]
    size = flow.read(width)
    length = int.from_bytes(size, "little")
    if length > _HEADER_MAX:
        raise ValueError(f"it is {length} bytes long")
    text = flow.read(length)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on headers of Python 2
        shape, fortran_order, dtype = read(BytesIO(size + text))
    return shape, fortran_order, dtype, 8 + width + length


def check_size(where: str, header: Header, size: int) -> None:
    """Refuse an array that holds more or fewer bytes than it declares."""
    there = size - header.length
    if header.data_bytes != there:
        raise fault(
            f"{where} declares shape {header.shape} of {header.dtype}, {header.data_bytes} bytes, "
            f"and holds {there}",
            "as many as declared",
            "It was cut short, added to or made up; " + SAVE_AGAIN[0].lower() + SAVE_AGAIN[1:],
        )


def read_whole(where: str, header: Header, flow: Flow) -> npt.NDArray[Any]:
    """All of an array, into memory that is taken up only as the bytes arrive."""
    try:
        flat = np.empty(header.data_bytes, dtype=np.uint8)
    except MemoryError:
        raise fault(
            f"{where} takes {header.data_bytes} bytes", "what fits in memory", "Use .npy."
        ) from None
    done = 0
    while done < len(flat):
        block = flow.read(min(2**22, len(flat) - done))
        if not block:
            raise fault(f"{where} ends after {done} bytes", f"{len(flat)}", SAVE_AGAIN)
        flat[done : done + len(block)] = np.frombuffer(block, dtype=np.uint8)
        done += len(block)
    table: npt.NDArray[Any] = flat.view(header.dtype).reshape(header.shape, order=header.order)
    return table


class RowsSource(Source):
    """Rows of numbers, one after the other, as bytes: a `.npy`, an array of a `.npz`, or raw."""

    def __init__(
        self, flow: Flow, wanted: Wanted, *, kind: str, header: Header | None = None
    ) -> None:
        if header is None:
            assert wanted.dimension is not None
            n, dimension, self._dtype = _raw_rows(flow, wanted.dimension), wanted.dimension, _RAW
        else:
            (n, dimension), self._dtype = header.shape, header.dtype
        super().__init__(flow.name, wanted, kind=kind, n=n, dimension=dimension if n != 0 else None)
        self._flow = flow
        self._row_bytes = dimension * self._dtype.itemsize

    def _take(self, rows: int) -> tuple[Vectors, None]:
        data = self._flow.units(self._row_bytes, rows)
        whole = len(data) // self._row_bytes
        if len(data) % self._row_bytes or (self.n is not None and not whole):
            raise fault(
                f"{self.name} ends in the middle of row {self.row + whole}",
                "whole rows" if self.n is None else f"{self.n} of them",
                "Check the dimension." if self.n is None else SAVE_AGAIN,
            )
        if self.row + whole == self.n and not self._flow.at_end():
            raise fault(
                f"{self.name} goes on after its last row", f"{self.n} rows, as declared", SAVE_AGAIN
            )
        return np.frombuffer(data, dtype=self._dtype).reshape(whole, self.dimension or 0), None

    def _pass_over(self, rows: int) -> int:
        return self._flow.pass_over(rows * self._row_bytes) // self._row_bytes


_RAW: np.dtype[Any] = np.dtype("<f4")


def _raw_rows(flow: Flow, dimension: int) -> int | None:
    if flow.size is None:
        return None
    rows, rest = divmod(flow.size, dimension * _RAW.itemsize)
    if rest:
        raise fault(
            f"{flow.name} has {flow.size} bytes",
            f"rows of {dimension} float32 numbers, {dimension * _RAW.itemsize} bytes each",
            "Check the dimension.",
        )
    return rows


class ColumnsSource(Source):
    """A `.npy` in Fortran order: the columns lie one after the other, and each is read in part."""

    def __init__(self, name: str, wanted: Wanted, file: IO[bytes], header: Header) -> None:
        n, dimension = header.shape
        super().__init__(name, wanted, kind="npy", n=n, dimension=dimension if n else None)
        self._file = file
        self._header = header

    def _take(self, rows: int) -> tuple[Vectors, None]:
        size = self._header.dtype.itemsize
        block = np.empty((rows, self._header.shape[1]), dtype=self._header.dtype)
        for place in range(block.shape[1]):
            start = (place * self._header.shape[0] + self.row) * size
            self._file.seek(self._header.length + start)
            data = self._file.read(rows * size)
            if len(data) < rows * size:
                raise fault(f"{self.name} was cut short", f"{self.n} rows", SAVE_AGAIN)
            block[:, place] = np.frombuffer(data, dtype=self._header.dtype)
        return block, None

    def _pass_over(self, rows: int) -> int:
        return rows
