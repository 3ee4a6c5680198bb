"""Live streams of a namespace, as server-sent events; a slow reader does not hold up others.

`events` is complete: every event, numbered, so that a reader can resume. `digest` is for the
dashboard: counts every second and the newest decisions, not all of them under load.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from linkstream.engine.contract import Decision, Decisions
from linkstream.errors import LinkstreamError
from linkstream.service.recalling import recalled
from linkstream.service.responses import Refusal, busy
from linkstream.service.samples import Moment
from linkstream.service.slow_reads import disconnected
from linkstream.store import Store
from linkstream.store.write_requests import WriteRequest

if TYPE_CHECKING:
    from starlette.requests import Request

    from linkstream.service.sessions import Session, Sessions

RECENT = 50  # decisions kept for new readers of the digest
SHOWN = 20  # decisions in one message
PAGE = 1_000  # events read at a time
CACHED = 5_000  # newest events kept in memory
PACE = 0.1  # seconds between two messages
HEARTBEAT = 15.0  # seconds of silence after which something is sent

Frame = tuple[int, bytes]  # the number of an event, and its bytes
Noted = tuple[float | None, Decision | Decisions]  # with the time, unless it was recalled


class LiveFeed:
    """Recent decisions, counts and events of a namespace, and the streams of them."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._noted: deque[Noted] = deque(maxlen=RECENT)
        self._recalled = False
        self.version = 0  # rises with each change
        self._changed, self._awaited = asyncio.Event(), False
        self.figures: dict[str, Any] = {}
        self.taken = self.corrections = 0  # vectors and corrections since the start
        self.undone = 0  # undos and redos, after which vectors have other numbers
        self._sampled = (time.time(), 0)
        self._fresh = True
        self._ring: deque[Frame] = deque(maxlen=CACHED)
        self._ring_end = -1
        self._filling = asyncio.Lock()

    def note(self, call: WriteRequest) -> None:
        """Record a call that was committed."""
        if call.verb == "add":
            self._noted.append((time.time(), call.answer))
            self.taken += 1
        elif call.decisions is not None:
            self._noted.append((time.time(), call.decisions))
            self.taken += len(call.decisions.cluster)
        elif call.verb != "add_many":
            self.corrections += 1
            if call.verb in ("undo", "redo"):
                self._noted.clear()  # some of the decisions are undone
                self._recalled = True  # and those of the journal
                self.undone += 1
        self._fresh = True
        self.version += 1
        if self._awaited:
            self._awaited = False
            before, self._changed = self._changed, asyncio.Event()
            before.set()

    async def change(self, seen: int, seconds: float) -> bool:
        """Wait for a version other than `seen`; return False if none comes in time."""
        if self.version == seen:
            self._awaited = True
            try:
                await asyncio.wait_for(self._changed.wait(), seconds)
            except asyncio.TimeoutError:  # its name before Python 3.11
                return False
        return True

    async def sample(self) -> dict[str, Any]:
        """Return the current counts."""
        if not self._fresh and self.figures:
            then, _ = self._sampled
            idle = self.figures["rate"] and time.time() - then > 1.5
            return self.figures | {"rate": 0.0} if idle else self.figures
        self._fresh = False
        counted = await self._session.read(lambda store: store.handle.counts())
        now, (then, before) = time.time(), self._sampled
        rate = (self.taken - before) / max(now - then, 0.5)
        self._sampled = now, self.taken
        self.figures = {**counted, "rate": round(rate, 1), "time": now}
        return self.figures

    # The stream of the dashboard

    async def digest(self) -> AsyncIterator[bytes]:
        """Yield counts, new decisions and notices of corrections."""
        figures = await self.sample()
        yield frame("stats", figures)
        await self.recall()
        yield frame("begin", {})
        known = self._newer(0)
        since = known[0]["vector"] if known else 0
        corrections, last_sent, sent = self.corrections, time.monotonic(), figures
        while True:
            version = self.version
            found = self._newer(since)
            if found:
                newest = int(found[-1]["vector"])
                shown = await self._with_payloads(found[-SHOWN:])
                more = newest + 1 - since - len(found[-SHOWN:])
                yield frame("decisions", {**shown, "more": more})
                since = newest + 1
            if corrections != self.corrections:
                corrections = self.corrections
                figures = await self.sample()
                since = min(since, figures["vectors"])  # an undo frees numbers
                yield frame("changed", {"event": figures["events"]})
            if self.figures is not sent:
                sent, last_sent = self.figures, time.monotonic()
                yield frame("stats", sent)
            elif time.monotonic() - last_sent > HEARTBEAT:
                last_sent = time.monotonic()
                yield frame("stats", await self.sample())
            await asyncio.sleep(PACE)
            await self.change(version, 1.0)

    async def recall(self) -> None:
        """Read the decisions before a restart from the journal, at the first call."""
        if self._recalled:
            return
        self._recalled = True
        found = await self._session.read(lambda store: recalled(store, RECENT))
        known = {row["vector"] for row in self._newer(0)}
        again: list[Noted] = [(None, each) for each in found if each.sequence not in known]
        self._noted.extendleft(reversed(again[: RECENT - len(self._noted)]))

    def recent(self) -> list[Decision]:
        """Return the last decisions of each recent call."""
        batches = [_batch(noted) for _, noted in self._noted]
        return [each.at(row) for each in batches for row in range(len(each.cluster))[-RECENT:]]

    def _newer(self, since: int) -> list[dict[str, Any]]:
        """Return the newest decisions from a vector on, oldest first."""
        found: list[dict[str, Any]] = []
        for at, noted in reversed(self._noted):
            batch = _batch(noted)
            end = batch.first_sequence + len(batch.cluster)
            for number in range(end - 1, max(batch.first_sequence, since) - 1, -1):
                decision = batch.at(number - batch.first_sequence)
                moment = {"time": at, "after": at}
                found.append({"vector": number, **decision.to_dict(), **moment})
                if len(found) == RECENT:
                    return found[::-1]
        found.sort(key=lambda row: int(row["vector"]))
        return found

    async def _with_payloads(self, found: list[dict[str, Any]]) -> dict[str, Any]:
        """Return decisions with the payloads of their vectors, and when these came."""
        numbers = [row["vector"] for row in found]
        index = self._session.index

        early = [row for row in found if row["time"] is None]  # before the service began

        def work(store: Store) -> tuple[list[Any], list[Moment]]:
            untimed = [row["vector"] for row in early]
            return _payloads(store, numbers), index.moments(vectors=untimed)[1] if early else []

        payloads, moments = await self._session.read(work)
        for row, payload in zip(found, payloads, strict=True):
            row["payload"] = payload
        for row, moment in zip(early, moments, strict=True):
            row.update(moment.to_dict())
        return {"decisions": found}

    # The complete stream

    async def events(self, since: int) -> AsyncIterator[bytes]:
        """Yield every event from a number on, once each, in order."""
        while True:
            version = self.version
            some = await self._after(since)
            if some:
                since = some[-1][0] + 1
                yield b"".join(body for _, body in some)
            elif not await self.change(version, HEARTBEAT):
                yield b": still here\n\n"

    async def _after(self, since: int) -> list[Frame]:
        """Return the next events, from memory or from the store."""
        if not self._ring or since < self._ring[0][0]:
            some = await self._session.read(lambda store: frames(store, since))
            if not self._ring and some:
                self._cache(some)
            return some
        if since >= self._ring_end:
            async with self._filling:
                if since >= self._ring_end:
                    end = self._ring_end
                    self._cache(await self._session.read(lambda store: frames(store, end)))
        first = self._ring[0][0]
        return list(islice(self._ring, max(0, since - first), max(0, since - first) + PAGE))

    def _cache(self, some: list[Frame]) -> None:
        if some:
            self._ring.extend(some)
            self._ring_end = some[-1][0] + 1


