"""Equations 1, 6 and 12: angles that keep their digits, and the three middles."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from linkstream.errors import ArgumentError, ConvergenceError, VectorError
from linkstream.paper.sphere import angle, centroid, model_centroid, normalise, spherical_mean

laws = settings(deadline=None, max_examples=50)
seeds = st.integers(0, 2**32 - 1)
dimensions = st.integers(2, 40)


def cap(seed, count, dimension, width):
    """Unit vectors scattered around a random centre, all in its hemisphere."""
    rng = np.random.default_rng(seed)
    center = normalise(rng.standard_normal(dimension))
    offsets = normalise(rng.standard_normal((count, dimension)))
    return normalise(center + width * rng.random((count, 1)) * offsets)


@laws
@given(st.floats(0, math.pi))
def test_the_angle_is_the_one_the_vectors_were_made_with(theta):
    made = angle([1.0, 0.0], [math.cos(theta), math.sin(theta)])
    assert float(made) == pytest.approx(theta, abs=1e-15)


def test_the_angle_is_exact_near_zero():
    assert float(angle([1.0, 0.0], [1.0, 1e-12])) == pytest.approx(1e-12, rel=1e-15)


def test_the_angle_is_exact_near_pi():
    made = math.pi - float(angle([1.0, 0.0, 0.0], [-1.0, 1e-9, 0.0]))
    assert made == pytest.approx(1e-9, rel=1e-6)


@laws
@given(seeds, dimensions)
def test_the_angle_is_the_arccos_of_equation_1(seed, dimension):
    x, y = normalise(np.random.default_rng(seed).standard_normal((2, dimension)))
    assert float(angle(x, y)) == pytest.approx(math.acos(x @ y), abs=1e-7)


@laws
@given(seeds, dimensions)
def test_angles_obey_the_triangle_inequality(seed, dimension):
    x, y, z = np.random.default_rng(seed).standard_normal((3, dimension))
    assert float(angle(x, z)) <= float(angle(x, y)) + float(angle(y, z)) + 1e-14


def test_the_angle_of_a_vector_with_itself_is_zero():
    X = np.random.default_rng(0).standard_normal((50, 17))
    assert angle(X, X).tolist() == [0.0] * 50


def test_the_angle_does_not_depend_on_the_lengths():
    assert float(angle([3e200, 0.0], [0.0, 5e-200])) == pytest.approx(math.pi / 2, rel=1e-15)


def test_angles_broadcast_over_leading_axes():
    rng = np.random.default_rng(1)
    X, Y = rng.standard_normal((4, 1, 6)), rng.standard_normal((3, 6))
    table = angle(X, Y)
    assert table.shape == (4, 3)
    assert table[2, 1] == float(angle(X[2, 0], Y[1]))


def test_vectors_of_two_dimensions_have_no_angle():
    with pytest.raises(VectorError, match="3 and of 1 coordinates"):
        angle([1.0, 0.0, 0.0], [1.0])


@laws
@given(seeds, dimensions, st.integers(-300, 300))
def test_normalised_vectors_have_unit_length_at_any_scale(seed, dimension, exponent):
    X = np.random.default_rng(seed).standard_normal((5, dimension)) * 10.0**exponent
    assert np.linalg.norm(normalise(X), axis=1) == pytest.approx(np.ones(5), abs=1e-15)


def test_normalising_does_not_touch_the_argument():
    X = np.array([[3.0, 4.0]])
    normalise(X)
    assert X.tolist() == [[3.0, 4.0]]


def test_a_zero_vector_is_refused_by_its_row():
    with pytest.raises(VectorError, match="row 1 is zero") as caught:
        normalise([[1.0, 0.0], [0.0, 0.0]])
    assert caught.value.row == 1


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_vector_that_is_not_finite_is_refused_by_its_row(bad):
    with pytest.raises(VectorError, match="row 2 is not finite") as caught:
        normalise([[1.0, 0.0], [0.0, 1.0], [bad, 1.0]])
    assert caught.value.row == 2


def test_a_single_vector_is_refused_without_a_row():
    with pytest.raises(VectorError, match="the vector is zero") as caught:
        normalise([0.0, 0.0])
    assert caught.value.row is None


@pytest.mark.parametrize("shapeless", [1.0, [], [[], []]])
def test_an_array_without_coordinates_is_refused(shapeless):
    with pytest.raises(VectorError, match="shape"):
        normalise(shapeless)


@laws
@given(seeds, dimensions)
def test_the_centroid_has_the_greatest_total_similarity(seed, dimension):
    X = cap(seed, 6, dimension, 0.9)
    middle = centroid(X)
    others = normalise(np.random.default_rng(seed).standard_normal((200, dimension)))
    assert (X @ middle).sum() >= (X @ others.T).sum(axis=0).max() - 1e-12


def test_the_centroid_of_opposite_vectors_is_refused():
    with pytest.raises(VectorError, match="sum has length"):
        centroid([[1.0, 0.0], [-1.0, 0.0]])


@pytest.mark.parametrize("shape", [(3,), (0, 3), (2, 2, 2)])
def test_a_centroid_needs_rows(shape):
    with pytest.raises(VectorError, match="one vector per row"):
        centroid(np.ones(shape))


def test_the_model_centroid_points_where_the_centroid_points():
    X = cap(3, 9, 20, 0.9)
    assert float(angle(model_centroid(X, 0.7), centroid(X))) < 1e-14


def test_the_model_centroid_has_unit_length_on_vectors_as_the_lemmas_want_them():
    k, t_c = 6, 0.8
    across = math.sqrt(1 - t_c**2) * np.eye(k)
    X = np.column_stack([np.full(k, t_c), across])
    assert np.linalg.norm(model_centroid(X, t_c)) == pytest.approx(1.0, abs=1e-15)


def test_the_model_centroid_of_copies_is_longer_than_one():
    X = np.tile([0.6, 0.8], (10, 1))
    assert np.linalg.norm(model_centroid(X, 0.7)) == pytest.approx(
        10 / math.sqrt(100 * 0.49 + 10 * 0.51)
    )


@pytest.mark.parametrize("t_c", [-0.1, 1.1, math.nan])
def test_the_model_centroid_refuses_what_is_not_a_cosine(t_c):
    with pytest.raises(ArgumentError, match="t_c"):
        model_centroid([[1.0, 0.0]], t_c)


@laws
@given(seeds, st.integers(2, 6), st.integers(1, 8))
def test_the_spherical_mean_is_what_a_general_minimiser_finds(seed, dimension, count):
    X = cap(seed, count, dimension, 0.8)

    def squares(v):
        return float((np.arccos(np.clip(X @ (v / np.linalg.norm(v)), -1, 1)) ** 2).sum())

    mean = spherical_mean(X)
    found = optimize.minimize(
        squares, X.mean(axis=0), method="Nelder-Mead", options={"xatol": 1e-9}
    )
    assert squares(mean) <= found.fun + 1e-9


@laws
@given(seeds, dimensions)
def test_the_spherical_mean_balances_the_tangent_vectors(seed, dimension):
    X = cap(seed, 7, dimension, 0.9)
    mean = spherical_mean(X)
    theta = angle(X, mean)[:, np.newaxis]
    across = X - (X @ mean)[:, np.newaxis] * mean
    pull = (np.where(theta > 0, theta / np.sin(theta), 1.0) * across).mean(axis=0)
    assert np.linalg.norm(pull) < 1e-11


@laws
@given(st.floats(0.05, 1.5))
def test_the_spherical_mean_of_two_vectors_is_half_way(theta):
    X = [[1.0, 0.0, 0.0], [math.cos(theta), math.sin(theta), 0.0]]
    assert spherical_mean(X) == pytest.approx([math.cos(theta / 2), math.sin(theta / 2), 0])


def test_the_spherical_mean_averages_angles_on_a_circle_where_the_centroid_does_not():
    angles = np.array([0.0, 0.1, 1.4])
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    mean, middle = spherical_mean(X), centroid(X)
    assert math.atan2(mean[1], mean[0]) == pytest.approx(0.5, abs=1e-12)
    assert abs(math.atan2(middle[1], middle[0]) - 0.5) > 0.01


def test_a_whole_weight_counts_as_that_many_copies():
    X = cap(5, 3, 8, 0.9)
    copies = np.repeat(X, [1, 2, 4], axis=0)
    assert spherical_mean(X, [1, 2, 4]) == pytest.approx(spherical_mean(copies), abs=1e-11)


@laws
@given(seeds)
def test_turning_the_vectors_turns_the_spherical_mean(seed):
    X = cap(seed, 6, 9, 0.9)
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((9, 9)))[0]
    assert spherical_mean(X @ turn) == pytest.approx(spherical_mean(X) @ turn, abs=1e-10)


def test_the_spherical_mean_of_copies_is_the_vector():
    assert spherical_mean([[0.6, 0.8]] * 4) == pytest.approx([0.6, 0.8], abs=1e-15)


def test_the_spherical_mean_refuses_vectors_beyond_a_hemisphere():
    with pytest.raises(ConvergenceError, match="row 2"):
        spherical_mean([[1.0, 0.1], [1.0, -0.1], [-0.5, 0.1]])


def test_the_spherical_mean_says_when_its_iterations_ran_out():
    with pytest.raises(ConvergenceError, match="after 1 iterations"):
        spherical_mean(cap(1, 5, 4, 0.9), iterations=1)


@pytest.mark.parametrize("weights", [[1.0, 0.0], [1.0, -1.0], [1.0], [1.0, math.nan], [[1.0, 1.0]]])
def test_weights_that_are_not_positive_numbers_one_per_row_are_refused(weights):
    with pytest.raises(ArgumentError, match="weights"):
        spherical_mean([[1.0, 0.0], [0.0, 1.0]], weights)
