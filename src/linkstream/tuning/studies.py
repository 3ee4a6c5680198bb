"""Optuna studies: opened quietly, kept in a file, refused where they belong to other data."""

from __future__ import annotations

import json
import os
import statistics
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linkstream.errors import ArgumentError, MissingExtraError
from linkstream.tuning.candidate import Candidate, Judgement
from linkstream.tuning.starts import Point

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial, Trial

_NAME = "linkstream"
_ATTRIBUTE = "linkstream"


def open_study(path: str | os.PathLike[str] | None, fingerprint: dict[str, Any]) -> Study:
    """A study in memory, or in a file that is begun or gone on with.

    Raises:
        ArgumentError: the file is no study, or one of other data or settings.
        MissingExtraError: Optuna is not installed.
    """
    study = _memory() if path is None else _file(Path(path))
    seen = study.user_attrs.get(_ATTRIBUTE)
    if seen is None and not study.trials:
        study.set_user_attr(_ATTRIBUTE, fingerprint)
    elif seen != fingerprint:
        raise _other_study(path, seen, fingerprint)
    _drop_unfinished(study)
    return study


def finished(study: Study) -> list[FrozenTrial]:
    """Trials that were judged, in order; those broken off in the middle do not count."""
    optuna = _optuna()
    judged = (optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)
    return list(study.get_trials(deepcopy=False, states=judged))


def propose(trials: Sequence[FrozenTrial], n: int, *, seed: int, batch: int) -> list[Point]:
    """The places of a batch, by a tree-structured Parzen estimator that has seen these trials.

    It looks at nothing else, and has a seed of its own for each batch.
    """
    optuna = _optuna()
    own = int(np.random.default_rng([seed, batch]).integers(2**31))
    with _quiet():
        sampler = optuna.samplers.TPESampler(
            seed=own,
            n_startup_trials=0,
            multivariate=True,
            constant_liar=True,  # the trials of a batch keep away from each other
            n_ei_candidates=32,
        )
        study = optuna.create_study(sampler=sampler, direction="maximize")
    study.add_trials(trials)
    return [Point(**study.ask(_cube()).params) for _ in range(n)]


def begin(study: Study, point: Point) -> Trial:
    """A new trial at a place."""
    study.enqueue_trial(asdict(point))
    return study.ask(_cube())


def _cube() -> dict[str, Any]:
    from optuna.distributions import FloatDistribution

    return {field.name: FloatDistribution(0.0, 1.0) for field in fields(Point)}


def tell(
    study: Study,
    trial: Trial,
    candidate: Candidate,
    judged: Sequence[Judgement],
    *,
    space: str,
    whole: bool,
) -> None:
    """Keep what a trial was worth; one that was not judged in every order counts as pruned."""
    trial.set_user_attr("space", space)
    trial.set_user_attr("thresholds", list(asdict(candidate.thresholds).values()))
    trial.set_user_attr("figures", [[each.instant, each.current] for each in judged])
    if whole:
        study.tell(trial, statistics.fmean(each.score for each in judged))
        return
    trial.report(judged[0].score, 0)
    study.tell(trial, state=_optuna().trial.TrialState.PRUNED)


def figures(trial: FrozenTrial) -> list[tuple[float, float]]:
    """Instant and current, in each order that the trial was judged in."""
    return [(instant, current) for instant, current in trial.user_attrs["figures"]]


def scores(trial: FrozenTrial) -> list[float]:
    """The score in each order that the trial was judged in."""
    return [(instant + current) / 2 for instant, current in figures(trial)]


def space_of(trial: FrozenTrial) -> str:
    """Name of the space that the trial was in."""
    return str(trial.user_attrs["space"])


def place_of(trial: FrozenTrial) -> Point:
    """Where in the search the trial was."""
    return Point(**trial.params)


def best_score(study: Study) -> float:
    """The best score so far of a trial judged in every order."""
    return float(study.best_value)


def _memory() -> Study:
    with _quiet():
        study: Study = _optuna().create_study(study_name=_NAME, direction="maximize")
    return study


def _file(path: Path) -> Study:
    optuna = _optuna()
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock, JournalStorage

    _check_place(path)
    try:
        _check_first_line(path)
        with _quiet():
            lock = JournalFileOpenLock(str(path))
            study: Study = optuna.create_study(
                storage=JournalStorage(JournalFileBackend(str(path), lock_obj=lock)),
                study_name=_NAME,
                direction="maximize",
                load_if_exists=True,
            )
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError, OSError) as error:
        raise ArgumentError(
            f"{path} is not a study ({type(error).__name__})",
            expected="a file begun by tune(), or a new name",
            remedy="Choose another name.",
        ) from None
    return study


def _check_place(path: Path) -> None:
    if path.is_dir() or not os.access(path.absolute().parent, os.W_OK):
        raise ArgumentError(
            f"a study at {str(path)!r}",
            expected="a file in a folder that is there and may be written to",
            remedy="Make the folder first, or choose another one.",
        )


def _check_first_line(path: Path) -> None:
    """Leave a file alone that does not begin as a journal does, before Optuna writes to it."""
    if not path.exists():
        return
    with path.open("rb") as file:
        first = file.readline(2**16)
    if first and "op_code" not in json.loads(first):
        raise ValueError("no journal")


def _other_study(
    path: str | os.PathLike[str] | None, seen: dict[str, Any] | None, ours: dict[str, Any]
) -> ArgumentError:
    differing = [name for name, value in ours.items() if (seen or {}).get(name) != value]
    return ArgumentError(
        f"{os.fspath(path or '')} holds a study of other {', '.join(differing)}",
        expected="the same data and settings as when it was begun",
        remedy="Go on with the same ones, or choose another file.",
    )


def _drop_unfinished(study: Study) -> None:
    """Close what a broken run left open, so that its batch is proposed again."""
    state = _optuna().trial.TrialState
    for _ in study.get_trials(deepcopy=False, states=(state.WAITING,)):
        study.ask()
    for trial in study.get_trials(deepcopy=False, states=(state.RUNNING,)):
        study.tell(trial.number, state=state.FAIL)


@contextmanager
def _quiet() -> Iterator[None]:
    """No lines of Optuna's log, and no warnings that its samplers may change one day."""
    optuna = _optuna()
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as missing:
        raise MissingExtraError("optuna", extra="tune", purpose="Tuning") from missing
    return optuna
