"""How good the IDs are: accuracy after matching, conflation and fracture, switches, pairs.

Section 3.6. All figures but the switches come from one table, kept sparse: how many vectors of
each identity were given each ID. Thousands of identities and IDs cost no more than their vectors.

Two labels stand apart. In `y_pred`, −1 means *no ID was given* (as `Links.predict` answers for a
vector that would be new): such a vector is never right, conflates nothing, is fractured from its
identity, and forms no pair with any other. In `y_true`, −1 is an identity like any other.
"""

from __future__ import annotations

import importlib.util
import math
import warnings
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from linkstream.contingency import Integers, Table, best_matching, pair_of_labels, without_id
from linkstream.errors import ArgumentError


class ConflationFracture(NamedTuple):
    """The two kinds of error, each a fraction of all vectors; a perfect answer has 0 and 0."""

    conflation: float
    fracture: float


class PairScores(NamedTuple):
    """Of the pairs of vectors put together, how many belong together, and the reverse."""

    precision: float
    recall: float
    f1: float
    pairs_together: int
    pairs_predicted: int
    pairs_true: int


@dataclass(frozen=True, slots=True)
class Report:
    """Every figure of one answer; `str()` gives a table, `to_dict()` plain values for JSON.

    `nmi` and `ari` are None where scikit-learn is not installed.
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
        """The figures by name, as plain values."""
        return asdict(self)

    def text(self) -> str:
        """The figures as a table, one a line."""
        return "\n".join(
            f"{label:<{_WIDEST}}  {_figure(getattr(self, name)):>8}"
            for name, label in _LABELS.items()
        )

    def __str__(self) -> str:
        return self.text()


_LABELS = {
    "n_vectors": "vectors",
    "n_identities": "identities",
    "n_ids": "IDs given",
    "n_unassigned": "vectors given no ID",
    "accuracy": "accuracy (Hungarian)",
    "conflation": "conflation",
    "fracture": "fracture",
    "weighted_score": "1 − their mean",
    "id_switches": "ID switches",
    "pair_precision": "pair precision",
    "pair_recall": "pair recall",
    "pair_f1": "pair F1",
    "nmi": "NMI",
    "ari": "ARI",
}
_WIDEST = max(map(len, _LABELS.values()))


def accuracy(y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> float:
    """Fraction of vectors with the right ID, under the best matching of IDs to identities.

    Section 3.6: a subset of the IDs is mapped one to one to a subset of the identities so that
    the accuracy is the best possible (the Hungarian step). An ID without a partner is wrong.

    >>> accuracy(["ann", "ann", "ann", "bob"], [7, 7, 3, 5])
    0.75
    """
    table = Table.of(y_true, y_pred)
    _, _, counts = best_matching(table)
    return int(counts.sum()) / table.n_vectors


def match(y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> dict[Any, Any]:
    """The matching that `accuracy` is judged by: ID → identity, for the IDs that have one.

    >>> match(["ann", "ann", "ann", "bob"], [7, 7, 3, 5])
    {5: 'bob', 7: 'ann'}
    """
    table = Table.of(y_true, y_pred)
    rows, columns, _ = best_matching(table)
    pairs = zip(table.ids[columns].tolist(), table.identities[rows].tolist(), strict=True)
    return dict(sorted(pairs))


def conflation_fracture(y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> ConflationFracture:
    """How much of the stream sits under somebody else's ID, and how much away from its own.

    Conflation: the fraction of vectors whose ID is held, for the most part, by another identity.
    Fracture: the fraction of vectors whose identity is, for the most part, under another ID; a
    vector without an ID (−1) is among them. Where two are equally big, one counts as the most.

    Always 1 − (conflation + fracture) ≤ accuracy ≤ 1 − max(conflation, fracture).

    >>> conflation_fracture([0, 0, 0, 1], [0, 0, 0, 0])  # two identities in one ID
    ConflationFracture(conflation=0.25, fracture=0.0)
    >>> conflation_fracture([0, 0, 0, 0], [0, 0, 0, 1])  # one identity over two IDs
    ConflationFracture(conflation=0.0, fracture=0.25)
    """
    table = Table.of(y_true, y_pred)
    at_home = int(_largest(table.columns, table.counts, len(table.ids)).sum())
    together = int(_largest(table.rows, table.counts, len(table.identities)).sum())
    assigned = table.n_vectors - table.n_unassigned
    return ConflationFracture(
        conflation=(assigned - at_home) / table.n_vectors,
        fracture=(table.n_vectors - together) / table.n_vectors,
    )


def weighted_score(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    conflation_weight: float = 1.0,
    fracture_weight: float = 1.0,
) -> float:
    """One figure to maximise where wrong merges and fragments hurt differently (section 3.6).

    It is 1 − (w_c · conflation + w_f · fracture) / (w_c + w_f), in [0, 1], 1 when perfect. A vector
    that strays into another identity's ID is one conflated and one fractured vector, so with
    equal weights it costs what it costs in accuracy: 1/n. A clean fragment costs half of that.

    >>> weighted_score([0, 0, 0, 1], [0, 0, 0, 0], conflation_weight=3.0)
    0.8125
    """
    for name, weight in (("conflation", conflation_weight), ("fracture", fracture_weight)):
        if not (math.isfinite(weight) and weight >= 0):
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
            remedy="Leave them out to weigh both kinds of error alike.",
        )
    parts = conflation_fracture(y_true, y_pred)
    loss = conflation_weight * parts.conflation + fracture_weight * parts.fracture
    return 1.0 - loss / total


def id_switches(y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> int:
    """How often somebody who comes back is given another ID than the last time.

    Labels are in order of arrival. Each identity's appearances are read in that order, and each
    ID that differs from the one before counts once; what others were given in between does not
    matter. Appearances without an ID (−1) are passed over: the last ID given is remembered. Two
    identities that share one ID make no switch; that error is conflation.

    >>> id_switches(list("aabbaab"), [0, 0, 1, 1, 0, 2, 1])
    1
    """
    identities, ids = pair_of_labels(y_true, y_pred)
    given = ~without_id(ids)
    _, who = np.unique(identities[given], return_inverse=True)
    order = np.argsort(who, kind="stable")
    who, ids = who[order], ids[given][order]
    return int(np.count_nonzero((who[1:] == who[:-1]) & (ids[1:] != ids[:-1])))


def pair_scores(y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> PairScores:
    """Precision, recall and F1 over pairs of vectors, from exact counts of pairs.

    A pair is predicted when both have one ID, true when both are one identity. Where there is no
    pair to judge, nothing is wrong and the figure is 1. No pair is ever visited: the counts are
    sums of k(k − 1)/2 over the table.

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
    """All figures of an answer at once.

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
    """NMI and ARI by scikit-learn, or None twice; a vector without an ID stands alone."""
    if importlib.util.find_spec("sklearn") is None:
        return None, None
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    labels_true, labels_pred = pair_of_labels(y_true, y_pred)
    _, who = np.unique(labels_true, return_inverse=True)
    ids, which = np.unique(labels_pred, return_inverse=True)
    alone = without_id(labels_pred)
    which[alone] = len(ids) + np.arange(np.count_nonzero(alone))
    with warnings.catch_warnings():
        # It takes many IDs for a mistaken regression target; here they are a fair answer.
        warnings.simplefilter("ignore", UserWarning)
        return (
            float(normalized_mutual_info_score(who, which)),
            float(adjusted_rand_score(who, which)),
        )


def _largest(groups: Integers, counts: Integers, n: int) -> Integers:
    """The largest count of each group; 0 for a group without any."""
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
