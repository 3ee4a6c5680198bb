"""Routes that change a namespace: vectors and corrections. Each answers after the commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from linkstream.clusterer.verbs import VERBS, Add, AddGroup, AddMany, Verb
from linkstream.engine.contract import Decision
from linkstream.errors import ArgumentError, UndoError
from linkstream.identity.rebuild_report import REPEATED
from linkstream.identity.settling import Settlement
from linkstream.service import confidence_schemas, policy_schemas, requests, schemas
from linkstream.service.requests import ARROW, JSON, NPY, RAW, VectorBody, header, query
from linkstream.service.responses import json_response
from linkstream.service.routes.proposals import propose
from linkstream.service.routing import (
    Here,
    N,
    entered,
    inline,
    key_of,
    route,
    sessions_of,
    settings_of,
)
from linkstream.service.sessions import Session
from linkstream.store import Store
from linkstream.store.write_requests import WriteRequest, request_of

_MANY = 256  # payloads or keys; more are checked in a thread
_BYTES = {"schema": {"type": "string", "format": "binary"}}

router = APIRouter()


# Verbs with a JSON body, at POST …/NAME

_ELSEWHERE = ("add", "add_many", "add_group", "settle", "rebuild")  # have routes of their own
Answer = Callable[[WriteRequest], dict[str, Any]]


def _events(call: WriteRequest) -> dict[str, Any]:
    before, event = call.events
    return {"before": before, "event": event}


def _moved(call: WriteRequest) -> dict[str, Any]:
    """Return the decision on one vector, or those on several with the events of the move."""
    if not isinstance(call.answer, list):
        found: dict[str, Any] = call.answer.to_dict()
        return found
    return {"decisions": [each.to_dict() for each in call.answer], **_events(call)}


# The answer of each verb: its schema in /openapi.json, and how it is made.
ANSWERS: dict[str, tuple[Any, Answer]] = {
    **dict.fromkeys((name for name in VERBS if name not in _ELSEWHERE), (schemas.Done, _events)),
    "assign": (schemas.Decision, lambda call: call.answer.to_dict()),
    "move": (schemas.Decision | schemas.Moved, _moved),
    "accept": (policy_schemas.Policy, lambda call: call.answer.to_dict()),
    "enrol": (schemas.ClusterId, lambda call: {"cluster": call.answer}),
}


def _add_route(name: str, schema: Any, answer: Answer) -> None:
    model = schemas.BODIES[name]

    async def change(request: Request, session: Here) -> Response:
        body = await requests.json_body(request, settings_of(request), model)
        requests.check_name(getattr(body, "name", None), settings_of(request))
        verb, step = schemas.to_verb(name, body), getattr(body, "step", False)
        own = {name: getattr(body, name, None) for name in ("at", "ids")}
        call = request_of(verb, key=key_of(request), step=step, **own)
        call.check = _check_nothing_since(getattr(body, "after", None))
        seen = getattr(body, "clusters", None)
        call.clusters = None if seen is None else (seen[0], seen[1])
        requests.check_size(call.rows, settings_of(request))
        await session.write(call, 0 if call.rows is None else call.rows.nbytes)
        return json_response(answer(call))

    change.__name__, change.__doc__ = name, VERBS[name].meaning()
    route(router, "POST", f"{N}/{name}", "write", body=model, answer=schema)(change)


def _check_nothing_since(after: int | None) -> Callable[[int], None] | None:
    def check(event: int) -> None:
        if event != after:
            seen = f"event {event} comes next, not {after}"
            remedy = "Read the events since then; to= takes back everything from one event on."
            raise UndoError(seen, expected="no event since", remedy=remedy)

    return None if after is None else check


# Vectors


def _content(*names: str) -> dict[str, Any]:
    found = [inline(schemas.BODIES[name]) for name in names]
    schema = found[0] if len(found) == 1 else {"oneOf": found}
    return {JSON: {"schema": schema}, RAW: _BYTES, NPY: _BYTES, ARROW: _BYTES}


def _query(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    found = {"name": name, "in": "query", "required": False, "schema": schema}
    return {**found, "description": description}


_NAMESPACE = {
    "name": "namespace",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,62}$"},
}
_DIMENSION = _query("dimension", {"type": "integer", "minimum": 2}, "Dimension of raw vectors.")
_GROUP = _query("group", {"type": "string"}, "Vectors of one group get different clusters.")
_ONE = _query("one", {"type": "boolean"}, "The body is one vector; the answer is its decision.")


@route(
    router,
    "POST",
    f"{N}/vectors",
    "write",
    body=_content("add_many", "add"),
    answer=schemas.Ids | schemas.Decision,
    hot=True,
    extra={"parameters": [_NAMESPACE, _DIMENSION, _GROUP, _ONE]},
)
async def add_vectors(request: Request) -> Response:
    """Add vectors in order, all or none; answer with their IDs after the commit.

    With "vector" instead of "vectors" one vector is added, and the answer is its decision.
    """
    session = await entered(request, "write")
    sessions_of(request).check_queue(session)  # before the body is read
    body = await requests.vector_body(request, settings_of(request))
    parameters = query(request)
    group = body.group if body.group is not None else parameters.get("group")
    if not (body.one or _is_one(parameters.get("one"), body)):
        verb: Verb = AddMany(body.rows, weight=body.weights, group=group)
        return await _add(request, session, verb, body)
    single = isinstance(body.weights, list) and len(body.weights) == 1
    weight = body.weights[0] if single else body.weights
    return await _add(request, session, Add(body.rows[0], weight=weight, group=group), body)


@route(
    router,
    "POST",
    f"{N}/groups",
    "write",
    body=_content("add_group"),
    answer=schemas.Ids,
    extra={"parameters": [_DIMENSION, _GROUP]},
)
async def add_group(request: Request, session: Here) -> Response:
    """Add vectors seen together, such as faces of one photo; each gets a different cluster."""
    body = await requests.vector_body(request, settings_of(request), grouped=True)
    parameters = query(request)
    named = parameters.get("group", parameters.get("key"))  # key: the old name
    group = body.group if body.group is not None else named
    verb = AddGroup(body.rows, group=group, weight=body.weights)
    return await _add(request, session, verb, body)


@route(
    router,
    "POST",
    f"{N}/ask",
    "read",
    body=_content("add_many", "add"),
    answer=schemas.Predictions,
    extra={"parameters": [_DIMENSION]},
)
async def ask(request: Request, session: Here) -> Response:
    """Return the cluster that each vector would get; −1 for a new one. Nothing changes."""
    body = await requests.vector_body(request, settings_of(request), alone=True)
    _check_alone(body)
    ids = await session.read(lambda store: store.predict(body.rows))
    return _ids(request, None, ids)


@route(
    router,
    "POST",
    f"{N}/predict_proba",
    "read",
    body=_content("add_many", "add"),
    answer=confidence_schemas.Probabilities,
    extra={"parameters": [_DIMENSION]},
)
async def predict_proba(
    request: Request,
    session: Here,
    limit: Annotated[
        int, Query(ge=1, le=1000, description="Clusters of each vector, beside new.")
    ] = 5,
) -> Response:
    """Return the clusters that each vector may belong to, with probabilities; −1 for a new one."""
    body = await requests.vector_body(request, settings_of(request), alone=True)
    _check_alone(body)
    found = await session.read(lambda store: store.predict_proba(body.rows, limit=limit))
    clusters = [list(each) for each in found]
    shares = [list(each.values()) for each in found]
    return json_response({"clusters": clusters, "probabilities": shares})


def _check_alone(body: VectorBody) -> None:
    """Raise ArgumentError if more than vectors came with a request that stores nothing."""
    sent = (*body.columns.values(), body.group)
    if any(each is not None for each in sent) or body.weights != 1.0:
        seen = "payloads, times, keys, weights or a group in a request that stores nothing"
        raise ArgumentError(seen, expected="vectors alone", remedy="Leave the other fields out.")


async def _add(request: Request, session: Session, verb: Verb, body: VectorBody) -> Response:
    """Add vectors and answer; what comes with many vectors is checked in a thread."""

    def make() -> WriteRequest:
        return request_of(verb, key=key_of(request), **body.columns)

    many = len(body.rows) > _MANY and any(each is not None for each in body.columns.values())
    call = await sessions_of(request).run_read(make) if many else make()
    await session.write(call, body.rows.nbytes)
    if isinstance(call.answer, Decision):
        return json_response(call.answer.to_dict())
    return _ids(request, call.first, call.answer)


def _is_one(text: str | None, body: VectorBody) -> bool:
    if text not in ("1", "true"):
        return False
    if len(body.rows) != 1:
        raise ArgumentError(
            f"one=1 and {len(body.rows)} vectors", expected="one", remedy="Leave one=1 out."
        )
    return True


def _ids(request: Request, first: int | None, ids: Any) -> Response:
    if RAW in (header(request, b"accept") or ""):
        headers = {} if first is None else {"X-First-Vector": str(first)}
        body = np.ascontiguousarray(ids, dtype="<i8").tobytes()
        return Response(body, media_type=RAW, headers=headers)
    found = {"ids": ids.tolist()}
    return json_response(found if first is None else {"first": first, **found})


for _name, (_schema, _answer) in ANSWERS.items():
    _add_route(_name, _schema, _answer)


# The whole namespace


@route(router, "POST", f"{N}/settle", "write", body=schemas.BODIES["settle"], answer=dict[str, Any])
async def settle(request: Request, session: Here) -> Response:
    """Compare all subclusters with one another; propose joins and cuts, or `apply` them."""
    body = await requests.json_body(request, settings_of(request), schemas.BODIES["settle"])
    verb: Any = schemas.to_verb("settle", body)
    if not verb.apply:
        return await propose(request, session, verb)
    call = await session.write(request_of(verb, key=key_of(request)))
    found = call.answer or await session.read(_settled_before)
    return json_response(found.to_dict())


@route(
    router, "POST", f"{N}/rebuild", "write", body=schemas.BODIES["rebuild"], answer=dict[str, Any]
)
async def rebuild(request: Request, session: Here) -> Response:
    """Cluster all vectors again; propose what changes, or `apply` it."""
    body = await requests.json_body(request, settings_of(request), schemas.BODIES["rebuild"])
    verb: Any = schemas.to_verb("rebuild", body)
    if not verb.apply:
        return await propose(request, session, verb)
    call = request_of(verb, key=key_of(request))
    requests.check_size(call.rows, settings_of(request))
    await session.write(call, 0 if call.rows is None else call.rows.nbytes)
    return json_response((call.answer or REPEATED).to_dict())


def _settled_before(store: Store) -> Settlement:
    """Return the answer to a call that was repeated with its key."""
    n_clusters = store.n_clusters
    return Settlement((), (), n_clusters, n_clusters, applied=True)


@route(router, "POST", f"{N}/compact", "admin", body=schemas.Empty, answer=schemas.Done)
async def compact(request: Request, session: Here) -> Response:
    """Erase the bytes of what was removed, forgotten or undone; no undo goes beyond this."""
    await requests.json_body(request, settings_of(request), schemas.Empty)
    await session.read(Store.compact)
    event = await session.read(lambda store: store.n_events)
    return json_response({"before": event, "event": event})
