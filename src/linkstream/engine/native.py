"""The native engine: the contract over the compiled core (cpp/include/linkstream/engine.hpp).

Only translation. What it decides is what reference.py decides, bit for bit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import ClassVar, cast

import numpy as np
import numpy.typing as npt

from linkstream import _core
from linkstream.engine import events
from linkstream.engine.contract import KINDS, Candidate, Decision, Decisions, Keep, Stop
from linkstream.engine.door import NORM_MAX, NORM_MIN
from linkstream.engine.forest import LOOSE
from linkstream.engine.hands import absent
from linkstream.engine.linkage import Unions
from linkstream.engine.log import refuse_forgotten
from linkstream.engine.state import State
from linkstream.errors import EngineUnavailableError
from linkstream.paper.thresholds import Thresholds

KERNEL_VARIABLE = "LINKSTREAM_KERNEL"

Kept = _core.Kept  # what this engine can add to; see `contract.Keep`


def default_threads() -> int:
    """As many threads as this process may run on cores."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not every system can say
        return os.cpu_count() or 1


def kernel_name() -> str:
    """The kernel that LINKSTREAM_KERNEL asks for; empty: the fastest this machine has."""
    name = os.environ.get(KERNEL_VARIABLE, "")
    if name and name not in _core.kernels():
        raise EngineUnavailableError(
            f"{KERNEL_VARIABLE}={name!r}",
            expected=f"one of {', '.join(_core.kernels())} on this machine",
            remedy=f"Unset {KERNEL_VARIABLE} to take the fastest.",
        )
    return name


