"""The demo: feed the voices that come with the package at speaking pace."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer.verbs import AddMany
from linkstream.data import VoiceStream, voice_halves
from linkstream.errors import LinkstreamError
from linkstream.paper.thresholds import Thresholds
from linkstream.service.responses import Refusal
from linkstream.store.write_requests import request_of

if TYPE_CHECKING:
    from linkstream.service.sessions import Session, Sessions

NAMESPACE = "voices"
# The thresholds of `linkstream demo`, tuned on the other five speakers.
THRESHOLDS = Thresholds(
    cluster_similarity=0.766, subcluster_similarity=0.645, pair_similarity_max=0.738
)
AT_ONCE = 120  # windows of speech fed at once, so that the dashboard is not empty
STEP = 0.4  # seconds from one window of speech to the next
_BUSY = (429, 503)

_log = logging.getLogger("linkstream.service")


def start(sessions: Sessions, name: str = NAMESPACE) -> None:
    """Feed the voices to a namespace in the background, unless it is being fed."""
    if name not in sessions.demos:
        sessions.demos.add(name)
        sessions.spawn(_feed_once(sessions, name))


async def _feed_once(sessions: Sessions, name: str) -> None:
    try:
        await feed(sessions, name)
    finally:
        sessions.demos.discard(name)


async def feed(
    sessions: Sessions, name: str = NAMESPACE, *, step: float = STEP, at_once: int = AT_ONCE
) -> None:
    """Feed five voices into a namespace: some at once, the rest at speaking pace.

    Windows that the namespace already has are skipped. An error ends the demo, not the service.
    """
    stream = await sessions.run_in_thread(lambda: voice_halves()[1])
    try:
        session, _ = await sessions.make(name, {"thresholds": THRESHOLDS})
        done = await session.read(lambda store: store.n_vectors)
        for first, end in _ranges(len(stream.X), done, at_once):
            if sessions.stopping.is_set():
                return
            await _add(session, stream, first, end, step)
            if end < len(stream.X):
                await asyncio.sleep(step)
    except (LinkstreamError, OSError) as error:
        _log.error("the demo has ended: %s", error)  # noqa: TRY400, RUF100
        return
    _log.info("the demo has ended: all %d windows of speech were heard", len(stream.X))


def _ranges(n: int, done: int, at_once: int) -> list[tuple[int, int]]:
    """Return the ranges to feed. The first is always the same, because its key is fixed."""
    ranges = [(0, min(at_once, n)), *((row, row + 1) for row in range(at_once, n))]
    return [(first, end) for first, end in ranges if end > done]


async def _add(session: Session, stream: VoiceStream, first: int, end: int, step: float) -> None:
    """Add some windows; wait and try again while the service is busy."""
    X = stream.X[first:end]
    while True:
        payloads = _payloads(stream, first, end)
        call = request_of(AddMany(X), payloads=payloads, key=f"demo-{first}-{end}")
        try:
            await session.write(call, X.nbytes)
            return
        except Refusal as refusal:
            if refusal.status not in _BUSY:
                raise
        await asyncio.sleep(max(step, 0.1))


def _payloads(stream: VoiceStream, first: int, end: int) -> list[dict[str, Any]]:
    """Return payloads with the reader, as a letter in order of appearance, and the time."""
    letters = _letters(stream.y)
    return [
        {"reader": letters[int(stream.y[row])], "t": round(row * STEP, 1)}
        for row in range(first, end)
    ]


def _letters(y: npt.NDArray[np.int64]) -> dict[int, str]:
    return {reader: chr(ord("A") + n) for n, reader in enumerate(dict.fromkeys(y.tolist()))}
