"""An index of a namespace beside its store: what changed, found in pages, and when it happened.

`NAME.links.times` is a SQLite file with the notable changes (`clusterer.notable`) by number of
event, and samples of the counts with their times. It has no names, payloads or vectors. The changes
follow from the journal, and are indexed a block at a time; the times are lost with the file.
"""

from __future__ import annotations

import contextlib
import heapq
import logging
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from linkstream.clusterer import notable
from linkstream.errors import StoreError
from linkstream.service.samples import MOST, Moment, Sample, Samples
from linkstream.store import Store
from linkstream.store.journal import Operation

SUFFIX = ".times"
VERSION = 1
OPERATIONS = 5_000  # of the journal that are indexed at a time, at most
EVENTS = 20_000  # of these operations, about
_SCHEMA = f"""
CREATE TABLE samples (
    time INTEGER NOT NULL, events INTEGER NOT NULL, vectors INTEGER NOT NULL,
    clusters INTEGER NOT NULL, corrected INTEGER NOT NULL
);
CREATE TABLE changes (
    event INTEGER NOT NULL, operation INTEGER NOT NULL, kind TEXT NOT NULL,
    automatic INTEGER NOT NULL, count INTEGER NOT NULL, undone_by INTEGER
);
CREATE INDEX changes_by_kind ON changes (kind, automatic, event);
CREATE INDEX changes_by_event ON changes (event);
CREATE TABLE position (operation INTEGER NOT NULL, events INTEGER NOT NULL);
INSERT INTO position VALUES (0, 0);
PRAGMA user_version={VERSION};
"""

_COUNTS = ("events", "vectors", "clusters")

_log = logging.getLogger("linkstream.service")


@dataclass(frozen=True, slots=True)
class Change:
    """A notable change, as the index knows it.

    Attributes:
        event: the number of its first event.
        operation: the number of its call in the journal.
        kind: one of `notable.KINDS`.
        automatic: whether no person made it.
        count: how many events of its kind the call has.
        undone_by: the event of the undo that took it back; None while it stands.
    """

    event: int
    operation: int
    kind: str
    automatic: bool
    count: int
    undone_by: int | None


class ActivityIndex:
    """The index of one namespace. All methods may be called from any thread.

    Args:
        path: the path of the store; the index is beside it. If it cannot be written, it is kept in
            memory until the service ends.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._failing = False
        self._connection = _opened(path.with_name(path.name + SUFFIX))
        self._samples = Samples(_rows(self._connection, "SELECT * FROM samples ORDER BY rowid"))

    def close(self) -> None:
        """Close the file."""
        with self._lock, contextlib.suppress(sqlite3.Error):
            self._connection.close()

    # Follow the store

    def begin(self, store: Store) -> None:
        """Check that the index fits the store, and keep the counts of this moment."""
        with self._lock:
            self._check(store)
        self.record(store.handle.counts(), corrected=False)

    def record(self, counts: dict[str, Any], *, corrected: bool, now: float | None = None) -> None:
        """Keep the counts of this moment, if they differ from the last.

        Args:
            counts: `events`, `vectors` and `clusters`.
            corrected: whether a correction came since the last time.
            now: the time, in seconds since 1970; None for the clock.
        """
        events, vectors, clusters = (counts[name] or 0 for name in _COUNTS)
        at = int(1000 * (time.time() if now is None else now))
        sample = Sample(at, events, vectors, clusters, int(corrected))
        with self._lock:
            last = self._samples.last
            if last is not None and last[1:4] == sample[1:4]:
                return
            sample = self._samples.add(sample)
            with self._writing() as write:
                write.execute("INSERT INTO samples VALUES (?, ?, ?, ?, ?)", sample)
                if len(self._samples) > MOST:
                    self._thin(write)

    def _thin(self, write: sqlite3.Connection) -> None:
        self._samples = self._samples.thinned()
        write.execute("DELETE FROM samples")
        rows = self._samples.rows().tolist()
        write.executemany("INSERT INTO samples VALUES (?, ?, ?, ?, ?)", rows)

    def follow(self, store: Store, *, seconds: float = 0.0) -> bool:
        """Index what is new in the journal; return whether all of it is indexed.

        Args:
            store: the store.
            seconds: go on for about this long, one block at least.
        """
        end = time.monotonic() + seconds
        while not self._follow(store):
            if time.monotonic() >= end:
                return False
        return True

    def _follow(self, store: Store) -> bool:
        with self._lock:
            operation, _ = self._position()
            last = store.journal.n_operations
            if operation < last:
                some = store.journal.operations(operation)
                operation = self._index(_block(some)) or operation
            return operation >= last

    def _check(self, store: Store) -> None:
        """Begin again if the index does not fit the store: a backup was restored, for instance."""
        operation, events = self._position()
        found = _last(store, operation)
        end = 0 if found is None else found.first_event + len(found.events)
        last = self._samples.last
        beyond = last is not None and last.events > store.n_events
        fits = (0 if found is None else found.number, end) == (operation, events)
        if fits and not beyond:
            return
        _log.info("%s: the index of changes is made again", store.path)
        with self._writing() as write:
            for table in ("samples", "changes"):
                write.execute(f"DELETE FROM {table}")
            write.execute("UPDATE position SET operation = 0, events = 0")
        self._samples = Samples()

    def _index(self, block: Sequence[Operation]) -> int:
        """Index some operations; return the number of the last one, 0 if there is none."""
        if not block:
            return 0
        last = block[-1]
        with self._writing() as write:
            for operation in block:
                if not notable.is_plain(operation.verb, operation.events):
                    _index_one(write, operation)
            end = last.first_event + len(last.events)
            write.execute("UPDATE position SET operation = ?, events = ?", (last.number, end))
        return last.number

    def _position(self) -> tuple[int, int]:
        (found,) = _rows(self._connection, "SELECT operation, events FROM position")
        return found[0], found[1]

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Write in one transaction; a full disk costs the index, not the service."""
        try:
            with self._connection:
                yield self._connection
            self._failing = False
        except sqlite3.Error as error:
            if not self._failing:
                _log.warning("the index of changes could not be written: %s", error)
            self._failing = True

    # Questions

    def moments(
        self, events: Sequence[int] = (), vectors: Sequence[int] = ()
    ) -> tuple[list[Moment], list[Moment]]:
        """Return when events happened and when vectors came, by their numbers."""
        with self._lock:
            return self._samples.of_events(events), self._samples.of_vectors(vectors)

    def timeline(self, seconds: float | None, bins: int) -> dict[str, Any]:
        """Return counts over time up to now; see `Samples.timeline`."""
        with self._lock:
            return self._samples.timeline(time.time(), seconds, bins)

    def page(
        self, before: int | None, limit: int, kinds: Sequence[str], automatic: bool | None
    ) -> list[Change]:
        """Return changes, the newest first.

        Args:
            before: only changes with a lower number of their first event; None for all.
            limit: how many.
            kinds: only these kinds; all if there are none.
            automatic: only those of the stream and healing, or only those of people; None for both.
        """
        both = (0, 1) if automatic is None else (int(automatic),)
        query = (
            "SELECT event, operation, kind, automatic, count, undone_by FROM changes "
            "WHERE kind = ? AND automatic = ? AND event < ? ORDER BY event DESC LIMIT ?"
        )
        end = 2**62 if before is None else before
        with self._lock:
            runs = [
                _rows(self._connection, query, (kind, each, end, limit))
                for kind in kinds or notable.KINDS
                for each in both
            ]
        found = heapq.merge(*runs, key=lambda row: -int(row[0]))
        return [_change(row) for row in islice(found, limit)]


