"""The clerk: one thread, the store's own, that decides, writes and answers, in order of arrival.

Whoever calls waits for the answer. What has come while the clerk was writing is decided together
and committed together; nothing is answered before the commit that holds it has returned. A caller
who is interrupted leaves; its call is done wholly or not at all.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

from linkstream.errors import StoreClosedError
from linkstream.store.journal import Operation, Payloads, Rows

_MOST = 64  # calls served at a time


@dataclass(eq=False, slots=True)
class Call:
    """Something asked of the clerk.

    A bare lock tells that it is answered: the clerk can never block on it, whatever has become of
    the one who waits.
    """

    answer: Any = None
    error: BaseException | None = None
    finished: bool = False
    _gate: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._gate.acquire()

    def finish(self) -> None:
        """Let the one who waits go on."""
        if not self.finished:
            self.finished = True
            self._gate.release()

    def result(self) -> Any:
        """The answer, once it is there."""
        self._gate.acquire()
        self._gate.release()
        if self.error is not None:
            raise self.error
        return self.answer


@dataclass(eq=False, slots=True)
class Errand(Call):
    """Anything that must not happen while something is decided or written."""

    work: Callable[[], Any] = lambda: None

    def run(self) -> None:
        """Do it, and say so."""
        try:
            self.answer = self.work()
        except BaseException as error:
            self.error = error
        finally:
            self.finish()


@dataclass(eq=False, slots=True)
class Ticket(Call):
    """A verb of `Links` that changes something.

    `alone`: it needs all that came before to be in the journal. `after`: where that one was
    refused, so is this.
    """

    verb: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    rows: Rows | None = None
    payloads: Payloads | None = None
    key: str | None = None
    digest: bytes | None = None
    crcs: list[int] | None = None  # of the pieces of its vectors, where they are known
    alone: bool = False
    after: Ticket | None = None
    operation: Operation | None = None  # what there is to commit
    ahead: Future[None] | None = None  # its vectors, written while they were decided


Serve = Callable[[list[Call], Callable[[], bool]], None]  # calls, and whether more are waiting


class Clerk:
    """Takes calls, and has them served by a method of the desk; holds no store alive."""

    def __init__(self, serve: Serve) -> None:
        self._queue: SimpleQueue[Call | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._stopped = False
        method = weakref.WeakMethod(serve)
        weakref.finalize(serve.__self__, self._queue.put, None)  # type: ignore[attr-defined]
        self._thread = threading.Thread(
            target=_work, args=(self._queue, method), name="linkstream", daemon=True
        )
        self._thread.start()

    def put(self, call: Call) -> None:
        """Have a call served, after all that came before it."""
        if threading.current_thread() is self._thread:
            raise AssertionError("the clerk must not wait for itself")
        with self._lock:
            if self._stopped:
                raise closed("the store")
            self._queue.put(call)

    def stop(self) -> None:
        """Serve what is there, and no more."""
        with self._lock:
            if not self._stopped:
                self._queue.put(None)
            self._stopped = True
        self._thread.join()


def _work(queue: SimpleQueue[Call | None], method: weakref.WeakMethod[Serve]) -> None:
    while _served(queue, method):
        pass  # between two turns nothing here holds the store alive


def _served(queue: SimpleQueue[Call | None], method: weakref.WeakMethod[Serve]) -> bool:
    """Serve those who wait; False at the end."""
    calls = [queue.get()]
    while len(calls) < _MOST and not queue.empty():
        calls.append(queue.get())
    given = [call for call in calls if call is not None]
    serve = method()
    try:
        if serve is None:
            raise closed("the store")
        serve(given, lambda: not queue.empty())
    except BaseException as error:
        for call in given:
            call.error = call.error or error
            call.finish()
    return len(given) == len(calls)


def closed(path: object) -> StoreClosedError:
    """The error for a store that takes nothing any more."""
    return StoreClosedError(
        f"{path}: closed, or opened by the process that this one was forked from",
        expected="an open store",
        remedy="Open it again: what was acknowledged is there.",
    )
