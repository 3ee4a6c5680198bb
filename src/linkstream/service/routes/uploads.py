"""Routes of uploads: send a file in pieces, look at it, calibrate with it, add its rows."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from linkstream.errors import LinkstreamError
from linkstream.io import open_vectors
from linkstream.io.columns import look_at
from linkstream.io.good_rows import BadRows, GoodRows
from linkstream.io.source import Block
from linkstream.presets import presets as all_presets
from linkstream.service import demo, requests, upload_jobs
from linkstream.service import upload_schemas as schemas
from linkstream.service.responses import Refusal, hidden_prefix, json_bytes, json_response
from linkstream.service.routing import N, Namespace, route, sessions_of, settings_of
from linkstream.service.upload_jobs import UploadJob
from linkstream.service.uploads import Upload
from linkstream.tuning import calibrate as calibrate_
from linkstream.tuning.pair_questions import SAMPLE, pairs_to_ask

WAIT_MAX = 30.0  # seconds that a request may wait for a change
U = f"{N}/uploads/{{upload}}"

_PIECE = {requests.RAW: {"schema": {"type": "string", "format": "binary"}}}

router = APIRouter()


@route(router, "GET", "/v1/presets", "any", answer=schemas.Presets)
async def presets() -> Response:
    """Return the presets: thresholds of encoders that were measured."""
    return json_response({"presets": [_preset(each) for each in all_presets().values()]})


@route(router, "POST", f"{N}/demo", "admin", answer=dict[str, Any], status=202, unmade=True)
async def start_demo(request: Request, namespace: Namespace) -> Response:
    """Make a namespace and feed the voices that come with the package to it."""
    sessions = sessions_of(request)
    await sessions.make(namespace, {"thresholds": demo.THRESHOLDS})
    demo.start(sessions, namespace)
    return json_response({"namespace": namespace}, status=202)


@route(
    router,
    "POST",
    f"{N}/uploads",
    "write",
    body=schemas.NewUpload,
    answer=schemas.Upload,
    status=201,
    unmade=True,
)
async def start_upload(request: Request, namespace: Namespace) -> Response:
    """Announce a file that will be sent in pieces; the namespace need not exist yet."""
    body = await requests.json_body(request, settings_of(request), schemas.NewUpload)
    upload = await sessions_of(request).uploads.create(namespace, body.file, body.size)
    return _answer(request, upload, status=201)


@route(router, "GET", f"{N}/uploads", "write", answer=schemas.Uploads, unmade=True)
async def uploads(request: Request, namespace: Namespace) -> Response:
    """Return the uploads of a namespace since the service started."""
    hidden, found = hidden_prefix(settings_of(request)), sessions_of(request).uploads.of(namespace)
    return json_response({"uploads": [upload_jobs.told(each, hidden=hidden) for each in found]})


@route(router, "PUT", U, "write", body=_PIECE, answer=schemas.Upload, unmade=True)
async def send_piece(
    request: Request,
    namespace: Namespace,
    upload: str,
    offset: Annotated[int, Query(ge=0, le=2**53, description="Bytes before this piece.")],
) -> Response:
    """Send the next piece of a file; a piece that is there already is ignored."""
    found = _found(request, namespace, upload)
    requests.check_media(request, (requests.RAW,))
    piece = await requests.read_body(request, settings_of(request))
    await sessions_of(request).uploads.write(found, offset, piece)
    return _answer(request, found)


@route(router, "GET", U, "write", answer=schemas.Upload, unmade=True)
async def upload(
    request: Request,
    namespace: Namespace,
    upload: str,
    wait: Annotated[
        float, Query(ge=0, le=WAIT_MAX, description="Seconds to wait for the end of adding.")
    ] = 0.0,
) -> Response:
    """Return how far an upload is."""
    found = _found(request, namespace, upload)
    if wait and found.job is not None and found.running:
        with contextlib.suppress(asyncio.TimeoutError):  # its name before Python 3.11
            await asyncio.wait_for(found.job.ended.wait(), wait)
    return _answer(request, found)


@route(router, "GET", f"{U}/columns", "write", answer=schemas.Look, unmade=True)
async def columns(
    request: Request,
    namespace: Namespace,
    upload: str,
    column: Annotated[str, Query(max_length=1000, description="The vectors.")] = "",
) -> Response:
    """Return the columns of a file, what they may be, and the first rows."""
    found = _found(request, namespace, upload)
    hidden = hidden_prefix(settings_of(request))

    def work() -> bytes:
        look = look_at(found.path, column or None)
        error = look.error and upload_jobs.problem(found, look.error, hidden)
        return json_bytes({**look.to_dict(), "error": error})

    return await _asked(request, found, ("columns", column), work)


@route(
    router,
    "POST",
    f"{U}/pairs",
    "write",
    body=schemas.AskPairs,
    answer=schemas.PairQuestions,
    unmade=True,
)
async def pairs(request: Request, namespace: Namespace, upload: str) -> Response:
    """Return pairs of rows over the whole range of similarities, to be called same or different."""
    found = _found(request, namespace, upload)
    body = await requests.json_body(request, settings_of(request), schemas.AskPairs)

    def work() -> bytes:
        X, payloads = _sample(found, _options(found, body))
        asked = [
            {
                "rows": [each.a, each.b],
                "payloads": [payloads[each.a], payloads[each.b]],
                "similarity": each.similarity,
            }
            for each in pairs_to_ask(X, body.count)
        ]
        return json_bytes({"sampled": len(X), "pairs": asked})

    return await _asked(request, found, ("pairs", body.model_dump_json()), work)


@route(
    router,
    "POST",
    f"{U}/calibrate",
    "write",
    body=schemas.Calibrate,
    answer=dict[str, Any],
    unmade=True,
)
async def calibrate(request: Request, namespace: Namespace, upload: str) -> Response:
    """Return thresholds by answers about pairs of rows, or from the vectors alone."""
    found = _found(request, namespace, upload)
    body = await requests.json_body(request, settings_of(request), schemas.Calibrate)

    def work() -> bytes:
        X, _ = _sample(found, _options(found, body))
        known: dict[str, Any] = {}
        if body.same or body.different:
            known = {name: _rows(getattr(body, name)) for name in ("same", "different")}
        return json_bytes(calibrate_(X, **known).to_dict())

    return await _asked(request, found, ("calibrate", body.model_dump_json()), work)


@route(
    router,
    "POST",
    f"{U}/add",
    "write",
    body=schemas.AddUpload,
    answer=schemas.Upload,
    status=202,
    unmade=True,
)
async def add_upload(request: Request, namespace: Namespace, upload: str) -> Response:
    """Check all rows of a file, then add those that are new; as a job."""
    found = _found(request, namespace, upload)
    body = await requests.json_body(request, settings_of(request), schemas.AddUpload)
    sessions = sessions_of(request)
    session = await sessions.get(namespace)
    job = UploadJob(_options(found, body), skip_bad=body.skip_bad)
    upload_jobs.start(sessions.uploads, session, found, job, sessions.spawn)
    return _answer(request, found, status=202)


@route(router, "DELETE", U, "write", answer=schemas.Upload, unmade=True)
async def remove_upload(request: Request, namespace: Namespace, upload: str) -> Response:
    """Cancel an upload and remove its file; answer with its last state. Rows added stay."""
    found = _found(request, namespace, upload)
    await sessions_of(request).uploads.remove(found)
    return _answer(request, found)


# How the answers are made


def _preset(found: Any) -> dict[str, Any]:
    levels = [
        {
            "name": name,
            "granularity": at,
            "words": found.words[name],
            "thresholds": asdict(found.line.at(at)),
        }
        for name, at in found.levels.items()
    ]
    names = ("name", "encoder", "model", "dimension", "default", "figures")
    plain = {name: getattr(found, name) for name in names}
    return {**plain, "levels": levels, "made_from": list(found.made_from)}


def _found(request: Request, namespace: str, upload: str) -> Upload:
    return sessions_of(request).uploads.get(namespace, upload)


def _answer(request: Request, upload: Upload, *, status: int = 200) -> Response:
    hidden = hidden_prefix(settings_of(request))
    return json_response(upload_jobs.told(upload, hidden=hidden), status=status)


async def _asked(request: Request, upload: Upload, key: Any, work: Callable[[], bytes]) -> Response:
    """Return the answer to a question about a file; errors name the file as the caller does."""
    try:
        body = await sessions_of(request).uploads.ask(upload, key, work, request)
    except Refusal:
        raise
    except LinkstreamError as error:
        told = upload_jobs.problem(upload, error, hidden_prefix(settings_of(request)))
        raise Refusal(400, **told) from None
    return Response(body, media_type=requests.JSON)


def _options(upload: Upload, body: schemas.Columns) -> dict[str, Any]:
    """Return the arguments of `open_vectors` for columns."""
    suffix = upload.path.suffix
    own: dict[str, Any] = {"id_column": body.id_column, "time_column": body.time_column}
    if suffix in (".npy", ".npz"):
        own["key"] = body.column
    else:
        own |= {"column": body.column, "payload": body.payload}
    return own


def _sample(upload: Upload, options: dict[str, Any]) -> tuple[Any, list[Any]]:
    """Return the vectors and payloads of the first good rows."""
    bad = BadRows()
    blocks: list[Block] = []
    with open_vectors(upload.path, block=256, bad_row=bad.note, **options) as source:
        for block in GoodRows(source, bad):
            blocks.append(block)
            if sum(map(len, blocks)) >= SAMPLE:
                break
    payloads = [each for block in blocks for each in block.payloads or [None] * len(block)]
    X = np.concatenate([block.vectors for block in blocks]) if blocks else np.empty((0, 2))
    return X[:SAMPLE], payloads[:SAMPLE]


def _rows(pairs: list[list[int]]) -> Any:
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)
