"""`tune`: a seeded search for thresholds, on labelled vectors.

Optuna's tree-structured Parzen estimator proposes trials in batches of a fixed size, and a pool of
threads judges them. A batch has its own seed and depends only on the batches before it. So the
result is the same for any number of workers, and a resumed study gives the same result as one that
was never interrupted.
"""

from __future__ import annotations

import hashlib
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Links
from linkstream.clusterer.checks import check_yes_no
from linkstream.clusterer.modes import configuration, shortest_options
from linkstream.confidence import Model
from linkstream.engine import choice
from linkstream.errors import SpaceError
from linkstream.identity.settling import Healing
from linkstream.space import Space
from linkstream.tuning import studies
from linkstream.tuning.candidates import (
    HIGHEST_JOIN,
    Candidate,
    Point,
    best_neighbourhood,
    design,
    similarity_range,
)
from linkstream.tuning.confidence import fit_confidence
from linkstream.tuning.inputs import LabelledVectors, check_whole_number
from linkstream.tuning.objective import Judgement, Objective, judge
from linkstream.tuning.rebuilds import RebuildTuning, tuned_for_rebuilds
from linkstream.tuning.result import TuneResult

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

BATCH = 8
METHOD = 2  # version of the search; a study of another version is not resumed
GIVEN, CENTRED = "given", "centred"
_DESIGN = 32  # trials before the estimator takes over
_TRIALS_OF_THREE, _TRIALS_OF_TWO = 200, 64  # by default, by the number of thresholds to search
_HOPELESS = 0.05  # a trial this far below the best in the first order is pruned

Progress = Callable[[int, int, float], None]


def tune(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    trials: int | None = None,
    objective: str = "accuracy",
    stability_weight: float = 0.0,
    conflation_weight: float | None = None,
    fracture_weight: float | None = None,
    orders: int = 3,
    seed: int = 0,
    workers: int | None = None,
    study: str | os.PathLike[str] | None = None,
    space: Space | None = None,
    search_space: bool = False,
    mode: str = "paper",
    evidence: str | None = None,
    heal: Healing | str | bool | None = None,
    rebuild: bool = False,
    progress: Progress | None = None,
    engine: str = "auto",
) -> TuneResult:
    """Find thresholds for an encoder, from labelled vectors in order of arrival.

    The search maximises the mean of instant and current accuracy (section 3.6), of
    `metrics.weighted_score` if one of its weights is given, or another `objective`. Each is
    averaged over several orders of arrival: the given order and seeded permutations. The result is
    not the best single trial, but one whose neighbours score well, too. A few thousand vectors of
    as many identities as possible are enough; hold other identities out to judge the result.

    Args:
        X: vectors in order of arrival, at least ten.
        y: the identity of each vector: two identities or more, at least one of them seen twice.
        trials: number of settings to try, including the trials of a resumed study; None tries 200,
            or 64 if T_s is not searched (see `evidence`).
        objective: "accuracy" for IDs that count at arrival and at the end (the mean of both), or
            "settled" if only the labels after `settle(apply=True)` count.
        stability_weight: from 0 to 1, how much is subtracted from the score if no vector keeps
            the ID it was given: w · (1 − `metrics.stability`), such as 0.2.
        conflation_weight: weight of wrong merges; 1 if only the other weight is given.
        fracture_weight: weight of fragments; 1 if only the other weight is given.
        orders: number of orders of arrival. A trial that scores badly in the first order is not
            run in the others.
        seed: the same seed gives the same result for any number of workers.
        workers: number of threads that judge trials; None uses one per core.
        study: a file to keep the trials in. If the file exists, the search resumes from it.
        space: the space of the trials; None uses the vectors as given.
        search_space: also try the space that `Space.fit` finds, if X has enough identities.
        mode: as for `Links`: "paper" or "best".
        evidence: as for `Links`. With "cluster" (so with `mode="best"`), T_s only sets how fine
            subclusters are: it is fixed at the closest pairs of one identity, and the other two
            are searched.
        heal: as for `Links`.
        rebuild: also find thresholds for `Links.rebuild`, which the result and its `links()` carry.
            They maximise the accuracy, or weighted score, of the rebuilt clusters alone. T_s stays.
        progress: called with the trials done, the trials in total, and the best score so far.
        engine: as for `Links`.

    Raises:
        ArgumentError: the data or settings cannot be used, or differ from those of the study.
        MissingExtraError: Optuna or SciPy is not installed.
    """
    maximised = Objective(conflation_weight, fracture_weight, objective, stability_weight)
    check_yes_no("rebuild", rebuild)
    chosen = configuration(mode, evidence, heal)
    options = shortest_options(chosen)
    if trials is None:
        trials = _TRIALS_OF_TWO if chosen.evidence == "cluster" else _TRIALS_OF_THREE
    settings = _Settings(maximised, trials, orders, seed, workers, engine)
    examples = LabelledVectors.of(X, y, space)
    spaces = _spaces(examples, space, also_centred=search_space)
    search = _Search(examples, settings, spaces, options)
    opened = studies.open_study(study, search.fingerprint())
    search.run(opened, progress)
    return search.result(opened, rebuild=rebuild)


