"""Requests: headers, query and body, read within limits and validated."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ValidationError
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, Request

from linkstream.engine import door
from linkstream.errors import ArgumentError, VectorError
from linkstream.io import ALL, Block, open_vectors
from linkstream.service.invalid import invalid
from linkstream.service.responses import Refusal, too_large
from linkstream.service.schemas import BODIES
from linkstream.service.sessions import SESSION, Session, Sessions
from linkstream.service.settings import Settings
from linkstream.store import JsonLines
from linkstream.store.blocks import NO_TIME

JSON = "application/json"
RAW = "application/octet-stream"
NPY = "application/x-npy"
ARROW = "application/vnd.apache.arrow.stream"
MEDIA = (JSON, RAW, NPY, ARROW)
JSON_MAX = 8 << 20  # bytes: parsing holds up all other requests
ARROW_MAGIC = b"\xff\xff\xff\xff"
HEADERS = "linkstream.headers"  # key of the headers in the scope, set by the middleware

# Limits on JSON that would take much more memory than bytes, such as lists of empty lists.
MARKS_MAX = {b"[": 100_000, b"{": 100_000, b":": 100_000, b",": 2_000_000}
CELLS_MAX = 1 << 20  # values of payload columns in one body
_LONG = 1 << 16  # bytes; longer bodies are parsed in a thread, one at a time

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


@dataclass(frozen=True, eq=False, slots=True)
class VectorBody:
    """The vectors of a request with what came with them.

    `one` is set if the body held a single vector instead of a list.
    """

    rows: npt.NDArray[np.float32]
    payloads: Sequence[Any] | None = None
    weights: Any = 1.0
    group: str | None = None
    at: Any = None
    ids: Sequence[str | None] | None = None
    one: bool = False

    @property
    def columns(self) -> dict[str, Any]:
        """The payloads, times and keys, as the store takes them."""
        return {"payloads": self.payloads, "at": self.at, "ids": self.ids}


def header(request: Request, name: bytes) -> str | None:
    """Return a header by its name in lower case; None if it is missing."""
    found = request.scope[HEADERS].get(name)
    return None if found is None else found.decode("latin-1")


def query(request: Request) -> QueryParams:
    """Return the query parameters; short queries are cached."""
    text: bytes = request.scope["query_string"]
    return _parsed_query(text) if len(text) <= 256 else QueryParams(text)


@lru_cache(maxsize=256)
def _parsed_query(text: bytes) -> Any:
    return QueryParams(text)


async def read_body(request: Request, settings: Settings, *, most: int | None = None) -> bytes:
    """Read the body; refuse with 413 if it is too large, 429 or 503 if there is no room."""
    most = min(settings.body_max, settings.queue_bytes, most or settings.body_max)
    length = int((header(request, b"content-length") or "0")[:19])
    if length > most:
        raise _too_long(f"a body of {length} bytes", most)
    sessions: Sessions = request.app.state.sessions
    session: Session | None = request.scope.get(SESSION)
    pieces, size = [], 0
    try:
        while True:
            message = await request.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            piece = message.get("body", b"")
            if size + len(piece) > most:
                raise _too_long(f"a body of more than {most} bytes", most)
            sessions.reserve(session, len(piece))
            size += len(piece)
            pieces.append(piece)
            if not message.get("more_body", False):
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)
    finally:
        sessions.release_bytes(session, size)


def _too_long(seen: str, most: int) -> Refusal:
    remedy = "Send vectors as raw float32, and in smaller batches."
    refusal = too_large(seen, f"at most {most} bytes", remedy)
    refusal.headers = {"Connection": "close"}
    return refusal


async def json_body(request: Request, settings: Settings, model: type[M]) -> M:
    """Read a JSON body and validate it against a model."""
    check_media(request, (JSON,))
    body = await read_body(request, settings, most=JSON_MAX)
    return await _parse(request, body, lambda: validate(parse_json(body), model))


async def vector_body(
    request: Request, settings: Settings, *, grouped: bool = False, alone: bool = False
) -> VectorBody:
    """Read vectors from any of the four kinds of body.

    With `grouped`, JSON has the fields of a group. With `alone`, other columns of a table are
    ignored.
    """
    media = check_media(request, MEDIA)
    body = await read_body(request, settings, most=JSON_MAX if media == JSON else None)
    if media == RAW:
        given = _raw(body, _dimension(request))
    elif media == JSON:
        given = await _parse(request, body, lambda: _json(body, grouped=grouped))
    else:
        given = await _parse(request, body, lambda: _file(body, media, settings, alone))
    check_size(given.rows, settings)
    return given


async def _parse(request: Request, body: bytes, work: Callable[[], T]) -> T:
    """Parse a body; a long one in a thread."""
    if len(body) <= _LONG:
        return work()
    sessions: Sessions = request.app.state.sessions
    async with sessions.parsing:
        return await sessions.run_read(work)


def check_size(rows: npt.NDArray[np.float32] | None, settings: Settings) -> None:
    """Refuse with 413 if there are too many vectors, or too long ones."""
    n, dimension = (0, 0) if rows is None else rows.shape
    if n > settings.rows_max or dimension > settings.dimension_max:
        most = f"at most {settings.rows_max}, of dimension {settings.dimension_max}"
        remedy = "Send smaller batches; vectors of another encoder with migration."
        raise too_large(f"{n} vectors of dimension {dimension}", most, remedy)


def check_name(name: str | None, settings: Settings) -> None:
    """Raise ArgumentError if the name of a cluster is too long."""
    if name is not None and len(name) > settings.name_max:
        seen = f"a name of {len(name)} characters"
        remedy = "Choose a shorter name."
        raise ArgumentError(seen, expected=f"at most {settings.name_max}", remedy=remedy)


def check_media(request: Request, wanted: tuple[str, ...]) -> str:
    """Return the media type of the body; refuse with 415 if it is none of those wanted."""
    kind = header(request, b"content-type")
    packed = header(request, b"content-encoding")
    media, _, more = (kind or "").lower().partition(";")
    media, more = media.strip(), more.replace(" ", "").replace('"', "")
    utf8 = more.removeprefix("charset=") in ("", "utf-8", "utf8")
    if media in wanted and utf8 and packed in (None, "identity"):
        return media
    raise Refusal(
        415,
        "media-type",
        f"Content-Type {kind!r:.100}, Content-Encoding {packed!r:.40}",
        expected=f"{' or '.join(wanted)}, in UTF-8, not compressed",
        remedy="Send the media type of the body as Content-Type.",
    )


def parse_json(body: bytes) -> Any:
    """Parse strict JSON: no NaN, no duplicate names, bounded depth."""
    for mark, most in MARKS_MAX.items():
        if body.count(mark) > most:
            seen = f"JSON with {body.count(mark)} of {mark.decode()!r}"
            remedy = "Send vectors as raw float32, and payloads in smaller batches."
            raise ArgumentError(seen, expected=f"at most {most}", remedy=remedy)
    try:
        text = body.decode()
        found = json.loads(text, object_pairs_hook=_unique, parse_constant=_constant)
        if "\\ud" in text or "\\uD" in text:  # escaped surrogates must come in pairs
            json.dumps(found, ensure_ascii=False).encode()
        return found
    except RecursionError:
        problem = "nested too deeply"
    except ValueError as error:  # also invalid UTF-8, and numbers of thousands of digits
        problem = f"{error!s:.200}"
    seen = f"a body that is not JSON ({problem})"
    remedy = "Send finite numbers, and each name once in an object."
    raise ArgumentError(seen, expected="JSON in UTF-8 as of RFC 8259", remedy=remedy)


def validate(values: Any, model: type[M]) -> M:
    """Validate parsed JSON against a model; raise ArgumentError if it does not fit."""
    unknown = values.keys() - model.model_fields.keys() if isinstance(values, dict) else ()
    if unknown:
        raise ArgumentError(
            f"{min(unknown)!r:.100}, an unknown field",
            expected=f"some of {', '.join(model.model_fields)}",
            remedy="Leave the field out, or correct its name.",
        )
    try:
        return model.model_validate(values, strict=True)
    except ValidationError as error:
        raise invalid(error.errors(include_url=False)[0]) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate name in an object")
    return found


def _constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


def _dimension(request: Request) -> int:
    text = query(request).get("dimension", "")
    if text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0:
        return int(text)
    seen = f"dimension={text!r:.40} for raw float32"
    remedy = "Send the body to …/vectors?dimension=256, for example."
    raise ArgumentError(seen, expected="the dimension of the vectors in the query", remedy=remedy)


def _raw(body: bytes, dimension: int) -> VectorBody:
    if len(body) % (4 * dimension):
        expected = f"whole vectors of {dimension} float32 numbers, 4 bytes each"
        remedy = "Send little-endian float32, row after row."
        raise VectorError(f"{len(body)} bytes", expected=expected, remedy=remedy)
    return VectorBody(np.frombuffer(body, dtype="<f4").reshape(-1, dimension))


def _json(body: bytes, *, grouped: bool) -> VectorBody:
    values = parse_json(body)
    if isinstance(values, dict) and "vector" in values and not grouped:
        one: Any = validate(values, BODIES["add"])
        _check_numbers(body, [one.vector])
        rows = door.vector(one.vector, dimension=None)
        payloads = None if one.payload is None else [one.payload]
        ids = None if one.id is None else [one.id]
        return VectorBody(rows, payloads, one.weight, one.group, one.at, ids, one=True)
    if grouped and isinstance(values, dict) and "group" not in values and "key" in values:
        values["group"] = values.pop("key")  # the old name of the field
    many: Any = validate(values, BODIES["add_group" if grouped else "add_many"])
    _check_numbers(body, many.vectors)
    rows = door.vectors(many.vectors, dimension=None)
    weights = 1.0 if many.weights is None else many.weights
    return VectorBody(rows, many.payloads, weights, many.group, many.at, many.ids)


def _check_cells(rows: int, columns: int) -> None:
    if rows * columns > CELLS_MAX:
        seen, most = (
            f"{rows} rows of {columns} payload columns",
            f"at most {CELLS_MAX} values in all",
        )
        raise too_large(seen, most, "Send fewer rows or columns at a time.")


def _check_numbers(body: bytes, rows: Any) -> None:
    """Raise VectorError if a vector holds booleans, which NumPy would accept as numbers."""
    if b"true" not in body and b"false" not in body:
        return
    for place, row in enumerate(rows if isinstance(rows, list) else ()):
        if isinstance(row, list) and any(type(value) is bool for value in row):
            seen = f"true or false in vector {place}"
            raise VectorError(seen, expected="numbers", remedy="Write 1 or 0 instead.", row=place)


def _file(body: bytes, media: str, settings: Settings, alone: bool) -> VectorBody:
    magic = ARROW_MAGIC if media == ARROW else b"\x93NUMPY"
    if not body.startswith(magic):
        seen = f"a body that does not begin like {media}"
        remedy = "Send the media type of the body as Content-Type."
        raise ArgumentError(seen, expected="the bytes of such a file", remedy=remedy)
    stream = BytesIO(body)
    stream.name = "the body"
    payload = ALL if media == ARROW and not alone else ()
    with open_vectors(stream, block=settings.rows_max + 1, payload=payload) as source:
        _check_cells(source.n or 0, source.payload_columns)
        blocks = list(source)
    rows = [block.vectors for block in blocks]
    payloads = _joined(blocks)
    empty = np.empty((0, source.dimension or 2), dtype=np.float32)
    joined = np.concatenate(rows) if rows else empty
    weights, ids = source.roles.get("weight", 1.0), source.roles.get("id")
    rows_ = door.vectors(joined, dimension=None)
    return VectorBody(rows_, payloads, weights, at=_times(source.roles.get("at")), ids=ids)


def _times(given: list[int | None] | None) -> npt.NDArray[np.datetime64] | None:
    """Return times that a client sent as microseconds since 1970."""
    if given is None:
        return None
    times = np.array([NO_TIME if each is None else each for each in given], dtype=np.int64)
    return times.view("datetime64[us]")


def _joined(blocks: list[Block]) -> Sequence[Any] | None:
    """Return the payloads of all blocks, without parsing them; None if there are none."""
    found = [block.payloads for block in blocks if block.payloads]
    if len(found) == 1:
        return found[0]
    lines = [line for each in found if isinstance(each, JsonLines) for line in each.lines]
    return JsonLines.of(lines) if lines else None
