"""Routes that change a namespace: vectors and corrections. Each answers after the commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import Response

from linkstream.clusterer import verbs
from linkstream.engine.contract import Decision
from linkstream.errors import ArgumentError, UndoError
from linkstream.service import requests, schemas
from linkstream.service.requests import ARROW, JSON, NPY, RAW, VectorBody, header, query
from linkstream.service.responses import json_response
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
from linkstream.store import Store
from linkstream.store.write_requests import WriteRequest, request_of

_MANY = 256  # payloads; more are checked in a thread
_BYTES = {"schema": {"type": "string", "format": "binary"}}

router = APIRouter()


# Corrections: one table


@dataclass(frozen=True, slots=True)
class Verb:
    """A correction, at POST …/NAME.

    Attributes:
        body: the JSON body; its fields are the arguments of the call.
        summary: the description in /openapi.json.
        call: makes the call of the store from the body and the key; None passes the fields on.
        decides: whether the answer is a decision instead of the numbers of the events.
    """

    body: type[schemas.Body]
    summary: str
    call: Callable[[Any, str | None], WriteRequest] | None = None
    decides: bool = False


def _remove(body: schemas.Remove, key: str | None) -> WriteRequest:
    return request_of(verbs.Remove(body.vector), key=key)


def _undo(body: schemas.Undo, key: str | None) -> WriteRequest:
    call = request_of(verbs.Undo(to=body.to), step=body.step, key=key)
    after = body.after
    if after is not None:
        call.check = lambda event: _check_nothing_since(after, event)
    return call


def _check_nothing_since(after: int, event: int) -> None:
    if event != after:
        raise UndoError(
            f"event {event} comes next, not {after}",
            expected="no event since",
            remedy="Read the events since then; to= takes back everything from one event on.",
        )


VERBS = {
    "same": Verb(schemas.Pair, "Join two vectors, subclusters or clusters for good."),
    "different": Verb(schemas.Pair, "Keep two vectors, subclusters or clusters apart for good."),
    "move": Verb(schemas.Move, "Put a vector into another cluster for good.", decides=True),
    "retract": Verb(schemas.Retract, "Take back one correction and nothing that came after it."),
    "name": Verb(schemas.Name, "Name a cluster."),
    "rename": Verb(schemas.Rename, "Change the name of a cluster, or remove it."),
    "ignore": Verb(schemas.Ignore, "Leave a cluster out of suggestions and reviews, or end that."),
    "remove": Verb(schemas.Remove, "Remove a vector from the model, exactly.", _remove),
    "forget": Verb(schemas.Forget, "Remove a cluster and all its vectors."),
    "undo": Verb(
        schemas.Undo,
        "Take back the last change or vector, or everything from the event `to` on.\n\n"
        "With `step`, take back the whole last step: all that one command or one call did. "
        "With `after`, refuse with 409 if an event with that number or a higher one exists.",
        _undo,
    ),
    "redo": Verb(
        schemas.Empty,
        "Bring back what the last undo took; 409 if something else changed since.",
    ),
}


def _add_route(name: str, verb: Verb) -> None:
    async def change(request: Request, session: Here) -> Response:
        body = await requests.json_body(request, settings_of(request), verb.body)
        requests.check_name(getattr(body, "name", None), settings_of(request))
        key = key_of(request)
        call = (
            verb.call(body, key)
            if verb.call
            else request_of(verbs.VERBS[name].parse(body.model_dump()), key=key)
        )
        await session.write(call)
        if verb.decides:
            return json_response(call.answer.to_dict())
        before, event = call.events
        return json_response({"before": before, "event": event})

    change.__name__, change.__doc__ = name, verb.summary
    answer = schemas.Decision if verb.decides else schemas.Done
    route(router, "POST", f"{N}/{name}", "write", body=verb.body, answer=answer)(change)


# Vectors


def _content(*models: type[BaseModel]) -> dict[str, Any]:
    found = [inline(model) for model in models]
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
_GROUP_KEY = _query("key", {"type": "string"}, "Calls with the same key add to one group.")


@route(
    router,
    "POST",
    f"{N}/vectors",
    "write",
    body=_content(schemas.Vectors, schemas.OneVector),
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
    one = body.one or _is_one(parameters.get("one"), body)
    call = await _adding(request, "add" if one else "add_many", body, group)
    await session.write(call, body.rows.nbytes)
    if isinstance(call.answer, Decision):
        return json_response(call.answer.to_dict())
    return _ids(request, call.first, call.answer)


@route(
    router,
    "POST",
    f"{N}/groups",
    "write",
    body=_content(schemas.Grouped),
    answer=schemas.Ids,
    extra={"parameters": [_DIMENSION, _GROUP_KEY]},
)
async def add_group(request: Request, session: Here) -> Response:
    """Add vectors seen together, such as the faces of one photo: all get different clusters."""
    body = await requests.vector_body(request, settings_of(request), grouped=True)
    key = body.group if body.group is not None else query(request).get("key")
    call = await _adding(request, "add_group", body, key)
    await session.write(call, body.rows.nbytes)
    return _ids(request, call.first, call.answer)


@route(router, "POST", f"{N}/enrol", "write", body=schemas.Enrol, answer=schemas.ClusterId)
async def enrol(request: Request, session: Here) -> Response:
    """Add prototypes of a known identity to the cluster with that name."""
    body = await requests.json_body(request, settings_of(request), schemas.Enrol)
    requests.check_name(body.name, settings_of(request))
    verb = verbs.Enrol(body.name, body.vectors, locked=body.locked)
    call = request_of(verb, key=key_of(request))
    requests.check_size(call.rows, settings_of(request))
    await session.write(call, 0 if call.rows is None else call.rows.nbytes)
    return json_response({"cluster": call.answer})


@route(
    router,
    "POST",
    f"{N}/ask",
    "read",
    body=_content(schemas.Vectors, schemas.OneVector),
    answer=schemas.Predictions,
    extra={"parameters": [_DIMENSION]},
)
async def ask(request: Request, session: Here) -> Response:
    """Return the cluster that each vector would get; −1 for a new one. Nothing changes."""
    body = await requests.vector_body(request, settings_of(request), alone=True)
    if (body.payloads, body.group, body.weights) != (None, None, 1.0):
        raise ArgumentError(
            "payloads, weights or a group in a request that stores nothing",
            expected="vectors alone",
            remedy="Leave the other fields out.",
        )
    ids = await session.read(lambda store: store.predict(body.rows))
    return _ids(request, None, ids)


async def _adding(request: Request, verb: str, body: VectorBody, group: str | None) -> WriteRequest:
    """Make the call that adds vectors; many payloads are checked in a thread."""
    field, rows = ("x", body.rows[0]) if verb == "add" else ("X", body.rows)

    def make() -> WriteRequest:
        call = verbs.VERBS[verb].parse({field: rows, "weight": body.weights, "group": group})
        return request_of(call, payloads=body.payloads, key=key_of(request))

    if body.payloads is None or len(body.payloads) <= _MANY:
        return make()
    return await sessions_of(request).run_read(make)


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


for _name, _verb in VERBS.items():
    _add_route(_name, _verb)


# The whole namespace


@route(router, "POST", f"{N}/settle", "write", body=schemas.Settle, answer=dict[str, Any])
async def settle(request: Request, session: Here) -> Response:
    """Compare all subclusters; propose joins and cuts, or make them with `apply`.

    A call repeated with its idempotency key answers with an empty object.
    """
    body = await requests.json_body(request, settings_of(request), schemas.Settle)
    if not body.apply:
        return json_response((await session.read(Store.settle)).to_dict())
    call = await session.write(request_of(verbs.Settle(apply=True), key=key_of(request)))
    return json_response({} if call.answer is None else call.answer.to_dict())


@route(router, "POST", f"{N}/compact", "admin", body=schemas.Empty, answer=schemas.Done)
async def compact(request: Request, session: Here) -> Response:
    """Erase the bytes of what was removed, forgotten or undone; no undo goes beyond this."""
    await requests.json_body(request, settings_of(request), schemas.Empty)
    await session.read(Store.compact)
    event = await session.read(lambda store: store.n_events)
    return json_response({"before": event, "event": event})
