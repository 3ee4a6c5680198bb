"""`linkstream calibrate`: thresholds for an encoder where few vectors are labelled, or none."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy.typing as npt
import typer

from linkstream.cli import choosing, ending, screen
from linkstream.cli.options import AsJson, Column, Key
from linkstream.cli.phrasing import said
from linkstream.io import read_vectors
from linkstream.tuning.calibration import Calibration
from linkstream.tuning.calibration import calibrate as _calibrate
from linkstream.tuning.labels import read_labels, read_pairs

_PAIRS = "two row numbers a line in a .csv, a .npy, or an array of the .npz"


def calibrate(
    file: Annotated[Path, typer.Argument(help="Vectors in order of arrival, as for cluster.")],
    same: Annotated[
        str | None, typer.Option(help=f"Pairs known to be of one identity: {_PAIRS}.")
    ] = None,
    different: Annotated[
        str | None, typer.Option(help="Pairs known to be of two, likewise.")
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            help="What each vector was seen in, such as a photo, where all are different people: "
            "an array of the .npz, or a .npy; −1 for none."
        ),
    ] = None,
    key: Key = None,
    column: Column = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed, the same outcome.")] = 0,
    confidence: Annotated[float, typer.Option(help="Of the intervals of the rates.")] = 0.95,
    as_json: AsJson = False,
) -> None:
    """Find thresholds for an encoder, from pairs or from vectors alone.

    A hundred pairs of each kind are plenty. With none, the vectors alone are judged; where they
    cannot decide, that is said, and the exit code is 1. With labels for all, use `linkstream tune`.

    Example: linkstream calibrate voices.npy --same same.csv --different different.csv
    """
    X = read_vectors(file, key=key, column=column)
    found = _calibrate(
        X,
        same=None if same is None else read_pairs(same, vectors=file),
        different=None if different is None else read_pairs(different, vectors=file),
        groups=_groups(groups, file, len(X)),
        seed=seed,
        confidence=confidence,
    )
    if screen.speaks_json(as_json):
        screen.write_json(found.to_dict() | {"advice": said(found.advice)})
    else:
        _tell(found)
    if not found.decided:
        raise typer.Exit(ending.NO)


def _groups(source: str | None, file: Path, n: int) -> npt.NDArray[Any] | None:
    return None if source is None else read_labels(source, vectors=file, n=n, option="--groups")


def _tell(found: Calibration) -> None:
    console = screen.people(stderr=False)
    console.print(said(found.text()))
    if found.thresholds is not None:
        console.print(f"\nTo use them: {choosing.command(found.thresholds)}", soft_wrap=True)
