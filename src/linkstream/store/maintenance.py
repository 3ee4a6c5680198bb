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
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import absent
from linkstream.engine.linkage import Progress
from linkstream.errors import LinkstreamError, StoreError
from linkstream.store import about, blocks, file, journal, reencoded, search_index, snapshots
from linkstream.store.commit_loop import CommitLoop
from linkstream.store.journal import Operation, rows_of_piece
from linkstream.store.model import Model
from linkstream.store.writer_thread import WriterThread, start

SNAPSHOT_SECONDS = 4.0  # write a snapshot when replaying the rest of the journal takes longer
SNAPSHOT_SHARE = 3.0  # and at least this many times as long as the last snapshot delayed commits
CHECKPOINT_AFTER = 48 << 20  # bytes in the log after which it is checkpointed in the background
_CHECKPOINT_NOW = 256 << 20  # bytes in the log after which commits wait for a checkpoint
_UNSAVED_MAX = 256 << 20  # bytes of vectors after which a store without kept vectors is saved
_CHECKPOINT_TRIES = 4
_WAITS = 50  # tenths of a second to wait for readers that use the log

_log = logging.getLogger("linkstream.store")

Flags = npt.NDArray[np.bool_]
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
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="linkstream-background", daemon=True)
            start(thread)
            self._thread = thread
        self._waiting.append(job)
        self._queue.put(job)

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
            self._in_transaction(lambda: _prune(self._connection, self._path, keep=self._keep))
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
        return self._thread.run(lambda: self._transacted(work), urgent=True)

    def _transacted(self, work: Callable[[], T]) -> T:
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

    def change(self, work: Callable[[sqlite3.Connection, Model], int | None]) -> None:
        """Write what is not in the journal in a transaction of its own, between two commits.

        `work` returns about how many bytes it wrote; None for few.
        """

        def run() -> None:
            size = self._transacted(lambda: work(self._connection, self._loop.model))
            self._loop.log_bytes += size or 0
            self._schedule_due()

        with file.guarded(self._path):
            self._thread.run(run, urgent=True)

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
            return _empty_log(self._connection)

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
        if not emptied:
            raise StoreError(
                f"{self._path}: compacted, but others read it; its log may still hold erased bytes",
                expected="a moment without readers",
                remedy="Close the readers and compact again.",
            )

    def _compact(self, model: Model) -> None:
        loop = self._loop
        loop.check_usable()
        try:
            _erase(self._connection, model)
            loop.reload()
        except BaseException as error:
            loop.fail(error)
            raise
        loop.replay_seconds = loop.log_bytes = loop.unsaved_bytes = 0.0

    # The search index

    def set_search(self, *, on: bool, progress: Progress) -> None:
        """Make the search index from all payloads, or delete it; commits wait meanwhile."""

        def work() -> None:
            connection, path = self._connection, self._path
            connection.execute("PRAGMA secure_delete=ON")
            about.set_search(connection, path, on=on)
            if on:
                search_index.create(connection)
                search_index.rebuild(connection, path, self._loop.model.number, progress)
            else:
                search_index.drop(connection)
            connection.execute("PRAGMA secure_delete=OFF")

        with self.lock, file.guarded(self._path):
            self._in_transaction(work)


# Pruning and erasing


def _prune(connection: sqlite3.Connection, path: Path, *, keep: bool) -> None:
    """Delete all snapshots but the newest two and the base; the caller commits.

    If vectors are not kept, the older of the two becomes the base, and older vectors are deleted.
    """
    made = snapshots.every(connection, path)
    if keep:
        snapshots.drop(connection, path, made[1:-2])
        return
    snapshots.drop(connection, path, made[:-2])
    base = made[-2:][0].operation
    query = "SELECT first_piece FROM operations WHERE number = ?"
    following = connection.execute(query, (base + 1,)).fetchone()
    if following is not None:
        connection.execute("DELETE FROM vectors WHERE piece < ?", following)


