"""The model of confidence of a clusterer: what it was fitted to, and what it is valid for."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.confidence.answers import FOUNDED, HELD, KEPT, PAIR
from linkstream.confidence.corrected import age_of, corrected, fit_aged
from linkstream.confidence.curve import ERRORS, Curve, Flags, Floats, fit_curve
from linkstream.engine.decisions import NEW

IDENTITIES = 20  # fewest identities that a model is fitted to
ANSWERS = 50  # fewest answers to decisions that a model without a tuning is fitted to
QUESTIONS = 50  # and fewest answers to questions on two clusters
CHECKED = 20  # fewest answers that a tuning is compared with
DRIFTED = 3.0  # standard deviations

# HELD, FOUNDED or PAIR; the margin; whether right, or the same; the number of vectors before, or
# those of the smaller of two clusters.
Answer = tuple[int, float, bool, int]

Kinds = npt.NDArray[np.int8]
_PARTS = {"setting", "held", "new", "same", "identities", "answers"}


@dataclass(frozen=True, slots=True)
class Setting:
    """What a model is valid for; with any other it is void.

    Attributes:
        thresholds: T_c, T_s and T_p.
        evidence: "nearest" or "cluster".
        healing: healing in words.
        space: digest of the space.
    """

    thresholds: tuple[float, float, float]
    evidence: str
    healing: str
    space: str

    def difference(self, other: Setting) -> str:
        """Return the name of the first part that differs; empty if none does."""
        names = ("thresholds", "evidence", "healing", "space")
        return next((name for name in names if getattr(self, name) != getattr(other, name)), "")

    def to_plain(self) -> list[Any]:
        """Return the setting for JSON."""
        return [list(self.thresholds), self.evidence, self.healing, self.space]

    @classmethod
    def from_plain(cls, plain: Any) -> Setting:
        """Return a setting; raise ValueError if the values cannot be those of one."""
        if not isinstance(plain, list) or len(plain) != 4:
            raise ValueError("a setting of other parts")
        thresholds, *words = plain
        if not all(type(word) is str for word in words) or not _three_floats(thresholds):
            raise ValueError("a setting of other parts")
        return cls(tuple(thresholds), *words)


def _three_floats(values: Any) -> bool:
    return (
        isinstance(values, list)
        and len(values) == 3
        and all(type(each) is float for each in values)
    )


@dataclass(frozen=True, slots=True)
class Examples:
    """Decisions that are known to be right or wrong, as columns.

    Attributes:
        kind: JOINED, LINKED or NEW.
        margin: the cluster margin of each; those with NaN are left out.
        right: whether the majority of the cluster was the vector's identity, and for NEW whether
            the identity was not seen before.
        identities: number of different identities.
    """

    kind: Kinds
    margin: Floats
    right: Flags
    identities: int

    @classmethod
    def joined(cls, parts: list[Examples]) -> Examples:
        """Concatenate the examples of several runs over the same identities."""
        return cls(
            np.concatenate([part.kind for part in parts]),
            np.concatenate([part.margin for part in parts]),
            np.concatenate([part.right for part in parts]),
            max(part.identities for part in parts),
        )


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of clusters that are known to be one identity or two, as columns.

    Attributes:
        margin: similarity of the two as wholes, less s~(k, k').
        smaller: number of vectors of the smaller one.
        same: whether the majorities of both are one identity.
    """

    margin: Floats
    smaller: npt.NDArray[np.int64]
    same: Flags

    @classmethod
    def joined(cls, parts: list[Pairs]) -> Pairs:
        """Concatenate the pairs of several runs."""
        return cls(
            np.concatenate([part.margin for part in parts]),
            np.concatenate([part.smaller for part in parts]),
            np.concatenate([part.same for part in parts]),
        )


