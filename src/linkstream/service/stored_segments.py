"""The segments of a recording as its store has them: vectors with keys and payloads.

A segment has the key `turns/RECORDING/NUMBER`. A vector with such a key that someone else added,
without the payload of a segment, is none; its number is left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from linkstream.adapters.rttm import check_span
from linkstream.errors import ArgumentError
from linkstream.store import Store
from linkstream.store.model import Model

REMOVED_MAX = 10_000  # segments in a row that may have been removed
_BLOCK = 1_000  # keys looked up at a time


class StoredSegment(NamedTuple):
    """A segment that is in the store.

    Attributes:
        number: the number in its key.
        vector: the number of its vector.
        span: start and end.
        payload: what was stored with it.
    """

    number: int
    vector: int
    span: tuple[float, float]
    payload: dict[str, Any]


class Stored(NamedTuple):
    """The segments of a recording, in order, and the first number that is free after them."""

    segments: list[StoredSegment]
    free: int


def key_of(recording: str, number: int) -> str:
    """Return the key of the vector of a segment."""
    return f"turns/{recording}/{number}"


def stored_segments(store: Store, recording: str) -> Stored:
    """Return the segments of a recording that are in a store.

    Args:
        store: the store.
        recording: name of the recording.
    """
    found = list(_keyed(store, recording))
    payloads = store.payloads([vector for _, vector in found]) if found else []
    segments: list[StoredSegment] = []
    for (number, vector), payload in zip(found, payloads, strict=True):
        span = _span_of(payload, recording)
        if span is not None and (not segments or _follows(span, segments)):
            segments.append(StoredSegment(number, vector, span, payload))
    return Stored(segments, found[-1][0] + 1 if found else 0)


def _follows(span: tuple[float, float], segments: list[StoredSegment]) -> bool:
    """Return whether a span may be that of the next segment: with a delay they are in order."""
    parameters = segments[0].payload.get("parameters")
    free = isinstance(parameters, dict) and parameters.get("delay", 1.0) is None
    return free or span[0] >= segments[-1].span[0]


def _span_of(payload: object, recording: str) -> tuple[float, float] | None:
    """Return the times in the payload of a segment; None if it is that of another vector."""
    if not isinstance(payload, dict) or payload.get("recording") != recording:
        return None
    try:
        return check_span(payload.get("start"), payload.get("end"))
    except ArgumentError:
        return None


def _keyed(store: Store, recording: str) -> Iterator[tuple[int, int]]:
    """Yield the numbers in the keys of a recording, and their vectors."""
    first, missing = 0, 0
    while missing < REMOVED_MAX:
        keys = [key_of(recording, number) for number in range(first, first + _BLOCK)]
        for number, vector in enumerate(store.handle.read(_among(keys)), start=first):
            missing = missing + 1 if vector is None else 0
            if vector is not None:
                yield number, vector
        first += _BLOCK


def _among(keys: list[str]) -> Callable[[Model], list[int | None]]:
    return lambda model: model.keyed.among(keys)


def digest_of(
    times: Sequence[tuple[float, float]],
    rows: npt.NDArray[np.float32],
    groups: Sequence[str | None],
) -> str:
    """Return a digest of the segments of a request, which its idempotency key is bound to.

    Args:
        times: start and end of each.
        rows: their vectors.
        groups: their groups.
    """
    told = json.dumps([list(map(list, times)), list(groups)]).encode()
    found = hashlib.blake2b(told, digest_size=16)
    found.update(np.ascontiguousarray(rows, dtype="<f4").tobytes())
    return found.hexdigest()
