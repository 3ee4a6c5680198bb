"""Sessions: the namespaces of a service, each a store with a bounded queue of requests.

Requests that arrive while a store commits are committed together, and each is answered after the
commit that holds it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import re
import time
from collections import defaultdict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from starlette.requests import Request

from linkstream.errors import LinkstreamError, StoreClosedError
from linkstream.service.activity_index import ActivityIndex
from linkstream.service.health import Health
from linkstream.service.live import LiveFeed
from linkstream.service.projection import Projection
from linkstream.service.rebuild_jobs import RebuildJobs
from linkstream.service.recordings import Recordings
from linkstream.service.responses import Refusal, busy, not_found, too_many
from linkstream.service.settings import Settings
from linkstream.service.slow_reads import Cancel, SlowReads
from linkstream.service.uploads import Uploads
from linkstream.service.write_gate import WriteGate
from linkstream.store import Store
from linkstream.store.write_requests import WriteRequest

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
SUFFIX = ".links"
READERS = 8  # threads that read, for all namespaces
READS_MAX = 256  # reads that may wait at a namespace
SESSION = "linkstream.session"  # key of the session in the scope of a request
_PER_CALL = 512  # bytes counted for any call
_PER_VECTOR = 64  # bytes counted for each vector in a slow read
_serials = itertools.count()

_log = logging.getLogger("linkstream.service")

T = TypeVar("T")
SlowWork = Callable[[Store, Cancel], bytes]


class CompletionQueue:
    """Passes completed writes from the stores' threads to the event loop, many at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._done: deque[asyncio.Future[None]] = deque()
        self._scheduled = False

    def put(self, future: asyncio.Future[None]) -> None:
        """Complete a future; may be called from any thread."""
        self._done.append(future)
        if not self._scheduled:
            self._scheduled = True
            with contextlib.suppress(RuntimeError):  # the event loop has ended
                self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._scheduled = False  # first, so that later futures are scheduled again
        while self._done:
            future = self._done.popleft()
            if not future.done():
                future.set_result(None)


@dataclass(slots=True)
class Load:
    """Requests that wait at a namespace, and their bytes."""

    calls: int = 0
    size: int = 0


