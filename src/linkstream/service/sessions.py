"""Sessions: the namespaces of a service, each a store of its own with a line of those who wait.

Writers never wait for each other's disk: what has come while the store commits is committed
together (store/commit_loop.py), and each request is answered after the commit that holds it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from collections import defaultdict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from linkstream.errors import LinkstreamError, StoreClosedError
from linkstream.service.answers import Refusal, busy, not_found, too_many
from linkstream.service.live import Live
from linkstream.service.projection import Projection
from linkstream.service.settings import Settings
from linkstream.store import Store
from linkstream.store.write_requests import WriteRequest

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
SUFFIX = ".links"
READERS = 8  # reads that are worked on at a time, in all
READS_MAX = 256  # that wait at a namespace
SESSION = "linkstream.session"  # where a request's namespace stands in its scope
_PER_CALL = 512  # bytes that any call takes

_log = logging.getLogger("linkstream.service")

T = TypeVar("T")


class Mail:
    """Answers on their way from the stores' threads to the event loop, many at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._answers: deque[asyncio.Future[None]] = deque()
        self._posted = False

    def put(self, future: asyncio.Future[None]) -> None:
        """From any thread."""
        self._answers.append(future)
        if not self._posted:
            self._posted = True
            with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits
                self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._posted = False  # first: what comes from now on is posted anew
        while self._answers:
            future = self._answers.popleft()
            if not future.done():
                future.set_result(None)


@dataclass(slots=True)
class Load:
    """What waits: requests and their bytes."""

    calls: int = 0
    size: int = 0


