"""Live: what is seen of a namespace as it happens; a slow reader holds nobody up.

Two streams of server-sent events. `events` is complete: every event, numbered, resumed from
where the reader was. `digest` is for a page that people look at: figures each second, and the
newest decisions, some left out where there are more than anybody could read.
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
from linkstream.service.answers import Refusal, busy
from linkstream.store import Store
from linkstream.store.write_requests import WriteRequest

if TYPE_CHECKING:
    from starlette.requests import Request

    from linkstream.service.sessions import Session, Sessions

POINTS = 600  # of the curves, a second each
RECENT = 50  # decisions that a new reader of the digest gets at once
SHOWN = 20  # decisions told at a time
PAGE = 1_000  # events read at a time
KEPT = 5_000  # events kept for those who are up to date
PACE = 0.1  # seconds between two looks
BEAT = 15.0  # seconds after which something is sent in any case

Frame = tuple[int, bytes]  # the number of an event, and how it is sent


class Live:
    """What is known of the last minutes of a namespace."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._noted: deque[Decision | Decisions] = deque(maxlen=RECENT)
        self.version = 0  # of what there is to be told
        self._changed, self._awaited = asyncio.Event(), False
        self.points: deque[tuple[float, int | None, int | None, float]] = deque(maxlen=POINTS)
        self.figures: dict[str, Any] = {}
        self.taken = self.corrections = 0  # vectors, and people's words, since the start
        self._sampled = (time.time(), 0)
        self._fresh = True
        self._ring: deque[Frame] = deque(maxlen=KEPT)
        self._ring_end = -1
        self._filling = asyncio.Lock()

    def note(self, ticket: WriteRequest) -> None:
        """A call was acknowledged."""
        if ticket.verb == "add":
            self._noted.append(ticket.answer)
            self.taken += 1
        elif ticket.decisions is not None:
            self._noted.append(ticket.decisions)
            self.taken += len(ticket.decisions.cluster)
        elif ticket.verb != "add_many":
            self.corrections += 1
            if ticket.verb in ("undo", "redo"):
                self._noted.clear()  # some of it is no longer so
        self._fresh = True
        self.version += 1
        if self._awaited:
            self._awaited = False
            before, self._changed = self._changed, asyncio.Event()
            before.set()

    async def change(self, seen: int, seconds: float) -> bool:
        """Wait for another version than the one seen, no longer than so; whether there is one."""
        if self.version == seen:
            self._awaited = True
            try:
                await asyncio.wait_for(self._changed.wait(), seconds)
            except asyncio.TimeoutError:  # its name before Python 3.11
                return False
        return True

    async def sample(self) -> dict[str, Any]:
        """The figures of now; and a point of the curves, where something has changed."""
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
        self.points.append((now, counted["vectors"], counted["clusters"], round(rate, 1)))
        return self.figures

    # The page's stream

    async def digest(self) -> AsyncIterator[bytes]:
        """Figures, newest decisions and word of corrections, as they come."""
        figures = await self.sample()
        yield frame("stats", figures)
        yield frame("history", {"points": list(self.points)})
        since = await self._beginning()
        corrections, spoken, sent = self.corrections, time.monotonic(), figures
        while True:
            version = self.version
            found = self._newer(since)
            if found:
                newest = int(found[-1]["vector"])
                told = await self._dressed(found[-SHOWN:])
                yield frame("decisions", {**told, "more": newest + 1 - since - len(found[-SHOWN:])})
                since = newest + 1
            if corrections != self.corrections:
                corrections = self.corrections
                figures = await self.sample()
                since = min(since, figures["vectors"])  # an undo gives numbers back
                yield frame("changed", {"event": figures["events"]})
            if self.figures is not sent:
                sent, spoken = self.figures, time.monotonic()
                yield frame("stats", sent)
            elif time.monotonic() - spoken > BEAT:
                spoken = time.monotonic()
                yield frame("stats", await self.sample())
            await asyncio.sleep(PACE)
            await self.change(version, 1.0)

    async def _beginning(self) -> int:
        """The first decision that a new reader is told."""
        newest = self._newer(0)
        return newest[0]["vector"] if newest else 0

    def recent(self) -> list[Decision]:
        """The last decisions, some of each call."""
        told = [_batch(noted) for noted in self._noted]
        return [each.at(place) for each in told for place in range(len(each.cluster))[-RECENT:]]

    def _newer(self, since: int) -> list[dict[str, Any]]:
        """The newest decisions from a vector on, oldest first."""
        found: list[dict[str, Any]] = []
        for told in map(_batch, reversed(self._noted)):
            end = told.first_sequence + len(told.cluster)
            for number in range(end - 1, max(told.first_sequence, since) - 1, -1):
                found.append(_row(told, number - told.first_sequence))
                if len(found) == RECENT:
                    return found[::-1]
        found.sort(key=lambda row: int(row["vector"]))
        return found

    async def _dressed(self, found: list[dict[str, Any]]) -> dict[str, Any]:
        """Decisions, with what was attached to the vectors."""
        numbers = [row["vector"] for row in found]
        payloads = await self._session.read(lambda store: _payloads(store, numbers))
        for row, payload in zip(found, payloads, strict=True):
            row["payload"] = payload
        return {"decisions": found}

    # The complete stream

    async def events(self, since: int) -> AsyncIterator[bytes]:
        """Every event from a number on, once each, in order."""
        while True:
            version = self.version
            some = await self._after(since)
            if some:
                since = some[-1][0] + 1
                yield b"".join(body for _, body in some)
            elif not await self.change(version, BEAT):
                yield b": still here\n\n"

    async def _after(self, since: int) -> list[Frame]:
        """The next events: from those that are kept, else from the store."""
        if not self._ring or since < self._ring[0][0]:
            some = await self._session.read(lambda store: frames(store, since))
            if not self._ring and some:
                self._keep(some)
            return some
        if since >= self._ring_end:
            async with self._filling:
                if since >= self._ring_end:
                    end = self._ring_end
                    self._keep(await self._session.read(lambda store: frames(store, end)))
        first = self._ring[0][0]
        return list(islice(self._ring, max(0, since - first), max(0, since - first) + PAGE))

    def _keep(self, some: list[Frame]) -> None:
        if some:
            self._ring.extend(some)
            self._ring_end = some[-1][0] + 1


