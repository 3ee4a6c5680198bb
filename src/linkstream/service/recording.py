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
from collections.abc import Sequence
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
from linkstream.service.stored_segments import (
    StoredSegment,
    digest_of,
    key_of,
    stored_segments,
)
from linkstream.store import Store
from linkstream.store.write_requests import request_of
from linkstream.turn_model import TimeModel

if TYPE_CHECKING:
    from linkstream.service.sessions import Session

SEGMENTS_MAX = 100_000  # of a recording: eleven hours at 2.5 a second
_BLOCK = 1_000  # vectors read at a time

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


class Keyed(NamedTuple):
    """The segments that an idempotency key was used for.

    Attributes:
        first: number of the first of them.
        digest: of all of them; None if it was not stored.
    """

    first: int
    digest: str | None


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
        self.requests: dict[str, Keyed] = {}
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
            self._recorder.key = key_of(self.name, self._next)
            self._recorder.payload = self._payload(span, heard if place == 0 else None)
            self._tell(span, self.diarizer.add(*span, heard.rows[place], group=group))
            self._next += 1
        if heard.key is not None:
            self.requests[heard.key] = Keyed(first, _digest(heard))
        self.finished = False
        self.pending = self.diarizer.pending()

    def recall(self, segment: StoredSegment, known: Known, row: Rows) -> None:
        """Add a segment that is in the store."""
        key, digest = (segment.payload.get(name) for name in ("request", "digest"))
        self._recorder.known.append(known)
        if isinstance(key, str):
            self.requests[key] = Keyed(len(self.times), digest)
        self._tell(segment.span, self.diarizer.add(*segment.span, row))

    def begin_at(self, number: int) -> None:
        """Go on with this number in the key of the next segment."""
        self._next = number

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

    def _payload(self, span: tuple[float, float], heard: Heard | None) -> dict[str, Any]:
        """Return the payload of a segment; `heard` is the request that begins with it."""
        payload = {"recording": self.name, "start": span[0], "end": span[1]}
        if not self.times:
            payload["parameters"] = asdict(self.parameters)
        if heard is None or heard.key is None:
            return payload
        return {**payload, "request": heard.key, "digest": _digest(heard)}

    # On the event loop

    def told_of(self, first: int, n: int) -> list[Turn]:
        """Return the turns that `n` segments from `first` on have made final."""
        begin = bisect_right(self.told, first, key=_after)
        end = bisect_right(self.told, first + n, key=_after)
        return [each.turn for each in self.told[begin:end] if not each.finishing]

    def check(self, heard: Heard) -> int:
        """Return the number of the first segment of a request; refuse what cannot be added."""
        first, digest = self.requests.get(heard.key or "", Keyed(len(self.times), None))
        there = self.times[first : first + len(heard.times)]
        if there != heard.times[: len(there)] or digest not in (None, _digest(heard)):
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


def _digest(heard: Heard) -> str:
    return digest_of(heard.times, heard.rows, heard.groups)


def parameters_of(given: dict[str, Any]) -> Parameters:
    """Return the parameters of a recording from those that a request gave."""
    model = given.get("model")
    return Parameters(**{**given, "model": TimeModel() if model is None else TimeModel(**model)})


def recalled(
    store: Store, session: Session, name: str, loop: asyncio.AbstractEventLoop
) -> Recording | None:
    """Return a recording from the store; None if no segment of it is there."""
    stored = stored_segments(store, name)
    if not stored.segments:
        return None
    vectors = [each.vector for each in stored.segments]
    labels, first = store.labels(), stored.segments[0].payload
    recording = Recording(name, _stored_parameters(first), session, loop)
    for begin in range(0, len(vectors), _BLOCK):
        rows = store.vectors(vectors[begin : begin + _BLOCK])
        for segment, row in zip(stored.segments[begin : begin + _BLOCK], rows, strict=True):
            recording.recall(segment, Known(int(labels[segment.vector]), segment.vector), row)
    recording.finish()
    recording.begin_at(stored.free)
    return recording


def _stored_parameters(payload: dict[str, Any]) -> Parameters:
    """Return the parameters in the payload of the first segment; the defaults without them."""
    given = payload.get("parameters")
    try:
        return parameters_of(given) if isinstance(given, dict) else Parameters()
    except (TypeError, ArgumentError):  # not written by the service
        return Parameters()


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
