"""Routes of a migration to another encoder: begin it, add vectors, ask about it, end it."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from linkstream.clusterer.migration import Migration
from linkstream.clusterer.rebuild_memory import memory_needed
from linkstream.engine import door
from linkstream.identity.migration_report import MigrationStatus
from linkstream.paper.thresholds import Thresholds
from linkstream.service import migration_schemas, requests, schemas
from linkstream.service.rebuild_jobs import RebuildJob
from linkstream.service.rebuild_work import EndOfMigration
from linkstream.service.responses import json_bytes, json_response, not_found
from linkstream.service.routes.rebuilds import started
from linkstream.service.routing import Here, N, key_of, route, sessions_of, settings_of
from linkstream.service.sessions import Session
from linkstream.service.slow_reads import Cancel
from linkstream.space import Space
from linkstream.store import Store

router = APIRouter()


@route(
    router,
    "POST",
    f"{N}/migration",
    "write",
    body=migration_schemas.Migration,
    answer=migration_schemas.MigrationStatus,
)
async def migrate(request: Request, session: Here) -> Response:
    """Begin a migration, or go on with the one that is under way; answer with its status."""
    body: Any = await requests.json_body(request, settings_of(request), migration_schemas.Migration)
    test = body.thresholds
    if isinstance(test, schemas.Thresholds):
        test = Thresholds(**test.model_dump())
    space = None if body.space is None else _space(request, body.space)

    def work(store: Store) -> dict[str, Any]:
        return store.migrate(space=space, thresholds=test).status().to_dict()

    return json_response(await session.change(work))


def _space(request: Request, given: schemas.Space) -> Space:
    mean = None if given.mean is None else np.array(given.mean, dtype=np.float64)
    row = None if mean is None else np.empty((1, len(mean)), np.float32)
    requests.check_size(row, settings_of(request))
    return Space(mean, given.model, given.dimension)


@route(router, "GET", f"{N}/migration", "read", answer=migration_schemas.MigrationUnderWay)
async def migration(session: Here) -> Response:
    """Return the status of the migration that is under way; null if there is none."""

    def work(store: Store) -> dict[str, Any]:
        found = store.migration()
        return {"migration": None if found is None else found.status().to_dict()}

    return json_response(await session.read(work))


@route(router, "GET", f"{N}/migration/missing", "read", answer=schemas.NamedVectors)
async def missing_vectors(
    session: Here,
    limit: Annotated[int, Query(ge=1, le=schemas.LOOKUP_MAX, description="How many.")] = 1000,
) -> Response:
    """Return vectors that were not re-embedded yet, the oldest first."""

    def work(store: Store) -> dict[str, Any]:
        return {"vectors": store.described(_of(store).missing(limit))}

    return json_response(await session.read(work))


@route(
    router,
    "POST",
    f"{N}/migration/vectors",
    "write",
    body=migration_schemas.Reencoded,
    answer=migration_schemas.MigrationAdded,
)
async def add_reencoded(request: Request, session: Here) -> Response:
    """Add vectors of the other encoder, by number or by their own keys."""
    body: Any = await requests.json_body(request, settings_of(request), migration_schemas.Reencoded)
    rows = _rows(request, body.vectors)
    old = None if body.old is None else _rows(request, body.old)

    def work(store: Store) -> dict[str, Any]:
        return {"taken": _of(store).add(rows, body.numbers, keys=body.ids, old=old)}

    return json_response(await session.change(work))


@route(
    router, "POST", f"{N}/migration/ask", "read", body=migration_schemas.Asked, answer=schemas.Ids
)
async def ask_migrated(request: Request, session: Here) -> Response:
    """Return the clusters that vectors of the other encoder would get, −1 for a new one."""
    body: Any = await requests.json_body(request, settings_of(request), migration_schemas.Asked)
    rows = _rows(request, body.vectors)
    await _check_memory(request, session)
    found = await sessions_of(request).run_in_thread(
        lambda: _of(session.store).predict(rows).tolist()
    )
    return json_response({"ids": found})


@route(router, "GET", f"{N}/migration/report", "read", answer=dict[str, Any])
async def migration_report(request: Request, session: Here) -> Response:
    """Return what the end would change, what translation loses, and where encoders disagree."""

    def work(store: Store, cancel: Cancel) -> bytes:
        return json_bytes(_of(store).report(cancel.check).to_dict())

    size, stamp = await _memory(session), await session.read(lambda store: _of(store).stamp())
    body = await session.ask(request, ("migration", stamp), work, size=size)
    return Response(body, media_type="application/json")


@route(
    router,
    "POST",
    f"{N}/migration/finish",
    "write",
    body=migration_schemas.Finish,
    answer=schemas.Job,
    status=202,
)
async def finish_migration(request: Request, session: Here) -> Response:
    """Start a job that ends the migration while reads and writes go on; answer with the job."""
    body: Any = await requests.json_body(request, settings_of(request), migration_schemas.Finish)
    key = key_of(request)
    status = await session.read(lambda store: _status_for_end(store, key))
    digest = hashlib.sha256(f"end {body.apply} {body.hold}".encode()).digest()
    work = EndOfMigration(status, apply=body.apply)
    wide = None if status is None else status.dimension or 0
    return await started(request, session, RebuildJob(work, key, digest, wide, hold=body.hold))


def _status_for_end(store: Store, key: str | None) -> MigrationStatus | None:
    """Return the status; None if the migration was ended under this key."""
    if store.migration() is None and key is not None and store.journal.find(key) is not None:
        return None
    return _of(store).status()


@route(
    router,
    "POST",
    f"{N}/migration/abandon",
    "write",
    body=schemas.Empty,
    answer=migration_schemas.MigrationStatus,
)
async def abandon_migration(request: Request, session: Here) -> Response:
    """Drop the vectors of the other encoder; answer with the last status."""
    await requests.json_body(request, settings_of(request), schemas.Empty)

    def work(store: Store) -> dict[str, Any]:
        found = _of(store)
        status = found.status().to_dict()
        found.abandon()
        return status

    return json_response(await session.change(work))


def _of(store: Store) -> Migration:
    """Return the migration that is under way; refuse with 404 if there is none."""
    found = store.migration()
    if found is None:
        raise not_found(
            "no migration under way",
            "one that was begun",
            "Begin one: POST …/migration with the thresholds and the space of the other encoder.",
        )
    return found


def _rows(request: Request, vectors: Any) -> np.ndarray[Any, Any]:
    rows = door.vectors(vectors, dimension=None)
    requests.check_size(rows, settings_of(request))
    return rows


async def _memory(session: Session) -> int:
    """Return how many bytes a rebuild with vectors of the other encoder may take."""

    def work(store: Store) -> int:
        return _of(store).status().dimension or 0

    return memory_needed(*await session.sizes(), await session.read(work))


async def _check_memory(request: Request, session: Session) -> None:
    most = settings_of(request).slow_bytes
    sessions_of(request).slow.check_room(session, await _memory(session), most)
