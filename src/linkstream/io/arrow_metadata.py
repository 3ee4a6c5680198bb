"""Metadata of Parquet and Arrow files, checked before pyarrow reads them.

pyarrow trusts what a file declares: a hostile file can make it allocate without bound, or end the
program. So the footer of a Parquet file (Thrift's compact protocol) and the messages of an Arrow
file (flat buffers) are first compared with the bytes in the file.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from linkstream.io.numpy_files import check_ratio
from linkstream.io.source import SAVE_AGAIN, file_error

PARQUET_MAGIC = b"PAR1"
FILE_MAGIC = b"ARROW1"
STREAM_MAGIC = b"\xff\xff\xff\xff"
FILE_START = 8  # bytes: the magic, padded
FOOTER_MAX = 64 * 2**20

_DEPTH_MAX = 16
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_INTEGERS = (4, 5, 6)

_RECORD_BATCH, _DICTIONARY_BATCH = 3, 2  # kinds of Arrow messages

# Field numbers of the Parquet format.
_ROWS, _GROUPS = 3, 4  # of the file
_CHUNKS, _GROUP_ROWS = 1, 3  # of a row group
_OTHER_FILE, _METADATA = 1, 3  # of a column chunk
_PATH, _VALUES, _BYTES, _PAGES, _DICTIONARY = 3, 5, 7, 9, 11  # of the metadata of a column chunk


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows of a row group, and how many numbers the chosen column has in it."""

    rows: int
    values: int


def read_footer(name: str, file: IO[bytes], column: str) -> list[RowGroup]:
    """Return the row groups; raise InputFileError if they declare more than the file holds."""
    size = os.fstat(file.fileno()).st_size
    try:
        footer = _Thrift(_footer_bytes(file, size)).struct()
        groups = [_group(group, column, size) for group in footer[_GROUPS]]
        if sum(group.rows for group in groups) != footer[_ROWS]:
            raise ValueError("its rows do not add up")
    except (ValueError, LookupError, TypeError, AttributeError, struct.error) as error:
        reason = error if type(error) is ValueError else "it cannot be parsed"
        raise file_error(
            f"{name} has a bad footer ({reason})", "a complete Parquet file", SAVE_AGAIN
        ) from None
    return groups


def _footer_bytes(file: IO[bytes], size: int) -> bytes:
    if size < 12:
        raise ValueError("it was cut short")
    file.seek(size - 8)
    length, magic = struct.unpack("<I4s", file.read(8))
    if magic != PARQUET_MAGIC:
        raise ValueError("it was cut short")
    if length > min(size - 12, FOOTER_MAX):
        raise ValueError(f"{length} bytes long in a file of {size}")
    file.seek(size - 8 - length)
    return file.read(length)


def _group(group: dict[int, Any], column: str, size: int) -> RowGroup:
    values = 0
    for chunk in group[_CHUNKS]:
        if _OTHER_FILE in chunk:  # never followed
            raise ValueError("it points to another file")
        metadata = chunk[_METADATA]
        starts = [metadata[_PAGES], metadata.get(_DICTIONARY) or metadata[_PAGES]]
        if min(*starts, metadata[_BYTES], metadata[_VALUES]) < 0:
            raise ValueError("it declares numbers below 0")
        if min(starts) + metadata[_BYTES] > size:
            raise ValueError("it declares bytes that are not in the file")
        if metadata[_PATH][0] == column.encode():
            values += metadata[_VALUES]
    if group[_GROUP_ROWS] < 0:
        raise ValueError("it declares numbers below 0")
    return RowGroup(group[_GROUP_ROWS], values)


class _Thrift:
    """Parser of Thrift's compact protocol; structures become dicts by field number."""

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
        if kind in (_TRUE, _FALSE, _BYTE):  # in a list, a boolean is a byte
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
        """Raise ValueError if fewer bytes are left than values, of at least a byte each."""
        if size > len(self._data) - self._at or depth > _DEPTH_MAX:
            raise ValueError("it declares more bytes than there are")

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
                raise ValueError("a number is too long")

    def _byte(self) -> int:
        byte = self._data[self._at]
        self._at += 1
        return byte

    def _take(self, count: int) -> bytes:
        if count > len(self._data) - self._at:
            raise ValueError("it declares more bytes than there are")
        self._at += count
        return self._data[self._at - count : self._at]


