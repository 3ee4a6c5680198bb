"""Curves that learn from answers, which age with the stream."""

from __future__ import annotations

import math

import numpy as np
import pytest

from linkstream.confidence.corrected import BEYOND, age_of, corrected, fit_aged
from linkstream.confidence.curve import Curve, fit_curve, sigmoid

TUNED = Curve(1.0, 6.0, -0.5, 0.5, 0.99, 900, 90)


def answers(n, seed, *, per_age=-1.0, shift=0.0, first=0):
    """Answers to decisions that are right the less often, the older the stream is."""
    rng = np.random.default_rng(seed)
    number = first + np.sort(rng.choice(1_000, n, replace=False))
    x = rng.normal(0.0, 0.2, n)
    odds = 1.0 + 6.0 * x + shift + per_age * (age_of(number) - math.log(500))
    return x, rng.random(n) < sigmoid(odds), number, sigmoid(odds)


def test_a_correction_learns_that_decisions_become_wrong_more_often():
    x, right, number, _ = answers(200, 0)
    curve = corrected(TUNED, x, right, age_of(number))
    flat = corrected(TUNED, x, right)
    later, _, after, odds = answers(900, 1, first=900)
    gaps = [
        abs(float(each.probabilities(later, after).mean() - odds.mean())) for each in (curve, flat)
    ]
    assert -1.5 < curve.per_age < -0.5
    assert gaps[0] < 0.1
    assert gaps[0] < gaps[1] - 0.05


def test_without_age_a_correction_has_no_term_for_it():
    x, right, _, _ = answers(200, 0, per_age=0.0)
    curve = corrected(TUNED, x, right)
    assert curve.per_age == 0.0
    assert np.array_equal(curve.probabilities(x), curve.probabilities(x, 7))
    assert len(curve.to_plain()) == 7


def test_no_answers_change_nothing():
    assert corrected(TUNED, [], [], []) is TUNED


def test_few_answers_change_little():
    x, right, number, _ = answers(5, 2, shift=-3.0)
    few = corrected(TUNED, x, right, age_of(number))
    x, right, number, _ = answers(300, 2, shift=-3.0)
    many = corrected(TUNED, x, right, age_of(number))
    told = [float(each.probabilities(0.0, 500)) for each in (TUNED, few, many)]
    assert told[0] > told[1] > told[2] + 0.1


def test_the_slope_is_never_negative():
    x, right, number, _ = answers(400, 3)
    for curve in (
        corrected(TUNED, -x, right, age_of(number)),
        fit_aged(-x, right, age_of(number)),
    ):
        assert curve.slope == 0.0
        assert np.isfinite(curve.probabilities([-0.1, 0.1], [3, 900])).all()


def test_a_curve_of_answers_alone_finds_slope_and_age():
    x, right, number, _ = answers(900, 4)
    curve = fit_aged(x, right, age_of(number))
    assert curve.slope == pytest.approx(6.0, abs=1.5)
    assert curve.per_age == pytest.approx(-1.0, abs=0.4)
    later, _, after, odds = answers(900, 5, first=800)
    told = curve.probabilities(later, after)
    known = np.isfinite(told)
    assert abs(float(told[known].mean() - odds[known].mean())) < 0.06


def test_age_goes_on_to_twice_the_vectors_of_the_last_answer():
    x, right, number, _ = answers(300, 6)
    curve = fit_aged(x, right, age_of(number))
    last = 2 * (number.max() + 1) - 1
    ends = curve.probabilities([0.0] * 3, [last, 10 * last, 10**9])
    assert curve.oldest == pytest.approx(float(age_of(number.max())) + BEYOND, abs=1e-8)
    assert len(set(ends.tolist())) == 1
    assert float(curve.probabilities(0.0)) == ends[0]
    assert float(curve.probabilities(0.0, last // 2)) != ends[0]


def test_few_answers_are_capped_by_the_surest_third_of_them():
    x = np.arange(30.0)
    right = np.arange(30) % 2 > 0
    right[15:] = True
    curve = fit_aged(x, right, np.zeros(30))
    assert curve.ceiling == pytest.approx(11 / 12)
    assert fit_curve(x, right).ceiling == pytest.approx(23 / 32)


def test_a_curve_with_age_survives_json():
    x, right, number, _ = answers(100, 7)
    curve = fit_aged(x, right, age_of(number))
    assert Curve.from_plain(curve.to_plain()) == curve
    with pytest.raises(ValueError, match="curve"):
        Curve.from_plain(curve.to_plain()[:8])


def test_too_few_errors_stay_unknown():
    x, _, number, _ = answers(60, 8)
    curve = fit_aged(x, np.arange(60) > 3, age_of(number))
    assert not curve.is_known
    assert np.isnan(curve.probabilities(x, number)).all()
