"""A person's word: what is said is done, holds, and can be undone."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from linkstream.errors import UndoError
from linkstream.service import bodies, shapes
from linkstream.service.answers import plain
from linkstream.service.routing import Here, N, key_of, route, settings_of
from linkstream.service.sessions import Session
from linkstream.store import Store, write_requests
from linkstream.store.write_requests import WriteRequest

# Verbs that are said as they are, each with its body; what they mean is in docs/identity.md.
_SAID: dict[str, tuple[type[shapes.Said], str]] = {
    "same": (shapes.Two, "Two vectors, subclusters or clusters are one, from now on."),
    "different": (shapes.Two, "Two vectors, subclusters or clusters are never one."),
    "retract": (shapes.Retract, "Take back one correction, and nothing that came after it."),
    "name": (shapes.Name, "Give a cluster a name of its own."),
    "rename": (shapes.Rename, "Give a cluster another name, or none."),
    "ignore": (shapes.Ignore, "Leave a cluster out of suggestions and reviews, or no longer."),
    "remove": (shapes.Remove, "Take a vector out of the model, exactly."),
    "forget": (shapes.Forget, "Forget a cluster and all it held."),
}

router = APIRouter()


@route(router, "GET", f"{N}/corrections", "read", answer=dict[str, Any])
async def corrections(session: Here) -> Response:
    """All that people said by same, different and move, and that still holds."""
    told = await session.read(Store.corrections)
    return plain({"corrections": [each.to_dict() for each in told]})


@route(router, "POST", f"{N}/move", "write", body=shapes.Move, answer=shapes.Decision)
async def move(request: Request, session: Here) -> Response:
    """Put a vector into another cluster; it stays there."""
    said = await bodies.said(request, settings_of(request), shapes.Move)
    ticket = await session.write(
        write_requests.verb_request("move", said.model_dump(), key_of(request))
    )
    return plain(ticket.answer.to_dict())


@route(router, "POST", f"{N}/undo", "write", body=shapes.Undo, answer=shapes.Done)
async def undo(request: Request, session: Here) -> Response:
    """Take back the last change or vector; or all from the event of number `to` on.

    With `step`, the whole last step: all that one command did, or one call that was part of none.
    With `after`, only if no event came from that number on: 409 where one did.
    """
    said = await bodies.said(request, settings_of(request), shapes.Undo)
    ticket = write_requests.undo_request(said.to, said.step, key_of(request))
    if said.after is not None:
        ticket.check = lambda event: _check_nothing_since(said.after, event)
    return _done(await session.write(ticket))


@route(router, "POST", f"{N}/redo", "write", body=shapes.Nothing, answer=shapes.Done)
async def redo(request: Request, session: Here) -> Response:
    """Bring back what the last undo took; 409 where something else was changed since."""
    await bodies.said(request, settings_of(request), shapes.Nothing)
    return _done(await session.write(write_requests.verb_request("redo", {}, key_of(request))))


@route(router, "GET", f"{N}/steps", "read", answer=shapes.Steps)
async def steps(session: Here, limit: Annotated[int, Query(ge=1, le=1000)] = 20) -> Response:
    """What undo takes back step by step, the newest first; before it what can be redone."""
    found = await session.read(lambda store: store.steps(limit))
    return plain({"steps": [step.to_dict() for step in found]})


@route(router, "GET", f"{N}/settle", "read", answer=dict[str, Any])
async def proposals(session: Here) -> Response:
    """What an offline pass over all clusters would join and cut."""
    return plain((await session.read(Store.settle)).to_dict())


@route(router, "POST", f"{N}/settle", "write", body=shapes.Nothing, answer=dict[str, Any])
async def settle(request: Request, session: Here) -> Response:
    """Join and cut clusters by an offline pass; null under a key that was used before."""
    await bodies.said(request, settings_of(request), shapes.Nothing)
    ticket = await session.write(write_requests.verb_request("settle", {}, key_of(request)))
    return plain({} if ticket.answer is None else ticket.answer.to_dict())


@route(router, "POST", f"{N}/compact", "admin", body=shapes.Nothing, answer=shapes.Done)
async def compact(request: Request, session: Here) -> Response:
    """Erase for good what was removed, forgotten or undone; no undo goes beyond it."""
    await bodies.said(request, settings_of(request), shapes.Nothing)
    await session.read(Store.compact)
    event = await session.read(lambda store: store.n_events)
    return plain({"before": event, "event": event})


def _add_verb(router: APIRouter, verb: str, body: type[shapes.Said], words: str) -> None:
    async def say(request: Request, session: Here) -> Response:
        said = (await bodies.said(request, settings_of(request), body)).model_dump()
        bodies.check_name(said.get("name"), settings_of(request))
        return _done(await _say(session, verb, said, key_of(request)))

    say.__name__, say.__doc__ = verb, words
    route(router, "POST", f"{N}/{verb}", "write", body=body, answer=shapes.Done)(say)


async def _say(session: Session, verb: str, said: dict[str, Any], key: str | None) -> WriteRequest:
    if verb == "remove":
        return await session.write(
            write_requests.remove_request(said["vector"], None, None, None, key)
        )
    return await session.write(write_requests.verb_request(verb, said, key))


def _done(ticket: WriteRequest) -> Response:
    before, event = ticket.events
    return plain({"before": before, "event": event})


def _check_nothing_since(after: int | None, event: int) -> None:
    if event != after:
        raise UndoError(
            f"event {event} comes next, not {after}",
            expected="nothing to have happened since",
            remedy="Look at the events since then; to= takes back all from one on.",
        )


for _verb, (_body, _words) in _SAID.items():
    _add_verb(router, _verb, _body, _words)
