"""`linkstream cluster`: IDs for the vectors of a file, kept in a store or not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linkstream.cli import choosing, outputs, places, screen
from linkstream.cli.options import (
    ClusterSimilarity,
    Column,
    Dimension,
    Evidence,
    Heal,
    Key,
    MaxIdle,
    MaxSubclusters,
    NoTrack,
    PairSimilarityMax,
    Payload,
    Preset,
    SubclusterSimilarity,
)
from linkstream.errors import ArgumentError

if TYPE_CHECKING:
    from linkstream.io import Source


def cluster(
    file: Annotated[
        str,
        typer.Argument(
            help="Vectors, one a row: .npy, .npz, .parquet, .arrow, .jsonl, .csv, or - for stdin; "
            "or an address, postgresql:// or qdrant://."
        ),
    ],
    cluster_similarity: ClusterSimilarity = None,
    subcluster_similarity: SubclusterSimilarity = None,
    pair_similarity_max: PairSimilarityMax = None,
    preset: Preset = None,
    evidence: Evidence = None,
    heal: Heal = None,
    no_track: NoTrack = False,
    max_subclusters: MaxSubclusters = None,
    max_idle: MaxIdle = None,
    store: Annotated[
        Path | None, typer.Option(help="Keep all in this store; made if it is not there.")
    ] = None,
    column: Column = None,
    key: Key = None,
    dimension: Dimension = None,
    payload: Payload = None,
    source: Annotated[
        str, typer.Option(help="A name for the rows: under another one they are taken again.")
    ] = "",
    live: Annotated[
        bool, typer.Option("--live", help="The rows are new: take them as they come, know none.")
    ] = False,
    output: Annotated[
        str | None,
        typer.Option(
            help="IDs to a .npy, decisions to a .jsonl, or decisions to stdout: -.",
            show_default="a table on a terminal, else -",
        ),
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Without a store: save the clusterer, to go on later.")
    ] = None,
    write_back: Annotated[
        str | None,
        typer.Option(help="Of a database: the column or field that gets each row's current ID."),
    ] = None,
) -> None:
    """Give every vector of a file an ID, in order of arrival.

    Thresholds belong to an encoder and have no defaults: give all three, or a preset; a store that
    is there has its own. With a store each row is taken once: after a kill, or when the file has
    grown, the same command goes on where it was. Without one, memory is bounded by subclusters,
    and into a pipe go JSON lines, one decision each. With --write-back, rows of a database get
    their current IDs; after corrections, the same command writes them anew.

    Example: linkstream cluster voices.npy --store people.links --preset ge2e-windows
    """
    outputs.check(output)
    _check_way(store, save, payload)
    if write_back is not None:
        places.check(file, write_back, store)
    thresholds = (cluster_similarity, subcluster_similarity, pair_similarity_max)
    chosen = choosing.options(
        evidence=evidence,
        heal=heal,
        track_vectors=False if no_track else None,
        max_subclusters=max_subclusters,
        max_idle=max_idle,
    )
    with _opened(file, column, key, dimension, payload) as rows:
        choosing.check_dimension(preset, thresholds, rows)
        if store is None:
            from linkstream.cli import passing

            passing.cluster(rows, preset, thresholds, chosen, output=output, save=save)
        else:
            from linkstream.cli import storing

            if write_back is not None:
                places.prepare(rows, write_back, live=live)
            with storing.made_for_rows(store):
                opened = storing.open_store(store, preset, thresholds, chosen)
                storing.cluster(rows, opened, store, name=source, live=live, output=output)


def _check_way(store: Path | None, save: Path | None, payload: str | None) -> None:
    if save is not None:
        screen.check_writable(save)
    if store is not None and save is not None:
        raise ArgumentError(
            "--store and --save",
            expected="one of them",
            remedy="Leave --save out: a store is saved all the time.",
        )
    if store is None and payload is not None:
        raise ArgumentError(
            "--payload without --store",
            expected="a store to keep payloads in",
            remedy="Add --store people.links.",
        )


def _opened(
    file: str, column: str | None, key: str | None, dimension: int | None, payload: str | None
) -> Source:
    from linkstream.io import open_vectors

    wanted: Any = () if payload is None else [name.strip() for name in payload.split(",")]
    return open_vectors(file, column=column, key=key, dimension=dimension, payload=wanted)
