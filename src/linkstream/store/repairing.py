"""Verify a store, or repair a damaged one.

A verification reads every row and replays the journal. A repair copies all rows that match their
checksums, from the file and its log, into a new file. The newest intact snapshot is the start; the
operations after it are replayed as long as they are there and give the same results. Older
operations are kept if they can be read. The new file is verified before it replaces the store;
until then nothing is changed. A copy of the old files is kept.
"""

from __future__ import annotations

import contextlib
import functools
import re
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linkstream import saving
from linkstream.clusterer.snapshots import saved_without_history
from linkstream.engine.events import WIDTH
from linkstream.errors import DamagedStoreError, StoreError
from linkstream.store import (
    about,
    blocks,
    carving,
    copies,
    file,
    journal,
    reencoded,
    search_index,
    snapshots,
    wal,
)
from linkstream.store.file import damaged
from linkstream.store.index import Index
from linkstream.store.journal import LOST, Operation
from linkstream.store.locks import WriterLock, resolved
from linkstream.store.model import Model, check_end, load
from linkstream.store.schema import REENCODED

# Columns of a table; 3 of all others.
_COLUMNS = {"operations": 14, "snapshots": 7, "reencoded": 5}
_ATTACHED = tuple(blocks.FLAGS)
# What SQLite says of pages that it could not read for lack of memory; 7 and 3082 are its codes.
_UNREAD = re.compile(r"out of memory|failed to get page|error code=(7|3082)\b")


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
            if _UNREAD.search(message):
                raise MemoryError(message)
            if message != "ok":
                raise damaged(path, str(message))
        described = about.read(connection, path)
        about.check_search(connection, path, described)
        found = _decide_again(connection, path, running, keep=keep)
        reencoded.check(connection, path)
        if described["search"]:
            search_index.check_available()
            search_index.check(connection, path, found.operations)
        return found


def _decide_again(
    connection: sqlite3.Connection, path: Path, running: dict[str, Any], *, keep: bool
) -> Verified:
    made = snapshots.every(connection, path)
    if not made:
        raise damaged(path, "no snapshot")
    models = [
        Model.at(connection, path, each, saved, keep=keep, running=running)
        for each, saved in ((each, snapshots.read(connection, path, each)) for each in made)
    ]
    model, *others = models
    expected = {other.number: (other.links.state_hash(), other.index) for other in others}
    if not model.index.covers(model.index.own_in(model.journal, model.links.n_vectors)):
        raise damaged(path, f"the index after operation {model.number} lacks keys or times")
    base = model.number
    for operation in model.journal.operations(0, base):
        model.journal.check_attached(operation)
        if keep:
            model.journal.vectors(operation)
    for operation in model.journal.operations(base):
        model.journal.check_attached(operation)
        model.again(operation)
        if model.number in expected:
            _check_snapshot(model, *expected[model.number])
    check_end(model, keep=keep)
    links = model.links
    return Verified(model.number, model.number - base, links.n_vectors, model.n_events, len(made))


def _check_snapshot(model: Model, state_hash: str, index: Index) -> None:
    """Raise DamagedStoreError unless a snapshot holds what the journal leads to."""
    same = model.index.covers(index) and index.covers(model.index)
    if state_hash != model.links.state_hash() or not same:
        what = f"the snapshot after operation {model.number} holds another state"
        raise damaged(model.path, what)


@dataclass(frozen=True, slots=True)
class Repaired:
    """The result of a repair.

    Attributes:
        copy: the path of the copy of the old file.
        kept: the number of the last operation of the repaired store.
        lost_after: operations after that one, which only the copy has.
        lost_before: operations before it that could not be read; the model includes their vectors,
            but they cannot be undone.
        vectors: the number of vectors in the store.
        reason: why later operations were lost; None if none were.
    """

    copy: str
    kept: int
    lost_after: int
    lost_before: int
    vectors: int
    reason: str | None

    @property
    def lost(self) -> int:
        """The number of operations that only the copy has."""
        return self.lost_before + self.lost_after

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "lost": self.lost}

    def __str__(self) -> str:
        lost = f"{self.lost_after} after them and {self.lost_before} before could not be saved"
        why = f": {self.reason}" if self.reason else ""
        return f"{self.kept} operations, {self.vectors} vectors; {lost}{why}"


def repair(path: str | Path, *, copy: str | Path | None = None) -> Repaired:
    """Repair a damaged store after copying its files; afterwards it opens and verifies.

    Args:
        path: the store.
        copy: the path for the copy; None (default) uses the next free name beside the store.

    Raises:
        StoreError: the file is no store, or the disk fails or is full; nothing was changed.
        StoreMemoryError: memory ran out; nothing was changed.
        DamagedStoreError: nothing can be saved; nothing was changed.
    """
    path = resolved(path)
    if not path.exists():
        file.check_file(path)
    carving.check_kind(path)
    aside = _free_name(path, None if copy is None else Path(copy))
    lock = WriterLock(path)
    try:
        copies.finish_install(path)
        return file.prepare(path, lambda made: _replaced(path, made, aside))
    finally:
        lock.release()


