"""`linkstream split`: two are not one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linkstream.cli import opening, screen
from linkstream.cli.options import AsJson, StorePath
from linkstream.errors import ArgumentError

if TYPE_CHECKING:
    from linkstream.identity.suggestions import SplitSuggestion
    from linkstream.store import Store

_ALL = 2**31


def split(
    store: StorePath,
    a: Annotated[str, typer.Argument(metavar="A", help="A number; alone, a cluster.")],
    b: Annotated[str | None, typer.Argument(metavar="[B]", help="The other one.")] = None,
    of: Annotated[
        str, typer.Option(help="What A and B are: vectors, subclusters or clusters.")
    ] = "vectors",
    apply: Annotated[
        bool, typer.Option("--apply", help="Of a cluster alone: cut it where it is weakest.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="Places to show.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Say that two are not one, or see where a cluster would come apart.

    Two vectors, subclusters or clusters never share a cluster again; where they do now, the weakest
    tie between them is cut. A cluster alone: its weakest places are shown, and with --apply the
    first of them is cut for ever.

    Example: linkstream split people.links 0 205
    """
    if b is None:
        _weakest(store, a, limit=limit, apply=apply, as_json=as_json)
        return
    if apply:
        raise ArgumentError(
            "--apply with two numbers",
            expected="--apply with one cluster",
            remedy="Two numbers are put apart without it.",
        )
    with opening.writing(store) as opened:
        one, other = (opening.numbered(opened, words, of=of) for words in (a, b))
        opened.different(one, other, of=of)
        pair = opened.explain_pair(one, other, of=of)
    record = {"different": [one, other], "of": of, "clusters": list(pair.clusters)}
    words = f"{of} {one} and {other} are not one: "
    words += f"they are in clusters {pair.clusters[0]} and {pair.clusters[1]}."
    screen.answer(record, words, as_json=as_json)


def _weakest(path: Path, words: str, *, limit: int, apply: bool, as_json: bool) -> None:
    with (opening.writing if apply else opening.reading)(path) as opened:
        cluster = opening.cluster_id(opened, words)
        found = [s for s in opened.suggest_splits(limit=_ALL) if s.cluster == cluster][:limit]
        if apply:
            _cut(opened, words, found, as_json=as_json)
            return
    if screen.speaks_json(as_json):
        for place in found:
            screen.write_json(place.to_dict())
        return
    console = screen.people(stderr=False)
    for place in found:
        console.print(str(place))
    if found:
        console.print(f"\nTo cut the first: linkstream split {path} {cluster} --apply")
    else:
        console.print(f"cluster {cluster} is one subcluster, or tied by a person's word.")


def _cut(opened: Store, words: str, found: list[SplitSuggestion], *, as_json: bool) -> None:
    if not found:
        raise ArgumentError(
            f"cluster {words}, which is one subcluster or tied by a person's word",
            expected="a cluster of several subclusters",
            remedy="Name two vectors of it: linkstream split STORE A B.",
        )
    one, other = found[0].subclusters
    opened.different(one, other, of="subclusters")
    clusters = opened.explain_pair(one, other, of="subclusters").clusters
    record = {"different": [one, other], "of": "subclusters", "clusters": list(clusters)}
    screen.answer(record, f"Cut: clusters {clusters[0]} and {clusters[1]}.", as_json=as_json)
