"""Find the rows of a damaged store without SQLite, page by page.

Every row has a checksum that includes the name of its table: a row that matches, wherever it lies
in the file or the log, was written by linkstream. Headers, trees and free lists may be damaged;
they only decide the order of the search. SQLite's documentation describes the formats ("Database
File Format").
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from linkstream.store import blocks, file, schema, wal
from linkstream.store.file import intact

Row = tuple[Any, ...]

_SHORT = ("vectors", "chunks", "meta", "payloads", *blocks.FLAGS)  # tables of three columns
TABLES = {14: ("operations",), 7: ("snapshots",), 5: (schema.REENCODED_TABLE,), 3: _SHORT}
_INTERIOR = 0x05  # the type of interior pages, which refer to others
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}  # serial type of a record → bytes
_SCHEMA_COLUMNS = 5
_SIZES = (4096, 32768, 8192, 16384, 65536)  # page sizes to try if the header is damaged
_PROBED = 64  # pages to read to recognise a store
_CHANGED_BITS = 8  # by which the header of a store may differ; other programs differ by more
_ROOTS = range(1, 12)  # root pages of a store that was never compacted


class Carver:
    """Reads the pages of a store and its log."""

    def __init__(self, path: Path, page_size: int | None = None) -> None:
        self._file = path.open("rb")
        self._file_size = path.stat().st_size
        self.size = page_size or wal.page_size_of(path)
        log = wal.read(path, page_size=self.size)
        self._log = None if log is None else wal.log_of(path).open("rb")
        self._frames = _frames(log)
        self._offset = None if log is None else log.offset
        self._n_pages = -(-self._file_size // self.size)

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        if self._log is not None:
            self._log.close()

    def rows(self, *, among: int | None = None) -> Iterator[tuple[str, Row]]:
        """Yield each row that matches its checksum, with its table; rows in use come first.

        A number may come again from a page that is no longer in use: the first row counts.
        `among` limits the number of pages.
        """
        used = self._in_use()
        pages = {*range(1, self._n_pages + 1), *self._frames}
        for number in sorted(pages, key=lambda number: (number not in used, number))[:among]:
            seen: set[int] = set()
            for image in self._images(number):
                yield from self._rows_of(number, image, seen)

    def _images(self, number: int) -> Iterator[bytes]:
        """Yield the versions of a page, the newest first: from the log, then from the file."""
        for frame in reversed(self._frames.get(number, [])):
            assert self._log is not None
            assert self._offset is not None
            self._log.seek(self._offset(frame))
            yield self._log.read(self.size)
        self._file.seek((number - 1) * self.size)
        yield self._file.read(self.size)

    def _is_there(self, number: int) -> bool:
        return 1 <= number <= self._n_pages or number in self._frames

    def _newest(self, number: int) -> bytes:
        return next(self._images(number))

    # Pages in use

    def _in_use(self) -> set[int]:
        """Return the pages of the tables' trees, as far as they can be followed."""
        waiting, found = [1, *self._roots()], set()
        while waiting:
            number = waiting.pop()
            if number in found or not self._is_there(number):
                continue
            found.add(number)
            waiting += self._children(number)
        return found  # without overflow pages

    def _roots(self) -> list[int]:
        page = self._newest(1)
        cells = (self._record(page, start) for start in _cells(page, 100))
        schema = [cell[1] for cell in cells if cell is not None]
        roots = [row[3] for row in schema if len(row) == _SCHEMA_COLUMNS and type(row[3]) is int]
        return roots or list(_ROOTS)

    def _children(self, number: int) -> list[int]:
        page, head = self._newest(number), _head(number)
        if len(page) < self.size or page[head] != _INTERIOR:
            return []
        last = int.from_bytes(page[head + 8 : head + 12], "big")
        cells = _cells(page, head, width=12)
        return [last, *(int.from_bytes(page[at : at + 4], "big") for at in cells)]

    # Rows

    def _rows_of(self, number: int, page: bytes, seen: set[int]) -> Iterator[tuple[str, Row]]:
        """Yield the intact rows of a page, except those seen in a newer version of it."""
        for start in _cells(page, _head(number)):
            found = self._record(page, start, seen)
            if found is None:
                continue
            key, values = found
            row = (key, *values[1:])
            for table in TABLES.get(len(row), ()):
                if _fits(table, row):
                    seen.add(key)
                    yield table, row
                    break

    def _record(
        self, page: bytes, start: int, seen: set[int] | frozenset[int] = frozenset()
    ) -> tuple[int, list[Any]] | None:
        """Return the number and the values of a row; None if there is none or it was seen."""
        try:
            length, start = _varint(page, start)
            key, start = _varint(page, start)
            key -= 2**64 if key >= 2**63 else 0  # nine bytes of a number below 0
            if key in seen or not 0 < length <= self._file_size + len(self._frames) * self.size:
                return None
            payload = self._payload(page, start, length)
            return None if payload is None else (key, _values(payload))
        except (IndexError, ValueError, struct.error):
            return None

    def _payload(self, page: bytes, start: int, length: int) -> bytes | None:
        """Return the bytes of a record, from its page and its overflow pages."""
        most = self.size - 35
        if length <= most:
            return page[start : start + length] if start + length <= len(page) else None
        least = (self.size - 12) * 32 // 255 - 23
        local = least + (length - least) % (self.size - 4)
        local = local if local <= most else least
        parts, left = [page[start : start + local]], length - local
        following = int.from_bytes(page[start + local : start + local + 4], "big")
        if len(parts[0]) < local or len(_types(parts[0])[0]) not in TABLES:
            return None
        while left > 0:
            if not self._is_there(following):
                return None
            more = self._newest(following)
            parts.append(more[4 : 4 + min(left, self.size - 4)])
            left -= self.size - 4
            following = int.from_bytes(more[:4], "big")
        return b"".join(parts)


