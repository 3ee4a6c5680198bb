"""AsyncClient: the same verbs, awaited."""

from __future__ import annotations

import copy
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from types import TracebackType
from typing import ParamSpec, TypeVar

import anyio
import httpx
import numpy as np
import numpy.typing as npt

from linkstream.client.asking import Answer, Awaiting, Steps
from linkstream.client.following import Tail
from linkstream.client.namespace import Making
from linkstream.client.reads import PAGE, Reads
from linkstream.client.retrying import Retries
from linkstream.client.walking import Walk
from linkstream.client.way import CONNECT, READ, answer_of, check_open, options, way_to
from linkstream.client.writes import Writes
from linkstream.engine.events import Event
from linkstream.store import Batch
from linkstream.store.write_requests import check_batches

P = ParamSpec("P")
T = TypeVar("T")


class AsyncClient(Reads, Writes, Making, Awaiting):
    """A namespace of a service, with the verbs of `Links`, each to be awaited.

    Args:
        url: of the service.
        namespace: the one to speak of; None for what is asked of the service as a whole.
        token: what `linkstream token create` printed; None where the service has no tokens.
        timeout: seconds to wait for an answer.
        connect_timeout: seconds to wait for a connection.
        retries: how often a call is tried again.
        verify: whether, and by which authorities, a server's certificate is checked.
        transport: what sends the requests; for tests.
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
        self._way = way_to(
            url, namespace, timeout=timeout, connect_timeout=connect_timeout, retries=retries
        )
        self._lent = False  # whether the connections are another client's
        self._http = httpx.AsyncClient(**options(self._way, token, verify), transport=transport)

    def namespace(self, name: str) -> AsyncClient:
        """Another namespace of the same service, through the connections of this client."""
        other = copy.copy(self)
        other._way, other._lent = self._way.to(name), True
        return other

    async def feed(
        self,
        batches: Iterable[npt.ArrayLike | Batch] | AsyncIterable[npt.ArrayLike | Batch],
    ) -> AsyncIterator[npt.NDArray[np.int64]]:
        """Take batch after batch; the IDs of each, once it is safe.

        One after the other, so that they are taken in this order. A batch that is refused ends
        it; none after it is sent.
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
        """Typed events from a sequence number on, read as they are asked for; then it ends."""
        while some := await self.events(since, limit=PAGE):
            for event in some:
                yield event
            since = some[-1].sequence + 1

    def follow(self, since: int = 0) -> AsyncIterator[Event]:
        """Typed events from a sequence number on, and then each as it comes; without end.

        Goes on by itself after a broken connection: each event comes once. Raises what a call
        would raise where the service cannot be had again.
        """
        return self._follow(Tail(since, self._way.retries))

    async def _follow(self, tail: Tail) -> AsyncIterator[Event]:
        while True:
            failure: Answer | httpx.HTTPError | None = None
            check_open(self._http)
            try:
                async with self._http.stream(**self._way.arguments(tail.request())) as response:
                    if response.status_code == 200:
                        async for piece in response.aiter_bytes():
                            for event in tail.read(piece):
                                yield event
                    else:
                        await response.aread()
                        failure = answer_of(response)
            except httpx.HTTPError as error:
                failure = error
            await anyio.sleep(tail.broken(failure))

    # How it is done

    async def _perform(
        self, describe: Callable[P, Steps[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        check_open(self._http)
        walk = Walk(describe(*args, **kwargs), self._way)
        while (request := walk.ask()) is not None:
            outcome: Answer | httpx.HTTPError
            try:
                outcome = answer_of(await self._http.request(**request))
            except httpx.HTTPError as error:
                outcome = error
            if pause := walk.tell(outcome):
                await anyio.sleep(pause)
        return walk.result

    async def close(self) -> None:
        """Let go of the connections; twice does nothing.

        One that `namespace()` gave has none of its own, and leaves them as they are.
        """
        if self._lent:
            return
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
        return f"AsyncClient{self._way}"