class Session:
    """One open namespace: its store, its load, its live feed, its map and its index of changes."""

    def __init__(self, name: str, store: Store, sessions: Sessions, index: ActivityIndex) -> None:
        self.name, self.store, self.index = name, store, index
        self.load = Load()
        self.live = LiveFeed(self)
        self.projection = Projection()
        self.gate = WriteGate()
        self.serial = next(_serials)
        self._sessions = sessions
        self._reads = 0
        self._reading = asyncio.Semaphore(READERS // 2)  # leaves threads for other namespaces
        self._remembered: tuple[int, int, bool] = (-1, -1, False)
        self._remembering = False

    async def write(
        self, call: WriteRequest, size: int = 0, *, holding: bool = False
    ) -> WriteRequest:
        """Do a call of the store; return it with its answer after the commit.

        Args:
            call: the call.
            size: the bytes of memory that it takes.
            holding: whether it belongs to the job that holds other writes back.
        """
        size += _PER_CALL
        self._sessions.check_queue(self)
        self._sessions.reserve(self, size)
        self.load.calls += 1
        try:
            async with contextlib.nullcontext() if holding else self.gate.passing():
                await self._send(call)
            if call.error is not None:
                raise call.error
        except StoreClosedError as error:
            self._sessions.drop(self, error)
            raise
        finally:
            self.load.calls -= 1
            self._sessions.release_bytes(self, size)
        if self._sessions.health.failing:
            self._sessions.health.failing.discard(self.name)
        self.live.note(call)
        return call

    async def _send(self, call: WriteRequest) -> None:
        future = self._sessions.loop.create_future()
        completions = self._sessions.completions
        call.then = lambda _: completions.put(future)
        self.store.handle.submit(call)
        await future

    async def read(self, work: Callable[[Store], T]) -> T:
        """Read from the store in a thread; for reads that look at few clusters."""
        if self._reads >= READS_MAX:
            raise too_many(f"{self._reads} reads waiting", f"at most {READS_MAX} at a time")
        self._reads += 1
        try:
            async with self._reading:
                return await self._sessions.run_read(lambda: work(self.store))
        finally:
            self._reads -= 1

    async def change(self, work: Callable[[Store], T]) -> T:
        """Change what is not in the journal, in a thread."""
        async with self.gate.passing():
            return await self.read(work)

    @property
    def remembers(self) -> bool:
        """Whether the index of changes is up to date, or is being brought there."""
        version, _, complete = self._remembered
        return self._remembering or (complete and version == self.live.version)

    async def remember(self) -> None:
        """Sample the counts with the time, and index what is new in the journal."""
        if self.remembers:
            return
        version, corrections, _ = self._remembered
        changed = version != self.live.version
        self._remembering = True
        try:
            now, corrected = self.live.version, self.live.corrections
            counts = await self.live.sample()

            def work() -> bool:
                if changed:
                    self.index.record(counts, corrected=corrections not in (-1, corrected))
                return self.index.follow(self.store)

            complete = await self._sessions.run_in_thread(work)
            self._remembered = now, corrected, complete
        finally:
            self._remembering = False

    def close(self) -> None:
        """Keep the last counts with the time, and close the files; runs in a thread."""
        with contextlib.suppress(LinkstreamError):
            _, corrections, _ = self._remembered
            corrected = corrections not in (-1, self.live.corrections)
            self.index.record(self.store.handle.counts(), corrected=corrected)
        try:
            self.store.close()
        finally:
            self.index.close()

    @property
    def version(self) -> int:
        """The number of changes since the namespace was opened."""
        return self.live.version

    async def sizes(self) -> tuple[int, int, int]:
        """Return the numbers of vectors and subclusters, and the dimension."""
        figures = await self.live.sample()
        vectors, subclusters = figures["vectors"] or 0, figures["subclusters"] or 0
        return vectors, subclusters, figures["dimension"] or 0

    async def ask(
        self,
        request: Request,
        key: Hashable,
        work: SlowWork,
        *,
        copies: float = 0.0,
        size: int = 0,
    ) -> bytes:
        """Read what may take long: once for all who ask the same, see `SlowReads`.

        Args:
            request: the request; the work ends when all clients that wait for it have gone.
            key: equal for equal questions about this namespace.
            work: computes the body of the answer from the store, and asks `Cancel` now and then.
            copies: the memory that the work may use, in sizes of the sums of all subclusters.
            size: more memory that it may use, in bytes.
        """
        vectors, subclusters, dimension = await self.sizes()
        size += int(copies * subclusters * dimension * 8) + _PER_VECTOR * vectors
        return await self._sessions.slow.ask(
            self, key, lambda cancel: work(self.store, cancel), size, request.receive
        )


@dataclass(slots=True)
class Sessions:
    """All namespaces in one folder. Each is opened at its first request."""

    settings: Settings
    open: dict[str, Session] = field(default_factory=dict)
    health: Health = field(init=False)
    held: int = 0  # bytes received and waiting, in all namespaces
    readers: int = 0  # open event streams
    tables: int = 0  # tables being sent
    demos: set[str] = field(default_factory=set)  # namespaces that the voices are being fed to
    parsing: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    started: float = field(default_factory=time.time)
    slow: SlowReads = field(init=False)
    rebuilds: RebuildJobs = field(init=False)
    recordings: Recordings = field(init=False)
    uploads: Uploads = field(init=False)
    loop: asyncio.AbstractEventLoop = field(init=False)
    completions: CompletionQueue = field(init=False)
    _making: asyncio.Lock = field(default_factory=asyncio.Lock)
    _opening: dict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    _readers: ThreadPoolExecutor = field(init=False)
    _threads: ThreadPoolExecutor = field(init=False)
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    _closing: dict[str, asyncio.Task[Any]] = field(default_factory=dict)  # after failed writes

    def __post_init__(self) -> None:
        self.slow = SlowReads(self.settings)
        self.rebuilds = RebuildJobs(self)
        self.recordings = Recordings(self)
        self.uploads = Uploads(self)
        self.health = Health(self.settings.data)

    async def start(self) -> None:
        """Start threads and tasks on the running event loop."""
        self.loop = asyncio.get_running_loop()
        self.completions = CompletionQueue(self.loop)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="linkstream-read")
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="linkstream-work")
        await self.run_in_thread(lambda: self.settings.data.mkdir(parents=True, exist_ok=True))
        await self.run_in_thread(self.uploads.clear)
        self.spawn(self._sample())

    def begin_stop(self) -> None:
        """End streams and slow reads, and refuse new ones."""
        self.stopping.set()
        self.slow.stop()

    async def stop(self) -> None:
        """Close all stores."""
        self.begin_stop()
        for task in list(self._tasks):
            task.cancel()
        closing = [self.run_in_thread(session.close) for session in self.open.values()]
        for failed in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(failed, BaseException):
                _log.error("closing a store: %r", failed)
        self.open.clear()
        self.uploads.stop()
        for pool in (self._readers, self._threads):
            pool.shutdown(wait=False)

    def spawn(self, work: Any) -> asyncio.Task[Any]:
        """Run a coroutine in the background until the service stops."""
        task: asyncio.Task[Any] = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def run_in_thread(self, work: Callable[[], T]) -> T:
        """Run slow work in a thread."""
        return await self.loop.run_in_executor(self._threads, work)

    async def run_read(self, work: Callable[[], T]) -> T:
        """Run a read of a store, or the parsing of a body, in a reader thread."""
        return await self.loop.run_in_executor(self._readers, work)

    # Namespaces

    def path(self, name: str) -> Path:
        """Return the path of a namespace's store; refuse any other name."""
        if not NAME.fullmatch(name):
            raise not_found(
                f"a namespace called {name!r:.100}",
                "1 to 63 of a–z, 0–9, _ and -, the first a letter or a digit",
                "Choose such a name.",
            )
        return self.settings.data / f"{name}{SUFFIX}"

    def names(self) -> list[str]:
        """Return the names of all namespaces."""
        found = self.settings.data.glob(f"*{SUFFIX}") if self.settings.data.is_dir() else ()
        return sorted(path.stem for path in found if NAME.fullmatch(path.stem))

    async def get(self, name: str) -> Session:
        """Return a namespace, opened if necessary."""
        session = self.open.get(name)
        if session is not None:
            return session
        if not await self.run_in_thread(self.path(name).exists):
            raise not_found(
                f"no namespace {name!r}",
                "an existing namespace",
                "Make it: PUT /v1/namespaces/NAME with thresholds or a preset.",
            )
        async with self._opening[name]:
            return self.open.get(name) or await self.open_namespace(name, {})

    async def make(self, name: str, options: dict[str, Any]) -> tuple[Session, bool]:
        """Return the namespace with these options, and whether it is new.

        Raises ArgumentError if the namespace exists with other options.
        """
        path = self.path(name)
        async with self._making, self._opening[name]:
            if not await self.run_in_thread(path.exists):
                self._check_room(await self.run_in_thread(self.names))
                return await self.open_namespace(name, options), True
        session = await self.get(name)
        session.store.handle.check_wanted(**options)
        return session, False

    def _check_room(self, names: list[str]) -> None:
        if len(names) >= self.settings.namespaces_max:
            raise Refusal(
                409,
                "too-many",
                f"{len(names)} namespaces",
                expected=f"fewer than {self.settings.namespaces_max}",
                remedy="Raise namespaces_max, or use an existing namespace.",
            )

    async def open_namespace(self, name: str, options: dict[str, Any]) -> Session:
        """Open or make the store of a namespace."""
        if self.stopping.is_set():
            raise busy("a service that is stopping", "a running service")
        path = self.path(name)
        if name in self._closing:  # a store has one writer
            await asyncio.wait([self._closing[name]])
        running: dict[str, Any] = {"engine": self.settings.engine, "threads": self.settings.threads}
        try:
            store, index = await self.run_in_thread(lambda: _opened(path, {**running, **options}))
        except LinkstreamError as error:
            if not options:
                self.health.broken[name] = error
            raise
        self.health.broken.pop(name, None)
        session = self.open[name] = Session(name, store, self, index)
        return session

    def drop(self, session: Session, error: LinkstreamError) -> None:
        """Close a store after a failed write; the next request opens it again."""
        if self.open.get(session.name) is session and not self.stopping.is_set():
            del self.open[session.name]
            self.health.failing.add(session.name)
            _log.error("namespace %s will be opened again: %s", session.name, error)
            self._closing[session.name] = self.spawn(self._close(session))

    async def _close(self, session: Session) -> None:
        try:
            await self.run_in_thread(session.close)
        finally:
            del self._closing[session.name]

    # Limits

    def reserve(self, session: Session | None, size: int) -> None:
        """Count received bytes; refuse with 429 or 503 above the limits."""
        settings = self.settings
        if session is not None and session.load.size + size > settings.queue_bytes:
            seen = f"{session.load.size} bytes received and waiting at {session.name!r}"
            raise too_many(seen, f"at most {settings.queue_bytes}")
        if self.held + size > settings.total_bytes:
            seen = f"{self.held} bytes received and waiting in all"
            raise busy(seen, f"at most {settings.total_bytes}")
        self.release_bytes(session, -size)

    def release_bytes(self, session: Session | None, size: int) -> None:
        """Stop counting received bytes."""
        self.held -= size
        if session is not None:
            session.load.size -= size

    def check_queue(self, session: Session) -> None:
        """Refuse with 429 if too many requests wait."""
        most = self.settings.queue_calls
        if session.load.calls >= most:
            seen = f"{session.load.calls} requests waiting at {session.name!r}"
            raise too_many(seen, f"at most {most}")

    async def _sample(self) -> None:
        """Sample each open namespace every second, for the charts of the dashboard."""
        while True:
            await asyncio.sleep(1.0)
            self.recordings.sweep()
            self.uploads.sweep()
            for session in list(self.open.values()):
                with contextlib.suppress(LinkstreamError, Refusal):
                    await session.live.sample()
                if not session.remembers:
                    self.spawn(_remembering(session))


async def _remembering(session: Session) -> None:
    with contextlib.suppress(LinkstreamError, Refusal):  # the next sample tries again
        await session.remember()


def _opened(path: Path, options: dict[str, Any]) -> tuple[Store, ActivityIndex]:
    store = Store.open(path, **options)
    try:
        index = ActivityIndex(path)
        index.begin(store)
        return store, index
    except BaseException:
        store.close()
        raise
