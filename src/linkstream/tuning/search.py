"""`tune`: thresholds from labelled vectors, by a seeded search.

Trials are proposed by Optuna's tree-structured Parzen estimator in batches of a fixed size and
judged by a pool of threads. A batch depends on nothing but the batches before it, and has a seed
of its own. So the outcome is the same for any number of workers, and a study that was broken off
goes on as if it had not been.
"""

from __future__ import annotations

import hashlib
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Links
from linkstream.errors import SpaceError
from linkstream.identity.healing import Healing
from linkstream.space import Space
from linkstream.tuning import plateau, studies
from linkstream.tuning.candidate import Candidate, Judgement, Objective, judge
from linkstream.tuning.examples import Examples
from linkstream.tuning.settings import Settings
from linkstream.tuning.starts import FINE, Point, design, similarity_range
from linkstream.tuning.tuned import Tuned

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

BATCH = 8
METHOD = 1  # of searching; a study begun by another one is not gone on with
GIVEN, CENTRED = "given", "centred"
_DESIGN = 32  # trials before the estimator takes over
_HOPELESS = 0.05  # so far below the best, and below the middle, one order is enough

Progress = Callable[[int, int, float], None]


def tune(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    trials: int = 200,
    conflation_weight: float | None = None,
    fracture_weight: float | None = None,
    orders: int = 3,
    seed: int = 0,
    workers: int | None = None,
    study: str | os.PathLike[str] | None = None,
    space: Space | None = None,
    search_space: bool = False,
    evidence: str = "nearest",
    heal: Healing | str | None = None,
    progress: Progress | None = None,
    engine: str = "auto",
) -> Tuned:
    """Find thresholds for an encoder, from labelled vectors in order of arrival.

    What is raised is the mean of instant and current accuracy (section 3.6) or, with either
    weight given, of `metrics.weighted_score`; and of that the mean over several orders of arrival:
    the one given, and seeded permutations. Not the luckiest trial is chosen, but one whose
    neighbours are good, too. A few thousand vectors are enough, of as many identities as can be
    had; keep others back to judge the outcome by.

    Args:
        X: vectors in order of arrival, at least ten.
        y: who each is: two identities or more, at least one of them seen twice.
        trials: settings to try, those of a resumed study among them.
        conflation_weight: how much wrong merges hurt; 1 where only the other weight is given.
        fracture_weight: how much fragments hurt; 1 where only the other weight is given.
        orders: orders of arrival; what is hopeless in the first is not run in the others.
        seed: the same seed gives the same outcome, whatever the number of workers.
        workers: threads to judge trials with; None for one a core.
        study: a file to keep the trials in. Where it is there, the search goes on from it.
        space: the space of the trials; None for vectors as given.
        search_space: also try the space that `Space.fit` finds, where X is wide enough for it.
        evidence: as for `Links`. With "cluster", T_s only says how fine subclusters are: it is set
            where the closest pairs of one identity lie, and the other two are searched for.
        heal: as for `Links`.
        progress: called with trials done, trials in all, and the best score so far.
        engine: as for `Links`.

    Raises:
        ArgumentError: data or settings that cannot be used, or a study of other ones.
        MissingExtraError: Optuna or SciPy is not installed.
    """
    settings = Settings(
        Objective(conflation_weight, fracture_weight), trials, orders, seed, workers, engine
    )
    Links(0.7, 0.6, 0.9, evidence=evidence, heal=heal)  # refuses what cannot be
    asked = {"evidence": evidence, "heal": heal}
    options = {name: value for name, value in asked.items() if value not in (None, "nearest")}
    examples = Examples.of(X, y, space)
    spaces = _spaces(examples, space, also_centred=search_space)
    search = _Search(examples, settings, spaces, options)
    opened = studies.open_study(study, search.fingerprint())
    search.run(opened, progress)
    return search.outcome(opened)


def _spaces(examples: Examples, space: Space | None, *, also_centred: bool) -> dict[str, Space]:
    """The spaces to try, by name."""
    given = space or Space()
    if not also_centred:
        return {GIVEN: given}
    try:
        centred = Space.fit(examples.X, y=examples.y, model=given.model)
    except SpaceError:  # a sample too narrow, or vectors that are all but one
        return {GIVEN: given}
    return {GIVEN: given} if centred.mean is None else {GIVEN: given, CENTRED: centred}


