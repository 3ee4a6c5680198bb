"""Store: a clusterer in one file, from which nothing that was acknowledged is ever lost."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from linkstream import __version__, saving
from linkstream.engine import choice
from linkstream.errors import (
    LinkstreamError,
    StoreClosedError,
    StoreError,
)
from linkstream.paper.thresholds import Thresholds
from linkstream.store import about, compacting, copying, file, keys, snapshots, verifying
from linkstream.store.caretaker import Caretaker
from linkstream.store.index import Index
from linkstream.store.line import Line, Ticket
from linkstream.store.locks import WriterLock
from linkstream.store.model import Model, load
from linkstream.store.pen import Pen
from linkstream.store.reads import Reads
from linkstream.store.verifying import Verified
from linkstream.store.writes import Writes

SNAPSHOT_SECONDS = 4.0  # of deciding, after which a snapshot is due: opening takes as long
_SNAPSHOT_SHARE = 4.0  # and not before so many times as long as the last one took to write
_PER_OPERATION = 5e-5  # seconds that deciding an operation again takes besides
_MOVE_AFTER = 16 << 20  # bytes written, after which the log is moved into the file
_MOVE_NOW = 256 << 20  # after which nothing is written before that is done
_TRIES = 4

_log = logging.getLogger("linkstream.store")


class Store(Reads, Writes):
    """A clusterer in one file. A call that has returned survives kill −9 and the loss of power.

    One writer, many readers; safe to use from many threads. The verbs are those of `Links`.

    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "people.links")
    >>> with Store.open(path, thresholds=Thresholds(0.7, 0.6, 0.9)) as store:
    ...     store.add_many([[1.0, 0.0], [0.0, 1.0]], idempotency_key="batch-1")
    array([0, 1])
    >>> with Store.open(path) as store:
    ...     store.add([1.0, 0.1]).cluster
    0
    """

    def __init__(self, path: str | os.PathLike[str], **options: Any) -> None:
        raise TypeError("open a store with Store.open(path, ...)")

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        thresholds: Thresholds | None = None,
        preset: str | None = None,
        read_only: bool = False,
        engine: str = "auto",
        threads: int | None = None,
        **options: Any,
    ) -> Store:
        """The store at a path; with thresholds or a preset a new one if none is there.

        Options are those of `Links`. Recovers by itself: the newest sound snapshot, and what came
        after it decided again and compared with what was decided then.

        Raises:
            StoreLockedError: another writer has it open. `read_only` needs no lock; it sees the
                store as it was at opening, or at the last `refresh`.
            DamagedStoreError: something there is not what was written; names it.
            ArgumentError: thresholds or options other than those it was made with.
        """
        choice.choose(engine, threads)
        store = cls.__new__(cls)
        store.path, store.read_only = file.place(path), bool(read_only)
        store._running = {"engine": engine, "threads": threads}
        store._prepare()
        try:
            if not read_only:
                if thresholds is None and preset is None:
                    file.check_file(store.path)
                store._lock = WriterLock(store.path)
                store._make(thresholds, preset, options)
            store._begin(thresholds, preset, options)
        except BaseException:
            store._let_go()
            raise
        return store

    path: Path
    read_only: bool
    _running: dict[str, Any]
    _lock: WriterLock | None
    _reader: sqlite3.Connection | None
    _writer: sqlite3.Connection | None
    _pen: Pen | None
    _model: Model
    _about: dict[str, Any]

    def _prepare(self) -> None:
        self._lock = self._reader = self._writer = self._pen = None
        self._line = Line(self._write_ahead, self._decide, self._commit, self._fail)
        self._caretaker = Caretaker()
        self._caring = threading.Lock()  # of snapshots and compaction: one at a time
        self._failure: BaseException | None = None
        self._stale = False  # the model holds what was not acknowledged
        self._closed = False
        self._pending: dict[str, Ticket] = {}  # keys of what is decided and not yet committed
        self._worth, self._snapshot_cost = 0.0, 0.0  # seconds
        self._written = 0  # bytes since the log was last moved

    def _make(
        self, thresholds: Thresholds | None, preset: str | None, options: dict[str, Any]
    ) -> None:
        """A new store, where none is there and the caller says what it should be."""
        fresh = None if self.path.exists() else about.wanted(thresholds, preset, options)
        if fresh is None:
            return
        keep = fresh.keep_vectors
        parts = saving.pack(fresh._without_history()), Index.empty().packed(next_piece=1)

        def fill(connection: sqlite3.Connection) -> None:
            about.write(connection, about.of(fresh, keep=keep), __version__)
            snapshots.insert_whole(connection, 0, parts)

        file.make(self.path, fill)

    def _begin(
        self, thresholds: Thresholds | None, preset: str | None, options: dict[str, Any]
    ) -> None:
        self._reader = file.connect(self.path, read_only=True)
        with file.guarded(self.path):
            self._about = about.read(self._reader, self.path)
        about.check_wanted(self.path, self._about, thresholds, preset, options)
        if not self.read_only:
            self._writer = file.connect(self.path)
        self._model = self._load()
        file.unbound(self._reader)
        if self._writer is not None:
            file.unbound(self._writer)
            self._pen = Pen(self._writer)
            self._worth = 0.0 if self._model.number == self._model.snapshot.operation else 1.0

    def _load(self) -> Model:
        assert self._reader is not None
        keep = self._about["keep_vectors"]
        with file.guarded(self.path), file.view(self._reader):
            model = load(self._reader, self.path, keep=keep, running=self._running)
        about.check_same(self.path, self._about, model.links, keep=keep)
        return model

    # How a call is done: decided in order, committed, answered

    def _write_ahead(self, ticket: Ticket) -> None:
        if self._pen is not None and self._failure is None:
            self._pen.ahead(ticket, self._model.next_piece)

    def _decide(self, ticket: Ticket) -> None:
        """Say what there is to commit of a call, or why it is refused; nothing is raised."""
        start = time.perf_counter()
        try:
            self._check_writable()
            if ticket.after is not None and ticket.after.error is not None:
                raise ticket.after.error
            if keys.answered(ticket, self._model, self._pending):
                return
            self._model.decide(ticket)
            if ticket.key is not None:
                self._pending[ticket.key] = ticket
        except StoreError as error:  # the journal could not be read: how far it came is not known
            self._fail(error)
            ticket.error = error
        except LinkstreamError as error:
            ticket.error = error
            if self._model.moved:  # a refusal comes before any change; this one did not
                self._fail(error)
        except BaseException as error:
            self._fail(error)
            ticket.error = self._closed_error() if isinstance(error, Exception) else error
        self._worth += time.perf_counter() - start + _PER_OPERATION

    def _commit(self, group: list[Ticket]) -> None:
        """Make what was decided safe; only then may it be answered."""
        decided = [ticket for ticket in group if ticket.operation is not None]
        if self._pen is None or not decided or self._stale:
            if self._pen is not None:
                self._pen.drop()
            if decided:  # an earlier commit failed: what was decided after it stands on nothing
                raise self._closed_error()
            return
        try:
            self._written += self._pen.commit(decided)
        except sqlite3.Error as error:
            self._fail(error)
            raise self._closed_error() from error
        for ticket in decided:
            if ticket.key is not None:
                del self._pending[ticket.key]
        self._see_to()

    def _fail(self, error: BaseException) -> None:
        """The model has gone on and the file has not: only opening it again mends that."""
        self._failure = self._failure or error
        self._stale = True

    def _check_writable(self) -> None:
        if self.read_only:
            raise StoreError(
                f"{self.path}: opened read_only, and asked to change",
                expected="a store opened for writing",
                remedy="Open it without read_only=True.",
            )
        if self._failure is not None:
            raise self._closed_error()
        self._check_open()

    def _check_open(self) -> None:
        if self._closed or (self._lock is not None and not self._lock.ours):
            raise StoreClosedError(
                f"{self.path}: closed, or opened by the process that this one was forked from",
                expected="an open store",
                remedy="Open it again: what was acknowledged is there.",
            )

    def _closed_error(self) -> StoreClosedError:
        return StoreClosedError(
            f"{self.path}: a write failed ({self._failure!r:.200})",
            expected="a disk that takes what is written",
            remedy="It can only be read now. Open it again: what was acknowledged is there.",
        )

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Model]:
        with self._line.standstill():
            self._check_open()
            if self._stale:
                self._model = self._load()
                self._stale = False
            with file.guarded(self.path):
                yield self._model

    # Care

    def refresh(self) -> int:
        """See what others have written since; how many operations. For read-only stores."""
        with self._reading() as model:
            if not self.read_only:
                return 0
            assert self._reader is not None
            before = model.number
            file.bound(self._reader, self.path)
            with file.view(self._reader):
                base = snapshots.every(self._reader, self.path)[0]
                if base.operation <= before:
                    return model.catch_up()
            self._model = self._load()  # it was compacted: what we had not seen cannot be decided
            return self._model.number - before

    def snapshot(self) -> None:
        """Write down the whole state now, so that the next opening is quick.

        Done by itself, too, as the stream goes on.
        """
        self._check_writable()
        self._write_snapshot()

    def verify(self) -> Verified:
        """Read everything there is, and decide all of it again; DamagedStoreError names the place.

        Takes as long as adding all vectors anew; others may go on meanwhile.
        """
        with self._reading():
            pass
        return verifying.verify(self.path, self._running, keep=self._about["keep_vectors"])

    def compact(self) -> None:
        """Forget for good what was removed, forgotten or undone: no byte of it is left.

        What came before cannot be undone any more. Rewrites the file.
        """
        self._check_writable()
        with self._caring, self._line.standstill(), file.guarded(self.path):
            self._check_writable()
            assert self._writer is not None
            try:
                compacting.compact(self._writer, self._model)
            except BaseException as error:
                self._fail(error)
                raise
            self._model = self._load()
            self._worth, self._written = 0.0, 0
            compacting.empty_log(self._writer, self.path)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """A copy of the store as it is now, under a name that is free; others go on meanwhile."""
        with self._reading():
            pass
        copying.backup(self.path, Path(path))

    def info(self) -> dict[str, Any]:
        """What the store is and holds, as plain values."""
        with self._reading() as model:
            links = model.links
            made = snapshots.every(model.connection, self.path)
            size, log = file.size_of(self.path)
            return {
                "path": str(self.path),
                "format": file.FORMAT,
                "bytes": size,
                "log_bytes": log,
                **self._about,
                "dimension": links.dimension,
                "vectors": links.n_vectors,
                "subclusters": links.n_subclusters,
                "clusters": links.n_clusters,
                "operations": model.number,
                "events": model.n_events,
                "snapshots": [each.operation for each in made],
                "undo_from": made[0].operation,
            }

    def _see_to(self) -> None:
        """Have done, off the way, what has become due."""
        if self._worth > max(SNAPSHOT_SECONDS, _SNAPSHOT_SHARE * self._snapshot_cost):
            self._caretaker.ask(self._write_snapshot)
        if self._written > _MOVE_NOW:
            self._move()
        elif self._written > _MOVE_AFTER:
            self._caretaker.ask(self._move_aside)

    def _move(self) -> int:
        """Move the log into the file, as far as readers let it; how many pages are left."""
        assert self._writer is not None
        _, pages, moved = self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        self._written = 0
        return int(pages - moved)

    def _move_aside(self) -> None:
        """The same through another connection, while commits go on; then the rest."""
        left = _MOVE_AFTER // file.PAGE
        with file.guarded(self.path), contextlib.closing(file.connect(self.path)) as connection:
            for _ in range(_TRIES):
                _, pages, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                if pages - moved < left / _TRIES:
                    break
        with self._turn():
            self._move()

    def _write_snapshot(self) -> None:
        with self._caring, file.guarded(self.path):
            start = time.perf_counter()
            with self._line.standstill():
                self._check_writable()
                model = self._model
                if model.number == model.snapshot.operation:
                    return
                number, pack = model.number, model.pack()
                self._worth = 0.0
            assert self._writer is not None
            made = snapshots.write(self._writer, self.path, number, pack(), self._turn)
            with self._turn(), file.transaction(self._writer):
                compacting.prune(self._writer, self.path, keep=self._about["keep_vectors"])
            model.snapshot = made
            self._snapshot_cost = time.perf_counter() - start

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """The right to write, between two commits."""
        with self._line.committing:
            self._check_writable()
            yield

    def close(self) -> None:
        """Write a snapshot, so that opening is quick, and let others write; twice does nothing."""
        if self._closed:
            return
        self._caretaker.stop()
        ours = self._lock is None or self._lock.ours
        if self._writer is not None and self._failure is None and ours:
            try:
                self._write_snapshot()
                with file.guarded(self.path), self._turn():
                    self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            except LinkstreamError as error:  # all is safe; the next opening takes longer
                _log.warning("%s", error)
        with self._line.standstill():
            self._let_go()

    def _let_go(self) -> None:
        self._closed = True
        if self._pen is not None:
            self._pen.close()
        for connection in (self._reader, self._writer):  # a writer that goes last tidies up
            if connection is not None:
                with contextlib.suppress(sqlite3.Error):
                    connection.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "read only" if self.read_only else "open"
        return f"Store({str(self.path)!r}, {state})"
