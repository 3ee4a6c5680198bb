"""Metrics compared with brute force, with their laws and with scikit-learn."""

from __future__ import annotations

import itertools
import json
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from sklearn import metrics as peer

from linkstream import metrics
from linkstream.errors import ArgumentError, MissingExtraError

pairs_of_labels = st.integers(1, 40).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 6), min_size=n, max_size=n),
        st.lists(st.integers(-1, 6), min_size=n, max_size=n),
    )
)


def brute_accuracy(y_true, y_pred):
    """Return the best accuracy over all one-to-one mappings of IDs to identities or to none."""
    identities, ids = sorted(set(y_true)), sorted(set(y_pred) - {-1})
    best = 0
    for chosen in itertools.permutations([*identities, *[None] * len(ids)], len(ids)):
        mapped = dict(zip(ids, chosen, strict=True))
        right = sum(mapped.get(p) == t for t, p in zip(y_true, y_pred, strict=True))
        best = max(best, right)
    return best / len(y_true)


def brute_pairs(y_true, y_pred):
    together = predicted = true = 0
    for (t, p), (u, q) in itertools.combinations(zip(y_true, y_pred, strict=True), 2):
        same_id = p == q and p != -1
        together += same_id and t == u
        predicted += same_id
        true += t == u
    return together, predicted, true


def test_accuracy_is_the_best_over_all_mappings():
    rng = np.random.default_rng(0)
    for _ in range(60):
        n = rng.integers(1, 12)
        y_true, y_pred = rng.integers(0, 3, n).tolist(), rng.integers(-1, 3, n).tolist()
        assert metrics.accuracy(y_true, y_pred) == brute_accuracy(y_true, y_pred)


@given(pairs_of_labels)
def test_accuracy_equals_that_of_the_dense_hungarian_method(labels):
    y_true, y_pred = labels
    table = np.zeros((7, 7), dtype=np.int64)
    for t, p in zip(y_true, y_pred, strict=True):
        table[t, p] += p != -1
    rows, columns = linear_sum_assignment(table, maximize=True)
    assert metrics.accuracy(y_true, y_pred) == table[rows, columns].sum() / len(y_true)


@given(pairs_of_labels)
def test_the_matching_is_one_to_one_and_yields_the_accuracy(labels):
    y_true, y_pred = labels
    matched = metrics.match(y_true, y_pred)
    assert len(set(matched.values())) == len(matched)
    right = sum(matched.get(p) == t for t, p in zip(y_true, y_pred, strict=True))
    assert right / len(y_true) == metrics.accuracy(y_true, y_pred)


@given(pairs_of_labels, st.permutations(range(7)), st.permutations(range(7)))
def test_renaming_labels_changes_no_figure(labels, rename_true, rename_pred):
    y_true, y_pred = labels
    renamed_true = [f"speaker {rename_true[t]}" for t in y_true]
    renamed_pred = [p if p == -1 else 100 + rename_pred[p] for p in y_pred]
    one, other = metrics.report(y_true, y_pred), metrics.report(renamed_true, renamed_pred)
    for name, value in one.to_dict().items():
        assert other.to_dict()[name] == pytest.approx(value, abs=1e-12)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40))
def test_a_perfect_answer_is_perfect_in_every_figure(labels):
    report = metrics.report(labels, [10 * label for label in labels])
    perfect = ("accuracy", "weighted_score", "pair_precision", "pair_recall", "pair_f1", "ari")
    assert all(getattr(report, name) == 1 for name in perfect)
    assert report.nmi == pytest.approx(1)
    assert (report.conflation, report.fracture, report.id_switches) == (0, 0, 0)


@given(pairs_of_labels)
def test_conflation_and_fracture_bound_accuracy_from_both_sides(labels):
    conflation, fracture = metrics.conflation_fracture(*labels)
    accuracy = metrics.accuracy(*labels)
    assert 1 - conflation - fracture <= accuracy + 1e-12
    assert accuracy <= 1 - max(conflation, fracture) + 1e-12


