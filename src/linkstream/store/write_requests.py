"""Requests to the writer thread: their parts, and functions that check arguments and build them.

All arguments are checked here, in the thread of the caller, before the request enters the queue.
"""

from __future__ import annotations

import hashlib
import json
import threading
import zlib
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import checks
from linkstream.clusterer.checks import check_yes_no
from linkstream.engine import door
from linkstream.engine.contract import Decisions
from linkstream.errors import ArgumentError
from linkstream.paper.thresholds import Thresholds
from linkstream.store import journal
from linkstream.store.journal import Operation, Payloads, Rows

KEY_MAX = 255  # characters
PAYLOAD_MAX = 64 << 10  # characters of JSON
PAYLOADS_MAX = 64 << 20  # of all payloads of a call
DEPTH_MAX = 32  # lists in lists
ROWS_MAX = 1 << 22  # vectors in one call


@dataclass(eq=False, slots=True)
class Call:
    """Something that the writer thread has to do for a caller.

    A bare lock signals the answer, so that the writer thread never blocks on a caller that is gone.

    Attributes:
        answer: the result, once `finished`.
        error: the exception to raise instead of an answer.
        finished: whether the call was answered.
        then: a callback for callers that do not wait; the thread that answers runs it.
    """

    answer: Any = None
    error: BaseException | None = None
    finished: bool = False
    then: Callable[[Call], None] | None = None
    _gate: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._gate.acquire()

    def finish(self) -> None:
        """Mark the call as answered and wake the caller."""
        if not self.finished:
            self.finished = True
            self._gate.release()
            if self.then is not None:
                self.then(self)

    def result(self) -> Any:
        """Wait for the answer and return it, or raise the error."""
        self._gate.acquire()
        self._gate.release()
        if self.error is not None:
            raise self.error
        return self.answer


@dataclass(eq=False, slots=True)
class Task(Call):
    """A function to run on the writer thread, while nothing is decided or written."""

    work: Callable[[], Any] = lambda: None

    def run(self) -> None:
        """Run the function and wake the caller."""
        try:
            self.answer = self.work()
        except BaseException as error:
            self.error = error
        finally:
            self.finish()


@dataclass(eq=False, slots=True)
class OpenStep:
    """A step whose calls are still coming; `first` is the number of its first operation."""

    command: str
    first: int = 0


@dataclass(eq=False, slots=True)
class WriteRequest(Call):
    """A call of a method of `Links` that changes something."""

    verb: str = ""  # the name of the method
    arguments: dict[str, Any] = field(default_factory=dict)  # plain JSON, without the vectors
    rows: Rows | None = None  # the vectors that come with it
    payloads: Payloads | None = None  # one value for each vector
    key: str | None = None  # the idempotency key
    digest: bytes | None = None  # SHA-256 of vectors and payloads, if there is a key
    crcs: list[int] | None = None  # of the pieces of the vectors, if the caller computed them
    alone: bool = False  # decide it only after all earlier requests are committed
    step: OpenStep | None = None  # the step that it belongs to
    renew: bool = False  # run it again if all vectors that came under its key were undone
    after: WriteRequest | None = None  # a request that must succeed first
    check: Callable[[int], None] | None = None  # gets the number of the next event; may raise
    first: int = -1  # the number of its first vector
    events: tuple[int, int] = (-1, -1)  # its first event, and the first event after it
    decisions: Decisions | None = None  # on its vectors, if they were made just now
    operation: Operation | None = None  # the journal entry to commit
    ahead: Future[None] | None = None  # the write of its vectors while they are being decided


@dataclass(frozen=True, eq=False, slots=True)
class Batch:
    """Vectors for `feed` with the other arguments of `add_many`.

    Attributes:
        X: the vectors, one a row.
        weight: one weight from 0 to 1 for all vectors, or one for each.
        payloads: one value for each vector, to be stored with it; None: no payloads.
        idempotency_key: the key under which the batch is added once.
    """

    X: npt.ArrayLike
    weight: npt.ArrayLike = 1.0
    payloads: Iterable[Any] | None = None
    idempotency_key: str | None = None


