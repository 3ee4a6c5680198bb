"""The vectors of a migration in the file of a store, one row each, with checksums.

The description of the store says that a migration is under way, with its number; rows of an
earlier one, which a repair may find, have another number. A row also names the operation that
brought the vector of the item, so that it does not count for another vector that got its number
after an undo. A lost row does no harm: its item is missing again.

Where a store does not keep its vectors, an item may come with its vector of the present encoder:
in a row of its own, under the number −1 − item, with the epoch of that encoder in place of the
operation. Where vectors are not tracked, pairs of vectors are numbered as they come.
"""

from __future__ import annotations

import itertools
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer.migration_checks import target_of
from linkstream.clusterer.migration_items import Target
from linkstream.clusterer.verb_values import plain
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space
from linkstream.store import about
from linkstream.store.file import damaged, distrusted, intact, sealed
from linkstream.store.index import Index
from linkstream.store.schema import REENCODED, REENCODED_TABLE

Integers = npt.NDArray[np.int64]
Rows = npt.NDArray[np.float32]

_INSERT = f"INSERT OR REPLACE INTO {REENCODED_TABLE} VALUES (?, ?, ?, ?, ?)"
_revisions = itertools.count()


@dataclass(slots=True)
class Reencoding:
    """A migration that is under way.

    Attributes:
        number: its number in this store.
        target: what it leads to.
        operations: of each item, by number, the operation that brought the vector that was
            re-embedded; 0: none was.
        dimension: dimension of the other encoder; None: nothing came yet.
        first: the lowest number of an item that a vector came for; None: nothing came yet.
        epochs: of each item, by number, the epoch of its vector of the present encoder, as `mark`
            gives it; 0: none came.
        revision: a number that no other state has.
    """

    number: int
    target: Target
    operations: Integers
    dimension: int | None
    first: int | None = None
    epochs: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    revision: int = field(default_factory=lambda: next(_revisions))

    def numbers(self, index: Index | None, n_vectors: int) -> Integers:
        """Return the items that were re-embedded, in order; without an index, all pairs."""
        if index is None:
            return np.flatnonzero(self.operations)
        found = np.flatnonzero(self.operations[:n_vectors])
        there: Integers = found[self.operations[found] == index.operations_of(found)]
        return there

    def with_old(self, epoch: int) -> Integers:
        """Return the items that came with their vector of the encoder of an epoch."""
        return np.flatnonzero(self.epochs == mark(epoch))

    def has_any(self, index: Index | None, n_vectors: int) -> bool:
        """Return whether any item was re-embedded.

        An undo takes the last vectors, so that the first item of all mostly decides.
        """
        first = self.first
        if first is None or (index is not None and first >= n_vectors):
            return False
        is_there = index is None or index.holding(first)[0] == self.operations[first]
        return bool(is_there) or len(self.numbers(index, n_vectors)) > 0

    def note(self, numbers: Integers, operations: Integers, dimension: int) -> None:
        """Record vectors that were written."""
        self.operations = _with(self.operations, numbers, operations)
        first = int(numbers.min())
        self.first = first if self.first is None else min(first, self.first)
        self.dimension, self.revision = dimension, next(_revisions)

    def note_old(self, numbers: Integers, epochs: Integers) -> None:
        """Record vectors of the present encoder that were written."""
        self.epochs = _with(self.epochs, numbers, epochs)


def _with(column: Integers, numbers: Integers, values: Integers) -> Integers:
    """Return a column with values at some numbers, longer if need be."""
    size = int(numbers.max(initial=-1)) + 1
    if size > len(column):
        grown = np.zeros(max(size, 2 * len(column)), dtype=np.int64)
        grown[: len(column)] = column
        column = grown
    column[numbers] = values
    return column


def mark(epoch: int) -> int:
    """Return a number above 0 for the event of an epoch."""
    return epoch + 2


def load(connection: sqlite3.Connection, path: Path) -> Reencoding | None:
    """Return the migration that is under way; None if there is none."""
    described = about.migration(connection, path)
    if described is None:
        return None
    with distrusted(path, "the description of a migration"):
        number, target = int(described["number"]), _target(described)
    columns = f"SELECT number, operation FROM {REENCODED_TABLE} ORDER BY number"
    found = np.array(connection.execute(columns).fetchall(), dtype=np.int64).reshape(-1, 2)
    made = Reencoding(number, target, np.zeros(0, dtype=np.int64), None)
    old, found = found[found[:, 0] < 0], found[found[:, 0] >= 0]
    made.note_old(-1 - old[:, 0], old[:, 1])
    if len(found):
        with distrusted(path, "a vector of a migration"):
            dimension = rows(connection, path, number, found[:1, 0]).shape[1]
            made.note(found[:, 0], found[:, 1], dimension)
    return made


