"""Retrying: when a call is worth another try, and after how long."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

import httpx

from linkstream.client.asking import Answer
from linkstream.client.errors import UnreachableError, wait_of
from linkstream.errors import ArgumentError, DamagedStoreError, LinkstreamError, SnapshotError

STATUSES = (408, 429, 502, 503, 504)
_CLIENTS_FAULT = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)


@dataclass(frozen=True, slots=True)
class Retries:
    """How often and how long a call is tried again, where that may help.

    It may help where no answer came, or one of status 408, 429, 502, 503 or 504. The wait grows
    twofold from `first`, by chance up to a half less, so that many clients do not come back at
    once. What Retry-After says is waited for in full; where that takes too long it is not tried
    again.

    Attributes:
        attempts: tries in all; 1: never again.
        seconds: after so long no try is begun any more.
        first, longest: the shortest and the longest wait, in seconds.
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
    raise ArgumentError(
        f"{name}={value!r:.80}", expected=expected, remedy="Retries(attempts=1) never tries again."
    )


class Patience:
    """The patience that is left for one call."""

    def __init__(self, retries: Retries, what: str) -> None:
        self._retries, self._what = retries, what
        self.renew()

    def renew(self) -> None:
        """As at first: something came of it."""
        self._failed = 0
        self._until = time.monotonic() + self._retries.seconds

    def wait(self, failure: Answer | httpx.HTTPError) -> float:
        """Seconds to wait until the next try; raises what is to be told if there is none."""
        self._failed += 1
        if isinstance(failure, Answer):
            error, cause = failure.error(), None
            helps, asked = _mends(failure.status, error), wait_of(failure.headers)
        else:
            error, cause = self._unanswered(failure), failure
            helps, asked = _passes(failure), None
        if helps and self._failed < self._retries.attempts:
            seconds = self._pause(asked)
            if time.monotonic() + seconds <= self._until:
                return seconds
        raise error from cause

    def _pause(self, asked: float | None) -> float:
        step = min(self._retries.longest, self._retries.first * 2.0 ** min(self._failed - 1, 30))
        seconds = step * random.uniform(0.5, 1.0)
        return seconds if asked is None else asked + seconds

    def _unanswered(self, error: Exception) -> UnreachableError:
        times = "" if self._failed == 1 else f", tried {self._failed} times"
        return UnreachableError(
            f"no answer to {self._what}{times} ({type(error).__name__}: {error})",
            expected="an answer of the service",
            remedy="See that it runs and can be reached. A write may have been done: the same call "
            "under this error's idempotency_key counts once.",
        )


def _passes(error: Exception) -> bool:
    """Whether a broken connection is worth another."""
    return isinstance(error, httpx.TransportError) and not isinstance(error, _CLIENTS_FAULT)


def _mends(status: int, error: LinkstreamError) -> bool:
    """Whether what is refused now may be done later; a damaged file does not mend itself."""
    return status in STATUSES and not isinstance(error, (DamagedStoreError, SnapshotError))
