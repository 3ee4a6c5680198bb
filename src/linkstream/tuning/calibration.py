"""`calibrate`: thresholds from few labels or none.

The input is pairs known to be one identity or two, vectors that were seen together, or the vectors
alone. `grid` runs Links over a grid of thresholds and scores each setting. If the data cannot
decide, the result has no thresholds and says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Links
from linkstream.clusterer.tuned import space_to_dict
from linkstream.errors import ArgumentError
from linkstream.paper.thresholds import Thresholds
from linkstream.presets import Preset
from linkstream.presets import preset as preset_of
from linkstream.space import Space
from linkstream.tuning import granularity, grid
from linkstream.tuning.grid import GridRuns, Partitions
from linkstream.tuning.inputs import CalibrationData, Pairs, check_whole_number
from linkstream.tuning.measurements import Floats
from linkstream.tuning.pair_evidence import PairEvidence
from linkstream.tuning.result import THRESHOLD_NAMES, text_table

CASES_MIN = 10  # pairs or groups
_FOLDS = 5
_BOOTSTRAPS = 200
_HALVINGS = 60

_STRUCTURE_ADVICE = (
    "Chosen because the clusters are separate and hardly change with the order of arrival. "
    "The rates only say how often the order of arrival changes the answer; real errors add "
    "to them. A hundred pairs of each kind would show the real errors."
)
_LEVEL_ADVICE = (
    "Chosen because the clusters are most separate at this granularity; your task may ask for "
    "finer or coarser ones, which levels() shows. The rates only say how often the order of "
    "arrival changes the answer; real errors add to them."
)

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Rate:
    """An estimated rate with its confidence interval."""

    estimate: float
    low: float
    high: float

    @classmethod
    def of(cls, hits: int, cases: int, *, confidence: float) -> Rate:
        """Return the rate of hits with the exact interval of Clopper and Pearson.

        >>> Rate.of(0, 100, confidence=0.95).high < 0.04
        True
        """
        tail = (1.0 - confidence) / 2.0
        low = 0.0 if hits == 0 else _root(lambda p: _at_most(hits - 1, cases, p) > 1.0 - tail)
        high = 1.0 if hits == cases else _root(lambda p: _at_most(hits, cases, p) > tail)
        return cls(hits / cases, low, high)

    def __str__(self) -> str:
        return f"{self.estimate:.2%} ({self.low:.2%} to {self.high:.2%})"


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Thresholds found without full labels, with their expected error rates.

    A rate from pairs is cross-validated: each pair is judged by thresholds chosen without it.
    Without known pairs, a rate only says how often the order of arrival changes the answer; real
    errors add to it.

    Attributes:
        thresholds: the chosen thresholds; None if the data cannot decide.
        false_merge: expected share of pairs of two identities with one ID; None if undecided.
        false_split: expected share of pairs of one identity with two IDs; None if undecided.
        source: "pairs", "groups" or "unlabelled".
        advice: what the figures are based on, and what to do next.
        space: the space of the thresholds.
        preset: the preset that the thresholds are a granularity of; None without one.
        granularity: the place on the line of the preset, from 0 (coarse) to 1 (fine); None
            without a preset, or if undecided.
        evidence: the likelihood ratio that two vectors are one identity; None without pairs.
    """

    thresholds: Thresholds | None
    false_merge: Rate | None
    false_split: Rate | None
    source: str
    advice: str
    space: Space
    preset: str | None = None
    granularity: float | None = None
    evidence: PairEvidence | None = None

    @property
    def decided(self) -> bool:
        """Whether thresholds were found."""
        return self.thresholds is not None

    def links(self, **options: Any) -> Links:
        """Return a clusterer with these thresholds in this space.

        Args:
            options: further options of `Links`.

        Raises:
            ArgumentError: the calibration has no thresholds.
        """
        if self.thresholds is None:
            raise ArgumentError(
                "a calibration that could not decide",
                expected="a calibration with thresholds",
                remedy=self.advice,
            )
        if self.preset is not None:
            return Links.preset(self.preset, granularity=self.granularity, **options)
        return Links.from_thresholds(self.thresholds, **{"space": self.space, **options})

    def to_dict(self) -> dict[str, Any]:
        """Return all figures by name, as plain values for JSON."""
        return {
            "decided": self.decided,
            "source": self.source,
            "thresholds": None if self.thresholds is None else asdict(self.thresholds),
            "false_merge": None if self.false_merge is None else asdict(self.false_merge),
            "false_split": None if self.false_split is None else asdict(self.false_split),
            "space": space_to_dict(self.space),
            "preset": self.preset,
            "granularity": self.granularity,
            "evidence": None if self.evidence is None else self.evidence.to_dict(),
            "advice": self.advice,
        }

    def text(self) -> str:
        """Return the figures as a table, one per line, and the advice."""
        lines = [("source", self.source), ("decided", "yes" if self.decided else "no")]
        if self.preset is not None:
            lines.append(("preset", self.preset))
        if self.granularity is not None:
            lines.append(("granularity", f"{self.granularity:.2f}"))
        if self.thresholds is not None:
            figures = (f"{value:.4f}" for value in asdict(self.thresholds).values())
            lines += zip(THRESHOLD_NAMES, figures, strict=True)
        if self.decided:
            lines.append(("false merges", str(self.false_merge)))
            lines.append(("false splits", str(self.false_split)))
        return f"{text_table(lines)}\n\n{self.advice}"

    __str__ = text