def _replaced(path: Path, made: Path, aside: Path) -> Repaired:
    """Write what can be read into a new file, verify it, and replace the store by it."""
    with _named(made, path), file.guarded(path):
        found = _Salvage(path, made)
        _verify(path, made, found.keep)
        _exchange(path, made, aside)
        return found.report(aside)


@contextlib.contextmanager
def _named(made: Path, path: Path) -> Iterator[None]:
    """Replace the hidden name of the new file by that of the store in errors."""
    try:
        yield
    except DamagedStoreError as error:
        raise DamagedStoreError(
            f"{error.seen.replace(str(made), str(path))}: nothing can be saved",
            expected="a store of which at least the first call can be read",
            remedy="Use a backup. No file was changed.",
        ) from error
    except StoreError as error:
        seen = error.seen.replace(str(made), str(path))
        raise type(error)(seen, expected=error.expected, remedy=error.remedy) from error


def _free_name(path: Path, target: Path | None) -> Path:
    if target is None:
        numbers = (path.with_name(f"{path.name}.damaged-{n}") for n in range(1, 10_000))
        return next(each for each in numbers if not each.exists())
    copies.check_free(target)
    return target


def _exchange(path: Path, made: Path, aside: Path) -> None:
    """Copy the old files and install the new one; after an error all files are as before."""
    targets = [aside.with_name(aside.name + suffix) for suffix in ("", "-wal")]
    try:
        for copied, suffix in zip(targets, ("", "-wal"), strict=True):
            source = path.with_name(path.name + suffix)
            if source.exists():
                file.appear(copied, functools.partial(shutil.copy2, source))
        copies.install(made, path)
    except BaseException:
        for copied in targets:
            copied.unlink(missing_ok=True)
        raise


def _verify(path: Path, made: Path, keep: bool) -> None:
    """Raise DamagedStoreError unless the new file opens and verifies.

    If replaying from the oldest snapshot fails, only the newest snapshot is kept.
    """
    try:
        _check(made, keep)
    except DamagedStoreError:
        with contextlib.closing(file.connect(made)) as connection:
            with file.transaction(connection):
                snapshots.drop(connection, made, snapshots.every(connection, made)[:-1])
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        try:
            _check(made, keep)
        except DamagedStoreError as error:
            what = error.seen.removeprefix(f"{made}: ")
            raise damaged(path, f"the remaining rows make no intact store ({what})") from error


def _check(made: Path, keep: bool) -> None:
    verify(made, {}, keep=keep)
    with contextlib.closing(file.connect(made, read_only=True)) as connection:
        model = load(connection, made, keep=keep, running={})
        about.check_same(made, about.read(connection, made), model.links, keep=keep)


def _nothing(number: int, before: Operation | None) -> Operation:
    """Return a substitute for an operation that could not be read."""
    after = (0, 0, 1)
    if before is not None:
        events, pieces = len(before.events), before.n_pieces
        after = (before.first_vector, before.first_event + events, before.first_piece + pieces)
    none = np.empty((0, WIDTH), dtype=np.int64)
    return Operation(number, LOST, {}, *after, 0, 0, 0, none, b"null")


