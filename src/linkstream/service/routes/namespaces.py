"""Routes of namespaces as a whole, and of the service."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from linkstream import Space, Thresholds, __version__
from linkstream.clusterer.confidence import model_of
from linkstream.errors import ArgumentError
from linkstream.plots.reliability import bins
from linkstream.service import confidence_schemas, requests, schemas
from linkstream.service.responses import Refusal, json_bytes, json_response
from linkstream.service.routing import Here, N, Namespace, grant_of, route, sessions_of, settings_of
from linkstream.service.sessions import Session
from linkstream.service.slow_reads import Cancel
from linkstream.store import Store

_HASH_COPIES = 3.0  # memory that a hash needs, in sizes of the sums of all subclusters
_COUNTS = ("vectors", "subclusters", "clusters", "dimension")

router = APIRouter()


@route(router, "GET", "/healthz", "none", answer=schemas.Health)
async def health(request: Request) -> Response:
    """Return whether all namespaces work, why not, the version, the number of namespaces.

    The HTTP status is 200 as long as the service answers, also if it is degraded.
    """
    sessions = sessions_of(request)
    full, names = await sessions.run_in_thread(
        lambda: (sessions.health.check_disk(), sessions.names())
    )
    reasons = sessions.health.reasons(disk_full=full)
    status = {"status": "degraded" if reasons else "ok", "reasons": reasons}
    return json_response({**status, "version": __version__, "namespaces": len(names)})


@route(router, "GET", "/v1/whoami", "any", answer=schemas.Whoami)
async def whoami(request: Request) -> Response:
    """Return the scopes of the caller's token."""
    scopes = dict(grant_of(request).scopes)
    return json_response({"scopes": scopes, "tokens": request.app.state.tokens.any})


@route(router, "GET", "/v1/namespaces", "any", answer=schemas.Namespaces)
async def namespaces(request: Request) -> Response:
    """Return the namespaces that the caller may read, with the counts of those in use."""
    sessions, mine = sessions_of(request), grant_of(request).namespaces
    names = await sessions.run_in_thread(sessions.names)
    readable = [name for name in names if mine is None or name in mine]
    return json_response(
        {"namespaces": [await _summary(sessions.open.get(n), n) for n in readable]}
    )


@route(router, "PUT", N, "admin", body=schemas.Namespace, answer=dict[str, Any])
async def make(request: Request, namespace: Namespace) -> Response:
    """Make a namespace: 201, 200 if it exists with these options, 409 with others."""
    body = await requests.json_body(request, settings_of(request), schemas.Namespace)
    sessions = sessions_of(request)
    try:
        session, new = await sessions.make(namespace, _options(body, settings_of(request)))
    except ArgumentError as error:
        if namespace not in await sessions.run_in_thread(sessions.names):
            raise
        raise _other_options(error, namespace, str(sessions.path(namespace))) from None
    return json_response(await session.read(_about), status=201 if new else 200)


def _other_options(error: ArgumentError, namespace: str, path: str) -> Refusal:
    """Return the answer to options that the namespace at a path does not have."""
    expected, remedy = error.expected, error.remedy
    if path in error.seen:  # the options differ; else one of them cannot be
        expected = "the options that the namespace was made with: GET it to see them"
        remedy = "Leave them out, or make a namespace with another name."
    seen = error.seen.replace(path, f"the namespace {namespace!r}")
    return Refusal(409, "exists", seen, expected=expected, remedy=remedy)


@route(router, "GET", N, "read", answer=dict[str, Any])
async def about(
    request: Request,
    session: Here,
    hash: Annotated[bool, Query(description="Add state_hash.")] = False,  # noqa: A002
) -> Response:
    """Return the counts of the namespace, and the options it was made with."""
    if not hash:
        return json_response(await session.read(_about))

    def work(store: Store, _: Cancel) -> bytes:
        return json_bytes({**_about(store), "state_hash": store.state_hash()})

    body = await session.ask(request, "hash", work, copies=_HASH_COPIES)
    return Response(body, media_type="application/json")


@route(router, "GET", f"{N}/stats", "read", answer=dict[str, Any])
async def stats(request: Request, session: Here) -> Response:
    """Return counts, rates and waiting requests, counted since the service started."""
    figures = await session.live.sample()
    load, started = asdict(session.load), sessions_of(request).started
    counted = {"taken": session.live.taken, "corrections": session.live.corrections}
    waiting = {"requests": load["calls"], "bytes": load["size"]}
    seconds = round(time.time() - started, 3)
    return json_response({**figures, **counted, "waiting": waiting, "seconds": seconds})


@route(router, "GET", f"{N}/space", "read", answer=dict[str, Any])
async def space(session: Here) -> Response:
    """Return the space of the vectors: dimension, encoder, whether a mean is subtracted."""
    return json_response(await session.read(_space))


@route(router, "GET", f"{N}/thresholds", "read", answer=dict[str, Any])
async def thresholds(session: Here) -> Response:
    """Return the three thresholds, and the options that affect decisions."""
    about = await session.read(Store.info)
    kept = {name: about[name] for name in ("evidence", "heal", "min_size")}
    return json_response({**about["thresholds"], **kept})


@route(router, "GET", f"{N}/confidence", "read", answer=confidence_schemas.Confidence)
async def confidence(
    session: Here,
    brief: Annotated[bool, Query(description="Without single answers and the model.")] = False,
) -> Response:
    """Return why probabilities may be unknown, what they rest on, and whether they hold."""
    told = await session.read(lambda store: store.confidence)
    told_and_right = [np.array(column) for column in zip(*told.answered, strict=True)]
    found = {
        **told.summary(),
        "bins": [each._asdict() for each in bins(*told_and_right)] if told.answered else [],
        "answered": [] if brief else [list(each) for each in told.answered],
        "model": None if told.model is None or brief else told.model.to_plain(),
    }
    return json_response(found)


@route(router, "GET", "/metrics", "read", opened="open_metrics")
async def metrics(request: Request) -> Response:
    """Return metrics for Prometheus."""
    found: Response = request.app.state.metrics.text()
    return found


def _options(body: schemas.Namespace, settings: Any) -> dict[str, Any]:
    """Return the arguments of `Store.open` for a namespace."""
    if (body.thresholds is None) == (body.preset is None):
        seen = "both thresholds and a preset" if body.preset else "neither thresholds nor a preset"
        remedy = "Send either thresholds or a preset."
        raise ArgumentError(seen, expected="one of them", remedy=remedy)
    chosen = body.model_dump(exclude_none=True)
    if body.thresholds is not None:
        chosen["thresholds"] = Thresholds(**body.thresholds.model_dump())
    if body.rebuild_thresholds is not None:
        chosen["rebuild_thresholds"] = Thresholds(**body.rebuild_thresholds.model_dump())
    if isinstance(body.confidence, dict):
        chosen["confidence"] = model_of(body.confidence)
    if body.space is not None:
        mean = body.space.mean
        requests.check_size(
            None if mean is None else np.empty((1, len(mean)), np.float32), settings
        )
        chosen["space"] = Space(
            mean=None if mean is None else np.array(mean),
            model=body.space.model,
            dimension=body.space.dimension,
        )
    return chosen


async def _summary(session: Session | None, name: str) -> dict[str, Any]:
    figures = {} if session is None else await session.live.sample()
    return {"name": name, **{each: figures.get(each) for each in _COUNTS}}


def _about(store: Store) -> dict[str, Any]:
    return {name: value for name, value in store.info().items() if name != "path"}


def _space(store: Store) -> dict[str, Any]:
    space = store.space
    mean = space.mean is not None
    return {"dimension": store.dimension, "model": space.model, "mean": mean}
