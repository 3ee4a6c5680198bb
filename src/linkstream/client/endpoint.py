"""The way of a request: the service's address, timeouts and retries; no input or output here."""

from __future__ import annotations

import ipaddress
import random
import re
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

import httpx

from linkstream import __version__
from linkstream.client.errors import ServiceError, UnreachableError, retry_after
from linkstream.client.requests import KEY, Answer, Request, Steps
from linkstream.errors import ArgumentError, DamagedStoreError, LinkstreamError, SnapshotError

CONNECT, READ = 10.0, 60.0  # default timeouts in seconds
SLOW = 600.0  # seconds to wait for work over the whole namespace
STATUSES = (408, 429, 502, 503, 504)  # worth another attempt
_CLIENT_FAULTS = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")

T = TypeVar("T")
Outcome = Answer | httpx.HTTPError


@dataclass(frozen=True, slots=True)
class Retries:
    """How often and how long a failed call is tried again.

    A call is tried again if no answer came, or an answer with status 408, 429, 502, 503 or 504. The
    wait doubles after each attempt and is shortened at random by up to a half, so that many
    clients do not return at once. A wait that Retry-After asks for is kept in full; if it would
    end after `seconds`, the call fails at once.

    Args:
        attempts: attempts in all; 1 turns retries off.
        seconds: no attempt begins later than this many seconds after the first.
        first: the wait before the second attempt, in seconds.
        longest: the longest wait, in seconds.
    """

    attempts: int = 8
    seconds: float = 120.0
    first: float = 0.1
    longest: float = 10.0

    def __post_init__(self) -> None:
        if type(self.attempts) is not int or self.attempts < 1:
            _refuse("attempts", self.attempts, "a whole number of 1 or more")
        for name in ("seconds", "first", "longest"):
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 <= value < float("inf"):
                _refuse(name, value, "a number of seconds, 0 or more")


def _refuse(name: str, value: object, expected: str) -> None:
    remedy = "Use Retries(attempts=1) to turn retries off."
    raise ArgumentError(f"{name}={value!r:.80}", expected=expected, remedy=remedy)


class RetryState:
    """Counts the failures of one call and decides whether another attempt follows."""

    def __init__(self, retries: Retries, request: str) -> None:
        self._retries, self._request = retries, request
        self.reset()

    def reset(self) -> None:
        """Start counting again, after a success."""
        self._failed = 0
        self._until = time.monotonic() + self._retries.seconds

    def delay_after(self, failure: Outcome) -> float:
        """Return the seconds to wait before the next attempt; raise the error if there is none."""
        self._failed += 1
        if isinstance(failure, Answer):
            error, cause = failure.error(), None
            helps, asked = _may_recover(failure.status, error), retry_after(failure.headers)
        else:
            error, cause = self._no_answer(failure), failure
            helps, asked = _is_broken_connection(failure), None
        if helps and self._failed < self._retries.attempts:
            seconds = self._delay(asked)
            if time.monotonic() + seconds <= self._until:
                return seconds
        raise error from cause

    def _delay(self, asked: float | None) -> float:
        step = min(self._retries.longest, self._retries.first * 2.0 ** min(self._failed - 1, 30))
        seconds = step * random.uniform(0.5, 1.0)
        return seconds if asked is None else asked + seconds

    def _no_answer(self, error: Exception) -> UnreachableError:
        times = "" if self._failed == 1 else f", tried {self._failed} times"
        return UnreachableError(
            f"no answer to {self._request}{times} ({type(error).__name__}: {error})",
            expected="an answer of the service",
            remedy="Check that the service runs and can be reached. A write may have been done: "
            "repeat the call with this error's idempotency_key, and it counts once.",
        )


def _is_broken_connection(error: Exception) -> bool:
    return isinstance(error, httpx.TransportError) and not isinstance(error, _CLIENT_FAULTS)