def _frames(log: wal.Log | None) -> dict[int, list[int]]:
    """Return the frames of each page, of this generation of the log and up to its last commit."""
    found: dict[int, list[int]] = {}
    if log is not None:
        there = np.flatnonzero(log.near[: log.n_committed] > 0)
        for frame, page in zip(there.tolist(), log.pages[there].tolist(), strict=True):
            found.setdefault(page, []).append(frame)
    return found


def _head(number: int) -> int:
    """Return where the header of a page begins; page 1 starts with the file header."""
    return 100 if number == 1 else 0


def _cells(page: bytes, head: int, width: int = 8) -> list[int]:
    """Return where the cells of a page begin; some offsets may be wrong."""
    n_cells = int.from_bytes(page[head + 3 : head + 5], "big")
    starts = []
    for count, at in enumerate(range(head + width, len(page) - 1, 2)):
        start = int.from_bytes(page[at : at + 2], "big")
        if at < start < len(page):
            starts.append(start)
        elif count >= n_cells:
            break
    return starts


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    """Return a SQLite integer of one to nine bytes, and the offset after it."""
    value = 0
    for count in range(8):
        byte = data[offset + count]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, offset + count + 1
    return value << 8 | data[offset + 8], offset + 9


def _types(payload: bytes) -> tuple[list[int], int]:
    """Return the serial types of the values of a record, and the offset of the values."""
    start, offset = _varint(payload, 0)
    types: list[int] = []
    while offset < start:
        kind, offset = _varint(payload, offset)
        types.append(kind)
        if len(types) > max(TABLES):
            raise ValueError("more columns than any table has")
    return types, start


def _values(payload: bytes) -> list[Any]:
    types, offset = _types(payload)
    values: list[Any] = []
    for kind in types:
        value, offset = _value(payload, kind, offset)
        values.append(value)
    return values


def _value(payload: bytes, kind: int, offset: int) -> tuple[Any, int]:
    if kind == 0:
        return None, offset
    if kind in _INTEGERS:
        end = offset + _INTEGERS[kind]
        return int.from_bytes(payload[offset:end], "big", signed=True), end
    if kind in (8, 9):
        return kind - 8, offset
    if kind < 12:
        raise ValueError("a type that no table has")
    end = offset + (kind - 12) // 2
    if end > len(payload):
        raise ValueError("a value that ends after its record")
    raw = payload[offset:end]
    return (raw.decode() if kind % 2 else raw), end


def _fits(table: str, row: Row) -> bool:
    try:
        return intact(table, row)
    except (TypeError, ValueError):
        return False


# Recognising a store


def check_kind(path: Path) -> None:
    """Raise StoreError unless a file is a store, intact or damaged. Nothing is written.

    A store has a header in which few bits differ, or at least one intact row.
    """
    if path.exists() and not path.is_file():
        raise file.no_store(path, "not a file")
    if not path.exists() or _has_header(path):
        return
    with file.usable(path):
        if _page_size(path) is None:
            raise file.no_store(path, "not a linkstream store")


def rows(path: Path) -> Iterator[tuple[str, Row]]:
    """Yield all rows of a store and its log that match their checksums, see `Carver.rows`."""
    with closing(Carver(path, _page_size(path))) as carver:
        yield from carver.rows()


def _page_size(path: Path) -> int | None:
    """Return the page size with which rows are found; None if there are no rows."""
    for size in (wal.page_size_of(path), *_SIZES):
        with closing(Carver(path, size)) as carver:
            if next(carver.rows(among=_PROBED), None) is not None:
                return size
    return None


def _has_header(path: Path) -> bool:
    with file.usable(path), path.open("rb") as opened:
        head = opened.read(72)
    if len(head) < 72:
        return False
    seen = int.from_bytes(head[:16] + head[68:72], "big")
    right = int.from_bytes(b"SQLite format 3\0" + file.APPLICATION.to_bytes(4, "big"), "big")
    return bin(seen ^ right).count("1") <= _CHANGED_BITS
