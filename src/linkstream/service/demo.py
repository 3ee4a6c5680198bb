"""The demo of a service: the voices that come with the package, as if somebody spoke now."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from linkstream.data import VoiceStream, voice_halves
from linkstream.errors import LinkstreamError
from linkstream.paper.thresholds import Thresholds
from linkstream.service.answers import Refusal
from linkstream.store import write_requests

if TYPE_CHECKING:
    from linkstream.service.sessions import Session, Sessions

NAMESPACE = "voices"
# Those of `linkstream demo`: tuned on the five speakers who are not heard here.
THRESHOLDS = Thresholds(
    cluster_similarity=0.766, subcluster_similarity=0.645, pair_similarity_max=0.738
)
AT_ONCE = 120  # windows, so that the page is not empty at first
STEP = 0.4  # seconds from one window of speech to the next
_BUSY = (429, 503)

_log = logging.getLogger("linkstream.service")


async def feed(sessions: Sessions, *, step: float = STEP, at_once: int = AT_ONCE) -> None:
    """Feed five voices into the namespace "voices", some at once, the others at speaking pace.

    A folder that has some of them already gets the others: each window is taken once. At the end
    it says so, and the service stays. What goes wrong ends the demo alone.
    """
    stream = await sessions.aside(lambda: voice_halves()[1])
    try:
        session, _ = await sessions.make(NAMESPACE, {"thresholds": THRESHOLDS})
        done = await session.read(lambda store: store.n_vectors)
        for first, end in _pieces(len(stream.X), done, at_once):
            if sessions.stopping.is_set():
                return
            await _take(session, stream, first, end, step)
            if end < len(stream.X):
                await asyncio.sleep(step)
    except (LinkstreamError, OSError) as error:
        _log.error("the demo has ended: %s", error)  # noqa: TRY400, RUF100
        return
    _log.info("the demo has ended: all %d windows of speech were heard", len(stream.X))


def _pieces(n: int, done: int, at_once: int) -> list[tuple[int, int]]:
    """What is fed at a time. The first piece is the same each time, for it has one key."""
    pieces = [(0, min(at_once, n)), *((row, row + 1) for row in range(at_once, n))]
    return [(first, end) for first, end in pieces if end > done]


async def _take(session: Session, stream: VoiceStream, first: int, end: int, step: float) -> None:
    """Add some windows; where the service is busy, wait, as any client should."""
    X = stream.X[first:end]
    while True:
        ticket = write_requests.add_request(
            "add_many", X, 1.0, None, _payloads(stream, first, end), f"demo-{first}-{end}"
        )
        try:
            await session.write(ticket, X.nbytes)
            return
        except Refusal as refusal:
            if refusal.status not in _BUSY:
                raise
        await asyncio.sleep(max(step, 0.1))


def _payloads(stream: VoiceStream, first: int, end: int) -> list[dict[str, Any]]:
    """Who reads, as a letter in order of appearance, and when: the data has no names."""
    letters = _letters(stream.y)
    return [
        {"reader": letters[int(stream.y[row])], "t": round(row * STEP, 1)}
        for row in range(first, end)
    ]


def _letters(y: npt.NDArray[np.int64]) -> dict[int, str]:
    return {reader: chr(ord("A") + n) for n, reader in enumerate(dict.fromkeys(y.tolist()))}
