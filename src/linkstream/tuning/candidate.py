"""One way to set up a clusterer, and what it is worth on a labelled stream.

Every option that tuning may choose lives in `Candidate`; there is one place that builds the
clusterer from it, and one that judges it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream import metrics
from linkstream.clusterer import Links
from linkstream.errors import ArgumentError
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space

Vectors = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """What a clusterer is made of: thresholds, space, and further options of `Links`."""

    thresholds: Thresholds
    space: Space = field(default_factory=Space)
    options: Mapping[str, Any] = field(default_factory=dict)

    def links(self, **options: Any) -> Links:
        """A clusterer without vectors; options given here come before the candidate's own."""
        chosen = {"space": self.space, **self.options, **options}
        return Links.from_thresholds(self.thresholds, **chosen)


@dataclass(frozen=True, slots=True)
class Objective:
    """What is to be high: accuracy, or, with either weight given, the weighted score."""

    conflation_weight: float | None = None
    fracture_weight: float | None = None

    def __post_init__(self) -> None:
        for name in ("conflation_weight", "fracture_weight"):
            _check_number(name, getattr(self, name))
        self.of(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))  # judges the weights

    @property
    def weights(self) -> tuple[float, float] | None:
        """Weights of conflation and fracture, or None for accuracy."""
        if self.conflation_weight is None and self.fracture_weight is None:
            return None
        conflation = 1.0 if self.conflation_weight is None else float(self.conflation_weight)
        fracture = 1.0 if self.fracture_weight is None else float(self.fracture_weight)
        return conflation, fracture

    @property
    def name(self) -> str:
        """The figure in words."""
        if self.weights is None:
            return "accuracy"
        return "weighted score, conflation {:g}, fracture {:g}".format(*self.weights)

    def of(self, y: Labels, ids: Labels) -> float:
        """The figure of these IDs, in [0, 1]."""
        if self.weights is None:
            return metrics.accuracy(y, ids)
        conflation, fracture = self.weights
        return metrics.weighted_score(
            y, ids, conflation_weight=conflation, fracture_weight=fracture
        )


@dataclass(frozen=True, slots=True)
class Judgement:
    """A candidate on one stream: the objective of the IDs given at arrival, and of those now."""

    instant: float
    current: float

    @property
    def score(self) -> float:
        """The mean of the two."""
        return (self.instant + self.current) / 2


def judge(
    candidate: Candidate, X: Vectors, y: Labels, objective: Objective, *, engine: str = "auto"
) -> Judgement:
    """Run a candidate over a stream, once, on one thread."""
    links = candidate.links(engine=engine, threads=1)
    at_arrival = links.add_many(X)
    return Judgement(objective.of(y, at_arrival), objective.of(y, links.labels()))


def _check_number(name: str, value: object) -> None:
    if value is None or (
        isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    ):
        return
    raise ArgumentError(
        f"{name} is {value!r} of type {type(value).__name__}",
        expected="a number, 0 or more, or None",
        remedy="Weights say how much worse one kind of error is than the other.",
    )