class Session:
    """One namespace: its store, those who wait for it, and what is seen of it live."""

    def __init__(self, name: str, store: Store, sessions: Sessions) -> None:
        self.name, self.store = name, store
        self.load = Load()
        self.live = Live(self)
        self.projection = Projection()
        self.mapping = asyncio.Lock()  # one picture at a time
        self._sessions = sessions
        self._reads = 0
        self._reading = asyncio.Semaphore(READERS // 2)  # the other half is for others

    async def write(self, ticket: WriteRequest, size: int = 0) -> WriteRequest:
        """Have a call done; the ticket with its answer, once that is safe."""
        size += _PER_CALL
        self._sessions.admit(self, size)
        try:
            await self._send(ticket)
            if ticket.error is not None:
                raise ticket.error
        except StoreClosedError as error:
            self._sessions.lose(self, error)
            raise
        finally:
            self._sessions.release(self, size)
        self.live.note(ticket)
        return ticket

    async def _send(self, ticket: WriteRequest) -> None:
        future = self._sessions.loop.create_future()
        mail = self._sessions.mail
        ticket.then = lambda _: mail.put(future)
        self.store.handle.submit(ticket)
        await future

    async def read(self, work: Callable[[Store], T]) -> T:
        """Ask the store something, off the event loop."""
        if self._reads >= READS_MAX:
            raise too_many(f"{self._reads} reads waiting", f"at most {READS_MAX} at a time")
        self._reads += 1
        try:
            async with self._reading:
                return await self._sessions.reading(lambda: work(self.store))
        finally:
            self._reads -= 1


@dataclass(slots=True)
class Sessions:
    """All namespaces under one folder. Each is opened when it is first asked for."""

    settings: Settings
    open: dict[str, Session] = field(default_factory=dict)
    broken: dict[str, LinkstreamError] = field(default_factory=dict)
    held: int = 0  # bytes received and waiting, in all
    readers: int = 0  # of streams of events
    parsing: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    started: float = field(default_factory=time.time)
    loop: asyncio.AbstractEventLoop = field(init=False)
    mail: Mail = field(init=False)
    _making: asyncio.Lock = field(default_factory=asyncio.Lock)
    _opening: dict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    _readers: ThreadPoolExecutor = field(init=False)
    _threads: ThreadPoolExecutor = field(init=False)
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    async def start(self) -> None:
        """Get ready, on the event loop that will serve."""
        self.loop = asyncio.get_running_loop()
        self.mail = Mail(self.loop)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="linkstream-read")
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="linkstream-aside")
        await self.aside(lambda: self.settings.data.mkdir(parents=True, exist_ok=True))
        self.spawn(self._sample())

    async def stop(self) -> None:
        """Close all stores; what was acknowledged is safe in any case."""
        self.stopping.set()
        for task in list(self._tasks):
            task.cancel()
        closing = [self.aside(session.store.close) for session in self.open.values()]
        for failed in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(failed, BaseException):
                _log.error("closing a store: %r", failed)
        self.open.clear()
        for pool in (self._readers, self._threads):
            pool.shutdown(wait=False)

    def spawn(self, work: Any) -> None:
        """Have something done in the background, until the service stops."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aside(self, work: Callable[[], T]) -> T:
        """Have something done that takes time, off the event loop."""
        return await self.loop.run_in_executor(self._threads, work)

    async def reading(self, work: Callable[[], T]) -> T:
        """The same, of what a store is asked."""
        return await self.loop.run_in_executor(self._readers, work)

    # Namespaces

    def path(self, name: str) -> Path:
        """Where the store of a namespace lies; nothing but such names ever becomes a path."""
        if not NAME.fullmatch(name):
            raise not_found(
                f"a namespace called {name!r:.100}",
                "1 to 63 of a–z, 0–9, _ and -, the first a letter or a digit",
                "Choose another name.",
            )
        return self.settings.data / f"{name}{SUFFIX}"

    def names(self) -> list[str]:
        """All namespaces that are there."""
        found = self.settings.data.glob(f"*{SUFFIX}") if self.settings.data.is_dir() else ()
        return sorted(path.stem for path in found if NAME.fullmatch(path.stem))

    async def get(self, name: str) -> Session:
        """A namespace that is there, opened if need be."""
        session = self.open.get(name)
        if session is not None:
            return session
        if not await self.aside(self.path(name).exists):
            raise not_found(
                f"no namespace {name!r}",
                "one that was made",
                "Make it: PUT /v1/namespaces/NAME with thresholds or a preset.",
            )
        async with self._opening[name]:
            return self.open.get(name) or await self._open(name, {})

    async def make(self, name: str, options: dict[str, Any]) -> tuple[Session, bool]:
        """A namespace as described, and whether it is new; ArgumentError where it is another."""
        path = self.path(name)
        async with self._making, self._opening[name]:
            there = await self.aside(path.exists)
            if not there:
                self._check_room(await self.aside(self.names))
                return await self._open(name, options), True
        session = await self.get(name)
        session.store.handle.check_wanted(**options)
        return session, False

    def _check_room(self, names: list[str]) -> None:
        if len(names) >= self.settings.namespaces_max:
            raise Refusal(
                409,
                "too-many",
                f"{len(names)} namespaces",
                expected=f"fewer than {self.settings.namespaces_max}, for one more",
                remedy="Raise namespaces_max, or use one that is there.",
            )

    async def _open(self, name: str, options: dict[str, Any]) -> Session:
        if self.stopping.is_set():
            raise busy("a service that is stopping", "one that goes on")
        path = self.path(name)
        running: dict[str, Any] = {"engine": self.settings.engine, "threads": self.settings.threads}
        try:
            store = await self.aside(lambda: Store.open(path, **running, **options))
        except LinkstreamError as error:
            if not options:
                self.broken[name] = error
            raise
        self.broken.pop(name, None)
        session = self.open[name] = Session(name, store, self)
        return session

    def lose(self, session: Session, error: LinkstreamError) -> None:
        """A store that takes no more is closed; the next request opens it again."""
        if self.open.get(session.name) is session and not self.stopping.is_set():
            del self.open[session.name]
            _log.error("namespace %s is opened again: %s", session.name, error)
            self.spawn(self.aside(session.store.close))

    # Bounds

    def hold(self, session: Session | None, size: int) -> None:
        """Take room for bytes that have come; 429 or 503 where there is none."""
        settings = self.settings
        if session is not None and session.load.size + size > settings.queue_bytes:
            seen = f"{session.load.size} bytes received and waiting at {session.name!r}"
            raise too_many(seen, f"at most {settings.queue_bytes}")
        if self.held + size > settings.total_bytes:
            seen = f"{self.held} bytes received and waiting in all"
            raise busy(seen, f"at most {settings.total_bytes}")
        self.let_go(session, -size)

    def let_go(self, session: Session | None, size: int) -> None:
        """Give the room of bytes back."""
        self.held -= size
        if session is not None:
            session.load.size -= size

    def check_line(self, session: Session) -> None:
        """429 where no more calls may wait."""
        most = self.settings.queue_calls
        if session.load.calls >= most:
            seen = f"{session.load.calls} requests waiting at {session.name!r}"
            raise too_many(seen, f"at most {most}")

    def admit(self, session: Session, size: int) -> None:
        """Take room for a call while it waits."""
        self.check_line(session)
        self.hold(session, size)
        session.load.calls += 1

    def release(self, session: Session, size: int) -> None:
        """Give the room of a call back."""
        session.load.calls -= 1
        self.let_go(session, size)

    async def _sample(self) -> None:
        """Look at what has changed, each second, for the curves of the page."""
        while True:
            await asyncio.sleep(1.0)
            for session in list(self.open.values()):
                with contextlib.suppress(LinkstreamError, Refusal):
                    await session.live.sample()