class _Salvage:
    """A new store made of the readable rows of another."""

    model: Model
    keep: bool
    last: int  # number of the newest operation that was found

    def __init__(self, path: Path, made: Path) -> None:
        self.path = path
        self.reason = wal.fault(path)
        self.lost_before = 0
        file.fill_new(made, self._fill)

    def _fill(self, new: sqlite3.Connection) -> None:
        self._new = new
        self._carve()
        described = self._described()
        self.keep = self._keeps(described)
        self.model = self._newest(described)
        self.last = max(self.model.journal.last(), self.model.number)
        self._follow()
        self._check_kept()
        self._tidy()
        self._finish(described)
        if described is not None and described["search"]:
            self._index()

    def _carve(self) -> None:
        """Copy all rows that match their checksums; of two with one number, the one in use."""
        self._new.execute(REENCODED)
        with file.usable(self.path):
            for table, row in carving.rows(self.path):
                marks = ", ".join("?" * _COLUMNS.get(table, 3))
                self._new.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", row)

    def _described(self) -> about.About | None:
        with contextlib.suppress(DamagedStoreError):
            return about.read(self._new, self.path)
        return None

    def _keeps(self, described: about.About | None) -> bool:
        """Return whether the store keeps vectors: then the first piece is there."""
        if described is not None:
            return bool(described["keep_vectors"])
        (first,) = self._new.execute("SELECT coalesce(min(piece), 1) FROM vectors").fetchone()
        return bool(first == 1)

    # The model

    def _newest(self, described: about.About | None) -> Model:
        """Return the model of the newest readable snapshot, or else of an empty clusterer."""
        for snapshot in reversed(snapshots.every(self._new, self.path)):
            with contextlib.suppress(DamagedStoreError):
                return self._at(snapshot)
        links = None if described is None else about.empty(self._new, self.path)
        if links is None:
            raise damaged(self.path, "no snapshot and no description is left to begin with")
        parts = saving.pack(saved_without_history(links.core)), Index.empty().packed(next_piece=1)
        return self._at(snapshots.insert_whole(self._new, 0, parts))

    def _at(self, snapshot: snapshots.Snapshot) -> Model:
        parts = snapshots.read(self._new, self.path, snapshot)
        model = Model.at(self._new, self.path, snapshot, parts, keep=self.keep, running={})
        if self.keep and not model.links.track_vectors:
            self.keep = False
            model.links.core.use_external_vectors(None)
        return model

    def _follow(self) -> None:
        """Replay operations as long as they are readable and give the same results."""
        start = self.model.snapshot
        try:
            self.model.catch_up()
        except DamagedStoreError as error:
            self.reason = error.seen
            good = self.model.number
            self.model = self._at(start)  # a replay with another result has changed the model
            self.model.catch_up(good)

    def _check_kept(self) -> None:
        """Raise DamagedStoreError if calls were acknowledged and none of them can be kept."""
        if self.model.number:
            return
        tables = ("vectors", "payloads", *_ATTACHED)
        counts = " + ".join(f"(SELECT count(*) FROM {table})" for table in tables)
        (traces,) = self._new.execute(f"SELECT {counts}").fetchone()
        if self.last or traces or self.reason or wal.is_cut(self.path):
            reason = self.reason or "pages of the file are missing"
            raise damaged(self.path, reason.removeprefix(f"{self.path}: "))

    # The rows

    def _tidy(self) -> None:
        """Keep the rows of operations up to the last one; substitute those that are lost."""
        pieces: set[int] = set()
        before: Operation | None = None
        for number in range(1, self.model.number + 1):
            found = self._readable(number)
            if found is None:
                self.lost_before += 1
                found = _nothing(number, before)
                self._new.execute("DELETE FROM operations WHERE number = ?", (number,))
                self._drop_attached(number, number)
                journal.write(self._new, found)
            pieces.update(range(found.first_piece, found.first_piece + found.n_pieces))
            before = found
        self._new.execute("DELETE FROM operations WHERE number > ?", (self.model.number,))
        self._drop_attached(self.model.number + 1, 2**40)
        for (piece,) in self._new.execute("SELECT piece FROM vectors").fetchall():
            if piece not in pieces:
                self._new.execute("DELETE FROM vectors WHERE piece = ?", (piece,))
        if before is not None:
            self.model.next_piece = before.first_piece + before.n_pieces

    def _drop_attached(self, first: int, last: int) -> None:
        """Delete what came with the vectors of some operations."""
        self._new.execute("DELETE FROM payloads WHERE operation BETWEEN ? AND ?", (first, last))
        span = first * blocks.PER_OPERATION, (last + 1) * blocks.PER_OPERATION
        for table in _ATTACHED:
            self._new.execute(f"DELETE FROM {table} WHERE block >= ? AND block < ?", span)

    def _readable(self, number: int) -> Operation | None:
        """Return an operation if it, its vectors and its payloads can be read; None otherwise."""
        source = self.model.journal
        with contextlib.suppress(DamagedStoreError):
            operation = source.operation(number)
            source.check_attached(operation)
            if self.keep or number > self.model.snapshot.operation:
                source.vectors(operation)
            return operation
        return None

    def _finish(self, described: about.About | None) -> None:
        """Write the model as a snapshot; keep the oldest one for undo if nothing is missing."""
        links = self.model.links
        if described is None:
            self._new.execute("DELETE FROM meta")
            about.write(self._new, links, keep=self.keep)
        reencoded.salvage(self._new, self.path, self.model.number, described is not None)
        old = snapshots.every(self._new, self.path)
        base = [each for each in old if each.operation < self.model.number][:1]
        kept = [] if self.lost_before else base
        snapshots.drop(self._new, self.path, [each for each in old if each not in kept])
        snapshots.insert_whole(self._new, self.model.number, self.model.pack()())

    def _index(self) -> None:
        """Make the search index again; without FTS5, leave the store without."""
        if search_index.is_available():
            search_index.create(self._new)
            search_index.rebuild(self._new, self.path, self.model.number)
        else:
            about.set_search(self._new, self.path, on=False)

    def report(self, aside: Path) -> Repaired:
        """Return the result for the caller."""
        return Repaired(
            copy=str(aside),
            kept=self.model.number,
            lost_after=self.last - self.model.number,
            lost_before=self.lost_before,
            vectors=self.model.links.n_vectors,
            reason=self.reason,
        )
