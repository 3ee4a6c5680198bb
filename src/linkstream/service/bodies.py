"""Bodies: what a request brings, read within bounds and judged before it is trusted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from linkstream.engine import door
from linkstream.errors import ArgumentError, VectorError
from linkstream.io import ALL, open_vectors
from linkstream.service.answers import Refusal
from linkstream.service.heads import head, query
from linkstream.service.sessions import SESSION, Session, Sessions
from linkstream.service.settings import Settings
from linkstream.service.shapes import Grouped, OneVector, Vectors

JSON = "application/json"
RAW = "application/octet-stream"
NPY = "application/x-npy"
ARROW = "application/vnd.apache.arrow.stream"
MEDIA = (JSON, RAW, NPY, ARROW)
JSON_MAX = 8 << 20  # bytes: reading more would hold everybody up
ARROW_MAGIC = b"\xff\xff\xff\xff"

# Small bodies can be made to swell: lists of nothing, names of nothing.
MARKS_MAX = {b"[": 100_000, b"{": 100_000, b":": 100_000, b",": 2_000_000}
CELLS_MAX = 1 << 20  # values of payload columns in one body
_LONG = 1 << 16  # bytes, over which it is read off the event loop, one body at a time

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


@dataclass(frozen=True, eq=False, slots=True)
class Given:
    """Vectors of a request, and what came with them; `one`: it was a single one."""

    rows: npt.NDArray[np.float32]
    payloads: list[Any] | None = None
    weights: Any = 1.0
    group: str | None = None
    one: bool = False


async def read(request: Request, settings: Settings, *, most: int | None = None) -> bytes:
    """The whole body; 413 as soon as it is known to be too large, 503 where there is no room."""
    most = min(settings.body_max, settings.queue_bytes, most or settings.body_max)
    length = int((head(request, b"content-length") or "0")[:19])
    if length > most:
        raise too_large(f"a body of {length} bytes", most)
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
                raise too_large(f"a body of more than {most} bytes", most)
            sessions.hold(session, len(piece))
            size += len(piece)
            pieces.append(piece)
            if not message.get("more_body", False):
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)
    finally:
        sessions.let_go(session, size)


def too_large(seen: str, most: int) -> Refusal:
    """413."""
    return Refusal(
        413,
        "too-large",
        seen,
        expected=f"at most {most} bytes",
        remedy="Send vectors as raw float32, and in smaller batches.",
        headers={"Connection": "close"},
    )


async def said(request: Request, settings: Settings, model: type[M]) -> M:
    """A JSON body of a known shape."""
    check_media(request, (JSON,))
    body = await read(request, settings, most=JSON_MAX)
    return await _aside(request, body, lambda: shaped(parsed(body), model))


async def vectors(
    request: Request, settings: Settings, *, grouped: bool = False, alone: bool = False
) -> Given:
    """Vectors in any of the four kinds of body.

    `grouped`: JSON as of a group. `alone`: what a table has beside them is left.
    """
    media = check_media(request, MEDIA)
    body = await read(request, settings, most=JSON_MAX if media == JSON else None)
    if media == RAW:
        given = _raw(body, _dimension(request))
    elif media == JSON:
        given = await _aside(request, body, lambda: _grouped(body) if grouped else _json(body))
    else:
        given = await _aside(request, body, lambda: _file(body, media, settings, alone))
    check_size(given.rows, settings)
    return given


async def _aside(request: Request, body: bytes, work: Callable[[], T]) -> T:
    """Read a long body off the event loop."""
    if len(body) <= _LONG:
        return work()
    sessions: Sessions = request.app.state.sessions
    async with sessions.parsing:
        return await sessions.reading(work)


def check_size(rows: npt.NDArray[np.float32] | None, settings: Settings) -> None:
    """413 for more vectors, or longer ones, than a request may bring."""
    n, dimension = (0, 0) if rows is None else rows.shape
    if n > settings.rows_max or dimension > settings.dimension_max:
        raise Refusal(
            413,
            "too-large",
            f"{n} vectors of dimension {dimension}",
            expected=f"at most {settings.rows_max}, of dimension {settings.dimension_max}",
            remedy="Send them in smaller batches.",
        )


def check_name(name: str | None, settings: Settings) -> None:
    """ArgumentError for a name of a cluster that is longer than the service takes."""
    if name is not None and len(name) > settings.name_max:
        raise ArgumentError(
            f"a name of {len(name)} letters",
            expected=f"at most {settings.name_max}",
            remedy="Choose a shorter one.",
        )


def check_media(request: Request, wanted: tuple[str, ...]) -> str:
    """The kind of body; 415 for one that nobody reads here."""
    kind, packed = head(request, b"content-type"), head(request, b"content-encoding")
    media, _, more = (kind or "").lower().partition(";")
    media, more = media.strip(), more.replace(" ", "").replace('"', "")
    spelt = more.removeprefix("charset=") in ("", "utf-8", "utf8")
    if media in wanted and spelt and packed in (None, "identity"):
        return media
    raise Refusal(
        415,
        "media-type",
        f"Content-Type {kind!r:.100}, Content-Encoding {packed!r:.40}",
        expected=f"{' or '.join(wanted)}, in UTF-8, not compressed",
        remedy="Say by Content-Type what the body is.",
    )


def parsed(body: bytes) -> Any:
    """JSON as the standard has it: no NaN, no name twice, no endless nesting."""
    for mark, most in MARKS_MAX.items():
        if body.count(mark) > most:
            raise ArgumentError(
                f"JSON with {body.count(mark)} of {mark.decode()!r}",
                expected=f"at most {most}",
                remedy="Send vectors as raw float32, and payloads in smaller batches.",
            )
    try:
        text = body.decode()
        found = json.loads(text, object_pairs_hook=_unique, parse_constant=_constant)
        if "\\ud" in text or "\\uD" in text:  # halves of letters: they must come in pairs
            json.dumps(found, ensure_ascii=False).encode()
        return found
    except RecursionError:
        problem = "nested too deep"
    except ValueError as error:  # also bad UTF-8, and numbers of thousands of digits
        problem = f"{error!s:.200}"
    raise ArgumentError(
        f"a body that is no JSON ({problem})",
        expected="JSON in UTF-8, as RFC 8259 has it",
        remedy="Numbers are finite; no object has a name twice.",
    )


def shaped(values: Any, model: type[M]) -> M:
    """Parsed JSON of a known shape."""
    strange = values.keys() - model.model_fields.keys() if isinstance(values, dict) else ()
    if strange:
        raise ArgumentError(
            f"{min(strange)!r:.100}, which is not known here",
            expected=f"some of {', '.join(model.model_fields)}",
            remedy="Leave it out, or spell it right.",
        )
    try:
        return model.model_validate(values, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise misshapen(first) from None


def misshapen(problem: Any) -> ArgumentError:
    """What pydantic found, in our words."""
    place = ".".join(str(part) for part in problem["loc"] if part not in ("body", "query"))
    return ArgumentError(
        f"{place or 'the body'!s:.100}: {problem['msg']!s:.200}",
        expected="what /openapi.json says of this route",
        remedy="Mend it; nothing has changed.",
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name twice in one object")
    return found


def _constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _dimension(request: Request) -> int:
    words = query(request).get("dimension", "")
    if words.isascii() and words.isdigit() and len(words) < 10 and int(words) > 0:
        return int(words)
    raise ArgumentError(
        f"dimension={words!r:.40} for raw float32",
        expected="how many numbers a vector has, in the query",
        remedy="Send it to …/vectors?dimension=256, say.",
    )


def _raw(body: bytes, dimension: int) -> Given:
    if len(body) % (4 * dimension):
        raise VectorError(
            f"{len(body)} bytes",
            expected=f"whole vectors of {dimension} float32 numbers, 4 bytes each",
            remedy="Send little-endian float32, row after row.",
        )
    return Given(np.frombuffer(body, dtype="<f4").reshape(-1, dimension))


def _json(body: bytes) -> Given:
    values = parsed(body)
    if isinstance(values, dict) and "vector" in values:
        one = shaped(values, OneVector)
        _check_numbers(body, [one.vector])
        rows = door.vector(one.vector, dimension=None)
        payloads = None if one.payload is None else [one.payload]
        return Given(rows, payloads, one.weight, one.group, one=True)
    many = shaped(values, Vectors)
    _check_numbers(body, many.vectors)
    rows = door.vectors(many.vectors, dimension=None)
    weights = 1.0 if many.weights is None else many.weights
    return Given(rows, many.payloads, weights, many.group)


def _check_cells(rows: int, columns: int) -> None:
    if rows * columns > CELLS_MAX:
        raise Refusal(
            413,
            "too-large",
            f"{rows} rows of {columns} columns beside the vectors",
            expected=f"at most {CELLS_MAX} values in all",
            remedy="Send fewer rows or columns at a time.",
        )


def _check_numbers(body: bytes, rows: Any) -> None:
    """VectorError where a vector holds yes or no, which NumPy would take for numbers."""
    if b"true" not in body and b"false" not in body:
        return
    for place, row in enumerate(rows if isinstance(rows, list) else ()):
        if isinstance(row, list) and any(type(value) is bool for value in row):
            raise VectorError(
                f"true or false in vector {place}",
                expected="numbers",
                remedy="Write 1 or 0 if that is meant.",
                row=place,
            )


def _grouped(body: bytes) -> Given:
    said = shaped(parsed(body), Grouped)
    _check_numbers(body, said.vectors)
    rows = door.vectors(said.vectors, dimension=None)
    return Given(rows, said.payloads, 1.0 if said.weights is None else said.weights, said.key)


def _file(body: bytes, media: str, settings: Settings, alone: bool) -> Given:
    magic = ARROW_MAGIC if media == ARROW else b"\x93NUMPY"
    if not body.startswith(magic):
        raise ArgumentError(
            f"a body that does not begin as {media} does",
            expected="the bytes of such a file",
            remedy="Say by Content-Type what it is.",
        )
    stream = BytesIO(body)
    stream.name = "the body"
    payload = ALL if media == ARROW and not alone else ()
    with open_vectors(stream, block=settings.rows_max + 1, payload=payload) as source:
        _check_cells(source.n or 0, source.payload_columns)
        blocks = list(source)
    rows = [block.vectors for block in blocks]
    payloads = [each for block in blocks for each in block.payloads or ()]
    empty = np.empty((0, source.dimension or 2), dtype=np.float32)
    joined = np.concatenate(rows) if rows else empty
    return Given(door.vectors(joined, dimension=None), payloads or None)