def count_rows(name: str, mapped: Any, start: int, ipc: Any) -> int:
    """Return the rows of all batches of an Arrow file or stream.

    Raise InputFileError if a batch would unpack to hundreds of times its size, and ValueError if
    the messages end before the end of the file.
    """
    rows = batches = 0
    mapped.seek(start)
    for message in _messages(mapped, ipc):
        batch = _Batch.of(message)
        if batch is None:
            continue
        check_ratio(name, batch.packed, batch.unpacked, "save it without compression")
        rows += batch.rows
        batches += batch.counted
    # Damaged bytes can look like an end of the messages.
    if start:
        listed = ipc.open_file(mapped).num_record_batches
        if listed != batches:
            raise ValueError(f"{batches} batches, of {listed} that are listed")
    elif mapped.tell() != mapped.size():
        raise ValueError("it goes on after its end")
    return rows


def _messages(mapped: Any, ipc: Any) -> Iterator[Any]:
    reader = ipc.MessageReader.open_stream(mapped)
    with suppress(StopIteration):
        while True:
            yield reader.read_next_message()


@dataclass(frozen=True, slots=True)
class _Batch:
    """What a message declares of a batch: rows, bytes, and bytes when unpacked.

    `counted` is False for a batch of a dictionary: its rows are not rows of the table.
    """

    counted: bool
    rows: int
    packed: int
    unpacked: int

    @classmethod
    def of(cls, message: Any) -> _Batch | None:
        """Parse the flat buffer of a message; return None if the message is no batch."""
        metadata, body = message.metadata.to_pybytes(), message.body
        root = _Table.root(metadata)
        kind = root.byte(1)
        if kind not in (_RECORD_BATCH, _DICTIONARY_BATCH):
            return None
        table = root.table(2)
        if kind == _DICTIONARY_BATCH:
            table = table.table(1)
        counted = kind == _RECORD_BATCH
        rows = table.long(0) if counted else 0
        packed = len(body) if body is not None else 0
        if not table.has(3):  # not compressed
            return cls(counted, rows, packed, packed)
        unpacked = 0
        for offset, length in table.pairs(2):
            if length >= 8:
                declared = struct.unpack_from("<q", body, offset)[0] if offset >= 0 else 0
                unpacked += max(length, declared)
        return cls(counted, rows, packed, unpacked)


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of a flat buffer, with fields by number."""

    data: bytes
    offset: int

    @classmethod
    def root(cls, data: bytes) -> _Table:
        return cls(data, struct.unpack_from("<I", data)[0])

    def _at(self, field: int) -> int:
        """Return the offset of a field; 0 if the table does not have it."""
        vtable = self.offset - struct.unpack_from("<i", self.data, self.offset)[0]
        if vtable < 0:
            raise ValueError("a message that points outside itself")
        size = struct.unpack_from("<H", self.data, vtable)[0]
        if 4 + 2 * field >= size:
            return 0
        step: int = struct.unpack_from("<H", self.data, vtable + 4 + 2 * field)[0]
        return self.offset + step if step else 0

    def has(self, field: int) -> bool:
        return self._at(field) > 0

    def byte(self, field: int) -> int:
        at = self._at(field)
        return self.data[at] if at else 0

    def long(self, field: int) -> int:
        at = self._at(field)
        value: int = struct.unpack_from("<q", self.data, at)[0] if at else 0
        if value < 0:
            raise ValueError("a length below 0")
        return value

    def table(self, field: int) -> _Table:
        at = self._at(field)
        if not at:
            raise ValueError("a message without content")
        return _Table(self.data, at + struct.unpack_from("<I", self.data, at)[0])

    def pairs(self, field: int) -> Iterator[tuple[int, int]]:
        at = self._at(field)
        if not at:
            return
        start = at + struct.unpack_from("<I", self.data, at)[0]
        count = struct.unpack_from("<I", self.data, start)[0]
        for index in range(count):
            yield struct.unpack_from("<qq", self.data, start + 4 + 16 * index)
