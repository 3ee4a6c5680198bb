"""The writer thread: one thread for each open store decides, writes and answers calls in order.

Callers wait for their answers. Calls that arrive during a commit are decided and committed
together. No call is answered before the commit that holds it has returned. If a caller is
interrupted, its call is done completely or not at all.
"""

from __future__ import annotations

import mmap
import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeVar

from linkstream.errors import StoreClosedError
from linkstream.store.write_requests import Call, Task

_CALLS_MAX = 64  # calls served together
_STACK = 8 << 20  # bytes of address space that Linux gives the stack of a thread
_BEGINNING = 1 << 20  # bytes a thread may need before it runs

T = TypeVar("T")


class Queues:
    """Two queues: calls in order of arrival, and urgent tasks that run before them."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[Call | None] = SimpleQueue()  # None marks the end
        self.ended = False  # whether the end marker was taken from the queue
        self._urgent: SimpleQueue[Task] = SimpleQueue()
        self._running: Task | None = None  # an urgent task

    def put_urgent(self, task: Task) -> None:
        """Add a task to run before all waiting calls."""
        self._urgent.put(task)
        self.calls.put(Task())  # wakes the writer thread

    def next_urgent(self) -> Task | None:
        """Return the next urgent task; None if there is none."""
        self._running = None if self._urgent.empty() else self._urgent.get()
        return self._running

    def fail_urgent(self, error: BaseException) -> None:
        """Answer the urgent tasks that are running or waiting with an error."""
        task = self._running if self._running is not None else self.next_urgent()
        while task is not None:
            if not task.finished:
                task.error = task.error or error
                task.finish()
            task = self.next_urgent()


Serve = Callable[[list[Call], Queues], None]


class WriterThread:
    """Take calls from a queue and serve them with a bound method of the commit loop.

    The thread holds only a weak reference to that method, so that an open store which nobody
    references any more can be garbage-collected.
    """

    def __init__(self, serve: Serve) -> None:
        self._queues = Queues()
        self._lock = threading.Lock()
        self._stopped = False
        method = weakref.WeakMethod(serve)
        weakref.finalize(serve.__self__, self._queues.calls.put, None)  # type: ignore[attr-defined]
        self._thread = threading.Thread(
            target=_serve_until_end, args=(self._queues, method), name="linkstream", daemon=True
        )
        start(self._thread)

    def put(self, call: Call, *, urgent: bool = False) -> None:
        """Queue a call; an urgent task comes before all waiting calls."""
        if threading.current_thread() is self._thread:
            raise AssertionError("the writer thread must not wait for itself")
        with self._lock:
            if self._stopped:
                raise closed_error("the store")
            if urgent and isinstance(call, Task):
                self._queues.put_urgent(call)
            else:
                self._queues.calls.put(call)

    def run(self, work: Callable[[], T], *, urgent: bool = False) -> T:
        """Run a function on the writer thread, between two commits; return its result."""
        task = Task(work=work)
        self.put(task, urgent=urgent)
        answer: T = task.result()
        return answer

    def close(self) -> None:
        """Serve the calls that are queued, then end the thread."""
        with self._lock:
            if not self._stopped:
                self._queues.calls.put(None)
            self._stopped = True
        self._thread.join()


def start(thread: threading.Thread) -> None:
    """Start a thread; raise MemoryError if the system does not allow another one.

    `Thread.start` waits for ever for a thread that has no memory to begin. Therefore its memory
    is taken and given back just before.
    """
    try:
        mmap.mmap(-1, (threading.stack_size() or _STACK) + _BEGINNING).close()
        thread.start()
    except (RuntimeError, OSError) as error:
        raise MemoryError(str(error)) from error


def _serve_until_end(queues: Queues, method: weakref.WeakMethod[Serve]) -> None:
    """Serve calls until the end marker. No error ends the thread, since callers wait for it.

    Apart from `serve`, nothing here allocates memory: there may be none left.
    """
    taken: list[Call | None] = [None] * _CALLS_MAX  # calls are never lost between queue and answer
    while not queues.ended:  # between two rounds nothing here references the store
        try:
            _take(queues, taken)
            _serve(queues, method, taken)
        except BaseException as error:  # noqa: PERF203
            _clear(taken, error)
            queues.fail_urgent(error)


def _take(queues: Queues, taken: list[Call | None]) -> None:
    """Take waiting calls from the queue; wait for the first one."""
    count = 0
    while count == 0 or (count < _CALLS_MAX and not queues.calls.empty()):
        call = queues.calls.get()
        if call is None:
            queues.ended = True
            return
        taken[count] = call
        count += 1


def _serve(queues: Queues, method: weakref.WeakMethod[Serve], taken: list[Call | None]) -> None:
    calls = [call for call in taken if call is not None]
    serve = method()
    if serve is None:
        raise closed_error("the store")
    serve(calls, queues)
    _clear(taken, None)  # they are answered, or will be when their commit ends


def _clear(taken: list[Call | None], error: BaseException | None) -> None:
    """Drop the calls that were taken; with an error, answer the open ones with that error."""
    index = 0
    while index < _CALLS_MAX:
        call = taken[index]
        taken[index] = None
        if error is not None and call is not None and not call.finished:
            call.error = call.error or error
            call.finish()
        index += 1


def closed_error(path: object) -> StoreClosedError:
    """Return the error for a store that accepts no more calls."""
    return StoreClosedError(
        f"{path}: closed, or opened by the parent process of this one",
        expected="an open store",
        remedy="Open the store again. Everything that was acknowledged is there.",
    )
