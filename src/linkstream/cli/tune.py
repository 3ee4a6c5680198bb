"""`linkstream tune`: thresholds for an encoder, from labelled vectors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from linkstream.cli import call, choosing, screen
from linkstream.cli.options import AsJson, Column, Heal, Key
from linkstream.io import read_vectors
from linkstream.tuning import TuneResult, search
from linkstream.tuning.labels import read_labels


def tune(
    file: Annotated[Path, typer.Argument(help="Vectors in order of arrival, as for cluster.")],
    labels: Annotated[
        str | None,
        typer.Option(help="Who each vector is: an array of the .npz, or a .npy.", show_default="y"),
    ] = None,
    key: Key = None,
    column: Column = None,
    trials: Annotated[int, typer.Option(help="Settings to try.")] = 200,
    orders: Annotated[int, typer.Option(help="Orders of arrival to judge each by.")] = 3,
    conflation_weight: Annotated[
        float | None, typer.Option(help="How much wrong merges hurt.", show_default="accuracy")
    ] = None,
    fracture_weight: Annotated[
        float | None, typer.Option(help="How much fragments hurt.", show_default="accuracy")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed, the same outcome.")] = 0,
    workers: Annotated[
        int | None, typer.Option(help="Trials judged at once.", show_default="one a core")
    ] = None,
    study: Annotated[
        Path | None, typer.Option(help="Keep the trials in this file, or go on from it.")
    ] = None,
    mean: Annotated[
        Path | None,
        typer.Option(help="Also try the space centred on its mean; if it wins, write that .npy."),
    ] = None,
    evidence: Annotated[
        str, typer.Option(help="What decides of a vector: nearest subcluster or whole cluster.")
    ] = "nearest",
    heal: Heal = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw all trials: .png, .svg or .pdf.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find thresholds for an encoder, from labelled vectors.

    Accuracy is raised, or with either weight what is left of 1 after weighted errors. Judge the
    outcome on identities that were not in the file.

    Example: linkstream tune voices.npz --labels y --trials 30 --picture landscape.png
    """
    if picture is not None:
        screen.check_target(picture, screen.PICTURES)
    if mean is not None:
        screen.check_target(mean, (".npy",))
    X = read_vectors(file, key=key, column=column)
    y = read_labels(labels, vectors=file, n=len(X))
    with _progress(trials) as progress, _kept_trials(study):
        tuned = search.tune(
            X,
            y,
            trials=trials,
            orders=orders,
            conflation_weight=conflation_weight,
            fracture_weight=fracture_weight,
            seed=seed,
            workers=workers,
            study=study,
            search_space=mean is not None,
            evidence=evidence,
            heal=heal,
            progress=progress,
        )
    if picture is not None:
        tuned.picture(picture)
        call.keep(f"{picture} is written")
    if mean is not None and tuned.space.mean is not None:
        np.save(mean, tuned.space.mean, allow_pickle=False)
    if screen.speaks_json(as_json):
        screen.write_json(tuned.to_dict())
    else:
        _tell(tuned, mean, picture)


def _kept_trials(study: Path | None) -> AbstractContextManager[None]:
    if study is None:
        return nullcontext()
    words = f"the trials so far are in {study}; the same command goes on with them"
    return call.kept_if_stopped(words)


@contextmanager
def _progress(total: int) -> Iterator[search.Progress]:
    console = screen.people(stderr=True)
    best = TextColumn("best {task.fields[best]:.4f}")
    columns = (TextColumn("tuning"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), best)
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task("tuning", total=total, best=0.0)

        def show(done: int, total: int, best: float) -> None:
            progress.update(task, completed=done, total=total, best=best)

        yield show


def _tell(tuned: TuneResult, mean: Path | None, picture: Path | None) -> None:
    console = screen.people(stderr=False)
    rows = screen.table("Thresholds", "", "")
    for name, figure in tuned.rows():
        rows.add_row(name, figure)
    console.print(rows)
    console.print("\nTo use them:\n")
    if tuned.space.mean is None:
        console.print(f"    {choosing.command(tuned.thresholds)}", soft_wrap=True)
        console.print("\nor, in Python:\n\n    from linkstream import Links")
    else:
        console.print("    import numpy\n    from linkstream import Links, Space")
        console.print(f"    mean = numpy.load({str(mean)!r})")
    console.print(f"    {tuned.python}\n")
    console.print("The score is that of the vectors tuned on: judge by identities held out.")
    if picture is not None:
        console.print(f"Picture: {picture}")
