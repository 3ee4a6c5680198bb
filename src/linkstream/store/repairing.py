"""Repairing: of a damaged store all is copied aside, and what can be read is saved.

The newest sound snapshot is the model; after it, operations are decided again as long as they are
whole and come out as they did. What came before it is kept where it can be read: for undo, for
vectors by number, for the story of an ID.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linkstream import __version__
from linkstream.engine.events import WIDTH
from linkstream.errors import ArgumentError, DamagedStoreError
from linkstream.store import about, file, journal, snapshots
from linkstream.store.file import damaged
from linkstream.store.journal import LOST, Journal, Operation
from linkstream.store.locks import WriterLock
from linkstream.store.model import Model
from linkstream.store.snapshots import Snapshot

_BESIDE = ("", "-wal")


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair could save.

    Attributes:
        copy: where the files lie as they were.
        kept: operations that the store goes up to now.
        lost_after: operations after those that cannot be trusted, and are in the copy alone.
        lost_before: operations before, whose vectors or events could not be read; the model holds
            what they taught it, but they cannot be undone.
        vectors: vectors the store has now.
        reason: why it stops where it stops; None: it goes on to the end.
    """

    copy: str
    kept: int
    lost_after: int
    lost_before: int
    vectors: int
    reason: str | None

    @property
    def lost(self) -> int:
        """Operations that are in the copy alone."""
        return self.lost_before + self.lost_after

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "lost": self.lost}

    def __str__(self) -> str:
        lost = f"{self.lost_after} after them and {self.lost_before} before could not be saved"
        why = f": {self.reason}" if self.reason else ""
        return f"{self.kept} operations, {self.vectors} vectors; {lost}{why}"


def repair(path: str | Path, *, copy: str | Path | None = None) -> Repaired:
    """Save what can be read of a damaged store; the files as they were lie at `copy`, untouched.

    StoreError or DamagedStoreError, and nothing changed, where nothing can be saved.
    """
    path = file.place(path)
    file.check_file(path)
    lock = WriterLock(path)
    try:
        aside = _copied_aside(path, None if copy is None else Path(copy))
        made = path.with_name(f".{path.name}.repaired")
        made.unlink(missing_ok=True)
        found = _Salvage(aside, path)
        try:
            found.write(made)
        finally:
            found.close()
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        made.replace(path)
        file.sync(path.parent)
        return found.report()
    finally:
        lock.release()


def _copied_aside(path: Path, target: Path | None) -> Path:
    if target is None:
        numbers = (path.with_name(f"{path.name}.damaged-{n}") for n in range(1, 10_000))
        target = next(each for each in numbers if not each.exists())
    elif target.exists():
        raise ArgumentError(
            f"{target}: a file that is there",
            expected="a path that is free",
            remedy="Remove it first, or give another path.",
        )
    try:
        for suffix in _BESIDE:
            source = path.with_name(path.name + suffix)
            if source.exists():
                copied = target.with_name(target.name + suffix)
                shutil.copy2(source, copied)
                file.sync(copied)
    except OSError as error:
        raise file.unusable(path, error) from None
    return target


def _nothing(number: int, before: Operation | None) -> Operation:
    """What stands in the place of an operation that could not be read."""
    after = (0, 0, 1)
    if before is not None:
        events, pieces = len(before.events), before.n_pieces
        after = (before.first_vector, before.first_event + events, before.first_piece + pieces)
    none = np.empty((0, WIDTH), dtype=np.int64)
    return Operation(number, LOST, {}, *after, 0, 0, False, none, b"null")


