"""Timing on shared machines: several tries, the best of them, and the spread beside it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Seconds of several tries of the same work."""

    seconds: tuple[float, ...]

    @property
    def best(self) -> float:
        """The least disturbed try."""
        return min(self.seconds)

    @property
    def spread(self) -> float:
        """How much longer the longest try took than the best, as a fraction."""
        return max(self.seconds) / self.best - 1.0


def measure(work: Callable[[], object], *, tries: int = 5) -> Timing:
    """Run work several times."""
    seconds = []
    for _ in range(tries):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return Timing(tuple(seconds))
