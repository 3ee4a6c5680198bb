"""`linkstream import`: a store from the files of an export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linkstream.cli import call, opening, screen
from linkstream.cli.options import AsJson, StorePath
from linkstream.errors import ArgumentError


def import_(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="What export wrote.")],
    store: StorePath,
    as_json: AsJson = False,
) -> None:
    """Make a store from files that export wrote.

    Every call is made again in its order and must give the answer it gave: the store is the same,
    with the same IDs to come. It must not be there yet.

    Example: linkstream import people-files restored.links
    """
    from linkstream.io import import_store

    _check_folder(folder, store)
    import_store(folder, store)
    call.keep(f"{store} is made")
    with opening.reading(store) as opened:
        record = {"store": str(store), "vectors": opened.n_vectors, "clusters": opened.n_clusters}
    words = f"Made: {store}, {record['vectors']:,} vectors in {record['clusters']:,} clusters."
    screen.answer(record, words, as_json=as_json)


def _check_folder(folder: Path, store: Path) -> None:
    """Refuse what export did not write."""
    if folder.is_dir() and (folder / "store.json").is_file():
        return
    missing = "is not a folder" if folder.exists() else "does not exist"
    cluster = f"linkstream cluster {folder} --store {store} --preset NAME"
    raise ArgumentError(
        f"{folder} {'has no store.json' if folder.is_dir() else missing}",
        expected="a folder that linkstream export wrote",
        remedy=f"To cluster the vectors of a file: {cluster}." if folder.is_file() else "Check it.",
    )
