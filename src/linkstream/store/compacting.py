"""Delete snapshots that are not needed, and erase the bytes of removed vectors."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from linkstream.errors import StoreError
from linkstream.store import journal, snapshots
from linkstream.store.file import BUSY, transaction
from linkstream.store.journal import Operation, rows_of_piece
from linkstream.store.model import Model

Flags = npt.NDArray[np.bool_]


def prune(connection: sqlite3.Connection, path: Path, *, keep: bool) -> None:
    """Delete all snapshots but the newest two and the base; the caller commits.

    If vectors are not kept, the older of the two becomes the base, and older vectors are deleted.
    """
    made = snapshots.every(connection, path)
    if keep:
        snapshots.drop(connection, path, made[1:-2])
        return
    snapshots.drop(connection, path, made[:-2])
    base = made[-2:][0].operation
    query = "SELECT first_piece FROM operations WHERE number = ?"
    following = connection.execute(query, (base + 1,)).fetchone()
    if following is not None:
        connection.execute("DELETE FROM vectors WHERE piece < ?", following)


def compact(connection: sqlite3.Connection, model: Model) -> None:
    """Erase removed, forgotten and undone vectors; nothing else may write meanwhile."""
    connection.execute("PRAGMA secure_delete=ON")
    model.links.core.up_to_date_ledger().drop_unused_texts()
    parts = model.pack()()
    live, names = _live(model), set(model.links.core.ledger.names.values())
    with transaction(connection):
        for operation in model.journal.operations(0, model.number):
            _erase_rows(connection, model, operation, live.get(operation.number))
            _erase_names(connection, operation, names)
        old = snapshots.every(connection, model.path)
        snapshots.insert_whole(connection, model.number, parts)
        snapshots.drop(connection, model.path, old)
    connection.execute("VACUUM")
    connection.execute("PRAGMA secure_delete=OFF")


def empty_log(connection: sqlite3.Connection) -> bool:
    """Empty the log; return False if a reader is using it."""
    connection.execute("PRAGMA busy_timeout=0")
    try:
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.execute(f"PRAGMA busy_timeout={BUSY}")
    return not busy


def check_emptied(path: Path, emptied: bool) -> None:
    """Raise StoreError if erased bytes may be left in the log."""
    if not emptied:
        raise StoreError(
            f"{path}: compacted, but others read it; its log may still hold erased bytes",
            expected="a moment without readers",
            remedy="Close the readers and compact again.",
        )


def _live(model: Model) -> dict[int, Flags]:
    """Return which rows of each operation are still there."""
    links = model.links
    if not links.keep_vectors:
        return {}
    labels, found = links.labels(), {}
    for number, first, end in model.index.stretches(links.n_vectors):
        operation = model.journal.operation(number)
        if operation.verb == journal.LOST:
            continue
        rows = operation.taken()[: end - first]
        flags: Flags = np.zeros(operation.n_rows, dtype=np.bool_)
        flags[rows] = labels[first:end] >= 0
        found[number] = flags
    return found


def _erase_rows(
    connection: sqlite3.Connection, model: Model, operation: Operation, live: Flags | None
) -> None:
    if not operation.n_rows or (live is not None and live.all()):
        return
    if not model.links.keep_vectors:
        last = operation.first_piece + operation.n_pieces
        span = (operation.first_piece, last)
        connection.execute("DELETE FROM vectors WHERE piece >= ? AND piece < ?", span)
    else:
        _zero(connection, model, operation, live)
    payloads = model.journal.payloads(operation)
    if payloads is not None and model.links.track_vectors:
        left = [p if live is not None and live[row] else None for row, p in enumerate(payloads)]
        journal.write_payloads(connection, operation.number, left)


def _zero(
    connection: sqlite3.Connection, model: Model, operation: Operation, live: Flags | None
) -> None:
    """Overwrite erased vectors with zeros."""
    size = rows_of_piece(operation.dimension)
    for i in range(operation.n_pieces):
        piece = operation.first_piece + i
        rows = model.journal.piece(operation, piece).copy()
        part = slice(i * size, i * size + len(rows))
        rows[~live[part] if live is not None else slice(None)] = 0.0
        journal.write_piece(connection, piece, rows.tobytes())


def _erase_names(connection: sqlite3.Connection, operation: Operation, names: set[str]) -> None:
    name = operation.arguments.get("name")
    if name is not None and name not in names:
        arguments = {**operation.arguments, "name": None}
        connection.execute("DELETE FROM operations WHERE number = ?", (operation.number,))
        journal.write(connection, replace(operation, arguments=arguments))
