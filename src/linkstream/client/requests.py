"""Requests and answers: what a verb sends, and how the answer is read.

A verb (`reads.py`, `writes.py`) is a generator: it yields requests, receives the answer to each,
and returns the caller's result. It does no input or output, so both clients run the same
description: `Client` blocks at each request, `AsyncClient` awaits it.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from linkstream.client import errors
from linkstream.clusterer.checks import lights
from linkstream.engine import door
from linkstream.engine.fixed_point import norms
from linkstream.errors import ArgumentError, LinkstreamError

JSON, BINARY = "application/json", "application/octet-stream"
KEY = "Idempotency-Key"

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
Query = Mapping[str, str | int]
Rows = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request.

    Attributes:
        method: the HTTP method.
        path: below the namespace; below the service if `in_namespace` is False.
        query: the query parameters.
        headers: the headers, without those that every request has.
        body: the bytes to send; None for none.
        in_namespace: whether the path lies below the namespace.
        slow: whether the answer may take minutes, as for `settle`.
    """

    method: str
    path: str
    query: Query = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    in_namespace: bool = True
    slow: bool = False

    def __str__(self) -> str:
        return f"{self.method} {self.path or '/'}"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def good(self) -> bool:
        """Whether the status is a success."""
        return 200 <= self.status < 300

    def error(self) -> LinkstreamError:
        """Return the error that this answer describes."""
        return errors.from_answer(self.status, self.headers, self.body)

    def read(self, reader: Callable[[Any], T]) -> T:
        """Parse the JSON and pass it to a reader; raise AnswerError if that fails."""
        try:
            return reader(json.loads(self.body))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise self._unreadable(repr(error)) from None

    def ids(self, n: int | None, name: str = "ids") -> npt.NDArray[np.int64]:
        """Return the IDs, from bytes or from JSON; raise AnswerError unless there are n.

        With n=None any number is accepted.
        """
        if self.headers.get("content-type", "").partition(";")[0].strip() == BINARY:
            complete = len(self.body) - len(self.body) % 8
            ids = np.frombuffer(self.body[:complete], dtype="<i8").astype(np.int64)
            valid = complete == len(self.body)
        else:
            ids = self.read(lambda values: np.array(values[name], dtype=np.int64))
            valid = ids.ndim == 1
        if not valid or n not in (None, len(ids)):
            raise self._unreadable(f"{len(self.body)} bytes for the IDs of {n} vectors")
        return ids

    def _unreadable(self, reason: str) -> errors.AnswerError:
        error = errors.AnswerError(
            f"an answer that cannot be read ({reason:.200})",
            expected="an answer of this version of the service",
            remedy="Use the same version for client and service; check proxies between them.",
        )
        error.status = self.status
        return error


Steps = Generator[Request, Answer, T]


def as_method(method: F, verb: Callable[..., Steps[Any]]) -> F:
    """Give a client's method the name, documentation and signature of a verb."""
    functools.update_wrapper(method, verb)
    signature = inspect.signature(verb)
    result = str(signature.return_annotation).removeprefix("Steps[").removesuffix("]")
    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [this, *signature.parameters.values()]
    shown = signature.replace(parameters=parameters, return_annotation=result)
    method.__signature__ = shown  # type: ignore[attr-defined]
    return method


def get(
    path: str, *, in_namespace: bool = True, slow: bool = False, accept: str = JSON, **query: Any
) -> Request:
    """Make a request that reads; query parameters that are None are left out."""
    headers = {"Accept": accept}
    return Request("GET", path, _query(query), headers, in_namespace=in_namespace, slow=slow)


def post(
    path: str, values: Any, *, key: str | None = None, write: bool = True, slow: bool = False
) -> Request:
    """Make a request with a JSON body; a write also gets an idempotency key."""
    headers = {"Content-Type": JSON} | (key_header(key) if write else {})
    return Request("POST", path, headers=headers, body=to_json(values), slow=slow)


def _query(query: Mapping[str, Any]) -> Query:
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in query.items()
        if value is not None
    }


_KEY = re.compile(r"[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?")


def key_header(key: str | None) -> dict[str, str]:
    """Return the header with the caller's key, or with a new key for this call and its retries."""
    if key is None:
        return {KEY: uuid.uuid4().hex}
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise ArgumentError(
            f"idempotency_key={key!r:.80}",
            expected="1 to 255 ASCII characters, without blanks at the ends",
            remedy="Use the batch's name or number, or leave the key out.",
        )
    return {KEY: key}


