"""Timing on shared machines: several tries, the best of them, and the spread beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
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

    def rates(self, n: int) -> tuple[float, ...]:
        """How many of n things a second each try did."""
        return tuple(n / seconds for seconds in self.seconds)


def measure(work: Callable[[], object], *, tries: int = 5) -> Timing:
    """Run work several times."""
    return Timing(tuple(_seconds(work) for _ in range(tries)))


def measure_in_turn(
    works: Mapping[str, Callable[[], object]], *, tries: int = 5
) -> dict[str, Timing]:
    """Run several works in turn, so that a disturbance of the machine hits all of them."""
    rounds = [{name: _seconds(work) for name, work in works.items()} for _ in range(tries)]
    return {name: Timing(tuple(seconds[name] for seconds in rounds)) for name in works}


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin
