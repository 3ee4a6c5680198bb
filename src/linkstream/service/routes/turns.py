"""Routes of recordings: segments of speech in, who spoke when out, live."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from linkstream.adapters.diarization import Turn
from linkstream.service import requests, schemas, turn_schemas
from linkstream.service.live import EventStream, first_of
from linkstream.service.recording import Recording, heard_of
from linkstream.service.recordings import NAME, Recordings, turn_record
from linkstream.service.responses import json_response
from linkstream.service.routing import Here, N, key_of, route, sessions_of, settings_of

_PARAMETERS = ("delay", "gap", "overlaps", "model")
_STREAM = {"200": {"description": "OK", "content": {"text/event-stream": {}}}}

Name = Annotated[
    str,
    Path(
        description="1 to 100 of A–Z, a–z, 0–9, ., _ and -.",
        json_schema_extra={"pattern": f"^{NAME.pattern}$", "example": "monday"},
    ),
]
Since = Annotated[int, Query(ge=0, le=2**53, description="Number of the first final turn.")]

router = APIRouter()


@route(router, "GET", f"{N}/turns", "read", answer=turn_schemas.Recordings)
async def recordings(request: Request, session: Here) -> Response:
    """Return the recordings that are in memory, without their turns."""
    found = _recordings(request).of(session)
    return json_response({"recordings": [each.to_dict() for each in found]})


@route(
    router,
    "POST",
    f"{N}/turns/{{recording}}",
    "write",
    body=turn_schemas.Segments,
    answer=turn_schemas.Final,
)
async def add_segments(request: Request, session: Here, recording: Name) -> Response:
    """Add segments of speech to a recording, which the first begin; return what became final."""
    body: Any = await requests.json_body(request, settings_of(request), turn_schemas.Segments)
    values = body.model_dump(include=body.model_fields_set & {*_PARAMETERS})
    heard = heard_of(body.times, body.vectors, body.groups, key_of(request))
    requests.check_size(heard.rows, settings_of(request))
    found, final = await _recordings(request).hear(session, recording, values, heard)
    return json_response({"segments": len(found.times), "final": _records(final)})


@route(
    router,
    "POST",
    f"{N}/turns/{{recording}}/finish",
    "write",
    body=schemas.Empty,
    answer=turn_schemas.Final,
)
async def finish_recording(request: Request, session: Here, recording: Name) -> Response:
    """End a recording: all its segments are final; return the turns that were not."""
    await requests.json_body(request, settings_of(request), schemas.Empty)
    found, final = await _recordings(request).finish(session, recording)
    return json_response({"segments": len(found.times), "final": _records(final)})


@route(router, "GET", f"{N}/turns/{{recording}}", "read", answer=turn_schemas.Turns)
async def turns(
    request: Request,
    session: Here,
    recording: Name,
    moment: Literal["final", "current", "instant"] = "final",
    rttm: Annotated[bool, Query(description="Answer with RTTM, as text.")] = False,
) -> Response:
    """Return who spoke when: final turns and those that may still change, current or instant."""

    def work(found: Recording) -> Any:
        diarizer = found.diarizer
        found.pending = diarizer.pending()  # with the present names
        return diarizer.rttm(moment) if rttm else _records(diarizer.turns(moment))

    found, told = await _recordings(request).read(session, recording, work)
    if rttm:
        return Response(told, media_type="text/plain; charset=utf-8")
    pending = _records(found.pending)
    return json_response({**found.to_dict(), "moment": moment, "turns": told, "pending": pending})


@route(router, "GET", f"{N}/turns/{{recording}}/stream", "read", extra={"responses": _STREAM})
async def follow_turns(request: Request, session: Here, recording: Name, since: Since = 0) -> Any:
    """Stream final and pending turns as server-sent events; resumes by Last-Event-ID."""
    begin = first_of(request.headers.get("last-event-id"), since)
    await _recordings(request).read(session, recording, Recording.to_dict)  # refuses if unknown
    frames = _recordings(request).follow(session, recording, begin)
    return EventStream(request, frames, sessions_of(request))


def _recordings(request: Request) -> Recordings:
    return sessions_of(request).recordings


def _records(turns: list[Turn]) -> list[dict[str, Any]]:
    return [turn_record(turn) for turn in turns]
