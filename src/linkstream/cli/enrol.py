"""`linkstream enrol`: somebody known, before or after vectors of them arrive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linkstream.cli import opening, screen
from linkstream.cli.options import AsJson, Column, Dimension, Key, StorePath


def enrol(
    store: StorePath,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who it is.")],
    file: Annotated[str, typer.Argument(help="Vectors of them alone, as for cluster.")],
    drift: Annotated[
        bool,
        typer.Option("--drift", help="Let the vectors given here move as others join them."),
    ] = False,
    column: Column = None,
    key: Key = None,
    dimension: Dimension = None,
    as_json: AsJson = False,
) -> None:
    """Make a cluster of vectors of somebody known, with a name.

    Vectors that arrive later join it; the ones given here stay as they are, unless --drift. If a
    cluster has that name, the vectors are added to it. Other clusters are left as they are: join
    them with `linkstream merge`.

    Example: linkstream enrol people.links Bea arrivals/monday.npy
    """
    from linkstream.io import read_vectors

    source = file if file == "-" else Path(file)
    rows = read_vectors(source, column=column, key=key, dimension=dimension)
    with opening.writing(store) as opened:
        cluster = opened.enrol(name, rows, locked=not drift)
    record = {"cluster": cluster, "name": name, "vectors": len(rows)}
    words = f"{name} is cluster {cluster}, with {len(rows):,} vectors of {file}."
    screen.answer(record, words, as_json=as_json)
