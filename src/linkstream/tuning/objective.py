"""The objective of a search: the figure to maximise, and the score of a candidate on one stream."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np
import numpy.typing as npt

from linkstream import metrics
from linkstream.clusterer import Links
from linkstream.errors import ArgumentError
from linkstream.tuning.candidates import Candidate, Labels, Vectors

ACCURACY, SETTLED = "accuracy", "settled"
OBJECTIVES = (ACCURACY, SETTLED)


@dataclass(frozen=True, slots=True)
class Objective:
    """The figure to maximise.

    Attributes:
        conflation_weight, fracture_weight: weights of the two kinds of error. Without them the
            figure is accuracy, with one of them it is the weighted score.
        moments: "accuracy" for the mean of instant and current figures, "settled" for the figure
            after `settle(apply=True)`.
        stability_weight: what is subtracted from the score if no vector keeps its ID, from 0 to 1.
    """

    conflation_weight: float | None = None
    fracture_weight: float | None = None
    moments: str = ACCURACY
    stability_weight: float = 0.0

    def __post_init__(self) -> None:
        self.of(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))  # checks two weights
        if self.moments not in OBJECTIVES:
            raise ArgumentError(
                f"objective={self.moments!r}",
                expected=" or ".join(map(repr, OBJECTIVES)),
                remedy="'accuracy' counts IDs at arrival and at the end; 'settled' after settling.",
            )
        _check_share("stability_weight", self.stability_weight)

    @property
    def weights(self) -> tuple[float, float] | None:
        """Weights of conflation and fracture, or None for accuracy."""
        if self.conflation_weight is None and self.fracture_weight is None:
            return None
        conflation = 1.0 if self.conflation_weight is None else self.conflation_weight
        return conflation, 1.0 if self.fracture_weight is None else self.fracture_weight

    @property
    def name(self) -> str:
        """The name of the figure, with its weights."""
        words = "accuracy"
        if self.weights is not None:
            words = "weighted score, conflation {:g}, fracture {:g}".format(*self.weights)
        if self.moments == SETTLED:
            words += ", settled"
        return words + (f", stability {self.stability_weight:g}" if self.stability_weight else "")

    def of(self, y: Labels, ids: npt.NDArray[np.int64]) -> float:
        """Return the figure of these IDs, in [0, 1]."""
        if self.weights is None:
            return metrics.accuracy(y, ids)
        conflation, fracture = self.weights
        return metrics.weighted_score(
            y, ids, conflation_weight=conflation, fracture_weight=fracture
        )

    def score(self, instant: float, current: float, still: float, settled: float | None) -> float:
        """Return what the search maximises: the figure less the weighted share that moved."""
        figure = (instant + current) / 2 if settled is None else settled
        return figure - self.stability_weight * (1.0 - still)


def _check_share(name: str, value: object) -> None:
    number = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if not (number and 0.0 <= float(value) <= 1.0):  # type: ignore[arg-type]
        raise ArgumentError(
            f"{name}={value!r}",
            expected="a number from 0 to 1",
            remedy="0 ignores how many vectors keep their ID; 0.1 is a moderate weight.",
        )


@dataclass(frozen=True, slots=True)
class Judgement:
    """The figures of a candidate on one stream.

    Attributes:
        instant: the objective of the IDs at arrival.
        current: the objective of the final IDs.
        still: share of vectors whose ID at arrival is their final ID (`metrics.stability`).
        settled: the objective after `settle(apply=True)`; None if it does not count.
        score: what the search maximises.
    """

    instant: float
    current: float
    still: float
    settled: float | None
    score: float


def judge(
    candidate: Candidate, X: Vectors, y: Labels, objective: Objective, *, engine: str = "auto"
) -> Judgement:
    """Run a candidate over a stream once, on one thread, and return its figures."""
    links = candidate.links(engine=engine, threads=1)
    at_arrival = links.add_many(X)
    labels = links.labels()
    instant, current = objective.of(y, at_arrival), objective.of(y, labels)
    still = metrics.stability(links.resolve_many(at_arrival), labels)
    settled = _settled(links, y, objective) if objective.moments == SETTLED else None
    return Judgement(
        instant, current, still, settled, objective.score(instant, current, still, settled)
    )


def _settled(links: Links, y: Labels, objective: Objective) -> float:
    links.settle(apply=True)
    return objective.of(y, links.labels())
