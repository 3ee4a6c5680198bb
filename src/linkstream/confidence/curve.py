"""The probability that a decision is right, as a monotone function of one number.

It is a logistic curve: σ(a + b·x) with b ≥ 0, fitted with a ridge on the standardised slope and
with smoothed targets, so that a few decisions without an error do not make it certain. The fit
uses sums over the decisions only, and is rounded, so that every machine finds the same.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

RIDGE = 1.0
ERRORS = 5  # fewest right and fewest wrong decisions that a curve can be fitted to
SUREST, SUREST_LEAST = 0.05, 50  # the share of the surest decisions, and their least number
_STEPS, _LONGEST, _NEAR = 100, 4.0, 1e-12
DIGITS = 9


@dataclass(frozen=True, slots=True)
class Curve:
    """The probability that decisions of one kind are right.

    Attributes:
        intercept, slope: a and b of σ(a + b·x).
        low, high: the least and the greatest x that the curve was fitted to.
        ceiling: the share of right decisions among the surest twentieth, smoothed. No probability
            is greater, as it would rest on the form of the curve alone.
        right, wrong: how many decisions of each kind it was fitted to.
        per_age, oldest, usual: c, the greatest and the mean age of a term c·age of the log odds:
            age is the logarithm of one more than a number of vectors. Of decisions it is that of
            the vectors before, and answers add the term; of two clusters that of the smaller one.
    """

    intercept: float
    slope: float
    low: float
    high: float
    ceiling: float
    right: int
    wrong: int
    per_age: float = 0.0
    oldest: float = 0.0
    usual: float = 0.0

    @property
    def is_known(self) -> bool:
        """Whether there were enough right and enough wrong decisions to learn from."""
        return min(self.right, self.wrong) >= ERRORS

    def log_odds(self, x: npt.ArrayLike, number: npt.ArrayLike | None = None) -> Floats:
        """Return the log odds for each x, also outside of the range that was fitted.

        Args:
            x: a number for each decision.
            number: the vectors before each; None takes the greatest age.
        """
        given = np.asarray(x, dtype=np.float64)
        odds: Floats = self.intercept + self.slope * given
        if not self.per_age:
            return odds
        age = math.inf if number is None else np.log1p(np.asarray(number, dtype=np.float64))
        return odds + self.per_age * np.minimum(age, self.oldest)

    @property
    def even(self) -> float:
        """The x of even odds, at the usual age; the slope must not be 0."""
        return -(self.intercept + self.per_age * self.usual) / self.slope

    def probabilities(self, x: npt.ArrayLike, number: npt.ArrayLike | None = None) -> Floats:
        """Return the probability for each x; NaN if it is unknown.

        Above the range that the curve was fitted to the probability is that of its end, which is
        too low rather than too high. Below the range it is unknown.

        Args:
            x: a number for each decision.
            number: the vectors before each; None takes the greatest age.
        """
        given = np.asarray(x, dtype=np.float64)
        if not self.is_known:
            return np.full(given.shape, math.nan)
        inside = np.where(given >= self.low, np.minimum(given, self.high), math.nan)
        sure = sigmoid(self.log_odds(inside, number))
        return np.minimum(sure, self.ceiling)

    def to_plain(self) -> list[float | int]:
        """Return the numbers of the curve for JSON."""
        return list(astuple(self))[: 10 if self.per_age else 7]

    @classmethod
    def from_plain(cls, numbers: Any) -> Curve:
        """Return the curve of these numbers; raise ValueError if they cannot be those of one."""
        if not isinstance(numbers, list) or len(numbers) not in (7, 9, 10):
            raise ValueError(f"a curve of {numbers!r:.60}")
        if not all(type(each) in (int, float) and math.isfinite(each) for each in numbers):
            raise ValueError(f"a curve of {numbers!r:.60}")
        intercept, slope, low, high, ceiling = map(float, numbers[:5])
        right, wrong = int(numbers[5]), int(numbers[6])
        curve = cls(intercept, slope, low, high, ceiling, right, wrong, *map(float, numbers[7:]))
        if not (curve.slope >= 0 and curve.low <= curve.high and 0 <= curve.ceiling <= 1):
            raise ValueError(f"a curve of {numbers!r:.60}")
        if min(right, wrong) < 0:
            raise ValueError(f"a curve of {numbers!r:.60}")
        return curve


def sigmoid(x: Floats) -> Floats:
    """Return the logistic function."""
    odds: Floats = 1.0 / (1.0 + np.exp(-np.clip(x, -60.0, 60.0)))
    return odds


def fit_curve(x: npt.ArrayLike, right: npt.ArrayLike) -> Curve:
    """Return the curve of the most likely intercept and slope.

    Args:
        x: a number for each decision; higher must mean surer.
        right: whether each decision was right.
    """
    given, hit = np.asarray(x, dtype=np.float64), np.asarray(right, dtype=bool)
    n_right, n = int(hit.sum()), len(hit)
    low, high = (float(given.min()), float(given.max())) if n else (0.0, 0.0)
    if min(n_right, n - n_right) == 0:
        return Curve(0.0, 0.0, low, high, _smoothed(n_right, n), n_right, n - n_right)
    targets = smoothed_targets(hit)
    middle, spread = float(given.mean()), float(given.std()) or 1.0
    intercept, slope = _fitted((given - middle) / spread, targets)
    slope /= spread
    ceiling = ceiling_of(given, hit) if slope else _smoothed(n_right, n)
    numbers = (intercept - slope * middle, slope, ceiling)
    intercept, slope, ceiling = (round(each, DIGITS) for each in numbers)
    return Curve(intercept, slope, low, high, ceiling, n_right, n - n_right)


def smoothed_targets(right: Flags) -> Floats:
    """Return what to fit to instead of 0 and 1, so that few decisions make nothing certain."""
    n_right = int(right.sum())
    targets: Floats = np.where(right, (n_right + 1) / (n_right + 2), 1 / (len(right) - n_right + 2))
    return targets


def _fitted(x: Floats, targets: Floats) -> tuple[float, float]:
    """Return intercept and slope by Newton's method; the slope is 0 if it would be negative."""
    intercept, slope = 0.0, 0.0
    free = True
    for _ in range(_STEPS):
        odds = sigmoid(intercept + slope * x)
        off, weight = odds - targets, odds * (1.0 - odds)
        steps = _newton(x, off, weight, slope) if free else (off.sum() / weight.sum(), 0.0)
        longest = max(abs(float(step)) for step in steps)
        factor = min(1.0, _LONGEST / longest) if longest else 0.0
        intercept, slope = intercept - factor * steps[0], slope - factor * steps[1]
        if longest < _NEAR:
            if slope >= 0.0:
                break
            free, slope = False, 0.0
    return float(intercept), float(slope)


def _newton(x: Floats, off: Floats, weight: Floats, slope: float) -> tuple[float, float]:
    """Return what to subtract from intercept and slope."""
    first, second = float(off.sum()), float((off * x).sum()) + RIDGE * slope
    a, b = float(weight.sum()), float((weight * x).sum())
    c = float((weight * x * x).sum()) + RIDGE
    return _solved(first, second, a, b, c)


def _solved(first: float, second: float, a: float, b: float, c: float) -> tuple[float, float]:
    """Return the solution of the two equations with the symmetric matrix [a b; b c]."""
    determinant = a * c - b * b
    return (c * first - b * second) / determinant, (a * second - b * first) / determinant


def ceiling_of(x: Floats, right: Flags, least: int = SUREST_LEAST) -> float:
    """Return the smoothed share of right decisions among those with the greatest x."""
    surest = np.argsort(-x, kind="stable")[: max(least, int(len(x) * SUREST))]
    return _smoothed(int(right[surest].sum()), len(surest))


def _smoothed(right: int, n: int) -> float:
    return (right + 1) / (n + 2)
