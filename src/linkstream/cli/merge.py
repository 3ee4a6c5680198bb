"""`linkstream merge`: two clusters are one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linkstream.cli import opening, screen
from linkstream.cli.options import AsJson, StorePath
from linkstream.errors import ArgumentError


def merge(
    store: StorePath,
    a: Annotated[
        str | None, typer.Argument(metavar="[A]", help="A cluster: its ID, or its name.")
    ] = None,
    b: Annotated[str | None, typer.Argument(metavar="[B]", help="The other one.")] = None,
    of: Annotated[
        str, typer.Option(help="What A and B are: vectors, subclusters or clusters.")
    ] = "clusters",
    limit: Annotated[int, typer.Option(min=1, help="Pairs to show.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Say that two clusters are one; or, with none given, see which two may be.

    They are one from now on. The one with a name keeps its ID, else the older one; the other ID
    stands for it for ever. What earlier corrections forbid is refused, with the chain of them.

    Example: linkstream merge people.links 0 1
    """
    if a is None:
        _suggest(store, limit=limit, as_json=as_json)
        return
    if b is None:
        raise ArgumentError(
            f"one cluster, {a}", expected="two, or none", remedy="Name the other one as well."
        )
    with opening.writing(store) as opened:
        ids = [opening.numbered(opened, words, of=of) for words in (a, b)]
        opened.same(*ids, of=of)
        live = opened.explain_pair(*ids, of=of).clusters[0]
        words = f"{a} and {b} are one: {opening.called(opened, live)}."
    screen.answer({"merged": ids, "cluster": live}, words, as_json=as_json)


def _suggest(path: Path, *, limit: int, as_json: bool) -> None:
    with opening.reading(path) as opened:
        found = opened.suggest_merges(limit=limit)
    if screen.speaks_json(as_json):
        for pair in found:
            screen.write_json(pair.to_dict())
        return
    console = screen.people(stderr=False)
    for pair in found:
        console.print(str(pair))
    if found:
        one, other = found[0].clusters
        console.print(f"\nTo make the first two one: linkstream merge {path} {one} {other}")
    else:
        console.print("No two clusters are near each other.")
