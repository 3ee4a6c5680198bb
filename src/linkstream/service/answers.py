"""Answers: every error in one shape, with the status that says whose it is."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from linkstream.errors import (
    ArgumentError,
    ContradictionError,
    DamagedStoreError,
    IdempotencyError,
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

# The first that fits; what is not the caller's is the store's: it may be well again later.
_STATUS: tuple[tuple[type[LinkstreamError], int], ...] = (
    (RemovedError, 410),
    (UnknownIdError, 404),
    (IdempotencyError, 409),
    (ContradictionError, 409),
    (UndoError, 409),
    (ArgumentError, 400),
    (NotTrackedError, 409),
    (MissingExtraError, 415),
    (DamagedStoreError, 503),
    (StoreError, 503),
    (SnapshotError, 503),
)
_WORDS = re.compile(r"(?<!^)(?=[A-Z])")
_ENCODER = json.JSONEncoder(separators=(",", ":"))
RETRY = 1  # seconds after which one may try again


class Refusal(LinkstreamError):  # noqa: N818  # an answer rather than a failure
    """What the service itself refuses: status, kind, seen, expected, remedy."""

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
    """More than a namespace takes at a time."""
    return _later(429, "too-many", seen, expected)


def busy(seen: str, expected: str) -> Refusal:
    """More than the service takes at a time."""
    return _later(503, "busy", seen, expected)


def _later(status: int, kind: str, seen: str, expected: str) -> Refusal:
    headers = {"Retry-After": str(RETRY)}
    remedy = "Wait as long as Retry-After says, and send it again."
    return Refusal(status, kind, seen, expected=expected, remedy=remedy, headers=headers)


def not_found(seen: str, expected: str, remedy: str) -> Refusal:
    """Something that is not there."""
    return Refusal(404, "not-found", seen, expected=expected, remedy=remedy)


def status_of(error: LinkstreamError) -> int:
    """The status of an error of ours."""
    if isinstance(error, Refusal):
        return error.status
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def kind_of(error: LinkstreamError) -> str:
    """The kind of an error of ours: its class, in words."""
    if isinstance(error, Refusal):
        return error.kind
    name = type(error).__name__.removesuffix("Error")
    return _WORDS.sub("-", name).lower()


def told(error: LinkstreamError) -> dict[str, Any]:
    """An error as plain values."""
    plain: dict[str, Any] = {
        "kind": kind_of(error),
        "seen": error.seen,
        "expected": error.expected,
        "remedy": error.remedy,
    }
    if isinstance(error, VectorError):
        plain["row"] = error.row
    if isinstance(error, ContradictionError):
        plain["chain"] = list(error.chain)
        plain["correction"] = error.correction
    return {"error": plain}


def hidden_of(settings: Settings) -> str:
    """What no answer tells: where the stores lie."""
    return f"{settings.data}{os.sep}"


def refused(error: LinkstreamError, *, hidden: str = "") -> Response:
    """The answer that an error of ours is; `hidden`: a folder that is nobody's business."""
    status = status_of(error)
    headers = dict(error.headers) if isinstance(error, Refusal) else {}
    if status == 503:
        headers.setdefault("Retry-After", str(RETRY))
    body = told(error)
    for name in ("seen", "expected", "remedy"):
        words = body["error"][name]
        body["error"][name] = words.replace(hidden, "") if hidden else words
    return plain(body, status=status, headers=headers)


def plain(values: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Plain values as JSON. Lone halves of letters, which JSON may hold, are spelt out."""
    body = _ENCODER.encode(values).encode()
    return Response(body, status_code=status, headers=headers, media_type="application/json")
