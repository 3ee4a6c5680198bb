"""Routes about unsure vectors: the policy, and the vectors that are held."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from linkstream.service import policy_schemas
from linkstream.service.responses import json_response
from linkstream.service.routing import Here, N, route
from linkstream.store import Store

_BEFORE = Query(ge=0, le=2**53, description="Only vectors with a lower number.")

router = APIRouter()


@route(router, "GET", f"{N}/policy", "read", answer=policy_schemas.Policy)
async def policy(session: Here) -> Response:
    """Return what is done with unsure vectors."""
    found = await session.read(lambda store: store.policy)
    return json_response(found.to_dict())


@route(router, "GET", f"{N}/held", "read", answer=policy_schemas.Held)
async def held(
    session: Here,
    limit: Annotated[int, Query(ge=1, le=200)] = 20,
    before: Annotated[int | None, _BEFORE] = None,
) -> Response:
    """Return the vectors that wait for a decision, newest first, and what they would get now."""

    def work(store: Store) -> list[dict[str, Any]]:
        return [each.to_dict() for each in store.held(limit=limit, before=before)]

    return json_response({"held": await session.read(work)})
