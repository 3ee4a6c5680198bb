"""Client and AsyncClient: a namespace of a service, with the methods of `Links`."""

from __future__ import annotations

import copy
import functools
import inspect
import ssl
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable, Iterator
from types import MethodType, TracebackType
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, TypeVar, overload

import anyio
import httpx
import numpy as np
import numpy.typing as npt

from linkstream.adapters.rttm import Turn
from linkstream.client import migrations, reads, rebuilds, speech, tables, writes
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
from linkstream.client.event_stream import EventFollower, Follower
from linkstream.client.requests import Steps
from linkstream.client.speech import TurnFollower
from linkstream.clusterer import Links
from linkstream.clusterer.confidence import Told
from linkstream.engine.events import Event
from linkstream.paper.thresholds import Thresholds
from linkstream.store import Batch
from linkstream.store.store import WritingMethod
from linkstream.store.write_requests import check_batches

Ids = npt.NDArray[np.int64]
P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound="Connection")


def _method(verb: Callable[..., Steps[Any]]) -> Callable[..., Any]:
    """Return a method that runs a verb, with the verb's signature and documentation."""

    def method(client: Any, /, *args: Any, **options: Any) -> Any:
        return client._run(verb, *args, **options)

    functools.update_wrapper(method, verb)
    shown = inspect.signature(verb)
    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    result = str(shown.return_annotation).removeprefix("Steps[").removesuffix("]")
    method.__signature__ = shown.replace(  # type: ignore[attr-defined]
        parameters=[this, *shown.parameters.values()], return_annotation=result
    )
    return method


class Call(Generic[P, T]):
    """A method of both clients, made from a verb: `Client` blocks, `AsyncClient` is awaited."""

    def __init__(self, verb: Callable[P, Steps[T]]) -> None:
        self._method = _method(verb)

    @overload
    def __get__(self, client: None, owner: Any) -> Callable[Concatenate[Any, P], Any]: ...
    @overload
    def __get__(self, client: Client, owner: Any) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: Any) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: Any, owner: Any) -> Any:
        """Return the method, bound to the client if there is one."""
        return self._method if client is None else MethodType(self._method, client)


class Write(Generic[P, T]):
    """A method of both clients that sends a verb of `Links`; it takes `idempotency_key`, too."""

    def __init__(self, method: Callable[Concatenate[Links, P], T]) -> None:
        self._method = _method(writes.sending(method.__name__))

    @overload
    def __get__(self, client: None, owner: Any) -> Callable[..., Any]: ...
    @overload
    def __get__(self, client: Client, owner: Any) -> WritingMethod[P, T]: ...
    @overload
    def __get__(
        self, client: AsyncClient, owner: Any
    ) -> WritingMethod[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: Any, owner: Any) -> Any:
        """Return the method, bound to the client if there is one."""
        return self._method if client is None else MethodType(self._method, client)