@given(st.tuples(*[st.lists(st.integers(0, 6), min_size=20, max_size=20)] * 2))
def test_swapping_the_roles_swaps_conflation_and_fracture(labels):
    one, other = labels
    assert metrics.conflation_fracture(one, other) == metrics.conflation_fracture(other, one)[::-1]
    pairs, swapped = metrics.pair_scores(one, other), metrics.pair_scores(other, one)
    assert (pairs.precision, pairs.recall) == (swapped.recall, swapped.precision)
    assert metrics.accuracy(one, other) == metrics.accuracy(other, one)


def test_one_id_for_all_conflates_and_one_id_each_fractures():
    y_true = [0] * 6 + [1] * 3 + [2]
    assert metrics.conflation_fracture(y_true, [5] * 10) == (0.4, 0.0)
    assert metrics.conflation_fracture(y_true, list(range(10))) == (0.0, 0.7)


def test_a_weight_raises_the_cost_of_its_kind_of_error():
    y_true, conflated = [0, 0, 0, 1], [0, 0, 0, 0]
    assert metrics.weighted_score(y_true, conflated, fracture_weight=0) == 0.75
    assert metrics.weighted_score(y_true, conflated, conflation_weight=0) == 1.0
    assert metrics.weighted_score(y_true, conflated) == 0.875


def test_a_stray_vector_costs_the_equal_weights_score_what_it_costs_accuracy():
    y_true, stray = [0] * 5 + [1] * 5, [0] * 4 + [1] * 6
    assert metrics.weighted_score(y_true, stray) == metrics.accuracy(y_true, stray) == 0.9


@pytest.mark.parametrize("weights", [(-1, 1), (float("nan"), 1), (1, float("inf")), (0, 0)])
def test_bad_weights_are_refused(weights):
    conflation, fracture = weights
    with pytest.raises(ArgumentError):
        metrics.weighted_score([0], [0], conflation_weight=conflation, fracture_weight=fracture)


@given(pairs_of_labels)
def test_pair_counts_equal_those_of_brute_force(labels):
    scores = metrics.pair_scores(*labels)
    assert scores[3:] == brute_pairs(*labels)


@given(st.tuples(*[st.lists(st.integers(0, 6), min_size=2, max_size=2)] * 2))
def test_a_score_without_pairs_is_one(labels):
    scores = metrics.pair_scores(*labels)
    assert scores.pairs_predicted or scores.precision == 1
    assert scores.pairs_true or scores.recall == 1


@given(pairs_of_labels)
def test_pairs_rand_and_information_agree_with_scikit_learn(labels):
    y_true, y_pred = labels
    alone = [p if p != -1 else 100 + i for i, p in enumerate(y_pred)]  # −1 stands alone
    scores, report = metrics.pair_scores(y_true, y_pred), metrics.report(y_true, y_pred)
    (_, only_pred), (only_true, both) = peer.pair_confusion_matrix(y_true, alone) // 2
    assert scores.pairs_together == both
    assert scores.pairs_predicted == both + only_pred
    assert scores.pairs_true == both + only_true
    assert report.ari == pytest.approx(peer.adjusted_rand_score(y_true, alone))
    assert report.nmi == pytest.approx(peer.normalized_mutual_info_score(y_true, alone))


def test_counts_of_pairs_are_exact_beyond_the_precision_of_a_float():
    n = 200_000
    scores = metrics.pair_scores(np.zeros(n, dtype=int), np.zeros(n, dtype=int))
    assert scores.pairs_together == n * (n - 1) // 2


def test_thousands_of_ids_need_no_dense_table():
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 20_000, 60_000)
    y_pred = np.where(rng.random(60_000) < 0.9, y_true, rng.integers(0, 40_000, 60_000))
    assert 0.88 < metrics.accuracy(y_true, y_pred) < 0.95


def test_an_identity_that_returns_with_another_id_is_a_switch():
    assert metrics.id_switches([0, 1, 0, 1], [5, 6, 5, 6]) == 0  # others in between: no switch
    assert metrics.id_switches([0, 0, 0, 0], [5, 5, 6, 6]) == 1
    assert metrics.id_switches([0, 0, 0, 0], [5, 6, 5, 6]) == 3
    assert metrics.id_switches([0, 1, 2], [5, 5, 5]) == 0  # conflation is no switch


