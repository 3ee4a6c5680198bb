"""Equations 9–11 measured: known arrays give known numbers, clusters obey the lemmas."""

import math

import numpy as np
import pytest
from scipy import stats

from linkstream.errors import ArgumentError, VectorError
from linkstream.paper import lemmas
from linkstream.paper.generative import sample_cluster, sigma_of
from linkstream.paper.lemmas import (
    angle_concentration,
    residual_concentration,
    strangers_concentration,
)
from linkstream.paper.predictive import stranger_similarity
from linkstream.paper.sphere import normalise


def strangers(count, dimension, seed=0):
    return normalise(np.random.default_rng(seed).standard_normal((count, dimension)))


def one_cluster(count, dimension, cosine=0.7, seed=0):
    center = np.eye(dimension)[0]
    sigma = sigma_of(math.acos(cosine), dimension)
    return sample_cluster(center, count, sigma, np.random.default_rng(seed)), center


def test_perpendicular_vectors_have_no_similarity_to_measure():
    found = strangers_concentration(np.eye(5))
    assert (found.beyond, found.delta, found.mean, found.spread, found.cases) == (0, 0, 0, 0, 10)


def test_the_fraction_beyond_counts_pairs():
    # Three vectors: one pair at similarity 0.6, two at 0 and at 0.
    found = strangers_concentration([[1, 0, 0], [0.6, 0.8, 0], [0, 0, 1]], delta=0.5)
    assert found.beyond == pytest.approx(1 / 3)


def test_opposite_vectors_do_not_break_lemma_1():
    assert strangers_concentration([[1.0, 0.0], [-1.0, 0.0]]).beyond == 0.0


def test_strangers_spread_by_one_over_the_root_of_the_dimension():
    found = strangers_concentration(strangers(400, 256))
    assert found.spread == pytest.approx(1 / 16, rel=0.02)


def test_the_delta_of_strangers_is_the_one_the_uniform_law_predicts():
    found = strangers_concentration(strangers(600, 128), epsilon=0.01)
    assert found.delta == pytest.approx(stranger_similarity(128, 0.01), rel=0.02)


def test_vectors_in_a_cone_show_in_the_mean():
    found = strangers_concentration(strangers(100, 64) + 0.5 * normalise(np.ones(64)))
    assert found.mean == pytest.approx(0.2, abs=0.02)


def test_many_vectors_are_sampled_and_tell_the_same():
    X = strangers(2_000, 64)
    sampled = strangers_concentration(X, rng=np.random.default_rng(1))
    first, second = np.triu_indices(2_000, 1)
    whole = (X @ X.T)[first, second]
    assert sampled.cases == lemmas.MOST_PAIRS
    # Within five standard errors of 200,000 pairs.
    assert sampled.mean == pytest.approx(whole.mean(), abs=5 * whole.std() / math.sqrt(2e5))


def test_a_sampled_pair_is_never_a_vector_with_itself():
    X = strangers(700, 256)
    found = strangers_concentration(X, delta=0.9, rng=np.random.default_rng(2))
    assert found.beyond == 0.0


def test_many_vectors_without_a_generator_are_refused():
    with pytest.raises(ArgumentError, match="no rng"):
        strangers_concentration(strangers(1_000, 4))


def test_one_vector_makes_no_pair():
    with pytest.raises(VectorError, match="at least two"):
        strangers_concentration([[1.0, 0.0]])


def test_angles_on_one_circle_of_latitude_have_no_spread():
    turn = np.linspace(0, 6, 50)
    X = np.column_stack([np.full(50, 0.8), 0.6 * np.cos(turn), 0.6 * np.sin(turn)])
    found = angle_concentration(X, [1.0, 0.0, 0.0])
    assert found.mean == pytest.approx(math.acos(0.8))
    assert found.delta < 1e-15


def test_a_cluster_of_the_paper_lies_at_its_typical_angle():
    X, center = one_cluster(2_000, 1024)
    found = angle_concentration(X, center, theta_c=math.acos(0.7), delta=0.1)
    assert found.beyond < 0.001
    assert found.delta < 0.07


def test_a_typical_angle_that_is_wrong_leaves_everything_beyond():
    X, center = one_cluster(200, 1024)
    assert angle_concentration(X, center, theta_c=0.2, delta=0.3).beyond == 1.0


def test_remainders_of_a_cluster_are_perpendicular():
    X, center = one_cluster(500, 1024)
    found = residual_concentration(X, center)
    assert found.beyond == 0.0
    # The product of two remainders has the spread sin²θ / √(N-1).
    assert found.spread == pytest.approx(0.51 / math.sqrt(1023), rel=0.05)


def test_an_elongated_cluster_breaks_lemma_3():
    X, center = one_cluster(300, 256)
    along = np.eye(256)[1] * np.random.default_rng(3).choice([-1.0, 1.0], (300, 1))
    assert residual_concentration(normalise(X + along), center).beyond > 0.3


def test_the_remainders_do_not_depend_on_the_length_of_the_center():
    X, center = one_cluster(50, 32)
    assert residual_concentration(X, 7.0 * center) == residual_concentration(X, center)


def test_the_delta_holds_its_epsilon():
    X = strangers(300, 16)
    delta = strangers_concentration(X, epsilon=0.05).delta
    assert strangers_concentration(X, delta=delta).beyond <= 0.05


def test_strangers_on_the_sphere_follow_the_known_law_of_a_coordinate():
    # x·x' of uniform vectors in R^N: (1 + x·x')/2 is beta with both parameters (N-1)/2.
    expected = 2 * stats.beta(3.5, 3.5).ppf(0.9) - 1
    assert stranger_similarity(8, 0.1) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("delta", "epsilon"), [(0.0, 0.1), (0.1, 0.0), (0.1, 1.0), (-1.0, 0.1)])
def test_numbers_that_make_no_lemma_are_refused(delta, epsilon):
    with pytest.raises(ArgumentError, match="ε"):
        strangers_concentration(np.eye(3), delta=delta, epsilon=epsilon)


def test_a_center_is_one_vector():
    with pytest.raises(VectorError, match="center of shape"):
        angle_concentration(np.eye(3), np.eye(3))
