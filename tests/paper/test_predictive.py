"""Equations 7 and 8 and the thresholds from them: against simulation, and against each other."""

import math
from functools import lru_cache

import numpy as np
import pytest
from scipy import integrate

from linkstream import Links
from linkstream.errors import ArgumentError, ThresholdError
from linkstream.metrics import accuracy
from linkstream.paper.generative import (
    log_area,
    log_density,
    marginal_cdf,
    marginal_quantile,
    sample_cluster,
    sample_stream,
    sigma_of,
    typical_angle,
)
from linkstream.paper.predictive import (
    cumulative,
    derive_thresholds,
    finite_threshold,
    log_predictive,
    stranger_similarity,
)
from linkstream.paper.sphere import normalise
from linkstream.paper.thresholds import vector_threshold

BLOCK = 200  # of what is simulated: small enough for a cache


def sigma_at(cosine, dimension):
    """σ of a cluster with its typical similarity at `cosine`; on a circle, one of like width."""
    return sigma_of(math.acos(cosine), dimension) if dimension > 2 else math.acos(cosine)


@lru_cache
def derived(cosine, dimension):
    return derive_thresholds(sigma_at(cosine, dimension), dimension)


def simulated_similarities(k, sigma, dimension, count):
    """New vectors against centroids of k others of their cluster, drawn in full."""
    rng, middle, found = np.random.default_rng([k, dimension]), np.eye(dimension)[0], []
    for _ in range(0, count, BLOCK):
        X = sample_cluster(middle, BLOCK * (k + 1), sigma, rng).reshape(BLOCK, k + 1, dimension)
        found.append(np.einsum("ij,ij->i", X[:, 0], normalise(X[:, 1:].sum(axis=1))))
    return np.concatenate(found)


@pytest.mark.parametrize("cosine", [0.5, 0.9])
@pytest.mark.parametrize(
    ("k", "dimension", "bias"),
    [
        (1, 2, 0.0),
        (2, 2, 0.007),
        (1, 3, 0.001),
        (2, 3, 0.003),
        (5, 3, 0.003),
        (2, 4, 0.003),
        (3, 8, 0.002),
        (2, 32, 0.001),
        (10, 32, 0.001),
        (2, 256, 0.0),
        (5, 256, 0.0),
    ],
)
def test_the_cumulative_probability_is_the_simulated_one(k, dimension, bias, cosine):
    # `bias` is the stated error of the approximation; the rest four standard errors.
    sigma, count = sigma_at(cosine, dimension), 20_000 if dimension < 256 else 8_000
    similarities = simulated_similarities(k, sigma, dimension, count)
    for level in (0.5, 0.9, 0.99):
        found = float(cumulative(np.quantile(similarities, 1 - level), k, sigma, dimension))
        error = 4 * math.sqrt(level * (1 - level) / count)
        assert found == pytest.approx(level, abs=bias + error)


@pytest.mark.parametrize(
    ("k", "dimension", "error"),
    [(1, 2, 1e-4), (3, 2, 1e-4), (2, 3, 1e-3), (1, 16, 1e-3), (10, 64, 1e-4), (1, 1024, 1e-4)],
)
def test_equation_8_is_the_integral_of_equation_7(k, dimension, error):
    sigma = sigma_at(0.7, dimension)
    near, far = np.arccos([finite_threshold(k, dimension, sigma, p) for p in (0.25, 0.95)])

    def marginal(phi):
        latitude = log_area(dimension) + (dimension - 2) * math.log(math.sin(phi))
        return math.exp(latitude + float(log_predictive(phi, k, sigma, dimension)))

    found, _ = integrate.fixed_quad(np.vectorize(marginal), near, far, n=16)
    assert found == pytest.approx(0.70, abs=error)


@pytest.mark.parametrize("dimension", [2, 3, 64, 4096])
def test_the_prediction_from_endless_vectors_is_the_cluster_itself(dimension):
    sigma = sigma_at(0.7, dimension)
    angles = np.linspace(0.1, 1.5, 5)
    expected = log_density(angles, sigma, dimension)
    assert log_predictive(angles, math.inf, sigma, dimension) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("dimension", [2, 5, 256])
def test_the_probability_from_endless_vectors_is_the_marginal(dimension):
    sigma = sigma_at(0.7, dimension)
    expected = marginal_cdf(np.arccos([0.6, 0.7, 0.8]), sigma, dimension)
    found = cumulative([0.6, 0.7, 0.8], math.inf, sigma, dimension)
    assert found == pytest.approx(expected, abs=1e-12)


def test_on_a_circle_the_prediction_from_one_vector_is_a_normal_of_twice_the_variance():
    # Narrow enough not to wrap around: x - x_1 = (x - μ) - (x_1 - μ).
    sigma, angles = 0.2, np.array([0.0, 0.2, 0.6])
    normal = -(angles**2) / (4 * sigma**2) - 0.5 * math.log(4 * math.pi * sigma**2)
    assert log_predictive(angles, 1, sigma, 2) == pytest.approx(normal, abs=1e-6)


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("dimension", [2, 3, 64, 1024])
def test_the_predictive_density_falls_with_the_angle(k, dimension):
    sigma = sigma_at(0.7, dimension)
    reach = math.acos(finite_threshold(k, dimension, sigma, 0.999))
    values = log_predictive(np.linspace(0.5 * reach, reach, 12), k, sigma, dimension)
    assert (np.diff(values) < 0.0).all()


