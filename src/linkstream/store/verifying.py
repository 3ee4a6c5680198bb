"""Verifying: everything that a store holds is read, checked, and decided again."""

from __future__ import annotations

import sqlite3
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from linkstream.clusterer import Links
from linkstream.errors import SnapshotError
from linkstream.store import journal, snapshots
from linkstream.store.journal import damaged


@dataclass(frozen=True, slots=True)
class Verified:
    """What was read and found sound."""

    operations: int
    vectors: int
    events: int
    snapshots: int

    def to_dict(self) -> dict[str, int]:
        """Plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"sound: {self.operations} operations, {self.vectors} vectors, {self.events} events, "
            f"{self.snapshots} snapshots"
        )


def verify(connection: sqlite3.Connection, path: Path, running: dict[str, Any]) -> Verified:
    """Read all; DamagedStoreError at the first thing that is not as it was written."""
    for (message,) in connection.execute("PRAGMA integrity_check"):
        if message != "ok":
            raise damaged(path, str(message))
    expected = {
        operation: _state(data, path) for operation, data in snapshots.every(connection, path)
    }
    links = Links.from_bytes(snapshots.first(connection, path), **running)
    last = 0
    for operation in journal.after(connection, path, 0):
        last = operation.number
        journal.again(links, operation, path)
        if last in expected and expected[last] != links.state_hash():
            raise damaged(path, f"the snapshot after operation {last} is of another state")
    (there,) = connection.execute("SELECT count(*) FROM operations").fetchone()
    if there != last:
        raise damaged(path, f"{there} operations where {last} can be read in order")
    return Verified(last, links.n_vectors, links._synced().n_events, len(expected))


def _state(data: bytes, path: Path) -> str:
    try:
        return Links.from_bytes(data, engine="reference").state_hash()
    except SnapshotError as error:
        raise damaged(path, f"a snapshot that cannot be read: {error}") from None
