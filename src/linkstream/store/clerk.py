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

from linkstream.engine.contract import Decisions
from linkstream.errors import StoreClosedError
from linkstream.store.journal import Operation, Payloads, Rows

_MOST = 64  # calls served at a time


@dataclass(eq=False, slots=True)
class Call:
    """Something asked of the clerk.

    A bare lock tells that it is answered: the clerk can never block on it, whatever has become of
    the one who waits. `then` is called by whoever answers, for one who does not wait.
    """

    answer: Any = None
    error: BaseException | None = None
    finished: bool = False
    then: Callable[[Call], None] | None = None
    _gate: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._gate.acquire()

    def finish(self) -> None:
        """Let the one who waits go on."""
        if not self.finished:
            self.finished = True
            self._gate.release()
            if self.then is not None:
                self.then(self)

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
class OpenStep:
    """Calls that belong together, under way; `first` is the number of the first of them."""

    command: str
    first: int = 0


@dataclass(eq=False, slots=True)
class Ticket(Call):
    """A verb of `Links` that changes something.

    `alone`: it needs all that came before to be in the journal. `after`: where that one was
    refused, so is this. `check`: asked of the event number that would come next; may refuse.
    """

    verb: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    rows: Rows | None = None
    payloads: Payloads | None = None
    key: str | None = None
    digest: bytes | None = None
    crcs: list[int] | None = None  # of the pieces of its vectors, where they are known
    alone: bool = False
    step: OpenStep | None = None  # what it is a part of
    renew: bool = False  # made before under its key, and undone since, it is made again
    after: Ticket | None = None
    check: Callable[[int], None] | None = None
    first: int = -1  # the number that the first of its vectors got
    events: tuple[int, int] = (-1, -1)  # the number of its first event, and of the next one's
    decisions: Decisions | None = None  # on its vectors, where they were decided just now
    operation: Operation | None = None  # what there is to commit
    ahead: Future[None] | None = None  # its vectors, written while they were decided


class Queues:
    """Who waits: in order of arrival; and errands that come before all of them."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[Call | None] = SimpleQueue()
        self.over = False  # the last call was taken
        self._first: SimpleQueue[Errand] = SimpleQueue()

    def put(self, call: Call | None) -> None:
        """At the end of the line."""
        self.calls.put(call)

    def put_first(self, errand: Errand) -> None:
        """Before all others, as soon as what is being decided is decided."""
        self._first.put(errand)
        self.calls.put(Errand())  # wakes the clerk

    def first(self) -> Errand | None:
        """An errand that comes before all others."""
        return None if self._first.empty() else self._first.get()

    def waiting(self) -> bool:
        """Whether somebody waits."""
        return not self.calls.empty()


Serve = Callable[[list[Call], Queues], None]


class Clerk:
    """Takes calls, and has them served by a method of the desk; holds no store alive."""

    def __init__(self, serve: Serve) -> None:
        self._queues = Queues()
        self._lock = threading.Lock()
        self._stopped = False
        method = weakref.WeakMethod(serve)
        weakref.finalize(serve.__self__, self._queues.put, None)  # type: ignore[attr-defined]
        self._thread = threading.Thread(
            target=_work, args=(self._queues, method), name="linkstream", daemon=True
        )
        self._thread.start()

    def put(self, call: Call, *, first: bool = False) -> None:
        """Have a call served, after all that came before it; or an errand before all others."""
        if threading.current_thread() is self._thread:
            raise AssertionError("the clerk must not wait for itself")
        with self._lock:
            if self._stopped:
                raise closed("the store")
            if first and isinstance(call, Errand):
                self._queues.put_first(call)
            else:
                self._queues.put(call)

    def stop(self) -> None:
        """Serve what is there, and no more."""
        with self._lock:
            if not self._stopped:
                self._queues.put(None)
            self._stopped = True
        self._thread.join()


def _work(queues: Queues, method: weakref.WeakMethod[Serve]) -> None:
    """Serve until the end. No error ends the thread before: callers wait for it.

    What is done with calls apart from serving them takes no memory: there may be none.
    """
    taken: list[Call | None] = [None] * _MOST  # what was taken from the queue is never lost
    while not queues.over:  # between two turns nothing here holds the store alive
        try:
            _take(queues, taken)
            _serve(queues, method, taken)
        except BaseException as error:  # noqa: PERF203
            _let_go(taken, error)


def _take(queues: Queues, taken: list[Call | None]) -> None:
    """Take those who wait, at least one."""
    place = 0
    while place == 0 or (place < _MOST and not queues.calls.empty()):
        call = queues.calls.get()
        if call is None:
            queues.over = True
            return
        taken[place] = call
        place += 1


def _serve(queues: Queues, method: weakref.WeakMethod[Serve], taken: list[Call | None]) -> None:
    given = [call for call in taken if call is not None]
    serve = method()
    if serve is None:
        raise closed("the store")
    serve(given, queues)
    _let_go(taken, None)  # they are answered, or will be when they are written


def _let_go(taken: list[Call | None], error: BaseException | None) -> None:
    """Forget those who were taken; with an error, let all go on who were not answered."""
    place = 0
    while place < _MOST:
        call = taken[place]
        taken[place] = None
        if error is not None and call is not None and not call.finished:
            call.error = call.error or error
            call.finish()
        place += 1


def closed(path: object) -> StoreClosedError:
    """The error for a store that takes nothing any more."""
    return StoreClosedError(
        f"{path}: closed, or opened by the process that this one was forked from",
        expected="an open store",
        remedy="Open it again: what was acknowledged is there.",
    )
