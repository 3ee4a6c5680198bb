"""Store: a clusterer in one file. Everything that was acknowledged survives a crash."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Links, explain, verb_docs
from linkstream.clusterer.checks import check_yes_no
from linkstream.clusterer.migration import Migration
from linkstream.clusterer.rebuilding import check_nothing_given
from linkstream.clusterer.verbs import (
    VERBS,
    Add,
    AddGroup,
    AddMany,
    Assign,
    Different,
    Enrol,
    Move,
    Rebuild,
    Remove,
    Same,
    Settle,
    Undo,
    Verb,
)
from linkstream.engine import choice
from linkstream.engine.contract import Decision
from linkstream.engine.linkage import Progress
from linkstream.errors import StoreError
from linkstream.identity.rebuild_report import REPEATED, RebuildReport
from linkstream.identity.settling import Settlement
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space
from linkstream.store import locks, migrating, write_requests
from linkstream.store.handle import StoreHandle
from linkstream.store.keyed import Vector
from linkstream.store.own_columns import Moment, Moments
from linkstream.store.reader import StoreReader, documented
from linkstream.store.write_requests import Batch, WriteRequest

FEED_AHEAD = 8  # batches of `feed` that wait for their answers

Ids = npt.NDArray[np.int64]
P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class WritingMethod(Protocol[P, R]):
    """A method of `Links` that takes `idempotency_key`, too."""

    @overload
    def __call__(self, *args: P.args, **options: P.kwargs) -> R: ...
    @overload
    def __call__(self, *args: Any, idempotency_key: str | None, **options: Any) -> R: ...


def _writing(method: Callable[Concatenate[Links, P], R]) -> WritingMethod[P, R]:
    """Return the method of a store that journals and performs a verb of `Links`."""
    verb = VERBS[method.__name__]

    def call(self: Store, /, *args: Any, idempotency_key: str | None = None, **options: Any) -> Any:
        return self._perform(verb(*args, **options), key=idempotency_key)

    key = inspect.signature(call).parameters["idempotency_key"]
    call.__name__, call.__qualname__ = verb.verb, f"Store.{verb.verb}"
    call.__signature__ = verb_docs.signature(verb.verb, key)  # type: ignore[attr-defined]
    return cast("WritingMethod[P, R]", documented(call))


class Store(StoreReader):
    """A clusterer in one file. A call that has returned survives kill −9 and a power cut.

    One writer and many readers may use a file; all methods are safe to call from many threads. The
    methods are those of `Links`. Methods that change something return once the change is durable,
    and also take `idempotency_key`: a repeated call under the same key is done once and gets the
    first answer again; a repeated `settle` gets a Settlement without joins and cuts. The bytes of
    removed vectors stay in the file until `compact`.

    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "people.links")
    >>> with Store.open(path, thresholds=Thresholds(0.7, 0.6, 0.9)) as store:
    ...     store.add_many([[1.0, 0.0], [0.0, 1.0]], idempotency_key="batch-1")
    array([0, 1])
    """

    def __init__(self, handle: StoreHandle) -> None:
        """Wrap an open file; call `Store.open` instead.

        Args:
            handle: the open file.
        """
        if not isinstance(handle, StoreHandle):
            raise TypeError("open a store with Store.open(path, ...)")
        super().__init__(handle)

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        """Refuse copy, deepcopy and pickle: one object writes to one file."""
        raise StoreError(
            f"{self.path}: an open store cannot be copied or pickled",
            expected="the path of the store",
            remedy="Pass the path and open it there; backup() writes a copy of the file.",
        )

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        thresholds: Thresholds | None = None,
        preset: str | None = None,
        granularity: str | float | None = None,
        read_only: bool = False,
        engine: str = "auto",
        threads: int | None = None,
        search: bool | None = None,
        **options: Any,
    ) -> Store:
        """Open the store at a path; make a new one if there is no file.

        Opening recovers from a crash: it loads the newest intact snapshot, replays the journal
        from there, and compares each result with the one that was acknowledged.

        >>> import tempfile
        >>> path = tempfile.mkdtemp() + "/voices.links"
        >>> Store.open(path, preset="ge2e", min_size=3).close()
        >>> with Store.open(path, read_only=True) as store:
        ...     store.info()["min_size"]
        3

        Args:
            path: the file, by convention `*.links`.
            thresholds: the thresholds of a new store; for an existing one they must be the same.
            preset: the name of an encoder with known thresholds, instead of `thresholds`.
            granularity: the level of the preset, such as "topics", or a number from 0 (coarse)
                to 1 (fine); None (default) takes the default level.
            read_only: open without the writer lock (default False). The store shows its content
                at the time of opening or of the last `refresh`.
            engine: "auto" (default), "native" or "reference".
            threads: threads of the native engine; None (default) uses all cores.
            search: whether `search` finds payloads by their words and fields. None (default): no
                for a new store, and as it is for an existing one, which is changed otherwise, see
                `set_search`.
            options: for a new store, the options of `Links`: `mode`, `space`, `track_vectors`,
                `keep_vectors`, `evidence`, `heal`, `max_subclusters`, `max_idle`, `min_size`,
                `rebuild_thresholds`, `confidence`. For an existing one they must be the same.

        Raises:
            StoreLockedError: another process has the store open for writing.
            DamagedStoreError: bytes are not what was written; the message names the place.
            StoreMemoryError: memory ran out; nothing was changed.
            ArgumentError: the store was made with other thresholds or options.
        """
        choice.choose(engine, threads)
        if granularity is not None:
            options["granularity"] = granularity
        wanted, running = (thresholds, preset, options), {"engine": engine, "threads": threads}
        if search is not None:
            check_yes_no("search", search)
        handle = StoreHandle(
            locks.resolved(path), wanted, running, read_only=bool(read_only), search=search
        )
        return cls(handle)

    # The verbs of `Links`, with its parameters and its documentation

    @documented
    def add(
        self,
        x: npt.ArrayLike,
        *,
        weight: float = 1.0,
        group: str | None = None,
        payload: Any = None,
        at: Moment | None = None,
        id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Decision:
        """As `Links.add`."""
        payloads, ids = None if payload is None else [payload], None if id is None else [id]
        own: dict[str, Any] = {"payloads": payloads, "at": at, "ids": ids, "key": idempotency_key}
        return cast("Decision", self._perform(Add(x, weight=weight, group=group), **own))

    @documented
    def add_many(
        self,
        X: npt.ArrayLike,
        *,
        weight: npt.ArrayLike = 1.0,
        group: str | None = None,
        payloads: Iterable[Any] | None = None,
        at: Moments | None = None,
        ids: Iterable[str | None] | None = None,
        idempotency_key: str | None = None,
    ) -> npt.NDArray[np.int64]:
        """As `Links.add_many`.

        All vectors are added or none, also after Ctrl-C.
        """
        own: dict[str, Any] = {"payloads": payloads, "at": at, "ids": ids, "key": idempotency_key}
        return cast("Ids", self._perform(AddMany(X, weight=weight, group=group), **own))

    @documented
    def add_group(
        self,
        X: npt.ArrayLike,
        *,
        group: str | None = None,
        weight: npt.ArrayLike = 1.0,
        payloads: Iterable[Any] | None = None,
        at: Moments | None = None,
        ids: Iterable[str | None] | None = None,
        idempotency_key: str | None = None,
    ) -> npt.NDArray[np.int64]:
        """As `Links.add_group`."""
        own: dict[str, Any] = {"payloads": payloads, "at": at, "ids": ids, "key": idempotency_key}
        return cast("Ids", self._perform(AddGroup(X, group=group, weight=weight), **own))

    @documented
    def enrol(
        self,
        name: str,
        X: npt.ArrayLike,
        *,
        locked: bool = True,
        at: Moments | None = None,
        ids: Iterable[str | None] | None = None,
        idempotency_key: str | None = None,
    ) -> int:
        """As `Links.enrol`."""
        own: dict[str, Any] = {"at": at, "ids": ids, "key": idempotency_key}
        return cast("int", self._perform(Enrol(name, X, locked=locked), **own))

    @documented
    def same(
        self, a: Vector, b: Vector, *, of: str = "vectors", idempotency_key: str | None = None
    ) -> None:
        """As `Links.same`."""
        self._perform(Same(a, b, of=of), key=idempotency_key)

    @documented
    def different(
        self, a: Vector, b: Vector, *, of: str = "vectors", idempotency_key: str | None = None
    ) -> None:
        """As `Links.different`."""
        self._perform(Different(a, b, of=of), key=idempotency_key)

    @documented
    def move(
        self,
        vector: Vector | Sequence[Vector],
        cluster: int,
        *,
        idempotency_key: str | None = None,
    ) -> Decision | list[Decision]:
        """As `Links.move`."""
        return self._perform(Move(vector, cluster), key=idempotency_key)  # type: ignore[no-any-return]

    @documented
    def remove(
        self,
        vector: Vector | npt.ArrayLike,
        *,
        x: npt.ArrayLike | None = None,
        cluster: int | None = None,
        weight: float | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        """As `Links.remove`."""
        verb = Remove(vector, x=x, cluster=cluster, weight=weight)
        self._perform(verb, key=idempotency_key)

    @documented
    def assign(
        self, vector: Vector, cluster: int | None = None, *, idempotency_key: str | None = None
    ) -> Decision:
        """As `Links.assign`."""
        return cast("Decision", self._perform(Assign(vector, cluster), key=idempotency_key))

    accept = _writing(Links.accept)
    retract = _writing(Links.retract)
    name = _writing(Links.name)
    rename = _writing(Links.rename)
    ignore = _writing(Links.ignore)
    judge = _writing(Links.judge)
    forget = _writing(Links.forget)
    redo = _writing(Links.redo)

    @documented
    def undo(
        self, *, to: int | None = None, step: bool = False, idempotency_key: str | None = None
    ) -> None:
        """As `Links.undo`."""
        self._perform(Undo(to=to), key=idempotency_key, step=step)

    @documented
    def settle(
        self,
        apply: bool = False,
        *,
        thresholds: Thresholds | None = None,
        progress: Progress | None = None,
        idempotency_key: str | None = None,
    ) -> Settlement:
        """As `Links.settle`."""
        verb = Settle(check_yes_no("apply", apply), thresholds=thresholds)
        if not apply:  # in the thread of the caller, on a copy of the state
            snapshot = self.handle.read_core(explain.snapshot_for_read)
            return (
                snapshot.proposals(thresholds, progress) if snapshot else Settlement((), (), 0, 0)
            )
        changes: Settlement | None = self._applied(verb, idempotency_key, progress)
        n_clusters = self.n_clusters
        return changes or Settlement((), (), n_clusters, n_clusters, applied=True)

    @documented
    def rebuild(
        self,
        apply: bool = False,
        *,
        thresholds: Thresholds | str | None = None,
        space: Space | None = None,
        vectors: npt.ArrayLike | None = None,
        progress: Progress | None = None,
        idempotency_key: str | None = None,
    ) -> RebuildReport:
        """As `Links.rebuild`."""
        check_yes_no("apply", apply)
        verb = Rebuild(apply, thresholds=thresholds, space=space, vectors=vectors)
        if not apply:  # in the thread of the caller, on a copy of the state
            source = self._rebuild_source("rebuild")
            if source is None:
                check_nothing_given(thresholds, space, vectors)
                return RebuildReport()
            new = source.new_space(space, vectors)
            return source.plan(self._fixed_vectors, thresholds, progress, new=new).report
        report: RebuildReport | None = self._applied(verb, idempotency_key, progress)
        return report or REPEATED

    @documented
    def migrate(
        self, *, space: Space | None = None, thresholds: Thresholds | str | None = None
    ) -> Migration:
        """As `Links.migrate`.

        The store keeps what came in its file: `migrate()` without arguments, or with the same ones,
        goes on with the migration that is under way, also after a crash. What changes nothing is
        computed in the thread of the caller. Raise NotTrackedError if vectors are not kept.
        """
        return migrating.migrate(self.handle, space, thresholds)

    def _applied(self, verb: Verb, key: str | None, progress: Progress | None) -> Any:
        """Perform a verb that reports its progress; return None if its key was used before."""
        request = write_requests.request_of(verb, key=key)
        request.progress = progress
        return self.handle.submit(request).result()

    def _perform(self, verb: Verb, *, key: str | None, **options: Any) -> Any:
        return self.handle.submit(write_requests.request_of(verb, key=key, **options)).result()

    # What only a store has

    def feed(
        self, batches: Iterable[npt.ArrayLike | Batch], *, renew: bool = False
    ) -> Iterator[npt.NDArray[np.int64]]:
        """Add batch after batch; yield the IDs of each batch once it is durable.

        This equals `add_many` of each batch and is faster: batches that wait are committed
        together, while the next batch is read. A refused batch ends the iteration; no batch after
        it is added.

        Args:
            batches: arrays, or `Batch` with weights, payloads and idempotency keys.
            renew: add a batch again if all vectors that were added under its key were undone since
                (default False: the batch counts as added).
        """
        self.handle.check_writable()
        write_requests.check_batches(batches)
        return self._feed(batches, renew=check_yes_no("renew", renew))

    def _feed(
        self, batches: Iterable[npt.ArrayLike | Batch], *, renew: bool
    ) -> Iterator[npt.NDArray[np.int64]]:
        waiting: deque[WriteRequest] = deque()
        last: WriteRequest | None = None
        stream, ended = iter(batches), None
        while ended is None:
            try:
                request = write_requests.batch_request(next(stream), after=last, renew=renew)
                last = self.handle.submit(request)
                waiting.append(last)
            except Exception as error:  # answer the waiting batches first
                ended = error
            while waiting and (len(waiting) > FEED_AHEAD or ended is not None):
                yield waiting.popleft().result()
        if not isinstance(ended, StopIteration):
            raise ended

    def step(self, command: str) -> contextlib.AbstractContextManager[None]:
        """Return a context that makes one step of all calls of this thread within it.

        `undo(step=True)` undoes a whole step. A call of another thread in between ends the step;
        the calls after it are a new step. Within another step the calls belong to the outer one.

        Args:
            command: the name that `steps` shows, such as "cluster"; 1 to 64 characters.
        """
        return self.handle.step(command)

    def compact(self) -> None:
        """Erase the bytes of removed, forgotten and undone vectors, and rewrite the file.

        Changes before the call cannot be undone any more. Raise StoreError if readers keep the log
        in use, which may still hold erased bytes.
        """
        self.handle.compact()

    def set_search(self, on: bool, *, progress: Progress | None = None) -> None:
        """Make the search index from all payloads, or delete it; nothing is done if it is so.

        Other calls wait meanwhile. The index takes about as many bytes as the payloads.

        Args:
            on: whether `search` finds payloads.
            progress: called with the share of the work that is done, from 0 to 1, by the writer
                thread.
        """
        self.handle.set_search(on=check_yes_no("on", on), progress=progress or (lambda _: None))

    def close(self) -> None:
        """Write a snapshot and release the file; a second call does nothing."""
        self.handle.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.handle.closed else "read only" if self.read_only else "open"
        return f"Store({str(self.path)!r}, {state})"
