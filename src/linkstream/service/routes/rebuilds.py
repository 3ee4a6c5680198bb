"""Routes of rebuilds that run as jobs: start one, ask how far it is, cancel it.

The route that ends a migration starts such a job, too; see `routes.migrations`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from linkstream.service import requests, schemas
from linkstream.service.rebuild_jobs import RebuildJob
from linkstream.service.rebuild_work import RebuildWork
from linkstream.service.responses import hidden_prefix, json_bytes, json_response
from linkstream.service.routing import Here, N, key_of, route, sessions_of, settings_of
from linkstream.service.sessions import Session
from linkstream.store.write_requests import request_of

WAIT_MAX = 30.0  # seconds that a request may wait for the end of a job

router = APIRouter()


@route(
    router,
    "POST",
    f"{N}/rebuilds",
    "write",
    body=schemas.RebuildJob,
    answer=schemas.Job,
    status=202,
)
async def start_rebuild(request: Request, session: Here) -> Response:
    """Start a rebuild that runs while reads and writes go on; answer with the job."""
    settings = settings_of(request)
    body: Any = await requests.json_body(request, settings, schemas.RebuildJob)
    verb: Any = schemas.to_verb("rebuild", body)
    key = key_of(request)
    rows = request_of(verb, key=key).rows
    requests.check_size(rows, settings)
    digest = hashlib.sha256(json.dumps([verb.to_json(), body.hold]).encode()).digest()
    wide = None if rows is None else rows.shape[1]
    job = RebuildJob(RebuildWork(verb), key, digest, wide, hold=body.hold)
    return await started(request, session, job)


async def started(request: Request, session: Session, job: RebuildJob) -> Response:
    """Start a job; answer with it and its address."""
    job = await sessions_of(request).rebuilds.start(session, job)
    address = f"/v1/namespaces/{session.name}/rebuilds/{job.id}"
    return await _answer(request, job, status=202, headers={"Location": address})


@route(router, "GET", f"{N}/rebuilds", "read", answer=schemas.Jobs)
async def rebuilds(request: Request, session: Here) -> Response:
    """Return the rebuild that runs or that ended last, without its report."""
    found = sessions_of(request).rebuilds.of(session.name)
    return json_response({"rebuilds": [_brief(_plain(request, job)) for job in found]})


@route(router, "GET", f"{N}/rebuilds/{{job}}", "read", answer=schemas.Job)
async def rebuild_job(
    request: Request,
    session: Here,
    job: str,
    wait: Annotated[
        float, Query(ge=0, le=WAIT_MAX, description="Seconds to wait for its end.")
    ] = 0.0,
) -> Response:
    """Return how far a rebuild is, and what it changes."""
    found = sessions_of(request).rebuilds.get(session.name, job)
    if wait and found.running:
        with contextlib.suppress(asyncio.TimeoutError):  # its name before Python 3.11
            await asyncio.wait_for(found.ended.wait(), wait)
    return await _answer(request, found)


@route(router, "DELETE", f"{N}/rebuilds/{{job}}", "write", answer=schemas.Job)
async def cancel_rebuild(request: Request, session: Here, job: str) -> Response:
    """Cancel a rebuild, or forget one that has ended; answer with its last state."""
    found = sessions_of(request).rebuilds.cancel(session.name, job)
    return await _answer(request, found)


def _brief(job: dict[str, Any]) -> dict[str, Any]:
    """Return a job without what may be long."""
    migration = job["migration"] and {**job["migration"], "disagreements": []}
    return {**job, "report": None, "migration": migration}


def _plain(request: Request, job: RebuildJob) -> dict[str, Any]:
    return job.to_dict(hidden=hidden_prefix(settings_of(request)))


async def _answer(
    request: Request,
    job: RebuildJob,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    """Return a job; a report may be long, so that a thread writes it."""
    told = _plain(request, job)
    body = await sessions_of(request).run_read(lambda: json_bytes(told))
    return Response(body, status, headers, media_type="application/json")