def test_switches_skip_vectors_without_an_id():
    assert metrics.id_switches([0, 0, 0], [5, -1, 5]) == 0
    assert metrics.id_switches([0, 0, 0], [5, -1, 6]) == 1
    assert metrics.id_switches([0, 0], [-1, -1]) == 0


def test_stability_is_the_share_of_vectors_that_keep_their_id():
    assert metrics.stability([0, 0, 1, 1], [0, 0, 1, 2]) == 0.75
    assert metrics.stability([0, 1], [1, 0]) == 0.0  # a swap is a change: no matching is made
    assert metrics.stability(["a", "b"], ["a", "b"]) == 1.0


def test_a_removed_vector_does_not_count_for_stability():
    assert metrics.stability([0, 0, 1], [0, -1, 2]) == 0.5
    assert metrics.stability([-1, 0], [3, 0]) == 0.5  # its cluster is gone, the vector is not
    assert metrics.stability([4, -1], [-1, -1]) == 1.0


def test_stability_refuses_ids_of_two_types():
    with pytest.raises(ArgumentError, match="IDs of one type"):
        metrics.stability([0, 1], ["a", "b"])
    with pytest.raises(ArgumentError, match="given has 2 labels and current 1"):
        metrics.stability([0, 1], [0])


@given(pairs_of_labels)
def test_stability_is_one_if_nothing_changed(labels):
    given_ids, current = labels
    assert metrics.stability(current, current) == 1.0
    kept = [a == b for a, b in zip(given_ids, current, strict=True) if b != -1]
    assert metrics.stability(given_ids, current) == (sum(kept) / len(kept) if kept else 1.0)


def test_a_vector_without_an_id_is_never_right_and_conflates_nothing():
    report = metrics.report([0, 0, 0, 1, 1], [-1, -1, -1, 4, 4])
    assert report.accuracy == 0.4
    assert (report.conflation, report.fracture) == (0.0, 0.6)
    assert (report.n_ids, report.n_unassigned) == (1, 3)
    assert metrics.accuracy([0, 0], [-1, -1]) == 0.0


def test_minus_one_in_y_true_is_an_identity_like_any_other():
    assert metrics.accuracy([-1, -1, 0], [3, 3, 4]) == 1.0


def test_the_report_reads_as_a_table_and_as_json():
    report = metrics.report(["a", "a", "b"], [0, 0, 1])
    assert str(report) == report.text()
    assert "accuracy (Hungarian)" in report.text()
    assert json.loads(json.dumps(report.to_dict()))["accuracy"] == 1.0
    assert len({len(line) for line in report.text().splitlines()}) == 1


@pytest.mark.parametrize(
    ("y_true", "y_pred", "match"),
    [
        ([0, 1], [0], "2 labels and y_pred 1"),
        ([], [], r"shape \(0,\)"),
        ([[0, 1]], [0, 1], r"y_true has shape \(1, 2\)"),
        ([0, 1], [[0], [1]], r"y_pred has shape \(2, 1\)"),
        ([0, 1], 3, r"y_pred has shape \(\)"),
        ([0.0, float("nan")], [0, 1], "y_true is nan at position 1"),
        ([0, 1], [float("inf"), 0], "y_pred is inf at position 0"),
        ([0, None], [0, 1], "y_true holds object"),
        ([[0], [1, 2]], [0, 1], "several types"),
        ([0, 1], [1j, 2j], "complex"),
    ],
)
def test_bad_labels_are_refused(y_true, y_pred, match):
    for figure in (
        metrics.accuracy,
        metrics.match,
        metrics.conflation_fracture,
        metrics.weighted_score,
        metrics.id_switches,
        metrics.pair_scores,
        metrics.report,
    ):
        with pytest.raises(ArgumentError, match=match):
            figure(y_true, y_pred)


def test_without_scipy_the_error_has_the_install_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(MissingExtraError, match=r'pip install "linkstream\[metrics\]"'):
        metrics.accuracy([0], [0])


def test_without_scikit_learn_nmi_and_ari_are_none(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    report = metrics.report([0, 1], [0, 1])
    assert report.nmi is None
    assert report.ari is None
    assert "—" in report.text()
