"""The recordings of all namespaces that are in memory, and the streams of their turns.

In memory are at most `recordings_max` recordings. One that nobody uses for `recording_idle_seconds`
is dropped; it is made again from the store when it is asked for. See `recording.py`.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from linkstream.adapters.diarization import Turn
from linkstream.errors import NotTrackedError
from linkstream.service.live import HEARTBEAT, PACE, PAGE, frame
from linkstream.service.recording import Heard, Recording, parameters_of, recalled
from linkstream.service.responses import Refusal, busy, not_found
from linkstream.service.stored_segments import stored_segments

if TYPE_CHECKING:
    from linkstream.service.sessions import Session, Sessions

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

T = TypeVar("T")
Key = tuple[int, str]  # the serial number of an open namespace, and the name of a recording


class Recordings:
    """The recordings of all namespaces that are in memory."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._live: dict[Key, Recording] = {}
        self._loading: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()

    def of(self, session: Session) -> list[Recording]:
        """Return the recordings of a namespace, the one that was used last first."""
        found = [each for each in self._live.values() if each.session is session]
        return sorted(found, key=lambda each: -each.used)

    async def hear(
        self, session: Session, name: str, given: dict[str, Any], heard: Heard
    ) -> tuple[Recording, list[Turn]]:
        """Add segments to a recording, which begins with the first; return what became final."""
        recording = await self._get(session, name, given)
        try:
            async with recording.lock:
                first = recording.check(heard)
                await self._work(recording, lambda: recording.hear(heard, first))
        finally:
            if not recording.times:  # the first request was refused
                self._live.pop((session.serial, name), None)
        return recording, recording.told_of(first, len(heard.times))

    async def finish(self, session: Session, name: str) -> tuple[Recording, list[Turn]]:
        """End a recording; return the turns that the end made final."""
        recording = await self._get(session, name, None)
        async with recording.lock:
            turns = await self._work(recording, recording.finish)
        return recording, turns

    async def read(
        self, session: Session, name: str, work: Callable[[Recording], T]
    ) -> tuple[Recording, T]:
        """Return a recording, and what `work` reads of it in a thread."""
        recording = await self._get(session, name, None)
        async with recording.lock:
            found = await session.read(lambda _: work(recording))
        recording.used = time.monotonic()
        return recording, found

    async def follow(self, session: Session, name: str, since: int) -> AsyncIterator[bytes]:
        """Yield the final turns of a recording as numbered frames, and what may still change.

        Frames without a number: `pending` turns, `finished` at the end, and `changed` after a
        correction, which may have changed names.
        """
        reader, beat = _Reader(since, session.live.corrections), time.monotonic()
        while True:
            recording = await self._get(session, name, None)
            recording.readers += 1
            try:
                version = recording.version
                body = reader.news(recording)
                if body or time.monotonic() - beat > HEARTBEAT:
                    beat = time.monotonic()
                    yield body or b": still here\n\n"
                await asyncio.sleep(PACE)
                if reader.since >= len(recording.told):
                    await recording.change(version, 1.0)
            finally:
                recording.readers -= 1
                recording.used = time.monotonic()

    def sweep(self) -> None:
        """Drop recordings that nobody uses, and those of namespaces that were closed."""
        oldest = time.monotonic() - self._sessions.settings.recording_idle_seconds
        for key, each in list(self._live.items()):
            closed = self._sessions.open.get(each.session.name) is not each.session
            if not each.readers and not each.lock.locked() and (closed or each.used < oldest):
                del self._live[key]

    async def _work(self, recording: Recording, work: Callable[[], T]) -> T:
        """Change a recording in a thread; drop it from memory if that fails half-way."""
        try:
            return await recording.session.read(lambda _: work())
        except BaseException:
            self._live.pop((recording.session.serial, recording.name), None)
            raise
        finally:
            recording.touch()

    async def _get(self, session: Session, name: str, given: dict[str, Any] | None) -> Recording:
        """Return a recording from memory or from the store; with `given` begin it if it is new."""
        key = session.serial, name
        found = self._current(key)
        if found is None:
            loading = self._loading.setdefault(key, asyncio.Lock())
            async with loading:
                found = self._current(key) or await self._load(session, name, given)
                self._live[key] = found
        if given:
            _check_same(found, given)
        return found

    def _current(self, key: Key) -> Recording | None:
        """Return a recording in memory, unless an undo has taken vectors of its namespace."""
        found = self._live.get(key)
        return None if found is None or found.undone != found.session.live.undone else found

    async def _load(self, session: Session, name: str, given: dict[str, Any] | None) -> Recording:
        if not NAME.fullmatch(name):
            raise not_found(
                f"a recording called {name!r:.100}",
                "1 to 100 of A–Z, a–z, 0–9, ., _ and -, the first a letter or a digit",
                "Choose such a name.",
            )
        self.sweep()
        if len(self._live) >= self._sessions.settings.recordings_max:
            self._make_room()
        loop, free = self._sessions.loop, 0
        if session.store.track_vectors:
            made = await session.read(lambda store: recalled(store, session, name, loop))
            if made is not None:
                return made
            free = (await session.read(lambda store: stored_segments(store, name))).free
        if given is None:
            raise not_found(
                f"no recording {name!r}", "one to which segments were added", "Add some to it."
            )
        if not session.store.track_vectors:
            raise NotTrackedError(
                "turns in a namespace that does not track vectors",
                expected="a namespace made with track_vectors",
                remedy="Make another namespace for recordings.",
            )
        begun = Recording(name, parameters_of(given), session, loop)
        begun.begin_at(free)
        return begun

    def _make_room(self) -> None:
        free = [key for key, each in self._live.items() if not each.readers and each.finished]
        if not free:
            raise busy(
                f"{len(self._live)} recordings in use",
                f"at most {self._sessions.settings.recordings_max}",
            )
        del self._live[min(free, key=lambda key: self._live[key].used)]


