"""Store: a clusterer in one file. Everything that was acknowledged survives a crash."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import explain
from linkstream.clusterer.checks import check_yes_no
from linkstream.engine import choice
from linkstream.engine.contract import Decision
from linkstream.errors import StoreError
from linkstream.identity.settling import Settlement
from linkstream.paper.thresholds import Thresholds
from linkstream.store import file, write_requests
from linkstream.store.handle import StoreHandle
from linkstream.store.reader import StoreReader
from linkstream.store.write_requests import Batch, WriteRequest

FEED_AHEAD = 8  # batches of `feed` that wait for their answers


class Store(StoreReader):
    """A clusterer in one file. A call that has returned survives kill −9 and a power cut.

    One writer and many readers may use a file; all methods are safe to call from many threads. The
    methods are those of `Links`. Methods that change something also take `idempotency_key`: a
    repeated call under the same key is done once and gets the first answer again.

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
        read_only: bool = False,
        engine: str = "auto",
        threads: int | None = None,
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
            read_only: open without the writer lock (default False). The store shows its content
                at the time of opening or of the last `refresh`.
            engine: "auto" (default), "native" or "reference".
            threads: threads of the native engine; None (default) uses all cores.
            options: for a new store, the options of `Links`: `space`, `track_vectors`,
                `keep_vectors`, `evidence`, `heal`, `max_subclusters`, `max_idle`, `min_size`. For
                an existing one they must be the same.

        Raises:
            StoreLockedError: another process has the store open for writing.
            DamagedStoreError: bytes are not what was written; the message names the place.
            StoreMemoryError: memory ran out; nothing was changed.
            ArgumentError: the store was made with other thresholds or options.
        """
        choice.choose(engine, threads)
        wanted = (thresholds, preset, options)
        return cls(
            StoreHandle(
                file.resolved(path),
                wanted,
                read_only=bool(read_only),
                engine=engine,
                threads=threads,
            )
        )

    # Adding vectors

    def add(
        self,
        x: npt.ArrayLike,
        *,
        weight: float = 1.0,
        group: str | None = None,
        payload: Any = None,
        idempotency_key: str | None = None,
    ) -> Decision:
        """Add one vector and return the decision once it is durable.

        Args:
            x: the vector.
            weight: quality from 0 to 1 (default 1); 0 asks without learning.
            group: vectors of the same group get different clusters; None: no group.
            payload: a JSON value of up to 64 KiB to store with the vector, see `payloads`.
            idempotency_key: a repeated call under the same key is done once. Another call under
                the key raises IdempotencyError.
        """
        payloads = None if payload is None else [payload]
        decision: Decision = self._write(
            write_requests.add_request("add", x, weight, group, payloads, idempotency_key)
        )
        return decision

    def add_many(
        self,
        X: npt.ArrayLike,
        *,
        weight: npt.ArrayLike = 1.0,
        group: str | None = None,
        payloads: Iterable[Any] | None = None,
        idempotency_key: str | None = None,
    ) -> npt.NDArray[np.int64]:
        """Add vectors in order, all or none, and return their cluster IDs once they are durable.

        Args:
            X: the vectors, one a row.
            weight: one weight from 0 to 1 for all vectors (default 1), or one for each.
            group: vectors of the same group get different clusters; None: no group.
            payloads: one JSON value for each vector, see `add`.
            idempotency_key: see `add`.
        """
        ids: npt.NDArray[np.int64] = self._write(
            write_requests.add_request("add_many", X, weight, group, payloads, idempotency_key)
        )
        return ids

    def add_group(
        self,
        X: npt.ArrayLike,
        *,
        group: str | None = None,
        weight: npt.ArrayLike = 1.0,
        payloads: Iterable[Any] | None = None,
        idempotency_key: str | None = None,
    ) -> npt.NDArray[np.int64]:
        """Add vectors that were seen together: all get different clusters. Return their IDs.

        Args:
            X: the vectors, one a row.
            group: the name of the group, for vectors of it that come later; None: no name.
            weight: one weight from 0 to 1 for all vectors (default 1), or one for each.
            payloads: one JSON value for each vector, see `add`.
            idempotency_key: see `add`.
        """
        ids: npt.NDArray[np.int64] = self._write(
            write_requests.add_request("add_group", X, weight, group, payloads, idempotency_key)
        )
        return ids

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

    def enrol(
        self,
        name: str,
        X: npt.ArrayLike,
        *,
        locked: bool = True,
        idempotency_key: str | None = None,
    ) -> int:
        """Add vectors of a known identity as prototypes; return the ID of their new cluster.

        Args:
            name: the name of the cluster.
            X: the prototypes, one a row; each becomes a subcluster.
            locked: whether the prototypes stay as they are when vectors join them (default True).
            idempotency_key: see `add`.
        """
        return int(self._write(write_requests.enrol_request(name, X, locked, idempotency_key)))

    # Corrections

    def same(
        self, a: int, b: int, *, of: str = "vectors", idempotency_key: str | None = None
    ) -> None:
        """Put two vectors, subclusters or clusters into one cluster for good.

        Args:
            a: the number of the first.
            b: the number of the second.
            of: "vectors" (default), "subclusters" or "clusters".
            idempotency_key: see `add`.
        """
        self._apply("same", {"a": a, "b": b, "of": of}, idempotency_key)

    def different(
        self, a: int, b: int, *, of: str = "vectors", idempotency_key: str | None = None
    ) -> None:
        """Keep two vectors, subclusters or clusters in different clusters for good.

        Args:
            a: the number of the first.
            b: the number of the second.
            of: "vectors" (default), "subclusters" or "clusters".
            idempotency_key: see `add`.
        """
        self._apply("different", {"a": a, "b": b, "of": of}, idempotency_key)

    def move(self, vector: int, cluster: int, *, idempotency_key: str | None = None) -> Decision:
        """Move a vector to another cluster, where it stays.

        Args:
            vector: the number of the vector.
            cluster: the ID of the cluster.
            idempotency_key: see `add`.
        """
        arguments = {"vector": vector, "cluster": cluster}
        decision: Decision = self._apply("move", arguments, idempotency_key)
        return decision

    def retract(self, correction: int, *, idempotency_key: str | None = None) -> None:
        """Take back one correction and nothing that came after it.

        Args:
            correction: the number of the correction, see `corrections`.
            idempotency_key: see `add`.
        """
        self._apply("retract", {"correction": correction}, idempotency_key)

    def name(
        self, cluster: int, name: str, *, claim: bool = False, idempotency_key: str | None = None
    ) -> None:
        """Give a cluster a name that no other cluster has.

        Args:
            cluster: the ID of the cluster.
            name: the name.
            claim: whether to take the name from the cluster that has it (default False).
            idempotency_key: see `add`.
        """
        arguments = {"cluster": cluster, "name": name, "claim": claim}
        self._apply("name", arguments, idempotency_key)

    def rename(self, cluster: int, name: str | None, *, idempotency_key: str | None = None) -> None:
        """Change the name of a cluster.

        Args:
            cluster: the ID of the cluster.
            name: the new name; None removes the name.
            idempotency_key: see `add`.
        """
        self._apply("rename", {"cluster": cluster, "name": name}, idempotency_key)

    def ignore(self, cluster: int, on: bool = True, *, idempotency_key: str | None = None) -> None:
        """Leave a cluster out of suggestions and reviews.

        Args:
            cluster: the ID of the cluster.
            on: False includes the cluster again (default True).
            idempotency_key: see `add`.
        """
        self._apply("ignore", {"cluster": cluster, "on": on}, idempotency_key)

    # Removing, undoing, settling, compacting

    def remove(
        self,
        vector: npt.ArrayLike,
        *,
        x: npt.ArrayLike | None = None,
        cluster: int | None = None,
        weight: float | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        """Remove a vector from the model exactly. Its bytes stay in the file until `compact`.

        Args:
            vector: the number of the vector; without tracked vectors the vector itself.
            x: the vector itself, if vectors are tracked but not kept.
            cluster: without tracked vectors, the cluster that holds the vector, if known.
            weight: without tracked vectors, the weight with which the vector was added.
            idempotency_key: see `add`.
        """
        self._write(write_requests.remove_request(vector, x, cluster, weight, idempotency_key))

    def forget(self, cluster: int, *, idempotency_key: str | None = None) -> None:
        """Remove a cluster with all its vectors. Their bytes stay in the file until `compact`.

        Args:
            cluster: the ID of the cluster.
            idempotency_key: see `add`.
        """
        self._apply("forget", {"cluster": cluster}, idempotency_key)

    def undo(
        self, *, to: int | None = None, step: bool = False, idempotency_key: str | None = None
    ) -> None:
        """Undo the last change or vector, all changes from an event on, or the last step.

        Args:
            to: the sequence number of the first event to undo; None undoes the last change.
            step: undo the whole last step, see `steps` (default False).
            idempotency_key: see `add`.
        """
        self._write(write_requests.undo_request(to, step, idempotency_key))

    def redo(self, *, idempotency_key: str | None = None) -> None:
        """Bring back what the last `undo` took, with the same IDs; raise UndoError if impossible.

        Repeated calls bring back earlier undos, until something else is changed.

        Args:
            idempotency_key: see `add`.
        """
        self._apply("redo", {}, idempotency_key)

    def settle(
        self,
        apply: bool = False,
        *,
        thresholds: Thresholds | None = None,
        idempotency_key: str | None = None,
    ) -> Settlement:
        """Compare all subclusters; return which clusters to join and which to cut.

        Args:
            apply: change the clusters; False (default) only proposes and writes nothing.
            thresholds: the thresholds of the test; None (default) uses those of the store.
            idempotency_key: see `add`. A repeated call changes nothing and returns a Settlement
                without joins and cuts.
        """
        if not check_yes_no("apply", apply):
            return self._proposals(thresholds)
        changes: Settlement | None = self._write(
            write_requests.settle_request(thresholds, idempotency_key)
        )
        n_clusters = self.n_clusters
        return changes or Settlement((), (), n_clusters, n_clusters, applied=True)

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

    def close(self) -> None:
        """Write a snapshot and release the file; a second call does nothing."""
        self.handle.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.handle.closed else "read only" if self.read_only else "open"
        return f"Store({str(self.path)!r}, {state})"

    def _proposals(self, thresholds: Thresholds | None) -> Settlement:
        if thresholds is not None:
            return self.handle.read(lambda model: model.links.settle(thresholds=thresholds))
        snapshot = self.handle.read(lambda model: explain.snapshot_for_read(model.links.core))
        return snapshot.proposals() if snapshot else Settlement((), (), 0, 0)

    def _write(self, request: WriteRequest) -> Any:
        return self.handle.submit(request).result()

    def _apply(self, verb: str, arguments: dict[str, Any], key: str | None) -> Any:
        return self._write(write_requests.verb_request(verb, arguments, key))
