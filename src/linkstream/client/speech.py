"""Recordings of speech: segments with times in, who spoke when out, live."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from linkstream.adapters.rttm import Turn, check_span
from linkstream.client.endpoint import Retries
from linkstream.client.errors import AnswerError
from linkstream.client.event_stream import Follower
from linkstream.client.requests import Steps, fetch, finite, post, rows_of
from linkstream.errors import ArgumentError
from linkstream.turn_model import TimeModel

_AT_ONCE = 256  # segments of one request
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording of a namespace.

    Attributes:
        recording: its name.
        segments: number of segments so far.
        seconds: end of the last segment.
        final: number of final turns.
        finished: whether it was ended.
        delay: as it began, see `add_segments`.
        gap: as it began.
        overlaps: as it began.
        model: as it began.
        turns: its turns at the moment that was asked for; none in a list of recordings.
        pending: turns that may still change; none in a list of recordings.
    """

    recording: str
    segments: int
    seconds: float
    final: int
    finished: bool
    delay: float | None
    gap: float
    overlaps: str
    model: TimeModel
    turns: tuple[Turn, ...] = ()
    pending: tuple[Turn, ...] = ()


def add_segments(
    recording: str,
    times: npt.ArrayLike,
    X: npt.ArrayLike,
    *,
    groups: Sequence[str | None] | None = None,
    delay: float | None = 1.0,
    gap: float = 0.5,
    overlaps: Literal["cut", "keep"] = "cut",
    model: TimeModel | None = None,
    idempotency_key: str | None = None,
) -> Steps[list[Turn]]:
    """Add segments of speech to a recording; return the turns that became final.

    The first call begins the recording, with its parameters; later calls pass the same. The
    parameters are those of `Diarizer`. More than 256 segments go in several requests: after an
    error some may be there, and the same call with the same key adds the others.

    Args:
        recording: its name: letters, digits, dots, hyphens and underscores.
        times: start and end of each segment, in seconds; with a delay in order of the starts.
        X: a vector for each segment.
        groups: a group for each segment, or None: segments of one group have different speakers.
            Only with `delay=None`.
        delay: seconds until a segment is final; None decides on each by itself.
        gap: a pause of up to this many seconds does not end a turn.
        overlaps: "cut" or "keep": how to treat segments that overlap.
        model: parameters of the evidence of time; None takes the defaults.
        idempotency_key: the same call with the same key is done once, and gets the first answer
            again.
    """
    path, rows = _path(recording), finite(rows_of(X))
    spans = [check_span(*each) for each in np.asarray(times, dtype=np.float64).reshape(-1, 2)]
    given: dict[str, Any] = {"delay": delay, "gap": gap, "overlaps": overlaps}
    given["model"] = asdict(model or TimeModel())
    told: list[Turn] = []
    for first in range(0, max(len(rows), len(spans), 1), _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        values = {"vectors": rows[part].tolist(), "times": spans[part], **given}
        values["groups"] = None if groups is None else list(groups[part])
        key = f"{idempotency_key}.{first}" if idempotency_key and first else idempotency_key
        answer = yield post(path, values, key=key)
        told += answer.read(_final)
    return told


def finish_recording(recording: str) -> Steps[list[Turn]]:
    """End a recording: all its segments are final. Return the turns that were not.

    Args:
        recording: its name.
    """
    answer = yield post(f"{_path(recording)}/finish", {})
    return answer.read(_final)


def turns(
    recording: str, moment: Literal["final", "current", "instant"] = "final"
) -> Steps[Recording]:
    """Return a recording with its turns, and those that may still change.

    Args:
        recording: its name.
        moment: "final" turns never change; "current" ones are estimated again from the whole
            recording; "instant" ones are as they were first given. As for `Diarizer`.
    """
    return fetch(_path(recording), _read, moment=moment)


def recordings() -> Steps[list[Recording]]:
    """Return the recordings that the service has in memory, without turns."""
    return fetch("turns", lambda values: [_read(each) for each in values["recordings"]])


class TurnFollower(Follower[Turn]):
    """Keeps the position in the stream of a recording's turns."""

    def __init__(self, recording: str, since: int, retries: Retries) -> None:
        super().__init__(f"{_path(recording)}/stream", since, retries)

    def parse(self, message: bytes) -> Iterator[tuple[int, Turn]]:
        """Yield the final turn of a message, with its number."""
        try:
            values = json.loads(message)
            if values["kind"] == "final":
                yield int(values["number"]), _turn(values)
        except (ValueError, KeyError, TypeError) as error:
            raise AnswerError(
                f"a message that is no turn ({error!s:.200})",
                expected="a turn of this version of the service",
                remedy="Use the same version for client and service; check proxies between them.",
            ) from None


def _path(recording: object) -> str:
    if not isinstance(recording, str) or not _NAME.fullmatch(recording):
        raise ArgumentError(
            f"the recording {recording!r:.80}",
            expected="1 to 100 letters, digits, dots, hyphens and underscores",
            remedy="Begin the name with a letter or a digit.",
        )
    return f"turns/{recording}"


def _turn(values: Any) -> Turn:
    cluster = values["cluster"]
    return Turn(
        float(values["start"]),
        float(values["end"]),
        str(values["speaker"]),
        None if cluster is None else int(cluster),
    )


def _final(values: Any) -> list[Turn]:
    return [_turn(each) for each in values["final"]]


def _read(values: Any) -> Recording:
    return Recording(
        recording=str(values["recording"]),
        segments=int(values["segments"]),
        seconds=float(values["seconds"]),
        final=int(values["final"]),
        finished=bool(values["finished"]),
        delay=values["delay"],
        gap=values["gap"],
        overlaps=values["overlaps"],
        model=TimeModel(**values["model"]),
        turns=tuple(map(_turn, values.get("turns", ()))),
        pending=tuple(map(_turn, values.get("pending", ()))),
    )