def _change(row: Sequence[Any]) -> Change:
    return Change(row[0], row[1], row[2], bool(row[3]), row[4], row[5])


def _last(store: Store, number: int) -> Operation | None:
    """Return an operation; None if the journal does not go so far."""
    if not 0 < number <= store.journal.n_operations:
        return None
    return store.handle.read(lambda model: model.journal.operation(number))


def _index_one(write: sqlite3.Connection, operation: Operation) -> None:
    for turn in notable.turns(operation.first_event, operation.events):
        if turn.to is not None:
            marked = "UPDATE changes SET undone_by = ? WHERE event >= ? AND undone_by IS NULL"
            write.execute(marked, (turn.event, turn.to))
        else:
            query = "UPDATE changes SET undone_by = NULL WHERE undone_by = ?"
            write.execute(query, (turn.undone,))
    found = notable.notable(operation.verb, operation.first_event, operation.events)
    values = [(c.event, operation.number, c.kind, c.automatic, c.count) for c in found]
    write.executemany("INSERT INTO changes VALUES (?, ?, ?, ?, ?, NULL)", values)


def _block(operations: Iterable[Operation]) -> list[Operation]:
    """Return the next operations: OPERATIONS of them, or about EVENTS of their events."""
    block: list[Operation] = []
    size = 0
    for operation in islice(operations, OPERATIONS):
        block.append(operation)
        size += len(operation.events)
        if size >= EVENTS:
            break
    return block


def _opened(path: Path) -> sqlite3.Connection:
    """Return the file of an index; made again if it cannot be read, in memory as a last resort."""
    for attempt in (path, path, None):
        try:
            return _connected(attempt)
        except (sqlite3.Error, OSError) as error:  # noqa: PERF203
            _log.warning("the index of changes %s is made again: %s", path, error)
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
    raise AssertionError("a database in memory can be made")


def _connected(path: Path | None) -> sqlite3.Connection:
    where = ":memory:" if path is None else str(path)
    connection = sqlite3.connect(where, check_same_thread=False, timeout=1.0)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")  # a power cut may cost the last seconds
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            connection.executescript(_SCHEMA)
        elif version != VERSION:
            raise sqlite3.DatabaseError(f"version {version}, not {VERSION}")
        (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if state != "ok":
            raise sqlite3.DatabaseError(str(state))
        for table in ("samples", "changes", "position"):
            found = connection.execute(f"SELECT * FROM {table} LIMIT 1").fetchone()
            if table == "position" and found is None:
                raise sqlite3.DatabaseError("no position")
    except BaseException:
        connection.close()
        raise
    return connection


def _rows(
    connection: sqlite3.Connection, query: str, values: Sequence[Any] = ()
) -> list[tuple[Any, ...]]:
    try:
        return connection.execute(query, values).fetchall()
    except sqlite3.Error as error:
        raise StoreError(
            f"the index of changes ({error})",
            expected="an index that can be read",
            remedy="Send the request again; the index is made again with the next start.",
        ) from error
