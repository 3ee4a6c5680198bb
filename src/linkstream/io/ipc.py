"""`.arrow` and `.feather`: Arrow's own format, as a file or as a stream.

Both hold the same messages, one after the other, and are read that way; the list of places at the
end of a file is not needed. Each message is looked at before it is decoded: what it would unpack
to must be in proportion to its size.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linkstream.io.archives import PACKING_FLOOR, PACKING_MAX
from linkstream.io.columns import BatchSource, arrow, chosen_columns, damage, damaged
from linkstream.io.faults import SAVE_AGAIN, fault
from linkstream.io.source import Source, Wanted

FILE_MAGIC = b"ARROW1"
STREAM_MAGIC = b"\xff\xff\xff\xff"

_FILE_START = 8  # the magic, padded
_RECORD_BATCH, _DICTIONARY_BATCH = 3, 2  # kinds of message, of Arrow's format


def open_ipc(path: Path, wanted: Wanted) -> Source:
    """The rows of a column of an Arrow file or stream."""
    pa = arrow()
    try:
        mapped = pa.memory_map(str(path))
    except damage() as error:
        raise damaged(str(path), error) from None
    return _open(str(path), mapped, wanted)


def open_ipc_bytes(name: str, body: bytes, wanted: Wanted) -> Source:
    """The same, of bytes that are in memory."""
    return _open(name, arrow().BufferReader(body), wanted)


def _open(name: str, mapped: Any, wanted: Wanted) -> Source:
    try:
        wanted.refuse(name, "key")
        start = _start(name, mapped)
        n = _checked_rows(name, mapped, start)
        return IpcSource(name, wanted, mapped, start, n)
    except BaseException:
        mapped.close()
        raise


class IpcSource(BatchSource):
    """Vectors of an Arrow file or stream; rows that are skipped are read over."""

    def __init__(self, name: str, wanted: Wanted, mapped: Any, start: int, n: int) -> None:
        ipc = arrow("pyarrow.ipc")
        try:
            mapped.seek(start)
            schema = ipc.open_stream(mapped).schema
            columns = chosen_columns(name, schema, wanted)
            options = ipc.IpcReadOptions(
                included_fields=[
                    schema.get_field_index(column) for column in (columns[0], *columns[1])
                ],
                use_threads=False,
            )
            mapped.seek(start)
            batches = iter(ipc.open_stream(mapped, options=options))
        except damage() as error:
            raise damaged(name, error) from None
        super().__init__(name, wanted, kind="arrow", n=n, columns=columns)
        self._owned.callback(mapped.close)
        self._batches = batches
        self._begin()


def _start(name: str, mapped: Any) -> int:
    size = mapped.size()
    if mapped.read(len(FILE_MAGIC)) != FILE_MAGIC:
        return 0
    mapped.seek(max(0, size - len(FILE_MAGIC)))
    if size < 2 * _FILE_START or mapped.read(len(FILE_MAGIC)) != FILE_MAGIC:
        raise fault(f"{name} has no end", "a whole Arrow file", SAVE_AGAIN)
    return _FILE_START


def _checked_rows(name: str, mapped: Any, start: int) -> int:
    """Rows of all batches; no batch may unpack to hundreds of times its size."""
    rows = batches = 0
    try:
        mapped.seek(start)
        for message in _messages(mapped):
            batch = _Batch.of(message)
            if batch is None:
                continue
            if batch.unpacked > max(PACKING_FLOOR, PACKING_MAX * batch.packed):
                raise fault(
                    f"{name} would unpack {batch.packed} bytes to {batch.unpacked}",
                    f"at most {PACKING_MAX} times as many, as vectors do",
                    "If the file is to be trusted, save it without compression.",
                )
            rows += batch.rows
            batches += batch.counted
        _check_end(mapped, start, batches)
    except damage() as error:
        raise damaged(name, error) from None
    return rows


def _check_end(mapped: Any, start: int, batches: int) -> None:
    """Messages must go on to the end: damage can look like an end in the middle."""
    if start:
        listed = arrow("pyarrow.ipc").open_file(mapped).num_record_batches
        if listed != batches:
            raise ValueError(f"{batches} batches, of {listed} that are listed")
    elif mapped.tell() != mapped.size():
        raise ValueError("it goes on after its end")


def _messages(mapped: Any) -> Iterator[Any]:
    reader = arrow("pyarrow.ipc").MessageReader.open_stream(mapped)
    with suppress(StopIteration):
        while True:
            yield reader.read_next_message()


@dataclass(frozen=True, slots=True)
class _Batch:
    """What a message says of a batch: rows, bytes, and bytes when unpacked.

    `counted` is False of a batch of words that others refer to: its rows are none of the table's.
    """

    counted: bool
    rows: int
    packed: int
    unpacked: int

    @classmethod
    def of(cls, message: Any) -> _Batch | None:
        """Read from the message's flat buffer, whose layout Arrow's format lays down."""
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
    """A table of a flat buffer: fields by number, each where the table's list of places says."""

    data: bytes
    place: int

    @classmethod
    def root(cls, data: bytes) -> _Table:
        return cls(data, struct.unpack_from("<I", data)[0])

    def _at(self, field: int) -> int:
        places = self.place - struct.unpack_from("<i", self.data, self.place)[0]
        if places < 0:
            raise ValueError("a message that points outside itself")
        size = struct.unpack_from("<H", self.data, places)[0]
        if 4 + 2 * field >= size:
            return 0
        step: int = struct.unpack_from("<H", self.data, places + 4 + 2 * field)[0]
        return self.place + step if step else 0

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
        for place in range(count):
            yield struct.unpack_from("<qq", self.data, start + 4 + 16 * place)