def add_request(
    verb: str,
    X: npt.ArrayLike,
    weight: npt.ArrayLike,
    group: str | None,
    payloads: Iterable[Any] | None,
    key: str | None,
) -> WriteRequest:
    """Return a request that adds vectors; `verb` is add, add_many or add_group."""
    rows = _rows(X, one=verb == "add")
    arguments: dict[str, Any] = {}
    if group is not None:
        arguments["key" if verb == "add_group" else "group"] = group
    if not (type(weight) is float and weight == 1.0) and any(checks.lights(weight, len(rows))):
        arguments["weight"] = np.asarray(weight, dtype=np.float64).tolist()
    plain = None if payloads is None else _payloads(payloads, len(rows))
    return _request(verb, arguments, rows if len(rows) else None, plain, key)


def check_batches(batches: object) -> None:
    """Raise ArgumentError unless `batches` is iterable."""
    if not isinstance(batches, Iterable):
        raise ArgumentError(
            f"batches of type {type(batches).__name__}",
            expected="an iterable of arrays or of Batch",
            remedy="Pass one array to add_many().",
        )


def batch_request(
    batch: npt.ArrayLike | Batch, *, after: WriteRequest | None, renew: bool
) -> WriteRequest:
    """Return the request for one batch of `feed`, to run after the request before it."""
    given = batch if isinstance(batch, Batch) else Batch(batch)
    request = add_request(
        "add_many", given.X, given.weight, None, given.payloads, given.idempotency_key
    )
    if request.rows is not None and np.may_share_memory(request.rows, np.asarray(given.X)):
        request.rows = request.rows.copy()  # the caller may reuse its array
    request.after, request.renew = after, renew
    if (
        request.rows is not None
    ):  # in the thread of the caller, so that the writer thread has less to do
        request.crcs = [zlib.crc32(body) for body in journal.pieces(request.rows)]
    return request


def enrol_request(name: str, X: npt.ArrayLike, locked: bool, key: str | None) -> WriteRequest:
    """Return a request that adds the vectors of a known name."""
    rows = _rows(X, one=False)
    return _request("enrol", {"name": name, "locked": locked}, rows, None, key, alone=True)


def remove_request(
    vector: npt.ArrayLike,
    x: npt.ArrayLike | None,
    cluster: int | None,
    weight: float | None,
    key: str | None,
) -> WriteRequest:
    """Return a request that removes a vector, given by number, by coordinates, or by both."""
    by_number = np.ndim(vector) == 0
    given = x if by_number else vector
    if not by_number and x is not None:
        raise ArgumentError(
            "two vectors to remove",
            expected="the number of a vector and x, or x alone",
            remedy="Leave out x=.",
        )
    rows = None if given is None else _rows(given, one=True)
    given_by = {"cluster": cluster, "weight": weight, "vector": vector if by_number else None}
    arguments = {name: value for name, value in given_by.items() if value is not None}
    return _request("remove", arguments, rows, None, key, alone=True)


def undo_request(to: int | None, step: bool, key: str | None) -> WriteRequest:
    """Return a request to undo the last change, all changes from an event on, or the last step."""
    if not check_yes_no("step", step):
        return verb_request("undo", {"to": to}, key)
    if to is not None:
        raise ArgumentError(
            f"undo(to={to!r:.80}, step=True)",
            expected="either to= or step=",
            remedy="to= undoes all changes from an event on; step=True undoes the last step.",
        )
    return verb_request("undo", {"to": None, "step": True}, key)


def settle_request(thresholds: Thresholds | None, key: str | None) -> WriteRequest:
    """Return a request to settle the clusters, by the thresholds of the store if None is given."""
    if thresholds is None:
        return verb_request("settle", {}, key)
    if not isinstance(thresholds, Thresholds):
        raise ArgumentError(
            f"thresholds of type {type(thresholds).__name__}",
            expected="Thresholds or None",
            remedy="None takes those of the clusterer.",
        )
    return verb_request("settle", {"thresholds": asdict(thresholds)}, key)


def verb_request(verb: str, arguments: dict[str, Any], key: str | None) -> WriteRequest:
    """Return a request for a verb that brings no vectors."""
    return _request(verb, arguments, None, None, key, alone=True)


def _request(
    verb: str,
    arguments: dict[str, Any],
    rows: Rows | None,
    payloads: Payloads | None,
    key: str | None,
    *,
    alone: bool = False,
) -> WriteRequest:
    request = WriteRequest(verb=verb, arguments=_plain(arguments), rows=rows, alone=alone)
    request.payloads, request.key = payloads, key
    if key is not None:
        _check_key(key)
        request.digest = _digest(rows, payloads)
    return request


