"""Routes about unsure vectors: the policy, and the vectors that are held."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from fastapi import APIRouter, Query
from starlette.responses import Response

from linkstream.service import policy_schemas
from linkstream.service.responses import json_response
from linkstream.service.routing import Here, N, route
from linkstream.store import Store
from linkstream.store.index import payloads_by_number
from linkstream.store.model import Model

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
        found = store.held(limit=limit, before=before)
        numbers = np.array([each.vector for each in found], dtype=np.int64)
        payloads = store.handle.read(lambda model: _payloads(model, numbers))
        return [
            {**each.to_dict(), "payload": payload}
            for each, payload in zip(found, payloads, strict=True)
        ]

    return json_response({"held": await session.read(work)})


def _payloads(model: Model, numbers: npt.NDArray[np.int64]) -> list[Any]:
    """Return the payloads of held vectors, which other reads refuse."""
    with model.steady():
        return payloads_by_number(model.journal, model.index, numbers)
