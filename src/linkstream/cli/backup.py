"""`linkstream backup`: a copy, taken while the store is in use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linkstream.cli import call, opening, screen
from linkstream.cli.options import AsJson, StorePath


def backup(
    store: StorePath,
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="A file that is not there.")],
    as_json: AsJson = False,
) -> None:
    """Copy a store while it is in use.

    The copy holds all that was acknowledged when it began, is a store itself, and replaces nothing.

    Example: linkstream backup people.links people-monday.links
    """
    with opening.reading(store) as opened:
        opened.backup(target)
        call.keep(f"{target} is written")
        record = {"backup": str(target), "vectors": opened.n_vectors}
        words = f"Copied to {target}: {opened.n_vectors:,} vectors."
    screen.answer(record, words, as_json=as_json)
