"""Clustering without a store: rows pass through, IDs come out, and memory does not grow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkstream.cli import call, choosing, outputs, screen
from linkstream.cli.choosing import Three
from linkstream.cli.outputs import STDOUT
from linkstream.cli.progress import Advance, of_source
from linkstream.cli.rows import rows_of
from linkstream.clusterer import Links

if TYPE_CHECKING:
    from linkstream.io import Source

SHOWN = 20


def cluster(
    source: Source,
    preset: str | None,
    three: Three,
    options: dict[str, Any],
    *,
    output: str | None,
    save: Path | None,
) -> None:
    """Give each row of a source its ID; tell it, write it, or both."""
    if output is None and screen.speaks_json(False):
        output = STDOUT
    # Only a clusterer that is saved has to know where each vector is.
    links = _clusterer(preset, three, {"track_vectors": save is not None} | options)
    with of_source("clustering", source, output=output) as advance:
        if output is None:
            for block in source:
                with rows_of(source.name, block.first_row):
                    links.add_many(block.vectors)
                advance(len(block))
        elif output.endswith(".npy"):
            _write_ids(links, source, output, advance)
        else:
            _write_decisions(links, source, output, advance)
    if save is not None:
        links.save(save)
        also = call.now().kept
        call.keep(f"{save} is written" if also is None else f"{also}, and so is {save}")
    if output is None:
        _tell(links)


def _clusterer(preset: str | None, three: Three, options: dict[str, Any]) -> Links:
    thresholds = choosing.thresholds(preset, three)
    if thresholds is None:
        return Links.preset(preset or "", **options)
    return Links.from_thresholds(thresholds, **options)


def _write_ids(links: Links, source: Source, output: str, advance: Advance) -> None:
    with outputs.array(output) as append:
        for block in source:
            with rows_of(source.name, block.first_row):
                append(links.add_many(block.vectors))
            advance(len(block))


def _write_decisions(links: Links, source: Source, output: str, advance: Advance) -> None:
    with outputs.lines(output) as write:
        for block in source:
            for place, vector in enumerate(block.vectors):
                with rows_of(source.name, block.first_row + place):
                    decision = links.add(vector)
                write(
                    {
                        "vector": decision.sequence,
                        "cluster": decision.cluster,
                        "subcluster": decision.subcluster,
                        "kind": decision.kind,
                        "similarity": decision.similarity,
                        "threshold": decision.threshold,
                    }
                )
            advance(len(block))


def _tell(links: Links) -> None:
    console = screen.people(stderr=False)
    console.print(
        f"{links.n_vectors:,} vectors, {links.n_subclusters:,} subclusters, "
        f"{links.n_clusters:,} clusters\n"
    )
    clusters = sorted(links.clusters(), key=lambda c: (-c.size, c.id))
    rows = screen.table("The biggest clusters", "ID", "vectors", "subclusters", "first", "last")
    for c in clusters[:SHOWN]:
        numbers = (c.id, c.size, len(c.subclusters), c.first_seen, c.last_seen)
        rows.add_row(*map(str, numbers))
    console.print(rows)
    console.print("\nFor the ID of every vector: --output ids.npy, or --output - for JSON lines.")
    console.print("To keep them, and to go on another day: --store people.links.")