@dataclass(frozen=True, slots=True)
class Check:
    """What a tuning told of decisions, and what people answered.

    Attributes:
        answers: how many answers there are to decisions that had a probability.
        told: the mean of the probabilities.
        right: the share of the decisions that were right.
        deviation: how far the two are apart, in standard deviations of the share.
    """

    answers: int
    told: float
    right: float
    deviation: float

    @property
    def has_drifted(self) -> bool:
        """Whether the probabilities of the tuning no longer hold: more than chance explains."""
        return abs(self.deviation) > DRIFTED

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values for JSON, with `has_drifted`."""
        return {**asdict(self), "has_drifted": self.has_drifted}


@dataclass(frozen=True, slots=True)
class Model:
    """The probability that a decision is right, from its kind and its cluster margin.

    Attributes:
        setting: what the model is valid for.
        held: the curve for vectors that joined or were linked; the margin is its x.
        new: the curve for new clusters; the margin with its sign changed is its x.
        same: the curve for two clusters to be one identity; their margin is its x, and the number
            of vectors of the smaller one gives its age.
        identities: number of identities that it was fitted to.
        answers: what people have answered since, the newest KEPT: whether it is about a vector
            that was given a cluster, a new cluster or a pair of clusters; the margin; whether the
            decision was right, or the two are one identity; the number of vectors before, or of
            the smaller of the two.
    """

    setting: Setting
    held: Curve
    new: Curve
    same: Curve
    identities: int
    answers: tuple[Answer, ...] = ()

    @classmethod
    def empty(cls, setting: Setting) -> Model:
        """Return the model of a clusterer that was not tuned: it learns from answers alone."""
        nothing = fit_curve([], [])
        return cls(setting, nothing, nothing, nothing, 0)

    def answered(self, answers: Sequence[Answer]) -> Model:
        """Return the model with more answers."""
        return replace(self, answers=(*self.answers, *answers)[-KEPT:])

    @classmethod
    def fit(cls, examples: Examples, pairs: Pairs, setting: Setting) -> Model:
        """Fit all curves."""
        usable = np.isfinite(examples.margin)
        new = (examples.kind == NEW) & usable
        held = (examples.kind != NEW) & usable
        return cls(
            setting,
            fit_curve(examples.margin[held], examples.right[held]),
            fit_curve(-examples.margin[new], examples.right[new]),
            fit_aged(pairs.margin, pairs.same, age_of(pairs.smaller)),
            examples.identities,
        )

    @property
    def is_known(self) -> bool:
        """Whether there were enough identities, or enough answers, to learn from."""
        return self.identities >= IDENTITIES or self.judged >= ANSWERS

    @property
    def judged(self) -> int:
        """How many decisions were judged."""
        return sum(answer[0] != PAIR for answer in self.answers)

    @property
    def curves(self) -> tuple[Curve, Curve]:
        """The curves for vectors that were given a cluster and for new ones, after the answers."""
        return _corrected(self)[:2]

    @property
    def pair_curve(self) -> Curve | None:
        """The curve for two clusters after the answers; None if it is unknown."""
        enough = len(self.answers) - self.judged >= QUESTIONS or self.identities >= IDENTITIES
        return _corrected(self)[2] if enough else None

    @property
    def why(self) -> str:
        """Why some probabilities are unknown; empty if none is but by its margin."""
        if not self.is_known:
            few = f"fitted to {self.identities} identities; {IDENTITIES} or more are needed"
            return f"{few}, or {ANSWERS} answers, of which there are {self.judged}"
        return "; ".join(
            f"{name}: {curve.right} right and {curve.wrong} wrong; {ERRORS} of each are needed"
            for name, curve in zip(("joined and linked", "new"), self.curves, strict=True)
            if not curve.is_known
        )

    def probabilities(
        self, kind: Kinds, margin: Floats, number: npt.ArrayLike | None = None
    ) -> Floats:
        """Return the probability that each decision is right; NaN if it is unknown.

        Args:
            kind: JOINED, LINKED or NEW.
            margin: the cluster margin of each.
            number: the vectors before each; None takes the end of what answers are about.
        """
        if not self.is_known:
            return np.full(margin.shape, math.nan)
        held, new = self.curves
        return np.where(
            kind == NEW, new.probabilities(-margin, number), held.probabilities(margin, number)
        )

    def answered_odds(self) -> tuple[Floats, Flags]:
        """Return what the tuning, uncorrected, tells of the answered decisions; what was right."""
        judged = [answer for answer in self.answers if answer[0] != PAIR]
        margin = np.array([answer[1] for answer in judged])
        is_new = np.array([answer[0] == FOUNDED for answer in judged], dtype=bool)
        right = np.array([answer[2] for answer in judged], dtype=bool)
        if self.identities < IDENTITIES:
            return np.empty(0), right[:0]
        told = np.where(is_new, self.new.probabilities(-margin), self.held.probabilities(margin))
        return told[np.isfinite(told)], right[np.isfinite(told)]

    def check(self) -> Check | None:
        """Compare the tuning with the answers; None if there are too few."""
        told, right = self.answered_odds()
        if len(told) < CHECKED:
            return None
        spread = math.sqrt(float((told * (1.0 - told)).sum()))
        deviation = float(right.sum() - told.sum()) / max(spread, 1e-9)
        return Check(len(told), float(told.mean()), float(right.mean()), deviation)

    def one_identity(self, margin: Floats, smaller: npt.ArrayLike) -> Floats:
        """Return the probability that two clusters are one identity; NaN if it is unknown.

        Args:
            margin: the margin of each two as wholes.
            smaller: number of vectors of the smaller of each two.
        """
        curve = self.pair_curve
        if curve is None:
            return np.full(margin.shape, math.nan)
        return curve.probabilities(margin, smaller)

    def to_plain(self) -> dict[str, Any]:
        """Return the model for JSON."""
        return {
            "setting": self.setting.to_plain(),
            "held": self.held.to_plain(),
            "new": self.new.to_plain(),
            "same": self.same.to_plain(),
            "identities": self.identities,
            "answers": [list(answer) for answer in self.answers],
        }

    @classmethod
    def from_plain(cls, plain: Any) -> Model:
        """Return a model; raise ValueError if the values cannot be those of one."""
        if not isinstance(plain, dict) or set(plain) != _PARTS:
            raise ValueError("a model of other parts")
        identities = plain["identities"]
        if type(identities) is not int or identities < 0:
            raise ValueError(f"{identities!r:.60} identities")
        held, new, same = (Curve.from_plain(plain[name]) for name in ("held", "new", "same"))
        answers = _answers(plain["answers"])
        return cls(Setting.from_plain(plain["setting"]), held, new, same, identities, answers)


def _answers(plain: Any) -> tuple[Answer, ...]:
    """Return answers; raise ValueError if the values cannot be answers."""
    if not isinstance(plain, list) or len(plain) > KEPT:
        raise ValueError("answers of a model that are none")
    for each in plain:
        types = [type(part) for part in each] if isinstance(each, list) else []
        fits = types == [int, float, bool, int] and math.isfinite(each[1])
        if not fits or not 0 <= each[0] <= PAIR or each[3] < 0:
            raise ValueError(f"an answer of {each!r:.60} in a model")
    return tuple((about, margin, right, number) for about, margin, right, number in plain)


@functools.lru_cache(maxsize=64)
def _corrected(model: Model) -> tuple[Curve, Curve, Curve]:
    sorts: tuple[list[tuple[float, bool, int]], ...] = ([], [], [])
    for about, margin, right, number in model.answers:
        sorts[about].append((-margin if about == FOUNDED else margin, right, number))
    return (
        _corrected_curve(model, model.held, sorts[HELD]),
        _corrected_curve(model, model.new, sorts[FOUNDED]),
        _corrected_curve(model, model.same, sorts[PAIR]),
    )


def _corrected_curve(model: Model, curve: Curve, answers: list[tuple[float, bool, int]]) -> Curve:
    """Return the curve of a tuning corrected by answers; without one, that of the answers."""
    x = np.array([margin for margin, _, _ in answers])
    right = np.array([hit for _, hit, _ in answers], dtype=bool)
    age = age_of([number for *_, number in answers])
    if model.identities >= IDENTITIES and curve.is_known:
        return corrected(curve, x, right, age)
    return fit_aged(x, right, age)
