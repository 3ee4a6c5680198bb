"""The result of `tune`: thresholds, space and options, with their scores."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from linkstream.clusterer import Links
from linkstream.clusterer.tuned import Tuned
from linkstream.confidence import Model
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space
from linkstream.tuning import studies
from linkstream.tuning.candidates import Candidate
from linkstream.tuning.objective import Judgement, Objective
from linkstream.tuning.rebuilds import RebuildTuning

if TYPE_CHECKING:
    from optuna.study import Study


class Spread(NamedTuple):
    """How much the score depends on the order of arrival."""

    std: float
    min: float
    max: float


@dataclass(frozen=True, slots=True, eq=False)
class TuneResult:
    """The chosen thresholds and space, with their score on the vectors they were chosen on.

    Expect a lower score on other identities. To measure it, hold some identities out of `tune`.

    Attributes:
        candidate: the chosen thresholds, space and options.
        judgements: the figures of the candidate, one for each order of arrival; the given order
            comes first.
        objective: the figure that was maximised.
        study: the Optuna study with all trials.
        confidence: the probability that a decision is right, fitted to the same vectors.
        rebuilds: thresholds for `rebuild` and the objective of its labels; None if not asked for.
    """

    candidate: Candidate
    judgements: tuple[Judgement, ...]
    objective: Objective
    study: Study
    confidence: Model
    rebuilds: RebuildTuning | None = None

    @property
    def thresholds(self) -> Thresholds:
        """The chosen thresholds."""
        return self.candidate.thresholds

    @property
    def rebuild_thresholds(self) -> Thresholds | None:
        """The thresholds for `rebuild`; None if they were not asked for."""
        return None if self.rebuilds is None else self.rebuilds.thresholds

    @property
    def space(self) -> Space:
        """The space of the thresholds."""
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
        """Standard deviation, minimum and maximum of the score over the orders of arrival."""
        return Spread(statistics.pstdev(self.scores), min(self.scores), max(self.scores))

    @property
    def instant(self) -> float:
        """The objective of the IDs given at arrival: the mean over the orders."""
        return statistics.fmean(judgement.instant for judgement in self.judgements)

    @property
    def current(self) -> float:
        """The objective of the final IDs: the mean over the orders."""
        return statistics.fmean(judgement.current for judgement in self.judgements)

    @property
    def still(self) -> float:
        """The share of vectors that keep the ID they were given: the mean over the orders."""
        return statistics.fmean(judgement.still for judgement in self.judgements)

    @property
    def settled(self) -> float | None:
        """The objective after `settle`, the mean over the orders; None if it did not count."""
        found = [each.settled for each in self.judgements if each.settled is not None]
        return statistics.fmean(found) if found else None

    @property
    def n_trials(self) -> int:
        """Number of judged trials, including those of earlier runs of the study."""
        return len(studies.finished(self.study))

    @property
    def python(self) -> str:
        """The line of Python that makes this clusterer; `mean` stands for `space.mean`."""
        figures = _figures(self.thresholds)
        space = "" if self.space.mean is None else ", space=Space(mean=mean)"
        options = "".join(f", {name}={value!r}" for name, value in self.candidate.options.items())
        if self.rebuild_thresholds is not None:
            options += f", rebuild_thresholds=Thresholds({_figures(self.rebuild_thresholds)})"
        return f"links = Links({figures}{space}{options})"

    @property
    def tuned(self) -> Tuned:
        """The settings without the figures, to be saved."""
        chosen = self.candidate
        return Tuned(
            chosen.thresholds,
            chosen.space,
            chosen.options,
            self.rebuild_thresholds,
            self.confidence,
        )

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `Store.open` and `Client.create` that give these settings."""
        return self.tuned.arguments()

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the adapters for scikit-learn, river and BERTopic."""
        return self.tuned.parameters()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the settings to a file, with the model of confidence; `Tuned.load` reads it.

        Args:
            path: the file, such as `tuned.json`.
        """
        self.tuned.save(path)

    def links(self, **options: Any) -> Links:
        """Return a clusterer with these thresholds, space and options, and with the confidence.

        Args:
            options: further options of `Links`; they override those of the result.
        """
        own = {"rebuild_thresholds": self.rebuild_thresholds, "confidence": self.confidence}
        return self.candidate.links(**{**own, **options})

    def to_dict(self) -> dict[str, Any]:
        """Return all figures by name, as plain values for JSON."""
        return {
            **self.tuned.to_dict(),
            "objective": self.objective.name,
            "score": self.score,
            "instant": self.instant,
            "current": self.current,
            "settled": self.settled,
            "rebuilt": self.rebuilds and self.rebuilds.score,
            "still": self.still,
            "scores": list(self.scores),
            "spread": self.spread._asdict(),
            "n_trials": self.n_trials,
            "python": self.python,
        }

    def text(self) -> str:
        """Return the figures as a table, one per line."""
        return text_table(self.rows())

    def rows(self) -> list[tuple[str, str]]:
        """Return the names and the formatted figures of the table."""
        thresholds, spread = self.thresholds, self.spread
        figures = (
            f"{thresholds.cluster_similarity:.4f}",
            f"{thresholds.subcluster_similarity:.4f}",
            f"{thresholds.pair_similarity_max:.4f}",
            "as given" if self.space.mean is None else "centred on its mean",
            self.objective.name,
            f"{self.score:.4f}",
            f"{self.instant:.4f}, {self.current:.4f}",
            *(() if self.settled is None else (f"{self.settled:.4f}",)),
            f"{self.still:.4f}",
            f"{spread.min:.4f} to {spread.max:.4f} in {len(self.scores)}",
            str(self.n_trials),
        )
        names = [name for name in _NAMES if name != _SETTLED or self.settled is not None]
        return [*zip(names, figures, strict=True), *self._rows_of_rebuilds()]

    def _rows_of_rebuilds(self) -> list[tuple[str, str]]:
        if self.rebuilds is None:
            return []
        t_c, _, t_p = asdict(self.rebuilds.thresholds).values()
        return [
            ("rebuild, T_c and T_p", f"{t_c:.4f}, {t_p:.4f}"),
            ("rebuilt", f"{self.rebuilds.score:.4f}"),
        ]

    def picture(self, path: str | os.PathLike[str]) -> None:
        """Draw all trials over their thresholds, coloured by score. Needs matplotlib.

        Args:
            path: the file to write: .png, .svg or .pdf.

        Raises:
            ArgumentError: the file cannot be written.
        """
        from linkstream.plots import save
        from linkstream.tuning.pictures import trials_figure

        save(trials_figure(self), path)

    __str__ = text


THRESHOLD_NAMES = (
    "T_c, cluster similarity",
    "T_s, subcluster similarity",
    "T_p, pair similarity max",
)
_SETTLED = "settled"
_NAMES = (
    *(*THRESHOLD_NAMES, "space", "objective", "score", "instant, current"),
    *(_SETTLED, "IDs that stay", "orders of arrival", "trials"),
)


def _figures(thresholds: Thresholds) -> str:
    return ", ".join(f"{value:g}" for value in asdict(thresholds).values())


def text_table(rows: Sequence[tuple[str, str]]) -> str:
    """Return names and figures in two columns, one row per line."""
    width = max(map(len, THRESHOLD_NAMES))
    return "\n".join(f"{name:<{width}}  {figure}" for name, figure in rows)
