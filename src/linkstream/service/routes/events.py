"""What happened, from the journal or as it happens."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from linkstream.service import shapes
from linkstream.service.answers import plain
from linkstream.service.live import EventStream, first_of
from linkstream.service.routing import Here, N, route, sessions_of
from linkstream.store import Store

Since = Annotated[int, Query(ge=0, le=2**53, description="The first event to tell of.")]
_STREAM = {"200": {"description": "OK", "content": {"text/event-stream": {}}}}

router = APIRouter()


@route(router, "GET", f"{N}/events", "read", answer=shapes.Events)
async def events(
    session: Here,
    since: Since = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
) -> Response:
    """Every change, typed and numbered: docs/events.md."""
    return plain(await session.read(lambda store: _page(store, since, limit)))


@route(router, "GET", f"{N}/events/stream", "read", extra={"responses": _STREAM})
async def follow(request: Request, session: Here, since: Since = 0) -> Any:
    """Every change as it happens, as server-sent events; resumes by Last-Event-ID."""
    begin = first_of(request.headers.get("last-event-id"), since)
    return EventStream(request, session.live.events(begin), sessions_of(request))


@route(router, "GET", f"{N}/live", "read", extra={"responses": _STREAM})
async def live(request: Request, session: Here) -> Any:
    """Figures and the newest decisions, for people to look at, as server-sent events."""
    return EventStream(request, session.live.digest(), sessions_of(request))


def _page(store: Store, since: int, limit: int) -> dict[str, Any]:
    found = list(islice(store.journal.events(since), limit))
    following = found[-1].sequence + 1 if found else since
    return {"events": [event.to_dict() for event in found], "next": following}
