"""Links: the object people meet. Vectors in, lasting cluster IDs out."""

from __future__ import annotations

import hashlib
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.engine import choice, door, events, snapshot
from linkstream.engine.contract import Decision, Decisions, Engine
from linkstream.engine.fixed_point import VECTORS_MAX, quantise
from linkstream.engine.state import State
from linkstream.errors import ArgumentError, NotTrackedError, SnapshotError, UnknownIdError
from linkstream.explanation import Explanation, explain
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space


@dataclass(frozen=True, slots=True)
class Cluster:
    """A view of one cluster; `first_seen` and `last_seen` are sequence numbers of vectors."""

    id: int
    size: int
    subclusters: tuple[int, ...]
    name: str | None
    first_seen: int
    last_seen: int


class Links:
    """Clusters unit vectors as they arrive (Mansfield et al., "Links").

    Thresholds have no defaults: they belong to an encoder. Vectors are normalised at the door.
    Decisions do not depend on batch size, threads, machine or engine. Not safe to change from
    two threads at once.

    >>> links = Links(0.7, 0.6, 0.9)
    >>> links.add([1.0, 0.0, 0.1]).cluster, links.add([0.0, 1.0, 0.0]).cluster
    (0, 1)
    >>> links.add_many([[0.9, 0.1, 0.0], [0.0, 0.9, 0.2]])
    array([0, 1])
    """

    def __init__(
        self,
        cluster_similarity: float,
        subcluster_similarity: float,
        pair_similarity_max: float,
        *,
        space: Space | None = None,
        engine: str = "auto",
        threads: int | None = None,
        track_vectors: bool = True,
    ) -> None:
        thresholds = Thresholds(cluster_similarity, subcluster_similarity, pair_similarity_max)
        self._start(State(thresholds, 0, bool(track_vectors)), space, engine, threads)

    def _start(self, state: State, space: Space | None, engine: str, threads: int | None) -> None:
        if not (space is None or isinstance(space, Space)):
            raise ArgumentError(
                f"space is of type {type(space).__name__}",
                expected="a Space or None",
                remedy="Build it with linkstream.Space(mean=..., model=...).",
            )
        self._factory = choice.choose(engine, threads)
        self._space = space or Space()
        self._beginning = threading.Lock()
        self._origin = state  # what the engine starts from, once the dimension is known
        self._engine: Engine | None = self._factory.make(state) if state.dimension else None

    @classmethod
    def from_thresholds(cls, thresholds: Thresholds, **options: Any) -> Links:
        """A clusterer with these thresholds; options are those of `Links`."""
        return cls(
            thresholds.cluster_similarity,
            thresholds.subcluster_similarity,
            thresholds.pair_similarity_max,
            **options,
        )

    # Vectors in

    def add(self, x: npt.ArrayLike) -> Decision:
        """Take one vector; say at once which cluster it belongs to, and why."""
        if self._engine is not None and self._space.mean is None:
            decision = self._engine.add_one(x)
            if decision is not None:
                return decision
        return self._add_rows(door.vector(x, dimension=self.dimension)).at(0)

    def add_many(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Take vectors in order; the same IDs as `add` one by one. All of them or, if one is
        not usable, none.
        """  # noqa: D205
        rows = door.vectors(X, dimension=self.dimension)
        if not len(rows):
            return np.empty(0, dtype=np.int64)
        return self._add_rows(rows).cluster

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Ask for the cluster of each vector, changing nothing; −1 where it would be new."""
        fixed = self._fixed(door.vectors(X, dimension=self.dimension))
        if self._engine is None:
            return np.full(len(fixed), -1, dtype=np.int64)
        return self._engine.ask(fixed).cluster

    def explain(self, x: npt.ArrayLike, *, limit: int = 5) -> Explanation:
        """Why a vector would get the answer it would get; changes nothing."""
        fixed = self._fixed(door.vector(x, dimension=self.dimension))
        return explain(self._engine, fixed[0], limit=_positive("limit", limit))

    def _fixed(self, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.int32]:
        """Rows as the engine's numbers, or VectorError: nothing has changed yet."""
        if self._space.mean is None:
            fixed, lengths = self._factory.quantise(rows)
            door.check_norms(rows, lengths)
        else:
            centred = self._space.centre(rows)
            fixed, lengths = quantise(centred)
            door.check_norms(centred, lengths)
        return fixed

    def _add_rows(self, rows: npt.NDArray[np.float32]) -> Decisions:
        """Take rows, or raise an error before anything has changed."""
        if self._engine is None:
            with self._beginning:  # two threads may come with the first vectors
                return self._add_to(self._engine or self._new_engine(rows.shape[1]), rows)
        return self._add_to(self._engine, rows)

    def _add_to(self, engine: Engine, rows: npt.NDArray[np.float32]) -> Decisions:
        if engine.n_vectors + len(rows) > VECTORS_MAX:
            raise ArgumentError(
                f"{len(rows)} vectors after {engine.n_vectors}",
                expected=f"no more than {VECTORS_MAX} in one clusterer",
                remedy="Begin a new one, or one for each source of vectors.",
            )
        decisions = engine.add_floats(rows) if self._space.mean is None else None
        if decisions is None:
            decisions = engine.add(self._fixed(rows))
        self._engine = engine
        return decisions

    def _new_engine(self, dimension: int) -> Engine:
        return self._factory.make(
            State(self._origin.thresholds, dimension, self._origin.track_vectors)
        )

    # What is there

    @property
    def thresholds(self) -> Thresholds:
        """The three thresholds."""
        return self._origin.thresholds

    @property
    def space(self) -> Space:
        """The space vectors are brought to before they are clustered."""
        return self._space

    @property
    def engine(self) -> str:
        """Name of the engine that runs."""
        return self._factory.name

    @property
    def track_vectors(self) -> bool:
        """Whether the vector → subcluster map and the whole log of events are kept."""
        return self._origin.track_vectors

    @property
    def dimension(self) -> int | None:
        """Dimension of the vectors; None until the space or the first vector fixes it."""
        return self._space.dimension if self._engine is None else self._engine.dimension

    @property
    def n_vectors(self) -> int:
        """Vectors taken so far."""
        return self._engine.n_vectors if self._engine else 0

    @property
    def n_subclusters(self) -> int:
        """Nodes of the graph."""
        return self._engine.n_subclusters if self._engine else 0

    @property
    def n_clusters(self) -> int:
        """Connected components of the graph."""
        return self._engine.n_clusters if self._engine else 0

    def labels(self) -> npt.NDArray[np.int64]:
        """Current cluster of every vector seen, in order of arrival."""
        if not self.track_vectors:
            raise NotTrackedError(
                "labels() of a clusterer that does not track vectors",
                expected="track_vectors=True",
                remedy="Keep the IDs that add_many() returns, or track vectors.",
            )
        return self._engine.labels() if self._engine else np.empty(0, dtype=np.int64)

    def clusters(self) -> list[Cluster]:
        """All clusters, by ID."""
        state = self.state()
        order = np.argsort(state.clusters, kind="stable")
        ids, starts = np.unique(state.clusters[order], return_index=True)
        return [
            Cluster(
                id=int(cluster),
                size=int(state.counts[rows].sum()),
                subclusters=tuple(state.numbers[rows].tolist()),
                name=None,
                first_seen=int(state.first_seen[rows].min()),
                last_seen=int(state.last_seen[rows].max()),
            )
            for cluster, rows in zip(ids, np.split(order, starts[1:]), strict=False)
        ]

    def resolve(self, cluster_id: int) -> int:
        """The live cluster that an ID now stands for.

        An ID is never used again. Clusters split but never join (section 3.4), and the larger
        part keeps the ID, so every ID ever given is live.
        """
        given = self._engine.n_cluster_ids if self._engine else 0
        if isinstance(cluster_id, bool) or not isinstance(cluster_id, (int, np.integer)):
            raise UnknownIdError(
                f"cluster ID {cluster_id!r} of type {type(cluster_id).__name__}",
                expected="an integer",
                remedy="IDs come from add(), add_many(), labels() or clusters().",
            )
        if not 0 <= cluster_id < given:
            raise UnknownIdError(
                f"cluster ID {cluster_id}",
                expected=f"an ID from 0 to {given - 1}" if given else "no ID: nothing was added",
                remedy="IDs come from add(), add_many(), labels() or clusters().",
            )
        return int(cluster_id)

    def events(self, since: int = 0) -> list[events.Event]:
        """Typed events from sequence number `since` on, oldest first.

        To follow a stream, pass the last event's sequence + 1.
        """
        if isinstance(since, bool) or not isinstance(since, (int, np.integer)) or since < 0:
            raise ArgumentError(
                f"since={since!r}",
                expected="a sequence number, 0 or more",
                remedy="Pass the last event's .sequence + 1.",
            )
        if self._engine is None:
            return []
        return events.from_rows(*self._engine.event_rows(int(since)))

    # State, files

    def state(self) -> State:
        """The whole state as plain arrays; a copy."""
        return self._engine.state() if self._engine else self._origin

    def state_hash(self) -> str:
        """Hex digest of the whole state; equal states, equal digests."""
        sha = hashlib.sha256(self.state().digest().encode())
        sha.update(repr(self._space.model).encode())
        for mean in self._space_arrays().values():
            sha.update(mean.astype("<f8").tobytes())
        return sha.hexdigest()

    def to_bytes(self) -> bytes:
        """A snapshot: plain arrays, checksummed, no pickle."""
        state = self.state()
        meta = {"state": state.scalars(), "model": self._space.model}
        return snapshot.encode(meta, {**state.arrays(), **self._space_arrays()})

    @classmethod
    def from_bytes(cls, data: bytes, *, engine: str = "auto", threads: int | None = None) -> Links:
        """A clusterer that goes on from a snapshot with the very same decisions."""
        meta, arrays = snapshot.decode(data)
        state = State.from_parts(meta.get("state"), arrays)
        links = cls.__new__(cls)
        links._start(state, _space_of(meta, arrays, state.dimension), engine, threads)
        return links

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a snapshot to a file: wholly, or not at all."""
        snapshot.write(Path(path), self.to_bytes())

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, engine: str = "auto", threads: int | None = None
    ) -> Links:
        """Read a snapshot that `save` wrote; a damaged or hostile file gives SnapshotError."""
        return cls.from_bytes(Path(path).read_bytes(), engine=engine, threads=threads)

    def _space_arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {} if self._space.mean is None else {"space_mean": self._space.mean}

    def __repr__(self) -> str:
        t = self.thresholds
        return (
            f"Links({t.cluster_similarity}, {t.subcluster_similarity}, {t.pair_similarity_max}, "
            f"engine={self.engine!r}: {self.n_vectors} vectors, {self.n_subclusters} subclusters, "
            f"{self.n_clusters} clusters)"
        )


def _space_of(meta: dict[str, Any], arrays: snapshot.Arrays, dimension: int) -> Space:
    try:
        space = Space(arrays.get("space_mean"), meta.get("model"))
    except ArgumentError as error:
        raise SnapshotError(
            f"a space that cannot be ({error.seen})",
            expected=error.expected,
            remedy="The file is damaged or was made by another program; use a backup.",
        ) from None
    if dimension and space.dimension not in (None, dimension):
        raise SnapshotError(
            f"a space of dimension {space.dimension}",
            expected=f"dimension {dimension}, as the subclusters have",
            remedy="The file is damaged or was made by another program; use a backup.",
        )
    return space


def _positive(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ArgumentError(
            f"{name}={value!r}",
            expected="a whole number of 1 or more",
            remedy="It says how many subclusters to show.",
        )
    return int(value)
