"""Timing on shared machines: several tries, the best of them, and the spread."""

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
        """The best try."""
        return min(self.seconds)

    @property
    def spread(self) -> float:
        """The difference between the longest and the best try, as a fraction of the best."""
        return max(self.seconds) / self.best - 1.0

    def rates(self, n: int) -> tuple[float, ...]:
        """Return the rate of each try over n items, per second."""
        return tuple(n / seconds for seconds in self.seconds)


def measure(work: Callable[[], object], *, tries: int = 5) -> Timing:
    """Measure several tries of a function."""
    return Timing(tuple(_seconds(work) for _ in range(tries)))


def measure_in_turn(
    works: Mapping[str, Callable[[], object]], *, tries: int = 5
) -> dict[str, Timing]:
    """Measure several functions in turn, so that a disturbance of the machine affects all."""
    rounds = [{name: _seconds(work) for name, work in works.items()} for _ in range(tries)]
    return {name: Timing(tuple(seconds[name] for seconds in rounds)) for name in works}


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin
