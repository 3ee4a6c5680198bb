"""Routes that read a namespace: clusters, vectors, explanations, reviews, the map, events."""

from __future__ import annotations

import contextlib
from itertools import islice
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from linkstream.clusterer.core import Core
from linkstream.engine.comparison import edge_figures
from linkstream.errors import RemovedError, UnknownIdError
from linkstream.identity.timeline import History
from linkstream.service import margins, requests, schemas
from linkstream.service.live import EventStream, first_of
from linkstream.service.projection import Layout, Projection
from linkstream.service.requests import RAW
from linkstream.service.responses import json_bytes, json_response
from linkstream.service.routes.people import Shown, seen_at, shown, view
from linkstream.service.routes.vectors import Id, with_payloads
from linkstream.service.routing import Here, N, route, sessions_of, settings_of
from linkstream.service.slow_reads import Cancel
from linkstream.store import Store
from linkstream.store.own_columns import reference

# The memory that slow reads may use, in sizes of the sums of all subclusters.
COPIES = {
    "labels": 0.0,
    "suggestions": 2.0,
    "review": 2.0,
    "margins": 6.0,
    "map": 3.0,
}
NODES = 500  # subclusters in the answer about one cluster
SHOWN = 3  # vectors in the answer about a subcluster
_DIGITS = 3  # decimals of a position on the map
_STREAM = {"200": {"description": "OK", "content": {"text/event-stream": {}}}}

Number = Annotated[int, Query(ge=0, le=2**53)]
Words = Annotated[
    str,
    Query(
        pattern="^([0-9]{1,16}|id:.{1,512})$",
        description="A number; of a vector also `id:` and its own key.",
    ),
]
Limit = Annotated[int, Query(ge=1, le=200)]
Since = Annotated[int, Query(ge=0, le=2**53, description="Number of the first event.")]

router = APIRouter()


# Clusters and vectors


@route(router, "GET", f"{N}/clusters/{{cluster}}", "read", answer=dict[str, Any])
async def cluster(
    session: Here,
    cluster: Id,
    brief: Annotated[
        bool, Query(description="Without subclusters, history and exemplars.")
    ] = False,
    exemplars: Shown = 0,
) -> Response:
    """Return a cluster with its subclusters, edges, history and exemplars.

    The ID of a cluster that was joined into another gives that one, with the history of the ID.
    """
    about = _brief if brief else _details
    return json_response(await session.read(lambda store: about(store, cluster, exemplars)))


@route(router, "GET", f"{N}/clusters/{{cluster}}/vectors", "read", answer=schemas.Members)
async def members(
    session: Here,
    cluster: Id,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    before: Annotated[int | None, Query(ge=0, le=2**53)] = None,
) -> Response:
    """Return vectors of a cluster with their payloads, newest first."""
    return json_response(await session.read(lambda store: _members(store, cluster, limit, before)))


@route(router, "POST", f"{N}/resolve", "read", body=schemas.Resolve, answer=schemas.Resolved)
async def resolve(request: Request, session: Here) -> Response:
    """Return the live cluster that each ID stands for; −1 if it is gone."""
    body = await requests.json_body(request, settings_of(request), schemas.Resolve)
    live = await session.read(lambda store: store.resolve_many(body.ids))
    return json_response({"ids": live.tolist()})


@route(router, "GET", f"{N}/subclusters/{{subcluster}}", "read", answer=dict[str, Any])
async def subcluster(session: Here, subcluster: Id) -> Response:
    """Return a subcluster and some of its vectors."""
    return json_response(await session.read(lambda store: _subcluster(store, subcluster)))


@route(router, "GET", f"{N}/labels", "read", answer=dict[str, Any])
async def labels(request: Request, session: Here) -> Response:
    """Return the current cluster of every vector, in order of arrival; −1 if removed."""
    raw = RAW in request.headers.get("accept", "")

    def work(store: Store, _: Cancel) -> bytes:
        found = store.labels()
        return found.astype("<i8").tobytes() if raw else json_bytes({"labels": found.tolist()})

    body = await session.ask(request, ("labels", raw), work, copies=COPIES["labels"])
    return Response(body, media_type=RAW) if raw else _answer(body)


# Explanations, reviews and the map


@route(router, "POST", f"{N}/explain", "read", body=schemas.Explain, answer=dict[str, Any])
async def explain(request: Request, session: Here) -> Response:
    """Explain the decision that a vector would get. Nothing changes."""
    body = await requests.json_body(request, settings_of(request), schemas.Explain)
    why = await session.read(lambda store: store.explain(body.vector, limit=body.limit))
    return json_response({**why.to_dict(), "words": str(why)})


