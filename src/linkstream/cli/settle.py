"""`linkstream settle`: clusters joined and cut by a pass over the whole store."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from linkstream.cli import opening, screen
from linkstream.cli.options import AsJson, StorePath


def settle(
    store: StorePath,
    apply: Annotated[bool, typer.Option("--apply", help="Do it; undo takes it back.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show which clusters an offline pass would join and cut; with --apply, do it.

    All subclusters are compared with one another by the paper's own test. What people said, names
    among it, stays as it is.

    Example: linkstream settle people.links
    """
    if apply:
        with opening.writing(store) as opened:
            found = opened.settle(apply=True)
    else:
        with opening.reading(store) as opened:
            found = opened.settle()
    if screen.speaks_json(as_json):
        screen.write_json(found.to_dict())
        return
    sys.stdout.write(f"{found}\n")
    if not apply and (found.joins or found.cuts):
        sys.stdout.write(f"\nTo do it: linkstream settle {store} --apply\n")
