"""Verify a store: read and check every row, and replay the journal."""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from linkstream.store import about, file, snapshots
from linkstream.store.file import damaged
from linkstream.store.model import Model, check_end


@dataclass(frozen=True, slots=True)
class Verified:
    """What a verification has read, all of it intact.

    Attributes:
        operations: how many operations the journal has.
        decided: how many were replayed; those before the last compaction were only read.
        vectors: how many vectors were added.
        events: how many events there are.
        snapshots: how many snapshots the file has.
    """

    operations: int
    decided: int
    vectors: int
    events: int
    snapshots: int

    def to_dict(self) -> dict[str, int]:
        """Return plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"sound: {self.operations} operations ({self.decided} decided again), "
            f"{self.vectors} vectors, {self.events} events, {self.snapshots} snapshots"
        )


def verify(path: Path, running: dict[str, Any], *, keep: bool) -> Verified:
    """Read everything; raise DamagedStoreError at the first damage."""
    with (
        file.guarded(path),
        contextlib.closing(file.connect(path, read_only=True)) as connection,
        file.view(connection),
    ):
        for (message,) in connection.execute("PRAGMA integrity_check"):
            if message == "out of memory":
                raise MemoryError(message)
            if message != "ok":
                raise damaged(path, str(message))
        about.read(connection, path)
        return _decide_again(connection, path, running, keep=keep)


def _decide_again(
    connection: sqlite3.Connection, path: Path, running: dict[str, Any], *, keep: bool
) -> Verified:
    made = snapshots.every(connection, path)
    if not made:
        raise damaged(path, "no snapshot")
    models = [
        Model.at(
            connection,
            path,
            each,
            snapshots.read(connection, path, each),
            keep=keep,
            running=running,
        )
        for each in made
    ]
    model, *others = models
    expected = {other.number: other.links.state_hash() for other in others}
    base = model.number
    for operation in model.journal.operations(0, base):
        model.journal.payloads(operation)
        if keep:
            model.journal.vectors(operation)
    for operation in model.journal.operations(base):
        model.journal.payloads(operation)
        model.again(operation)
        if expected.get(model.number, "") not in ("", model.links.state_hash()):
            raise damaged(path, f"the snapshot after operation {model.number} holds another state")
    check_end(model, keep=keep)
    links = model.links
    return Verified(model.number, model.number - base, links.n_vectors, model.n_events, len(made))