@route(router, "GET", f"{N}/explain", "read", answer=dict[str, Any])
async def explain_pair(session: Here, a: Words, b: Words, of: schemas.Of = "vectors") -> Response:
    """Explain why two are in one cluster, or are not."""
    two = reference(a), reference(b)
    why = await session.read(lambda store: store.explain_pair(*two, of=of))
    return json_response({**why.to_dict(), "words": str(why)})


@route(router, "GET", f"{N}/suggestions", "read", answer=dict[str, Any])
async def suggestions(request: Request, session: Here, limit: Limit = 20) -> Response:
    """Return pairs of clusters that may be one, and the edges with the least margin."""

    def work(store: Store, cancel: Cancel) -> bytes:
        with store.handle.reporting(cancel.check):
            merges = [each.to_dict() for each in store.suggest_merges(limit)]
            splits = [each.to_dict() for each in store.suggest_splits(limit)]
        return json_bytes({"merges": merges, "splits": splits})

    key = "suggestions", limit
    return _answer(await session.ask(request, key, work, copies=COPIES["suggestions"]))


@route(router, "GET", f"{N}/review", "read", answer=dict[str, Any])
async def review(request: Request, session: Here, limit: Limit = 20) -> Response:
    """Return the questions whose answers would correct the most vectors, with examples."""

    def work(store: Store, cancel: Cancel) -> bytes:
        return json_bytes({"questions": _questions(store, cancel, limit)})

    key = "review", limit
    return _answer(await session.ask(request, key, work, copies=COPIES["review"]))


@route(router, "GET", f"{N}/margins", "read", answer=dict[str, Any])
async def margins_(request: Request, session: Here) -> Response:
    """Return the margins of edges and of pairs of clusters, for other thresholds too."""
    recent = session.live.recent()

    def work(store: Store, _: Cancel) -> bytes:
        return json_bytes(margins.figures(store, recent=recent))

    return _answer(await session.ask(request, "margins", work, copies=COPIES["margins"]))


@route(router, "GET", f"{N}/map", "read", answer=dict[str, Any])
async def map_(request: Request, session: Here) -> Response:
    """Return the positions of subclusters on the map; they do not move as vectors are added."""

    def work(store: Store, cancel: Cancel) -> bytes:
        return json_bytes(_map(store, session.projection, cancel))

    return _answer(await session.ask(request, "map", work, copies=COPIES["map"]))


# Changes so far


@route(router, "GET", f"{N}/corrections", "read", answer=dict[str, Any])
async def corrections(session: Here) -> Response:
    """Return the corrections by same, different and move that are in force."""
    found = await session.read(Store.corrections)
    return json_response({"corrections": [each.to_dict() for each in found]})


@route(router, "GET", f"{N}/steps", "read", answer=schemas.Steps)
async def steps(session: Here, limit: Annotated[int, Query(ge=1, le=1000)] = 20) -> Response:
    """Return the steps that undo takes back, newest first; before them those to redo."""
    found = await session.read(lambda store: store.steps(limit))
    return json_response({"steps": [step.to_dict() for step in found]})


@route(router, "GET", f"{N}/events", "read", answer=schemas.Events)
async def events(
    session: Here, since: Since = 0, limit: Annotated[int, Query(ge=1, le=1000)] = 1000
) -> Response:
    """Return typed and numbered events: docs/events.md."""
    return json_response(await session.read(lambda store: _page(store, since, limit)))


@route(router, "GET", f"{N}/events/stream", "read", extra={"responses": _STREAM})
async def follow(request: Request, session: Here, since: Since = 0) -> Any:
    """Stream events as server-sent events; resumes by Last-Event-ID."""
    begin = first_of(request.headers.get("last-event-id"), since)
    return EventStream(request, session.live.events(begin), sessions_of(request))


@route(router, "GET", f"{N}/live", "read", extra={"responses": _STREAM})
async def live(request: Request, session: Here) -> Any:
    """Stream counts and the newest decisions, for the dashboard, as server-sent events."""
    return EventStream(request, session.live.digest(), sessions_of(request))


# How the answers are made


def _answer(body: bytes) -> Response:
    return Response(body, media_type="application/json")


def _brief(store: Store, asked: int, exemplars: int) -> dict[str, Any]:
    live = store.resolve(asked)
    if live < 0:
        return {"id": live, "asked": asked, "cluster": None}
    mine = store.cluster(live)
    first, last = seen_at(store, [mine.first_seen, mine.last_seen])
    more = {"exemplars": shown(store, [live], exemplars)[live]} if exemplars else {}
    about = {**view(mine), "since": first, "time": last, **more}
    return {"id": live, "asked": asked, "cluster": about}


