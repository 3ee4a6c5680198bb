"""Routes about single vectors, by number or by their own keys."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from linkstream.clusterer.core import Core
from linkstream.errors import NotTrackedError
from linkstream.service import requests, schemas
from linkstream.service.responses import json_response
from linkstream.service.routing import Here, N, route, settings_of
from linkstream.store import Store
from linkstream.store.own_columns import KEY_MAX

Id = Annotated[int, Path(ge=0, le=2**53)]

router = APIRouter()


@route(router, "GET", f"{N}/vectors/{{vector}}", "read", answer=dict[str, Any])
async def vector(session: Here, vector: Id) -> Response:
    """Return a vector by number: its cluster, subcluster, key, time and payload.

    Cluster and subcluster are −1 while the vector is held.
    """
    return json_response(await session.read(lambda store: _vector(store, vector)))


@route(router, "GET", f"{N}/vectors", "read", answer=dict[str, Any])
async def vector_by_key(
    session: Here,
    id: Annotated[str, Query(min_length=1, max_length=KEY_MAX, description="Its own key.")],
) -> Response:
    """Return a vector by its own key: its number, cluster, subcluster, time and payload."""
    return json_response(await session.read(lambda store: _vector(store, id)))


@route(router, "POST", f"{N}/lookup", "read", body=schemas.Lookup, answer=schemas.NamedVectors)
async def lookup(request: Request, session: Here) -> Response:
    """Return the number, key and time of vectors that are given by number or by key."""
    body = await requests.json_body(request, settings_of(request), schemas.Lookup)
    return json_response(await session.read(lambda store: _found(store, body.vectors)))


# How the answers are made


def with_payloads(store: Store, numbers: list[int]) -> list[dict[str, Any]]:
    """Return vectors with their keys, times and payloads."""
    payloads = zip(store.described(numbers), store.payloads(numbers), strict=True)
    return [{**own, "payload": payload} for own, payload in payloads]


def _found(store: Store, vectors: list[int | str]) -> dict[str, Any]:
    return {"vectors": store.described(vectors)}


def _vector(store: Store, vector: int | str) -> dict[str, Any]:
    if not store.track_vectors:
        seen = "a vector by number in a namespace that does not track vectors"
        remedy = "Store the IDs that adding returns."
        raise NotTrackedError(seen, expected="a namespace made with track_vectors", remedy=remedy)
    number = store.number(vector)  # refuses unknown and removed vectors
    cluster, node = store.handle.read_core(lambda core: _place(core, number))
    return {**with_payloads(store, [number])[0], "cluster": cluster, "subcluster": node}


def _place(core: Core, number: int) -> tuple[int, int]:
    """Return the cluster and the subcluster of a vector; −1 for both while it is held."""
    node = core.running().holder(number)
    return (core.running().cluster_of(node), node) if node >= 0 else (-1, -1)