class _Reader:
    """How far a reader of the stream of a recording got."""

    def __init__(self, since: int, corrections: int) -> None:
        self.since = since
        self._corrections = corrections
        self._last: object = None

    def news(self, recording: Recording) -> bytes:
        """Return the frames that the reader does not have yet."""
        some = recording.told[self.since : self.since + PAGE]
        frames = [_final(self.since + row, each.turn) for row, each in enumerate(some)]
        self.since += len(some)
        state = [turn_record(turn) for turn in recording.pending], recording.finished
        if self.since >= len(recording.told) and state != self._last:
            self._last = state
            frames.append(frame("pending", {"kind": "pending", "turns": state[0]}))
            if recording.finished:
                frames.append(frame("finished", {"kind": "finished", "final": self.since}))
        if self._corrections != recording.session.live.corrections:
            self._corrections = recording.session.live.corrections
            frames.append(frame("changed", {"kind": "changed"}))
        return b"".join(frames)


def turn_record(turn: Turn) -> dict[str, Any]:
    """Return a turn as plain values."""
    times = {"start": round(turn.start, 3), "end": round(turn.end, 3)}
    sure = {} if turn.confidence is None else {"confidence": round(turn.confidence, 4)}
    return {**times, "speaker": turn.speaker, "cluster": turn.cluster, **sure}


def _final(number: int, turn: Turn) -> bytes:
    values = {"kind": "final", "number": number, **turn_record(turn)}
    return b"id: %d\n" % number + frame("final", values)


def _check_same(recording: Recording, given: dict[str, Any]) -> None:
    """Refuse parameters other than those with which the recording began."""
    wanted = parameters_of(given)
    for name in given:
        there = getattr(recording.parameters, name)
        if getattr(wanted, name) != there:
            raise Refusal(
                409,
                "exists",
                f"{name}={getattr(wanted, name)!r:.80} for the recording {recording.name!r}",
                expected=f"{there!r:.80}, with which it began",
                remedy="Leave it out, or begin another recording.",
            )
