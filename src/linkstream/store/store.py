"""Store: a clusterer in one file, from which nothing that was acknowledged is ever lost."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from linkstream import __version__, saving
from linkstream.clusterer.snapshots import saved_without_history
from linkstream.engine import choice
from linkstream.errors import LinkstreamError, StoreError
from linkstream.paper.thresholds import Thresholds
from linkstream.store import (
    about,
    carving,
    compacting,
    copying,
    file,
    installing,
    snapshots,
    verifying,
    wal,
)
from linkstream.store.caretaker import Caretaker
from linkstream.store.clerk import Clerk, Errand, OpenStep, Ticket, closed
from linkstream.store.desk import Desk
from linkstream.store.index import Index
from linkstream.store.locks import WriterLock
from linkstream.store.model import Model, load
from linkstream.store.reads import Reads
from linkstream.store.steps import check_command
from linkstream.store.verifying import Verified
from linkstream.store.writes import Writes

SNAPSHOT_SECONDS = 4.0  # of deciding, after which a snapshot is due: opening takes as long
_SNAPSHOT_SHARE = 3.0  # and not before so many times as long as others waited for the last
_UNSAVED = 256 << 20  # bytes of vectors that are not to be kept, after which one is due, too
_MOVE_AFTER = 48 << 20  # bytes written, after which the log is moved into the file
_MOVE_NOW = 256 << 20  # after which nothing is written before that is done
_TRIES = 4
_WAITS = 50  # tenths of a second, for readers to let the log be emptied

_log = logging.getLogger("linkstream.store")

T = TypeVar("T")


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

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        """Refuse copy, deepcopy and pickle: one object writes to one file."""
        raise StoreError(
            f"{self.path}: a store that is to be copied or pickled",
            expected="its path, opened once for each object",
            remedy="Pass the path and open it there; backup() writes a copy of the file.",
        )

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
            StoreMemoryError: memory ran out; nothing was changed.
            ArgumentError: thresholds or options other than those it was made with.
        """
        choice.choose(engine, threads)
        store = cls.__new__(cls)
        store.path, store.read_only = file.place(path), bool(read_only)
        store._running = {"engine": engine, "threads": threads}
        store._prepare()
        try:
            if store.path.exists() or read_only or (thresholds is None and preset is None):
                carving.check_kind(store.path)
                file.check_file(store.path)
            if not read_only:
                store._lock = WriterLock(store.path)
                store._make(thresholds, preset, options)
            store._recover()
            store._connect(thresholds, preset, options)
            store._begin()
        except MemoryError as error:
            store._let_go()
            raise file.out_of_memory(store.path, error) from error
        except BaseException:
            store._let_go()
            raise
        return store

    path: Path
    read_only: bool
    _running: dict[str, Any]
    _about: about.About
    _lock: WriterLock | None
    _reader: sqlite3.Connection | None
    _writer: sqlite3.Connection | None
    _desk: Desk | None
    _clerk: Clerk | None

    def _prepare(self) -> None:
        self._lock = self._reader = self._writer = self._desk = self._clerk = None
        self._process = os.getpid()
        self._caretaker = Caretaker()
        self._caring = threading.Lock()  # of snapshots and compaction: one at a time
        self._closing = threading.Lock()
        self._closed = False
        self._snapshot_cost = self._busy = 0.0  # seconds that others waited for a snapshot
        self._here = threading.local()  # the step that this thread is in

    def _make(
        self, thresholds: Thresholds | None, preset: str | None, options: dict[str, Any]
    ) -> None:
        """A new store, where none is there and the caller says what it should be."""
        fresh = None if self.path.exists() else about.wanted(thresholds, preset, options)
        if fresh is None:
            return
        keep = fresh.keep_vectors
        parts = saving.pack(saved_without_history(fresh.core)), Index.empty().packed(next_piece=1)

        def fill(connection: sqlite3.Connection) -> None:
            about.write(connection, about.of(fresh, keep=keep), __version__)
            snapshots.insert_whole(connection, 0, parts)

        file.make(self.path, fill)

    def _recover(self) -> None:
        """See to it that SQLite finds a log that it takes as a whole, or none."""
        if self.read_only:
            installing.finish_for_reader(self.path)
        else:
            installing.finish(self.path)
        with file.usable(self.path):
            wal.check(self.path, live=not self.read_only)

    def _connect(
        self, thresholds: Thresholds | None, preset: str | None, options: dict[str, Any]
    ) -> None:
        if not self.read_only:
            self._writer = file.connect(self.path)  # first: it may bring the file up to date
        self._reader = file.connect(self.path, read_only=True)
        with file.guarded(self.path):
            self._about = about.read(self._reader, self.path)
        about.check_wanted(self.path, self._about, thresholds, preset, options)

    def _begin(self) -> None:
        self._desk = desk = Desk(self.path, self._load, self._writer, self._see_to)
        for connection in (self._reader, self._writer):
            if connection is not None:
                file.unbound(connection)
        desk.worth = 0.0 if desk.model.number == desk.model.snapshot.operation else 1.0
        self._clerk = Clerk(desk.serve)

    def _load(self) -> Model:
        assert self._reader is not None
        keep = self._about["keep_vectors"]
        with file.guarded(self.path), file.view(self._reader):
            model = load(self._reader, self.path, keep=keep, running=self._running)
        about.check_same(self.path, self._about, model.links, keep=keep)
        return model

    # Whoever calls waits for the clerk

    def _ask(self, work: Callable[[Model], T], *, first: bool = False) -> T:
        self._check_open()
        desk = self._open_desk()
        answer: T = self._have_done(lambda: desk.ask(work), first=first)
        return answer

    def send(self, ticket: Ticket) -> None:
        """Have a call of `store.calls` served without waiting; its `then` is called when it is.

        By the store's own thread, which must not be kept.
        """
        self._put(ticket)

    def _put(self, ticket: Ticket) -> Ticket:
        self._check_writable()
        assert self._clerk is not None
        ticket.step = ticket.step or getattr(self._here, "step", None)
        self._clerk.put(ticket)
        return ticket

    @contextlib.contextmanager
    def step(self, command: str) -> Iterator[None]:
        """Make one step of all that this thread does within: `undo(step=True)` takes it back.

        A call of another thread in between ends the step; what follows is a new one. Within
        another step it is a part of that one.

        Args:
            command: what `steps` calls it, such as "cluster"; 1 to 64 characters.
        """
        open_step = OpenStep(check_command(command))
        outer = getattr(self._here, "step", None)
        self._here.step = outer or open_step
        try:
            yield
        finally:
            self._here.step = outer

    def _have_done(self, work: Callable[[], T], *, first: bool = False) -> T:
        """Have something done while nothing is decided or written."""
        assert self._clerk is not None
        errand = Errand(work=work)
        self._clerk.put(errand, first=first)
        answer: T = errand.result()
        return answer

    def _open_desk(self) -> Desk:
        assert self._desk is not None
        return self._desk

    def _check_writable(self) -> None:
        if self.read_only:
            raise StoreError(
                f"{self.path}: opened read_only, and asked to change",
                expected="a store opened for writing",
                remedy="Open it without read_only=True.",
            )
        self._check_open()
        self._open_desk().check_well()

    def _check_open(self) -> None:
        if self._closed or self._process != os.getpid():
            raise closed(self.path)

    # Care

    def refresh(self) -> int:
        """See what others have written since; how many operations. For read-only stores.

        In a folder that this process may not write to, a store is seen as of its opening.
        """
        return self._ask(self._refresh) if self.read_only else 0

    def _refresh(self, model: Model) -> int:
        assert self._reader is not None
        before = model.number
        file.bound(self._reader, self.path)
        with file.view(self._reader):
            base = snapshots.every(self._reader, self.path)[0]
            if base.operation <= before:
                model.base = base.number
                return model.catch_up()
        # It was compacted: what we had not seen cannot be decided again.
        desk = self._open_desk()
        desk.model = self._load()
        return desk.model.number - before

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
        self._check_open()
        with file.guarded(self.path):
            self._have_done(lambda: wal.check(self.path, live=not self.read_only))
        return verifying.verify(self.path, self._running, keep=self._about["keep_vectors"])

    def compact(self) -> None:
        """Forget for good what was removed, forgotten or undone: no byte of it is left.

        What came before cannot be undone any more. Rewrites the file.
        """
        self._check_writable()
        with self._caring:
            self._ask(self._compact)
            for _ in range(_WAITS):
                emptied = self._have_done(self._empty_log)
                if emptied:
                    break
                time.sleep(0.1)
            compacting.check_emptied(self.path, emptied)

    def _compact(self, model: Model) -> None:
        self._check_writable()
        assert self._writer is not None
        desk = self._open_desk()
        try:
            compacting.compact(self._writer, model)
            desk.model = self._load()
        except BaseException as error:
            desk.fail(error)
            raise
        desk.worth = desk.written = desk.unsaved = 0.0

    def backup(self, path: str | os.PathLike[str]) -> None:
        """A copy of the store as it is now, under a name that is free; others go on meanwhile."""
        self._check_open()
        copying.backup(self.path, file.place(path))

    def info(self) -> dict[str, Any]:
        """What the store is and holds, as plain values."""
        return self._ask(lambda model: {**about.figures(model), **self._about})

    def check_wanted(
        self, *, thresholds: Thresholds | None = None, preset: str | None = None, **options: Any
    ) -> None:
        """ArgumentError where this is another store than the one described, as `open` has it."""
        about.check_wanted(self.path, self._about, thresholds, preset, options)

    # What the caretaker does, off the way

    def _see_to(self) -> None:
        """Have done what has become due."""
        desk = self._open_desk()
        long = desk.worth > max(SNAPSHOT_SECONDS, _SNAPSHOT_SHARE * self._snapshot_cost)
        much = desk.unsaved > _UNSAVED and not self._about["keep_vectors"]
        if long or much:
            self._caretaker.ask(self._write_snapshot)
        if desk.written > _MOVE_NOW:
            with contextlib.suppress(sqlite3.Error):  # it is safe where it is
                self._move()
        elif desk.written > _MOVE_AFTER:
            self._caretaker.ask(self._move_aside)

    def _move(self) -> None:
        """Move the log into the file, as far as readers let it."""
        assert self._writer is not None
        self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)")
        self._open_desk().written = 0.0

    def _move_aside(self) -> None:
        """The same through another connection, while commits go on; then the rest."""
        left = _MOVE_AFTER // file.PAGE
        with file.guarded(self.path), contextlib.closing(file.connect(self.path)) as connection:
            for _ in range(_TRIES):
                _, pages, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                if pages - moved < left / _TRIES:
                    break
            self._have_done(self._move, first=True)

    def _write_snapshot(self) -> None:
        with self._caring, file.guarded(self.path):
            self._busy = 0.0
            found = self._ask(self._to_save, first=True)
            if found is None:
                return
            number, pack = found
            assert self._writer is not None
            made = snapshots.write(self._writer, self.path, number, pack(), self._in_turn)
            self._open_desk().written += made.size
            self._in_turn(self._prune)
            self._ask(lambda model: model.rest_on(made), first=True)
            self._snapshot_cost = self._busy

    def _to_save(self, model: Model) -> tuple[int, Callable[[], tuple[bytes, bytes]]] | None:
        if model.number == model.snapshot.operation:
            return None
        desk = self._open_desk()
        desk.worth = desk.unsaved = 0.0
        return model.number, model.pack()

    def _prune(self) -> None:
        assert self._writer is not None
        compacting.prune(self._writer, self.path, keep=self._about["keep_vectors"])

    def _in_turn(self, work: Callable[[], T]) -> T:
        """A transaction of its own, between two commits."""

        def run() -> T:
            self._open_desk().check_well()
            assert self._writer is not None
            start, done = time.perf_counter(), False
            try:
                with file.transaction(self._writer):
                    answer = work()
                    done = True
            except sqlite3.Error as error:
                if done:  # the commit failed: nobody knows what the log has, see choices.md
                    self._open_desk().fail(error)
                raise
            self._busy += time.perf_counter() - start
            return answer

        return self._have_done(run, first=True)

    # The end

    def close(self) -> None:
        """Write a snapshot, so that opening is quick, and let others write; twice does nothing."""
        with self._closing:
            if self._closed or self._process != os.getpid():
                return
            self._caretaker.stop()
            if not self.read_only and self._open_desk().failure is None:
                try:
                    self._write_snapshot()
                    self._have_done(self._empty_log)
                except LinkstreamError as error:  # all is safe; the next opening takes longer
                    _log.warning("%s", error)
            self._let_go()

    def _empty_log(self) -> bool:
        assert self._writer is not None
        with file.guarded(self.path):
            return compacting.empty_log(self._writer)

    def _let_go(self) -> None:
        self._closed = True
        if self._clerk is not None:
            self._clerk.stop()
        if self._desk is not None:
            self._desk.close()
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