def _erase(connection: sqlite3.Connection, model: Model) -> None:
    """Erase removed, forgotten and undone vectors; nothing else may write meanwhile."""
    connection.execute("PRAGMA secure_delete=ON")
    model.links.core.up_to_date_ledger().drop_unused_texts()
    if model.links.track_vectors:
        model.index.keep_own(absent.all_there(model.links.core))
    parts = model.pack()()
    live, names = _live(model), set(model.links.core.ledger.names.values())
    with file.transaction(connection):
        for operation in model.journal.operations(0, model.number):
            _erase_rows(connection, model, operation, live.get(operation.number))
            _erase_names(connection, operation, names)
        if search_index.exists(connection):
            search_index.rebuild(connection, model.path, model.number)
        reencoded.keep(connection, _reencoded(connection, model))
        old = snapshots.every(connection, model.path)
        snapshots.insert_whole(connection, model.number, parts)
        snapshots.drop(connection, model.path, old)
    connection.execute("VACUUM")
    connection.execute("PRAGMA secure_delete=OFF")


def _empty_log(connection: sqlite3.Connection) -> bool:
    """Empty the log; return False if a reader is using it."""
    connection.execute("PRAGMA busy_timeout=0")
    try:
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.execute(f"PRAGMA busy_timeout={file.BUSY}")
    return not busy


def _reencoded(connection: sqlite3.Connection, model: Model) -> npt.NDArray[np.int64]:
    """Return the items of a migration that are still there."""
    found = reencoded.load(connection, model.path)
    if found is None:
        return np.empty(0, dtype=np.int64)
    if not model.links.track_vectors:
        return found.numbers(None, 0)
    items = found.numbers(model.index, model.links.n_vectors)
    return items[absent.are_there(model.links.core, items)]


def _live(model: Model) -> dict[int, Flags]:
    """Return which rows of each operation are still there."""
    links = model.links
    if not links.track_vectors:
        return {}
    everyone, found = absent.all_there(links.core), {}
    for number, first, end in model.index.stretches(links.n_vectors):
        operation = model.journal.operation(number)
        if operation.verb == journal.LOST:
            continue
        rows = operation.taken()[: end - first]
        flags: Flags = np.zeros(operation.n_rows, dtype=np.bool_)
        flags[rows] = everyone[first:end]
        found[number] = flags
    for epoch in links.core.epochs.standing:
        if epoch.given and model.vectors is not None:
            found[model.vectors.operation_of(epoch).number] = everyone[: epoch.n_vectors]
    return found


def _erase_rows(
    connection: sqlite3.Connection, model: Model, operation: Operation, live: Flags | None
) -> None:
    if not operation.n_rows:
        return
    if not model.links.keep_vectors:
        span = (operation.first_piece, operation.first_piece + operation.n_pieces)
        connection.execute("DELETE FROM vectors WHERE piece >= ? AND piece < ?", span)
    elif live is None or not live.all():
        _zero(connection, model, operation, live)
    if model.links.track_vectors and (live is None or not live.all()):
        _erase_attached(connection, model, operation, live)


def _erase_attached(
    connection: sqlite3.Connection, model: Model, operation: Operation, live: Flags | None
) -> None:
    """Erase what came with the vectors that are gone."""
    gone = np.ones(operation.n_rows, dtype=np.bool_) if live is None else ~live
    if operation.attached & blocks.LIST:
        payloads = model.journal.payloads(operation) or []
        left = [None if out else p for p, out in zip(payloads, gone.tolist(), strict=True)]
        journal.write_list(connection, operation.number, left)
    blocks.write(connection, operation.number, model.journal.attached(operation).without(gone))


def _zero(
    connection: sqlite3.Connection, model: Model, operation: Operation, live: Flags | None
) -> None:
    """Overwrite erased vectors with zeros."""
    size = rows_of_piece(operation.dimension)
    for i in range(operation.n_pieces):
        piece = operation.first_piece + i
        rows = model.journal.piece(operation, piece).copy()
        part = slice(i * size, i * size + len(rows))
        rows[~live[part] if live is not None else slice(None)] = 0.0
        journal.write_piece(connection, piece, rows.tobytes())


def _erase_names(connection: sqlite3.Connection, operation: Operation, names: set[str]) -> None:
    name = operation.arguments.get("name")
    if name is not None and name not in names:
        arguments = {**operation.arguments, "name": None}
        connection.execute("DELETE FROM operations WHERE number = ?", (operation.number,))
        journal.write(connection, replace(operation, arguments=arguments))