def calibrate(
    X: npt.ArrayLike,
    *,
    same: npt.ArrayLike | None = None,
    different: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | Iterable[Any] | None = None,
    preset: str | None = None,
    space: Space | None = None,
    seed: int = 0,
    confidence: float = 0.95,
) -> Calibration:
    """Find thresholds for an encoder if few vectors are labelled, or none.

    The cost is about 500 runs of Links: seconds for 1,000 vectors, half a minute for 2,500. With a
    preset it is eleven runs with healing, which take as long.

    Args:
        X: vectors in order of arrival, at least ten. At most 2,500 are used: those of the pairs,
            then the first of the stream.
        same: pairs of rows of X known to be one identity. A hundred are enough; at most 600 are
            used.
        different: pairs of rows of X known to be two identities, drawn at random; as many.
        groups: a key for each vector, −1 or None for no group. Vectors with the same key were
            seen together and are different identities, such as the faces in one photo.
        preset: the preset of the encoder: the result is then a granularity of it, with its space
            and options. None searches all thresholds, which needs no preset.
        space: the space of the vectors; None uses that of the preset, or the vectors as given.
        seed: seed of the orders of arrival to try.
        confidence: confidence level of the intervals of the rates.

    Raises:
        ArgumentError: the data or settings cannot be used.
    """
    check_whole_number("seed", seed, least=0, remedy="The same seed gives the same result.")
    _check_confidence(confidence)
    known = None if preset is None else preset_of(preset)
    chosen = space or (Space() if known is None else known.space)
    data = CalibrationData.of(
        X, same=same, different=different, groups=groups, space=chosen, seed=seed
    )
    few = _too_few(data)
    if few:
        return Calibration(None, None, None, data.source, few, chosen, preset)
    if known is None:
        runs, options = grid.run_grid(data.sample, seed=seed), {}
    else:
        runs, options = granularity.run_line(data.sample, known), granularity.options_of(known)
    trial = _Trial(runs, data, chosen, known, options, seed, confidence)
    return _from_pairs(trial) if data.source == "pairs" else _from_structure(trial)


def _check_confidence(confidence: object) -> None:
    number = isinstance(confidence, (int, float, np.floating)) and not isinstance(confidence, bool)
    if not number or not 0.0 < confidence < 1.0:  # type: ignore[operator]
        raise ArgumentError(
            f"confidence is {confidence!r}",
            expected="a number between 0 and 1",
            remedy="0.95 is usual.",
        )


