"""Requests to the writer thread: their parts, and functions that check arguments and build them.

All arguments are checked here, in the thread of the caller, before the request enters the queue.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer.checks import check_yes_no
from linkstream.clusterer.rebuilding import Prepared
from linkstream.clusterer.verbs import AddMany, Verb
from linkstream.engine import door
from linkstream.engine.contract import Decisions
from linkstream.engine.linkage import Progress
from linkstream.errors import ArgumentError
from linkstream.store import digests, journal
from linkstream.store.blocks import NOTHING, ROWS_MAX, Attached
from linkstream.store.journal import Operation, Rows
from linkstream.store.own_columns import (
    Moments,
    check_key,
    check_keys,
    check_times,
    hashes_of,
)
from linkstream.store.payloads import check as check_payloads

KEY_MAX = 255  # characters
GROUPED = ("add", "add_many", "add_group")  # verbs that are committed in groups with other calls


@dataclass(eq=False, slots=True)
class Call:
    """Something that the writer thread has to do for a caller.

    A bare lock signals the answer, so that the writer thread never blocks on a caller that is gone.
    """

    answer: Any = None  # the result, once `finished`
    error: BaseException | None = None  # to raise instead of an answer
    finished: bool = False
    then: Callable[[Call], None] | None = None  # for callers that do not wait, run when answered
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
    attached: Attached = NOTHING  # payloads, times and keys of the vectors
    key_hashes: npt.NDArray[np.int64] | None = None  # of the keys of the vectors
    named: dict[str, Any] = field(default_factory=dict)  # arguments that are keys of vectors
    found: dict[str, str] = field(default_factory=dict)  # arguments that the call finds itself
    key: str | None = None  # the idempotency key
    digest: bytes | None = None  # of vectors and what came with them, if there is a key
    crcs: list[int] | None = None  # of the pieces of the vectors, if the caller computed them
    alone: bool = False  # decide it only after all earlier requests are committed
    step: OpenStep | None = None  # the step that it belongs to
    renew: bool = False  # run it again if all vectors that came under its key were undone
    after: WriteRequest | None = None  # a request that must succeed first
    check: Callable[[int], None] | None = None  # gets the number of the next event; may raise
    clusters: tuple[int, int] | None = None  # where the two of a correction have to be
    progress: Progress | None = None  # gets the share of the work that is done
    prepared: Prepared | None = None  # a rebuild that was computed ahead
    seen: int = 0  # the number of events when a rebuild of no vectors was computed ahead
    within: Callable[[sqlite3.Connection], None] | None = None  # runs in the same transaction
    first: int = -1  # the number of its first vector
    events: tuple[int, int] = (-1, -1)  # its first event, and the first event after it
    decisions: Decisions | None = None  # on its vectors, if they were made just now
    operation: Operation | None = None  # the journal entry to commit
    ahead: Future[None] | None = None  # the write of its vectors while they are being decided

    @property
    def told(self) -> dict[str, Any]:
        """Arguments as the caller gave them, where the journal has what they stand for."""
        return {**self.named, **self.found}


@dataclass(frozen=True, eq=False, slots=True)
class Batch:
    """Vectors for `feed` with the other arguments of `add_many`.

    Attributes:
        X: the vectors, one a row.
        weight: one weight from 0 to 1 for all vectors, or one for each.
        payloads: one value for each vector, to be stored with it; None: no payloads.
        at: the time of each vector, or one for all; None: no times.
        ids: the vectors' own keys, one for each vector; None: no keys.
        idempotency_key: the key under which the batch is added once.
    """

    X: npt.ArrayLike
    weight: npt.ArrayLike = 1.0
    payloads: Iterable[Any] | None = None
    idempotency_key: str | None = None
    at: Moments | None = None
    ids: Iterable[str | None] | None = None


def attached_to(
    n: int,
    payloads: Iterable[Any] | None,
    at: Moments | None = None,
    ids: Iterable[str | None] | None = None,
) -> Attached:
    """Return what comes with `n` vectors, checked; raise ArgumentError if it is not usable."""
    return Attached(
        None if payloads is None else check_payloads(payloads, n),
        None if at is None else check_times(at, n),
        None if ids is None else check_keys(ids, n),
    )


def request_of(
    verb: Verb,
    *,
    payloads: Iterable[Any] | None = None,
    at: Moments | None = None,
    ids: Iterable[str | None] | None = None,
    key: str | None = None,
    step: bool = False,
) -> WriteRequest:
    """Return the request for a verb; raise ArgumentError for arguments that are not usable.

    `payloads` has a JSON value for each vector, see `store.payloads.check`; `at` the times and
    `ids` the keys, see `store.own_columns`. With `step`, `undo` undoes the whole last step.
    """
    rows = None if verb.vectors is None else _rows(verb.vectors, one=verb.one_vector)
    arguments = _plain(verb.journal_arguments())
    if check_yes_no("step", step):
        arguments["step"] = _check_step(arguments)
    n = 0 if rows is None else len(rows)
    attached = attached_to(n, payloads, at, ids)
    request = WriteRequest(verb=verb.verb, arguments=arguments, attached=attached, key=key)
    request.named, request.found = verb.keys(), dict.fromkeys(verb.found, "")
    if isinstance(arguments.get("thresholds"), str):
        request.found = {"thresholds": arguments["thresholds"]}
    for given in request.named.values():
        for key_of_vector in given if isinstance(given, list) else [given]:
            if isinstance(key_of_vector, str):
                check_key(key_of_vector)
    if attached.keys is not None:
        request.key_hashes = hashes_of(attached.keys)
    request.rows = rows if rows is None or len(rows) else None
    request.alone = verb.verb not in GROUPED
    if key is not None:
        _check_key(key)
        request.digest = digests.digest(request.rows, attached, request.told)
    return request


def _check_step(arguments: dict[str, Any]) -> bool:
    if arguments.get("to") is not None:
        raise ArgumentError(
            f"undo(to={arguments['to']!r:.80}, step=True)",
            expected="either to= or step=",
            remedy="to= undoes all changes from an event on; step=True undoes the last step.",
        )
    return True


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
    verb = AddMany(given.X, weight=given.weight)
    own: dict[str, Any] = {"payloads": given.payloads, "at": given.at, "ids": given.ids}
    request = request_of(verb, key=given.idempotency_key, **own)
    if request.rows is not None and np.may_share_memory(request.rows, np.asarray(given.X)):
        request.rows = request.rows.copy()  # the caller may reuse its array
    request.after, request.renew = after, renew
    if request.rows is not None:  # compute checksums in the thread of the caller
        request.crcs = [zlib.crc32(body) for body in journal.pieces(request.rows)]
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


def _plain(arguments: dict[str, Any]) -> dict[str, Any]:
    if not arguments:
        return {}
    try:
        plain: dict[str, Any] = json.loads(json.dumps(arguments))
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(
            f"arguments that JSON cannot represent ({error})",
            expected="numbers and strings",
            remedy="Pass plain Python values.",
        ) from None
    return plain


def _check_key(key: object) -> None:
    if isinstance(key, str) and 0 < len(key) <= KEY_MAX:
        with contextlib.suppress(UnicodeEncodeError):
            key.encode()
            return
    shown = f"{key!r:.80}" if isinstance(key, str) else f"a value of type {type(key).__name__}"
    raise ArgumentError(
        f"idempotency_key: {shown}",
        expected=f"a string of 1 to {KEY_MAX} characters",
        remedy="Use a new key for each call, and the same key to retry a call.",
    )
