"""Namespaces, and how they and the service are."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from linkstream import Space, Thresholds, __version__
from linkstream.errors import ArgumentError
from linkstream.service import bodies, shapes
from linkstream.service.answers import Refusal, plain
from linkstream.service.routing import (
    Here,
    N,
    Namespace,
    grant_of,
    route,
    sessions_of,
    settings_of,
)
from linkstream.service.sessions import Session
from linkstream.store import Store

_FIGURES = ("vectors", "subclusters", "clusters", "dimension")

router = APIRouter()


@route(router, "GET", "/healthz", "none", answer=shapes.Health)
async def health(request: Request) -> Response:
    """Whether the service is well; names nothing."""
    sessions = sessions_of(request)
    status = "degraded" if sessions.broken else "ok"
    names = await sessions.aside(sessions.names)
    return plain({"status": status, "version": __version__, "namespaces": len(names)})


@route(router, "GET", "/v1/whoami", "any", answer=shapes.Whoami)
async def whoami(request: Request) -> Response:
    """What the caller's token allows."""
    scopes = dict(grant_of(request).scopes)
    return plain({"scopes": scopes, "tokens": request.app.state.tokens.any})


@route(router, "GET", "/v1/namespaces", "any", answer=shapes.Namespaces)
async def namespaces(request: Request) -> Response:
    """All namespaces that the caller may read; figures of those in use."""
    sessions, mine = sessions_of(request), grant_of(request).namespaces
    names = await sessions.aside(sessions.names)
    seen = [name for name in names if mine is None or name in mine]
    return plain({"namespaces": [await _summary(sessions.open.get(n), n) for n in seen]})


@route(router, "PUT", N, "admin", body=shapes.Namespace, answer=dict[str, Any])
async def make(request: Request, namespace: Namespace) -> Response:
    """Make a namespace: 201; 200 where it is there just so; 409 where it is another."""
    said = await bodies.said(request, settings_of(request), shapes.Namespace)
    sessions = sessions_of(request)
    try:
        session, new = await sessions.make(namespace, options(said, settings_of(request)))
    except ArgumentError as error:
        if namespace not in await sessions.aside(sessions.names):
            raise
        raise Refusal(
            409, "exists", error.seen, expected=error.expected, remedy=error.remedy
        ) from None
    return plain(await session.read(_about), status=201 if new else 200)


@route(router, "GET", N, "read", answer=dict[str, Any])
async def about(
    session: Here,
    hash: Annotated[bool, Query(description="With state_hash.")] = False,  # noqa: A002
) -> Response:
    """What the namespace holds, and what it was made with."""
    return plain(await session.read(lambda store: _about(store, hashed=hash)))


@route(router, "GET", f"{N}/stats", "read", answer=dict[str, Any])
async def stats(request: Request, session: Here) -> Response:
    """Figures, rates, and who waits; counted since the service started."""
    figures = await session.live.sample()
    load, started = asdict(session.load), sessions_of(request).started
    counted = {"taken": session.live.taken, "corrections": session.live.corrections}
    waiting = {"requests": load["calls"], "bytes": load["size"]}
    seconds = round(time.time() - started, 3)
    return plain({**figures, **counted, "waiting": waiting, "seconds": seconds})


@route(router, "GET", f"{N}/space", "read", answer=dict[str, Any])
async def space(session: Here) -> Response:
    """The space of the vectors: dimension, encoder, whether a mean is taken off."""
    return plain(await session.read(_space))


@route(router, "GET", f"{N}/thresholds", "read", answer=dict[str, Any])
async def thresholds(session: Here) -> Response:
    """The three thresholds, and the options that decide with them."""
    about = await session.read(Store.info)
    kept = {name: about[name] for name in ("evidence", "heal", "min_size")}
    return plain({**about["thresholds"], **kept})


@route(router, "GET", "/metrics", "read", opened="open_metrics")
async def metrics(request: Request) -> Response:
    """Figures for Prometheus."""
    found: Response = request.app.state.metrics.text()
    return found


def options(said: shapes.Namespace, settings: Any) -> dict[str, Any]:
    """What `Store.open` is told of a namespace."""
    if (said.thresholds is None) == (said.preset is None):
        raise ArgumentError(
            "both thresholds and a preset" if said.preset else "neither thresholds nor a preset",
            expected="one of them",
            remedy="Thresholds belong to an encoder: take a preset, or tune them.",
        )
    chosen = said.model_dump(exclude_none=True)
    if said.thresholds is not None:
        chosen["thresholds"] = Thresholds(**said.thresholds.model_dump())
    if said.space is not None:
        mean = said.space.mean
        bodies.check_size(None if mean is None else np.empty((1, len(mean)), np.float32), settings)
        chosen["space"] = Space(
            mean=None if mean is None else np.array(mean),
            model=said.space.model,
            dimension=said.space.dimension,
        )
    return chosen


async def _summary(session: Session | None, name: str) -> dict[str, Any]:
    figures = {} if session is None else await session.live.sample()
    return {"name": name, **{each: figures.get(each) for each in _FIGURES}}


def _about(store: Store, *, hashed: bool = False) -> dict[str, Any]:
    found = {name: value for name, value in store.info().items() if name != "path"}
    return {**found, "state_hash": store.state_hash()} if hashed else found


def _space(store: Store) -> dict[str, Any]:
    space = store.space
    mean = space.mean is not None
    return {"dimension": store.dimension, "model": space.model, "mean": mean}
