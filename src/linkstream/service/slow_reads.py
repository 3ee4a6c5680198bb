"""Slow reads: questions that look at all clusters of a namespace, such as reviews and the map.

Equal questions about one version of a namespace are computed once, for all who ask. A computation
ends early when nobody waits for it any more. All slow reads together are bounded: threads, waiting
questions and memory; beyond the bounds they are refused with 503. Writes and other reads have
threads of their own.

Everything here runs on the event loop, except `_run`, which runs on a thread for each computation.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from starlette.requests import ClientDisconnect

from linkstream.errors import LinkstreamError
from linkstream.service.responses import Refusal, busy

if TYPE_CHECKING:
    from linkstream.service.settings import Settings

CACHED = 16 << 20  # bytes of finished answers that are kept
RETRY = 5  # seconds for Retry-After of a refused question

Receive = Callable[[], Any]


class Namespace(Protocol):
    """A namespace that questions are about; `version` rises with each change."""

    serial: int  # differs for each opening of a namespace

    @property
    def version(self) -> int:
        """The number of changes so far."""


class Cancelled(Exception):  # noqa: N818  # not a failure: nobody waits for the answer
    """Ends a computation that nobody waits for any more."""


class Cancel:
    """Tells a computation when to end. It may be called from any thread.

    Pass it as `stop`, a function that returns True once the work should end, or pass `check` as
    `progress`, a function that raises to end the work.
    """

    __slots__ = ("wanted",)

    def __init__(self) -> None:
        self.wanted = False

    def __call__(self) -> bool:
        """Return whether to end."""
        return self.wanted

    def check(self, share: float = 0.0) -> None:
        """Raise Cancelled if the computation should end; `share` is ignored."""
        if self.wanted:
            raise Cancelled


Work = Callable[[Cancel], bytes]
Key = tuple[int, Hashable]  # the serial number of a namespace, and the question


@dataclass(slots=True, eq=False)
class Question:
    """One computation, and the requests that wait for its answer.

    Attributes:
        key: equal for equal questions.
        work: computes the body of the answer.
        size: the bytes of memory that the work may use.
        answer: the body, or an error.
        version: the version of the namespace when the work began; None while it waits.
        asking: how many requests wait for the answer.
    """

    namespace: Namespace
    key: Key
    work: Work
    size: int
    answer: asyncio.Future[bytes]
    cancel: Cancel = field(default_factory=Cancel)
    version: int | None = None
    asking: int = 0


class SlowReads:
    """The slow reads of all namespaces, running and waiting."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.waiting: list[Question] = []  # in order of arrival
        self.running: set[Question] = set()
        self.computed = self.shared = self.refused = 0  # since the start
        self._stopping = False
        self._answers: dict[Key, tuple[int, bytes]] = {}  # with their versions, oldest first

    @property
    def used(self) -> int:
        """Bytes of memory that running questions may use."""
        return sum(question.size for question in self.running)

    async def ask(
        self, namespace: Namespace, key: Hashable, work: Work, size: int, receive: Receive
    ) -> bytes:
        """Return the answer to a question; share the work with equal questions.

        Args:
            namespace: what the question is about.
            key: equal for equal questions about a namespace.
            work: computes the answer, on a thread.
            size: the bytes of memory that the work may use.
            receive: the ASGI channel of the request, which tells when the client has gone.

        Raises:
            Refusal: 503; too many questions wait, or the work needs too much memory.
            ClientDisconnect: the client has gone.
        """
        found = self._answers.get((namespace.serial, key))
        if found is not None and found[0] == namespace.version:
            self.shared += 1
            return found[1]
        question = self._same(namespace, key) or self._add(namespace, key, work, size)
        question.asking += 1
        try:
            return await _unless_gone(question.answer, receive)
        finally:
            question.asking -= 1
            if not question.asking:
                self._drop(question)

    def stop(self) -> None:
        """End all questions, and refuse new ones."""
        self._stopping = True
        for question in (*self.waiting, *self.running):
            question.cancel.wanted = True
            if not question.answer.done():
                question.answer.set_exception(_stopping())
        self.waiting.clear()

    # Asking

    def _same(self, namespace: Namespace, key: Hashable) -> Question | None:
        """Return an equal question whose answer will be as new as this moment."""
        for question in (*self.running, *self.waiting):
            current = question.version in (None, namespace.version) and not question.cancel.wanted
            if current and question.key == (namespace.serial, key) and not question.answer.done():
                self.shared += 1
                return question
        return None

    def _add(self, namespace: Namespace, key: Hashable, work: Work, size: int) -> Question:
        self.check_room(namespace, size, self._settings.slow_bytes)
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        question = Question(namespace, (namespace.serial, key), work, size, answer)
        self.waiting.append(question)
        self._start_next()
        return question

    def check_room(self, namespace: Namespace, size: int, most: int) -> None:
        """Refuse a question that would exceed a bound; one namespace may use half of the queue.

        `most` is how many bytes it may use.
        """
        if self._stopping:
            raise _stopping()
        settings = self._settings
        mine = sum(each.namespace is namespace for each in self.waiting)
        calls = settings.slow_calls
        if size > most:
            self.refused += 1
            raise _too_big(size, most)
        if len(self.waiting) >= calls or mine >= max(1, calls // 2):
            self.refused += 1
            seen = f"{len(self.waiting)} slow reads waiting, {mine} of them at this namespace"
            expected = f"fewer than {calls}, half of them at one namespace"
            refusal = busy(seen, expected)
            refusal.headers["Retry-After"] = str(RETRY)
            raise refusal

    def _drop(self, question: Question) -> None:
        """End a question that nobody waits for; its thread may need a moment to notice."""
        question.cancel.wanted = True
        if not question.answer.cancel() and not question.answer.cancelled():
            question.answer.exception()  # asyncio would report one that nobody has seen
        if question in self.waiting:
            self.waiting.remove(question)

    # Computing

    def _start_next(self) -> None:
        """Start waiting questions while there are threads and memory for them.

        Of equal questions one runs at a time, even about two versions.
        """
        while len(self.running) < self._settings.slow_threads:
            running = {question.key for question in self.running}
            free = [question for question in self.waiting if question.key not in running]
            question = min(free, key=self.turn, default=None)
            if question is None or self.used + question.size > self._settings.slow_bytes:
                return
            self.waiting.remove(question)
            self._start(question)

    def turn(self, question: Question) -> int:
        """Return how many questions about the same namespace run; the fewest come first."""
        return sum(each.namespace is question.namespace for each in self.running)

    def _start(self, question: Question) -> None:
        question.version = question.namespace.version
        self.running.add(question)
        self.computed += 1
        loop = asyncio.get_running_loop()
        thread = threading.Thread(
            target=self._run, args=(question, loop), name="linkstream-slow", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:  # the system allows no more threads
            self._finish(question, None, busy(str(error), "a thread for the question"))

    def _run(self, question: Question, loop: asyncio.AbstractEventLoop) -> None:
        body, failure = None, None
        try:
            question.cancel.check()
            body = question.work(question.cancel)
        except BaseException as error:
            failure = error
        with contextlib.suppress(RuntimeError):  # the event loop has ended
            loop.call_soon_threadsafe(self._finish, question, body, failure)

    def _finish(self, question: Question, body: bytes | None, error: BaseException | None) -> None:
        self.running.discard(question)
        if body is not None:
            self._keep(question, body)
        if isinstance(error, MemoryError) and not isinstance(error, LinkstreamError):
            error = busy("memory that ran out in a slow read", "enough memory")
        if not question.answer.done():
            if body is not None:
                question.answer.set_result(body)
            else:
                question.answer.set_exception(error or Cancelled())
        if not self._stopping:
            self._start_next()

    def _keep(self, question: Question, body: bytes) -> None:
        """Keep an answer for as long as the namespace does not change, if there is room."""
        assert question.version is not None
        self._answers.pop(question.key, None)
        if question.version != question.namespace.version or len(body) > CACHED // 4:
            return
        self._answers[question.key] = question.version, body
        while sum(len(kept) for _, kept in self._answers.values()) > CACHED:
            del self._answers[next(iter(self._answers))]


async def _unless_gone(answer: asyncio.Future[bytes], receive: Receive) -> bytes:
    """Wait for an answer that others wait for, too; raise ClientDisconnect if the client goes."""
    if not answer.done():
        gone = asyncio.ensure_future(disconnected(receive))
        try:
            await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
        if not answer.done():
            raise ClientDisconnect
    return answer.result()


async def disconnected(receive: Receive) -> None:
    """Wait until the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _stopping() -> Refusal:
    return busy("a service that is stopping", "a running service")


def _too_big(size: int, most: int) -> Refusal:
    refusal = Refusal(
        503,
        "busy",
        f"a slow read that may need {size >> 20} MiB of memory",
        expected=f"at most {most >> 20} MiB, within the slow_bytes of all slow reads",
        remedy="Ask the operator to raise slow_bytes, or ask for less.",
    )
    refusal.headers["Retry-After"] = str(RETRY)
    return refusal
