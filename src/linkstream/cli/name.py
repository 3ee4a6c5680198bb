"""`linkstream name`: what a cluster is called."""

from __future__ import annotations

from typing import Annotated

import typer

from linkstream.cli import opening, screen
from linkstream.cli.options import AsJson, ClusterName, StorePath
from linkstream.errors import ArgumentError


def name(
    store: StorePath,
    cluster: ClusterName,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="What to call it.")] = None,
    rename: Annotated[
        bool, typer.Option("--rename", help="Also where it has another name.")
    ] = False,
    clear: Annotated[bool, typer.Option("--clear", help="Take its name away.")] = False,
    claim: Annotated[
        bool, typer.Option("--claim", help="At a split, its largest subcluster keeps the name.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Give a cluster a name, another one, or none.

    Clusters of different names are never joined. A name belongs to one cluster.

    Example: linkstream name people.links 0 Ann
    """
    if (name is None) != clear or (rename and clear) or (claim and (rename or clear)):
        given = {"a name": name, "--rename": rename, "--clear": clear, "--claim": claim}
        raise ArgumentError(
            " with ".join(word for word, value in given.items() if value) or "no name",
            expected="a name, a name with --rename, a name with --claim, or --clear alone",
            remedy="See linkstream name --help.",
        )
    _check_text(name)
    with opening.writing(store) as opened:
        number = opening.cluster_id(opened, cluster)
        if name is None or rename:
            opened.rename(number, name)
        else:
            opened.name(number, name, claim=claim)
        live = opened.resolve(number)
    words = f"Cluster {live} has no name now." if name is None else f"Cluster {live} is {name}."
    screen.answer({"cluster": live, "name": name}, words, as_json=as_json)


def _check_text(name: str | None) -> None:
    """Bytes that are no letters come from the shell as halves of letters; no file can hold them."""
    try:
        (name or "").encode()
    except UnicodeEncodeError:
        raise ArgumentError(
            f"the name {name!r}", expected="a text", remedy="Write it in UTF-8."
        ) from None
