"""Snapshots: copies of the state that make opening fast, in chunks with checksums."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from linkstream.errors import DamagedStoreError
from linkstream.store.file import connect, damaged, intact, sealed

CHUNK = 1 << 20  # bytes
_AT_ONCE = 16  # chunks in one transaction; commits run between two transactions
_COLUMNS = "number, operation, first_chunk, chunks, size, split"

_log = logging.getLogger("linkstream.store")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The row of a snapshot: `split` bytes of clusterer, then the index, `size` bytes in all."""

    number: int
    operation: int
    first_chunk: int
    chunks: int
    size: int
    split: int


def write(
    connection: sqlite3.Connection,
    path: Path,
    operation: int,
    parts: tuple[bytes, bytes],
    turn: Callable[[Callable[[], Any]], Any],
) -> Snapshot:
    """Write a snapshot that includes everything up to an operation, and read it back.

    `turn` runs a function in a transaction of its own; commits run between them. The last one
    inserts the row without which the snapshot does not count.
    """
    data = b"".join(parts)
    bodies = [data[start : start + CHUNK] for start in range(0, len(data), CHUNK)]

    def begin() -> tuple[int, int]:
        _sweep(connection, path)
        return _next(connection)

    def put(start: int) -> None:
        for number, body in enumerate(bodies[start : start + _AT_ONCE], first + start):
            _insert_chunk(connection, number, body)

    first, number = turn(begin)
    made = Snapshot(number, operation, first, len(bodies), len(data), len(parts[0]))
    for start in range(0, len(bodies), _AT_ONCE):
        turn(partial(put, start))
    with closing(connect(path, read_only=True)) as reader:  # a connection of its own: commits go on
        if read(reader, path, made) != parts:
            raise damaged(path, "a snapshot is not what was just written")
    turn(lambda: insert(connection, made))
    return made


def insert_whole(
    connection: sqlite3.Connection, operation: int, parts: tuple[bytes, bytes]
) -> Snapshot:
    """Insert a snapshot within a transaction of the caller."""
    data = b"".join(parts)
    first, number = _next(connection)
    bodies = [data[start : start + CHUNK] for start in range(0, len(data), CHUNK)]
    for chunk, body in enumerate(bodies, first):
        _insert_chunk(connection, chunk, body)
    made = Snapshot(number, operation, first, len(bodies), len(data), len(parts[0]))
    insert(connection, made)
    return made


def _next(connection: sqlite3.Connection) -> tuple[int, int]:
    (chunk,) = connection.execute("SELECT coalesce(max(number), 0) FROM chunks").fetchone()
    (number,) = connection.execute("SELECT coalesce(max(number), 0) FROM snapshots").fetchone()
    return chunk + 1, number + 1


def _insert_chunk(connection: sqlite3.Connection, number: int, body: bytes) -> None:
    connection.execute("INSERT INTO chunks VALUES (?, ?, ?)", sealed("chunks", number, body))


def insert(connection: sqlite3.Connection, made: Snapshot) -> None:
    """Insert the row that makes a snapshot valid."""
    row = sealed("snapshots", *astuple(made))
    connection.execute("INSERT INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def drop(connection: sqlite3.Connection, path: Path, gone: list[Snapshot]) -> None:
    """Delete snapshots; the caller commits."""
    for old in gone:
        connection.execute("DELETE FROM snapshots WHERE number = ?", (old.number,))
    _sweep(connection, path)


def every(connection: sqlite3.Connection, path: Path) -> list[Snapshot]:
    """Return all snapshots, the oldest first; raise DamagedStoreError if a row is damaged."""
    found = []
    query = f"SELECT {_COLUMNS}, crc FROM snapshots ORDER BY number"
    for row in connection.execute(query):
        if not intact("snapshots", row):
            raise damaged(path, f"snapshot {row[0]} does not match its checksum")
        found.append(Snapshot(*row[:-1]))
    return found


def read(connection: sqlite3.Connection, path: Path, made: Snapshot) -> tuple[bytes, bytes]:
    """Return the clusterer and the index of a snapshot as bytes."""
    numbers = range(made.first_chunk, made.first_chunk + made.chunks)
    data = b"".join([_chunk(connection, path, number) for number in numbers])
    if len(data) != made.size:
        raise damaged(path, f"snapshot {made.number} has {len(data)} bytes of {made.size}")
    return data[: made.split], data[made.split :]


def sound(
    connection: sqlite3.Connection, path: Path
) -> Iterator[tuple[Snapshot, tuple[bytes, bytes]]]:
    """Yield the snapshots that can be read, the newest first."""
    query = f"SELECT {_COLUMNS}, crc FROM snapshots ORDER BY number DESC"
    for row in connection.execute(query).fetchall():
        found = _read_sound(connection, path, row)
        if found is not None:
            yield found


def _read_sound(
    connection: sqlite3.Connection, path: Path, row: tuple[int, ...]
) -> tuple[Snapshot, tuple[bytes, bytes]] | None:
    try:
        if not intact("snapshots", row):
            raise damaged(path, f"snapshot {row[0]} does not match its checksum")
        made = Snapshot(*row[:-1])
        query = "SELECT coalesce(max(number), 0) FROM operations"
        (last,) = connection.execute(query).fetchone()
        if not 0 <= made.operation <= last:
            raise damaged(path, f"snapshot {made.number} is of operation {made.operation}")
        return made, read(connection, path, made)
    except DamagedStoreError as error:
        _log.warning("%s; trying an older snapshot", error.seen)
        return None


def _chunk(connection: sqlite3.Connection, path: Path, number: int) -> bytes:
    query = "SELECT number, body, crc FROM chunks WHERE number = ?"
    row = connection.execute(query, (number,)).fetchone()
    if not intact("chunks", row) or row[0] != number:
        raise damaged(path, f"chunk {number} of a snapshot is missing or damaged")
    body: bytes = row[1]
    return body


def _sweep(connection: sqlite3.Connection, path: Path) -> None:
    """Delete chunks of deleted or interrupted snapshots."""
    owned = [(s.first_chunk, s.first_chunk + s.chunks) for s in every(connection, path)]
    for (number,) in connection.execute("SELECT number FROM chunks").fetchall():
        if not any(first <= number < end for first, end in owned):
            connection.execute("DELETE FROM chunks WHERE number = ?", (number,))
