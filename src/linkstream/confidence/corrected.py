"""Curves that learn from answers: a tuning that they correct, or a curve of answers alone.

Answers come from one stream, and decisions change while a stream goes on: the more identities were
seen, the more often a new cluster is wrong. So the log odds also have a term for age, the logarithm
of the number of vectors before. Of two clusters the same term has the vectors of the smaller one:
large clusters that are alike are less often one identity. Sums are over the answers only, and
results are rounded.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from linkstream.confidence.curve import (
    DIGITS,
    RIDGE,
    SUREST_LEAST,
    Curve,
    Floats,
    ceiling_of,
    fit_curve,
    sigmoid,
    smoothed_targets,
)

SHIFT, FACTOR, AGE = 1.0, 0.5, 0.5  # widths of the priors of α, β and γ in `corrected`
SUREST_PART = 3  # of few answers, the part that are the surest
BEYOND = math.log(2.0)  # how far the term for age goes on after the last answer
_MOST_LOG_ODDS = 10.0
_STEPS, _LONGEST, _NEAR = 200, 0.25, 1e-12


def age_of(number: npt.ArrayLike) -> Floats:
    """Return the age of decisions: the logarithm of the vectors before, and one.

    Args:
        number: the vectors before each decision, or those of the smaller of two clusters.
    """
    age: Floats = np.log1p(np.asarray(number, dtype=np.float64))
    return age


def corrected(
    curve: Curve, x: npt.ArrayLike, right: npt.ArrayLike, age: npt.ArrayLike | None = None
) -> Curve:
    """Return a curve that was fitted elsewhere, corrected by what people answered.

    Its log odds z become α + β·z + γ·(age − mean age), β ≥ 0, with normal priors around 0, 1 and
    0: few answers change little. The ceiling stays.

    Args:
        curve: the curve, which must be known.
        x: a number for each answer, as for `fit_curve`.
        right: whether each decision was right.
        age: the age of each decision; None leaves that term out.
    """
    given, hit = np.asarray(x, dtype=np.float64), np.asarray(right, dtype=bool)
    if not len(given):
        return curve
    ages = np.zeros(len(given)) if age is None else np.asarray(age, dtype=np.float64)
    z = curve.intercept + curve.slope * given + curve.per_age * ages
    z = np.clip(z, -_MOST_LOG_ODDS, _MOST_LOG_ODDS)
    middle = float(ages.mean())
    columns = [np.ones(len(given)), z, ages - middle]
    priors = [(0.0, SHIFT**-2), (1.0, FACTOR**-2), (0.0, AGE**-2)]
    shift, factor, per_age = _most_likely(columns, hit.astype(np.float64), priors)
    if factor < 0.0:
        columns[1], factor = np.zeros(len(given)), 0.0
        shift, _, per_age = _most_likely(columns, hit.astype(np.float64), priors)
    return replace(
        curve,
        intercept=round(shift + factor * curve.intercept - per_age * middle, DIGITS),
        slope=round(factor * curve.slope, DIGITS),
        low=min(curve.low, float(given.min())),
        high=max(curve.high, float(given.max())),
        per_age=round(per_age + factor * curve.per_age, DIGITS),
        oldest=round(max(float(ages.max()) + BEYOND, curve.oldest), DIGITS),
        usual=curve.usual if curve.per_age else round(middle, DIGITS),
    )


def fit_aged(x: npt.ArrayLike, right: npt.ArrayLike, age: npt.ArrayLike) -> Curve:
    """Return a curve as `fit_curve`, with a term for age: of answers alone, or of two clusters.

    Args:
        x: a number for each answer; higher must mean surer.
        right: whether each decision was right.
        age: the age of each decision.
    """
    plain = fit_curve(x, right)
    given, hit = np.asarray(x, dtype=np.float64), np.asarray(right, dtype=bool)
    ages = np.asarray(age, dtype=np.float64)
    if not plain.is_known:
        return plain
    (mean, spread), (middle, width) = _scale(given), _scale(ages)
    columns = [np.ones(len(given)), (given - mean) / spread, (ages - middle) / width]
    priors = [(0.0, 0.0), (0.0, RIDGE), (0.0, RIDGE)]
    base, slope, per_age = _most_likely(columns, smoothed_targets(hit), priors)
    if slope < 0.0:
        columns[1] = np.zeros(len(given))
        base, slope, per_age = _most_likely(columns, smoothed_targets(hit), priors)
    least = min(SUREST_LEAST, len(hit) // SUREST_PART)
    surest = columns[1] * slope + columns[2] * per_age
    slope, per_age = slope / spread, per_age / width
    return replace(
        plain,
        intercept=round(base - slope * mean - per_age * middle, DIGITS),
        slope=round(slope, DIGITS),
        ceiling=round(ceiling_of(surest, hit, least), DIGITS),
        per_age=round(per_age, DIGITS),
        oldest=round(float(ages.max()) + BEYOND, DIGITS),
        usual=round(middle, DIGITS),
    )


def _scale(values: Floats) -> tuple[float, float]:
    return float(values.mean()), float(values.std()) or 1.0


def _most_likely(
    columns: list[Floats], targets: Floats, priors: list[tuple[float, float]]
) -> list[float]:
    """Return the weights of logistic regression, each with the mean and precision of its prior."""
    weights = [mean for mean, _ in priors]
    for _ in range(_STEPS):
        odds = sigmoid(sum((w * c for w, c in zip(weights, columns, strict=True)), np.zeros(1)))
        off, heavy = odds - targets, odds * (1.0 - odds)
        slopes = [
            float((off * column).sum()) + precision * (weight - mean)
            for column, weight, (mean, precision) in zip(columns, weights, priors, strict=True)
        ]
        bends = [[float((heavy * a * b).sum()) for b in columns] for a in columns]
        for i, (_, precision) in enumerate(priors):
            bends[i][i] += precision
        steps = _solved(bends, slopes)
        longest = max(map(abs, steps))
        share = min(1.0, _LONGEST / longest) if longest else 0.0
        weights = [weight - share * step for weight, step in zip(weights, steps, strict=True)]
        if longest < _NEAR:
            break
    return weights


def _solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Return the solution of equations with a positive definite matrix, by elimination."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i, row in enumerate(rows):
        for other in rows[i + 1 :]:
            factor = other[i] / row[i]
            other[i:] = [a - factor * b for a, b in zip(other[i:], row[i:], strict=True)]
    found: list[float] = []
    for i in range(len(rows) - 1, -1, -1):
        rest = sum(a * b for a, b in zip(rows[i][i + 1 : -1], found, strict=True))
        found.insert(0, (rows[i][-1] - rest) / rows[i][i])
    return found
