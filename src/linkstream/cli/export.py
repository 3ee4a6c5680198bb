"""`linkstream export`: a store as files that other programs read."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from linkstream.cli import call, opening, screen
from linkstream.cli.options import AsJson, StorePath
from linkstream.cli.outputs import STDOUT
from linkstream.errors import ArgumentError


def export(
    store: StorePath,
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A table: .parquet, .npz, .jsonl, .csv, or - for JSON lines to stdout; or a name "
            "without an ending for a new folder.",
        ),
    ],
    vectors: Annotated[
        bool, typer.Option("--vectors", help="In a table: the vectors themselves, too.")
    ] = False,
    packing: Annotated[
        str, typer.Option(help="Of the vectors in a folder: npz or parquet.")
    ] = "npz",
    force: Annotated[bool, typer.Option("--force", help="Replace a table that is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a store as plain files that other programs read.

    A table has one row a vector: its number, cluster, name and payload. A folder holds everything,
    and `linkstream import` makes the same store of it again.

    Example: linkstream export people.links people.jsonl
    """
    from linkstream.io import export as export_store
    from linkstream.io import export_lines

    _check(target, force=force)
    with opening.reading(store) as opened:
        if target == STDOUT:
            for line in export_lines(opened, vectors=vectors):
                sys.stdout.write(line)
            return
        export_store(opened, target, vectors=vectors, packing=packing)
        call.keep(f"{target} is written")
        record = {"target": target, "vectors": opened.n_vectors}
        words = f"Written: {target}, {opened.n_vectors:,} vectors."
    screen.answer(record, words, as_json=as_json)


def _check(target: str, *, force: bool) -> None:
    """Refuse an ending that is no table's, and a file that is there, before anything is written."""
    from linkstream.io.writing import SUFFIXES

    path = Path(target)
    folder = target.endswith(("/", os.sep))
    if target != STDOUT and not folder and path.suffix and path.suffix.lower() not in SUFFIXES:
        raise ArgumentError(
            f"a target that ends in {path.suffix}",
            expected=f"{', '.join(SUFFIXES)}; or a folder",
            remedy=f"Try {path.with_suffix('.csv')} for a spreadsheet, or {target}/ for a folder.",
        )
    if path.is_file() and not force:
        raise ArgumentError(
            f"{target} is there already",
            expected="a new name, or --force",
            remedy="Add --force to replace it.",
        )
