"""The commit loop: decide calls in order, write them in group commits, then answer.

Only the writer thread runs this code. Vectors are the largest part of a write, and their bytes are
known before the decisions: a second thread, that of the journal writer, writes large batches while
they are being decided, and commits while the next calls are decided.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from linkstream.errors import IdempotencyError, LinkstreamError, StoreClosedError, StoreError
from linkstream.store import blocks, digests, file, journal, search_index
from linkstream.store.blocks import NOTHING, Attached
from linkstream.store.journal import Operation, decoded
from linkstream.store.model import Model
from linkstream.store.write_requests import Call, Task, WriteRequest
from linkstream.store.writer_thread import Queues

LARGE = 1 << 18  # bytes of vectors: smaller writes are not worth a second thread
REPLAY_OVERHEAD = 5e-5  # seconds that replaying an operation takes besides deciding it
_COMMITS_MAX = 2  # commits that may run at the same time as deciding
_ROWS_TOGETHER = 4096  # vectors of several calls that are decided in one batch
_BYTES_TOGETHER = LARGE  # bytes of vectors of one of these calls

T = TypeVar("T")


class CommitLoop:
    """Decides calls on the model and commits them through the journal writer.

    Attributes:
        model: the model; it includes all calls that were decided.
        failure: the error after which the store accepts no more writes; None if there was none.
        replay_seconds: estimated time to replay the operations since the last snapshot.
        log_bytes: bytes written since SQLite's log was last checkpointed.
        unsaved_bytes: bytes written since the last snapshot.
        after_commit: a function that runs after each commit; its errors are ignored.
    """

    def __init__(
        self, path: Path, load: Callable[[], Model], connection: sqlite3.Connection | None
    ) -> None:
        self._path, self._load = path, load
        self.model = load()
        self.failure: BaseException | None = None
        self.replay_seconds = self.log_bytes = self.unsaved_bytes = 0.0
        self.after_commit: Callable[[], None] = lambda: None
        self._writer = None if connection is None else JournalWriter(connection)
        self._commits: deque[Future[None]] = deque()
        self._file_identity = file.identity(path)
        self._stale = False  # the model holds calls that were not committed
        self._pending: dict[str, WriteRequest] = {}  # by key: decided and not yet committed

    def serve(self, calls: list[Call], queues: Queues) -> None:
        """Answer calls in order; commit them together where possible.

        While other calls wait, large groups are committed in the background.
        """
        group: list[WriteRequest] = []
        for run in runs(calls):
            call = run[0]
            while (task := queues.next_urgent()) is not None:
                self._commit(group)
                task.run()
            if isinstance(call, WriteRequest) and not call.alone:
                self._decide_run(run, group)
                continue
            self._commit(group)
            if isinstance(call, Task):
                call.run()
            elif isinstance(call, WriteRequest):
                self._decide(call, group)
                self._commit(group)
        if queues.calls.empty() or not _is_large(group) or not self._commit_beside(group):
            self._commit(group)

    def _commit_beside(self, group: list[WriteRequest]) -> bool:
        """Commit a group while the next calls are decided; return False if that is impossible."""
        self._wait_for_commits(_COMMITS_MAX - 1)
        work = lambda: self._write_and_answer(group)  # noqa: E731
        running = None if self._writer is None else self._writer.submit(work)
        if running is not None:
            self._commits.append(running)
        return running is not None

    def _commit(self, group: list[WriteRequest]) -> None:
        """Commit a group and everything before it; the group is empty then."""
        self._wait_for_commits(0)
        self._write_and_answer(group)
        group.clear()

    def _wait_for_commits(self, left: int) -> None:
        """Wait until at most `left` commits are running."""
        while len(self._commits) > left:
            self._commits.popleft().result()

    def read(self, work: Callable[[Model], T]) -> T:
        """Call a function with the model, which holds exactly what was acknowledged."""
        if self._stale:
            self.reload()
        with file.guarded(self._path):
            return work(self.model)

    def reload(self) -> None:
        """Load the model from the file again."""
        self.model = self._load()
        self._stale = False

    def fail(self, error: BaseException) -> None:
        """Accept no more writes, since the model is ahead of the file."""
        self.failure = self.failure or error
        self._stale = True

    def check_usable(self) -> None:
        """Raise StoreClosedError after a failed write."""
        if isinstance(self.failure, MemoryError):
            what = f" ({self.failure})" if str(self.failure) else ""
            raise StoreClosedError(
                f"{self._path}: memory ran out during a write{what}",
                expected="enough memory to decide and write a call",
                remedy="Free memory or raise the limit, then open the store again: everything "
                "that was acknowledged is there.",
            )
        if self.failure is not None:
            raise StoreClosedError(
                f"{self._path}: a write failed ({self.failure!r:.200})",
                expected="a disk that accepts writes",
                remedy="The store can only be read now. Open it again: everything that was "
                "acknowledged is there.",
            )

    def close(self) -> None:
        """Finish the running commits and stop the journal writer."""
        self._wait_for_commits(0)
        if self._writer is not None:
            self._writer.close()

    # Decide

    def _decide_run(self, run: list[WriteRequest], group: list[WriteRequest]) -> None:
        """Decide requests, in one batch if the result is the same."""
        if len(run) > 1 and self.failure is None and self._decided_together(run):
            group.extend(run)
            return
        for request in run:
            self._decide(request, group)

    def _decided_together(self, run: list[WriteRequest]) -> bool:
        """Return whether the requests were decided in one batch; if not, nothing has changed."""
        if any(self._is_known(request) for request in run) or self.model.may_have(run):
            return False
        start = time.perf_counter()
        try:
            self.model.decide_together(run)
        except BaseException as error:
            if isinstance(error, (LinkstreamError, ValueError)) and not self.model.moved:
                return False  # decide each alone, so that each gets its own error
            self.fail(error)
            for request in run:
                request.error = error
        self._pending |= {request.key: request for request in run if request.key is not None}
        self.replay_seconds += time.perf_counter() - start + REPLAY_OVERHEAD * len(run)
        return True

    def _is_known(self, request: WriteRequest) -> bool:
        key = request.key
        return key is not None and (key in self._pending or bool(self.model.index.under(key)))

    def _decide(self, request: WriteRequest, group: list[WriteRequest]) -> None:
        """Decide one request and add it to the group; store the error if it is refused."""
        if self.model.may_have([request]):  # keys are compared with those in the file
            self._commit(group)
        group.append(request)
        start = time.perf_counter()
        try:
            self.check_usable()
            before, request.after = request.after, None
            if before is not None and before.error is not None:
                raise before.error
            if not self._answered_before(request):
                self._decide_new(request)
        except StoreError as error:  # the journal could not be read: the model may be incomplete
            self.fail(error)
            request.error = error
        except LinkstreamError as error:
            request.error = error
            if self.model.moved:  # a refusal must come before any change; this one did not
                self.fail(error)
        except BaseException as error:
            self.fail(error)
            request.error = error
        self.replay_seconds += time.perf_counter() - start + REPLAY_OVERHEAD

    def _decide_new(self, request: WriteRequest) -> None:
        assert self._writer is not None, "a read-only store takes no write requests"
        number = self.model.number + 1
        self._writer.write_ahead(request, number, self.model.next_piece)
        try:
            self.model.decide(request)
        except BaseException:
            self._writer.take_back(request, number)
            raise
        if request.key is not None:
            self._pending[request.key] = request

    def _answered_before(self, request: WriteRequest) -> bool:
        """Return whether the call was made before under its key; if so, set its first answer."""
        if request.key is None:
            return False
        pending = self._pending.get(request.key)
        found = None if pending is None else pending.operation
        found = found or self.model.done(request.key)  # it may just have been committed
        if found is None or (request.renew and not self.model.left_of(found)):
            return False
        given = NOTHING if pending is None else pending.attached
        known = given.flags == found.attached  # else it was committed and dropped just now
        stored = (lambda: given) if known else (lambda: self.model.journal.attached(found))
        _check_same_call(request, found, stored)
        request.answer, request.first = self.model.told(decoded(found)), found.first_vector
        request.events = found.first_event, found.first_event + len(found.events)
        return True

    # Write

    def _write_and_answer(self, group: list[WriteRequest]) -> None:
        try:
            self._write(group)
        except BaseException as error:
            self.fail(error)
            for request in group:
                request.error = request.error or error
        for request in group:
            if request.key is not None and self._pending.get(request.key) is request:
                del self._pending[request.key]
            request.rows = request.operation = request.ahead = request.prepared = None
            request.attached = NOTHING
            request.finish()

    def _write(self, group: list[WriteRequest]) -> None:
        if self._writer is None or not group:
            return
        if self._stale:  # an earlier write failed, and what was decided since depends on it
            self._writer.roll_back(group)
            self.check_usable()
        if all(request.operation is None for request in group):
            self._writer.roll_back(group)
            return
        try:
            file.check_same(self._path, self._file_identity)
            size = self._writer.commit(group)
        except (sqlite3.Error, StoreError) as error:
            self._writer.roll_back(group)
            self.fail(error)
            self.check_usable()
        self.log_bytes += size
        self.unsaved_bytes += size
        with contextlib.suppress(Exception):  # maintenance can run later; the commit is done
            self.after_commit()


class JournalWriter:
    """Writes groups of requests, each in one transaction; the only code that adds to the journal.

    Work that is submitted runs on a thread of its own, in order.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._pool: ThreadPoolExecutor | None = None
        self._has_begun = False  # a transaction that this writer began is open

    def submit(self, work: Callable[[], None]) -> Future[None] | None:
        """Run a function on the thread of the journal writer; None if none can be started."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="linkstream-journal")
        try:
            return self._pool.submit(work)
        except RuntimeError:  # too little memory for a thread, or too many threads
            self._pool = None  # the work waits in its queue: no thread may ever take it
            return None

    def write_ahead(self, request: WriteRequest, operation: int, first_piece: int) -> None:
        """Start to write large vectors that are about to be decided, if a thread can do it.

        What came with them is written, too.
        """
        if request.rows is not None and request.rows.nbytes >= LARGE:
            work = lambda: self._write_vectors(request, operation, first_piece)  # noqa: E731
            request.ahead = self.submit(work)

    def _write_vectors(self, request: WriteRequest, operation: int, first_piece: int) -> None:
        assert request.rows is not None
        self._begin()
        block = journal.VectorBlock(first_piece, request.rows, request.crcs)
        journal.write_vectors(self._connection, block)
        blocks.write(self._connection, operation, request.attached)

    def take_back(self, request: WriteRequest, operation: int) -> None:
        """Delete what was written ahead with the vectors of a request that is refused."""
        written = request.ahead
        if written is None or not request.attached.flags:
            return

        def work() -> None:
            written.result()
            blocks.delete_from(self._connection, operation)

        request.ahead = self.submit(work)

    def commit(self, group: list[WriteRequest]) -> int:
        """Write a group completely or not at all; return the approximate number of bytes."""
        decided = [request for request in group if request.operation is not None]
        try:
            _wait_for_vectors(group)
            self._begin()
            size = self._write(decided)
            self._delete_refused(group, decided[-1])
            self._connection.execute("COMMIT")
            self._has_begun = False
        except BaseException:
            self.roll_back(group)
            raise
        return size

    def roll_back(self, group: list[WriteRequest]) -> None:
        """Leave the file as it was before a group."""
        with contextlib.suppress(BaseException):  # the first error is the one to report
            _wait_for_vectors(group)
        self._has_begun = False
        if self._connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """Stop the thread of the journal writer."""
        if self._pool is not None:
            self._pool.shutdown()

    def _begin(self) -> None:
        if not (self._has_begun and self._connection.in_transaction):
            file.begin(self._connection)
        self._has_begun = True

    def _delete_refused(self, group: list[WriteRequest], last: WriteRequest) -> None:
        """Delete vectors that were written ahead and then refused; they follow all others."""
        if any(request.ahead is not None and request.operation is None for request in group):
            assert last.operation is not None
            end = last.operation.first_piece + last.operation.n_pieces
            self._connection.execute("DELETE FROM vectors WHERE piece >= ?", (end,))

    def _write(self, decided: list[WriteRequest]) -> int:
        """Write a group table by table; return the approximate number of bytes."""
        operations = [request.operation for request in decided if request.operation is not None]
        vectors = [
            journal.VectorBlock(operation.first_piece, request.rows, request.crcs)
            for request, operation in zip(decided, operations, strict=True)
            if request.rows is not None and request.ahead is None
        ]
        journal.write_vectors(self._connection, *vectors)
        for request, operation in zip(decided, operations, strict=True):
            if request.ahead is None:
                blocks.write(self._connection, operation.number, request.attached)
        self._index(decided, operations)
        journal.write(self._connection, *operations)
        for request in decided:
            if request.within is not None:
                request.within(self._connection)
        rows = sum(request.rows.nbytes for request in decided if request.rows is not None)
        events = sum(operation.events.nbytes for operation in operations)
        attached = sum(request.attached.n_bytes() for request in decided)
        return 2 * file.PAGE * len(decided) + rows + events + attached

    def _index(self, decided: list[WriteRequest], operations: list[Operation]) -> None:
        """Add the payloads of a group to the search index, if there is one."""
        pairs = [
            (operation.number, request.attached.payloads)
            for request, operation in zip(decided, operations, strict=True)
        ]
        if any(lines for _, lines in pairs) and search_index.exists(self._connection):
            for number, lines in pairs:
                search_index.write(self._connection, number, lines or [])


def runs(calls: list[Call]) -> Iterator[list[Any]]:
    """Yield calls in order; successive calls that only add vectors come as one list."""
    run: list[WriteRequest] = []
    for call in calls:
        if not isinstance(call, WriteRequest) or not _only_adds(call):
            if run:
                yield run
            run = []
            yield [call]
            continue
        keys = {request.key for request in run} - {None}
        if call.key in keys or sum(map(_n_rows, run)) + _n_rows(call) > _ROWS_TOGETHER:
            yield run
            run = []
        run.append(call)
    if run:
        yield run


def _only_adds(request: WriteRequest) -> bool:
    """Return whether a request adds some vectors of full weight and depends on no other."""
    if request.verb not in ("add", "add_many") or request.rows is None or request.arguments:
        return False
    return request.check is None and request.after is None and request.rows.nbytes < _BYTES_TOGETHER


def _n_rows(request: WriteRequest) -> int:
    return 0 if request.rows is None else len(request.rows)


def _is_large(group: list[WriteRequest]) -> bool:
    return sum(0 if request.rows is None else request.rows.nbytes for request in group) >= LARGE


def _wait_for_vectors(group: list[WriteRequest]) -> None:
    for request in group:
        if request.ahead is not None:
            request.ahead.result()


def _check_same_call(
    request: WriteRequest, found: Operation, stored: Callable[[], Attached]
) -> None:
    """Raise IdempotencyError if a key was used for another call."""
    given, before = (
        (verb, {name: value for name, value in arguments.items() if name not in request.told})
        for verb, arguments in ((request.verb, request.arguments), (found.verb, found.arguments))
    )
    parts = request.rows, request.attached, request.told
    if given != before or not digests.same(*parts, found, stored):
        raise IdempotencyError(
            f"idempotency_key={request.key!r}, which operation {found.number} used for another "
            "call",
            expected="the same call as before",
            remedy="Use a new key for each call.",
        )
