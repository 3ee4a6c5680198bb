"""Store: a clusterer that lives in one file. Committed first, answered second."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Cluster, Links
from linkstream.engine import door, events
from linkstream.engine.log import UNTRACKED_LIMIT
from linkstream.errors import ArgumentError, IdempotencyError, StoreClosedError
from linkstream.paper.thresholds import Thresholds
from linkstream.store import file, journal, snapshots, verifying
from linkstream.store.file import WriterLock
from linkstream.store.journal import Operation, StoredVectors, call, decoded, encoded
from linkstream.store.verifying import Verified

SNAPSHOT_AFTER = 100_000  # vectors since the last one


class Store:
    """Links in a file: what was acknowledged survives the loss of power, with the IDs given.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/people.links"
    >>> with Store.open(path, thresholds=Thresholds(0.7, 0.6, 0.9)) as store:
    ...     store.add_many([[1.0, 0.0], [0.0, 1.0]], idempotency_key="batch-1")
    array([0, 1])
    >>> with Store.open(path) as store:
    ...     store.add([1.0, 0.1])
    0
    """

    def __init__(self, path: str | os.PathLike[str], **options: Any) -> None:
        raise TypeError("open a store with Store.open(path, ...)")

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        thresholds: Thresholds | None = None,
        engine: str = "auto",
        threads: int | None = None,
        **options: Any,
    ) -> Store:
        """The store at a path; with thresholds (and options of `Links`) a new one if none is there.

        Recovers by itself: the newest sound snapshot, and what came after it decided again and
        compared with what was decided then.
        """
        store = cls.__new__(cls)
        store._path = Path(path)
        store._running = {"engine": engine, "threads": threads}
        store._lock = threading.Lock()
        store._writer = WriterLock(store._path)
        try:
            store._connection = file.connect(store._path, create=thresholds is not None)
            with file.guarded(store._path):
                store._begin(thresholds, options)
        except BaseException:
            store._writer.release()
            raise
        return store

    _path: Path
    _running: dict[str, Any]
    _lock: threading.Lock
    _writer: WriterLock
    _connection: sqlite3.Connection
    _links: Links
    _operation: int
    _snapshot_at: int
    _open: bool

    def _begin(self, thresholds: Thresholds | None, options: dict[str, Any]) -> None:
        (there,) = self._connection.execute("SELECT count(*) FROM snapshots").fetchone()
        if not there and thresholds is not None:
            fresh = Links.from_thresholds(thresholds, **options)
            snapshots.write(self._connection, 0, fresh.to_bytes())
        self._operation, data = snapshots.newest(self._connection, self._path)
        self._links = Links.from_bytes(data, **self._running)
        self._snapshot_at = self._links.n_vectors
        self._attach()
        if thresholds is not None and thresholds != self._links.thresholds:
            raise ArgumentError(
                f"{thresholds} for a store that has {self._links.thresholds}",
                expected="the thresholds it was made with, or none",
                remedy="Leave thresholds= out to open it as it is.",
            )
        self._open = True
        self._recover()

    # Vectors in

    def add(self, x: npt.ArrayLike, *, idempotency_key: str | None = None, **how: Any) -> int:
        """Take one vector; its cluster's ID, once it is safe. Options are those of `Links.add`."""
        rows = door.vector(x, dimension=self._links.dimension)
        return int(self._do("add_many", how, rows, idempotency_key)[0])

    def add_many(
        self, X: npt.ArrayLike, *, idempotency_key: str | None = None, **how: Any
    ) -> npt.NDArray[np.int64]:
        """Take vectors in order; their IDs, once all of them are safe."""
        rows = door.vectors(X, dimension=self._links.dimension)
        ids: npt.NDArray[np.int64] = self._do("add_many", how, rows, idempotency_key)
        return ids

    def add_group(
        self, X: npt.ArrayLike, *, idempotency_key: str | None = None, **how: Any
    ) -> npt.NDArray[np.int64]:
        """Take vectors seen together; all get different clusters."""
        rows = door.vectors(X, dimension=self._links.dimension)
        ids: npt.NDArray[np.int64] = self._do("add_group", how, rows, idempotency_key)
        return ids

    def enrol(self, name: str, X: npt.ArrayLike, *, locked: bool = True) -> int:
        """Prototypes of a cluster with a name; its ID."""
        rows = door.vectors(X, dimension=self._links.dimension)
        return int(self._do("enrol", {"name": name, "locked": locked}, rows))

    # A person's word

    def same(self, a: int, b: int, *, of: str = "vectors") -> None:
        """Two are one, from now on."""
        self._do("same", {"a": a, "b": b, "of": of})

    def different(self, a: int, b: int, *, of: str = "vectors") -> None:
        """Two are never one."""
        self._do("different", {"a": a, "b": b, "of": of})

    def move(self, vector: int, cluster: int) -> None:
        """Put a vector into another cluster; it stays there."""
        self._do("move", {"vector": vector, "cluster": cluster})

    def name(self, cluster: int, name: str) -> None:
        """Give a cluster a name of its own."""
        self._do("name", {"cluster": cluster, "name": name})

    def rename(self, cluster: int, name: str | None) -> None:
        """Give a cluster another name; None takes it away."""
        self._do("rename", {"cluster": cluster, "name": name})

    def ignore(self, cluster: int, on: bool = True) -> None:
        """Leave a cluster out of suggestions and reviews."""
        self._do("ignore", {"cluster": cluster, "on": on})

    def remove(self, vector: int) -> None:
        """Take a vector out of the model, exactly; its bytes stay for undo until compact()."""
        self._do("remove", {"vector": vector})

    def forget(self, cluster: int) -> None:
        """Forget a cluster and all it held."""
        self._do("forget", {"cluster": cluster})

    def undo(self, *, to: int | None = None) -> None:
        """Take back the last change or vector, or all from an event on."""
        self._do("undo", {"to": to})

    def settle(self) -> None:
        """Join and cut clusters by an offline pass over all subclusters."""
        self._do("settle", {"apply": True})

    # What is there

    @property
    def links(self) -> Links:
        """The clusterer, to be asked; what changes it must go through the store."""
        return self._links

    def labels(self) -> npt.NDArray[np.int64]:
        """Current cluster of every vector, in order of arrival; −1 for one removed."""
        return self._links.labels()

    def clusters(self) -> list[Cluster]:
        """All clusters, by ID."""
        return self._links.clusters()

    def events(self, since: int = 0) -> list[events.Event]:
        """Typed events from a sequence number on."""
        return self._links.events(since)

    def resolve(self, cluster_id: int) -> int:
        """The live cluster that an ID now stands for; −1: none."""
        return self._links.resolve(cluster_id)

    def state_hash(self) -> str:
        """Hex digest of the whole state."""
        return self._links.state_hash()

    # Care

    def verify(self) -> Verified:
        """Read everything there is, and decide all of it again; DamagedStoreError names the place.

        Costs as much as adding all vectors anew.
        """
        with self._lock, file.guarded(self._path):
            self._check_open()
            return verifying.verify(self._connection, self._path, self._running)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """A copy of the store as it is now, while it goes on being used."""
        target = Path(path)
        if target.exists():
            raise ArgumentError(
                f"{target}: a file that is there",
                expected="a path that is free",
                remedy="Remove it first, or give another path.",
            )
        with self._lock:
            self._check_open()
            with contextlib.closing(sqlite3.connect(target)) as copy:
                self._connection.backup(copy)

    # How it is done

    def _do(
        self,
        verb: str,
        arguments: dict[str, Any],
        rows: npt.NDArray[np.float32] | None = None,
        key: str | None = None,
    ) -> Any:
        """Decide, commit, answer; an error before the commit leaves everything as it was."""
        with self._lock:
            self._check_open()
            arguments = _plain(arguments)
            if key is not None:
                known = self._answered(key, verb, arguments, rows)
                if known is not None:
                    return known
            before = self._links.n_vectors, self._n_events()
            answer = call(self._links, verb, arguments, rows)
            self._commit(verb, arguments, rows, before, answer, key)
            if self._links.n_vectors - self._snapshot_at >= SNAPSHOT_AFTER:
                self._snapshot()
            return answer

    def _commit(
        self,
        verb: str,
        arguments: dict[str, Any],
        rows: npt.NDArray[np.float32] | None,
        before: tuple[int, int],
        answer: Any,
        key: str | None,
    ) -> None:
        operation = Operation(
            number=self._operation + 1,
            verb=verb,
            arguments=arguments,
            vectors=rows,
            first_vector=before[0],
            first_event=before[1],
            events=journal.events_since(self._links, before[1]),
            result=encoded(answer),
            key=key,
        )
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            journal.write(self._connection, operation)
            self._connection.execute("COMMIT")
        except BaseException:
            # The clusterer has gone on and the file has not: only opening it again mends that.
            self._open = False
            raise
        self._operation += 1

    def _answered(
        self, key: str, verb: str, arguments: dict[str, Any], rows: npt.NDArray[np.float32] | None
    ) -> Any:
        """What was answered to a call with the same key; None if there was none."""
        found = journal.by_key(self._connection, self._path, key)
        if found is None:
            return None
        same_rows = rows is found.vectors or (
            rows is not None
            and found.vectors is not None
            and np.array_equal(rows.view(np.int32), found.vectors.view(np.int32))
        )
        if (found.verb, found.arguments) != (verb, arguments) or not same_rows:
            raise IdempotencyError(
                f"idempotency_key={key!r} with another call than operation {found.number}'s",
                expected="the very same call again",
                remedy="Use a new key for each call.",
            )
        return decoded(found.result, verb)

    def _recover(self) -> None:
        """Decide again what came after the snapshot, and compare with what was decided then."""
        for operation in journal.after(self._connection, self._path, self._operation):
            journal.again(self._links, operation, self._path)
            self._operation = operation.number

    def _attach(self) -> None:
        """Give the clusterer the log and the vectors, which a snapshot leaves to the journal."""
        log = journal.events_until(self._connection, self._path, self._operation)
        stored = None
        if self._links.track_vectors:
            stored = StoredVectors(self._connection, self._path, self._links._fixed)
        else:
            log = log[-UNTRACKED_LIMIT:]
        self._links._attach(log, stored)

    def _check_open(self) -> None:
        if not self._open:
            raise StoreClosedError(
                f"{self._path}: closed, or a write has failed",
                expected="an open store",
                remedy="Open it again: what was acknowledged is there.",
            )

    def _snapshot(self) -> None:
        snapshots.write(self._connection, self._operation, self._links._without_history())
        self._snapshot_at = self._links.n_vectors

    def _n_events(self) -> int:
        return self._links._synced().n_events

    def close(self) -> None:
        """Write a snapshot, so that opening is quick, and let others write."""
        with self._lock:
            if self._open:
                self._snapshot()
                self._open = False
            self._connection.close()
            self._writer.release()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _plain(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments as JSON has them."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(arguments, default=_number))
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"arguments that are no plain values ({error})",
            expected="numbers, texts and lists of them",
            remedy="Pass plain Python values.",
        ) from None
    return plain


def _number(value: object) -> object:
    if isinstance(value, (np.integer, np.floating, np.ndarray)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not plain")
