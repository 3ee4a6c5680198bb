"""Routes that work over a whole namespace and change nothing: what settle and rebuild would do."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from linkstream.clusterer.rebuild_memory import memory_needed
from linkstream.clusterer.verbs import Rebuild, Settle
from linkstream.service.responses import json_bytes
from linkstream.service.routing import Here, N, route
from linkstream.service.sessions import Session
from linkstream.service.slow_reads import Cancel
from linkstream.store import Store

_SETTLE_COPIES = 6.0  # memory that it may use, in sizes of the sums of all subclusters
_PARTITION_COPIES = 2.0  # the same, in sizes of all vectors as 32-bit integers

router = APIRouter()


@route(router, "GET", f"{N}/settle", "read", answer=dict[str, Any])
async def settle_proposals(request: Request, session: Here) -> Response:
    """Return the clusters that an offline pass over all subclusters would join and cut."""
    return await propose(request, session, Settle())


@route(router, "GET", f"{N}/rebuild", "read", answer=dict[str, Any])
async def rebuild_proposals(request: Request, session: Here) -> Response:
    """Return what clustering all vectors again would change."""
    return await propose(request, session, Rebuild())


async def propose(request: Request, session: Session, verb: Settle | Rebuild) -> Response:
    """Return what a verb that proposes would change."""

    def work(store: Store, cancel: Cancel) -> dict[str, Any]:
        method = getattr(store, verb.verb)
        found: dict[str, Any] = method(**vars(verb), progress=cancel.check).to_dict()
        return found

    asked = hashlib.sha256(json.dumps(verb.to_json()).encode()).digest()
    if isinstance(verb, Settle):
        return await _asked(request, session, work, verb.verb, asked, copies=_SETTLE_COPIES)
    size = memory_needed(*await session.sizes(), _wide(verb))
    return await _asked(request, session, work, verb.verb, asked, size=size)


@route(router, "GET", f"{N}/partition", "read", answer=dict[str, Any])
async def partition(request: Request, session: Here) -> Response:
    """Return the digest of the partition: equal sets in equal clusters have equal digests."""

    def work(store: Store, _cancel: Cancel) -> dict[str, Any]:
        return {"partition_hash": store.partition_hash()}

    n_vectors, _, dimension = await session.sizes()
    size = int(_PARTITION_COPIES * n_vectors * dimension * 4)
    return await _asked(request, session, work, "partition", size=size)


def _wide(verb: Rebuild) -> int | None:
    """Return the dimension of the vectors that come with a rebuild; None if there are none."""
    rows = verb.vectors
    if rows is None or not isinstance(rows, list):
        return None  # what is no list is refused later
    return max((len(row) for row in rows if isinstance(row, list)), default=0)


async def _asked(
    request: Request,
    session: Session,
    work: Callable[[Store, Cancel], dict[str, Any]],
    *key: object,
    **memory: Any,
) -> Response:
    def answered(store: Store, cancel: Cancel) -> bytes:
        return json_bytes(work(store, cancel))

    body = await session.ask(request, key, answered, **memory)
    return Response(body, media_type="application/json")
