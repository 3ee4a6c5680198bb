"""One recording of a namespace: who spoke when, live.

A recording is a `Diarizer` over the store of the namespace. Each segment becomes a vector with the
key `turns/RECORDING/NUMBER` and a payload with its times. So a recording that is not in memory, as
after a restart, is made again from the store: its vectors, times and parameters are those that were
sent; the turns of its segments are estimated again, and all are final.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from linkstream.adapters.diarization import Diarizer, Turn
from linkstream.adapters.rttm import check_span
from linkstream.clusterer.verbs import Add, AddMany
from linkstream.engine import door
from linkstream.engine.contract import Decision
from linkstream.engine.fixed_point import norms
from linkstream.errors import ArgumentError, DimensionError, IdempotencyError
from linkstream.service.responses import Refusal
from linkstream.store import Store
from linkstream.store.model import Model
from linkstream.store.write_requests import request_of
from linkstream.turn_model import TimeModel

if TYPE_CHECKING:
    from linkstream.service.sessions import Session

SEGMENTS_MAX = 100_000  # of a recording: eleven hours at 2.5 a second
REMOVED_MAX = 10_000  # segments in a row that may have been removed
_BLOCK = 1_000  # keys looked up at a time

Rows = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of a recording, as for `Diarizer`."""

    delay: float | None = 1.0
    gap: float = 0.5
    overlaps: str = "cut"
    model: TimeModel = field(default_factory=TimeModel)


class Heard(NamedTuple):
    """Segments of one request: their times, vectors and groups."""

    times: list[tuple[float, float]]
    rows: Rows
    groups: Sequence[str | None]
    key: str | None = None


class Told(NamedTuple):
    """A turn that has become final.

    Attributes:
        after: number of segments that were heard then.
        finishing: whether the end of the recording made it final.
        turn: the turn.
    """

    after: int
    finishing: bool
    turn: Turn


def _after(told: Told) -> int:
    return told.after


class Known(NamedTuple):
    """What a `Diarizer` needs of the decision on a vector that is in the store."""

    cluster: int
    sequence: int
    probability: None = None  # it was told when the vector came


class _Recorder:
    """A store to which a `Diarizer` adds the segments of a recording, with keys and payloads."""

    def __init__(self, session: Session, loop: asyncio.AbstractEventLoop) -> None:
        self._session, self._loop = session, loop
        self._store = session.store
        self.known: list[Known] = []  # the next segment, if it is in the store already
        self.key = ""
        self.payload: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def add(self, x: Any, *, group: str | None = None) -> Decision | Known:
        """Add a vector through the queue of the namespace, if it is new; return its cluster."""
        if self.known:
            return self.known.pop()
        row = np.asarray(x, dtype=np.float32)
        call = request_of(Add(row, group=group), payloads=[self.payload], ids=[self.key])
        writing = self._session.write(call, row.nbytes)
        answer: Decision = asyncio.run_coroutine_threadsafe(writing, self._loop).result().answer
        return answer


