"""Vectors in, and questions about vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from starlette.responses import Response

from linkstream.engine.contract import Decision
from linkstream.errors import ArgumentError
from linkstream.service import bodies, shapes
from linkstream.service.answers import plain
from linkstream.service.bodies import ARROW, JSON, NPY, RAW, Given
from linkstream.service.heads import head, query
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
from linkstream.store import write_requests
from linkstream.store.write_requests import WriteRequest

_MANY = 256  # payloads
_BYTES = {"schema": {"type": "string", "format": "binary"}}


def _content(*models: Any) -> dict[str, Any]:
    shapes_ = [inline(model) for model in models]
    schema = shapes_[0] if len(shapes_) == 1 else {"oneOf": shapes_}
    return {JSON: {"schema": schema}, RAW: _BYTES, NPY: _BYTES, ARROW: _BYTES}


def _query(name: str, schema: dict[str, Any], words: str) -> dict[str, Any]:
    found = {"name": name, "in": "query", "required": False, "schema": schema}
    return {**found, "description": words}


_NAMESPACE = {
    "name": "namespace",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,62}$"},
}
_DIMENSION = _query(
    "dimension", {"type": "integer", "minimum": 2}, "How many float32 numbers a raw vector has."
)
_GROUP = _query("group", {"type": "string"}, "Vectors of one group get different clusters.")
_ONE = _query("one", {"type": "boolean"}, "A body of one vector, answered by a decision.")
_GROUP_KEY = _query("key", {"type": "string"}, "Groups of one key are one group.")

router = APIRouter()


@route(
    router,
    "POST",
    f"{N}/vectors",
    "write",
    body=_content(shapes.Vectors, shapes.OneVector),
    answer=shapes.Ids | shapes.Decision,
    hot=True,
    extra={"parameters": [_NAMESPACE, _DIMENSION, _GROUP, _ONE]},
)
async def add_vectors(request: Request) -> Response:
    """Take vectors in order; their IDs, once all are safe. All of them or none.

    With "vector" instead of "vectors" one is taken, and the answer is the whole decision.
    """
    session = await entered(request, "write")
    sessions_of(request).check_line(session)  # before a body is read in vain
    given = await bodies.vectors(request, settings_of(request))
    asked = query(request)
    group = given.group if given.group is not None else asked.get("group")
    one = given.one or _is_one(asked.get("one"), given)
    ticket = await _adding(request, "add" if one else "add_many", given, group)
    await session.write(ticket, given.rows.nbytes)
    if isinstance(ticket.answer, Decision):
        return plain(ticket.answer.to_dict())
    return _ids(request, ticket.first, ticket.answer)


@route(
    router,
    "POST",
    f"{N}/groups",
    "write",
    body=_content(shapes.Grouped),
    answer=shapes.Ids,
    extra={"parameters": [_DIMENSION, _GROUP_KEY]},
)
async def add_group(request: Request, session: Here) -> Response:
    """Take vectors seen together, as faces of one photo are: all get different clusters."""
    given = await bodies.vectors(request, settings_of(request), grouped=True)
    key = given.group if given.group is not None else query(request).get("key")
    ticket = await _adding(request, "add_group", given, key)
    await session.write(ticket, given.rows.nbytes)
    return _ids(request, ticket.first, ticket.answer)


@route(router, "POST", f"{N}/enrol", "write", body=shapes.Enrolled, answer=shapes.Found)
async def enrol(request: Request, session: Here) -> Response:
    """Vectors of somebody known: prototypes of a cluster with that name."""
    said = await bodies.said(request, settings_of(request), shapes.Enrolled)
    bodies.check_name(said.name, settings_of(request))
    ticket = write_requests.enrol_request(said.name, said.vectors, said.locked, key_of(request))
    bodies.check_size(ticket.rows, settings_of(request))
    await session.write(ticket, 0 if ticket.rows is None else ticket.rows.nbytes)
    return plain({"cluster": ticket.answer})


@route(
    router,
    "POST",
    f"{N}/ask",
    "read",
    body=_content(shapes.Vectors, shapes.OneVector),
    answer=shapes.Answers,
    extra={"parameters": [_DIMENSION]},
)
async def ask(request: Request, session: Here) -> Response:
    """Which cluster each vector would get; nothing changes. −1: a new one."""
    given = await bodies.vectors(request, settings_of(request), alone=True)
    if (given.payloads, given.group, given.weights) != (None, None, 1.0):
        raise ArgumentError(
            "payloads, weights or a group, and nothing is kept",
            expected="vectors alone",
            remedy="Leave them out.",
        )
    ids = await session.read(lambda store: store.predict(given.rows))
    return _ids(request, None, ids)


async def _adding(request: Request, verb: str, given: Given, group: str | None) -> WriteRequest:
    """The call that brings the vectors; many payloads are looked at off the event loop."""
    rows = given.rows[0] if verb == "add" else given.rows

    def made() -> WriteRequest:
        return write_requests.add_request(
            verb, rows, given.weights, group, given.payloads, key_of(request)
        )

    if given.payloads is None or len(given.payloads) <= _MANY:
        return made()
    return await sessions_of(request).reading(made)


def _is_one(said: str | None, given: Given) -> bool:
    if said not in ("1", "true"):
        return False
    if len(given.rows) != 1:
        raise ArgumentError(
            f"one=1 and {len(given.rows)} vectors", expected="one", remedy="Leave one=1 out."
        )
    return True


def _ids(request: Request, first: int | None, ids: Any) -> Response:
    if bodies.RAW in (head(request, b"accept") or ""):
        headers = {} if first is None else {"X-First-Vector": str(first)}
        body = np.ascontiguousarray(ids, dtype="<i8").tobytes()
        return Response(body, media_type=bodies.RAW, headers=headers)
    found = {"ids": ids.tolist()}
    return plain(found if first is None else {"first": first, **found})
