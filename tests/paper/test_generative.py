"""Equations 2–4 and the vectors drawn from them: against quadrature, special functions and laws."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from linkstream.errors import ArgumentError, VectorError
from linkstream.paper.generative import (
    log_area,
    log_density,
    log_marginal,
    log_normaliser,
    marginal_cdf,
    marginal_quantile,
    sample_angles,
    sample_cluster,
    sample_stream,
    sigma_of,
    typical_angle,
)
from linkstream.paper.sphere import angle, normalise

laws = settings(deadline=None, max_examples=50)
dimensions = st.integers(2, 4096)
sigmas = st.floats(1e-3, 20.0)
models = pytest.mark.parametrize(
    ("sigma", "dimension"),
    [(0.5, 2), (30.0, 2), (0.4, 3), (0.2, 16), (0.05, 256), (2.0, 256), (0.01, 4096)],
)


def integral(sigma, dimension, low, high):
    """The marginal between two angles by scipy, over 60 pieces, relative to its largest value."""

    def log_shape(theta):
        return special.xlogy(dimension - 2, np.sin(theta)) - theta**2 / (2 * sigma**2)

    top = log_shape(np.linspace(1e-9, math.pi, 200_001)).max()
    edges = np.linspace(low, high, 61)
    parts = [
        integrate.quad(lambda t: math.exp(log_shape(t) - top), a, b, epsabs=1e-14)[0]
        for a, b in pairwise(edges)
    ]
    return sum(parts), top


@pytest.mark.parametrize(
    ("dimension", "area"),
    [(2, 2.0), (3, 2 * math.pi), (4, 4 * math.pi), (5, 2 * math.pi**2), (6, 8 * math.pi**2 / 3)],
)
def test_the_area_is_that_of_the_known_spheres(dimension, area):
    assert log_area(dimension) == pytest.approx(math.log(area), abs=1e-14)


@laws
@given(dimensions)
def test_each_area_is_the_one_before_times_the_integral_of_the_sines(dimension):
    step = log_area(dimension + 1) - log_area(dimension)
    assert step == pytest.approx(special.betaln((dimension - 1) / 2, 0.5), abs=1e-10)


@models
def test_the_normaliser_is_the_integral_over_the_sphere(sigma, dimension):
    whole, top = integral(sigma, dimension, 0.0, math.pi)
    expected = log_area(dimension) + top + math.log(whole)
    assert log_normaliser(sigma, dimension) == pytest.approx(expected, abs=1e-9)


@models
def test_the_marginal_is_the_density_times_the_circle_of_latitude(sigma, dimension):
    theta = np.linspace(0.1, 3.0, 9)
    latitude = log_area(dimension) + (dimension - 2) * np.log(np.sin(theta))
    expected = latitude + log_density(theta, sigma, dimension)
    assert log_marginal(theta, sigma, dimension) == pytest.approx(expected, rel=1e-12, abs=1e-9)


@models
def test_the_cdf_is_the_integral_of_the_marginal(sigma, dimension):
    middle = typical_angle(sigma, dimension) * 1.02 + 0.01
    part, _ = integral(sigma, dimension, 0.0, middle)
    rest, _ = integral(sigma, dimension, middle, math.pi)
    assert float(marginal_cdf(middle, sigma, dimension)) == pytest.approx(
        part / (part + rest), abs=1e-10
    )


def test_on_a_circle_the_angle_is_a_folded_normal():
    theta = np.linspace(0.0, 1.5, 7)
    folded = special.erf(theta / (0.3 * math.sqrt(2.0)))
    assert marginal_cdf(theta, 0.3, 2) == pytest.approx(folded, abs=1e-14)


@laws
@given(dimensions, st.floats(0.01, math.pi - 0.01))
def test_without_a_width_the_vectors_are_uniform_on_the_sphere(dimension, theta):
    half = 0.5 * special.betainc((dimension - 1) / 2, 0.5, math.sin(theta) ** 2)
    expected = half if theta < math.pi / 2 else 1.0 - half
    assert float(marginal_cdf(theta, math.inf, dimension)) == pytest.approx(expected, abs=1e-11)


@laws
@given(sigmas, dimensions, st.lists(st.floats(1e-6, 1 - 1e-6), min_size=1, max_size=5))
def test_the_quantile_undoes_the_cdf(sigma, dimension, levels):
    angles = marginal_quantile(levels, sigma, dimension)
    assert marginal_cdf(angles, sigma, dimension) == pytest.approx(np.array(levels), abs=1e-12)


def test_the_cdf_runs_from_zero_to_one_and_never_falls():
    values = marginal_cdf(np.linspace(-1.0, 4.0, 500), 0.05, 256)
    assert values[0] == 0.0
    assert values[-1] == 1.0
    assert (np.diff(values) >= 0.0).all()


@pytest.mark.parametrize("dimension", [2, 3, 256, 4096])
def test_outside_of_0_to_pi_there_is_no_density(dimension):
    assert log_density([-0.1, 3.2], 0.1, dimension).tolist() == [-math.inf, -math.inf]
    assert log_marginal([-0.1, 3.2], 0.1, dimension).tolist() == [-math.inf, -math.inf]


@laws
@given(sigmas, st.integers(3, 4096))
def test_the_typical_angle_is_where_the_marginal_is_greatest(sigma, dimension):
    theta = typical_angle(sigma, dimension)
    step = 0.01 * min(theta, math.pi / 2 - 0.5 * theta)
    beside = log_marginal([theta - step, theta, theta + step], sigma, dimension)
    assert beside.argmax() == 1


@laws
@given(st.floats(1e-4, math.pi / 2 - 1e-4), st.integers(3, 4096))
def test_sigma_and_the_typical_angle_undo_each_other(theta_c, dimension):
    assert typical_angle(sigma_of(theta_c, dimension), dimension) == pytest.approx(
        theta_c, rel=1e-12
    )


def test_on_a_circle_the_typical_angle_is_zero():
    assert typical_angle(0.7, 2) == 0.0


def test_strangers_are_typically_perpendicular():
    assert typical_angle(math.inf, 128) == math.pi / 2


@pytest.mark.parametrize(("theta_c", "dimension"), [(0.5, 2), (0.0, 8), (1.6, 8), (math.nan, 8)])
def test_no_sigma_has_its_typical_angle_on_a_circle_or_beyond_a_right_angle(theta_c, dimension):
    with pytest.raises(ArgumentError, match="θ_c"):
        sigma_of(theta_c, dimension)


def test_the_marginal_narrows_as_the_square_root_of_the_dimension():
    theta_c = math.acos(0.7)
    widths = []
    for dimension in (64, 256, 1024, 4096):
        low, high = marginal_quantile([0.025, 0.975], sigma_of(theta_c, dimension), dimension)
        widths.append(high - low)
    assert np.divide(widths[:-1], widths[1:]) == pytest.approx(2.0, abs=0.05)


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan])
def test_a_sigma_that_is_not_positive_is_refused(sigma):
    with pytest.raises(ArgumentError, match="σ"):
        log_marginal(0.5, sigma, 8)


@pytest.mark.parametrize("dimension", [1, 0, -3, 2.5])
def test_a_dimension_below_2_or_not_whole_is_refused(dimension):
    with pytest.raises(ArgumentError, match="dimension"):
        log_area(dimension)


@pytest.mark.parametrize("level", [-0.1, 1.1, math.nan])
def test_a_level_that_is_not_a_fraction_is_refused(level):
    with pytest.raises(ArgumentError, match="fractions"):
        marginal_quantile(level, 0.1, 8)


@models
def test_drawn_angles_follow_the_marginal(sigma, dimension):
    # Kolmogorov's statistic; one honest sample in a thousand would fail, and the seed is fixed.
    angles = sample_angles(20_000, sigma, dimension, np.random.default_rng(7))
    assert stats.kstest(angles, lambda t: marginal_cdf(t, sigma, dimension)).pvalue > 1e-3


@pytest.mark.parametrize("dimension", [2, 3, 64, 1024])
def test_drawn_vectors_have_unit_length(dimension):
    X = sample_cluster(np.ones(dimension), 50, 0.1, np.random.default_rng(1))
    assert np.linalg.norm(X, axis=1) == pytest.approx(np.ones(50), abs=2e-15)


def test_drawn_vectors_lie_at_the_drawn_angles_from_their_centre():
    center = normalise(np.arange(1.0, 33.0))
    X = sample_cluster(center, 100, 0.1, np.random.default_rng(5))
    drawn = sample_angles(100, 0.1, 32, np.random.default_rng(5))
    assert angle(X, center) == pytest.approx(drawn, abs=1e-14)


def test_drawn_vectors_prefer_no_direction_around_their_centre():
    # A coordinate across the centre, in units of sin θ, is one of a uniform vector in R^(N-1):
    # its square has a beta law.
    center = np.eye(12)[0]
    X = sample_cluster(center, 20_000, 0.2, np.random.default_rng(2))
    share = X[:, 3] ** 2 / (1.0 - X[:, 0] ** 2)
    assert stats.kstest(share, stats.beta(0.5, 5.0).cdf).pvalue > 1e-3


def test_a_cluster_has_one_center():
    with pytest.raises(VectorError, match="center of shape"):
        sample_cluster(np.eye(3), 5, 0.1, np.random.default_rng(0))


def test_a_stream_holds_each_cluster_as_often_as_asked():
    X, y = sample_stream(7, 11, 16, 0.1, np.random.default_rng(3))
    assert X.shape == (77, 16)
    assert np.bincount(y).tolist() == [11] * 7


def test_a_stream_is_shuffled():
    _, y = sample_stream(7, 11, 16, 0.1, np.random.default_rng(3))
    assert (np.diff(y) < 0).any()


def test_vectors_of_one_label_crowd_and_others_are_strangers():
    X, y = sample_stream(5, 20, 512, sigma_of(math.acos(0.8), 512), np.random.default_rng(4))
    similarity, same = X @ X.T, y[:, np.newaxis] == y
    assert similarity[same & ~np.eye(len(y), dtype=bool)].mean() == pytest.approx(0.64, abs=0.01)
    assert similarity[~same].mean() == pytest.approx(0.0, abs=0.05)


def test_the_same_seed_gives_the_same_stream():
    first, second = (sample_stream(3, 4, 8, 0.2, np.random.default_rng(9)) for _ in range(2))
    assert first[0].tobytes() == second[0].tobytes()
    assert first[1].tolist() == second[1].tolist()
