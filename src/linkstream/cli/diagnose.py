"""`linkstream diagnose`: whether Links will do well on the vectors of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy.typing as npt
import typer
from rich.padding import Padding
from rich.text import Text

from linkstream.cli import call, screen
from linkstream.cli.options import AsJson, Column, Key
from linkstream.cli.phrasing import said
from linkstream.errors import ArgumentError, VectorError
from linkstream.io import read_vectors
from linkstream.paper.thresholds import Thresholds
from linkstream.tuning.diagnosis import Diagnosis
from linkstream.tuning.diagnosis import diagnose as _diagnose
from linkstream.tuning.labels import read_labels

STYLES = {"ok": "green", "note": "yellow", "warning": "bold red"}


def diagnose(
    file: Annotated[Path, typer.Argument(help="Vectors, one a row, as for cluster.")],
    thresholds: Annotated[
        tuple[float, float, float] | None,
        typer.Option(help="T_c, T_s and T_p, to be judged on these vectors.", show_default=False),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(help="Who each vector is: an array of the .npz, or a .npy."),
    ] = None,
    key: Key = None,
    column: Column = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the figures to a .png, .svg or .pdf.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the sample that is looked at.", min=0)] = 0,
    as_json: AsJson = False,
) -> None:
    """Say whether vectors suit Links, and thresholds suit the vectors.

    The model's three lemmas are tested, a cone, copies, lengths and thresholds that break are
    seen, and the cost of the stream is forecast. Into a pipe goes JSON, with all figures.

    Example: linkstream diagnose voices.npz --thresholds 0.766 0.645 0.738
    --labels y --picture voices.png
    """
    wanted = None if thresholds is None else Thresholds(*thresholds)
    if picture is not None:
        screen.check_target(picture, screen.PICTURES)
    X = read_vectors(file, key=key, column=column)
    y = None if labels is None else read_labels(labels, vectors=file, n=len(X))
    found = _diagnosed(file, X, wanted, y, seed)
    if picture is not None:
        _draw(found, picture)
    if screen.speaks_json(as_json):
        screen.write_json(found.to_dict())
    else:
        _tell(found, picture)


def _diagnosed(
    file: Path,
    X: npt.NDArray[Any],
    thresholds: Thresholds | None,
    y: npt.NDArray[Any] | None,
    seed: int,
) -> Diagnosis:
    try:
        return _diagnose(X, thresholds, y=y, seed=seed)
    except VectorError as error:
        raise VectorError(
            f"{file}: {error.seen}", expected=error.expected, remedy=error.remedy, row=error.row
        ) from error


def _draw(found: Diagnosis, path: Path) -> None:
    try:
        found.picture(path)
        call.keep(f"{path} is written")
    except OSError as error:
        raise ArgumentError(
            f"{path}: {error.strerror or error}",
            expected="a place to write the picture to",
            remedy="Choose another --picture.",
        ) from None


def _tell(found: Diagnosis, picture: Path | None) -> None:
    console = screen.people(stderr=False)
    console.print(Text(found.headline(), style="bold"))
    console.print()
    for each in found.findings:
        line = Text(f"{each.severity:<8}", style=STYLES[each.severity])
        line.append(each.title, style="bold" if each.severity == "warning" else "")
        console.print(line)
        for words, style in ((each.seen, ""), (each.advice, "italic")):
            if words:
                console.print(Padding(Text(said(words), style=style), (0, 0, 0, 8)))
    if picture is None:
        console.print("\nTo see the figures: --picture diagnosis.png.")
    else:
        console.print(f"\nPicture: {picture}")
