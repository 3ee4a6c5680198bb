"""The journal: each acknowledged call, the vectors it brought, and the events it led to."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Links
from linkstream.engine.events import WIDTH
from linkstream.errors import DamagedStoreError, LinkstreamError
from linkstream.store.file import crc

_COLUMNS = (
    "number, verb, arguments, vectors, dimension, first_vector, first_event, events, result, "
    "key, crc"
)


@dataclass(frozen=True, slots=True)
class Operation:
    """One call of a method of `Links` that was acknowledged."""

    number: int
    verb: str
    arguments: dict[str, Any]
    vectors: npt.NDArray[np.float32] | None
    first_vector: int
    first_event: int
    events: npt.NDArray[np.int64] = field(repr=False)
    result: bytes = b""  # what was answered: IDs as int64, or JSON
    key: str | None = None


def write(connection: sqlite3.Connection, operation: Operation) -> None:
    """Add an operation; the caller commits."""
    rows = operation.vectors
    values = (
        operation.number,
        operation.verb,
        json.dumps(operation.arguments, sort_keys=True),
        None if rows is None else rows.astype("<f4", copy=False).tobytes(),
        0 if rows is None else rows.shape[1],
        operation.first_vector,
        operation.first_event,
        operation.events.astype("<i8").tobytes(),
        operation.result,
        operation.key,
    )
    marks = ", ".join("?" * 11)
    connection.execute(
        f"INSERT INTO operations ({_COLUMNS}) VALUES ({marks})", (*values, crc(*values))
    )


def after(connection: sqlite3.Connection, path: Path, number: int) -> Iterator[Operation]:
    """Operations after one, in order and none missing, each checked (DamagedStoreError)."""
    query = f"SELECT {_COLUMNS} FROM operations WHERE number > ? ORDER BY number"
    for row in connection.execute(query, (number,)):
        number += 1
        yield read(row, path, number)


def read(row: tuple[Any, ...], path: Path, number: int) -> Operation:
    """An operation from its row."""
    *values, checksum = row
    if values[0] != number or crc(*values) != checksum:
        raise damaged(path, f"operation {number} is missing or does not match its checksum")
    _, verb, arguments, vectors, dimension, first_vector, first_event, events, result, key = values
    rows = None if vectors is None else np.frombuffer(vectors, dtype="<f4").reshape(-1, dimension)
    decided = np.frombuffer(events, dtype="<i8").reshape(-1, WIDTH)
    return Operation(
        number,
        verb,
        json.loads(arguments),
        rows,
        first_vector,
        first_event,
        decided,
        bytes(result),
        key,
    )


def by_key(connection: sqlite3.Connection, path: Path, key: str) -> Operation | None:
    """The operation that was done under an idempotency key."""
    query = f"SELECT {_COLUMNS} FROM operations WHERE key = ?"
    row = connection.execute(query, (key,)).fetchone()
    return None if row is None else read(row, path, row[0])


def events_until(connection: sqlite3.Connection, path: Path, number: int) -> npt.NDArray[np.int64]:
    """All events up to an operation."""
    query = f"SELECT {_COLUMNS} FROM operations WHERE number <= ? ORDER BY number"
    rows = [
        read(row, path, i).events for i, row in enumerate(connection.execute(query, (number,)), 1)
    ]
    return np.concatenate([np.empty((0, WIDTH), dtype=np.int64), *rows]).astype(np.int64)


def call(
    links: Links, verb: str, arguments: dict[str, Any], rows: npt.NDArray[np.float32] | None
) -> Any:
    """Do what an operation says."""
    if rows is None:
        getattr(links, verb)(**arguments)
        return None
    if verb == "enrol":
        return links.enrol(X=rows, **arguments)
    return getattr(links, verb)(rows, **arguments)


def encoded(answer: Any) -> bytes:
    """An answer as bytes."""
    if isinstance(answer, np.ndarray):
        return answer.astype("<i8").tobytes()
    return json.dumps(answer).encode()


def decoded(result: bytes, verb: str) -> Any:
    """The answer that `encoded` made bytes of."""
    if verb in ("add_many", "add_group"):
        return np.frombuffer(result, dtype="<i8").astype(np.int64)
    return json.loads(result)


def events_since(links: Links, sequence: int) -> npt.NDArray[np.int64]:
    """Rows of the events of a clusterer from a sequence number on."""
    engine = links._engine
    if engine is None:
        return np.empty((0, WIDTH), dtype=np.int64)
    return engine.event_rows(sequence)[1]


def again(links: Links, operation: Operation, path: Path) -> None:
    """Decide an operation again; DamagedStoreError where that differs from what was decided."""
    before = links.n_vectors, links._synced().n_events
    try:
        answer = call(links, operation.verb, operation.arguments, operation.vectors)
    except LinkstreamError as error:
        raise damaged(path, f"operation {operation.number} cannot be done again: {error}") from None
    if (
        before != (operation.first_vector, operation.first_event)
        or not np.array_equal(events_since(links, before[1]), operation.events)
        or encoded(answer) != operation.result
    ):
        what = f"operation {operation.number} ({operation.verb}), decided again, differs"
        raise damaged(path, what)


class StoredVectors:
    """Vectors of a journal, by number, as fixed-point rows: a `Keep` that takes no memory."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        fixed: Callable[[npt.NDArray[np.float32]], npt.NDArray[np.int32]],
    ) -> None:
        self._connection, self._path, self._fixed = connection, path, fixed
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def append(self, rows: npt.NDArray[np.int32]) -> None:
        """Nothing: the journal has them."""
        self._size += len(rows)

    def cut(self, size: int) -> None:
        """Nothing: what was undone stays in the journal, and later vectors take its place."""
        self._size = size

    def rows(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """The vectors of these numbers."""
        found: list[npt.NDArray[np.float32]] = [np.empty(0, dtype=np.float32)] * len(numbers)
        held: Operation | None = None
        for place in np.argsort(numbers, kind="stable").tolist():
            number = int(numbers[place])
            held = self._holding(number, held)
            assert held.vectors is not None
            found[place] = held.vectors[number - held.first_vector]
        return self._fixed(np.stack(found))

    def _holding(self, number: int, last: Operation | None) -> Operation:
        """The newest operation that brought a vector of this number."""
        found = self._connection.execute(
            "SELECT number FROM operations WHERE first_vector <= ? AND vectors IS NOT NULL "
            "ORDER BY first_vector DESC, number DESC LIMIT 1",
            (number,),
        ).fetchone()
        if found is None:
            raise damaged(self._path, f"vector {number} is missing")
        if last is not None and last.number == found[0]:
            return last
        query = f"SELECT {_COLUMNS} FROM operations WHERE number = ?"
        return read(self._connection.execute(query, found).fetchone(), self._path, found[0])


def damaged(path: Path, what: str) -> DamagedStoreError:
    """The error for bytes that are not what was written."""
    return DamagedStoreError(
        f"{path}: {what}",
        expected="what linkstream wrote",
        remedy="Use a backup; `linkstream repair` saves what can be read.",
    )