class EventStream(Response):
    """A response that goes on until either side ends it or its token expires.

    A client that does not read for `receive_seconds` is disconnected; it can resume.
    """

    def __init__(self, request: Request, frames: AsyncIterator[bytes], sessions: Sessions) -> None:
        super().__init__()
        self._frames, self._sessions = frames, sessions
        self._tokens, self._grant = request.app.state.tokens, request.state.grant
        most = sessions.settings.event_readers_max
        if sessions.readers >= most:
            raise busy(f"{sessions.readers} readers of events", f"at most {most}")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send the frames of the stream."""
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),
        ]
        self._sessions.readers += 1
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b": hello\n\n", "more_body": True})
            pumping = asyncio.ensure_future(self._pump(send))
            others = (disconnected(receive), self._sessions.stopping.wait())
            ends = [pumping, *(asyncio.ensure_future(other) for other in others)]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            await ended(ends)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._sessions.readers -= 1

    async def _pump(self, send: Any) -> None:
        async for body in self._frames:
            if not self._tokens.holds(self._grant):
                return  # the token was revoked or has expired
            message = {"type": "http.response.body", "body": body, "more_body": True}
            await asyncio.wait_for(send(message), self._sessions.settings.receive_seconds)


async def ended(tasks: Sequence[asyncio.Future[Any]]) -> None:
    """Cancel tasks until they end; `wait_for` may swallow a cancel as it completes."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=0.1)
    await asyncio.gather(*tasks, return_exceptions=True)


def frame(kind: str, values: Any) -> bytes:
    """Return a frame without a number; a reader cannot resume from it."""
    data = json.dumps(values, separators=(",", ":"))
    return f"event: {kind}\ndata: {data}\n\n".encode()


def frames(store: Store, since: int) -> list[Frame]:
    """Return the next events of a store as frames."""
    found = store.with_probabilities(list(islice(store.journal.events(since), PAGE)))
    return [
        (event.sequence, b"id: %d\n" % event.sequence + frame(event.kind, event.to_dict()))
        for event in found
    ]


def first_of(last: str | None, since: int) -> int:
    """Return the first event of a stream: after Last-Event-ID, or `since` without it."""
    if last is None or last == "":
        return since
    if last.isascii() and last.isdigit() and len(last) < 19:
        return int(last) + 1
    seen = f"Last-Event-ID {last!r:.40}"
    remedy = "Leave the header out to begin at since=."
    raise Refusal(400, "argument", seen, expected="the number of an event", remedy=remedy)


def _payloads(store: Store, numbers: list[int]) -> list[Any]:
    """Return the payloads of vectors; None for all if some were removed."""
    try:
        return store.payloads(numbers)
    except LinkstreamError:
        return [None] * len(numbers)


def _batch(noted: Decision | Decisions) -> Decisions:
    return noted.as_batch() if isinstance(noted, Decision) else noted
