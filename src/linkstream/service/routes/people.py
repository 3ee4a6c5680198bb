"""Routes by which people sort clusters: lists with exemplars, similar clusters, reasons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from linkstream.clusterer import Cluster, listing, near, standing
from linkstream.clusterer.core import Core
from linkstream.errors import ArgumentError, LinkstreamError, NotTrackedError, RemovedError
from linkstream.service import people_schemas
from linkstream.service.responses import json_bytes, json_response
from linkstream.service.routes.vectors import Id, with_payloads
from linkstream.service.routing import Here, N, route
from linkstream.service.slow_reads import Cancel
from linkstream.store import Store
from linkstream.store.model import Model
from linkstream.store.own_columns import microseconds, to_text

EXEMPLARS = 8
_AT_ONCE = 8  # clusters whose vectors to show are chosen between two writes
HITS = 500  # vectors whose clusters a search in payloads finds
MOVED = 500  # vectors of one question about near clusters

Shown = Annotated[
    int, Query(ge=0, le=EXEMPLARS, description="Vectors to show, the most central first.")
]

router = APIRouter()


@dataclass(frozen=True)
class Wanted:
    """What a list of clusters is to have; equal for equal questions."""

    order: str
    only: str | None
    since: str
    text: str
    page: tuple[int, int]
    exemplars: int


@route(router, "GET", f"{N}/clusters", "read", answer=people_schemas.Clusters)
async def clusters(
    request: Request,
    session: Here,
    order: Literal["size", "id", "recent", "name"] = "size",
    only: Annotated[
        Literal["unnamed", "named", "single", "ignored"] | None,
        Query(alias="filter", description="Only such clusters; single: of one vector."),
    ] = None,
    since: Annotated[
        str,
        Query(
            max_length=64,
            pattern="^([0-9]{1,16}|[0-9]{4}-.*)?$",
            description="Only clusters with a vector from this one on: its number, or a time.",
        ),
    ] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    offset: Annotated[int, Query(ge=0, le=2**53)] = 0,
    q: Annotated[
        str, Query(max_length=200, description="Part of a name, an ID, a key, or payload words.")
    ] = "",
    exemplars: Shown = 0,
) -> Response:
    """Return a page of clusters: the largest, the oldest, the last seen, or by name."""
    wanted = Wanted(order, only, since, q, (offset, limit), exemplars)

    def work(store: Store, cancel: Cancel) -> bytes:
        return json_bytes(_clusters(store, cancel, wanted))

    body = await session.ask(request, ("clusters", wanted), work, copies=0.0)
    return Response(body, media_type="application/json")


@route(router, "GET", f"{N}/nearest", "read", answer=people_schemas.NearClusters)
async def nearest(
    session: Here,
    cluster: Annotated[int | None, Query(ge=0, le=2**53)] = None,
    vectors: Annotated[
        str,
        Query(pattern="^([0-9]{1,16}(,[0-9]{1,16})*)?$", description="Numbers with commas."),
    ] = "",
    limit: Annotated[int, Query(ge=1, le=50)] = 8,
    exemplars: Shown = 0,
) -> Response:
    """Return the clusters most similar to a cluster, or to some vectors together."""
    numbers = [int(each) for each in vectors.split(",") if each]
    if (cluster is None) == (not numbers) or len(numbers) > MOVED:
        raise ArgumentError(
            f"cluster={cluster} and {len(numbers)} vectors",
            expected=f"a cluster, or 1 to {MOVED} vectors",
            remedy="Ask about one cluster, or about vectors that are to be moved.",
        )

    def work(store: Store) -> dict[str, Any]:
        read = store.handle.read_core
        if cluster is not None:
            found = read(lambda core: near.near_cluster(core, cluster, limit))
        else:
            found = read(lambda core: near.near_vectors(core, numbers, limit))
        chosen = shown(store, [each.cluster for each in found], exemplars)
        return {"clusters": [_near(store, each, chosen[each.cluster]) for each in found]}

    return json_response(await session.read(work))


@route(router, "GET", f"{N}/vectors/{{vector}}/why", "read", answer=dict[str, Any])
async def why(session: Here, vector: Id) -> Response:
    """Return why a stored vector is in its cluster, in numbers and in words."""

    def work(store: Store) -> dict[str, Any]:
        found = store.handle.read_core(lambda core: standing.standing(core, vector))
        return found.to_dict()

    return json_response(await session.read(work))


# How the answers are made


def view(cluster: Cluster, subclusters: int | None = None) -> dict[str, Any]:
    """Return a cluster as plain values, with the number of its subclusters."""
    count = len(cluster.subclusters) if subclusters is None else subclusters
    return {**asdict(cluster), "subclusters": count}


def seen_at(store: Store, numbers: list[int]) -> list[str | None]:
    """Return the times of vectors as texts, also of vectors that were removed since."""
    wanted = np.array(numbers, dtype=np.int64)
    return [to_text(time) for time in store.handle.read(lambda m: m.keyed.times(wanted)).tolist()]


def shown(
    store: Store, clusters: list[int], limit: int, check: Callable[[], None] = lambda: None
) -> dict[int, list[dict[str, Any]]]:
    """Return vectors of clusters to show, the most central first; none of one that is gone."""
    chosen: dict[int, tuple[int, ...]] = {}
    for start in range(0, len(clusters) if limit else 0, _AT_ONCE):
        check()
        some = clusters[start : start + _AT_ONCE]
        chosen |= store.handle.read_core(partial(_central, clusters=some, limit=limit))
    check()
    numbers = [number for each in chosen.values() for number in each]
    try:
        found = with_payloads(store, numbers)
    except RemovedError:  # a vector was removed meanwhile
        return {cluster: [] for cluster in clusters}
    plain = {e["vector"]: {"key": e["id"], "payload": e["payload"]} for e in found}
    return {
        cluster: [{"vector": number, **plain[number]} for number in chosen.get(cluster, ())]
        for cluster in clusters
    }


def _central(core: Core, clusters: list[int], limit: int) -> dict[int, tuple[int, ...]]:
    there = [each for each in clusters if core.running().has_cluster(each)]
    return {cluster: listing.exemplars(core, cluster, limit) for cluster in there}


def _clusters(store: Store, cancel: Cancel, wanted: Wanted) -> dict[str, Any]:
    found, searched = _elsewhere(store, wanted.text)
    cancel.check()
    now = store.handle.read_core(listing.clusters_now)
    rows = now.chosen(wanted.only, wanted.text, found)
    if wanted.since.isdigit():
        rows = rows & (now.table.last_seen >= int(wanted.since))
    elif wanted.since:
        rows = rows & np.isin(now.table.ids, _since(store, wanted.since))
    cancel.check()
    total, page = now.page(rows, wanted.order, *wanted.page)
    times = seen_at(store, [each.last_seen for each, _ in page])
    answer = [{**view(*each), "time": time} for each, time in zip(page, times, strict=True)]
    if wanted.exemplars:
        chosen = shown(store, [each["id"] for each in answer], wanted.exemplars, cancel.check)
        answer = [{**each, "exemplars": chosen[each["id"]]} for each in answer]
    return {"total": total, "searched": searched, "clusters": answer}


def _elsewhere(store: Store, text: str) -> tuple[set[int], list[str]]:
    """Return the clusters with a text as a key or in payloads, and what was searched."""
    if not text or not store.track_vectors:
        return set(), ["names"]
    found = {cluster for cluster in _quietly(lambda: [_of_key(store, text)]) if cluster >= 0}
    if not store.handle.description["search"]:
        return found, ["names", "keys"]
    words = text if '"' in text or text.endswith("*") else f"{text}*"
    hits = _quietly(lambda: [hit.cluster for hit in store.search(words, limit=HITS).hits])
    return found | {hit for hit in hits if hit >= 0}, ["names", "keys", "payloads"]


def _of_key(store: Store, key: str) -> int:
    number = store.number(key)
    return store.handle.read_core(lambda core: core.running().cluster_of(core.holder(number)))


def _quietly(work: Callable[[], list[int]]) -> list[int]:
    """Return what was found; nothing for a text that is no key, or no query."""
    try:
        return work()
    except LinkstreamError:
        return []


def _since(store: Store, moment: str) -> list[int]:
    """Return the clusters of the vectors with a time from a moment on."""
    if not store.track_vectors:
        seen = "a time in a namespace that does not track vectors"
        raise NotTrackedError(seen, expected="track_vectors", remedy="Leave since= out.")
    is_day = len(moment) == len("2026-01-31")
    first = microseconds(f"{moment}T00:00:00Z" if is_day else moment)
    return store.handle.read(lambda model: _clusters_since(model, first))


def _clusters_since(model: Model, first: int) -> list[int]:
    """Return the clusters of the vectors from a time on; held ones have none."""
    found = model.keyed.between(first, None).tolist()
    engine = model.links.core.running()
    nodes = {engine.holder(number) for number in found} - {-1}
    return [engine.cluster_of(node) for node in nodes]


def _near(store: Store, each: near.NearCluster, exemplars: list[dict[str, Any]]) -> dict[str, Any]:
    cluster = store.cluster(each.cluster)
    return {
        "id": each.cluster,
        "name": cluster.name,
        "size": cluster.size,
        "similarity": each.similarity,
        "margin": each.margin,
        "probability": each.probability,
        "apart": each.apart,
        "exemplars": exemplars,
    }
