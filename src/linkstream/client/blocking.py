"""Client: blocks until the service has answered. Many threads may use one client."""

from __future__ import annotations

import copy
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Concatenate, ParamSpec, TypeVar

import httpx
import numpy as np
import numpy.typing as npt

from linkstream.client import reads, writes
from linkstream.client.endpoint import (
    CONNECT,
    READ,
    Endpoint,
    Outcome,
    RequestRun,
    Retries,
    check_open,
    http_options,
    to_answer,
)
from linkstream.client.event_stream import EventFollower
from linkstream.client.requests import Steps, as_method
from linkstream.engine.events import Event
from linkstream.store import Batch
from linkstream.store.write_requests import check_batches

P = ParamSpec("P")
T = TypeVar("T")


def blocking(verb: Callable[P, Steps[T]]) -> Callable[Concatenate[Client, P], T]:
    """Make a method of `Client` from a verb."""

    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(verb(*args, **kwargs))

    return as_method(method, verb)


class Client:
    """A namespace of a service, with the verbs of `Links`.

    Args:
        url: the address of the service, such as "http://127.0.0.1:7777".
        namespace: the namespace; None for a client that only asks about the service itself.
        token: the output of `linkstream token create`; None if the service has no tokens.
        timeout: seconds to wait for an answer. Work over the whole namespace has ten minutes.
        connect_timeout: seconds to wait for a connection.
        retries: how often a failed call is tried again; None for the defaults of `Retries`.
        verify: whether the server's certificate is checked, or the SSLContext to check it with.
        transport: the transport of httpx that sends requests; for tests.
    """

    def __init__(
        self,
        url: str,
        namespace: str | None = None,
        *,
        token: str | None = None,
        timeout: float = READ,
        connect_timeout: float = CONNECT,
        retries: Retries | None = None,
        verify: bool | ssl.SSLContext = True,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._endpoint = Endpoint.checked(
            url, namespace, timeout=timeout, connect_timeout=connect_timeout, retries=retries
        )
        self._shared = False  # whether another client owns the connections
        options = http_options(self._endpoint, token, verify)
        self._http = httpx.Client(**options, transport=transport)

    # Reads: documented in reads.py

    health = blocking(reads.health)
    whoami = blocking(reads.whoami)
    namespaces = blocking(reads.namespaces)
    info = blocking(reads.info)
    thresholds = blocking(reads.thresholds)
    stats = blocking(reads.stats)
    state_hash = blocking(reads.state_hash)
    predict = blocking(reads.predict)
    labels = blocking(reads.labels)
    clusters = blocking(reads.clusters)
    cluster = blocking(reads.cluster)
    members = blocking(reads.members)
    vector = blocking(reads.vector)
    payload = blocking(reads.payload)
    resolve = blocking(reads.resolve)
    named = blocking(reads.named)
    explain = blocking(reads.explain)
    explain_pair = blocking(reads.explain_pair)
    history = blocking(reads.history)
    exemplars = blocking(reads.exemplars)
    review_queue = blocking(reads.review_queue)
    suggest_merges = blocking(reads.suggest_merges)
    suggest_splits = blocking(reads.suggest_splits)
    corrections = blocking(reads.corrections)
    events = blocking(reads.events)
    steps = blocking(reads.steps)

    # Changes: documented in writes.py

    create = blocking(writes.create)
    add = blocking(writes.add)
    add_many = blocking(writes.add_many)
    add_group = blocking(writes.add_group)
    enrol = blocking(writes.enrol)
    same = blocking(writes.same)
    different = blocking(writes.different)
    move = blocking(writes.move)
    retract = blocking(writes.retract)
    name = blocking(writes.name)
    rename = blocking(writes.rename)
    ignore = blocking(writes.ignore)
    remove = blocking(writes.remove)
    forget = blocking(writes.forget)
    undo = blocking(writes.undo)
    redo = blocking(writes.redo)
    settle = blocking(writes.settle)
    compact = blocking(writes.compact)

    def namespace(self, name: str) -> Client:
        """Return a client of another namespace that shares this client's connections.

        Args:
            name: the namespace.
        """
        other = copy.copy(self)
        vars(other).update(_endpoint=self._endpoint.of(name), _shared=True)
        return other

    def feed(self, batches: Iterable[npt.ArrayLike | Batch]) -> Iterator[npt.NDArray[np.int64]]:
        """Add batches one after the other; yield the IDs of each after its commit.

        A batch that is refused ends the iteration; no batch after it is sent.

        Args:
            batches: arrays with one vector a row, or `Batch`.
        """
        check_batches(batches)
        return (self._add_batch(batch) for batch in batches)

    def _add_batch(self, batch: npt.ArrayLike | Batch) -> npt.NDArray[np.int64]:
        given = batch if isinstance(batch, Batch) else Batch(batch)
        return self.add_many(
            given.X,
            weight=given.weight,
            payloads=given.payloads,
            idempotency_key=given.idempotency_key,
        )

    def iter_events(self, since: int = 0) -> Iterator[Event]:
        """Yield the typed events so far, and read them page by page.

        Args:
            since: the sequence number of the first event.
        """
        while page := self.events(since, limit=reads.PAGE):
            yield from page
            since = page[-1].sequence + 1

    def follow(self, since: int = 0) -> Iterator[Event]:
        """Yield the typed events so far, then each new one; without end.

        A broken connection is opened again, and each event comes once. Raises the error of the
        last attempt if the service cannot be reached again.

        Args:
            since: the sequence number of the first event.
        """
        return self._follow(EventFollower(since, self._endpoint.retries))

    def _follow(self, follower: EventFollower) -> Iterator[Event]:
        while True:
            failure: Outcome | None = None
            check_open(self._http)
            try:
                with self._http.stream(**self._endpoint.arguments(follower.request())) as response:
                    if response.status_code == 200:
                        for piece in response.iter_bytes():
                            yield from follower.read(piece)
                    else:
                        response.read()
                        failure = to_answer(response)
            except httpx.HTTPError as error:
                failure = error
            time.sleep(follower.delay_after(failure))

    def _run(self, steps: Steps[T]) -> T:
        check_open(self._http)
        run = RequestRun(steps, self._endpoint)
        while (request := run.next_request()) is not None:
            outcome: Outcome
            try:
                outcome = to_answer(self._http.request(**request))
            except httpx.HTTPError as error:
                outcome = error
            if delay := run.receive(outcome):
                time.sleep(delay)
        return run.result

    def close(self) -> None:
        """Close the connections; a client made by `namespace()` leaves them open."""
        if not self._shared:
            self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client{self._endpoint}"
