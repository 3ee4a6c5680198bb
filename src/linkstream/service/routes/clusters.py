"""Clusters, their members, and single vectors."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from linkstream.clusterer import Cluster
from linkstream.errors import NotTrackedError, UnknownIdError
from linkstream.identity.suggestions import edge_figures
from linkstream.service import shapes
from linkstream.service.answers import plain
from linkstream.service.bodies import RAW
from linkstream.service.routing import Here, N, route
from linkstream.store import Store

NODES = 500  # subclusters told of one cluster
SHOWN = 3  # vectors shown of a subcluster

Id = Annotated[int, Path(ge=0, le=2**53)]

router = APIRouter()


@route(router, "GET", f"{N}/clusters", "read", answer=shapes.Clusters)
async def clusters(
    session: Here,
    order: Literal["size", "id", "recent"] = "size",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    offset: Annotated[int, Query(ge=0, le=2**53)] = 0,
    q: Annotated[str, Query(max_length=200, description="Part of a name, or an ID.")] = "",
) -> Response:
    """A page of clusters: the biggest, the oldest or the last seen first."""
    found = await session.read(Store.clusters)
    wanted = [each for each in found if _fits(each, q)]
    wanted.sort(key=_ORDERS[order])
    page = [view(each) for each in wanted[offset : offset + limit]]
    return plain({"total": len(wanted), "clusters": page})


@route(router, "GET", f"{N}/clusters/{{cluster}}", "read", answer=dict[str, Any])
async def cluster(
    session: Here,
    cluster: Id,
    brief: Annotated[bool, Query(description="Only what it is, not its story.")] = False,
) -> Response:
    """All about a cluster: its tree of subclusters, its story, vectors to look at.

    An ID that was joined into another gives that one; the story is of the ID asked for.
    """
    told = _briefly if brief else _all_about
    return plain(await session.read(lambda store: told(store, cluster)))


@route(router, "GET", f"{N}/clusters/{{cluster}}/vectors", "read", answer=shapes.Members)
async def members(
    session: Here,
    cluster: Id,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    before: Annotated[int | None, Query(ge=0, le=2**53)] = None,
) -> Response:
    """Vectors of a cluster, newest first, with what was attached to them."""
    return plain(await session.read(lambda store: _members(store, cluster, limit, before)))


@route(router, "GET", f"{N}/vectors/{{vector}}", "read", answer=dict[str, Any])
async def vector(session: Here, vector: Id) -> Response:
    """Where a vector is now, and what was attached to it."""
    return plain(await session.read(lambda store: _vector(store, vector)))


@route(router, "GET", f"{N}/subclusters/{{subcluster}}", "read", answer=dict[str, Any])
async def subcluster(session: Here, subcluster: Id) -> Response:
    """A subcluster, and some of its vectors."""
    return plain(await session.read(lambda store: _subcluster(store, subcluster)))


@route(router, "GET", f"{N}/labels", "read", answer=dict[str, Any])
async def labels(request: Request, session: Here) -> Response:
    """The cluster of every vector now, in order of arrival; −1 for one removed."""
    found = await session.read(Store.labels)
    if RAW in request.headers.get("accept", ""):
        return Response(found.astype("<i8").tobytes(), media_type=RAW)
    return plain({"labels": found.tolist()})


_ORDERS: dict[str, Any] = {
    "size": lambda each: (-each.size, each.id),
    "id": lambda each: each.id,
    "recent": lambda each: (-each.last_seen, each.id),
}


def view(cluster: Cluster) -> dict[str, Any]:
    """A cluster in a list."""
    return {**asdict(cluster), "subclusters": len(cluster.subclusters)}


def _fits(cluster: Cluster, words: str) -> bool:
    name = (cluster.name or "").casefold()
    return not words or words.casefold() in name or words == str(cluster.id)


def _briefly(store: Store, asked: int) -> dict[str, Any]:
    live = store.resolve(asked)
    mine = next((view(each) for each in store.clusters() if each.id == live), None)
    return {"id": live, "asked": asked, "cluster": mine}


def _all_about(store: Store, asked: int) -> dict[str, Any]:
    brief, history = _briefly(store, asked), store.history(asked)
    live = brief["id"]
    found: dict[str, Any] = {
        **brief,
        "nodes": [],
        "edges": [],
        "truncated": False,
        "history": history.to_dict(),
        "story": str(history).splitlines(),
        "exemplars": None,
    }
    if live < 0:
        return found
    exemplars = store.exemplars(live).to_dict() if store.track_vectors else None
    return {**found, **_tree(store, live), "exemplars": exemplars}


def _tree(store: Store, cluster: int) -> dict[str, Any]:
    """The subclusters of a cluster, the biggest first, and the edges between those told."""
    state = store.state()
    rows = np.flatnonzero(state.clusters == cluster)
    rows = rows[np.argsort(-state.counts[rows], kind="stable")]
    told = rows[:NODES]
    columns = (state.numbers, state.counts, state.first_seen, state.last_seen)
    names = ("subcluster", "count", "first_seen", "last_seen")
    values = zip(*(column[told].tolist() for column in columns), strict=True)
    similarity, threshold = edge_figures(state)
    within = np.isin(state.edges, state.numbers[told]).all(axis=1)
    edges = [
        {
            "subclusters": state.edges[place].tolist(),
            "similarity": float(similarity[place]),
            "threshold": float(threshold[place]),
            "margin": float(similarity[place] - threshold[place]),
            "firm": int(state.firm[place]),
        }
        for place in np.flatnonzero(within).tolist()
    ]
    nodes = [dict(zip(names, row, strict=True)) for row in values]
    return {"nodes": nodes, "edges": edges, "truncated": len(told) < len(rows)}


def _members(store: Store, cluster: int, limit: int, before: int | None) -> dict[str, Any]:
    live = store.resolve(cluster)
    numbers = np.flatnonzero(store.labels() == live)[::-1] if live >= 0 else np.empty(0, np.int64)
    if before is not None:
        numbers = numbers[numbers < before]
    page = numbers[:limit].tolist()
    more = page[-1] if len(numbers) > limit else None
    return {"vectors": shown(store, page), "next": more}


def shown(store: Store, numbers: list[int]) -> list[dict[str, Any]]:
    """Vectors with what was attached to them."""
    payloads = store.payloads(numbers)
    return [{"vector": n, "payload": p} for n, p in zip(numbers, payloads, strict=True)]


def _vector(store: Store, vector: int) -> dict[str, Any]:
    if not store.track_vectors:
        raise NotTrackedError(
            "a vector asked for by number, where they are not tracked",
            expected="a namespace made with track_vectors",
            remedy="Keep the IDs that adding answers with.",
        )
    payload = store.payloads([vector])[0]  # an unknown or removed one is refused here
    state = store.state()
    node = int(state.vectors[vector])
    row = int(np.searchsorted(state.numbers, node))
    cluster = int(state.clusters[row])
    return {"vector": vector, "cluster": cluster, "subcluster": node, "payload": payload}


def _subcluster(store: Store, number: int) -> dict[str, Any]:
    state = store.state()
    row = int(np.searchsorted(state.numbers, number))
    if row == len(state.numbers) or state.numbers[row] != number:
        raise UnknownIdError(
            f"subcluster {number}",
            expected="one that is there",
            remedy="It may have merged with another; the map tells those there are.",
        )
    cluster = int(state.clusters[row])
    name = next((each.name for each in store.clusters() if each.id == cluster), None)
    members = np.flatnonzero(state.vectors == number)[::-1][:SHOWN].tolist()
    return {
        "subcluster": number,
        "cluster": cluster,
        "name": name,
        "count": int(state.counts[row]),
        "first_seen": int(state.first_seen[row]),
        "last_seen": int(state.last_seen[row]),
        "vectors": shown(store, members),
    }