class Connection:
    """What both clients have: the address of a namespace, connections, and the verbs.

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

    _connect: ClassVar[type[Any]]  # the client of httpx
    _http: Any

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
        transport: httpx.BaseTransport | httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._endpoint = Endpoint.checked(
            url, namespace, timeout=timeout, connect_timeout=connect_timeout, retries=retries
        )
        self._shared = False  # whether another client owns the connections
        options = http_options(self._endpoint, token, verify)
        self._http = self._connect(**options, transport=transport)

    def namespace(self: C, name: str) -> C:
        """Return a client of another namespace that shares this client's connections.

        Args:
            name: the namespace.
        """
        other = copy.copy(self)
        vars(other).update(_endpoint=self._endpoint.of(name), _shared=True)
        return other

    # Reads: documented in reads.py

    health = Call(reads.health)
    whoami = Call(reads.whoami)
    namespaces = Call(reads.namespaces)
    info = Call(reads.info)
    stats = Call(reads.stats)
    state_hash = Call(reads.state_hash)
    partition_hash = Call(reads.partition_hash)
    predict = Call(reads.predict)
    predict_proba = Call(reads.predict_proba)
    labels = Call(reads.labels)
    clusters = Call(reads.clusters)
    cluster = Call(reads.cluster)
    members = Call(reads.members)
    vector = Call(reads.vector)
    payload = Call(reads.payload)
    number = Call(reads.number)
    numbers = Call(reads.numbers)
    key = Call(reads.key)
    keys = Call(reads.keys)
    time = Call(reads.time)
    times = Call(reads.times)
    resolve = Call(reads.resolve)
    resolve_many = Call(reads.resolve_many)
    named = Call(reads.named)
    explain = Call(reads.explain)
    explain_pair = Call(reads.explain_pair)
    history = Call(reads.history)
    exemplars = Call(reads.exemplars)
    review_queue = Call(reads.review_queue)
    suggest_merges = Call(reads.suggest_merges)
    suggest_splits = Call(reads.suggest_splits)
    corrections = Call(reads.corrections)
    policy = Call(reads.policy)
    held = Call(reads.held)
    events = Call(reads.events)
    steps = Call(reads.steps)
    search = Call(tables.search)
    changes = Call(tables.changes)
    to_frame = Call(tables.to_frame)
    clusters_frame = Call(tables.clusters_frame)

    # Changes: documented in `Links`, and in writes.py

    create = Call(writes.create)
    add = Call(writes.add)
    add_many = Call(writes.add_many)
    add_group = Call(writes.add_group)
    enrol = Call(writes.enrol)
    same = Call(writes.same)
    different = Call(writes.different)
    move = Call(writes.move)
    accept = Write(Links.accept)
    assign = Call(writes.assign)
    retract = Write(Links.retract)
    name = Write(Links.name)
    rename = Write(Links.rename)
    ignore = Write(Links.ignore)
    judge = Write(Links.judge)
    remove = Call(writes.remove)
    forget = Write(Links.forget)
    undo = Call(writes.undo)
    redo = Write(Links.redo)
    settle = Call(writes.settle)
    rebuild = Call(writes.rebuild)
    start_rebuild = Call(rebuilds.start_rebuild)
    rebuild_jobs = Call(rebuilds.rebuild_jobs)
    rebuild_job = Call(rebuilds.rebuild_job)
    wait_for_rebuild = Call(rebuilds.wait_for_rebuild)
    cancel_rebuild = Call(rebuilds.cancel_rebuild)
    migrate = Call(migrations.migrate)
    migration = Call(migrations.migration)
    missing_vectors = Call(migrations.missing_vectors)
    add_reencoded = Call(migrations.add_reencoded)
    predict_reencoded = Call(migrations.predict_reencoded)
    migration_report = Call(migrations.migration_report)
    start_finish_migration = Call(migrations.start_finish_migration)
    finish_migration = Call(migrations.finish_migration)
    abandon_migration = Call(migrations.abandon_migration)
    compact = Call(writes.compact)

    # Recordings of speech: documented in speech.py

    add_segments = Call(speech.add_segments)
    finish_recording = Call(speech.finish_recording)
    turns = Call(speech.turns)
    recordings = Call(speech.recordings)

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._endpoint}"


class Client(Connection):
    """A namespace of a service, with the verbs of `Links`. Many threads may use one client."""

    _connect = httpx.Client
    _http: httpx.Client

    @property
    def thresholds(self) -> Thresholds:
        """The three thresholds, which the service is asked for."""
        return self._run(reads.thresholds)

    @property
    def confidence(self) -> Told:
        """The model of probabilities, and why they may be unknown; the service is asked for it."""
        return self._run(reads.confidence)

    def feed(self, batches: Iterable[npt.ArrayLike | Batch]) -> Iterator[Ids]:
        """Add batches one after the other; yield the IDs of each after its commit.

        A batch that is refused ends the iteration; no batch after it is sent.

        Args:
            batches: arrays with one vector a row, or `Batch`.
        """
        check_batches(batches)
        return (self._run(writes.add_batch, batch) for batch in batches)

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

    def follow_turns(self, recording: str, since: int = 0) -> Iterator[Turn]:
        """Yield the final turns of a recording so far, then each new one; without end.

        A broken connection is opened again, and each turn comes once, as for `follow`.

        Args:
            recording: its name.
            since: number of the first turn.
        """
        return self._follow(TurnFollower(recording, since, self._endpoint.retries))

    def _follow(self, follower: Follower[T]) -> Iterator[T]:
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

    def _run(self, verb: Callable[P, Steps[T]], /, *args: P.args, **options: P.kwargs) -> T:
        check_open(self._http)
        run = RequestRun(verb(*args, **options), self._endpoint)
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


class AsyncClient(Connection):
    """A namespace of a service, with the verbs of `Links`, each to be awaited."""

    _connect = httpx.AsyncClient
    _http: httpx.AsyncClient

    thresholds = Call(reads.thresholds)
    confidence = Call(reads.confidence)

    async def feed(
        self, batches: Iterable[npt.ArrayLike | Batch] | AsyncIterable[npt.ArrayLike | Batch]
    ) -> AsyncIterator[Ids]:
        """Add batches one after the other; yield the IDs of each after its commit.

        A batch that is refused ends the iteration; no batch after it is sent.

        Args:
            batches: arrays with one vector a row, or `Batch`; may be asynchronous.
        """
        if isinstance(batches, AsyncIterable):
            async for batch in batches:
                yield await self._run(writes.add_batch, batch)
        else:
            check_batches(batches)
            for batch in batches:
                yield await self._run(writes.add_batch, batch)

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
        """Yield the typed events so far, then each new one; without end, as `Client.follow`.

        Args:
            since: the sequence number of the first event.
        """
        return self._follow(EventFollower(since, self._endpoint.retries))

    def follow_turns(self, recording: str, since: int = 0) -> AsyncIterator[Turn]:
        """Yield the final turns of a recording so far, then each new one, as the `Client` does.

        Args:
            recording: its name.
            since: number of the first turn.
        """
        return self._follow(TurnFollower(recording, since, self._endpoint.retries))

    async def _follow(self, follower: Follower[T]) -> AsyncIterator[T]:
        while True:
            failure: Outcome | None = None
            check_open(self._http)
            try:
                arguments = self._endpoint.arguments(follower.request())
                async with self._http.stream(**arguments) as response:
                    if response.status_code == 200:
                        async for piece in response.aiter_bytes():
                            for value in follower.read(piece):
                                yield value
                    else:
                        await response.aread()
                        failure = to_answer(response)
            except httpx.HTTPError as error:
                failure = error
            await anyio.sleep(follower.delay_after(failure))

    async def _run(self, verb: Callable[P, Steps[T]], /, *args: P.args, **options: P.kwargs) -> T:
        check_open(self._http)
        run = RequestRun(verb(*args, **options), self._endpoint)
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
