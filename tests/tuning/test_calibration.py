"""`calibrate`: thresholds from few labels or none."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from linkstream import Links, Space, Thresholds, metrics
from linkstream.data import voice_halves
from linkstream.errors import ArgumentError, DimensionError, SpaceError, VectorError
from linkstream.paper.generative import sample_stream, sigma_of
from linkstream.tuning.calibration import Rate, calibrate
from linkstream.tuning.grid import agreement


def identities(n=10, size=20, *, cosine=0.8, dimension=64, seed=0):
    """Return well separated clusters of the paper's model, in random order."""
    sigma = sigma_of(math.acos(cosine), dimension)
    return sample_stream(n, size, dimension, sigma, np.random.default_rng(seed))


def known_pairs(y, n, *, seed=0):
    """Draw pairs of one identity and pairs of two at random."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(len(y), size=(2, 400 * n))
    one = (y[first] == y[second]) & (first != second)
    two = y[first] != y[second]
    pairs = np.stack([first, second], axis=1)
    return pairs[one][:n], pairs[two][:n]


def seen_together(y, *, size=3, seed=0):
    """Return a key for each vector: different identities in each group, some vectors in none."""
    rng = np.random.default_rng(seed)
    keys = np.full(len(y), -1)
    for key in range(len(y) // (2 * size)):
        free = rng.permutation(np.flatnonzero(keys < 0))
        _, places = np.unique(y[free], return_index=True)
        keys[free[rng.permutation(places)[:size]]] = key
    return keys


def score(calibration, X, y):
    return metrics.accuracy(y, calibration.links(threads=1).add_many(X))


@pytest.fixture(scope="module")
def stream():
    return identities()


@pytest.fixture(scope="module")
def by_pairs(stream):
    X, y = stream
    same, different = known_pairs(y, 60)
    return calibrate(X, same=same, different=different)


@pytest.fixture(scope="module")
def by_vectors(stream):
    return calibrate(stream[0])


# Decided calibrations


def test_pairs_give_thresholds_for_separate_identities(by_pairs):
    assert (by_pairs.decided, by_pairs.source) == (True, "pairs")
    assert score(by_pairs, *identities(seed=1)) > 0.95


def test_groups_give_thresholds_for_separate_identities(stream):
    X, y = stream
    found = calibrate(X, groups=seen_together(y))
    assert (found.decided, found.source) == (True, "groups")
    assert score(found, *identities(seed=1)) > 0.95


def test_vectors_alone_give_thresholds_for_separate_identities(by_vectors):
    assert (by_vectors.decided, by_vectors.source) == (True, "unlabelled")
    assert score(by_vectors, *identities(seed=1)) > 0.95


def test_few_vectors_of_many_identities_are_enough():
    X, y = identities(60, 3)
    assert score(calibrate(X), X, y) > 0.95


def test_thresholds_from_pairs_of_five_speakers_fit_five_others():
    tuning, held_out = voice_halves()
    same, different = known_pairs(tuning.y, 100)
    found = calibrate(tuning.X, same=same, different=different)
    assert score(found, held_out.X, held_out.y) > 0.8


def test_vectors_of_any_length_in_a_cone_are_calibrated_in_their_space(stream):
    X, y = stream
    cone = np.zeros(X.shape[1])
    cone[0] = 1.5
    shifted = X + cone
    unit = shifted / np.linalg.norm(shifted, axis=1, keepdims=True)
    space = Space(mean=unit.mean(axis=0))
    found = calibrate(3.0 * shifted, space=space)
    assert found.space == space
    assert score(found, shifted, y) > 0.95


# Undecided calibrations


@pytest.mark.parametrize("dimension", [3, 16, 128])
def test_noise_cannot_be_decided(dimension):
    X = np.random.default_rng(0).normal(size=(200, dimension))
    found = calibrate(X)
    assert not found.decided
    assert found.thresholds is None
    assert found.false_merge is None
    assert found.false_split is None
    assert "Cannot decide" in found.advice
    assert "Cannot decide" in found.text()


def test_copies_of_one_vector_cannot_be_decided():
    assert not calibrate(np.tile([1.0, 2.0, 3.0], (20, 1))).decided


def test_vectors_of_strangers_only_cannot_be_decided():
    assert not calibrate(np.eye(40)).decided


def test_pairs_of_noise_cannot_be_decided():
    rng = np.random.default_rng(0)
    pairs = rng.permutation(160).reshape(-1, 2)
    found = calibrate(rng.normal(size=(160, 32)), same=pairs[:40], different=pairs[40:])
    assert not found.decided


def test_exchanging_same_and_different_cannot_be_decided(stream):
    X, y = stream
    same, different = known_pairs(y, 60)
    found = calibrate(X, same=different, different=same)
    assert not found.decided
    assert "mixed up" in found.advice


@pytest.mark.parametrize(("n_same", "n_different"), [(9, 60), (60, 9), (0, 0)])
def test_too_few_pairs_cannot_decide(stream, n_same, n_different):
    X, y = stream
    same, different = known_pairs(y, 60)
    found = calibrate(X, same=same[:n_same], different=different[:n_different])
    assert not found.decided
    assert "too few" in found.advice


def test_too_few_groups_cannot_decide(stream):
    X, y = stream
    keys = seen_together(y)
    found = calibrate(X, groups=np.where(keys < 9, keys, -1))
    assert not found.decided
    assert "9 groups" in found.advice


def test_an_undecided_calibration_makes_no_clusterer():
    found = calibrate(np.random.default_rng(0).normal(size=(60, 32)))
    with pytest.raises(ArgumentError, match="could not decide"):
        found.links()


# Laws


def test_the_order_of_pairs_and_of_their_ends_changes_nothing(stream, by_pairs):
    X, y = stream
    same, different = (pairs[::-1, ::-1] for pairs in known_pairs(y, 60))
    assert calibrate(X, same=same, different=different).to_dict() == by_pairs.to_dict()


def test_a_pair_given_twice_counts_once(stream, by_pairs):
    X, y = stream
    same, different = known_pairs(y, 60)
    again = calibrate(X, same=np.concatenate([same, same[:, ::-1]]), different=different)
    assert again.to_dict() == by_pairs.to_dict()


def test_more_pairs_narrow_the_intervals(stream, by_pairs):
    X, y = stream
    same, different = known_pairs(y, 240)
    more = calibrate(X, same=same, different=different)
    for fewer, rate in (
        (by_pairs.false_merge, more.false_merge),
        (by_pairs.false_split, more.false_split),
    ):
        assert rate.high - rate.low < fewer.high - fewer.low


def test_more_confidence_widens_the_intervals(stream, by_pairs):
    X, y = stream
    same, different = known_pairs(y, 60)
    surer = calibrate(X, same=same, different=different, confidence=0.999)
    assert surer.thresholds == by_pairs.thresholds
    assert surer.false_merge.high > by_pairs.false_merge.high


def test_the_same_seed_gives_the_same_outcome(stream, by_vectors):
    assert calibrate(stream[0]).to_dict() == by_vectors.to_dict()


def test_group_keys_may_be_names(stream):
    X, y = stream
    keys = seen_together(y)
    named = [None if key < 0 else f"photo {key}" for key in keys]
    assert calibrate(X, groups=named).to_dict() == calibrate(X, groups=list(keys)).to_dict()


def test_groups_may_replace_pairs_of_two_identities(stream):
    X, y = stream
    found = calibrate(X, same=known_pairs(y, 60)[0], groups=seen_together(y))
    assert (found.decided, found.source) == (True, "pairs")
    assert "of two" in found.advice


# The result


def test_rates_lie_within_their_intervals(by_pairs, by_vectors):
    for found in (by_pairs, by_vectors):
        for rate in (found.false_merge, found.false_split):
            assert 0.0 <= rate.low <= rate.estimate <= rate.high <= 1.0


def test_the_clusterer_has_the_thresholds_found(by_pairs):
    links = by_pairs.links(threads=1)
    assert isinstance(links, Links)
    assert links.thresholds == by_pairs.thresholds
    assert isinstance(by_pairs.thresholds, Thresholds)


def test_all_figures_are_plain_values(by_pairs, by_vectors):
    for found in (by_pairs, by_vectors):
        assert json.loads(json.dumps(found.to_dict())) == found.to_dict()


def test_the_text_contains_the_thresholds_the_rates_and_the_advice(by_pairs):
    text = str(by_pairs)
    assert f"{by_pairs.thresholds.cluster_similarity:.4f}" in text
    assert "false merges" in text
    assert by_pairs.advice in text


# Bad inputs

PAIR = [[0, 1]]


@pytest.mark.parametrize(
    ("arguments", "seen"),
    [
        ({"same": PAIR}, "one identity only"),
        ({"different": PAIR}, "two identities only"),
        ({"same": [[0, 200]], "different": PAIR}, "row 200"),
        ({"same": [[-1, 2]], "different": PAIR}, "row -1"),
        ({"same": [[3, 3]], "different": PAIR}, "itself"),
        ({"same": [[0, 1]], "different": [[1, 0]]}, "rows 0 and 1"),
        ({"same": [0, 1], "different": PAIR}, "shape"),
        ({"same": [[0.0, 1.0]], "different": PAIR}, "dtype"),
        ({"same": [[0], [1, 2]], "different": PAIR}, "shape"),
        ({"same": "ab", "different": PAIR}, "shape"),
        ({"same": PAIR, "groups": [0, 0] + [-1] * 198}, "rows 0 and 1"),
        ({"groups": [0, 0]}, "2 keys"),
        ({"groups": 7}, "groups"),
        ({"groups": [-1] * 200}, "no two vectors"),
        ({"groups": list(range(200))}, "no two vectors"),
        ({"groups": [0.5] * 200}, "0.5"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"confidence": 1.0}, "confidence"),
        ({"confidence": "high"}, "confidence"),
        ({"confidence": math.nan}, "confidence"),
        ({"space": "ge2e"}, "space"),
    ],
)
def test_bad_arguments_are_refused(stream, arguments, seen):
    with pytest.raises(ArgumentError, match=seen) as caught:
        calibrate(stream[0], **arguments)
    assert caught.value.expected
    assert caught.value.remedy


def test_fewer_than_ten_vectors_are_refused():
    with pytest.raises(ArgumentError, match="9 vectors"):
        calibrate(np.eye(9))


def test_vectors_that_are_not_finite_are_refused(stream):
    X = stream[0].copy()
    X[3, 0] = np.nan
    with pytest.raises(VectorError):
        calibrate(X)


def test_a_space_of_another_dimension_is_refused(stream):
    with pytest.raises((SpaceError, DimensionError)):
        calibrate(stream[0], space=Space(mean=[0.1, 0.2]))


# Parts


@pytest.mark.parametrize(("hits", "cases"), [(0, 10), (10, 10), (3, 10), (50, 600)])
def test_the_interval_is_the_clopper_pearson_interval(hits, cases):
    """At each end, the probability of the counts beyond is half of 1 − confidence."""
    rate = Rate.of(hits, cases, confidence=0.9)
    at_most = [
        math.comb(cases, k) * rate.high**k * (1 - rate.high) ** (cases - k) for k in range(hits + 1)
    ]
    fewer = [math.comb(cases, k) * rate.low**k * (1 - rate.low) ** (cases - k) for k in range(hits)]
    assert rate.high == 1.0 if hits == cases else sum(at_most) == pytest.approx(0.05)
    assert rate.low == 0.0 if hits == 0 else sum(fewer) == pytest.approx(0.95)


def test_agreement_is_one_for_renamed_clusters_and_about_zero_for_unrelated_ones():
    rng = np.random.default_rng(0)
    cut = rng.integers(5, size=500).astype(np.int32)
    assert agreement(cut, (4 - cut).astype(np.int32)) == pytest.approx(1.0)
    assert abs(agreement(cut, rng.permutation(cut))) < 0.02