class _Salvage:
    """What can be read of a copy, and the new store made of it."""

    def __init__(self, copy: Path, path: Path) -> None:
        self.copy, self.path = copy, path
        # SQLite recovers the log when it opens: that must not touch the copy.
        self._work = copy.with_name(f".{copy.name}.work")
        for suffix in _BESIDE:
            source = copy.with_name(copy.name + suffix)
            if source.exists():
                shutil.copyfile(source, self._work.with_name(self._work.name + suffix))
        self._connection: sqlite3.Connection | None = None
        self.reason: str | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        for suffix in (*_BESIDE, "-shm"):
            self._work.with_name(self._work.name + suffix).unlink(missing_ok=True)

    def write(self, target: Path) -> None:
        """The new store, in a file of its own."""
        self._connection = file.connect(self._work)
        with file.guarded(self.path):
            described = about.read(self._connection, self.path)
            self.model = self._newest(keep=described["keep_vectors"])
            self._follow()
            self.last = max(self._last(), self.model.number)
            described.pop("linkstream", None)
        file.make(target, lambda new: self._fill(new, described))

    def _newest(self, *, keep: bool) -> Model:
        assert self._connection is not None
        for snapshot, parts in snapshots.sound(self._connection, self.path):
            with contextlib.suppress(DamagedStoreError):
                return Model.at(self._connection, self.path, snapshot, parts, keep=keep, running={})
        raise damaged(self.path, "no sound snapshot: nothing can be saved")

    def _follow(self) -> None:
        """Go on as far as operations are whole and come out as they did."""
        start = self.model.snapshot
        try:
            with file.guarded(self.path):
                self.model.catch_up()
        except DamagedStoreError as error:
            self.reason = error.seen
            self._start_again(start)

    def _start_again(self, start: Snapshot) -> None:
        """An operation that came out otherwise has changed the model: go up to the one before."""
        assert self._connection is not None
        good = self.model.number
        parts = snapshots.read(self._connection, self.path, start)
        keep = self.model.links._keep is not None
        self.model = Model.at(self._connection, self.path, start, parts, keep=keep, running={})
        self.model.catch_up(good)

    def _last(self) -> int:
        assert self._connection is not None
        try:
            return Journal(self._connection, self.path).last()
        except sqlite3.Error:
            return 0

    def _fill(self, new: sqlite3.Connection, described: about.About) -> None:
        about.write(new, described, __version__)
        self.lost_before = 0
        before: Operation | None = None
        for number in range(1, self.model.number + 1):
            found = self._copy_operation(new, number)
            if found is None:
                self.lost_before += 1
                found = _nothing(number, before)
                journal.write(new, found)
            before = found
        bases = self._bases() if not self.lost_before else []
        for base in bases:
            self._copy_snapshot(new, base)
        snapshots.insert_whole(new, self.model.number, self.model.pack()())

    def _copy_operation(self, new: sqlite3.Connection, number: int) -> Operation | None:
        source = self.model.journal
        keep = self.model.links._keep is not None or number > self.model.snapshot.operation
        try:
            with file.guarded(self.path):
                operation = source.operation(number)
                rows = source.vectors(operation) if keep else None
                payloads = source.payloads(operation)
        except DamagedStoreError:
            return None
        journal.write(new, operation)
        if rows is not None:
            journal.write_vectors(new, journal.Lot(operation.first_piece, rows))
        if payloads is not None:
            journal.write_payloads(new, number, payloads)
        return operation

    def _bases(self) -> Iterator[Snapshot]:
        """The base, as far back as undo goes, if it can be read."""
        assert self._connection is not None
        made = snapshots.every(self._connection, self.path)
        if made and made[0].operation < self.model.number:
            yield made[0]

    def _copy_snapshot(self, new: sqlite3.Connection, base: Snapshot) -> None:
        assert self._connection is not None
        parts = snapshots.read(self._connection, self.path, base)
        snapshots.insert_whole(new, base.operation, parts)

    def report(self) -> Repaired:
        """What came of it."""
        return Repaired(
            copy=str(self.copy),
            kept=self.model.number,
            lost_after=self.last - self.model.number,
            lost_before=self.lost_before,
            vectors=self.model.links.n_vectors,
            reason=self.reason,
        )