def _too_few(data: CalibrationData) -> str | None:
    """Return why there are too few pairs or groups to decide, or None."""
    counts = {}
    if data.source == "pairs":
        counts["pairs of one identity"] = len(data.same)
        counts["pairs or groups of different identities"] = len(np.unique(data.groups))
    if data.source == "groups":
        counts["groups of vectors seen together"] = len(np.unique(data.groups))
    for words, count in counts.items():
        if count < CASES_MIN:
            return (
                f"Cannot decide: {count} {words} are too few. "
                f"Give at least {CASES_MIN}, better a hundred."
            )
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """The runs of a calibration, and what they are judged by."""

    runs: GridRuns
    data: CalibrationData
    space: Space
    preset: Preset | None
    options: dict[str, Any]
    seed: int
    confidence: float

    def undecided(self, advice: str) -> Calibration:
        """Return a calibration without thresholds."""
        name = None if self.preset is None else self.preset.name
        return Calibration(None, None, None, self.data.source, advice, self.space, name)

    def decided(self, best: int, merge: Rate, split: Rate, advice: str) -> Calibration:
        """Return a calibration with the thresholds of a setting."""
        thresholds, source = self.runs.thresholds[best], self.data.source
        if self.preset is None:
            return Calibration(thresholds, merge, split, source, advice, self.space)
        place, name = granularity.PLACES[best], self.preset.name
        return Calibration(thresholds, merge, split, source, advice, self.space, name, place)


def _from_pairs(trial: _Trial) -> Calibration:
    runs, data, seed, confidence = trial.runs, trial.data, trial.seed, trial.confidence
    best = int(np.argmax(grid.score_by_pairs(runs, data.same)))
    same, different = data.same, data.different
    ours, theirs = _folds(np.arange(len(same)), seed), _folds(data.groups, seed)
    # Each pair is judged by thresholds that were chosen without it.
    scores = [grid.score_by_pairs(runs, same[ours != fold]) for fold in range(_FOLDS)]
    partitions = _best_partitions(runs, scores)
    split, merged = ~_shared(partitions, ours, same), _shared(partitions, theirs, different)
    false_split = Rate.of(int(split.sum()), len(same), confidence=confidence)
    false_merge = _by_units(merged, data.groups, confidence=confidence)
    if false_merge.high >= 1.0 - false_split.high:
        return trial.undecided(
            "Cannot decide: with no thresholds do pairs of one identity share an ID clearly more "
            "often than pairs of two. Check that the two lists are not mixed up; otherwise give "
            "more pairs, or use another encoder."
        )
    advice = (
        f"Chosen by {len(same)} pairs of one identity, checked with {len(different)} of two. "
        "More pairs make the intervals narrower."
    )
    found = trial.decided(best, false_merge, false_split, advice)
    return replace(found, evidence=_evidence(data))


def _evidence(data: CalibrationData) -> PairEvidence:
    rows = data.sample.astype(np.float64)
    similarities = (
        (rows[pairs[:, 0]] * rows[pairs[:, 1]]).sum(axis=1) for pairs in (data.same, data.different)
    )
    return PairEvidence.of(*similarities)


def _from_structure(trial: _Trial) -> Calibration:
    runs, data = trial.runs, trial.data
    score, reasons = _structure(trial)
    if reasons:
        return trial.undecided(
            f"Cannot decide: {', and '.join(reasons)}. Give a hundred pairs of each kind "
            "with `same` and `different`, or label some of the stream and use tune()."
        )
    best = int(np.argmax(score))
    false_split, false_merge = _by_order(trial, best)
    advice = _STRUCTURE_ADVICE if trial.preset is None else _LEVEL_ADVICE
    if data.source == "groups":
        false_merge = _merges_in_groups(runs, data, seed=trial.seed, confidence=trial.confidence)
        advice = (
            f"Chosen by {len(np.unique(data.groups))} groups of vectors seen together and by "
            "how separate and stable the clusters are. The rate of false splits only says how "
            "often the order of arrival changes the answer; real errors add to it."
        )
    return trial.decided(best, false_merge, false_split, advice)


