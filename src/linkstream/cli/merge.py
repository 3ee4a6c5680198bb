"""`linkstream merge`: two clusters are one."""

from __future__ import annotations

from typing import Annotated

import typer

from linkstream.cli import opening, screen
from linkstream.cli.options import AsJson, StorePath


def merge(
    store: StorePath,
    a: Annotated[str, typer.Argument(metavar="A", help="A cluster: its ID, or its name.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The other one.")],
    as_json: AsJson = False,
) -> None:
    """Say that two clusters are one; they are from now on.

    The one with a name keeps its ID, else the older one; the other ID stands for it for ever. What
    earlier corrections forbid is refused, with the chain of them.

    Example: linkstream merge people.links 0 1
    """
    with opening.writing(store) as opened:
        ids = [opening.cluster_id(opened, words) for words in (a, b)]
        opened.same(*ids, of="clusters")
        live = opened.resolve(ids[0])
        words = f"{a} and {b} are one: {opening.called(opened, live)}."
    screen.answer({"merged": ids, "cluster": live}, words, as_json=as_json)
