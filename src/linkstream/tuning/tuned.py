"""What a search found, how sure that is, and how to use it."""

from __future__ import annotations

import os
import statistics
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from linkstream.clusterer import Links
from linkstream.errors import ArgumentError
from linkstream.identity.healing import Healing
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space
from linkstream.tuning import studies
from linkstream.tuning.candidate import Candidate, Judgement, Objective

if TYPE_CHECKING:
    from optuna.study import Study


class Spread(NamedTuple):
    """How much the score hangs on the order of arrival."""

    std: float
    min: float
    max: float


@dataclass(frozen=True, slots=True, eq=False)
class Tuned:
    """The chosen thresholds and space, with their score on the examples they were chosen by.

    The score is that of the examples: on other identities expect less. Keep some identities
    back and judge by these.

    Attributes:
        candidate: the thresholds, the space and the options that were chosen.
        judgements: its figures, one for each order of arrival; the first is the order given.
        objective: what was raised.
        study: the Optuna study, with every trial.
    """

    candidate: Candidate
    judgements: tuple[Judgement, ...]
    objective: Objective
    study: Study

    @property
    def thresholds(self) -> Thresholds:
        """The chosen thresholds."""
        return self.candidate.thresholds

    @property
    def space(self) -> Space:
        """The space they belong to."""
        return self.candidate.space

    @property
    def scores(self) -> tuple[float, ...]:
        """The score in each order of arrival."""
        return tuple(judgement.score for judgement in self.judgements)

    @property
    def score(self) -> float:
        """The mean over the orders of arrival."""
        return statistics.fmean(self.scores)

    @property
    def spread(self) -> Spread:
        """Standard deviation, least and greatest score over the orders of arrival."""
        return Spread(statistics.pstdev(self.scores), min(self.scores), max(self.scores))

    @property
    def instant(self) -> float:
        """The objective of the IDs given at arrival, mean over the orders."""
        return statistics.fmean(judgement.instant for judgement in self.judgements)

    @property
    def current(self) -> float:
        """The objective of the IDs at the end, mean over the orders."""
        return statistics.fmean(judgement.current for judgement in self.judgements)

    @property
    def n_trials(self) -> int:
        """Trials judged, those of earlier runs of the study among them."""
        return len(studies.finished(self.study))

    @property
    def python(self) -> str:
        """The line that makes such a clusterer; `mean` is `tuned.space.mean`."""
        figures = ", ".join(f"{value:g}" for value in asdict(self.thresholds).values())
        space = "" if self.space.mean is None else ", space=Space(mean=mean)"
        options = "".join(f", {name}={value!r}" for name, value in self.candidate.options.items())
        return f"links = Links({figures}{space}{options})"

    def links(self, **options: Any) -> Links:
        """A clusterer with these thresholds in this space; options are those of `Links`."""
        return self.candidate.links(**options)

    def to_dict(self) -> dict[str, Any]:
        """All figures by name, as plain values for JSON."""
        mean = self.space.mean
        return {
            "thresholds": asdict(self.thresholds),
            "space": {"mean": None if mean is None else mean.tolist(), "model": self.space.model},
            "options": {
                name: asdict(value) if isinstance(value, Healing) else value
                for name, value in self.candidate.options.items()
            },
            "objective": self.objective.name,
            "score": self.score,
            "instant": self.instant,
            "current": self.current,
            "scores": list(self.scores),
            "spread": self.spread._asdict(),
            "n_trials": self.n_trials,
            "python": self.python,
        }

    def text(self) -> str:
        """The figures as a table, one a line."""
        return "\n".join(f"{name:<{_WIDEST}}  {figure}" for name, figure in self.rows())

    def rows(self) -> list[tuple[str, str]]:
        """Names and figures, as people read them."""
        thresholds, spread = self.thresholds, self.spread
        figures = (
            f"{thresholds.cluster_similarity:.4f}",
            f"{thresholds.subcluster_similarity:.4f}",
            f"{thresholds.pair_similarity_max:.4f}",
            "as given" if self.space.mean is None else "centred on its mean",
            self.objective.name,
            f"{self.score:.4f}",
            f"{self.instant:.4f}, {self.current:.4f}",
            f"{spread.min:.4f} to {spread.max:.4f} in {len(self.scores)}",
            str(self.n_trials),
        )
        return list(zip(_NAMES, figures, strict=True))

    def picture(self, path: str | os.PathLike[str]) -> None:
        """Draw the score over the thresholds, with every trial, to a .png, .svg or .pdf."""
        from linkstream.tuning.picture import landscape

        figure = landscape(self)
        try:
            figure.savefig(Path(path))
        except (OSError, ValueError) as error:
            raise ArgumentError(
                f"{os.fspath(path)}: {error}",
                expected="a .png, .svg or .pdf in a folder that may be written to",
                remedy="Choose another name.",
            ) from None

    def __str__(self) -> str:
        return self.text()


_NAMES = (
    "T_c, cluster similarity",
    "T_s, subcluster similarity",
    "T_p, pair similarity max",
    "space",
    "objective",
    "score",
    "instant, current",
    "orders of arrival",
    "trials",
)
_WIDEST = max(map(len, _NAMES))
