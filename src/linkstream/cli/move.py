"""`linkstream move`: a vector belongs to another cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from linkstream.cli import opening, screen
from linkstream.cli.options import AsJson, ClusterName, StorePath


def move(
    store: StorePath,
    vector: Annotated[
        str, typer.Argument(metavar="VECTOR", help="Its number: its place in order of arrival.")
    ],
    cluster: ClusterName,
    as_json: AsJson = False,
) -> None:
    """Put a vector into another cluster, for good.

    What the vector contributed to its old cluster goes with it. What earlier corrections forbid is
    refused, and so is a cluster that was forgotten.

    Example: linkstream move people.links 7 6
    """
    with opening.writing(store) as opened:
        number = opening.number(vector)
        decision = opened.move(number, opening.cluster_id(opened, cluster))
        words = f"Vector {number} is in {opening.called(opened, decision.cluster)} now."
    record = {"vector": number, "cluster": decision.cluster, "subcluster": decision.subcluster}
    screen.answer(record, words, as_json=as_json)