class Recording:
    """One recording in memory.

    Args:
        name: its name.
        parameters: its parameters.
        session: the namespace.
        loop: the event loop of the service.
    """

    def __init__(
        self,
        name: str,
        parameters: Parameters,
        session: Session,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.name, self.parameters, self.session = name, parameters, session
        self._recorder = _Recorder(session, loop)
        links: Any = self._recorder
        self.diarizer = Diarizer(links, uri=name, **_options(parameters))
        self.times: list[tuple[float, float]] = []
        self.told: list[Told] = []
        self.pending: list[Turn] = []
        self.finished = False
        self.requests: dict[str, int] = {}  # first segment of each request with a key
        self.lock = asyncio.Lock()
        self.readers = 0
        self.used = time.monotonic()
        self.undone = session.live.undone
        self.version = 0
        self._changed = asyncio.Event()
        self._next = 0  # number in the key of the next segment

    # In a thread, with the lock

    def hear(self, heard: Heard, first: int) -> None:
        """Add the segments of a request, from the first that is not there yet."""
        for place in range(len(self.times) - first, len(heard.times)):
            span, group = heard.times[place], heard.groups[place]
            self._recorder.key = f"turns/{self.name}/{self._next}"
            self._recorder.payload = self._payload(span, heard.key if place == 0 else None)
            self._tell(span, self.diarizer.add(*span, heard.rows[place], group=group))
            self._next += 1
        if heard.key is not None:
            self.requests[heard.key] = first
        self.finished = False
        self.pending = self.diarizer.pending()

    def recall(self, payload: dict[str, Any], known: Known, row: Rows, number: int) -> None:
        """Add a segment that is in the store, with the number in its key."""
        span = float(payload["start"]), float(payload["end"])
        self._recorder.known.append(known)
        if payload.get("request") is not None:
            self.requests[payload["request"]] = len(self.times)
        self._tell(span, self.diarizer.add(*span, row))
        self._next = number + 1

    def finish(self) -> list[Turn]:
        """Make all segments final; return the turns that only the end made final."""
        n = len(self.times)
        self.told += [Told(n, True, turn) for turn in self.diarizer.finish()]
        self.pending, self.finished = [], True
        last = self.told[bisect_left(self.told, n, key=_after) :]
        return [each.turn for each in last if each.finishing]

    def _tell(self, span: tuple[float, float], final: list[Turn]) -> None:
        self.times.append(span)
        self.told += [Told(len(self.times), False, turn) for turn in final]

    def _payload(self, span: tuple[float, float], key: str | None) -> dict[str, Any]:
        payload = {"recording": self.name, "start": span[0], "end": span[1]}
        if self._next == 0:
            payload["parameters"] = asdict(self.parameters)
        return payload if key is None else {**payload, "request": key}

    # On the event loop

    def told_of(self, first: int, n: int) -> list[Turn]:
        """Return the turns that `n` segments from `first` on have made final."""
        begin = bisect_right(self.told, first, key=_after)
        end = bisect_right(self.told, first + n, key=_after)
        return [each.turn for each in self.told[begin:end] if not each.finishing]

    def check(self, heard: Heard) -> int:
        """Return the number of the first segment of a request; refuse what cannot be added."""
        first = self.requests.get(heard.key or "", len(self.times))
        there = self.times[first : first + len(heard.times)]
        if there != heard.times[: len(there)]:
            raise IdempotencyError(
                f"idempotency_key={heard.key!r:.80}, used before for other segments",
                expected="the same call as before",
                remedy="Use a new key for each call.",
            )
        self._check_new(heard, len(there))
        return first

    def _check_new(self, heard: Heard, first: int) -> None:
        """Raise an error if segments of a request, from one on, cannot be added."""
        n, new = len(self.times), heard.times[first:]
        if n + len(new) > SEGMENTS_MAX:
            raise Refusal(
                409,
                "too-many",
                f"{n} segments of {self.name!r} and {len(new)} more",
                expected=f"at most {SEGMENTS_MAX}",
                remedy="Begin another recording; names hold there, too.",
            )
        dimension, width = self.session.store.dimension, heard.rows.shape[1]
        if dimension not in (None, width):
            raise DimensionError(
                f"vectors of dimension {width}",
                expected=f"dimension {dimension}, as before",
                remedy="One namespace has the vectors of one encoder.",
            )
        if self.parameters.delay is not None:
            _check_one_at_a_time([*self.times[-1:], *new], heard.groups)

    def touch(self) -> None:
        """Note that it was used, and wake who waits for a change."""
        self.used = time.monotonic()
        self.version += 1
        before, self._changed = self._changed, asyncio.Event()
        before.set()

    async def change(self, seen: int, seconds: float) -> None:
        """Wait for a version other than `seen`, at most some seconds."""
        if self.version == seen:
            with contextlib.suppress(asyncio.TimeoutError):  # its name before Python 3.11
                await asyncio.wait_for(self._changed.wait(), seconds)

    def to_dict(self) -> dict[str, Any]:
        """Return what it is, without its turns."""
        return {
            "recording": self.name,
            "segments": len(self.times),
            "seconds": max((end for _, end in self.times[-1:]), default=0.0),
            "final": len(self.told),
            "finished": self.finished,
            **asdict(self.parameters),
        }


def heard_of(
    times: Sequence[Sequence[float]],
    vectors: Any,
    groups: Sequence[str | None] | None,
    key: str | None,
) -> Heard:
    """Return the segments of a request; raise ArgumentError if they cannot be segments.

    Args:
        times: start and end of each.
        vectors: a vector for each.
        groups: a group for each; None for none.
        key: the idempotency key of the request.
    """
    rows = request_of(AddMany(vectors)).rows  # checks them
    n = 0 if rows is None else len(rows)
    if rows is None or len(times) != n or (groups is not None and len(groups) != n):
        of_groups = "" if groups is None else f" and {len(groups)} groups"
        raise ArgumentError(
            f"{len(times)} times{of_groups} for {n} vectors",
            expected="one for each vector, and at least one vector",
            remedy="Send the start and the end of each segment.",
        )
    door.check_norms(rows, norms(rows.astype(np.float64)))
    spans = [check_span(*each) for each in times]
    return Heard(spans, rows, groups or [None] * n, key)


def parameters_of(given: dict[str, Any]) -> Parameters:
    """Return the parameters of a recording from those that a request gave."""
    model = given.get("model")
    return Parameters(**{**given, "model": TimeModel() if model is None else TimeModel(**model)})


def recalled(
    store: Store, session: Session, name: str, loop: asyncio.AbstractEventLoop
) -> Recording | None:
    """Return a recording from the store; None if no segment of it is there."""
    found = list(_segments(store, name))
    if not found:
        return None
    numbers, vectors = zip(*found, strict=True)
    labels, payloads = store.labels(), store.payloads(vectors)
    recording = Recording(name, parameters_of(payloads[0].get("parameters", {})), session, loop)
    for first in range(0, len(found), _BLOCK):
        rows = store.vectors(vectors[first : first + _BLOCK])
        for place, row in enumerate(rows, start=first):
            known = Known(int(labels[vectors[place]]), vectors[place])
            recording.recall(payloads[place], known, row, numbers[place])
    recording.finish()
    return recording


def _segments(store: Store, name: str) -> Iterator[tuple[int, int]]:
    """Yield the numbers of the segments of a recording, and of their vectors."""
    first, missing = 0, 0
    while missing < REMOVED_MAX:
        keys = [f"turns/{name}/{number}" for number in range(first, first + _BLOCK)]
        for number, vector in enumerate(store.handle.read(_among(keys)), start=first):
            missing = missing + 1 if vector is None else 0
            if vector is not None:
                yield number, vector
        first += _BLOCK


def _among(keys: list[str]) -> Callable[[Model], list[int | None]]:
    return lambda model: model.keyed.among(keys)


def _options(parameters: Parameters) -> dict[str, Any]:
    return {each.name: getattr(parameters, each.name) for each in fields(parameters)}


def _check_one_at_a_time(
    times: Sequence[tuple[float, float]], groups: Sequence[str | None]
) -> None:
    """Raise ArgumentError unless segments are in order, without groups."""
    group = next((each for each in groups if each is not None), None)
    if group is not None:
        raise ArgumentError(
            f"the group {group!r:.80} in a recording with a delay",
            expected="segments of one speaker at a time",
            remedy='Begin the recording with "delay": null.',
        )
    for (before, _), (start, _) in pairwise(times):
        if start < before:
            raise ArgumentError(
                f"a segment from {start:g} after one from {before:g}",
                expected="segments in order of their starts",
                remedy='Sort them, or begin the recording with "delay": null.',
            )
