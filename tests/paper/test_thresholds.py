"""Equations 13–18 and 23–25: the other forms of the paper, the limits, the order."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkstream.errors import ArgumentError, LinkstreamError, ThresholdError
from linkstream.paper.thresholds import (
    Thresholds,
    anisotropic_pair_threshold,
    anisotropic_vector_threshold,
    pair_threshold,
    vector_threshold,
)

cosines = st.floats(0.01, 0.99)
counts = st.integers(1, 10**6).map(float)
laws = settings(deadline=None, max_examples=100)


@laws
@given(cosines, counts)
def test_s_of_k_equals_the_first_form_of_equation_13(t_c, k):
    theta = math.acos(t_c)
    length = math.sqrt(k**2 * math.cos(theta) ** 2 + k * math.sin(theta) ** 2)
    assert vector_threshold(t_c, k) == pytest.approx(k * math.cos(theta) ** 2 / length, rel=1e-12)


@laws
@given(cosines, counts, counts)
def test_s_of_two_counts_equals_the_first_form_of_equation_16(t_c, k, k2):
    tan2 = math.tan(math.acos(t_c)) ** 2
    expected = ((1 + tan2 / k) * (1 + tan2 / k2)) ** -0.5
    assert pair_threshold(t_c, k, k2) == pytest.approx(expected, rel=1e-12)


def test_s_of_k_is_the_similarity_in_the_orthonormal_basis_of_section_2_3():
    theta, k = math.acos(0.7), 5
    across = math.sin(theta) * np.eye(k + 1)
    vectors = np.column_stack([np.full(k + 1, math.cos(theta)), across])
    total = vectors[:k].sum(axis=0)
    assert vector_threshold(0.7, float(k)) == pytest.approx(
        vectors[k] @ total / np.linalg.norm(total)
    )


def test_s_of_two_counts_is_the_similarity_of_two_centroids_in_that_basis():
    theta, k, k2 = math.acos(0.6), 3, 8
    across = math.sin(theta) * np.eye(k + k2)
    vectors = np.column_stack([np.full(k + k2, math.cos(theta)), across])
    a, b = vectors[:k].sum(axis=0), vectors[k:].sum(axis=0)
    expected = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    assert pair_threshold(0.6, float(k), float(k2)) == pytest.approx(expected)


@laws
@given(cosines, counts)
def test_one_other_vector_is_the_special_case_of_equation_17(t_c, k):
    assert pair_threshold(t_c, k, 1.0) == pytest.approx(vector_threshold(t_c, k), rel=1e-12)


@laws
@given(cosines, counts, counts)
def test_s_of_two_counts_is_symmetric(t_c, k, k2):
    assert pair_threshold(t_c, k, k2) == pytest.approx(pair_threshold(t_c, k2, k), rel=1e-15)


def test_s_of_k_tends_to_t_c():
    assert vector_threshold(0.7, 1e12) == pytest.approx(0.7, abs=1e-9)


def test_s_of_two_counts_tends_to_one():
    assert pair_threshold(0.7, 1e12, 1e12) == pytest.approx(1.0, abs=1e-9)


def test_the_anisotropic_s_tends_to_t_p():
    assert anisotropic_pair_threshold(0.7, 0.9, 1e12, 1e12) == pytest.approx(0.9, abs=1e-9)


@laws
@given(cosines, st.floats(0, 1), counts, counts)
def test_the_anisotropic_s_has_the_bits_of_the_stated_operation_order(t_c, part, k, k2):
    """Written out a second time: the engines compare similarities with these very bits."""
    t_p = t_c * t_c + part * (1 - t_c * t_c)
    c2 = t_c * t_c
    tan2 = 1.0 / c2 - 1.0
    s = 1.0 / math.sqrt((1.0 + tan2 / k) * (1.0 + tan2 / k2))
    expected = c2 + max(t_p - c2, 0.0) / (1.0 - c2) * (s - c2)
    assert anisotropic_pair_threshold(t_c, t_p, k, k2) == expected


@laws
@given(cosines, st.integers(1, 10**6))
def test_s_of_k_never_falls_as_k_rises(t_c, k):
    assert vector_threshold(t_c, float(k)) <= vector_threshold(t_c, float(k + 1)) * (1 + 1e-15)


@laws
@given(cosines, st.floats(0, 1), counts, counts)
def test_the_anisotropic_s_never_falls_as_a_count_rises_not_even_by_a_rounding(t_c, part, k, k2):
    t_p = t_c * t_c + part * (1 - t_c * t_c)
    assert anisotropic_pair_threshold(t_c, t_p, k, k2) <= anisotropic_pair_threshold(
        t_c, t_p, k + 1, k2
    )


@laws
@given(cosines, counts, counts)
def test_t_p_of_one_makes_the_anisotropic_s_the_isotropic_one(t_c, k, k2):
    assert anisotropic_pair_threshold(t_c, 1.0, k, k2) == pytest.approx(
        pair_threshold(t_c, k, k2), rel=1e-12
    )


@laws
@given(cosines, st.floats(0, 1))
def test_two_single_vectors_need_t_c_squared_whatever_t_p(t_c, part):
    t_p = t_c * t_c + part * (1 - t_c * t_c)
    assert anisotropic_pair_threshold(t_c, t_p, 1.0, 1.0) == pytest.approx(t_c * t_c, rel=1e-12)


@laws
@given(cosines, counts)
def test_t_p_at_its_floor_makes_the_anisotropic_s_constant(t_c, k):
    assert anisotropic_pair_threshold(t_c, t_c * t_c, k, k) == t_c * t_c


@laws
@given(cosines, st.floats(0, 1), counts)
def test_the_anisotropic_s_of_one_count_is_that_with_one_vector(t_c, part, k):
    t_p = t_c * t_c + part * (1 - t_c * t_c)
    assert anisotropic_vector_threshold(t_c, t_p, k) == anisotropic_pair_threshold(t_c, t_p, k, 1.0)


def test_equation_24_holds_in_exact_fractions():
    # T_c² = 1/2 makes tan²θ_c = 1, hence s(3, 3) = 1 / (1 + 1/3) = 3/4.
    t_p, c2, s = Fraction(9, 10), Fraction(1, 2), Fraction(3, 4)
    expected = c2 + (t_p - c2) / (1 - c2) * (s - c2)
    assert anisotropic_pair_threshold(math.sqrt(0.5), 0.9, 3.0, 3.0) == pytest.approx(
        float(expected)
    )


@laws
@given(cosines, st.lists(counts, min_size=1, max_size=20))
def test_arrays_and_numbers_get_the_same_bits_from_s_of_k(t_c, ks):
    assert vector_threshold(t_c, np.array(ks)).tolist() == [vector_threshold(t_c, k) for k in ks]


@laws
@given(cosines, st.floats(0, 1), st.lists(st.tuples(counts, counts), min_size=1, max_size=20))
def test_arrays_and_numbers_get_the_same_bits_from_the_anisotropic_s(t_c, part, pairs):
    t_p = t_c * t_c + part * (1 - t_c * t_c)
    k, k2 = np.array(pairs).T
    whole = anisotropic_pair_threshold(t_c, t_p, k, k2)
    assert whole.tolist() == [anisotropic_pair_threshold(t_c, t_p, a, b) for a, b in pairs]


def test_the_edge_of_thresholds_is_equation_24():
    assert Thresholds(0.7, 0.4, 0.9).edge(3, 5) == anisotropic_pair_threshold(0.7, 0.9, 3.0, 5.0)


def test_edges_in_bulk_equal_edges_one_by_one():
    thresholds = Thresholds(0.7, 0.4, 0.9)
    k, k2 = np.array([1.0, 2.0, 500.0]), np.array([1.0, 7.0, 3.0])
    expected = [thresholds.edge(a, b) for a, b in zip(k, k2, strict=True)]
    assert thresholds.edges(k, k2).tolist() == expected


@pytest.mark.parametrize(("t_s", "lowest"), [(0.3, 0.3), (0.9, 0.7 * 0.7)])
def test_the_lowest_similarity_that_matters_is_to_join_or_to_link(t_s, lowest):
    assert Thresholds(0.7, t_s, 0.9).lowest == pytest.approx(lowest, rel=1e-15)


def test_integers_and_numpy_numbers_are_taken_as_thresholds():
    thresholds = Thresholds(np.float32(0.5), np.float64(0.25), 1)
    assert type(thresholds.cluster_similarity) is type(thresholds.pair_similarity_max) is float


@pytest.mark.parametrize(
    "values",
    [
        (0.0, 0.5, 0.9),
        (1.0, 0.5, 1.0),
        (-0.5, 0.5, 0.9),
        (0.7, 0.0, 0.9),
        (0.7, 1.0, 0.9),
        (0.7, 0.5, 0.48),
        (0.7, 0.5, 1.01),
        (math.nan, 0.5, 0.9),
        (0.7, math.nan, 0.9),
        (0.7, 0.5, math.nan),
        (0.7, 0.5, math.inf),
    ],
)
def test_thresholds_outside_their_ranges_are_refused(values):
    with pytest.raises(ThresholdError, match="expected a value in"):
        Thresholds(*values)


@pytest.mark.parametrize("value", ["0.7", None, True, 1j, [0.7]])
def test_what_is_not_a_number_is_refused_as_a_threshold(value):
    with pytest.raises(ThresholdError, match="expected a number"):
        Thresholds(value, 0.5, 0.9)


def test_the_pair_similarity_max_may_equal_its_floor():
    assert Thresholds(0.7, 0.5, 0.49).edge(100, 100) == pytest.approx(0.49)


def test_thresholds_cannot_be_changed():
    with pytest.raises(AttributeError):
        Thresholds(0.7, 0.5, 0.9).cluster_similarity = 0.8


def test_a_threshold_error_says_seen_expected_and_remedy():
    with pytest.raises(ThresholdError) as caught:
        Thresholds(1.7, 0.5, 0.9)
    error = caught.value
    assert "1.7" in error.seen
    assert "(0, 1)" in error.expected
    assert error.remedy
    assert isinstance(error, (ArgumentError, LinkstreamError, ValueError))


@pytest.mark.parametrize("t_c", [1e-200, 5e-324, 10**400, -(10**400)])
def test_a_cluster_similarity_that_arithmetic_cannot_use_is_refused(t_c):
    with pytest.raises(ThresholdError, match="cluster_similarity"):
        Thresholds(t_c, 0.5, 0.9)
