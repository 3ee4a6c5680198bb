"""Snapshots: the whole state now and then, so that opening is quick; in checked chunks."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from linkstream.errors import DamagedStoreError
from linkstream.store.file import connect, damaged, intact, sealed

CHUNK = 1 << 20  # bytes
_AT_ONCE = 16  # chunks in one transaction: others get their turn between them
_COLUMNS = "number, operation, first_chunk, chunks, size, split"

_log = logging.getLogger("linkstream.store")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot's row: `split` bytes of the clusterer, the rest of `size` is the index."""

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
    """Add a snapshot that includes all up to an operation, and read it back.

    `turn` does each step in a transaction of its own, so that others get theirs between them. It
    counts only from the last one on: it is there wholly or not at all.
    """
    data = b"".join(parts)
    bodies = [data[start : start + CHUNK] for start in range(0, len(data), CHUNK)]

    def begin() -> tuple[int, int]:
        _sweep(connection, path)
        return _next(connection)

    def put(start: int) -> None:
        for place, body in enumerate(bodies[start : start + _AT_ONCE], first + start):
            _insert_chunk(connection, place, body)

    first, number = turn(begin)
    made = Snapshot(number, operation, first, len(bodies), len(data), len(parts[0]))
    for start in range(0, len(bodies), _AT_ONCE):
        turn(partial(put, start))
    with closing(connect(path, read_only=True)) as reader:  # reading back holds nobody up
        if read(reader, path, made) != parts:
            raise damaged(path, "a snapshot is not what was just written")
    turn(lambda: insert(connection, made))
    return made


def insert_whole(
    connection: sqlite3.Connection, operation: int, parts: tuple[bytes, bytes]
) -> Snapshot:
    """Add a snapshot within a transaction of the caller's."""
    data = b"".join(parts)
    bodies = [data[start : start + CHUNK] for start in range(0, len(data), CHUNK)]
    first, number = _next(connection)
    for place, body in enumerate(bodies, first):
        _insert_chunk(connection, place, body)
    made = Snapshot(number, operation, first, len(bodies), len(data), len(parts[0]))
    insert(connection, made)
    return made


def _next(connection: sqlite3.Connection) -> tuple[int, int]:
    """Numbers for the next chunk and the next snapshot."""
    (chunk,) = connection.execute("SELECT coalesce(max(number), 0) FROM chunks").fetchone()
    (number,) = connection.execute("SELECT coalesce(max(number), 0) FROM snapshots").fetchone()
    return chunk + 1, number + 1


def _insert_chunk(connection: sqlite3.Connection, place: int, body: bytes) -> None:
    connection.execute("INSERT INTO chunks VALUES (?, ?, ?)", sealed("chunks", place, body))


def insert(connection: sqlite3.Connection, made: Snapshot) -> None:
    """Add the row that makes a snapshot count."""
    values = (made.number, made.operation, made.first_chunk, made.chunks, made.size, made.split)
    marks = ", ".join("?" * 7)
    connection.execute(f"INSERT INTO snapshots VALUES ({marks})", sealed("snapshots", *values))


def drop(connection: sqlite3.Connection, path: Path, gone: list[Snapshot]) -> None:
    """Forget snapshots; the caller commits."""
    for old in gone:
        connection.execute("DELETE FROM snapshots WHERE number = ?", (old.number,))
    _sweep(connection, path)


def every(connection: sqlite3.Connection, path: Path) -> list[Snapshot]:
    """All there are, oldest first; DamagedStoreError where a row is not as it was written."""
    found = []
    query = f"SELECT {_COLUMNS}, crc FROM snapshots ORDER BY number"
    for row in connection.execute(query):
        if not intact("snapshots", row):
            raise damaged(path, f"snapshot {row[0]} does not match its checksum")
        found.append(Snapshot(*row[:-1]))
    return found


def read(connection: sqlite3.Connection, path: Path, made: Snapshot) -> tuple[bytes, bytes]:
    """The clusterer and the index of a snapshot, as bytes."""
    numbers = range(made.first_chunk, made.first_chunk + made.chunks)
    data = b"".join([_chunk(connection, path, number) for number in numbers])
    if len(data) != made.size:
        raise damaged(path, f"snapshot {made.number} has {len(data)} bytes of {made.size}")
    return data[: made.split], data[made.split :]


def sound(
    connection: sqlite3.Connection, path: Path
) -> Iterator[tuple[Snapshot, tuple[bytes, bytes]]]:
    """Snapshots that can be read, the newest first."""
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
        _log.warning("%s; an older one is tried", error.seen)
        return None


def _chunk(connection: sqlite3.Connection, path: Path, number: int) -> bytes:
    query = "SELECT number, body, crc FROM chunks WHERE number = ?"
    row = connection.execute(query, (number,)).fetchone()
    if not intact("chunks", row) or row[0] != number:
        raise damaged(path, f"chunk {number} of a snapshot is missing or damaged")
    body: bytes = row[1]
    return body


def _sweep(connection: sqlite3.Connection, path: Path) -> None:
    """Remove chunks that belong to no snapshot: of old ones, or of one that was broken off."""
    owned = [(s.first_chunk, s.first_chunk + s.chunks) for s in every(connection, path)]
    for (number,) in connection.execute("SELECT number FROM chunks").fetchall():
        if not any(first <= number < end for first, end in owned):
            connection.execute("DELETE FROM chunks WHERE number = ?", (number,))