class _Search:
    """One search: what it learns from, how, and the spaces with the ranges to look in."""

    def __init__(
        self,
        examples: Examples,
        settings: Settings,
        spaces: Mapping[str, Space],
        options: Mapping[str, Any],
    ) -> None:
        self._examples = examples
        self._settings = settings
        self._spaces = spaces
        self._options = options
        self._join = FINE if options.get("evidence") == "cluster" else None
        self._ranges = {
            name: similarity_range(examples.X, examples.y, space, seed=settings.seed)
            for name, space in spaces.items()
        }
        self._orders = examples.orders(settings.orders, seed=settings.seed)

    def fingerprint(self) -> dict[str, Any]:
        """What a study belongs to, by name."""
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
        """Try what is still to be tried, batch by batch."""
        total = self._settings.trials
        with ThreadPoolExecutor(self._settings.threads) as pool:
            while len(trials := studies.finished(study)) < total:
                name, points = self._next(trials)
                points = points[: total - len(trials)]
                self._judge(study, name, points, pool)
                if progress is not None:
                    progress(len(trials) + len(points), total, studies.best_score(study))

    def _next(self, trials: Sequence[FrozenTrial]) -> tuple[str, list[Point]]:
        """The space of the next batch, and what is left of its points."""
        batch, done = divmod(len(trials), BATCH)
        names = list(self._spaces)
        seed = self._settings.seed
        if batch < _DESIGN // BATCH:
            name, part = names[batch % len(names)], batch // len(names) * BATCH
            points = design(self._ranges[name], _DESIGN, seed=seed, join=self._join)
            return name, points[part : part + BATCH][done:]
        name = self._turn(trials, batch)
        mine = [trial for trial in trials if studies.space_of(trial) == name]
        points = studies.propose(mine, BATCH - done, seed=seed, batch=batch)
        return name, [point.with_join(self._join) for point in points]

    def _turn(self, trials: Sequence[FrozenTrial], batch: int) -> str:
        """Two batches for the space with the best trial so far, then one for the other."""
        best = max(trials, key=lambda trial: (len(studies.scores(trial)), trial.value or 0.0))
        others = [name for name in self._spaces if name != studies.space_of(best)]
        return others[0] if others and batch % 3 == 0 else studies.space_of(best)

    def outcome(self, study: Study) -> Tuned:
        """The middle of the best plateau, with its figures in every order."""
        trials = studies.finished(study)
        names = list(self._spaces)
        places = np.array(
            [
                [names.index(studies.space_of(trial)), *astuple(studies.place_of(trial))]
                for trial in trials
            ]
        )
        scores = np.array([statistics.fmean(studies.scores(trial)) for trial in trials])
        whole = np.array([len(studies.scores(trial)) == len(self._orders) for trial in trials])
        chosen = trials[plateau.middle(places, scores, whole)]
        candidate = self._candidate(studies.space_of(chosen), studies.place_of(chosen))
        judged = tuple(Judgement(*figures) for figures in studies.figures(chosen))
        return Tuned(candidate, judged, self._settings.objective, study)

    def _candidate(self, space: str, point: Point) -> Candidate:
        return Candidate(self._ranges[space].thresholds(point), self._spaces[space], self._options)

    def _judge(self, study: Study, space: str, points: Sequence[Point], pool: Executor) -> None:
        """Judge a batch: all in the first order, what is not hopeless in the others."""
        begun = [studies.begin(study, point) for point in points]
        candidates = [self._candidate(space, point) for point in points]
        firsts = list(pool.map(lambda candidate: self._in_order(candidate, 0), candidates))
        earlier = [studies.scores(trial)[0] for trial in studies.finished(study)]
        needed = _needed([*earlier, *(judgement.score for judgement in firsts)])
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
            whole = first.score >= needed
            studies.tell(study, trial, candidate, judged, space=space, whole=whole)

    def _in_order(self, candidate: Candidate, k: int) -> Judgement:
        rows = self._orders[k]
        settings = self._settings
        X, y = self._examples.X[rows], self._examples.y[rows]
        return judge(candidate, X, y, settings.objective, engine=settings.engine)


def _needed(firsts: Sequence[float]) -> float:
    """The score in the first order that a trial needs to be worth the others."""
    return min(statistics.median(firsts), max(firsts) - _HOPELESS)


def _digest(array: npt.NDArray[Any]) -> str:
    return hashlib.sha256(repr(array.shape).encode() + array.tobytes()).hexdigest()