def _spaces(
    examples: LabelledVectors, space: Space | None, *, also_centred: bool
) -> dict[str, Space]:
    """Return the spaces to try, by name."""
    given = space or Space()
    if not also_centred:
        return {GIVEN: given}
    try:
        centred = Space.fit(examples.X, y=examples.y, model=given.model)
    except SpaceError:  # too few identities, or almost identical vectors
        return {GIVEN: given}
    return {GIVEN: given} if centred.mean is None else {GIVEN: given, CENTRED: centred}


@dataclass(frozen=True, slots=True)
class _Settings:
    """Checked settings of `tune`."""

    objective: Objective
    trials: int
    orders: int
    seed: int
    workers: int | None
    engine: str

    def __post_init__(self) -> None:
        for name, least, remedy in (
            ("trials", 1, "Give the number of settings to try."),
            ("orders", 1, "The first order is the given one."),
            ("seed", 0, "The same seed gives the same result."),
        ):
            check_whole_number(name, getattr(self, name), least=least, remedy=remedy)
        if self.workers is not None:
            remedy = "Leave it out for one worker per core."
            check_whole_number("workers", self.workers, least=1, remedy=remedy)
        choice.choose(self.engine, 1)


class _Search:
    """One search: labelled vectors, settings, and the spaces with their ranges of thresholds."""

    def __init__(
        self,
        examples: LabelledVectors,
        settings: _Settings,
        spaces: Mapping[str, Space],
        options: Mapping[str, Any],
    ) -> None:
        self._examples = examples
        self._settings = settings
        self._spaces = spaces
        self._options = options
        self._join = HIGHEST_JOIN if _whole_clusters(options) else None
        self._ranges = {
            name: similarity_range(examples.X, examples.y, space, seed=settings.seed)
            for name, space in spaces.items()
        }
        self._orders = examples.orders(settings.orders, seed=settings.seed)

    def fingerprint(self) -> dict[str, Any]:
        """Return the data and settings that a study belongs to, by name."""
        means = [space.mean for space in self._spaces.values() if space.mean is not None]
        return {
            "method": METHOD,
            "vectors": _digest(self._examples.X.astype("<f4")),
            "labels": _digest(self._examples.y.astype("<i8")),
            "objective": self._settings.objective.name,
            "orders": int(self._settings.orders),
            "seed": int(self._settings.seed),
            "space": [*self._spaces, *(_digest(mean.astype("<f8")) for mean in means)],
            "options": repr(sorted(self._options.items())),
        }

    def run(self, study: Study, progress: Progress | None) -> None:
        """Run the remaining trials, batch by batch."""
        total = self._settings.trials
        with ThreadPoolExecutor(self._settings.workers or os.cpu_count() or 1) as pool:
            while len(trials := studies.finished(study)) < total:
                name, points = self._next_batch(trials)
                points = points[: total - len(trials)]
                self._judge(study, name, points, pool)
                if progress is not None:
                    progress(len(trials) + len(points), total, study.best_value)

    def _next_batch(self, trials: Sequence[FrozenTrial]) -> tuple[str, list[Point]]:
        """Return the space of the next batch, and its remaining points."""
        batch, done = divmod(len(trials), BATCH)
        names = list(self._spaces)
        seed = self._settings.seed
        if batch < _DESIGN // BATCH:
            name, start = names[batch % len(names)], batch // len(names) * BATCH
            points = design(self._ranges[name], _DESIGN, seed=seed, join=self._join)
            return name, points[start : start + BATCH][done:]
        name = self._next_space(trials, batch)
        mine = [trial for trial in trials if studies.space_of(trial) == name]
        points = studies.propose(mine, BATCH - done, seed=seed, batch=batch)
        return name, [point.with_join(self._join) for point in points]

    def _next_space(self, trials: Sequence[FrozenTrial], batch: int) -> str:
        """Give two batches to the space with the best trial so far, then one to the other."""
        best = max(trials, key=lambda trial: (len(studies.scores(trial)), trial.value or 0.0))
        others = [name for name in self._spaces if name != studies.space_of(best)]
        return others[0] if others and batch % 3 == 0 else studies.space_of(best)

    def result(self, study: Study, *, rebuild: bool) -> TuneResult:
        """Return the trial with the best neighbourhood, with its figures in every order."""
        trials = studies.finished(study)
        names = list(self._spaces)
        numbers = [names.index(studies.space_of(trial)) for trial in trials]
        cube = [astuple(studies.point_of(trial)) for trial in trials]
        points = np.column_stack([numbers, cube])
        scores = np.array([statistics.fmean(studies.scores(trial)) for trial in trials])
        complete = np.array([len(studies.scores(trial)) == len(self._orders) for trial in trials])
        chosen = trials[best_neighbourhood(points, scores, complete)]
        candidate = self._candidate(studies.space_of(chosen), studies.point_of(chosen))
        judged = tuple(studies.judgements(chosen))
        confidence = self._confidence(candidate)
        rebuilds = self._for_rebuilds(candidate) if rebuild else None
        return TuneResult(candidate, judged, self._settings.objective, study, confidence, rebuilds)

    def _confidence(self, candidate: Candidate) -> Model:
        X, y = self._examples.X, self._examples.y
        return fit_confidence(candidate, X, y, self._orders, engine=self._settings.engine)

    def _for_rebuilds(self, candidate: Candidate) -> RebuildTuning:
        settings = self._settings
        return tuned_for_rebuilds(
            self._examples,
            candidate.space,
            settings.objective,
            join=candidate.thresholds.subcluster_similarity,
            seed=settings.seed,
            engine=settings.engine,
            threads=settings.workers,
        )

    def _candidate(self, space: str, point: Point) -> Candidate:
        return Candidate(self._ranges[space].thresholds(point), self._spaces[space], self._options)

    def _judge(self, study: Study, space: str, points: Sequence[Point], pool: Executor) -> None:
        """Judge a batch: all trials in the first order, the promising ones in the others."""
        begun = [studies.begin(study, point) for point in points]
        candidates = [self._candidate(space, point) for point in points]
        firsts = list(pool.map(lambda candidate: self._in_order(candidate, 0), candidates))
        earlier = [studies.scores(trial)[0] for trial in studies.finished(study)]
        scores = [*earlier, *(judgement.score for judgement in firsts)]
        # The score in the first order from which on a trial is run in the other orders.
        needed = max(scores) - _HOPELESS
        running = [
            [
                pool.submit(self._in_order, candidate, k)
                for k in range(1, len(self._orders))
                if judgement.score >= needed
            ]
            for candidate, judgement in zip(candidates, firsts, strict=True)
        ]
        for trial, candidate, first, more in zip(begun, candidates, firsts, running, strict=True):
            judged = [first, *(job.result() for job in more)]
            complete = first.score >= needed
            studies.tell(study, trial, candidate, judged, space=space, complete=complete)

    def _in_order(self, candidate: Candidate, k: int) -> Judgement:
        rows = self._orders[k]
        settings = self._settings
        X, y = self._examples.X[rows], self._examples.y[rows]
        return judge(candidate, X, y, settings.objective, engine=settings.engine)


def _whole_clusters(options: Mapping[str, Any]) -> bool:
    """Return whether these options of `Links` compare vectors with whole clusters."""
    return Links(0.7, 0.6, 0.9, **options).evidence == "cluster"


def _digest(array: npt.NDArray[Any]) -> str:
    return hashlib.sha256(repr(array.shape).encode() + array.tobytes()).hexdigest()