def _target(described: dict[str, Any]) -> Target:
    thresholds, space = described["thresholds"], described["space"]
    mean = None if space["mean"] is None else np.array(space["mean"], dtype=np.float64)
    return target_of(
        Space(mean, space["model"], space["dimension"]),
        Thresholds(**thresholds) if isinstance(thresholds, dict) else thresholds,
    )


# Writing; the caller commits


def begin(connection: sqlite3.Connection, path: Path, target: Target) -> None:
    """Begin a migration in a store that has none."""
    given = {"space": plain(target.space), "thresholds": plain(target.thresholds)}
    about.begin_migration(connection, path, given)
    connection.execute(REENCODED)


def end(connection: sqlite3.Connection, path: Path) -> None:
    """End the migration that is under way, and drop its vectors."""
    about.end_migration(connection, path)
    connection.execute(f"DROP TABLE {REENCODED_TABLE}")


def write(
    connection: sqlite3.Connection,
    migration: int,
    numbers: Integers,
    operations: Integers,
    vectors: Rows,
) -> int:
    """Write vectors of items; return the approximate number of bytes."""
    bodies = np.ascontiguousarray(vectors, dtype="<f4")
    columns = zip(numbers.tolist(), operations.tolist(), bodies, strict=True)
    connection.executemany(
        _INSERT,
        (
            sealed(REENCODED_TABLE, number, migration, operation, body.tobytes())
            for number, operation, body in columns
        ),
    )
    return bodies.nbytes + 64 * len(numbers)


def clear(connection: sqlite3.Connection, found: Reencoding) -> None:
    """Drop the vectors of a migration that goes on: undone calls brought all of their items."""
    connection.execute(f"DELETE FROM {REENCODED_TABLE}")
    found.operations, found.dimension = np.zeros(0, dtype=np.int64), None
    found.first, found.epochs = None, np.zeros(0, dtype=np.int64)


def keep(connection: sqlite3.Connection, items: Integers) -> None:
    """Delete the vectors of all other items, if there is a migration."""
    if not exists(connection):
        return
    query = f"SELECT number FROM {REENCODED_TABLE}"
    found = np.array([number for (number,) in connection.execute(query)], dtype=np.int64)
    gone = found[~np.isin(np.where(found < 0, -1 - found, found), items)]
    delete = f"DELETE FROM {REENCODED_TABLE} WHERE number = ?"
    connection.executemany(delete, ((number,) for number in gone.tolist()))


# Reading


def exists(connection: sqlite3.Connection) -> bool:
    """Return whether a store has the table."""
    query = "SELECT 1 FROM sqlite_master WHERE name = ?"
    return connection.execute(query, (REENCODED_TABLE,)).fetchone() is not None


def rows(connection: sqlite3.Connection, path: Path, migration: int, numbers: Integers) -> Rows:
    """Return the vectors of items, which are in order; raise DamagedStoreError."""
    span = int(numbers[0]), int(numbers[-1])
    query = f"SELECT * FROM {REENCODED_TABLE} WHERE number BETWEEN ? AND ? ORDER BY number"
    wanted, found = set(numbers.tolist()), []
    for row in connection.execute(query, span):
        if row[0] in wanted:
            _check(path, row, migration)
            found.append(np.frombuffer(row[3], dtype="<f4"))
    if len(found) != len(numbers):
        raise damaged(path, "vectors of a migration are missing")
    return np.stack(found).astype(np.float32)


def old_rows(connection: sqlite3.Connection, path: Path, migration: int, numbers: Integers) -> Rows:
    """Return the vectors of the present encoder that items, in order, came with."""
    return rows(connection, path, migration, -1 - numbers[::-1])[::-1]


def _check(path: Path, row: tuple[Any, ...], migration: int) -> None:
    if not intact(REENCODED_TABLE, row) or row[1] != migration:
        raise damaged(path, f"the vector of a migration for item {row[0]}")


def check(connection: sqlite3.Connection, path: Path) -> None:
    """Read all vectors of a migration; raise DamagedStoreError at the first damage."""
    found = load(connection, path)
    if found is None:
        return
    for row in connection.execute(f"SELECT * FROM {REENCODED_TABLE}"):
        _check(path, row, found.number)
        if row[0] >= 0 and len(row[3]) != 4 * (found.dimension or 0):
            raise damaged(path, f"the vector of a migration for item {row[0]}")


# For a repair, which copies all rows that it finds into a table that it makes first


def salvage(connection: sqlite3.Connection, path: Path, last: int, described: bool) -> None:
    """Keep the rows of the migration that is under way, of operations up to the last one."""
    found = about.migration(connection, path) if described else None
    if found is None:
        connection.execute(f"DROP TABLE {REENCODED_TABLE}")
        return
    delete = f"DELETE FROM {REENCODED_TABLE} WHERE migration != ? OR number >= 0 AND operation > ?"
    connection.execute(delete, (found["number"], last))