def _may_recover(status: int, error: LinkstreamError) -> bool:
    """Return whether a later attempt may succeed; a damaged file stays damaged."""
    return status in STATUSES and not isinstance(error, (DamagedStoreError, SnapshotError))


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a client sends its requests. The token is not in here, so that no `repr` shows it."""

    url: str
    namespace: str | None
    timeout: float
    connect_timeout: float
    retries: Retries

    @classmethod
    def checked(
        cls,
        url: str,
        namespace: str | None,
        *,
        timeout: float,
        connect_timeout: float,
        retries: Retries | None,
    ) -> Endpoint:
        """Check the arguments of a client, before anything is sent."""
        for name, seconds in (("timeout", timeout), ("connect_timeout", connect_timeout)):
            if type(seconds) not in (int, float) or not 0 < seconds < float("inf"):
                seen = f"{name}={seconds!r:.80}"
                remedy = "Leave it out for the default."
                raise ArgumentError(seen, expected="a number of seconds above 0", remedy=remedy)
        if namespace is not None:
            _check_name(namespace)
        return cls(_checked_url(url), namespace, timeout, connect_timeout, retries or Retries())

    def of(self, namespace: str) -> Endpoint:
        """Return the endpoint of another namespace of the same service."""
        return replace(self, namespace=_check_name(namespace))

    def arguments(self, request: Request) -> dict[str, Any]:
        """Return a request as arguments of httpx."""
        return {
            "method": request.method,
            "url": self._path(request),
            "params": dict(request.query),
            "headers": dict(request.headers),
            "content": request.body,
            "timeout": self._timeout(request),
        }

    def _path(self, request: Request) -> str:
        if not request.in_namespace:
            return f"/{request.path}"
        if self.namespace is None:
            seen = f"{request} of no namespace"
            remedy = "Use Client(url, 'people'), or client.namespace('people')."
            raise ArgumentError(seen, expected="a client of a namespace", remedy=remedy)
        return f"/v1/namespaces/{self.namespace}/{request.path}".rstrip("/")

    def _timeout(self, request: Request) -> httpx.Timeout:
        read = max(SLOW, self.timeout) if request.slow else self.timeout
        return httpx.Timeout(self.timeout, connect=self.connect_timeout, read=read)

    def __str__(self) -> str:
        namespace = "" if self.namespace is None else f", {self.namespace!r}"
        return f"({self.url!r}{namespace})"


class RequestRun(Generic[T]):
    """One call of a verb: its requests in turn, with retries.

    The client sends each `next_request` and reports what came of it with `receive`.
    """

    result: T  # set when next_request returns None

    def __init__(self, steps: Steps[T], endpoint: Endpoint) -> None:
        self._steps, self._endpoint = steps, endpoint
        self._advance(partial(next, steps))

    def next_request(self) -> dict[str, Any] | None:
        """Return the request to send, as arguments of httpx; None if the verb is done."""
        return None if self._request is None else self._endpoint.arguments(self._request)

    def receive(self, outcome: Outcome) -> float:
        """Take an answer or a failure; return the seconds to wait before the next request.

        Raises the error that the caller of the verb gets.
        """
        if isinstance(outcome, Answer) and outcome.good:
            self._advance(partial(self._steps.send, outcome))
            return 0.0
        try:
            return self._retry.delay_after(outcome)
        except LinkstreamError as error:  # the verb may handle the error
            if isinstance(error, ServiceError) and self._request is not None:
                error.idempotency_key = self._request.headers.get(KEY)
            self._advance(partial(self._steps.throw, error))
            return 0.0

    def _advance(self, step: Callable[[], Request]) -> None:
        self._request: Request | None = None
        try:
            request = step()
        except StopIteration as done:
            self.result = done.value
        else:
            self._request = request
            self._retry = RetryState(self._endpoint.retries, str(request))


def http_options(
    endpoint: Endpoint, token: str | None, verify: bool | ssl.SSLContext
) -> dict[str, Any]:
    """Return the arguments of httpx's clients; loopback addresses use no proxy."""
    headers = {"User-Agent": f"linkstream/{__version__}", "Accept": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {_checked_token(token)}"
    return {
        "base_url": endpoint.url,
        "headers": headers,
        "verify": verify,
        "trust_env": not _is_loopback(httpx.URL(endpoint.url).host),
    }


def to_answer(response: httpx.Response) -> Answer:
    """Convert a response of httpx that was read to its end."""
    return Answer(response.status_code, response.headers, response.content)


def check_open(http: httpx.Client | httpx.AsyncClient) -> None:
    """Raise ServiceError if the client was closed."""
    if http.is_closed:
        remedy = "Make another client, or close this one later."
        raise ServiceError("a client that was closed", expected="an open client", remedy=remedy)


def _check_name(name: object) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        expected = "1 to 63 of a to z, 0 to 9, _ and -, the first a letter or a digit"
        remedy = "Name the namespace after its vectors, such as 'people'."
        raise ArgumentError(f"namespace {name!r:.80}", expected=expected, remedy=remedy)
    return name


def _checked_url(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        parsed = httpx.URL()
    if parsed.userinfo:  # a secret: the message does not show it
        seen = "a URL with a user or a password"
        raise ArgumentError(seen, expected="a URL without", remedy="Pass the token as token=.")
    if parsed.scheme not in ("http", "https") or not parsed.host or parsed.query or parsed.fragment:
        expected = "http:// or https://, a host and its port"
        remedy = "Use the address that `linkstream serve` prints: http://127.0.0.1:7777."
        raise ArgumentError(f"url={url!r:.200}", expected=expected, remedy=remedy)
    return str(parsed).rstrip("/")


def _checked_token(token: object) -> str:
    if not isinstance(token, str) or not re.fullmatch(r"[\x21-\x7e]{1,4096}", token):
        raise ArgumentError(
            "a token that is not one line of ASCII without blanks",  # a secret: not shown
            expected="the output of `linkstream token create`",
            remedy="Remove line ends and quotes around the token.",
        )
    return token


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