@pytest.mark.parametrize("dimension", [2, 3, 64, 4096])
def test_the_cumulative_probability_runs_from_nothing_to_all(dimension):
    sigma = sigma_at(0.7, dimension)
    values = cumulative(np.linspace(1.0, -1.0, 21), 3, sigma, dimension)
    assert values[0] == pytest.approx(0.0, abs=1e-9)
    assert values[-1] == pytest.approx(1.0, abs=1e-9)
    assert (np.diff(values) >= -1e-9).all()


@pytest.mark.parametrize("k", [1, 3, 30])
def test_the_finite_threshold_is_the_similarity_that_the_fraction_reaches(k):
    sigma = sigma_at(0.6, 100)
    s = finite_threshold(k, 100, sigma, 0.9)
    assert float(cumulative(s, k, sigma, 100)) == pytest.approx(0.9, abs=1e-7)


@pytest.mark.parametrize("cosine", [0.5, 0.7, 0.9])
@pytest.mark.parametrize("k", [1, 2, 10, 100])
def test_the_median_threshold_tends_to_s_of_k(k, cosine):
    # The difference falls as 1/N, so four times the dimension leaves a quarter of it.
    gaps = [
        finite_threshold(k, dimension, sigma_at(cosine, dimension), 0.5)
        - vector_threshold(cosine, float(k))
        for dimension in (256, 1024, 4096)
    ]
    assert abs(gaps[-1]) < 1e-4
    assert gaps[0] / gaps[1] == pytest.approx(4.0, rel=0.1)


def test_the_threshold_at_infinity_is_the_cosine_of_a_quantile():
    sigma = sigma_at(0.7, 64)
    expected = math.cos(marginal_quantile(0.95, sigma, 64))
    assert finite_threshold(math.inf, 64, sigma, 0.95) == pytest.approx(expected, abs=1e-9)


def test_the_finite_threshold_rises_with_the_count():
    sigma = sigma_at(0.6, 64)
    values = [finite_threshold(k, 64, sigma, 0.95) for k in (1, 2, 5, 50, math.inf)]
    assert (np.diff(values) > 0.0).all()


def test_the_finite_threshold_falls_as_more_vectors_are_to_reach_it():
    sigma = sigma_at(0.6, 64)
    values = [finite_threshold(2, 64, sigma, p) for p in (0.1, 0.5, 0.9, 0.99)]
    assert (np.diff(values) < 0.0).all()


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.5, math.nan])
def test_a_probability_that_is_none_is_refused(probability):
    with pytest.raises(ArgumentError, match="probability"):
        finite_threshold(1, 8, 0.1, probability)
    with pytest.raises(ArgumentError, match="probability"):
        stranger_similarity(8, probability)


@pytest.mark.parametrize("k", [0, -1, 0.5, math.nan])
def test_a_count_below_one_is_refused(k):
    with pytest.raises(ArgumentError, match="k is"):
        cumulative(0.5, k, 0.1, 8)


@pytest.mark.parametrize(("cosine", "dimension"), [(0.5, 256), (0.7, 64), (0.9, 16), (0.9, 2048)])
@pytest.mark.parametrize("k", [1, 2, 8, 64, math.inf])
def test_derived_thresholds_let_nearly_all_of_a_clusters_own_vectors_in(k, cosine, dimension):
    sigma = sigma_at(cosine, dimension)
    t_c = derived(cosine, dimension).cluster_similarity
    asked = vector_threshold(t_c, float(min(k, 1e12)))
    assert float(cumulative(asked, k, sigma, dimension)) >= 0.99 - 1e-6


@pytest.mark.parametrize(("cosine", "dimension"), [(0.5, 256), (0.7, 64), (0.9, 2048)])
def test_derived_thresholds_stay_under_the_cliff(cosine, dimension):
    sigma = sigma_at(cosine, dimension)
    cliff = math.cos(typical_angle(sigma, dimension)) ** 2
    found = derived(cosine, dimension)
    assert found.cluster_similarity**2 < found.subcluster_similarity < cliff


def test_derived_thresholds_tend_to_the_papers_as_the_dimension_grows():
    cosines = [derived(0.7, dimension).cluster_similarity for dimension in (64, 256, 1024, 4096)]
    assert (np.diff(cosines) > 0.0).all()
    assert cosines[-1] == pytest.approx(0.7, abs=0.02)


def test_clusters_as_wide_as_strangers_have_no_thresholds():
    with pytest.raises(ThresholdError, match="positive similarity"):
        derive_thresholds(1.0, 64)


@pytest.mark.parametrize("cosine", [0.5, 0.7, 0.9])
def test_links_with_derived_thresholds_finds_the_clusters_of_the_paper(cosine):
    sigma = sigma_at(cosine, 256)
    X, y = sample_stream(20, 100, 256, sigma, np.random.default_rng(2_000))
    labels = Links.from_thresholds(derived(cosine, 256)).add_many(X)
    assert accuracy(y, labels) >= 0.99
