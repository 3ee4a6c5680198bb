"""What people look at: reasons, suggestions, reviews, the map, the margins."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from linkstream.service import bodies, margins, shapes
from linkstream.service.answers import plain
from linkstream.service.projection import Layout, Projection
from linkstream.service.routes.clusters import shown
from linkstream.service.routing import Here, N, route, settings_of
from linkstream.store import Store

Limit = Annotated[int, Query(ge=1, le=200)]
End = Annotated[int, Query(ge=0, le=2**53)]
_DIGITS = 3  # of a place on the map

router = APIRouter()


@route(router, "POST", f"{N}/explain", "read", body=shapes.Asked, answer=dict[str, Any])
async def explain(request: Request, session: Here) -> Response:
    """Why a vector would get the answer it would get; nothing changes."""
    said = await bodies.said(request, settings_of(request), shapes.Asked)
    why = await session.read(lambda store: store.explain(said.vector, limit=said.limit))
    return plain({**why.to_dict(), "words": str(why)})


@route(router, "GET", f"{N}/explain", "read", answer=dict[str, Any])
async def explain_pair(session: Here, a: End, b: End, of: shapes.Of = "vectors") -> Response:
    """Why two are, or are not, in one cluster."""
    why = await session.read(lambda store: store.explain_pair(a, b, of=of))
    return plain({**why.to_dict(), "words": str(why)})


@route(router, "GET", f"{N}/suggestions", "read", answer=dict[str, Any])
async def suggestions(session: Here, limit: Limit = 20) -> Response:
    """Pairs of clusters that may be one, and edges that hold by the least margin."""
    merges = await session.read(lambda store: store.suggest_merges(limit))
    splits = await session.read(lambda store: store.suggest_splits(limit))
    told = {"merges": [each.to_dict() for each in merges]}
    return plain({**told, "splits": [each.to_dict() for each in splits]})


@route(router, "GET", f"{N}/review", "read", answer=dict[str, Any])
async def review(session: Here, limit: Limit = 20) -> Response:
    """The questions whose answers would put most right, with vectors to look at."""
    return plain({"questions": await session.read(lambda store: _questions(store, limit))})


@route(router, "GET", f"{N}/margins", "read", answer=dict[str, Any])
async def margins_(session: Here) -> Response:
    """By how much edges hold and pairs of clusters miss, for what-if."""
    recent = session.live.recent()
    return plain(await session.read(lambda store: margins.figures(store, recent=recent)))


@route(router, "GET", f"{N}/map", "read", answer=dict[str, Any])
async def map_(session: Here) -> Response:
    """Subclusters in the plane. Points stay where they are as vectors come."""
    async with session.mapping:
        return plain(await session.read(lambda store: _map(store, session.projection)))


def _questions(store: Store, limit: int) -> list[dict[str, Any]]:
    asked = store.review_queue(limit)
    names = {each.id: each.name for each in store.clusters()} if asked else {}
    return [
        {
            **question.to_dict(),
            "names": [names.get(cluster) for cluster in question.clusters],
            "shown": [shown(store, list(side)) for side in question.vectors],
        }
        for question in asked
    ]


def _map(store: Store, projection: Projection) -> dict[str, Any]:
    layout: Layout = projection.update(store.state())
    names = {str(each.id): each.name for each in store.clusters() if each.name is not None}
    return {
        "version": store.n_events,
        "nodes": {
            "subcluster": layout.subcluster.tolist(),
            "cluster": layout.cluster.tolist(),
            "count": layout.count.tolist(),
            "x": np.round(layout.x, _DIGITS).tolist(),
            "y": np.round(layout.y, _DIGITS).tolist(),
        },
        "edges": {"a": layout.a.tolist(), "b": layout.b.tolist()},
        "names": names,
        "left_out": layout.left_out,
    }
