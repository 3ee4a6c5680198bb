"""Curves of confidence: monotone, cautious, and the same for the same decisions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from linkstream.confidence.curve import ERRORS, Curve, fit_curve, sigmoid


def decisions(n=4000, seed=0, slope=6.0, intercept=1.0):
    """Numbers, and decisions that are right with σ(intercept + slope·x)."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0.1, 0.4, n)
    return x, rng.random(n) < sigmoid(intercept + slope * x)


def test_the_curve_finds_the_probability_that_made_the_decisions():
    x, right = decisions()
    curve = fit_curve(x, right)
    at = np.array([-0.3, -0.1, 0.1, 0.3])
    assert curve.probabilities(at) == pytest.approx(sigmoid(1.0 + 6.0 * at), abs=0.03)
    assert (curve.right, curve.wrong) == (right.sum(), (~right).sum())


def test_probabilities_never_fall_as_the_number_rises():
    x, right = decisions(seed=1)
    for answers in (right, ~right, right[np.random.default_rng(0).permutation(len(right))]):
        curve = fit_curve(x, answers)
        found = curve.probabilities(np.linspace(curve.low, curve.high + 1, 200))
        assert curve.slope >= 0
        assert (np.diff(found) >= 0).all()


def test_a_number_that_says_nothing_leaves_the_base_rate():
    x, right = decisions(seed=2)
    falling = fit_curve(x, ~right)
    assert falling.slope == 0
    assert falling.probabilities([0.0]) == pytest.approx((~right).mean(), abs=0.01)


def test_below_the_range_it_is_unknown_and_above_it_is_that_of_the_end():
    x, right = decisions()
    curve = fit_curve(x, right)
    assert math.isnan(curve.probabilities([curve.low - 1e-6])[0])
    assert math.isnan(curve.probabilities([math.nan])[0])
    ends = curve.probabilities([curve.high, curve.high + 5])
    assert ends[0] == ends[1]


def test_no_probability_exceeds_what_the_surest_decisions_showed():
    x = np.linspace(-1, 1, 1000)
    right = x > 0
    right[-50::2] = False
    curve = fit_curve(x, right)
    assert curve.ceiling == pytest.approx(26 / 52)
    assert curve.probabilities(x).max() == curve.ceiling


@pytest.mark.parametrize("wrong", [0, 1, ERRORS - 1])
def test_too_few_errors_are_unknown(wrong):
    x, _ = decisions(300)
    right = np.arange(300) >= wrong
    for answers in (right, ~right):
        curve = fit_curve(x, answers)
        assert not curve.is_known
        assert np.isnan(curve.probabilities(x)).all()
    assert fit_curve(x, np.arange(300) >= ERRORS).is_known


def test_no_decisions_make_an_unknown_curve():
    assert not fit_curve([], []).is_known
    assert np.isnan(fit_curve([], []).probabilities([0.5])).all()


def test_the_order_of_decisions_and_equal_numbers_do_not_matter():
    x, right = decisions()
    order = np.random.default_rng(3).permutation(len(x))
    one, other = fit_curve(x, right), fit_curve(x[order], right[order])
    assert one.to_plain() == pytest.approx(other.to_plain(), abs=1e-8)
    flat = fit_curve(np.full(200, 0.25), np.arange(200) < 150)
    assert flat.probabilities([0.25]) == pytest.approx(0.75, abs=0.02)


def test_a_curve_survives_json_and_wrong_numbers_are_refused():
    curve = fit_curve(*decisions())
    assert Curve.from_plain(curve.to_plain()) == curve
    plain = curve.to_plain()
    for wrong in (
        None,
        plain[:-1],
        [math.nan, *plain[1:]],
        [plain[0], -1.0, *plain[2:]],
        [*plain[:4], 1.5, *plain[5:]],
        [*plain[:6], -1],
        [True, *plain[1:]],
        [*plain[:2], plain[3] + 1.0, plain[3], *plain[4:]],
    ):
        with pytest.raises(ValueError, match="a curve of"):
            Curve.from_plain(wrong)
