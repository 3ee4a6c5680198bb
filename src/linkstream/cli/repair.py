"""`linkstream repair`: what can be read of a damaged store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linkstream.cli import call, screen
from linkstream.cli.options import AsJson, StorePath


def repair(
    store: StorePath,
    copy: Annotated[
        Path | None,
        typer.Option(help="Where to copy the damaged files.", show_default="beside the store"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Save what can be read of a damaged store, after copying it aside.

    Nothing is thrown away that was not copied first. What is kept is the longest sound beginning:
    every answer in it is the one that was given. The repaired store opens and verifies. If nothing
    can be saved, or memory or the disk runs out, the exit code says so and nothing was changed.

    Example: linkstream repair people.links
    """
    from linkstream.store import repair as repair_store

    with call.kept_if_stopped(f"the files of {store}; run repair again to be sure of it"):
        done = repair_store(store, copy=copy)
    words = f"Saved: {done}. The files as they were: {done.copy}."
    screen.answer(done.to_dict(), words, as_json=as_json)
