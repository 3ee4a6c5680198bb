"""The probability that a decision is right, as a monotone function of one number.

It is a logistic curve: σ(a + b·x) with b ≥ 0, fitted with a ridge on the standardised slope and
with smoothed targets, so that a few decisions without an error do not make it certain. The fit
uses sums over the decisions only, and is rounded, so that every machine finds the same.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

RIDGE = 1.0
ERRORS = 5  # fewest right and fewest wrong decisions that a curve can be fitted to
SUREST, SUREST_LEAST = 0.05, 50  # the share of the surest decisions, and their least number
_STEPS, _LONGEST, _SHORT, _NEAR = 100, 4.0, 0.25, 1e-12
_DIGITS = 9
SHIFT, FACTOR = 1.0, 0.5  # widths of the priors of α and β in `recalibrated`
_MOST_LOG_ODDS = 10.0


@dataclass(frozen=True, slots=True)
class Curve:
    """The probability that decisions of one kind are right.

    Attributes:
        intercept, slope: a and b of σ(a + b·x).
        low, high: the least and the greatest x that the curve was fitted to.
        ceiling: the share of right decisions among the surest twentieth, smoothed. No probability
            is greater, as it would rest on the form of the curve alone.
        right, wrong: how many decisions of each kind it was fitted to.
    """

    intercept: float
    slope: float
    low: float
    high: float
    ceiling: float
    right: int
    wrong: int

    @property
    def is_known(self) -> bool:
        """Whether there were enough right and enough wrong decisions to learn from."""
        return min(self.right, self.wrong) >= ERRORS

    def probabilities(self, x: npt.ArrayLike) -> Floats:
        """Return the probability for each x; NaN if it is unknown.

        Above the range that the curve was fitted to the probability is that of its end, which is
        too low rather than too high. Below the range it is unknown.
        """
        given = np.asarray(x, dtype=np.float64)
        if not self.is_known:
            return np.full(given.shape, math.nan)
        inside = np.where(given >= self.low, np.minimum(given, self.high), math.nan)
        sure = sigmoid(self.intercept + self.slope * inside)
        return np.minimum(sure, self.ceiling)

    def to_plain(self) -> list[float | int]:
        """Return the numbers of the curve for JSON."""
        return list(astuple(self))

    @classmethod
    def from_plain(cls, numbers: Any) -> Curve:
        """Return the curve of these numbers; raise ValueError if they cannot be those of one."""
        if not isinstance(numbers, list) or len(numbers) != 7:
            raise ValueError(f"a curve of {numbers!r:.60}")
        if not all(type(each) in (int, float) and math.isfinite(each) for each in numbers):
            raise ValueError(f"a curve of {numbers!r:.60}")
        intercept, slope, low, high, ceiling = map(float, numbers[:5])
        right, wrong = int(numbers[5]), int(numbers[6])
        curve = cls(intercept, slope, low, high, ceiling, right, wrong)
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
    targets = np.where(hit, (n_right + 1) / (n_right + 2), 1 / (n - n_right + 2))
    middle, spread = float(given.mean()), float(given.std()) or 1.0
    intercept, slope = _fitted((given - middle) / spread, targets)
    slope /= spread
    ceiling = _ceiling(given, hit) if slope else _smoothed(n_right, n)
    numbers = (intercept - slope * middle, slope, ceiling)
    intercept, slope, ceiling = (round(each, _DIGITS) for each in numbers)
    return Curve(intercept, slope, low, high, ceiling, n_right, n - n_right)


def recalibrated(curve: Curve, x: npt.ArrayLike, right: npt.ArrayLike) -> Curve:
    """Return a curve that was fitted elsewhere, corrected by decisions that a person has judged.

    Its log odds z become α + β·z, β ≥ 0, with normal priors around 0 and 1: few answers change
    little. The ceiling stays.

    Args:
        curve: the curve, which must be known.
        x: a number for each decision, as for `fit_curve`.
        right: whether each decision was right.
    """
    given, hit = np.asarray(x, dtype=np.float64), np.asarray(right, dtype=bool)
    if not len(given):
        return curve
    z = np.clip(curve.intercept + curve.slope * given, -_MOST_LOG_ODDS, _MOST_LOG_ODDS)
    shift, factor = 0.0, 1.0
    for _ in range(_STEPS):
        odds = sigmoid(shift + factor * z)
        off, weight = odds - hit, odds * (1.0 - odds)
        steps = _solved(
            float(off.sum()) + shift / SHIFT**2,
            float((off * z).sum()) + (factor - 1.0) / FACTOR**2,
            float(weight.sum()) + SHIFT**-2,
            float((weight * z).sum()),
            float((weight * z * z).sum()) + FACTOR**-2,
        )
        longest = max(abs(steps[0]), abs(steps[1]))
        share = min(1.0, _SHORT / longest) if longest else 0.0
        shift, factor = shift - share * steps[0], factor - share * steps[1]
        if longest < _NEAR:
            break
    factor = max(factor, 0.0)
    return replace(
        curve,
        intercept=round(shift + factor * curve.intercept, _DIGITS),
        slope=round(factor * curve.slope, _DIGITS),
        low=min(curve.low, float(given.min())),
        high=max(curve.high, float(given.max())),
    )


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


def _ceiling(x: Floats, right: Flags) -> float:
    surest = np.argsort(-x, kind="stable")[: max(SUREST_LEAST, int(len(x) * SUREST))]
    return _smoothed(int(right[surest].sum()), len(surest))


def _smoothed(right: int, n: int) -> float:
    return (right + 1) / (n + 2)
