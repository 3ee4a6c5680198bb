"""`calibrate`: thresholds where the identities of most vectors are not known.

From pairs that are known to be of one identity or of two, from vectors that were seen together, or
from the vectors alone. Links is run over a lattice of thresholds; `verdicts` says how the runs are
judged. Where the data cannot decide, the answer says so, and there are no thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Links
from linkstream.errors import ArgumentError
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space
from linkstream.tuning.evidence import Evidence, Pairs
from linkstream.tuning.intervals import Rate
from linkstream.tuning.lattice import Cuts, Lattice, lattice
from linkstream.tuning.measurements import Floats
from linkstream.tuning.verdicts import by_groups, by_pairs, by_structure, disagreement, doubts

CASES_MIN = 10  # pairs or groups
_FOLDS = 5
_BOOTSTRAPS = 200

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Thresholds found without full labels, and how far to trust them.

    Attributes:
        thresholds: the chosen ones; None where the data cannot decide.
        false_merge: how often two identities are expected to share an ID, of pairs such as were
            given; None where undecided.
        false_split: how often a pair of one identity is expected to have two IDs; likewise.
        source: "pairs", "groups" or "unlabelled".
        advice: what the figures rest on and what to do next, in plain words.
        space: the space the thresholds belong to.

    Rates from pairs are those of thresholds chosen without the pair that is judged. Without known
    pairs of a side its rate is how often the order of arrival changes the outcome: real errors
    come on top.
    """

    thresholds: Thresholds | None
    false_merge: Rate | None
    false_split: Rate | None
    source: str
    advice: str
    space: Space

    @property
    def decided(self) -> bool:
        """Whether there are thresholds."""
        return self.thresholds is not None

    def links(self, **options: Any) -> Links:
        """A clusterer with these thresholds in this space; options are those of `Links`."""
        if self.thresholds is None:
            raise ArgumentError(
                "a calibration that could not decide",
                expected="one with thresholds",
                remedy=self.advice,
            )
        return Links.from_thresholds(self.thresholds, **{"space": self.space, **options})

    def to_dict(self) -> dict[str, Any]:
        """All figures by name, as plain values for JSON."""
        mean = self.space.mean
        return {
            "decided": self.decided,
            "source": self.source,
            "thresholds": None if self.thresholds is None else asdict(self.thresholds),
            "false_merge": None if self.false_merge is None else self.false_merge.to_dict(),
            "false_split": None if self.false_split is None else self.false_split.to_dict(),
            "space": {"mean": None if mean is None else mean.tolist(), "model": self.space.model},
            "advice": self.advice,
        }

    def text(self) -> str:
        """The figures as a table, one a line, and the advice."""
        lines = [("source", self.source), ("decided", "yes" if self.decided else "no")]
        if self.thresholds is not None:
            figures = (f"{value:.4f}" for value in asdict(self.thresholds).values())
            lines += zip(_NAMES, figures, strict=True)
        if self.false_merge is not None and self.false_split is not None:
            lines.append(("false merges", self.false_merge.text()))
            lines.append(("false splits", self.false_split.text()))
        table = [f"{name:<{max(map(len, _NAMES))}}  {figure}" for name, figure in lines]
        return "\n".join([*table, "", self.advice])

    def __str__(self) -> str:
        return self.text()


_NAMES = ("T_c, cluster similarity", "T_s, subcluster similarity", "T_p, pair similarity max")


def calibrate(
    X: npt.ArrayLike,
    *,
    same: npt.ArrayLike | None = None,
    different: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | Iterable[Any] | None = None,
    space: Space | None = None,
    seed: int = 0,
    confidence: float = 0.95,
) -> Calibration:
    """Find thresholds for an encoder where few vectors are labelled, or none.

    Args:
        X: vectors in order of arrival, at least ten. Those of pairs, and the first of the
            others, 2,500 in all, are used.
        same: pairs of rows of X known to be one identity; a hundred are plenty, 600 are used.
        different: pairs of rows of X known to be two, drawn at random; likewise.
        groups: a key for each vector, −1 or None for none: vectors that bear the same key were
            seen together and are different identities, as faces of one photo.
        space: the space of the vectors; None for vectors as given.
        seed: of the orders of arrival that are tried.
        confidence: of the intervals of the rates.

    Costs some 500 runs of Links: seconds for a thousand vectors, half a minute for 2,500.

    Raises:
        ArgumentError: data or settings that cannot be used.
    """
    _check_settings(space, seed, confidence)
    chosen = Space() if space is None else space
    evidence = Evidence.of(
        X, same=same, different=different, groups=groups, space=chosen, seed=seed
    )
    few = _too_few(evidence)
    if few:
        return Calibration(None, None, None, evidence.source, few, chosen)
    found = lattice(evidence.sample, seed=seed)
    judge = _from_pairs if evidence.source == "pairs" else _from_structure
    return judge(found, evidence, chosen, seed=seed, confidence=confidence)


def _check_settings(space: object, seed: object, confidence: object) -> None:
    if not (space is None or isinstance(space, Space)):
        raise ArgumentError(
            f"space is of type {type(space).__name__}",
            expected="a Space or None",
            remedy="Build it with linkstream.Space(mean=..., model=...).",
        )
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ArgumentError(
            f"seed is {seed!r}",
            expected="a whole number, 0 or more",
            remedy="Any will do; the same one gives the same outcome.",
        )
    number = isinstance(confidence, (int, float, np.floating)) and not isinstance(confidence, bool)
    if not number or not 0.0 < confidence < 1.0:  # type: ignore[operator]
        raise ArgumentError(
            f"confidence is {confidence!r}",
            expected="a number between 0 and 1",
            remedy="0.95 is the custom.",
        )


