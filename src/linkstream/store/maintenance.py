"""Maintenance of an open store: snapshots, checkpoints of SQLite's log, compaction.

All of it runs beside the writes: on a background thread, in steps between two commits.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from linkstream.errors import LinkstreamError
from linkstream.store import compacting, file, snapshots
from linkstream.store.commit_loop import CommitLoop
from linkstream.store.model import Model
from linkstream.store.writer_thread import WriterThread

SNAPSHOT_SECONDS = 4.0  # write a snapshot when replaying the rest of the journal takes longer
SNAPSHOT_SHARE = 3.0  # and at least this many times as long as the last snapshot delayed commits
CHECKPOINT_AFTER = 48 << 20  # bytes in the log after which it is checkpointed in the background
_CHECKPOINT_NOW = 256 << 20  # bytes in the log after which commits wait for a checkpoint
_UNSAVED_MAX = 256 << 20  # bytes of vectors after which a store without kept vectors is saved
_CHECKPOINT_TRIES = 4
_WAITS = 50  # tenths of a second to wait for readers that use the log

_log = logging.getLogger("linkstream.store")

T = TypeVar("T")


class BackgroundTasks:
    """A thread that runs jobs one after the other; a job that fails is logged."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._waiting: list[Callable[[], None]] = []
        self._stopping = False
        self._thread: threading.Thread | None = None

    def schedule(self, job: Callable[[], None]) -> None:
        """Run a job soon, unless it waits already. Only one thread may call this."""
        if self._stopping or job in self._waiting:
            return
        self._waiting.append(job)
        self._queue.put(job)
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="linkstream-background", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Finish the running job and start no other."""
        self._stopping = True
        self._queue.put(None)
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while self._run_next():
            pass

    def _run_next(self) -> bool:
        """Run the next job; while the thread waits for one, nothing references the store."""
        job = self._queue.get()
        if job is None or self._stopping:
            return False
        self._waiting.remove(job)
        try:
            job()
        except Exception as error:  # no acknowledged call depends on a job
            _log.warning("%s", error)
        return True


class Maintenance:
    """Snapshots, checkpoints and compaction of one store that is open for writing.

    Attributes:
        lock: held while a snapshot is written or the store is compacted.
    """

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        loop: CommitLoop,
        thread: WriterThread,
        *,
        keep_vectors: bool,
    ) -> None:
        self.lock = threading.Lock()
        self._path, self._connection, self._keep = path, connection, keep_vectors
        self._loop, self._thread = loop, thread
        self._background = BackgroundTasks()
        self._snapshot_cost = self._busy = 0.0  # seconds for which commits waited for a snapshot
        loop.after_commit = self._schedule_due

    def stop(self) -> None:
        """Stop the background thread; if no write failed, write a snapshot and empty the log."""
        self._background.stop()
        if self._loop.failure is None:
            try:
                self.write_snapshot()
                self._thread.run(self._empty_log)
            except LinkstreamError as error:  # all is durable; the next opening takes longer
                _log.warning("%s", error)

    def _schedule_due(self) -> None:
        """Schedule what is due after a commit."""
        loop = self._loop
        is_long = loop.replay_seconds > max(SNAPSHOT_SECONDS, SNAPSHOT_SHARE * self._snapshot_cost)
        if is_long or (loop.unsaved_bytes > _UNSAVED_MAX and not self._keep):
            self._background.schedule(self.write_snapshot)
        if loop.log_bytes > _CHECKPOINT_NOW:
            with contextlib.suppress(sqlite3.Error):  # the log is durable as it is
                self.checkpoint()
        elif loop.log_bytes > CHECKPOINT_AFTER:
            self._background.schedule(self._checkpoint_beside)

    # Snapshots

    def write_snapshot(self) -> None:
        """Write a snapshot of the current state, unless the newest one includes everything."""
        with self.lock, file.guarded(self._path):
            self._busy = 0.0
            found = self._read(self._to_save)
            if found is None:
                return
            number, pack = found
            made = snapshots.write(
                self._connection, self._path, number, pack(), self._in_transaction
            )
            self._loop.log_bytes += made.size
            self._in_transaction(
                lambda: compacting.prune(self._connection, self._path, keep=self._keep)
            )
            self._read(lambda model: model.rest_on(made))
            self._snapshot_cost = self._busy

    def _read(self, work: Callable[[Model], T]) -> T:
        return self._thread.run(lambda: self._loop.read(work), urgent=True)

    def _to_save(self, model: Model) -> tuple[int, Callable[[], tuple[bytes, bytes]]] | None:
        if model.number == model.snapshot.operation:
            return None
        self._loop.replay_seconds = self._loop.unsaved_bytes = 0.0
        return model.number, model.pack()

    def _in_transaction(self, work: Callable[[], T]) -> T:
        """Run a function in a transaction of its own, between two commits."""

        def run() -> T:
            self._loop.check_usable()
            start, done = time.perf_counter(), False
            try:
                with file.transaction(self._connection):
                    answer = work()
                    done = True
            except sqlite3.Error as error:
                if done:  # the commit failed: what the log holds is unknown, see choices.md
                    self._loop.fail(error)
                raise
            self._busy += time.perf_counter() - start
            return answer

        return self._thread.run(run, urgent=True)

    # Checkpoints of SQLite's log

    def checkpoint(self) -> None:
        """Copy the log into the file as far as readers allow. For the writer thread."""
        self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        self._loop.log_bytes = 0.0

    def _checkpoint_beside(self) -> None:
        """Checkpoint through another connection while commits go on, then the rest."""
        left = CHECKPOINT_AFTER // file.PAGE
        with file.guarded(self._path), contextlib.closing(file.connect(self._path)) as connection:
            for _ in range(_CHECKPOINT_TRIES):
                _, pages, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                if pages - moved < left / _CHECKPOINT_TRIES:
                    break
            self._thread.run(self.checkpoint, urgent=True)

    def _empty_log(self) -> bool:
        with file.guarded(self._path):
            return compacting.empty_log(self._connection)

    # Compaction

    def compact(self) -> None:
        """Erase removed vectors for good; raise StoreError if readers keep the log in use."""
        with self.lock:
            self._thread.run(lambda: self._loop.read(self._compact))
            for _ in range(_WAITS):
                emptied = self._thread.run(self._empty_log)
                if emptied:
                    break
                time.sleep(0.1)
            compacting.check_emptied(self._path, emptied)

    def _compact(self, model: Model) -> None:
        loop = self._loop
        loop.check_usable()
        try:
            compacting.compact(self._connection, model)
            loop.reload()
        except BaseException as error:
            loop.fail(error)
            raise
        loop.replay_seconds = loop.log_bytes = loop.unsaved_bytes = 0.0