def _details(store: Store, asked: int, exemplars: int) -> dict[str, Any]:
    brief, history = _brief(store, asked, exemplars), store.history(asked)
    live = brief["id"]
    found: dict[str, Any] = {
        **brief,
        "nodes": [],
        "edges": [],
        "truncated": False,
        "history": history.to_dict(),
        "story": str(history).splitlines(),
        "chapters": _chapters(store, history),
        "exemplars": None,
    }
    if live < 0:
        return found
    marked = store.exemplars(live).to_dict() if store.track_vectors else None
    return {**found, **_tree(store, live), "exemplars": marked}


def _chapters(store: Store, history: History) -> list[dict[str, Any]]:
    """Return the history in words, each line with the time of the vector that came last."""
    times = seen_at(store, [each.vector for each in history.chapters])
    return [
        {"event": each.sequence, "vector": each.vector, "time": time, "words": words}
        for each, words, time in zip(history.chapters, history.words(), times, strict=True)
    ]


def _tree(store: Store, cluster: int) -> dict[str, Any]:
    """Return the largest subclusters of a cluster, and the edges between them."""
    state = store.cluster_state(cluster)
    rows = np.argsort(-state.counts, kind="stable")
    shown = rows[:NODES]
    columns = (state.numbers, state.counts, state.first_seen, state.last_seen)
    names = ("subcluster", "count", "first_seen", "last_seen")
    values = zip(*(column[shown].tolist() for column in columns), strict=True)
    similarity, threshold = edge_figures(state)
    within = np.isin(state.edges, state.numbers[shown]).all(axis=1)
    edges = [
        {
            "subclusters": state.edges[row].tolist(),
            "similarity": float(similarity[row]),
            "threshold": float(threshold[row]),
            "margin": float(similarity[row] - threshold[row]),
            "firm": int(state.edge_rules[row]),
        }
        for row in np.flatnonzero(within).tolist()
    ]
    nodes = [dict(zip(names, row, strict=True)) for row in values]
    return {"nodes": nodes, "edges": edges, "truncated": len(shown) < len(rows)}


def _members(store: Store, cluster: int, limit: int, before: int | None) -> dict[str, Any]:
    try:
        numbers = store.members(cluster, limit=limit + 1, before=before).tolist()
    except RemovedError:  # the cluster is gone
        numbers = []
    page = numbers[:limit]
    more = page[-1] if len(numbers) > limit else None
    return {"vectors": with_payloads(store, page), "next": more}


def _subcluster(store: Store, number: int) -> dict[str, Any]:
    cluster, members = store.handle.read_core(lambda core: _held(core, number))
    state = store.cluster_state(cluster)
    row = int(np.searchsorted(state.numbers, number))
    return {
        "subcluster": number,
        "cluster": cluster,
        "name": store.cluster(cluster).name,
        "count": int(state.counts[row]),
        "first_seen": int(state.first_seen[row]),
        "last_seen": int(state.last_seen[row]),
        "vectors": with_payloads(store, members),
    }


def _held(core: Core, number: int) -> tuple[int, list[int]]:
    """Return the cluster of a subcluster, and its newest vectors."""
    cluster = -1 if core.engine is None else core.running().cluster_of(number)
    if cluster < 0:
        seen = f"subcluster {number}"
        remedy = "It may have merged with another; see the map for those that exist."
        raise UnknownIdError(seen, expected="an existing subcluster", remedy=remedy)
    if not core.track_vectors:
        return cluster, []
    return cluster, core.running().held_by(number, SHOWN, 2**62).tolist()


def _questions(store: Store, cancel: Cancel, limit: int) -> list[dict[str, Any]]:
    with store.handle.reporting(cancel.check):
        asked = store.review_queue(limit)
    cancel.check()
    names = _names(store, {cluster for question in asked for cluster in question.clusters})
    return [
        {
            **question.to_dict(),
            "names": [names.get(cluster) for cluster in question.clusters],
            "shown": [with_payloads(store, list(side)) for side in question.vectors],
        }
        for question in asked
    ]


def _names(store: Store, clusters: set[int]) -> dict[int, str | None]:
    """Return the names of clusters; one that is gone since has none."""
    found = {}
    for number in sorted(clusters):
        with contextlib.suppress(UnknownIdError, RemovedError):
            found[number] = store.cluster(number).name
    return found


def _map(store: Store, projection: Projection, cancel: Cancel) -> dict[str, Any]:
    layout: Layout = projection.update(store.state(), check=cancel.check)
    cancel.check()
    given = store.handle.read_core(lambda core: dict(core.up_to_date_ledger().names))
    names = {str(cluster): name for cluster, name in given.items()}
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


def _page(store: Store, since: int, limit: int) -> dict[str, Any]:
    found = store.with_probabilities(list(islice(store.journal.events(since), limit)))
    following = found[-1].sequence + 1 if found else since
    return {"events": [event.to_dict() for event in found], "next": following}