class EventStream(Response):
    """An answer that goes on: frames of a stream, until either side ends it, or its token does.

    A reader that takes nothing for a while is let go; it comes back and resumes.
    """

    def __init__(self, request: Request, frames: AsyncIterator[bytes], sessions: Sessions) -> None:
        super().__init__()
        self._frames, self._sessions = frames, sessions
        self._tokens, self._grant = request.app.state.tokens, request.state.grant
        most = sessions.settings.event_readers_max
        if sessions.readers >= most:
            raise busy(f"{sessions.readers} readers of events", f"at most {most}")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send frames as they come."""
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
            others = (_gone(receive), self._sessions.stopping.wait())
            ends = [pumping, *(asyncio.ensure_future(other) for other in others)]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            await _ended(ends)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._sessions.readers -= 1

    async def _pump(self, send: Any) -> None:
        async for body in self._frames:
            if not self._tokens.holds(self._grant):
                return  # it was revoked, or has ended
            message = {"type": "http.response.body", "body": body, "more_body": True}
            await asyncio.wait_for(send(message), self._sessions.settings.receive_seconds)


async def _ended(tasks: Sequence[asyncio.Future[Any]]) -> None:
    """End tasks; `wait_for` may swallow a cancel that comes just as it is done, so ask again."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=0.1)
    await asyncio.gather(*tasks, return_exceptions=True)


async def _gone(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def frame(kind: str, values: Any) -> bytes:
    """A frame without a number: it is not resumed from."""
    return f"event: {kind}\ndata: {_json(values)}\n\n".encode()


def frames(store: Store, since: int) -> list[Frame]:
    """The next events of a store, as they are sent."""
    return [
        (event.sequence, _numbered(event.sequence, event.kind, event.to_dict()))
        for event in islice(store.journal.events(since), PAGE)
    ]


def first_of(last: str | None, since: int) -> int:
    """Where a stream begins: after the last event that a reader had, else where it asks."""
    if last is None or last == "":
        return since
    if last.isascii() and last.isdigit() and len(last) < 19:
        return int(last) + 1
    raise Refusal(
        400,
        "argument",
        f"Last-Event-ID {last!r:.40}",
        expected="the number of an event",
        remedy="Leave it out to begin where since= says.",
    )


def _numbered(sequence: int, kind: str, values: dict[str, Any]) -> bytes:
    return f"id: {sequence}\nevent: {kind}\ndata: {_json(values)}\n\n".encode()


def _json(values: Any) -> str:
    return json.dumps(values, separators=(",", ":"))


def _payloads(store: Store, numbers: list[int]) -> list[Any]:
    """What was attached to vectors; nothing where some are no longer there."""
    try:
        return store.payloads(numbers)
    except LinkstreamError:
        return [None] * len(numbers)


def _batch(noted: Decision | Decisions) -> Decisions:
    return noted.as_batch() if isinstance(noted, Decision) else noted


def _row(told: Decisions, place: int) -> dict[str, Any]:
    return {"vector": told.first_sequence + place, **told.at(place).to_dict()}
