"""Arguments and options that several commands share, each said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

StorePath = Annotated[
    Path, typer.Argument(metavar="STORE", help="The store, such as people.links.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON, as into a pipe.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
ClusterName = Annotated[str, typer.Argument(metavar="CLUSTER", help="Its ID, or its name.")]

ClusterSimilarity = Annotated[float | None, typer.Option(help="T_c, in (0, 1).")]
SubclusterSimilarity = Annotated[float | None, typer.Option(help="T_s, in (0, 1).")]
PairSimilarityMax = Annotated[float | None, typer.Option(help="T_p, in [T_c², 1].")]
Preset = Annotated[
    str | None, typer.Option(help="Instead of thresholds: an encoder, such as arcface.")
]
Evidence = Annotated[
    str | None, typer.Option(help="What decides: nearest or cluster.", show_default="nearest")
]
Heal = Annotated[str | None, typer.Option(help="Put clusters right on the way: join or settle.")]
NoTrack = Annotated[
    bool,
    typer.Option(
        "--no-track", help="Know no vector by number: bounded memory, but nothing to undo or move."
    ),
]
MaxSubclusters = Annotated[
    int | None, typer.Option(min=1, help="Beyond so many, forget the least recently used.")
]
MaxIdle = Annotated[
    int | None, typer.Option(min=1, help="Forget who has not come for so many vectors.")
]
Column = Annotated[
    str | None,
    typer.Option(help="The column of a .parquet, .arrow, .jsonl or .csv that holds the vectors."),
]
Key = Annotated[str | None, typer.Option(help="Name of the array in a .npz.", show_default="X")]
Dimension = Annotated[
    int | None, typer.Option(min=1, help="Numbers a vector, where the source does not say it.")
]
Payload = Annotated[
    str | None,
    typer.Option(
        help="Columns to keep beside each vector, as text,file,time.", show_default="none"
    ),
]
