"""Commands that find and judge thresholds: presets, tune, calibrate, diagnose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from linkstream.cli import outcome, screen
from linkstream.cli.options import (
    Column,
    Heal,
    Key,
    Mode,
    Picture,
    Seed,
    cluster_command,
    command_with,
)
from linkstream.cli.phrasing import reworded
from linkstream.errors import VectorError

if TYPE_CHECKING:
    import numpy.typing as npt

    from linkstream.paper.thresholds import Thresholds
    from linkstream.presets import Preset
    from linkstream.tuning import Calibration, TuneResult, search
    from linkstream.tuning.diagnosis import Diagnosis

_PAIRS = "two row numbers a line in a .csv, a .npy, or an array of the .npz"
_STYLES = {"ok": "green", "note": "yellow", "warning": "bold red"}

ArrivalFile = Annotated[Path, "Vectors in order of arrival, in a file as for cluster."]


def presets() -> None:
    """List the encoders whose thresholds are known, and their levels.

    Each preset was measured on labelled sets; docs/tuning.md has the results. Thresholds belong to
    an encoder: for another encoder use `linkstream tune` or `linkstream calibrate`. `linkstream
    levels` shows your own vectors at each level.

    Example: linkstream presets
    """
    from linkstream.presets import presets as known

    found = list(known().values())
    if screen.wrote_json(map(_preset_record, found)):
        return
    console = screen.console()
    for each in found:
        rows = screen.table(f"{each.name}: {each.encoder}", "level", "", "T_c", "T_s", "T_p", "")
        rows.columns[-1].justify = "left"
        for level, granularity in each.levels.items():
            figures = asdict(each.line.at(granularity)).values()
            words = each.words[level] + (" (default)" if level == each.default else "")
            rows.add_row(level, f"{granularity:.2f}", *(f"{x:.4f}" for x in figures), words)
        console.print(rows)
        console.print()
    console.print("To use one: linkstream cluster FILE --preset NAME --granularity LEVEL")


def _preset_record(preset: Preset) -> dict[str, Any]:
    record: dict[str, Any] = {"name": preset.name, "encoder": preset.encoder}
    record |= {"thresholds": asdict(preset.thresholds), "evidence": preset.evidence}
    record |= {"heal": preset.heal, "made_from": list(preset.made_from)}
    record |= {"default": preset.default, "line": asdict(preset.line)}
    record["levels"] = {
        name: {"granularity": at, "words": preset.words[name], **asdict(preset.line.at(at))}
        for name, at in preset.levels.items()
    }
    return record | {"figures": preset.figures}


def tune(
    file: ArrivalFile,
    labels: Annotated[
        str | None, "Identities: an array of the .npz, by default y; or a .npy."
    ] = None,
    key: Key = None,
    column: Column = None,
    trials: Annotated[
        int | None, Option(help="Settings to try.", show_default="200; 64 with --mode best")
    ] = None,
    orders: Annotated[int, "Orders of arrival to test each setting with."] = 3,
    objective: Annotated[
        str, "What counts: IDs at arrival and at the end (accuracy), or after settle (settled)."
    ] = "accuracy",
    stability_weight: Annotated[
        float, "From 0 to 1: how much IDs that stay still count beside accuracy."
    ] = 0.0,
    conflation_weight: Annotated[
        float | None, "Weight of wrong merges; else accuracy counts."
    ] = None,
    fracture_weight: Annotated[float | None, "Weight of fragments; else accuracy counts."] = None,
    seed: Annotated[int, "Seed of the search."] = 0,
    workers: Annotated[int | None, "Trials at the same time; else one for each core."] = None,
    study: Annotated[Path | None, "Keep the trials in this file, or continue from it."] = None,
    mean: Annotated[
        Path | None, "Also try centred vectors; if better, write the mean as .npy."
    ] = None,
    mode: Mode = None,
    evidence: Annotated[
        str | None, "What a vector is compared with: nearest subcluster, or cluster."
    ] = None,
    heal: Heal = None,
    rebuild: Annotated[bool, "Also find thresholds for rebuild."] = False,
    save: Annotated[Path | None, "Write the settings to this .json, for --tuned."] = None,
    picture: Picture = None,
) -> None:
    """Find thresholds for an encoder, from labelled vectors.

    The search maximises accuracy; with a weight, it maximises 1 minus the weighted errors. Test the
    result on identities that are not in the file. What --save writes has the model of confidence as
    well: decisions of `linkstream cluster --tuned FILE` tell how probably they are right.

    Example: linkstream tune voices.npz --labels y --trials 30 --picture landscape.png
    """
    import numpy as np

    from linkstream.io import read_vectors
    from linkstream.tuning import search
    from linkstream.tuning.labels import read_labels

    if picture is not None:
        screen.check_target(picture, screen.PICTURES)
    if mean is not None:
        screen.check_target(mean, (".npy",))
    if save is not None:
        screen.check_target(save, (".json",))
    X = read_vectors(file, key=key, column=column)
    y = read_labels(labels, vectors=file, n=len(X))
    kept = f"the trials so far are in {study}; the same command continues with them"
    with _trial_progress(trials) as progress, outcome.note_if_stopped(kept if study else None):
        tuned = search.tune(
            X,
            y,
            trials=trials,
            orders=orders,
            objective=objective,
            stability_weight=stability_weight,
            conflation_weight=conflation_weight,
            fracture_weight=fracture_weight,
            seed=seed,
            workers=workers,
            study=study,
            search_space=mean is not None,
            mode=mode or "paper",
            evidence=evidence,
            heal=heal,
            rebuild=rebuild,
            progress=progress,
        )
    if picture is not None:
        tuned.picture(picture)
        outcome.note_change(f"{picture} is written")
    if mean is not None and tuned.space.mean is not None:
        np.save(mean, tuned.space.mean, allow_pickle=False)
    if save is not None:
        tuned.save(save)
        outcome.note_change(f"{save} is written")
    if not screen.wrote_json([tuned.to_dict()]):
        _show_tuned(tuned, mean, picture, save)


@contextmanager
def _trial_progress(total: int | None) -> Iterator[search.Progress]:
    from rich import progress as bars

    console = screen.console(stderr=True)
    best = bars.TextColumn("best {task.fields[best]:.4f}")
    columns = ("tuning", bars.BarColumn(), bars.MofNCompleteColumn(), bars.TimeRemainingColumn())
    hidden = not console.is_terminal
    with bars.Progress(*columns, best, console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task("tuning", total=total, best=0.0)

        def show(done: int, total: int, best: float) -> None:
            progress.update(task, completed=done, total=total, best=best)

        yield show


def _show_tuned(
    tuned: TuneResult, mean: Path | None, picture: Path | None, saved: Path | None
) -> None:
    console = screen.console()
    rows = screen.table("Thresholds", "", "")
    for name, figure in tuned.rows():
        rows.add_row(name, figure)
    console.print(rows)
    why = tuned.links().confidence.why
    told = f"unknown: {why}" if why else f"from {tuned.confidence.identities} identities"
    console.print(f"\nProbabilities: {told}.", soft_wrap=True)
    console.print("\nTo use them:\n")
    for line in _to_use(tuned, mean, saved):
        console.print(line, soft_wrap=True)
    console.print()
    console.print("This is the score on the vectors of the file: test on identities held out.")
    if picture is not None:
        console.print(f"Picture: {picture}")


def _to_use(tuned: TuneResult, mean: Path | None, saved: Path | None) -> list[str]:
    """Return a command, if there is one, and lines of Python that use the result of a tuning."""
    if saved is not None:
        load = f"links = Tuned.load({str(saved)!r}).links()"
        python, command = ["from linkstream.tuning import Tuned", load], command_with(saved)
    elif tuned.space.mean is None:
        python = ["from linkstream import Links", tuned.python]
        command = cluster_command(tuned.thresholds, **tuned.candidate.options)
    else:
        load = f"mean = numpy.load({str(mean)!r})"
        python = ["import numpy", "from linkstream import Links, Space", load, tuned.python]
        return [f"    {line}" for line in python]
    return [f"    {command}", "", "or, in Python:", "", *(f"    {line}" for line in python)]


def calibrate(
    file: ArrivalFile,
    same: Annotated[str | None, f"Pairs of rows of one identity: {_PAIRS}."] = None,
    different: Annotated[str | None, "Pairs of rows of two identities, likewise."] = None,
    groups: Annotated[
        str | None,
        "What each vector was seen in, such as a photo of different people, −1 for none: an array "
        "of the .npz, or a .npy.",
    ] = None,
    preset: Annotated[
        str | None, "Choose a granularity of this preset; else all thresholds are searched."
    ] = None,
    key: Key = None,
    column: Column = None,
    seed: Seed = 0,
    confidence: Annotated[float, "Confidence of the intervals of the error rates."] = 0.95,
) -> None:
    """Find thresholds for an encoder, from pairs or from vectors alone.

    A hundred pairs of each kind are enough. Without pairs, the vectors alone are used; if they
    cannot decide, the command says so, and the exit code is 1. With labels for all vectors, use
    `linkstream tune`.

    Example: linkstream calibrate voices.npy --same same.csv --different different.csv
    """
    from linkstream.io import read_vectors
    from linkstream.tuning import calibration
    from linkstream.tuning.labels import read_labels, read_pairs

    X = read_vectors(file, key=key, column=column)
    seen_in = None
    if groups is not None:
        seen_in = read_labels(groups, vectors=file, n=len(X), option="--groups")
    found = calibration.calibrate(
        X,
        same=None if same is None else read_pairs(same, vectors=file),
        different=None if different is None else read_pairs(different, vectors=file),
        groups=seen_in,
        preset=preset,
        seed=seed,
        confidence=confidence,
    )
    if not screen.wrote_json([found.to_dict() | {"advice": reworded(found.advice)}]):
        console = screen.console()
        console.print(reworded(found.text()))
        if found.thresholds is not None:
            console.print(f"\nTo use them: {_command_of(found)}", soft_wrap=True)
    if not found.decided:
        raise typer.Exit(outcome.NO)


def _command_of(found: Calibration) -> str:
    if found.preset is None or found.granularity is None:
        assert found.thresholds is not None
        return cluster_command(found.thresholds)
    options = f"--preset {found.preset} --granularity {found.granularity:g}"
    return f"linkstream cluster FILE --store people.links {options}"


def diagnose(
    file: Annotated[Path, "Vectors, one a row, in a file as for cluster."],
    thresholds: Annotated[
        tuple[float, float, float] | None,
        Option(help="T_c, T_s and T_p to test on these vectors.", show_default=False),
    ] = None,
    labels: Annotated[
        str | None, "The identity of each vector: an array of the .npz, or a .npy."
    ] = None,
    key: Key = None,
    column: Column = None,
    picture: Picture = None,
    seed: Seed = 0,
) -> None:
    """Test whether vectors suit Links, and thresholds suit the vectors.

    It tests the three lemmas of the model, looks for cones, copies, unequal lengths and thresholds
    that fail, and forecasts the cost of the stream. JSON output has all figures.

    Example: linkstream diagnose voices.npz --thresholds 0.766 0.645 0.738
    --labels y --picture voices.png
    """
    from linkstream.io import read_vectors
    from linkstream.paper.thresholds import Thresholds
    from linkstream.tuning.labels import read_labels

    wanted = None if thresholds is None else Thresholds(*thresholds)
    if picture is not None:
        screen.check_target(picture, screen.PICTURES)
    X = read_vectors(file, key=key, column=column)
    y = None if labels is None else read_labels(labels, vectors=file, n=len(X))
    found = _diagnosed(file, X, wanted, y, seed)
    if picture is not None:
        found.picture(picture)
        outcome.note_change(f"{picture} is written")
    if not screen.wrote_json([found.to_dict()]):
        _show_diagnosis(found, picture)


def _diagnosed(
    file: Path,
    X: npt.NDArray[Any],
    thresholds: Thresholds | None,
    y: npt.NDArray[Any] | None,
    seed: int,
) -> Diagnosis:
    from linkstream.tuning import diagnosis

    try:
        return diagnosis.diagnose(X, thresholds, y=y, seed=seed)
    except VectorError as error:
        raise VectorError(
            f"{file}: {error.seen}", expected=error.expected, remedy=error.remedy, row=error.row
        ) from error


def _show_diagnosis(found: Diagnosis, picture: Path | None) -> None:
    from rich.padding import Padding
    from rich.text import Text

    console = screen.console()
    console.print(Text(found.headline(), style="bold"))
    console.print()
    for each in found.findings:
        line = Text(f"{each.severity:<8}", style=_STYLES[each.severity])
        line.append(each.title, style="bold" if each.severity == "warning" else "")
        console.print(line)
        for words, style in ((each.seen, ""), (each.advice, "italic")):
            if words:
                console.print(Padding(Text(reworded(words), style=style), (0, 0, 0, 8)))
    if picture is None:
        console.print("\nTo see the figures: --picture diagnosis.png.")
    else:
        console.print(f"\nPicture: {picture}")
