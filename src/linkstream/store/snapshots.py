"""Snapshots of a store: the whole state now and then, so that opening is quick; in pieces."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from linkstream.store.file import crc
from linkstream.store.journal import damaged

PIECE = 1 << 20  # bytes


def write(connection: sqlite3.Connection, operation: int, data: bytes) -> None:
    """Add a snapshot that includes all up to an operation; read it back; keep the one before."""
    (newest,) = connection.execute("SELECT coalesce(max(number), 0) FROM snapshots").fetchone()
    number = newest + 1
    connection.execute("BEGIN IMMEDIATE")
    try:
        for place, start in enumerate(range(0, len(data), PIECE)):
            body = data[start : start + PIECE]
            values = (number, place, body)
            connection.execute("INSERT INTO pieces VALUES (?, ?, ?, ?)", (*values, crc(*values)))
        digest = hashlib.sha256(data).digest()
        connection.execute(
            "INSERT INTO snapshots VALUES (?, ?, ?, ?)", (number, operation, len(data), digest)
        )
        # The first is the empty clusterer with its options; of the others the last two are kept.
        old = (newest,)
        connection.execute("DELETE FROM snapshots WHERE number < ? AND operation > 0", old)
        connection.execute(
            "DELETE FROM pieces WHERE snapshot NOT IN (SELECT number FROM snapshots)"
        )
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def newest(connection: sqlite3.Connection, path: Path) -> tuple[int, bytes]:
    """The newest sound snapshot, and the operation it goes up to."""
    rows = connection.execute(
        "SELECT number, operation, size, sha256 FROM snapshots ORDER BY number DESC"
    ).fetchall()
    for number, operation, size, digest in rows:
        data = _read(connection, number)
        if data is not None and len(data) == size and hashlib.sha256(data).digest() == digest:
            return operation, data
    raise damaged(path, "no sound snapshot")


def _read(connection: sqlite3.Connection, number: int) -> bytes | None:
    query = "SELECT snapshot, place, body, crc FROM pieces WHERE snapshot = ? ORDER BY place"
    pieces = []
    for place, (*values, checksum) in enumerate(connection.execute(query, (number,))):
        if values[1] != place or crc(*values) != checksum:
            return None
        pieces.append(values[2])
    return b"".join(pieces)


def every(connection: sqlite3.Connection, path: Path) -> Iterator[tuple[int, bytes]]:
    """All snapshots, each with the operation it goes up to, or DamagedStoreError."""
    query = "SELECT number, operation, size, sha256 FROM snapshots ORDER BY number"
    for number, operation, size, digest in connection.execute(query).fetchall():
        data = _read(connection, number)
        if data is None or len(data) != size or hashlib.sha256(data).digest() != digest:
            raise damaged(path, f"snapshot {number} is not what was written")
        yield operation, data


def first(connection: sqlite3.Connection, path: Path) -> bytes:
    """The empty clusterer that the store began with."""
    for operation, data in every(connection, path):
        if operation == 0:
            return data
    raise damaged(path, "the first snapshot is missing")