def _too_few(evidence: Evidence) -> str | None:
    """Why nothing can be said from the start, or None."""
    counts = {}
    if evidence.source == "pairs":
        counts["pairs of one identity"] = len(evidence.same)
        counts["pairs or groups of different identities"] = len(np.unique(evidence.groups))
    if evidence.source == "groups":
        counts["groups of vectors seen together"] = len(np.unique(evidence.groups))
    for words, count in counts.items():
        if count < CASES_MIN:
            return (
                f"Cannot decide: {count} {words} are too few to say anything. "
                f"Give at least {CASES_MIN}, better a hundred."
            )
    return None


def _from_pairs(
    found: Lattice, evidence: Evidence, space: Space, *, seed: int, confidence: float
) -> Calibration:
    best = int(np.argmax(by_pairs(found, evidence.same)))
    same, different = evidence.same, evidence.different
    ours, theirs = _folds(np.arange(len(same)), seed), _folds(evidence.groups, seed)
    # Each pair is judged by thresholds that were chosen without it.
    cuts = [_best_cut(found, by_pairs(found, same[ours != fold])) for fold in range(_FOLDS)]
    split, merged = ~_shared(cuts, ours, same), _shared(cuts, theirs, different)
    false_split = Rate.of(int(split.sum()), len(same), confidence=confidence)
    false_merge = _by_units(merged, evidence.groups, confidence=confidence)
    if false_merge.high >= 1.0 - false_split.high:
        advice = (
            "Cannot decide: with no thresholds do pairs of one identity share an ID more often "
            "than pairs of two, so that it is beyond doubt. Look whether the two lists are mixed "
            "up; else give more pairs, or another encoder."
        )
        return Calibration(None, None, None, evidence.source, advice, space)
    advice = (
        f"Chosen by {len(same)} pairs of one identity, checked with {len(different)} of two. "
        "More pairs make the intervals narrower."
    )
    return Calibration(
        found.thresholds[best], false_merge, false_split, evidence.source, advice, space
    )


def _from_structure(
    found: Lattice, evidence: Evidence, space: Space, *, seed: int, confidence: float
) -> Calibration:
    seen = evidence.source == "groups"
    score = by_groups(found, evidence.different) if seen else by_structure(found)
    best = int(np.argmax(score))
    reasons = doubts(found, score, best, evidence.different)
    if reasons:
        advice = (
            f"Cannot decide: {', and '.join(reasons)}. Give a hundred pairs of each kind "
            "with `same` and `different`, or label some of the stream and use tune()."
        )
        return Calibration(None, None, None, evidence.source, advice, space)
    false_split, false_merge = _by_order(found, best, seed=seed, confidence=confidence)
    advice = (
        "Chosen because the clusters are clear and hardly change with the order of arrival. "
        "The rates say no more than how much they change; real errors come on top. "
        "A hundred pairs of each kind would tell."
    )
    if seen:
        false_merge = _merges_in_groups(found, evidence, seed=seed, confidence=confidence)
        advice = (
            f"Chosen by {len(np.unique(evidence.groups))} groups of vectors seen together and by "
            "how clear and steady the clusters are. The rate of false splits says no more than "
            "how much the order of arrival changes; real errors come on top."
        )
    return Calibration(
        found.thresholds[best], false_merge, false_split, evidence.source, advice, space
    )


def _merges_in_groups(found: Lattice, evidence: Evidence, *, seed: int, confidence: float) -> Rate:
    """False merges of vectors seen together, judged by thresholds chosen without their group."""
    different, folds = evidence.different, _folds(evidence.groups, seed)
    cuts = [_best_cut(found, by_groups(found, different[folds != k])) for k in range(_FOLDS)]
    return _by_units(_shared(cuts, folds, different), evidence.groups, confidence=confidence)


def _by_units(hits: npt.NDArray[np.bool_], units: Indices, *, confidence: float) -> Rate:
    """A rate over pairs; those of one group go together, so that a group counts as one case."""
    cases = len(np.unique(units))
    expected = round(float(hits.mean()) * cases, 6)
    few = Rate.of(math.floor(expected), cases, confidence=confidence)
    many = Rate.of(math.ceil(expected), cases, confidence=confidence)
    return Rate(float(hits.mean()), few.low, many.high)


def _by_order(found: Lattice, best: int, *, seed: int, confidence: float) -> tuple[Rate, Rate]:
    """Splits and merges that the order of arrival makes, with intervals by bootstrap."""
    setting = found.cuts[best]
    n = setting.shape[1]
    rng = np.random.default_rng([seed, n])
    drawn = [
        disagreement(setting, np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64))
        for _ in range(_BOOTSTRAPS)
    ]
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(drawn, [tail, 1.0 - tail], axis=0)
    seen = disagreement(setting, np.ones(n))
    split, merged = (
        Rate(value, min(float(a), value), max(float(b), value))
        for value, a, b in zip(seen, low, high, strict=True)
    )
    return split, merged


def _folds(units: Indices, seed: int) -> Indices:
    """A fold for each pair; pairs of one unit share it."""
    names, places = np.unique(units, return_inverse=True)
    shuffled: Indices = np.random.default_rng([seed, len(names)]).permutation(len(names)) % _FOLDS
    return shuffled[places]


def _best_cut(found: Lattice, score: Floats) -> Cuts:
    cut: Cuts = found.cuts[int(np.argmax(score)), 0]
    return cut


def _shared(cuts: Sequence[Cuts], folds: Indices, pairs: Pairs) -> npt.NDArray[np.bool_]:
    """Whether each pair shares a cluster in the cut of its fold."""
    table = np.stack(cuts)
    same: npt.NDArray[np.bool_] = table[folds, pairs[:, 0]] == table[folds, pairs[:, 1]]
    return same
