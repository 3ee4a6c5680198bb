"""Requests and answers: what a verb sends, and how the answer is read.

A verb (`reads.py`, `writes.py`) is a generator: it yields requests, receives the answer to each,
and returns the caller's result. It does no input or output, so both clients run the same
description: `Client` blocks at each request, `AsyncClient` awaits it.
"""

from __future__ import annotations

import inspect
import json
import re
import uuid
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from linkstream.client import errors
from linkstream.clusterer import Links
from linkstream.clusterer.verb_docs import documentation
from linkstream.engine import door
from linkstream.engine.fixed_point import norms
from linkstream.errors import ArgumentError, LinkstreamError
from linkstream.store.reader import OWN_PARAMETERS as STORE_PARAMETERS

JSON, BINARY = "application/json", "application/octet-stream"
KEY = "Idempotency-Key"

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
Query = Mapping[str, str | int]
Rows = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request."""

    method: str
    path: str  # below the namespace; below the service if `in_namespace` is False
    query: Query = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)  # besides those of every request
    body: bytes | None = None
    in_namespace: bool = True
    slow: bool = False  # the answer may take minutes, as for `settle`

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
        """Return the IDs, from bytes or JSON; raise AnswerError unless there are n, if given."""
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


def fetch(path: str, reader: Callable[[Any], T], **query: Any) -> Steps[T]:
    """Ask for one answer, with the options of `get`; return what the reader makes of it."""
    answer = yield get(path, **query)
    return answer.read(reader)


# The parameters that verbs have only in a client.
OWN_PARAMETERS = {
    "payload": "any JSON value to store with the vector, returned by `payload()`.",
    "payloads": "one JSON value for each vector; or `JsonLines`, or a table of Arrow whose columns "
    "are the fields.",
    **{name: STORE_PARAMETERS[name] for name in ("at", "id", "ids")},
    "step": "undo the whole last step: all that one command or one call did; see `steps`.",
    "after": "the `event` of `last_write()`: undo that change only if no other came after it, else "
    "raise UndoError.",
    "idempotency_key": "the same call with the same key is done once, and gets the first answer "
    "again. Another call with the key raises IdempotencyError. None makes a key for the call.",
}


def as_in_links(verb: F) -> F:
    """Give a verb the documentation of the method of `Links`, and of the client's parameters."""
    method = getattr(Links, verb.__name__)
    added = inspect.signature(verb).parameters.keys() - inspect.signature(method).parameters.keys()
    own = {name: words for name, words in OWN_PARAMETERS.items() if name in added}
    told = inspect.getdoc(method)
    verb.__doc__ = documentation(verb.__name__, own) if own else told
    return verb


def get(
    path: str, *, in_namespace: bool = True, slow: bool = False, accept: str = JSON, **query: Any
) -> Request:
    """Make a request that reads; query parameters that are None are left out."""
    headers = {"Accept": accept}
    return Request("GET", path, query_of(query), headers, in_namespace=in_namespace, slow=slow)


def post(
    path: str, values: Any, *, key: str | None = None, write: bool = True, slow: bool = False
) -> Request:
    """Make a request with a JSON body; a write also gets an idempotency key."""
    headers = {"Content-Type": JSON} | (key_header(key) if write else {})
    return Request("POST", path, headers=headers, body=to_json(values), slow=slow)


def query_of(query: Mapping[str, Any]) -> Query:
    """Return query parameters without those that are None."""
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in query.items()
        if value is not None
    }


_KEY = re.compile(r"[!-~]{1,255}")


def key_header(key: str | None) -> dict[str, str]:
    """Return the header with the caller's key, or with a new key for this call and its retries."""
    if key is None:
        return {KEY: uuid.uuid4().hex}
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        expected = "1 to 255 printable ASCII characters without blanks"
        remedy = "Use the batch's name or number without blanks, or leave the key out."
        raise ArgumentError(f"idempotency_key={key!r:.80}", expected=expected, remedy=remedy)
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


# Vectors; `sending.py` makes the bodies.


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


def check_group(group: object) -> None:
    """Raise ArgumentError unless a group is a string or None."""
    if not (group is None or isinstance(group, str)):
        seen = f"group of type {type(group).__name__}"
        remedy = "Name the photo or recording in which the vectors were seen."
        raise ArgumentError(seen, expected="a string", remedy=remedy)
