"""Responses: JSON, and every error in one form with its HTTP status."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from linkstream.errors import (
    ArgumentError,
    ChangedError,
    ContradictionError,
    DamagedStoreError,
    IdempotencyError,
    KeyTakenError,
    LinkstreamError,
    MissingExtraError,
    NotTrackedError,
    RemovedError,
    SnapshotError,
    StoreError,
    UndoError,
    UnknownIdError,
    VectorError,
)

if TYPE_CHECKING:
    from linkstream.service.settings import Settings

# The first class that fits. Errors of the store are 503: a later attempt may succeed.
_STATUS: tuple[tuple[int, tuple[type[LinkstreamError], ...]], ...] = (
    (410, (RemovedError,)),
    (404, (UnknownIdError,)),
    (409, (IdempotencyError, ContradictionError, KeyTakenError, UndoError, ChangedError)),
    (400, (ArgumentError,)),
    (409, (NotTrackedError,)),
    (415, (MissingExtraError,)),
    (503, (DamagedStoreError, StoreError, SnapshotError)),
)
_WORDS = re.compile(r"(?<!^)(?=[A-Z])")
_ENCODER = json.JSONEncoder(separators=(",", ":"))
_SLICE = 2_000  # values of a list that are encoded at a time
RETRY = 1  # seconds for Retry-After


class Refusal(LinkstreamError):  # noqa: N818  # a response rather than a failure
    """A request that the service refuses, with the HTTP status and the kind of the error."""

    def __init__(
        self,
        status: int,
        kind: str,
        seen: str,
        *,
        expected: str,
        remedy: str,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(seen, expected=expected, remedy=remedy)
        self.status, self.kind = status, kind
        self.headers = headers or {}


def too_many(seen: str, expected: str) -> Refusal:
    """Return the error for too many requests at one namespace."""
    return _later(429, "too-many", seen, expected)


def busy(seen: str, expected: str) -> Refusal:
    """Return the error for too many requests at the service."""
    return _later(503, "busy", seen, expected)


def _later(status: int, kind: str, seen: str, expected: str) -> Refusal:
    headers = {"Retry-After": str(RETRY)}
    remedy = "Send the request again after the seconds of Retry-After."
    return Refusal(status, kind, seen, expected=expected, remedy=remedy, headers=headers)


def too_large(seen: str, expected: str, remedy: str) -> Refusal:
    """Return the error for a request over a limit of its size."""
    return Refusal(413, "too-large", seen, expected=expected, remedy=remedy)


def not_found(seen: str, expected: str, remedy: str) -> Refusal:
    """Return the error for something that does not exist."""
    return Refusal(404, "not-found", seen, expected=expected, remedy=remedy)


def fault(seen: str) -> Refusal:
    """Return the error for a fault of the service."""
    remedy = "Acknowledged data is safe. See the log of the service, and report the fault."
    return Refusal(500, "fault", seen, expected="no fault", remedy=remedy)


def error_body(error: LinkstreamError, *, hidden: str = "") -> dict[str, Any]:
    """Return the JSON body of an error; its kind is the name of the class, such as unknown-id.

    The folder `hidden` is removed from its texts, in any form of its path.
    """
    name = _WORDS.sub("-", type(error).__name__.removesuffix("Error")).lower()
    values: dict[str, Any] = {
        "kind": error.kind if isinstance(error, Refusal) else name,
    }
    for each in ("seen", "expected", "remedy"):
        values[each] = without_folder(getattr(error, each), hidden)
    if isinstance(error, VectorError):
        values["row"] = error.row
    if isinstance(error, KeyTakenError):
        values["vector"] = error.vector
    if isinstance(error, ContradictionError):
        values["chain"] = list(error.chain)
        values["correction"] = error.correction
    return {"error": values}


def without_folder(words: str, folder: str) -> str:
    """Remove the path of a folder from a text; a path of a file in it becomes its name."""
    if not folder:
        return words
    inside, itself = _paths(folder)
    return itself.sub("the data folder", inside.sub("", words))


@lru_cache(maxsize=16)
def _paths(folder: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns of the path of a folder before a name, and alone."""
    given = folder.rstrip(os.sep)
    forms = {given, os.path.abspath(given), os.path.realpath(given)} - {"", "."}
    either = "|".join(map(re.escape, sorted(forms, key=len, reverse=True)))
    before = r"(?<![\w./-])(?:\./)?"
    alone = re.compile(rf"{before}(?:{either})(?![\w-]|\.\w)")
    return re.compile(rf"{before}(?:{either}){re.escape(os.sep)}+(?=[\w.-])"), alone


def hidden_prefix(settings: Settings) -> str:
    """Return the path prefix that no response shows: the folder of the stores."""
    return f"{settings.data}{os.sep}"


def error_response(error: LinkstreamError, *, hidden: str = "") -> Response:
    """Return the response for an error, with the path prefix `hidden` removed from its texts."""
    if isinstance(error, Refusal):
        status, headers = error.status, dict(error.headers)
    else:
        found = (status for status, kinds in _STATUS if isinstance(error, kinds))
        status, headers = next(found, 500), {}
    if status == 503:
        headers.setdefault("Retry-After", str(RETRY))
    return json_response(error_body(error, hidden=hidden), status=status, headers=headers)


def json_response(
    values: Any, *, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """Return plain values as JSON; non-ASCII characters and lone surrogates are escaped."""
    body = _ENCODER.encode(values).encode()
    return Response(body, status_code=status, headers=headers, media_type="application/json")


def json_bytes(values: Any) -> bytes:
    """Return values as JSON, for long answers: other threads can run meanwhile.

    Encoding in one call would hold Python's global lock from beginning to end.
    """
    return "".join(_pieces(values)).encode()


def _pieces(values: Any) -> Iterator[str]:
    if isinstance(values, dict) and values:
        for place, (name, value) in enumerate(values.items()):
            yield f"{',' if place else '{'}{_ENCODER.encode(name)}:"
            yield from _pieces(value)
        yield "}"
    elif isinstance(values, list) and len(values) > _SLICE:
        for first in range(0, len(values), _SLICE):
            part = _ENCODER.encode(values[first : first + _SLICE])
            yield ("," if first else "[") + part[1:-1]
        yield "]"
    else:
        yield _ENCODER.encode(values)
