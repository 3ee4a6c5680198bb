"""`linkstream plot`: pictures of a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linkstream.cli import call, opening, screen
from linkstream.cli.options import AsJson, StorePath
from linkstream.errors import ArgumentError

KINDS = ("png", "svg", "pdf")


def plot(
    store: StorePath,
    output: Annotated[Path, typer.Option(help="The folder; made if it is not there.")] = Path(),
    only: Annotated[
        str | None, typer.Option(help="Some of them, as graph,sizes.", show_default="all four")
    ] = None,
    kind: Annotated[str, typer.Option(help="png, svg or pdf.")] = "png",
    limit: Annotated[int, typer.Option(min=1, help="Subclusters in the graph.")] = 1500,
    as_json: AsJson = False,
) -> None:
    """Draw a store: its graph, its stream, its sizes and its margins.

    Written as people-graph.png and so on: the biggest clusters as islands of subclusters and edges;
    when their vectors came; the sizes; by how much edges hold and pairs miss being one.

    Example: linkstream plot people.links --output pictures
    """
    from linkstream import plots

    drawings = {
        "graph": lambda links: plots.cluster_graphs(links, limit=limit),
        "timeline": plots.stream,
        "sizes": plots.sizes,
        "margins": plots.margins,
    }
    wanted = list(drawings) if only is None else [name.strip() for name in only.split(",")]
    if kind not in KINDS or not set(wanted) <= drawings.keys():
        raise ArgumentError(
            f"--kind {kind}" if kind not in KINDS else f"--only {only}",
            expected=" or ".join(KINDS) if kind not in KINDS else f"some of {', '.join(drawings)}",
            remedy="Try --only graph,sizes --kind svg.",
        )
    with opening.reading(store) as opened:
        output.mkdir(parents=True, exist_ok=True)
        written = []
        for name in wanted:
            path = output / f"{store.stem}-{name}.{kind}"
            plots.save(drawings[name](opened), path)
            written.append(str(path))
            call.keep(f"{', '.join(written)} written")
    screen.answer({"pictures": written}, "Written: " + ", ".join(written), as_json=as_json)