def to_json(values: Any) -> bytes:
    """Encode values as JSON; raise ArgumentError if JSON cannot hold them."""
    try:
        return json.dumps(values, allow_nan=False, separators=(",", ":"), default=_scalar).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(
            f"values that are not JSON ({error})",
            expected="strings, finite numbers, booleans, None, and lists and dicts of them",
            remedy="Convert them, or attach a reference to where they are stored.",
        ) from None


def _scalar(value: object) -> object:
    if isinstance(value, (np.integer, np.bool_)):
        return value.item()
    raise TypeError(f"a value of type {type(value).__name__}")


# Vectors: raw float32 where they are sent alone, JSON with payloads or weights.


def rows_of(X: npt.ArrayLike) -> Rows:
    """Return the vectors as float32 rows; raise VectorError as `Links` would."""
    return door.vectors(X, dimension=None)


def row_of(x: npt.ArrayLike) -> Rows:
    """Return one vector as a single row."""
    return door.vector(x, dimension=None)


def finite(rows: Rows) -> Rows:
    """Return the rows; raise VectorError for numbers that JSON cannot hold."""
    door.check_norms(rows, norms(rows.astype(np.float64)))
    return rows


def post_vectors(
    path: str,
    rows: Rows,
    *,
    idempotency_key: str | None = None,
    write: bool = True,
    weight: npt.ArrayLike = 1.0,
    payloads: Iterable[Any] | None = None,
    **texts: str | None,
) -> Request:
    """Make a request that sends many vectors; `texts` are parameters of the whole batch."""
    headers = {"Accept": BINARY} | (key_header(idempotency_key) if write else {})
    for name, text in texts.items():
        _check_text(name, text)
    full = _is_full(weight)
    if payloads is None and full:
        return _post_raw(path, rows, headers, **texts)
    values: dict[str, Any] = {name: text for name, text in texts.items() if text is not None}
    if payloads is not None:
        values["payloads"] = _payload_list(payloads)
    if not full:
        values["weights"] = _weights(weight, len(rows))
    values["vectors"] = finite(rows).tolist()
    return Request("POST", path, {}, headers | {"Content-Type": JSON}, to_json(values))


def post_vector(
    path: str, row: Rows, *, key: str | None, weight: float, payload: Any, group: str | None
) -> Request:
    """Make a request that sends one vector and is answered by its decision."""
    headers = {"Accept": JSON} | key_header(key)
    _check_text("group", group)
    if payload is None and _is_full(weight):
        return _post_raw(path, row, headers, one="1", group=group)
    values: dict[str, Any] = {"vector": finite(row)[0].tolist(), "payload": payload}
    values |= {"group": group, "weight": _weights(weight, 1)[0]}
    return Request("POST", path, {}, headers | {"Content-Type": JSON}, to_json(values))


def _post_raw(path: str, rows: Rows, headers: dict[str, str], **query: str | None) -> Request:
    body = rows.astype("<f4", copy=False).tobytes()
    parameters = _query({"dimension": rows.shape[1], **query})
    return Request("POST", path, parameters, headers | {"Content-Type": BINARY}, body)


def _is_full(weight: npt.ArrayLike) -> bool:
    return type(weight) in (int, float) and weight == 1


def _weights(weight: npt.ArrayLike, n: int) -> list[float]:
    lights(weight, n)  # raises ArgumentError for weights that are not valid
    weights: list[float] = np.broadcast_to(np.asarray(weight, dtype=np.float64), (n,)).tolist()
    return weights


def _payload_list(payloads: Iterable[Any]) -> list[Any]:
    if not isinstance(payloads, Iterable) or isinstance(payloads, (str, bytes, dict)):
        raise ArgumentError(
            f"payloads={payloads!r:.80}",
            expected="a list with one payload for each vector",
            remedy="Use None for a vector without a payload.",
        )
    return list(payloads)


def _check_text(name: str, text: object) -> None:
    if not (text is None or isinstance(text, str)):
        raise ArgumentError(
            f"{name} of type {type(text).__name__}",
            expected="a string",
            remedy="Name the photo or recording in which the vectors were seen.",
        )
