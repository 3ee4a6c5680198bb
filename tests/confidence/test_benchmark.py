"""The figures of benchmarks/confidence.py on decisions whose figures are known."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import confidence


def test_the_calibration_error_is_the_mean_gap_of_the_bins():
    p = np.array([0.15, 0.15, 0.85, 0.85])
    right = np.array([False, True, True, True])
    assert confidence.calibration_error(p, right) == pytest.approx((0.35 + 0.15) / 2)
    assert confidence.reliability(p, right) == [(2, 0.15, 0.5), (2, 0.85, 1.0)]


def test_a_perfect_model_has_less_error_the_more_decisions_there_are():
    rng = np.random.default_rng(0)
    few, many = (confidence.floor(rng.random(n)) for n in (100, 10_000))
    assert many < 0.02 < few


def test_the_surest_decisions_are_those_of_the_highest_probability():
    p = np.linspace(0.01, 0.99, 100)
    right = p > 0.5
    found = confidence.figures(p, right, np.column_stack([-p, p, p]))
    assert found["probability_50"] == found["silhouette_50"] == 1.0
    assert found["margin_50"] == 0.0
    assert found["accuracy"] == 0.5
    assert (found["sure"], found["sure_right"]) == (5, 5)


def test_unknown_decisions_are_left_out():
    p = np.array([np.nan, 0.9, np.nan, 0.9])
    found = confidence.figures(p, np.array([False, True, False, True]), np.zeros((4, 3)))
    assert found["answers"] == 0.5
    assert found["accuracy"] == 1.0
    unknown = confidence.figures(np.full(3, np.nan), np.ones(3, dtype=bool), np.zeros((3, 3)))
    assert unknown == {"decisions": 3, "answers": 0.0}


def test_the_silhouette_is_high_for_separate_clusters_and_0_for_one_vector():
    X = np.float32([[1, 0.1, 0], [1, -0.1, 0], [0, 1, 0.1], [0, 1, -0.1], [0, 0, 1]])
    found = confidence.silhouette(X, np.array([0, 0, 1, 1, 2]))
    assert found[:4].min() > 0.8
    assert found[4] == 0.0
    assert confidence.silhouette(X, np.array([0, 1, 0, 1, 2]))[0] < 0


def test_the_area_is_the_share_of_pairs_in_the_right_order():
    right = np.array([False, True, False, True])
    assert confidence.area(np.array([0.1, 0.9, 0.2, 0.8]), right) == 1.0
    assert confidence.area(np.array([0.1, 0.15, 0.2, 0.8]), right) == 0.75
    assert confidence.area(np.full(4, 0.5), right) == 0.5