def _rows(X: npt.ArrayLike, *, one: bool) -> Rows:
    rows = door.vector(X, dimension=None) if one else door.vectors(X, dimension=None)
    if len(rows) > ROWS_MAX:
        raise ArgumentError(
            f"{len(rows)} vectors in one call",
            expected=f"at most {ROWS_MAX}",
            remedy="Split the call, or use feed().",
        )
    return rows


def _digest(rows: Rows | None, payloads: Payloads | None) -> bytes:
    sha = hashlib.sha256(b"" if rows is None else np.ascontiguousarray(rows, dtype="<f4").data)
    shape = None if rows is None else rows.shape
    sha.update(json.dumps([shape, payloads], sort_keys=True).encode())
    return sha.digest()


def _plain(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments as JSON represents them."""
    if not arguments:
        return {}
    try:
        plain: dict[str, Any] = json.loads(json.dumps(arguments, default=_number))
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(
            f"arguments that JSON cannot represent ({error})",
            expected="numbers and strings",
            remedy="Pass plain Python values.",
        ) from None
    return plain


def _number(value: object) -> object:
    if isinstance(value, (np.integer, np.bool_)):
        return value.item()
    raise TypeError(f"a value of type {type(value).__name__}")


def _payloads(payloads: Iterable[Any], n: int) -> Payloads:
    listed = isinstance(payloads, Iterable) and not isinstance(payloads, (str, bytes, dict))
    given = list(payloads) if listed else []
    if not listed or len(given) != n:
        seen = f"{len(given)} payloads" if listed else f"payloads={payloads!r:.80}"
        raise ArgumentError(
            f"{seen} for {n} vectors",
            expected="a list with one for each vector",
            remedy="Use None for a vector without a payload.",
        )
    plain, size = [], 0
    for row, value in enumerate(given):
        text = _payload_text(value, row)
        size += len(text)
        if size > PAYLOADS_MAX:
            raise ArgumentError(
                f"payloads of more than {PAYLOADS_MAX} characters of JSON in one call",
                expected=f"at most {PAYLOADS_MAX} characters",
                remedy="Split the call, or store references instead of the values.",
            )
        plain.append(_payload(value, text, row))
    return plain


def _payload_text(value: Any, row: int) -> str:
    _check_depth(value, row)
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(
            f"payload {row} is not JSON ({error})",
            expected="strings, finite numbers, booleans, None, and lists and dicts of these",
            remedy="Convert the payload, or store a reference to it.",
        ) from None
    if len(text) > PAYLOAD_MAX:
        raise ArgumentError(
            f"payload {row} takes {len(text)} characters",
            expected=f"at most {PAYLOAD_MAX}",
            remedy="Attach a reference to it instead.",
        )
    return text


def _payload(value: Any, text: str, row: int) -> Any:
    """Return the value after a round trip through JSON; raise ArgumentError if it differs."""
    plain = json.loads(text)
    if plain != value and not _same(plain, value):
        raise ArgumentError(
            f"payload {row} has keys that are not strings",
            expected="dicts with string keys",
            remedy="Convert the keys to strings.",
        )
    return plain


def _check_depth(value: Any, row: int) -> None:
    level = [value]
    for _ in range(DEPTH_MAX):
        level = [
            inner
            for each in level
            if isinstance(each, (dict, list, tuple))
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
        if len(level) > PAYLOAD_MAX:
            break
    raise ArgumentError(
        f"payload {row} is nested more than {DEPTH_MAX} deep, or has too many values",
        expected="a smaller payload",
        remedy="Attach a reference to it instead.",
    )


def _same(plain: Any, value: Any) -> bool:
    """Return whether two values are equal when tuples count as lists."""
    if isinstance(plain, dict):
        return plain.keys() == value.keys() and all(_same(plain[k], value[k]) for k in plain)
    if isinstance(plain, list):
        return all(map(_same, plain, value))
    return bool(plain == value)


def _check_key(key: object) -> None:
    if isinstance(key, str) and 0 < len(key) <= KEY_MAX and _encodable(key):
        return
    shown = f"{key!r:.80}" if isinstance(key, str) else f"a value of type {type(key).__name__}"
    raise ArgumentError(
        f"idempotency_key: {shown}",
        expected=f"a string of 1 to {KEY_MAX} characters",
        remedy="Use a new key for each call, and the same key to retry a call.",
    )


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
