"""Errors that only a client raises.

Errors that `Links` or `Store` would raise are raised as the same class of `linkstream.errors`: the
service sends the name of the class, and the client makes an error of that class.

```text
LinkstreamError
└── ServiceError                  the service or the connection; has status, kind, retry_after
    ├── UnreachableError          no answer came, after all retries
    ├── AnswerError               the answer is not one of this service
    ├── TokenError                no token, or one that is unknown, expired or revoked
    ├── ScopeError                the token does not allow this call
    ├── NotFoundError             the namespace or the route does not exist
    ├── MethodError               the route does not take this HTTP method
    ├── ExistsError               the namespace exists with other options
    ├── TooLargeError             the call exceeds a limit of the service
    ├── TooSlowError              the request did not arrive in time
    ├── TooManyError              too many calls wait at the namespace
    ├── BusyError                 too many calls wait at the service
    ├── StoppingError             the service is stopping
    ├── OriginError, HostError    the request names another site or host
    └── MediaTypeError            the service does not read this kind of body
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
from linkstream.errors import ContradictionError, KeyTakenError, LinkstreamError, VectorError

SHOWN = 200  # characters quoted from an answer that cannot be read


class ServiceError(LinkstreamError):
    """The service refused the call, or did not answer.

    Attributes:
        status: the HTTP status; None if no answer came.
        kind: the service's name for the error.
        retry_after: seconds to wait before the next attempt; None if the service did not say.
        idempotency_key: the key of a write; repeated with this key the call counts once.
    """

    status: int | None = None
    kind: str = "service"
    retry_after: float | None = None
    idempotency_key: str | None = None


class UnreachableError(ServiceError):
    """No answer came, after all retries. A write may or may not have been done.

    Repeat the call with the error's `idempotency_key`: it is done once.
    """


class AnswerError(ServiceError):
    """The answer is not one of this service: a proxy's page, or a newer version's answer."""


class TokenError(ServiceError):
    """There is no token, or it is unknown, expired or revoked."""


class ScopeError(ServiceError):
    """The token does not allow this call."""


class NotFoundError(ServiceError):
    """The namespace or the route does not exist."""


class MethodError(ServiceError):
    """The route does not take this HTTP method."""


class ExistsError(ServiceError):
    """The namespace exists with other options."""


class TooLargeError(ServiceError):
    """The call exceeds a limit of the service: send fewer vectors at a time."""


class TooSlowError(ServiceError):
    """The request did not arrive in time."""


class TooManyError(ServiceError):
    """Too many calls wait at the namespace."""


class BusyError(ServiceError):
    """Too many calls wait at the service."""


class StoppingError(ServiceError):
    """The service is stopping; the call did nothing."""


class OriginError(ServiceError):
    """A page of another site made the request."""


class HostError(ServiceError):
    """The service is not known by the host name of the request."""


class MediaTypeError(ServiceError):
    """The service does not read this kind of body."""


def _kind(name: str) -> str:
    """Return the service's name for a class: TooLargeError is too-large."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name.removesuffix("Error")).lower()


def _subclasses(root: type[LinkstreamError]) -> list[type[LinkstreamError]]:
    found = [root]
    for child in root.__subclasses__():
        found += _subclasses(child)
    return found


# Only classes of these two modules: users may define subclasses of their own.
_CLASSES: dict[str, type[LinkstreamError]] = {
    _kind(each.__name__): each
    for each in _subclasses(LinkstreamError)
    if each.__module__ in (errors.__name__, __name__)
}
_BY_STATUS = {401: TokenError, 403: ScopeError, 404: NotFoundError, 413: TooLargeError}


def from_answer(status: int, headers: Mapping[str, str], body: bytes) -> LinkstreamError:
    """Return the error that an answer describes."""
    error: LinkstreamError
    try:
        error = from_values(json.loads(body)["error"], _BY_STATUS.get(status, ServiceError))
    except (ValueError, KeyError, TypeError, RecursionError):
        error = _from_proxy(status, body)
    if isinstance(error, ServiceError):
        error.status, error.retry_after = status, retry_after(headers)
    return error


def from_values(
    values: dict[str, Any], otherwise: type[LinkstreamError] = ServiceError
) -> LinkstreamError:
    """Return the error that plain values describe; `otherwise` is the class of unknown kinds."""
    kind = str(values["kind"])
    words = {name: str(values[name]) for name in ("seen", "expected", "remedy")}
    error = _make(_CLASSES.get(kind, otherwise), **words)
    _add_details(error, values)
    if isinstance(error, ServiceError):
        error.kind = kind
    return error


def _make(kind: type[LinkstreamError], seen: str, expected: str, remedy: str) -> LinkstreamError:
    """Make an error of a class without calling the constructor of the class."""
    error = BaseException.__new__(kind)  # MemoryError.__new__ makes no subclass
    LinkstreamError.__init__(error, seen, expected=expected, remedy=remedy)
    return error


def _add_details(error: LinkstreamError, values: dict[str, Any]) -> None:
    if isinstance(error, VectorError):
        row = values.get("row")
        error.row = row if type(row) is int else None
    if isinstance(error, KeyTakenError):
        number = values.get("vector")
        error.vector = number if type(number) is int else None
    if isinstance(error, ContradictionError):
        chain = values.get("chain")
        error.chain = tuple(map(str, chain)) if isinstance(chain, list) else ()
        number = values.get("correction")
        error.correction = number if type(number) is int else None


def _from_proxy(status: int, body: bytes) -> ServiceError:
    """Return the error for an answer that a proxy gave, not the service."""
    kind = _BY_STATUS.get(status, AnswerError)
    shown = body[:SHOWN].decode("utf-8", "replace")
    seen = f"status {status} with {shown!r}"
    remedy = "Check the URL, and proxies between the client and the service."
    return kind(seen, expected="an answer of linkstream's service", remedy=remedy)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that Retry-After asks for, from a number or a date; None if absent."""
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}", value, flags=re.ASCII):
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
