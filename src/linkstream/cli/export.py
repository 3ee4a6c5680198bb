"""`linkstream export`: a store as files that other programs read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linkstream.cli import opening, screen
from linkstream.cli.options import AsJson, StorePath


def export(
    store: StorePath,
    target: Annotated[
        Path,
        typer.Argument(
            metavar="TARGET", help="A table: .parquet, .npz, .jsonl, .csv. Else a new folder."
        ),
    ],
    vectors: Annotated[
        bool, typer.Option("--vectors", help="In a table: the vectors themselves, too.")
    ] = False,
    packing: Annotated[
        str, typer.Option(help="Of the vectors in a folder: npz or parquet.")
    ] = "npz",
    as_json: AsJson = False,
) -> None:
    """Write a store as plain files that other programs read.

    A table has one row a vector: its number, cluster, name and payload. A folder holds everything,
    and `linkstream import` makes the same store of it again.

    Example: linkstream export people.links people.jsonl
    """
    from linkstream.io import export as export_store

    with opening.reading(store) as opened:
        export_store(opened, target, vectors=vectors, packing=packing)
        record = {"target": str(target), "vectors": opened.n_vectors}
        words = f"Written: {target}, {opened.n_vectors:,} vectors."
    screen.answer(record, words, as_json=as_json)
