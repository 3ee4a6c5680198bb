"""Errors that only a client meets.

What a `Links` or a `Store` would have raised is raised here too, as the same class of
`linkstream.errors`: the service names the class, and the client makes it anew.

```text
LinkstreamError
└── ServiceError                  the service, or the way to it; has status, kind, retry_after
    ├── UnreachableError          no answer came, however often it was tried
    ├── AnswerError               an answer that is not one of this service
    ├── TokenError                no token, or one that is not known (any more)
    ├── ScopeError                a token that does not allow this
    ├── NotFoundError             no such namespace, or no such route
    ├── MethodError               a route that takes other methods
    ├── ExistsError               a namespace that was made otherwise
    ├── TooLargeError             more than the service takes in one call
    ├── TooSlowError              the request did not come in within its time
    ├── TooManyError              more calls than the namespace takes at a time
    ├── BusyError                 more calls than the service takes at a time
    ├── StoppingError             the service is about to stop
    ├── OriginError, HostError    a page of another site, or a name it does not go by
    └── MediaTypeError            a body of a kind that it does not read
```
"""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Mapping
from typing import Any

from linkstream import errors
from linkstream.errors import ContradictionError, LinkstreamError, VectorError

SHOWN = 200  # characters of an answer that is not understood


class ServiceError(LinkstreamError):
    """The service refused, or could not be asked.

    Attributes:
        status: of the answer; None where none came.
        kind: the service's own word for it.
        retry_after: seconds after which it says to try again; None where it says nothing.
        idempotency_key: what a write was sent under: the same call again under it counts once.
    """

    status: int | None = None
    kind: str = "service"
    retry_after: float | None = None
    idempotency_key: str | None = None


class UnreachableError(ServiceError):
    """No answer came, however often it was tried; a write may or may not have been done.

    The same call under the error's `idempotency_key` finds out, and is done once.
    """


class AnswerError(ServiceError):
    """An answer that is not one of this service: a proxy's page, or a newer version's."""


class TokenError(ServiceError):
    """No token, or one that is not known, has expired or was revoked."""


class ScopeError(ServiceError):
    """A token that does not allow this."""


class NotFoundError(ServiceError):
    """No such namespace, or a service without this route."""


class MethodError(ServiceError):
    """A route that takes other methods."""


class ExistsError(ServiceError):
    """A namespace that is there already, and was made otherwise."""


class TooLargeError(ServiceError):
    """More than the service takes in one call: send fewer vectors at a time."""


class TooSlowError(ServiceError):
    """The request did not come in within its time."""


class TooManyError(ServiceError):
    """More calls than the namespace takes at a time."""


class BusyError(ServiceError):
    """More calls than the service takes at a time."""


class StoppingError(ServiceError):
    """The service is about to stop; nothing was done."""


class OriginError(ServiceError):
    """A request that a page of another site made."""


class HostError(ServiceError):
    """The service does not go by the name that it was asked under."""


class MediaTypeError(ServiceError):
    """A body of a kind that the service does not read."""


def _kind(name: str) -> str:
    """The service's word for a class: TooLargeError is too-large."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name.removesuffix("Error")).lower()


def _below(root: type[LinkstreamError]) -> list[type[LinkstreamError]]:
    found = [root]
    for child in root.__subclasses__():
        found += _below(child)
    return found


# Only classes of these two modules: others may have made some of their own.
_CLASSES: dict[str, type[LinkstreamError]] = {
    _kind(each.__name__): each
    for each in _below(LinkstreamError)
    if each.__module__ in (errors.__name__, __name__)
}
_BY_STATUS = {401: TokenError, 403: ScopeError, 404: NotFoundError, 413: TooLargeError}


def of_answer(status: int, headers: Mapping[str, str], body: bytes) -> LinkstreamError:
    """The error that an answer stands for."""
    error: LinkstreamError
    try:
        told = json.loads(body)["error"]
        kind, words = str(told["kind"]), {w: str(told[w]) for w in ("seen", "expected", "remedy")}
    except (ValueError, KeyError, TypeError, RecursionError):
        error = _foreign(status, body)
    else:
        error = made(_CLASSES.get(kind, _BY_STATUS.get(status, ServiceError)), **words)
        _add(error, told)
        if isinstance(error, ServiceError):
            error.kind = kind
    if isinstance(error, ServiceError):
        error.status, error.retry_after = status, wait_of(headers)
    return error


def made(kind: type[LinkstreamError], seen: str, expected: str, remedy: str) -> LinkstreamError:
    """An error of a class, whatever its own way to be made."""
    error = BaseException.__new__(kind)  # MemoryError has a `__new__` of its own, for itself alone
    LinkstreamError.__init__(error, seen, expected=expected, remedy=remedy)
    return error


def _add(error: LinkstreamError, told: dict[str, Any]) -> None:
    if isinstance(error, VectorError):
        row = told.get("row")
        error.row = row if type(row) is int else None
    if isinstance(error, ContradictionError):
        chain = told.get("chain")
        error.chain = tuple(map(str, chain)) if isinstance(chain, list) else ()
        number = told.get("correction")
        error.correction = number if type(number) is int else None


def _foreign(status: int, body: bytes) -> ServiceError:
    """An answer without the shape of ours: somebody between us and the service gave it."""
    kind = _BY_STATUS.get(status, AnswerError)
    shown = body[:SHOWN].decode("utf-8", "replace")
    return kind(
        f"status {status} with {shown!r}",
        expected="an answer of linkstream's service",
        remedy="Check the URL, and what lies between here and the service.",
    )


def wait_of(headers: Mapping[str, str]) -> float | None:
    """Seconds that Retry-After asks for: a number of them, or a date; None: nothing."""
    said = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}", said, flags=re.ASCII):
        return float(said)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(said).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