def _structure(trial: _Trial) -> tuple[Floats, list[str]]:
    """Return the score of each setting without pairs, and the reasons not to trust the best."""
    runs, different = trial.runs, trial.data.different
    seen = trial.data.source == "groups"
    if trial.preset is None:
        by_groups = grid.score_by_groups(runs, different) if seen else None
        score = grid.score_by_structure(runs) if by_groups is None else by_groups
        return score, grid.doubts(runs, score, int(np.argmax(score)), different)
    structure = granularity.score_by_structure(runs)
    score = grid.score_by_groups(runs, different) if seen else structure
    return score, granularity.doubts(structure)


def _merges_in_groups(
    runs: GridRuns, data: CalibrationData, *, seed: int, confidence: float
) -> Rate:
    """Return the false merges within groups, by thresholds chosen without the group."""
    different, folds = data.different, _folds(data.groups, seed)
    scores = [grid.score_by_groups(runs, different[folds != fold]) for fold in range(_FOLDS)]
    partitions = _best_partitions(runs, scores)
    return _by_units(_shared(partitions, folds, different), data.groups, confidence=confidence)


def _by_units(hits: npt.NDArray[np.bool_], units: Indices, *, confidence: float) -> Rate:
    """Return a rate over pairs; all pairs of one unit (a group) count as one case."""
    cases = len(np.unique(units))
    expected = round(float(hits.mean()) * cases, 6)
    few = Rate.of(math.floor(expected), cases, confidence=confidence)
    many = Rate.of(math.ceil(expected), cases, confidence=confidence)
    return Rate(float(hits.mean()), few.low, many.high)


def _by_order(trial: _Trial, best: int) -> tuple[Rate, Rate]:
    """Return the splits and merges due to the order of arrival, with bootstrap intervals."""
    setting = trial.runs.partitions[best]
    if len(setting) == 1:  # a line is run in the given order alone
        thresholds, sample = trial.runs.thresholds[best], trial.data.sample
        setting = grid.in_orders(thresholds, sample, trial.options, seed=trial.seed)
    n = setting.shape[1]
    rng = np.random.default_rng([trial.seed, n])
    resamples = [np.bincount(rng.integers(n, size=n), minlength=n) for _ in range(_BOOTSTRAPS)]
    drawn = [grid.disagreement(setting, counts.astype(np.float64)) for counts in resamples]
    tail = (1.0 - trial.confidence) / 2.0
    low, high = np.quantile(drawn, [tail, 1.0 - tail], axis=0)
    seen = grid.disagreement(setting, np.ones(n))
    split, merged = (
        Rate(value, min(float(a), value), max(float(b), value))
        for value, a, b in zip(seen, low, high, strict=True)
    )
    return split, merged


def _folds(units: Indices, seed: int) -> Indices:
    """Return the fold of each pair; pairs of one unit have the same fold."""
    names, positions = np.unique(units, return_inverse=True)
    shuffled: Indices = np.random.default_rng([seed, len(names)]).permutation(len(names)) % _FOLDS
    return shuffled[positions]


def _best_partitions(runs: GridRuns, scores: Sequence[Floats]) -> Partitions:
    """Return the partition of the best setting for each fold's scores, in the given order."""
    return np.asarray(runs.partitions[np.argmax(scores, axis=1), 0])


def _shared(partitions: Partitions, folds: Indices, pairs: Pairs) -> npt.NDArray[np.bool_]:
    """Return whether each pair shares a cluster in the partition of its fold."""
    return np.asarray(partitions[folds, pairs[:, 0]] == partitions[folds, pairs[:, 1]])


def _at_most(hits: int, cases: int, rate: float) -> float:
    """Return the probability of at most `hits` hits in `cases` cases."""
    if not 0.0 < rate < 1.0:
        return 1.0 if rate <= 0.0 or hits >= cases else 0.0
    log, log_other = math.log(rate), math.log1p(-rate)
    ways = math.lgamma(cases + 1)
    terms = (
        ways - math.lgamma(k + 1) - math.lgamma(cases - k + 1) + k * log + (cases - k) * log_other
        for k in range(hits + 1)
    )
    return math.fsum(math.exp(term) for term in terms)


def _root(holds: Callable[[float], bool]) -> float:
    """Return where in [0, 1] a condition that holds at 0 ceases to hold."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return 0.5 * (low + high)
