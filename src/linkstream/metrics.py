"""Metrics of IDs: accuracy (section 3.6), conflation and fracture, switches, pairs, stability.

All figures but switches and stability come from one sparse contingency table, whose size does not
exceed the number of vectors.

In `y_pred`, −1 means that no ID was given (`Links.predict` returns −1 for a vector that would be
new). Such a vector is never right, conflates nothing, counts as fractured, and forms no pair. In
`y_true`, −1 is an identity like any other.
"""

from __future__ import annotations

import importlib.util
import math
import warnings
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from linkstream.contingency import Integers, Table, best_matching, pair_of_labels, without_id
from linkstream.errors import ArgumentError


class ConflationFracture(NamedTuple):
    """The two kinds of error as fractions of all vectors; a perfect answer has 0 and 0."""

    conflation: float
    fracture: float


class PairScores(NamedTuple):
    """Precision, recall and F1 over pairs of vectors, with the counts of pairs.

    Attributes:
        precision, recall, f1: the scores.
        pairs_together: pairs with one ID and one identity.
        pairs_predicted: pairs with one ID.
        pairs_true: pairs of one identity.
    """

    precision: float
    recall: float
    f1: float
    pairs_together: int
    pairs_predicted: int
    pairs_true: int


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of an answer; `str()` returns a table, `to_dict()` plain values for JSON.

    Attributes:
        n_vectors, n_identities, n_ids: number of vectors, true identities and cluster IDs given.
        n_unassigned: vectors without an ID (−1).
        accuracy: share of vectors in the cluster that is matched with their identity (section 3.6).
        conflation, fracture: see `conflation_fracture`.
        weighted_score: `weighted_score` with equal weights.
        id_switches: see `id_switches`.
        pair_precision, pair_recall, pair_f1: of pairs of vectors in one cluster.
        nmi, ari: mutual information and adjusted Rand index; None without scikit-learn.
    """

    n_vectors: int
    n_identities: int
    n_ids: int
    n_unassigned: int
    accuracy: float
    conflation: float
    fracture: float
    weighted_score: float
    id_switches: int
    pair_precision: float
    pair_recall: float
    pair_f1: float
    nmi: float | None
    ari: float | None

    def to_dict(self) -> dict[str, int | float | None]:
        """Return the figures by name, as plain values for JSON."""
        return asdict(self)

    def text(self) -> str:
        """Return the figures as a table, one per line."""
        return "\n".join(
            f"{label:<{_WIDEST}}  {_figure(getattr(self, name)):>8}"
            for name, label in _LABELS.items()
        )

    __str__ = text


_LABELS = {
    "n_vectors": "vectors",
    "n_identities": "identities",
    "n_ids": "IDs given",
    "n_unassigned": "vectors given no ID",
    "accuracy": "accuracy (Hungarian)",
    "conflation": "conflation",
    "fracture": "fracture",
    "weighted_score": "weighted score",
    "id_switches": "ID switches",
    "pair_precision": "pair precision",
    "pair_recall": "pair recall",
    "pair_f1": "pair F1",
    "nmi": "NMI",
    "ari": "ARI",
}
_WIDEST = max(map(len, _LABELS.values()))


def accuracy(y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> float:
    """Return the fraction of vectors with the right ID, under the best matching (section 3.6).

    A subset of the IDs is matched one to one to a subset of the identities, so that the accuracy
    is maximal (the Hungarian step). An unmatched ID is wrong.

    Args:
        y_true: the identity of each vector.
        y_pred: the ID of each vector; −1 for no ID.

    >>> accuracy(["ann", "ann", "ann", "bob"], [7, 7, 3, 5])
    0.75
    """
    table = Table.of(y_true, y_pred)
    _, _, counts = best_matching(table)
    return int(counts.sum()) / table.n_vectors


def match(y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> dict[Any, Any]:
    """Return the matching behind `accuracy`: identity by ID, for the matched IDs.

    Args:
        y_true: the identity of each vector.
        y_pred: the ID of each vector; −1 for no ID.

    >>> match(["ann", "ann", "ann", "bob"], [7, 7, 3, 5])
    {5: 'bob', 7: 'ann'}
    """
    table = Table.of(y_true, y_pred)
    rows, columns, _ = best_matching(table)
    pairs = zip(table.ids[columns].tolist(), table.identities[rows].tolist(), strict=True)
    return dict(sorted(pairs))


def conflation_fracture(y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> ConflationFracture:
    """Return the fractions of wrongly merged and of wrongly split vectors.

    Conflation is the fraction of vectors whose ID mostly belongs to another identity. Fracture is
    the fraction of vectors whose identity mostly has another ID; it includes vectors without an
    ID (−1). In a tie, one of the biggest counts.

    Always 1 − (conflation + fracture) ≤ accuracy ≤ 1 − max(conflation, fracture).

    Args:
        y_true: the identity of each vector.
        y_pred: the ID of each vector; −1 for no ID.

    >>> conflation_fracture([0, 0, 0, 1], [0, 0, 0, 0])  # two identities in one ID
    ConflationFracture(conflation=0.25, fracture=0.0)
    >>> conflation_fracture([0, 0, 0, 0], [0, 0, 0, 1])  # one identity over two IDs
    ConflationFracture(conflation=0.0, fracture=0.25)
    """
    table = Table.of(y_true, y_pred)
    majority_of_ids = int(_largest(table.columns, table.counts, len(table.ids)).sum())
    majority_of_identities = int(_largest(table.rows, table.counts, len(table.identities)).sum())
    assigned = table.n_vectors - table.n_unassigned
    return ConflationFracture(
        conflation=(assigned - majority_of_ids) / table.n_vectors,
        fracture=(table.n_vectors - majority_of_identities) / table.n_vectors,
    )


def weighted_score(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    conflation_weight: float = 1.0,
    fracture_weight: float = 1.0,
) -> float:
    """Return 1 − (w_c · conflation + w_f · fracture) / (w_c + w_f), in [0, 1] (section 3.6).

    Maximise it if wrong merges and fragments have different costs. A vector with the ID of another
    identity is one conflated and one fractured vector, so with equal weights it costs 1/n, as in
    accuracy. A pure fragment costs half of that.

    Args:
        y_true: the identity of each vector.
        y_pred: the ID of each vector; −1 for no ID.
        conflation_weight: w_c, the weight of wrong merges; 0 or more.
        fracture_weight: w_f, the weight of fragments; 0 or more.

    >>> weighted_score([0, 0, 0, 1], [0, 0, 0, 0], conflation_weight=3.0)
    0.8125
    """
    for name, weight in (("conflation", conflation_weight), ("fracture", fracture_weight)):
        number = isinstance(weight, Real) and not isinstance(weight, bool)
        if not (number and math.isfinite(weight) and weight >= 0):
            raise ArgumentError(
                f"{name}_weight is {weight!r}",
                expected="a finite number, 0 or more",
                remedy="Weights say how much worse one kind of error is than the other.",
            )
    total = conflation_weight + fracture_weight
    if total == 0:
        raise ArgumentError(
            "both weights are 0",
            expected="at least one above 0",
            remedy="Leave them out to give both kinds of error the same weight.",
        )
    parts = conflation_fracture(y_true, y_pred)
    loss = conflation_weight * parts.conflation + fracture_weight * parts.fracture
    return 1.0 - loss / total


def id_switches(y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> int:
    """Count how often an identity gets another ID than the last time.

    The vectors of each identity are read in order of arrival, and each ID that differs from the
    one before counts once. Vectors of other identities in between do not matter. Vectors without
    an ID (−1) are skipped. Two identities with one ID make no switch: that error is conflation.

    Args:
        y_true: the identity of each vector, in order of arrival.
        y_pred: the ID of each vector; −1 for no ID.

    >>> id_switches(list("aabbaab"), [0, 0, 1, 1, 0, 2, 1])
    1
    """
    identities, ids = pair_of_labels(y_true, y_pred)
    given = ~without_id(ids)
    _, who = np.unique(identities[given], return_inverse=True)
    order = np.argsort(who, kind="stable")
    who, ids = who[order], ids[given][order]
    return int(np.count_nonzero((who[1:] == who[:-1]) & (ids[1:] != ids[:-1])))


def stability(given: npt.ArrayLike, current: npt.ArrayLike) -> float:
    """Return the share of vectors that still have the ID they were given.

    Two uses. For the share whose ID at arrival is their ID now, keep what `add_many` returns:

        stability(links.resolve_many(ids), links.labels())

    For the share of a first part that keeps its ID while later vectors arrive, keep the labels
    after the first part:

        stability(links.resolve_many(before), links.labels()[: len(before)])

    `resolve_many` replaces the ID of a cluster that was joined by the ID that stays, so that a
    join alone changes no vector. No identities are needed. A vector that was removed (−1 in
    `current`) does not count; without any other vector the share is 1.

    Args:
        given: the ID that each vector was given, resolved.
        current: the ID of each vector now, as `Links.labels` returns it; −1 if it was removed.

    >>> stability([0, 0, 1, 2], [0, 0, 0, -1])
    0.6666666666666666
    """
    before, now = pair_of_labels(given, current, names=("given", "current"))
    if (before.dtype.kind in "US") != (now.dtype.kind in "US"):
        raise ArgumentError(
            f"given holds {before.dtype} and current {now.dtype}",
            expected="IDs of one type",
            remedy="Take both from one clusterer.",
        )
    counted = ~without_id(now)
    kept = int(np.count_nonzero((before == now) & counted))
    return _ratio(kept, int(np.count_nonzero(counted)))


def pair_scores(y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> PairScores:
    """Return precision, recall and F1 over pairs of vectors, from exact counts of pairs.

    A pair is predicted if both vectors have one ID, and true if both are one identity. A score
    without pairs is 1. The counts are sums of k(k − 1)/2 over the table.

    Args:
        y_true: the identity of each vector.
        y_pred: the ID of each vector; −1 for no ID.

    >>> pair_scores([0, 0, 0, 1], [0, 0, 1, 1])[:3]
    (0.5, 0.3333333333333333, 0.4)
    """
    table = Table.of(y_true, y_pred)
    together = _pairs(table.counts)
    predicted = _pairs(_totals(table.columns, table.counts, len(table.ids)))
    true = _pairs(table.identity_sizes)
    return PairScores(
        precision=_ratio(together, predicted),
        recall=_ratio(together, true),
        f1=_ratio(2 * together, predicted + true),
        pairs_together=together,
        pairs_predicted=predicted,
        pairs_true=true,
    )


def report(y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> Report:
    """Return all figures of an answer.

    Args:
        y_true: the identity of each vector, in order of arrival.
        y_pred: the ID of each vector; −1 for no ID.

    >>> print(report([0, 0, 1], [5, 5, 6]).text().splitlines()[4])
    accuracy (Hungarian)    1.0000
    """
    table = Table.of(y_true, y_pred)
    parts = conflation_fracture(y_true, y_pred)
    pairs = pair_scores(y_true, y_pred)
    nmi, ari = _information_and_rand(y_true, y_pred)
    return Report(
        n_vectors=table.n_vectors,
        n_identities=len(table.identities),
        n_ids=len(table.ids),
        n_unassigned=table.n_unassigned,
        accuracy=accuracy(y_true, y_pred),
        conflation=parts.conflation,
        fracture=parts.fracture,
        weighted_score=weighted_score(y_true, y_pred),
        id_switches=id_switches(y_true, y_pred),
        pair_precision=pairs.precision,
        pair_recall=pairs.recall,
        pair_f1=pairs.f1,
        nmi=nmi,
        ari=ari,
    )


def _information_and_rand(
    y_true: npt.ArrayLike, y_pred: npt.ArrayLike
) -> tuple[float | None, float | None]:
    """Return NMI and ARI by scikit-learn, or None twice; a vector without an ID is a cluster."""
    if importlib.util.find_spec("sklearn") is None:
        return None, None
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    labels_true, labels_pred = pair_of_labels(y_true, y_pred)
    _, who = np.unique(labels_true, return_inverse=True)
    ids, which = np.unique(labels_pred, return_inverse=True)
    alone = without_id(labels_pred)
    which[alone] = len(ids) + np.arange(np.count_nonzero(alone))
    with warnings.catch_warnings():
        # scikit-learn takes many IDs for a regression target and warns.
        warnings.simplefilter("ignore", UserWarning)
        return (
            float(normalized_mutual_info_score(who, which)),
            float(adjusted_rand_score(who, which)),
        )


def _largest(groups: Integers, counts: Integers, n: int) -> Integers:
    """Return the largest count of each group; 0 for a group without counts."""
    largest = np.zeros(n, dtype=np.int64)
    np.maximum.at(largest, groups, counts)
    return largest


def _totals(groups: Integers, counts: Integers, n: int) -> Integers:
    totals = np.zeros(n, dtype=np.int64)
    np.add.at(totals, groups, counts)
    return totals


def _pairs(counts: Integers) -> int:
    return sum(count * (count - 1) // 2 for count in counts.tolist())


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def _figure(value: float | None) -> str:
    if value is None:
        return "—"
    return str(value) if isinstance(value, int) else f"{value:.4f}"
