"""Blocks: what people attach to the vectors of a call, in rows of 256 vectors.

Each kind has a table of its own. Block `i` of an operation has the number `operation * 16384 + i`,
so the block of a vector is found by number alone. Payloads and keys are lines of text, of which an
empty one stands for nothing; times are integers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.store.file import damaged, intact, sealed
from linkstream.store.payloads import Lines

ROWS = 256  # vectors of a block
ROWS_MAX = 1 << 22  # vectors in one call
PER_OPERATION = ROWS_MAX // ROWS
PAYLOADS, TIMES, KEYS = "payload_blocks", "vector_times", "vector_keys"  # tables
LIST = 1  # flag of an operation of format 1, whose payloads are one JSON list
FLAGS = {PAYLOADS: 2, TIMES: 4, KEYS: 8}  # of operations that have rows in these tables
NO_TIME = np.iinfo(np.int64).min  # a vector without a time; NaT of NumPy

Times = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class Attached:
    """What came with the vectors of a call, one entry for each vector.

    Attributes:
        payloads: lines of JSON; None if no payloads came.
        times: microseconds since 1970, UTC; None if no times came.
        keys: the vectors' own keys as UTF-8; None if no keys came.
    """

    payloads: Lines | None = None
    times: Times | None = None
    keys: Lines | None = None

    @property
    def flags(self) -> int:
        """The flags of an operation with these columns."""
        return sum(FLAGS[table] for table, _ in self.columns())

    def columns(self) -> Iterator[tuple[str, Any]]:
        """Yield the table and the entries of each kind that came."""
        kinds = (PAYLOADS, self.payloads), (TIMES, self.times), (KEYS, self.keys)
        yield from ((table, entries) for table, entries in kinds if entries is not None)

    def n_bytes(self) -> int:
        """Return about how many bytes these columns take in the file."""
        texts = sum(sum(map(len, lines)) for lines in (self.payloads, self.keys) if lines)
        return texts + (0 if self.times is None else self.times.nbytes)

    def part(self, start: int, end: int) -> Attached:
        """Return the entries of some rows."""
        payloads = None if self.payloads is None else self.payloads[start:end]
        times = None if self.times is None else self.times[start:end]
        return Attached(payloads, times, None if self.keys is None else self.keys[start:end])

    def without(self, gone: npt.NDArray[np.bool_]) -> Attached:
        """Return the columns without the entries of some rows."""
        payloads = None if self.payloads is None else _blanked(self.payloads, gone)
        times = None if self.times is None else np.where(gone, NO_TIME, self.times)
        return Attached(payloads, times, None if self.keys is None else _blanked(self.keys, gone))


NOTHING = Attached()


def _blanked(lines: Lines, gone: npt.NDArray[np.bool_]) -> Lines:
    return [b"" if out else line for line, out in zip(lines, gone.tolist(), strict=True)]


def count(n_rows: int) -> int:
    """Return how many blocks the rows of an operation have."""
    return -(-n_rows // ROWS)


def write(connection: sqlite3.Connection, operation: int, attached: Attached) -> None:
    """Write or replace the blocks of an operation."""
    for table, entries in attached.columns():
        bodies = [_body(entries[start : start + ROWS]) for start in range(0, len(entries), ROWS)]
        first = operation * PER_OPERATION
        rows = [sealed(table, first + i, body) for i, body in enumerate(bodies)]
        connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)", rows)


def delete_from(connection: sqlite3.Connection, operation: int) -> None:
    """Delete the blocks of an operation and of all after it."""
    for table in FLAGS:
        first = operation * PER_OPERATION
        connection.execute(f"DELETE FROM {table} WHERE block >= ?", (first,))


def _body(entries: Any) -> bytes:
    if isinstance(entries, np.ndarray):
        return entries.astype("<i8", copy=False).tobytes()
    return b"\n".join(entries)


class BlockReader:
    """Reads blocks through a connection and checks each."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self._path = connection, path

    def lines(self, table: str, operation: int, n_rows: int, block: int) -> Lines:
        """Return the lines of a block of an operation with `n_rows` vectors."""
        lines = self._read(table, operation, block).split(b"\n")
        self._check(table, operation, len(lines) == _rows_of(block, n_rows))
        return lines

    def times(self, operation: int, n_rows: int, block: int) -> Times:
        """Return the times of a block of an operation with `n_rows` vectors."""
        body = self._read(TIMES, operation, block)
        self._check(TIMES, operation, len(body) == 8 * _rows_of(block, n_rows))
        return np.frombuffer(body, dtype="<i8").astype(np.int64, copy=False)

    def all_of(self, operation: int, n_rows: int, flags: int) -> Attached:
        """Return everything that came with an operation, except a list of format 1."""
        found: dict[str, Any] = {}
        blocks = range(count(n_rows))
        for table in (PAYLOADS, KEYS):
            if flags & FLAGS[table]:
                parts = [self.lines(table, operation, n_rows, block) for block in blocks]
                found[table] = [line for part in parts for line in part]
        if flags & FLAGS[TIMES]:
            found[TIMES] = np.concatenate([self.times(operation, n_rows, b) for b in blocks])
        return Attached(found.get(PAYLOADS), found.get(TIMES), found.get(KEYS))

    def _read(self, table: str, operation: int, block: int) -> bytes:
        number = operation * PER_OPERATION + block
        query = f"SELECT block, body, crc FROM {table} WHERE block = ?"
        row = self._connection.execute(query, (number,)).fetchone()
        self._check(table, operation, intact(table, row) and row[0] == number)
        body: bytes = row[1]
        return body

    def _check(self, table: str, operation: int, sound: bool) -> None:
        if not sound:
            what = f"{_NAMES[table]} of operation {operation}"
            raise damaged(self._path, f"{what} are missing or do not match their checksum")


_NAMES = {PAYLOADS: "payloads", TIMES: "times", KEYS: "keys"}


def _rows_of(block: int, n_rows: int) -> int:
    return min(ROWS, n_rows - block * ROWS)
