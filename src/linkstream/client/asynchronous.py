"""AsyncClient: the methods of `Client`, each to be awaited."""

from __future__ import annotations

import copy
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

import anyio
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


def awaited(
    verb: Callable[P, Steps[T]],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """Make a method of `AsyncClient` from a verb."""

    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(verb(*args, **kwargs))

    return as_method(method, verb)


class AsyncClient:
    """A namespace of a service, with the verbs of `Links`, each to be awaited.

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
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._endpoint = Endpoint.checked(
            url, namespace, timeout=timeout, connect_timeout=connect_timeout, retries=retries
        )
        self._shared = False  # whether another client owns the connections
        options = http_options(self._endpoint, token, verify)
        self._http = httpx.AsyncClient(**options, transport=transport)

    # Reads: documented in reads.py

    health = awaited(reads.health)
    whoami = awaited(reads.whoami)
    namespaces = awaited(reads.namespaces)
    info = awaited(reads.info)
    thresholds = awaited(reads.thresholds)
    stats = awaited(reads.stats)
    state_hash = awaited(reads.state_hash)
    predict = awaited(reads.predict)
    labels = awaited(reads.labels)
    clusters = awaited(reads.clusters)
    cluster = awaited(reads.cluster)
    members = awaited(reads.members)
    vector = awaited(reads.vector)
    payload = awaited(reads.payload)
    resolve = awaited(reads.resolve)
    named = awaited(reads.named)
    explain = awaited(reads.explain)
    explain_pair = awaited(reads.explain_pair)
    history = awaited(reads.history)
    exemplars = awaited(reads.exemplars)
    review_queue = awaited(reads.review_queue)
    suggest_merges = awaited(reads.suggest_merges)
    suggest_splits = awaited(reads.suggest_splits)
    corrections = awaited(reads.corrections)
    events = awaited(reads.events)
    steps = awaited(reads.steps)

    # Changes: documented in writes.py

    create = awaited(writes.create)
    add = awaited(writes.add)
    add_many = awaited(writes.add_many)
    add_group = awaited(writes.add_group)
    enrol = awaited(writes.enrol)
    same = awaited(writes.same)
    different = awaited(writes.different)
    move = awaited(writes.move)
    retract = awaited(writes.retract)
    name = awaited(writes.name)
    rename = awaited(writes.rename)
    ignore = awaited(writes.ignore)
    remove = awaited(writes.remove)
    forget = awaited(writes.forget)
    undo = awaited(writes.undo)
    redo = awaited(writes.redo)
    settle = awaited(writes.settle)
    compact = awaited(writes.compact)

    def namespace(self, name: str) -> AsyncClient:
        """Return a client of another namespace that shares this client's connections.

        Args:
            name: the namespace.
        """
        other = copy.copy(self)
        vars(other).update(_endpoint=self._endpoint.of(name), _shared=True)
        return other

    async def feed(
        self,
        batches: Iterable[npt.ArrayLike | Batch] | AsyncIterable[npt.ArrayLike | Batch],
    ) -> AsyncIterator[npt.NDArray[np.int64]]:
        """Add batches one after the other; yield the IDs of each after its commit.

        A batch that is refused ends the iteration; no batch after it is sent.

        Args:
            batches: arrays with one vector a row, or `Batch`; may be asynchronous.
        """
        if isinstance(batches, AsyncIterable):
            async for batch in batches:
                yield await self._add_batch(batch)
        else:
            check_batches(batches)
            for batch in batches:
                yield await self._add_batch(batch)

    async def _add_batch(self, batch: npt.ArrayLike | Batch) -> npt.NDArray[np.int64]:
        given = batch if isinstance(batch, Batch) else Batch(batch)
        return await self.add_many(
            given.X,
            weight=given.weight,
            payloads=given.payloads,
            idempotency_key=given.idempotency_key,
        )

    async def iter_events(self, since: int = 0) -> AsyncIterator[Event]:
        """Yield the typed events so far, and read them page by page.

        Args:
            since: the sequence number of the first event.
        """
        while page := await self.events(since, limit=reads.PAGE):
            for event in page:
                yield event
            since = page[-1].sequence + 1

    def follow(self, since: int = 0) -> AsyncIterator[Event]:
        """Yield the typed events so far, then each new one; without end.

        A broken connection is opened again, and each event comes once. Raises the error of the
        last attempt if the service cannot be reached again.

        Args:
            since: the sequence number of the first event.
        """
        return self._follow(EventFollower(since, self._endpoint.retries))

    async def _follow(self, follower: EventFollower) -> AsyncIterator[Event]:
        while True:
            failure: Outcome | None = None
            check_open(self._http)
            try:
                arguments = self._endpoint.arguments(follower.request())
                async with self._http.stream(**arguments) as response:
                    if response.status_code == 200:
                        async for piece in response.aiter_bytes():
                            for event in follower.read(piece):
                                yield event
                    else:
                        await response.aread()
                        failure = to_answer(response)
            except httpx.HTTPError as error:
                failure = error
            await anyio.sleep(follower.delay_after(failure))

    async def _run(self, steps: Steps[T]) -> T:
        check_open(self._http)
        run = RequestRun(steps, self._endpoint)
        while (request := run.next_request()) is not None:
            outcome: Outcome
            try:
                outcome = to_answer(await self._http.request(**request))
            except httpx.HTTPError as error:
                outcome = error
            if delay := run.receive(outcome):
                await anyio.sleep(delay)
        return run.result

    async def close(self) -> None:
        """Close the connections; a client made by `namespace()` leaves them open."""
        if not self._shared:
            await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient{self._endpoint}"