class NativeEngine:
    """Links on the compiled core; see `contract.Engine`."""

    name: ClassVar[str] = "native"

    def __init__(
        self,
        thresholds: Thresholds,
        dimension: int,
        *,
        track_vectors: bool,
        cluster_evidence: bool = False,
        threads: int | None = None,
        check_all_edges: bool = False,
        keep: Keep | None = None,
    ) -> None:
        self.thresholds = thresholds
        self.dimension = dimension
        self.track_vectors = track_vectors
        self.cluster_evidence = cluster_evidence
        self._core = _core.Engine(
            thresholds.cluster_similarity,
            thresholds.subcluster_similarity,
            thresholds.pair_similarity_max,
            dimension=dimension,
            track_vectors=track_vectors,
            cluster_evidence=cluster_evidence,
            threads=threads or default_threads(),
            kernel=kernel_name(),
            check_all_edges=check_all_edges,
            keep=cast("_core.Kept | None", keep),
        )

    @property
    def kernel(self) -> str:
        """Name of the instruction set the scan uses."""
        return self._core.kernel

    @property
    def n_vectors(self) -> int:
        """Vectors added so far."""
        return self._core.n_vectors

    @property
    def n_subclusters(self) -> int:
        """Nodes of the graph."""
        return self._core.n_subclusters

    @property
    def n_clusters(self) -> int:
        """Connected components of the graph."""
        return self._core.n_clusters

    @property
    def n_cluster_ids(self) -> int:
        """Cluster IDs given so far."""
        return self._core.n_cluster_ids

    def begin(self) -> None:
        """Begin a change of several calls."""
        self._core.begin()

    def commit(self) -> None:
        """Keep all calls since `begin`."""
        self._core.commit()

    def rollback(self) -> None:
        """Take back all calls since `begin`; needs no memory."""
        self._core.rollback()

    def add(self, vectors: npt.NDArray[np.int32], stop: Stop | None = None) -> Decisions:
        """Take vectors in order of arrival, until `stop` says so."""
        return _decisions(*self._core.add(vectors, stop))

    def add_floats(
        self, rows: npt.NDArray[np.float32], stop: Stop | None = None
    ) -> Decisions | None:
        """Take rows before they are fixed-point; None if a norm is out of bounds."""
        columns = self._core.add_floats(rows, NORM_MIN, NORM_MAX, stop)
        return None if columns is None else _decisions(*columns)

    def add_one(self, x: object) -> Decision | None:
        """Take one float32 vector straight from the caller, in the fewest steps."""
        if type(x) is not np.ndarray or not x.flags.aligned:  # a masked array is one for the door
            return None
        return cast("Decision | None", self._core.add_one(x, NORM_MIN, NORM_MAX, _decision))

    def ask(self, vectors: npt.NDArray[np.int32]) -> Decisions:
        """What equations 20 and 21 say of each vector; nothing changes."""
        return _decisions(*self._core.ask(vectors))

    def take(
        self,
        vector: npt.NDArray[np.int32],
        *,
        light: int = 0,
        outcome: int = -1,
        target: int = -1,
        member: int = -1,
        firm: int = LOOSE,
    ) -> Decision:
        """Take one vector of less weight, or with an outcome that is given; or put an old one."""
        sequence = self.n_vectors if member < 0 else member
        row = self._core.take(vector[np.newaxis], light, outcome, target, member, firm)
        return Decisions.of(sequence, [row]).at(0)

    def receive(
        self,
        total: npt.NDArray[np.int64],
        lights: npt.NDArray[np.int64],
        *,
        rows: npt.NDArray[np.int32] | None = None,
        flags: int = 0,
        apart: bool = False,
    ) -> Decision:
        """Take vectors together, by their sum and by how much less each weighs."""
        first = self.n_vectors
        row = self._core.receive(total, lights, rows, flags, apart)
        return Decisions.of(first, [row]).at(0)

    def receive_all(
        self,
        totals: npt.NDArray[np.int64],
        sizes: npt.NDArray[np.int64],
        lights: npt.NDArray[np.int64],
    ) -> Decisions:
        """The same as `receive` for each total, one after the other; vectors are not kept."""
        return _decisions(*self._core.receive_all(totals, sizes, lights))

    def withdraw(
        self, vector: npt.NDArray[np.int32], *, light: int, target: int, member: int
    ) -> None:
        """Take a vector's share out of the subcluster that holds it, exactly."""
        try:
            self._core.withdraw(vector[np.newaxis], light, target, member)
        except ValueError as error:
            raise absent(str(error)) from None

    def flag(self, number: int, flags: int) -> None:
        """Lock a subcluster, or give it a claim to the ID at a split, or neither."""
        self._core.flag(number, flags)

    def note(self, rows: Iterable[tuple[int, ...]]) -> None:
        """Write events of what is not the engine's to do: code and numbers of each."""
        padded = [events.row(code, 0, *numbers) for code, *numbers in rows]
        self._core.note(np.array(padded, dtype=np.int64).reshape(-1, events.WIDTH))

    def ranked(self, vector: npt.NDArray[np.int32], limit: int) -> list[Candidate]:
        """The most similar subclusters, best first (tie: the older)."""
        join = self.thresholds.subcluster_similarity
        return [
            Candidate(subcluster, cluster, count, similarity, join, link)
            for subcluster, cluster, count, similarity, link in self._core.ranked(
                vector[np.newaxis], limit
            )
        ]

    def holder(self, member: int) -> int:
        """The subcluster that holds a vector; −1 if it was removed."""
        return self._core.holder(member)

    def cluster_of(self, number: int) -> int:
        """The cluster of a subcluster; −1 if that is no more."""
        return self._core.cluster_of(number)

    def has_cluster(self, cluster: int) -> bool:
        """Whether a cluster is there."""
        return self._core.has_cluster(cluster)

    def total_of(self, number: int) -> tuple[int, npt.NDArray[np.int64]]:
        """How many vectors a subcluster holds, and their sum."""
        return self._core.total_of(number)

    def oldest_event(self) -> int:
        """The sequence number from which on events are kept."""
        return self._core.oldest_event()

    def labels(self) -> npt.NDArray[np.int64]:
        """Current cluster of each vector, in order of arrival."""
        return self._core.labels()

    def event_rows(self, since: int) -> tuple[int, npt.NDArray[np.int64]]:
        """Events kept from sequence `since` on."""
        refuse_forgotten(since, self.oldest_event())
        return since, self._core.event_rows(since)

    def state(self) -> State:
        """All there is to know, as plain arrays."""
        return State(
            thresholds=self.thresholds,
            dimension=self.dimension,
            track_vectors=self.track_vectors,
            cluster_evidence=self.cluster_evidence,
            **self._core.state(),
        )

    @classmethod
    def from_state(
        cls, state: State, keep: Keep | None = None, *, threads: int | None = None
    ) -> NativeEngine:
        """An engine that goes on from a state."""
        engine = cls(
            state.thresholds,
            state.dimension,
            track_vectors=state.track_vectors,
            cluster_evidence=state.cluster_evidence,
            threads=threads,
            keep=keep,
        )
        engine._core.restore({**state.scalars(), **state.arrays()})
        return engine


def _decision(
    cluster: int,
    subcluster: int,
    kind: int,
    similarity: float | None,
    threshold: float | None,
    sequence: int,
) -> Decision:
    return Decision(cluster, subcluster, KINDS[kind], similarity, threshold, sequence)


def _decisions(
    first: int,
    cluster: npt.NDArray[np.int64],
    subcluster: npt.NDArray[np.int64],
    kind: npt.NDArray[np.int8],
    similarity: npt.NDArray[np.float64],
    threshold: npt.NDArray[np.float64],
) -> Decisions:
    return Decisions(first, cluster, subcluster, kind, similarity, threshold)


def quantise(
    rows: npt.NDArray[np.float32],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Fixed-point rows and lengths, as `fixed_point.quantise` gives them, bit for bit."""
    return _core.quantise(rows)


def unions(
    table: npt.NDArray[np.float64],
    squares: npt.NDArray[np.float64],
    masses: npt.NDArray[np.float64],
    thresholds: Thresholds,
) -> Unions:
    """The pairs and margins that `linkage.unions` gives, bit for bit."""
    kept, gone, margins = _core.unions(
        table,
        squares,
        masses,
        thresholds.cluster_similarity,
        thresholds.subcluster_similarity,
        thresholds.pair_similarity_max,
    )
    return Unions(
        np.array(kept, dtype=np.int64),
        np.array(gone, dtype=np.int64),
        np.array(margins, dtype=np.float64),
    )
