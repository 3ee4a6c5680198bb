"""Rates with exact confidence intervals, from counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass

_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class Rate:
    """An expected rate, and the interval that holds it with the confidence asked for."""

    estimate: float
    low: float
    high: float

    @classmethod
    def of(cls, hits: int, cases: int, *, confidence: float) -> Rate:
        """Clopper and Pearson: the rates under which so many hits, or so few, are not too rare.

        >>> Rate.of(0, 100, confidence=0.95).high < 0.04
        True
        """
        tail = (1.0 - confidence) / 2.0
        low = 0.0 if hits == 0 else _root(lambda p: _at_most(hits - 1, cases, p) > 1.0 - tail)
        high = 1.0 if hits == cases else _root(lambda p: _at_most(hits, cases, p) > tail)
        return cls(hits / cases, low, high)

    def to_dict(self) -> dict[str, float]:
        """The three figures by name."""
        return asdict(self)

    def text(self) -> str:
        """As people read it."""
        return f"{self.estimate:.2%} ({self.low:.2%} to {self.high:.2%})"

    def __str__(self) -> str:
        return self.text()


def _at_most(hits: int, cases: int, rate: float) -> float:
    """The chance of `hits` or fewer in so many cases."""
    if not 0.0 < rate < 1.0:
        return 1.0 if rate <= 0.0 or hits >= cases else 0.0
    log, log_other = math.log(rate), math.log1p(-rate)
    ways = math.lgamma(cases + 1)
    terms = (
        ways - math.lgamma(k + 1) - math.lgamma(cases - k + 1) + k * log + (cases - k) * log_other
        for k in range(hits + 1)
    )
    return math.fsum(math.exp(term) for term in terms)


def _root(below: Callable[[float], bool]) -> float:
    """Where a condition that holds at 0 and not at 1 stops to hold."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if below(middle) else (low, middle)
    return 0.5 * (low + high)
