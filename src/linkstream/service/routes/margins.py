"""Route of examples of what other thresholds would change."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from linkstream.engine.state import State
from linkstream.paper.thresholds import Thresholds
from linkstream.service import margin_examples, requests
from linkstream.service.margin_examples import Example
from linkstream.service.responses import json_bytes
from linkstream.service.routes.vectors import with_payloads
from linkstream.service.routing import Here, N, route
from linkstream.service.slow_reads import Cancel
from linkstream.store import Store

COPIES = 6.0  # memory that it may use, in sizes of the sums of all subclusters
SHOWN = 3  # vectors of each side

Similarity = Annotated[float, Query(ge=0.0, le=1.0, allow_inf_nan=False)]

router = APIRouter()


@route(router, "GET", f"{N}/margins/examples", "read", answer=dict[str, Any])
async def margin_examples_(
    request: Request,
    session: Here,
    cluster_similarity: Similarity,
    subcluster_similarity: Similarity,
    pair_similarity_max: Similarity,
    limit: Annotated[int, Query(ge=1, le=50)] = 6,
) -> Response:
    """Return clusters that would join and edges that would fail with other thresholds."""
    three = cluster_similarity, subcluster_similarity, pair_similarity_max
    thresholds = Thresholds(*three)

    def work(store: Store, cancel: Cancel) -> bytes:
        state = store.state()
        joined = margin_examples.joined(state, thresholds, limit)
        cancel.check()
        parted = margin_examples.parted(state, thresholds, limit)
        return json_bytes(
            {
                "joined": _told(joined, lambda cluster: _of_cluster(store, state, cluster)),
                "parted": _told(parted, lambda node: _of_subcluster(store, state, node)),
            }
        )

    body = await session.ask(request, ("examples", *three, limit), work, copies=COPIES)
    return Response(body, media_type=requests.JSON)


def _told(found: tuple[int, list[Example]], side: Any) -> dict[str, Any]:
    count, examples = found
    return {
        "count": count,
        "examples": [{**asdict(each), "a": side(each.a), "b": side(each.b)} for each in examples],
    }


def _of_cluster(store: Store, state: State, cluster: int) -> dict[str, Any]:
    nodes = state.numbers[state.clusters == cluster]
    size = int(state.counts[state.clusters == cluster].sum())
    return _side(store, state, cluster, nodes, size)


def _of_subcluster(store: Store, state: State, node: int) -> dict[str, Any]:
    row = int(np.searchsorted(state.numbers, node))
    cluster, size = int(state.clusters[row]), int(state.counts[row])
    return _side(store, state, cluster, np.array([node]), size)


def _side(store: Store, state: State, cluster: int, nodes: Any, size: int) -> dict[str, Any]:
    """Return a cluster or a part of one, with its newest vectors."""
    members = np.flatnonzero(np.isin(state.vectors, nodes))[::-1][:SHOWN].tolist()
    return {
        "cluster": cluster,
        "name": store.cluster(cluster).name,
        "size": size,
        "vectors": with_payloads(store, members),
    }
