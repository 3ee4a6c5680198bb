"""Routes for programs that take much at once: tables and reports of changes; and search."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from linkstream.errors import ArgumentError
from linkstream.service import requests, schemas
from linkstream.service.live import ended
from linkstream.service.responses import busy, json_bytes
from linkstream.service.routing import Here, N, route, sessions_of
from linkstream.service.sessions import Session, Sessions
from linkstream.service.slow_reads import Cancel, disconnected
from linkstream.store import Store, tabular

MEDIA = {
    "arrow": requests.ARROW,
    "parquet": "application/vnd.apache.parquet",
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
}
FIELD = "field."  # begins the names of fields in the query of a search
_FIELDS_MAX = 32
_CHANGE_COPIES = 2.0  # the memory of a report, in sizes of the sums of all subclusters
_SEARCH_COPIES = 0.0

_FILE = {
    "200": {"description": "OK", "content": {kind.partition(";")[0]: {} for kind in MEDIA.values()}}
}

Format = Annotated[
    Literal["arrow", "parquet", "csv", "jsonl"] | None,
    Query(description="Else the first of these in Accept, else jsonl."),
]
Number = Annotated[int, Query(ge=0, le=2**53)]

router = APIRouter()


# Search and changes


@route(router, "GET", f"{N}/search", "read", answer=schemas.Found)
async def search(
    request: Request,
    session: Here,
    q: Annotated[str, Query(max_length=1000, description="Words and phrases.")] = "",
    cluster: Number | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 20,
    offset: Annotated[int, Query(ge=0, le=5000)] = 0,
    before: Number | None = None,
    order: Literal["newest", "best"] = "newest",
) -> Response:
    """Return vectors whose payloads have all words of q, and all fields of field.NAME=VALUE."""
    fields = _fields(request)
    options: dict[str, Any] = {"cluster": cluster, "limit": limit, "offset": offset}
    options |= {"before": before, "order": order}

    def work(store: Store, _: Cancel) -> bytes:
        return json_bytes(store.search(q, where=dict(fields), **options).to_dict())

    key = "search", q, fields, *options.values()
    body = await session.ask(request, key, work, copies=_SEARCH_COPIES)
    return Response(body, media_type=requests.JSON)


def _fields(request: Request) -> tuple[tuple[str, str], ...]:
    """Return the fields in the query; refuse a field that comes twice."""
    given = requests.query(request).multi_items()
    fields = [(name[len(FIELD) :], value) for name, value in given if name.startswith(FIELD)]
    if len(dict(fields)) != len(fields) or len(fields) > _FIELDS_MAX:
        raise ArgumentError(
            f"{len(fields)} fields, {len(dict(fields))} of them different",
            expected=f"each field once, at most {_FIELDS_MAX}",
            remedy="Search for one value of a field at a time.",
        )
    return tuple(sorted(fields))


@route(router, "GET", f"{N}/changes", "read", answer=schemas.Changes)
async def changes(
    request: Request,
    session: Here,
    since: Number = 0,
    until: Number | None = None,
    vectors: Annotated[bool, Query(description="Add each vector with its labels.")] = False,
) -> Response:
    """Return what differs between two moments, given as numbers of events."""

    def work(store: Store, _: Cancel) -> bytes:
        found = store.changes(since, until)
        return json_bytes({**found.to_dict(vectors=vectors), "words": found.text()})

    key = "changes", since, until, vectors
    body = await session.ask(request, key, work, copies=_CHANGE_COPIES)
    return Response(body, media_type=requests.JSON)


# Tables


@route(router, "GET", f"{N}/tables/vectors", "read", extra={"responses": _FILE})
async def vectors_table(
    request: Request,
    session: Here,
    format: Format = None,  # noqa: A002
    cluster: Number | None = None,
    since: Annotated[int, Query(ge=0, le=2**53, description="Number of the first vector.")] = 0,
    columns: Annotated[str, Query(max_length=4000, description="Names with commas.")] = "",
) -> Any:
    """Return one row for each vector: number, cluster, name, and the fields of payloads."""
    form = _form(request, format)
    wanted = columns.split(",") if columns else None
    options: dict[str, Any] = {"cluster": cluster, "since": since, "columns": wanted}
    return await _streamed(
        request, session, lambda store: tabular.encoded_rows(store, form, **options), MEDIA[form]
    )


@route(router, "GET", f"{N}/tables/clusters", "read", extra={"responses": _FILE})
async def clusters_table(
    request: Request,
    session: Here,
    format: Format = None,  # noqa: A002
    order: Literal["id", "size", "recent"] = "id",
    limit: Annotated[int | None, Query(ge=1, le=2**53)] = None,
    exemplars: Annotated[int, Query(ge=0, le=100)] = 3,
) -> Any:
    """Return one row for each cluster: ID, name, size, first and last vector, exemplars."""
    form = _form(request, format)
    options: dict[str, Any] = {"order": order, "limit": limit, "exemplars": exemplars}
    return await _streamed(
        request,
        session,
        lambda store: tabular.encoded_clusters(store, form, **options),
        MEDIA[form],
    )


def _form(request: Request, given: str | None) -> str:
    """Return the format of a table: as asked for, else by the header Accept."""
    accepted = (requests.header(request, b"accept") or "").split(",")
    kinds = [each.partition(";")[0].strip().lower() for each in accepted]
    by_kind = {kind.partition(";")[0]: form for form, kind in MEDIA.items()}
    return given or next((by_kind[kind] for kind in kinds if kind in by_kind), "jsonl")


async def _streamed(
    request: Request, session: Session, make: Callable[[Store], Iterator[bytes]], media: str
) -> Response:
    """Return a table that is sent while it is made, part by part, each in a thread."""
    sessions = sessions_of(request)
    most = sessions.settings.slow_calls
    if sessions.tables >= most:
        raise busy(f"{sessions.tables} tables being sent", f"at most {most}")
    sessions.tables += 1
    try:
        made = make(session.store)
        parts = _parts(session, made)
        first = await anext(parts, b"")  # errors come before the response begins
    except BaseException:
        sessions.tables -= 1
        raise
    return _TableStream(first, parts, media, sessions)


async def _parts(session: Session, made: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the parts that are not empty."""
    while (part := await session.read(lambda _: next(made, None))) is not None:
        if part:
            yield part


class _TableStream(Response):
    """Sends a table; the connection is closed early if the client goes, or reads too slowly."""

    def __init__(
        self, first: bytes, parts: AsyncIterator[bytes], media: str, sessions: Sessions
    ) -> None:
        super().__init__(media_type=media)
        self._first, self._parts, self._sessions = first, parts, sessions

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send the parts of the table."""
        headers = [pair for pair in self.raw_headers if pair[0] != b"content-length"]
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            pumping = asyncio.ensure_future(self._pump(send))
            others = (disconnected(receive), self._sessions.stopping.wait())
            tasks = [pumping, *(asyncio.ensure_future(other) for other in others)]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            await ended(tasks)
            if pumping.cancelled() or pumping.exception() is not None:
                raise ClientDisconnect  # without an end, so that nobody takes it for complete
        finally:
            self._sessions.tables -= 1

    async def _pump(self, send: Any) -> None:
        await self._send(send, self._first)
        async for part in self._parts:
            await self._send(send, part)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send(self, send: Any, body: bytes) -> None:
        message = {"type": "http.response.body", "body": body, "more_body": True}
        await asyncio.wait_for(send(message), self._sessions.settings.receive_seconds)
