"""Optuna studies of `tune`: in memory or in a file, with a check that data and settings match."""

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
from linkstream.tuning.candidates import Candidate, Point
from linkstream.tuning.objective import Judgement

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial, Trial

_NAME = "linkstream"  # of a study, and of its attribute with the fingerprint


def open_study(path: str | os.PathLike[str] | None, fingerprint: dict[str, Any]) -> Study:
    """Open a study in memory, or create or resume one in a file.

    Raise ArgumentError if the file is not a study, or a study of another fingerprint.
    """
    study = _memory() if path is None else _file(Path(path))
    seen = study.user_attrs.get(_NAME)
    if seen is None and not study.trials:
        study.set_user_attr(_NAME, fingerprint)
    elif seen != fingerprint:
        raise _other_study(path, seen, fingerprint)
    _drop_unfinished(study)
    return study


def finished(study: Study) -> list[FrozenTrial]:
    """Return the judged trials in order, without those that were interrupted."""
    optuna = _optuna()
    judged = (optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)
    return list(study.get_trials(deepcopy=False, states=judged))


def propose(trials: Sequence[FrozenTrial], n: int, *, seed: int, batch: int) -> list[Point]:
    """Return n points that a tree-structured Parzen estimator proposes after these trials.

    The points depend only on the trials, the seed and the number of the batch.
    """
    optuna = _optuna()
    own = int(np.random.default_rng([seed, batch]).integers(2**31))
    with _quiet():
        sampler = optuna.samplers.TPESampler(
            seed=own,
            n_startup_trials=0,
            multivariate=True,
            constant_liar=True,  # keeps the trials of a batch apart
            n_ei_candidates=32,
        )
        study = optuna.create_study(sampler=sampler, direction="maximize")
    study.add_trials(trials)
    return [Point(**study.ask(_unit_cube()).params) for _ in range(n)]


def begin(study: Study, point: Point) -> Trial:
    """Start a trial at a point."""
    study.enqueue_trial(asdict(point))
    return study.ask(_unit_cube())


def _unit_cube() -> dict[str, Any]:
    from optuna.distributions import FloatDistribution

    return {field.name: FloatDistribution(0.0, 1.0) for field in fields(Point)}


def tell(
    study: Study,
    trial: Trial,
    candidate: Candidate,
    judged: Sequence[Judgement],
    *,
    space: str,
    complete: bool,
) -> None:
    """Store the figures of a trial; a trial not judged in every order counts as pruned."""
    trial.set_user_attr("space", space)
    trial.set_user_attr("thresholds", list(asdict(candidate.thresholds).values()))
    trial.set_user_attr("figures", [asdict(each) for each in judged])
    if complete:
        study.tell(trial, statistics.fmean(each.score for each in judged))
        return
    trial.report(judged[0].score, 0)
    study.tell(trial, state=_optuna().trial.TrialState.PRUNED)


def judgements(trial: FrozenTrial) -> list[Judgement]:
    """Return the figures of each order that the trial was judged in."""
    return [Judgement(**figures) for figures in trial.user_attrs["figures"]]


def scores(trial: FrozenTrial) -> list[float]:
    """Return the score in each order the trial was judged in."""
    return [judgement.score for judgement in judgements(trial)]


def space_of(trial: FrozenTrial) -> str:
    """Return the name of the space of the trial."""
    return str(trial.user_attrs["space"])


def point_of(trial: FrozenTrial) -> Point:
    """Return the point of the trial."""
    return Point(**trial.params)


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
            expected="a file written by tune(), or a new name",
            remedy="Choose another name.",
        ) from None
    return study


def _check_place(path: Path) -> None:
    if path.is_dir() or not os.access(path.absolute().parent, os.W_OK):
        raise ArgumentError(
            f"a study at {str(path)!r}",
            expected="a file in an existing folder with write permission",
            remedy="Create the folder first, or choose another one.",
        )


def _check_first_line(path: Path) -> None:
    """Raise ValueError if the file is not a journal, before Optuna writes to it."""
    if not path.exists():
        return
    with path.open("rb") as file:
        first = file.readline(2**16)
    if first and "op_code" not in json.loads(first):
        raise ValueError("not a journal")


def _other_study(
    path: str | os.PathLike[str] | None, seen: dict[str, Any] | None, ours: dict[str, Any]
) -> ArgumentError:
    differing = [name for name, value in ours.items() if (seen or {}).get(name) != value]
    return ArgumentError(
        f"{os.fspath(path or '')} holds a study of other {', '.join(differing)}",
        expected="the data and settings that the study was started with",
        remedy="Use the same data and settings, or choose another file.",
    )


def _drop_unfinished(study: Study) -> None:
    """Close the open trials of an interrupted run, so that its batch is proposed again."""
    state = _optuna().trial.TrialState
    for _ in study.get_trials(deepcopy=False, states=(state.WAITING,)):
        study.ask()
    for trial in study.get_trials(deepcopy=False, states=(state.RUNNING,)):
        study.tell(trial.number, state=state.FAIL)


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress Optuna's log and its warnings about experimental samplers."""
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
