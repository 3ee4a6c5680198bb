"""Commands about unsure vectors: accept, held and assign."""

from __future__ import annotations

import json
from typing import Annotated, Any

from typer import Argument

from linkstream.cli import screen, stores
from linkstream.cli.options import Limit, StorePath
from linkstream.cli.outcome import usage_error
from linkstream.cli.terminal_text import harmless, short

_FRESH = -1  # stands for a cluster of its own
_PAYLOAD = 80  # characters of a payload that are shown


def accept(
    store: StorePath,
    probability: Annotated[
        float | None, Argument(metavar="[PROBABILITY]", help="The least of a sure decision.")
    ] = None,
    new: Annotated[float | None, "The least of a sure new cluster; 0 takes all of them."] = None,
    unsure: Annotated[str, "What to do with others: hold them, or let them weigh less."] = "hold",
    weight: Annotated[float, "How much they weigh then, from 0.05, below 1."] = 0.5,
) -> None:
    """Say what is done with vectors whose decision is unsure.

    Held vectors are in no cluster. They are asked again as the stream goes on; `held` shows them,
    `assign` and `forget --vector` decide on them. Without a probability all vectors are taken as
    they come, and those that are held now.

    Example: linkstream accept people.links 0.95
    """
    with stores.writing(store) as opened:
        policy = stores.perform(
            opened, "accept", probability=probability, new=new, unsure=unsure, weight=weight
        )
    words = "All vectors are taken as they come."
    if policy.unsure != "take":
        kept = "held" if policy.unsure == "hold" else f"given a weight of {policy.weight:.2g}"
        words = f"Decisions below {policy.probability} (new clusters: {policy.new}) are {kept}."
    screen.answer(policy.to_dict(), words)


def held(
    store: StorePath,
    limit: Limit = 20,
    before: Annotated[int | None, "Only vectors with a lower number."] = None,
) -> None:
    """List the vectors that wait for a decision, and what they would get.

    Example: linkstream held people.links
    """
    with stores.reading(store) as opened:
        found = opened.held(limit=limit, before=before)
    if screen.wrote_json(each.to_dict() for each in found):
        return
    console = screen.console()
    for each in found:
        where = "a new cluster" if each.cluster == _FRESH else f"cluster {each.cluster}"
        sure = "unknown" if each.probability is None else f"{each.probability:.2f}"
        key = "" if each.id is None else f" ({harmless(each.id)})"
        shown = "" if each.payload is None else f": {_shown(each.payload)}"
        console.print(f"vector {each.vector}{key}: {where}, probability {sure}{shown}")
    if found:
        console.print(f"\nTo decide on the first: linkstream assign {store} {found[0].vector}")
    else:
        console.print("No vector waits for a decision.")


def _shown(payload: Any) -> str:
    return short(json.dumps(payload, ensure_ascii=False), _PAYLOAD)


def assign(
    store: StorePath,
    vector: Annotated[
        str, Argument(metavar="VECTOR", help="Its number in the stream, or its own key.")
    ],
    cluster: Annotated[
        str | None, Argument(metavar="[CLUSTER]", help="Its ID, or its name.")
    ] = None,
    new: Annotated[bool, "Put it into a cluster of its own."] = False,
) -> None:
    """Decide on a vector that is held.

    In a given cluster it stays. Without a cluster it goes where the tests say now.

    Example: linkstream assign people.links 7 6
    """
    if new and cluster is not None:
        raise usage_error(f"--new and cluster {cluster}", "one of them", "Leave one of them out.")
    with stores.writing(store) as opened:
        number = stores.vector(opened, vector)
        target = None if cluster is None else stores.cluster_id(opened, cluster)
        target = _FRESH if new else target
        decision = stores.perform(opened, "assign", vector=number, cluster=target)
        words = f"Vector {number} is in {stores.called(opened, decision.cluster)} now."
    record = {"vector": number, "cluster": decision.cluster, "subcluster": decision.subcluster}
    screen.answer(record, words)
