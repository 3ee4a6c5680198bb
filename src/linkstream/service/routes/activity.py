"""Routes about what changed and when: the activity, counts over time, times of events."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from linkstream.clusterer.notable import KINDS
from linkstream.errors import ArgumentError
from linkstream.service import activity, activity_schemas
from linkstream.service.responses import json_response
from linkstream.service.routing import Here, N, route
from linkstream.store import Store

MANY = 1_000  # numbers in one request
_WHOLE = "^([0-9]{1,15}(,[0-9]{1,15})*)?$"

Before = Annotated[int | None, Query(ge=0, le=2**53, description="The `next` of the page before.")]
Kinds = Annotated[str, Query(max_length=100, description=f"Of {', '.join(KINDS)}; with commas.")]
Numbers = Annotated[str, Query(max_length=16 * MANY, pattern=_WHOLE, description="With commas.")]

router = APIRouter()


@route(router, "GET", f"{N}/activity", "read", answer=activity_schemas.Activity)
async def changes_so_far(
    session: Here,
    before: Before = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 30,
    kind: Kinds = "",
    by: Literal["people", "stream", ""] = "",
) -> Response:
    """Return the changes by people and by the stream itself, newest first, with their times."""
    kinds = _kinds(kind)
    automatic = None if not by else by == "stream"

    def work(store: Store) -> dict[str, Any]:
        wanted: dict[str, Any] = {"kinds": kinds, "automatic": automatic}
        return activity.page(store, session.index, before=before, limit=limit, **wanted)

    await session.remember()
    return json_response(await session.read(work))


@route(router, "GET", f"{N}/timeline", "read", answer=activity_schemas.Timeline)
async def timeline(
    session: Here,
    seconds: Annotated[int | None, Query(ge=1, le=2**31, description="All without it.")] = None,
    bins: Annotated[int, Query(ge=1, le=1_000)] = 120,
) -> Response:
    """Return the numbers of vectors and clusters over time, in bins of equal width up to now."""
    await session.remember()
    return json_response(await session.read(lambda _: session.index.timeline(seconds, bins)))


@route(router, "GET", f"{N}/moments", "read", answer=activity_schemas.Moments)
async def moments(session: Here, events: Numbers = "", vectors: Numbers = "") -> Response:
    """Return when events happened and when vectors came, by number, as the service saw it."""
    asked = _numbers("events", events), _numbers("vectors", vectors)
    await session.remember()
    found = await session.read(lambda _: session.index.moments(*asked))
    names = ("events", "vectors")
    answer = {
        name: [each.to_dict() for each in some] for name, some in zip(names, found, strict=True)
    }
    return json_response(answer)


def _kinds(text: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(filter(None, text.split(","))))
    for kind in found:
        if kind not in KINDS:
            seen, expected = f"kind={kind!r:.40}", f"some of {', '.join(KINDS)}"
            raise ArgumentError(seen, expected=expected, remedy="Leave kind= out for all of them.")
    return found


def _numbers(name: str, text: str) -> list[int]:
    found = [int(each) for each in text.split(",") if each]
    if len(found) > MANY:
        seen, remedy = f"{len(found)} {name}", "Ask in several requests."
        raise ArgumentError(seen, expected=f"at most {MANY}", remedy=remedy)
    return found
