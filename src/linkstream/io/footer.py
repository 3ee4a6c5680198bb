"""The footer of a Parquet file, read here before it is given to pyarrow.

It says where everything lies. A library that believes it can be made to allocate, or to end the
whole program; so what it declares is first compared with the file. The footer is written in
Thrift's compact protocol.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from linkstream.io.faults import SAVE_AGAIN, fault

MAGIC = b"PAR1"
FOOTER_MAX = 64 * 2**20

_DEPTH_MAX = 16
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_INTEGERS = (4, 5, 6)

# Fields by number, as the format lays them down.
_ROWS, _GROUPS = 3, 4  # of the file
_CHUNKS, _GROUP_ROWS = 1, 3  # of a row group
_ELSEWHERE, _ABOUT = 1, 3  # of a column chunk
_PATH, _VALUES, _BYTES, _PAGES, _DICTIONARY = 3, 5, 7, 9, 11  # of what is said about it


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows of a row group, and how many numbers the column asked for has in it."""

    rows: int
    values: int


def read_footer(name: str, file: IO[bytes], column: str) -> list[RowGroup]:
    """The row groups, if all that is declared of them is in the file."""
    size = os.fstat(file.fileno()).st_size
    try:
        footer = _Thrift(_bytes_of_footer(file, size)).struct()
        groups = [_group(group, column, size) for group in footer[_GROUPS]]
        if sum(group.rows for group in groups) != footer[_ROWS]:
            raise ValueError("its parts do not add up")
    except (ValueError, LookupError, TypeError, AttributeError, struct.error) as error:
        said = error if type(error) is ValueError else "it makes no sense"
        raise fault(
            f"{name} has a bad footer ({said})", "a whole Parquet file", SAVE_AGAIN
        ) from None
    return groups


def _bytes_of_footer(file: IO[bytes], size: int) -> bytes:
    if size < 12:
        raise ValueError("it was cut short")
    file.seek(size - 8)
    length, magic = struct.unpack("<I4s", file.read(8))
    if magic != MAGIC:
        raise ValueError("it was cut short")
    if length > min(size - 12, FOOTER_MAX):
        raise ValueError(f"{length} bytes long in a file of {size}")
    file.seek(size - 8 - length)
    return file.read(length)


def _group(group: dict[int, Any], column: str, size: int) -> RowGroup:
    values = 0
    for chunk in group[_CHUNKS]:
        if _ELSEWHERE in chunk:  # never followed, wherever it leads
            raise ValueError("it points to another file")
        about = chunk[_ABOUT]
        starts = [about[_PAGES], about.get(_DICTIONARY) or about[_PAGES]]
        if min(*starts, about[_BYTES], about[_VALUES]) < 0:
            raise ValueError("it declares numbers below 0")
        if min(starts) + about[_BYTES] > size:
            raise ValueError("it declares bytes that are not in the file")
        if about[_PATH][0] == column.encode():
            values += about[_VALUES]
    if group[_GROUP_ROWS] < 0:
        raise ValueError("it declares numbers below 0")
    return RowGroup(group[_GROUP_ROWS], values)


class _Thrift:
    """Values of Thrift's compact protocol; structures become dicts by field number."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        if depth > _DEPTH_MAX:
            raise ValueError("nested too deeply")
        return dict(self._fields(depth))

    def _fields(self, depth: int) -> Iterator[tuple[int, Any]]:
        number = 0
        while start := self._byte():
            step, kind = start >> 4, start & 15
            number = number + step if step else self._integer()
            yield number, kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _INTEGERS:
            return self._integer()
        if kind == _BINARY:
            return self._take(self._varint())
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in (_LIST, _SET):
            return self._list(depth + 1)
        if kind == _MAP:
            return self._map(depth + 1)
        if kind in (_TRUE, _FALSE, _BYTE):  # in a list, a truth is a byte
            return self._byte()
        if kind == _DOUBLE:
            return self._take(8)
        raise ValueError(f"a value of kind {kind}")

    def _list(self, depth: int) -> list[Any]:
        start = self._byte()
        size, kind = start >> 4, start & 15
        if size == 15:
            size = self._varint()
        self._check_room(size, depth)
        return [self._value(kind, depth) for _ in range(size)]

    def _map(self, depth: int) -> list[Any]:
        size = self._varint()
        self._check_room(size, depth)
        kinds = self._byte() if size else 0
        return [
            (self._value(kinds >> 4, depth), self._value(kinds & 15, depth)) for _ in range(size)
        ]

    def _check_room(self, size: int, depth: int) -> None:
        """Every value takes a byte at least."""
        if size > len(self._data) - self._at or depth > _DEPTH_MAX:
            raise ValueError("it declares more than is there")

    def _integer(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7
            if shift > 63:
                raise ValueError("a number without end")

    def _byte(self) -> int:
        byte = self._data[self._at]
        self._at += 1
        return byte

    def _take(self, count: int) -> bytes:
        if count > len(self._data) - self._at:
            raise ValueError("it declares more than is there")
        self._at += count
        return self._data[self._at - count : self._at]
