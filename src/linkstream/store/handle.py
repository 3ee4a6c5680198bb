"""The handle of an open store: its lock, its connections, its model and its threads."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from linkstream import saving
from linkstream.clusterer.core import Core
from linkstream.clusterer.snapshots import saved_without_history
from linkstream.engine.linkage import Progress
from linkstream.errors import StoreError
from linkstream.paper.thresholds import Thresholds
from linkstream.store import about, carving, copies, file, repairing, search_index, snapshots, wal
from linkstream.store.commit_loop import CommitLoop
from linkstream.store.index import Index
from linkstream.store.locks import WriterLock
from linkstream.store.maintenance import Maintenance
from linkstream.store.model import Model, load
from linkstream.store.reencoded import Reencoding
from linkstream.store.repairing import Verified
from linkstream.store.steps import check_command
from linkstream.store.write_requests import OpenStep, WriteRequest
from linkstream.store.writer_thread import WriterThread, closed_error

T = TypeVar("T")


class StoreHandle:
    """One open store file. `Store` is the documented interface; the service uses both.

    Attributes:
        path: the absolute path of the file.
        read_only: whether it was opened without the writer lock.
        description: what the store was made with, see `linkstream.store.about`.
        maintenance: snapshots, checkpoints and compaction; None if read-only.
        reencoding: the migration that is under way, or None, as a model has it; for the writer
            thread.
    """

    description: about.About
    maintenance: Maintenance | None = None
    reencoding: tuple[Model, Reencoding | None] | None = None
    _loop: CommitLoop
    _thread: WriterThread

    def __init__(
        self,
        path: Path,
        wanted: about.Wanted,
        running: dict[str, Any],
        *,
        read_only: bool,
        search: bool | None = None,
    ) -> None:
        self.path, self.read_only = path, read_only
        self._engine_options = running
        self._lock: WriterLock | None = None
        self._connections: list[sqlite3.Connection] = []
        self._log_keeper: sqlite3.Connection | None = None  # until the store is open
        self._process = os.getpid()
        self._closing = threading.Lock()
        self._closed = False
        self._local = threading.local()  # the step that each thread is in
        try:
            self._open(wanted, search)
        except MemoryError as error:
            self._release()
            raise file.out_of_memory(path, error) from error
        except BaseException:
            self._release()
            raise

    # Opening

    def _open(self, wanted: about.Wanted, search: bool | None) -> None:
        if self.path.exists() or self.read_only or wanted[:2] == (None, None):
            carving.check_kind(self.path)
            file.check_file(self.path)
        if not self.read_only:
            self._lock = WriterLock(self.path)
            if not self.path.exists():
                _create(self.path, wanted, search=bool(search))
        self._check_log()
        writer = self._connect(wanted)
        self._loop = loop = CommitLoop(self.path, self._load, writer)
        for connection in self._connections:
            file.unbound(connection)
        model = loop.model
        about.check_wanted(self.path, self._settings(model), wanted)
        loop.replay_seconds = 0.0 if model.number == model.snapshot.operation else 1.0
        self._thread = WriterThread(loop.serve)
        if writer is not None:
            keep = self.description["keep_vectors"]
            self.maintenance = Maintenance(self.path, writer, loop, self._thread, keep_vectors=keep)
        self._let_log_go()
        if search is not None:
            self.set_search(on=search)

    def _check_log(self) -> None:
        """Finish an interrupted repair; raise DamagedStoreError if SQLite would cut the log."""
        finish = copies.finish_install_as_reader if self.read_only else copies.finish_install
        finish(self.path)
        with file.usable(self.path):
            wal.check(self.path, live=not self.read_only)

    def _connect(self, wanted: about.Wanted) -> sqlite3.Connection | None:
        writer = None
        if not self.read_only:
            self._log_keeper = file.keep_log(self.path)
            writer = file.connect(self.path)  # first, since it may migrate the file
            self._connections.append(writer)
        self._reader = file.connect(self.path, read_only=True)
        self._connections.insert(0, self._reader)
        with file.guarded(self.path):
            self.description = about.read(self._reader, self.path)
            about.check_search(self._reader, self.path, self.description)
        if self.description["search"] and not self.read_only:
            search_index.check_available()
        return writer

    def _settings(self, model: Model) -> about.About:
        """Return what the store was made with, and what rebuilds changed since."""
        return {**self.description, **about.rebuilt(model.links)}

    def _load(self) -> Model:
        keep = self.description["keep_vectors"]
        with file.guarded(self.path), file.view(self._reader):
            model = load(self._reader, self.path, keep=keep, running=self._engine_options)
            model.links.core.disagreements = about.disagreements(self._reader, self.path)
        about.check_same(self.path, self.description, model.links, keep=keep)
        return model

    # Use

    def run(self, work: Callable[[], T]) -> T:
        """Run a function on the writer thread, between two commits; return its result."""
        self.check_open()
        return self._thread.run(work)

    def read(self, work: Callable[[Model], T]) -> T:
        """Call a function with the model on the writer thread; return its result."""
        return self.run(lambda: self._loop.read(work))

    def read_core(self, work: Callable[[Core], T]) -> T:
        """Call a function with the clusterer's core on the writer thread; return its result."""
        return self.read(lambda model: work(model.links.core))

    def submit(self, request: WriteRequest) -> WriteRequest:
        """Queue a request and return at once; `result()` waits for the answer.

        The callback `then` of the request runs on a thread of the store and must be short.
        """
        self.check_writable()
        request.step = request.step or getattr(self._local, "step", None)
        self._thread.put(request)
        return request

    @contextlib.contextmanager
    def step(self, command: str) -> Iterator[None]:
        """Make one step of all requests that this thread submits within the context."""
        step = OpenStep(check_command(command))
        outer = getattr(self._local, "step", None)
        self._local.step = outer or step
        try:
            yield
        finally:
            self._local.step = outer

    @contextlib.contextmanager
    def reporting(self, progress: Progress) -> Iterator[None]:
        """Call `progress` during questions that this thread asks within the context.

        It may raise to end a question.
        """
        outer = self.progress
        self._local.progress = progress
        try:
            yield
        finally:
            self._local.progress = outer

    @property
    def progress(self) -> Progress | None:
        """What questions of this thread report to; None if nothing."""
        found: Progress | None = getattr(self._local, "progress", None)
        return found

    def check_wanted(
        self,
        *,
        thresholds: Thresholds | None = None,
        preset: str | None = None,
        search: bool | None = None,
        **options: Any,
    ) -> None:
        """Raise ArgumentError if the store was made with other thresholds or options."""
        wanted = thresholds, preset, options
        about.check_wanted(self.path, self.read(self._settings), wanted)
        if search not in (None, self.description["search"]):
            raise about.other_search(self.path, asked=search)

    def check_writable(self) -> None:
        """Raise StoreError if the store cannot be written to."""
        if self.read_only:
            raise StoreError(
                f"{self.path}: a change to a store that is open read_only",
                expected="a store opened for writing",
                remedy="Open the store without read_only=True.",
            )
        self.check_open()
        self._loop.check_usable()

    def check_open(self) -> None:
        """Raise StoreClosedError if the store was closed or opened by the parent process."""
        if self.closed or self._process != os.getpid():
            raise closed_error(self.path)

    @property
    def closed(self) -> bool:
        """Whether the store was closed."""
        return self._closed

    def counts(self) -> dict[str, int | None]:
        """Return the numbers of vectors, subclusters, clusters, operations and events."""
        return self.read(about.counts)

    # Maintenance

    def refresh(self) -> int:
        """Read what other processes have written since; return the number of operations."""
        return self.read(self._refresh) if self.read_only else 0

    def _refresh(self, model: Model) -> int:
        before, self.reencoding = model.number, None
        file.bound(self._reader, self.path)
        with file.view(self._reader):
            base = snapshots.every(self._reader, self.path)[0]
            if base.operation <= before:
                model.base = base.number
                model.links.core.disagreements = about.disagreements(self._reader, self.path)
                return model.catch_up()
        # The store was compacted: the operations in between cannot be replayed any more.
        self._loop.reload()
        return self._loop.model.number - before

    def verify(self) -> Verified:
        """Read and replay everything; raise DamagedStoreError if something was changed."""
        self.check_open()
        with file.guarded(self.path):
            self.run(lambda: wal.check(self.path, live=not self.read_only))
        keep = self.description["keep_vectors"]
        return repairing.verify(self.path, self._engine_options, keep=keep)

    def compact(self) -> None:
        """Erase the bytes of removed, forgotten and undone vectors; see `Store.compact`."""
        self.check_writable()
        assert self.maintenance is not None
        self.maintenance.compact()

    def change(self, work: Callable[[sqlite3.Connection, Model], int | None]) -> None:
        """Write what is not in the journal; see `Maintenance.change`."""
        self.check_writable()
        assert self.maintenance is not None
        self.maintenance.change(work)

    def set_search(self, *, on: bool, progress: Progress = lambda _: None) -> None:
        """Make or delete the search index; see `Store.set_search`."""
        if on == self.description["search"]:
            return
        if self.read_only:
            raise about.other_search(self.path, asked=on)
        self.check_writable()
        assert self.maintenance is not None
        self.maintenance.set_search(on=on, progress=progress)
        self.description = {**self.description, "search": on}

    # Closing

    def close(self) -> None:
        """Write a snapshot, stop the threads, release the lock; a second call does nothing."""
        with self._closing:
            if self._closed or self._process != os.getpid():
                return
            if self.maintenance is not None:
                self.maintenance.stop()
            self._release()

    def _release(self) -> None:
        self._closed = True
        for part in ("_thread", "_loop"):
            if hasattr(self, part):  # opening may have failed before
                getattr(self, part).close()
        for connection in self._connections:  # the writer last: it removes the log
            with contextlib.suppress(sqlite3.Error):
                connection.close()
        self._let_log_go()
        if self._lock is not None:
            self._lock.release()

    def _let_log_go(self) -> None:
        """Close the connection that keeps the log of a store which may be refused."""
        if self._log_keeper is not None:
            self._log_keeper.close()
            self._log_keeper = None


def _create(path: Path, wanted: about.Wanted, *, search: bool) -> None:
    """Write a new store, if the caller has given thresholds or a preset."""
    links = about.wanted(*wanted)
    if links is None:
        return
    keep = links.keep_vectors
    parts = saving.pack(saved_without_history(links.core)), Index.empty().packed(next_piece=1)

    def fill(connection: sqlite3.Connection) -> None:
        about.write(connection, links, keep=keep, search=search)
        if search:
            search_index.create(connection)
        snapshots.insert_whole(connection, 0, parts)

    file.make(path, fill)
