"""`linkstream import`: a store from the files of an export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linkstream.cli import opening, screen
from linkstream.cli.options import AsJson, StorePath


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

    import_store(folder, store)
    with opening.reading(store) as opened:
        record = {"store": str(store), "vectors": opened.n_vectors, "clusters": opened.n_clusters}
    words = f"Made: {store}, {record['vectors']:,} vectors in {record['clusters']:,} clusters."
    screen.answer(record, words, as_json=as_json)
