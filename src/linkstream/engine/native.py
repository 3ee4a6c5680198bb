"""The native engine: `contract.Engine` over the compiled core (cpp/include/linkstream/engine.hpp).

It only translates. Its decisions are those of reference.py, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from linkstream import _core
from linkstream.engine import events
from linkstream.engine.cluster_index import ClusterIndex
from linkstream.engine.contract import (
    KINDS,
    Candidate,
    Decision,
    Decisions,
    Requirements,
    Stop,
    VectorStore,
    Wholes,
)
from linkstream.engine.corrections import absent
from linkstream.engine.door import NORM_MAX, NORM_MIN, check_norms
from linkstream.engine.forest import TESTED
from linkstream.engine.kernels import KERNEL_VARIABLE as KERNEL_VARIABLE
from linkstream.engine.kernels import default_threads, kernel_name
from linkstream.engine.linkage import (
    UNRESTRICTED,
    Blocs,
    Floats,
    Integers,
    Progress,
    Restrictions,
    Unions,
)
from linkstream.engine.log import refuse_forgotten
from linkstream.engine.native_index import NativeIndex
from linkstream.engine.policy import Doubt
from linkstream.engine.regroup import Regrouped
from linkstream.engine.state import FIELDS, Fixed, State
from linkstream.paper.thresholds import Thresholds

NativeVectorStore = _core.VectorStore  # the only store this engine appends to


def _make_room(instances: int) -> None:
    """Let nanobind's table of instances grow now: it ends the process if memory runs out then."""
    _ = [NativeVectorStore(1) for _ in range(instances)]


_make_room(1000)  # takes 0.2 ms


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
        vector_store: VectorStore | None = None,
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
            vector_store=cast("_core.VectorStore | None", vector_store),
        )
        self.clusters: ClusterIndex = NativeIndex(self._core)

    @property
    def kernel(self) -> str:
        """Return the name of the instruction set that the scan uses."""
        return self._core.kernel

    @property
    def n_vectors(self) -> int:
        """Return the number of vectors added so far."""
        return self._core.n_vectors

    @property
    def n_events(self) -> int:
        """Return the number of events so far."""
        return self._core.n_events

    @property
    def n_subclusters(self) -> int:
        """Return the number of nodes of the graph."""
        return self._core.n_subclusters

    @property
    def n_clusters(self) -> int:
        """Return the number of connected components of the graph."""
        return self._core.n_clusters

    @property
    def n_cluster_ids(self) -> int:
        """Return the number of cluster IDs given so far."""
        return self._core.n_cluster_ids

    # Each call is a method: nanobind crashes if it has no memory for a bound method of the core.

    def begin(self) -> None:
        """Begin a change of several calls."""
        self._core.begin()

    def commit(self, *, keep: bool = False) -> None:
        """Keep all calls since `begin`; see `contract.Engine`."""
        self._core.commit(keep)

    @property
    def can_keep(self) -> bool:
        """Return whether the open change is small enough to be kept."""
        return self._core.can_keep

    @property
    def n_kept(self) -> int:
        """Return how many of the newest changes can be taken back."""
        return self._core.n_kept

    def take_back(self, n: int, code: int, number: int) -> None:
        """Take back the newest changes; see `contract.Engine`."""
        self._core.take_back(n, code, number)

    def rollback(self) -> None:
        """Take back all calls since `begin`; this needs no memory."""
        self._core.rollback()

    def add(self, rows: Fixed | npt.NDArray[np.float32], stop: Stop | None = None) -> Decisions:
        """Add vectors in order of arrival until `stop` returns True."""
        if rows.dtype == np.int32:
            return Decisions(*self._core.add(cast("Fixed", rows), stop))
        floats = cast("npt.NDArray[np.float32]", rows)
        columns = self._core.add_floats(floats, NORM_MIN, NORM_MAX, stop)
        if columns is None:  # a norm is out of bounds
            check_norms(floats, _core.quantise(floats)[1])
        assert columns is not None, "rows of the engine's dimension"
        return Decisions(*columns)

    def add_one(self, x: object) -> Decision | None:
        """Add one float32 vector in the fewest steps."""
        if type(x) is not np.ndarray or not x.flags.aligned:  # a subclass may be a masked array
            return None
        return cast("Decision | None", self._core.add_one(x, NORM_MIN, NORM_MAX, _decision))

    def ask(self, vectors: Fixed) -> Decisions:
        """Return what equations 20 and 21 say of each vector; change nothing."""
        return Decisions(*self._core.ask(vectors))

    def place(
        self,
        vector: Fixed,
        *,
        missing_weight: int = 0,
        outcome: int = -1,
        target: int = -1,
        member: int = -1,
        rule: int = TESTED,
    ) -> Decision:
        """Place one vector by the tests or by a given outcome; see `contract.Engine`."""
        sequence = self.n_vectors if member < 0 else member
        row = self._core.place(vector[np.newaxis], missing_weight, outcome, target, member, rule)
        return Decisions.of(sequence, [row]).at(0)

    def absorb(
        self,
        totals: npt.NDArray[np.int64],
        missing_weights: npt.NDArray[np.int64],
        sizes: npt.NDArray[np.int64] | None = None,
        *,
        rows: Fixed | None = None,
        flags: int = 0,
        apart: bool = False,
    ) -> Decisions:
        """Add vectors by their sums; see `contract.Engine`."""
        if sizes is None:
            totals, sizes = totals[np.newaxis], np.array([len(missing_weights)], dtype=np.int64)
        return Decisions(*self._core.absorb(totals, sizes, missing_weights, rows, flags, apart))

    def withdraw(self, vector: Fixed, *, missing_weight: int, target: int, member: int) -> None:
        """Take a vector's share out of the subcluster that holds it, exactly."""
        try:
            self._core.withdraw(vector[np.newaxis], missing_weight, target, member)
        except ValueError as error:
            raise absent(str(error)) from None

    def set_healing(
        self, growth: float, steadiness: float, *, alone: bool, final_after: int = 0
    ) -> None:
        """Mark clusters that grow; `alone`: settle them at each point; see `contract.Engine`."""
        self._core.set_healing(growth, steadiness, alone, final_after)

    def set_cluster_margins(self, on: bool) -> None:
        """Compute the cluster margin of each decision from now on, or no longer."""
        self._core.set_cluster_margins(on)

    def set_policy(self, doubt: Doubt | None) -> None:
        """Say what to do with unsure vectors from now on; see `contract.Engine`."""
        off = (0.0, 0.0, -1)
        self._core.set_policy(*(off if doubt is None else astuple(doubt)))

    def require(self, requirements: Requirements) -> None:
        """Replace what corrections require of groups; see `contract.Engine`."""
        barred, labels = sorted(requirements.barred), sorted(requirements.labels.items())
        self._core.require(_pairs(barred), _pairs(labels))

    def heal(self) -> None:
        """Settle the clusters that are due; see `contract.Engine`."""
        self._core.heal()

    def regroup(self, given: Regrouped) -> None:
        """Replace the edges and clusters of the subclusters; append the events."""
        self._core.regroup(
            given.numbers,
            given.clusters,
            given.edges,
            given.edge_rules,
            given.events,
            given.free_cluster,
        )

    def note(self, rows: Iterable[tuple[int, ...]]) -> None:
        """Append events that the engine does not produce itself."""
        padded = [events.row(code, 0, *numbers) for code, *numbers in rows]
        self._core.note(np.array(padded, dtype=np.int64).reshape(-1, events.WIDTH))

    def ranked(self, vector: Fixed, limit: int) -> list[Candidate]:
        """Return the most similar subclusters, best first (tie: the older)."""
        join, found = self.thresholds.subcluster_similarity, self._core.ranked(vector[None], limit)
        return [
            Candidate(subcluster, cluster, count, similarity, join, link)
            for subcluster, cluster, count, similarity, link in found
        ]

    def flag(self, number: int, flags: int) -> None:
        """Set the flags of a subcluster."""
        self._core.flag(number, flags)

    def holder(self, member: int) -> int:
        """Return the subcluster that holds a vector; −1 if the vector was removed."""
        return self._core.holder(member)

    def cluster_of(self, number: int) -> int:
        """Return the cluster of a subcluster; −1 if there is no such subcluster."""
        return self._core.cluster_of(number)

    def has_cluster(self, cluster: int) -> bool:
        """Return whether a cluster exists."""
        return self._core.has_cluster(cluster)

    def total_of(self, number: int) -> tuple[int, npt.NDArray[np.int64]]:
        """Return the number of vectors of a subcluster, and their sum."""
        return self._core.total_of(number)

    def oldest_event(self) -> int:
        """Return the sequence number of the oldest event that is kept."""
        return self._core.oldest_event()

    def labels(self) -> npt.NDArray[np.int64]:
        """Return the current cluster of each vector, in order of arrival."""
        return self._core.labels()

    def members(self, cluster: int, limit: int, before: int) -> npt.NDArray[np.int64]:
        """Return the vectors of a cluster, the newest first; see `contract.Engine`."""
        return self._core.members(cluster, limit, before)

    def held_by(self, number: int, limit: int, before: int) -> npt.NDArray[np.int64]:
        """Return the vectors of a subcluster, the newest first."""
        return self._core.held_by(number, limit, before)

    def elsewhere(self, vectors: Fixed, cluster: int) -> Floats:
        """Return the greatest similarity of each vector to another cluster."""
        return self._core.elsewhere(np.ascontiguousarray(vectors), cluster)

    def wholes(self, vector: Fixed) -> Wholes:
        """Return all clusters, their weights and similarities to a vector."""
        return self._core.wholes(vector[np.newaxis])

    def near_clusters(self, vectors: Fixed, limit: int) -> tuple[Integers, Floats]:
        """Return the clusters with the greatest margins to each vector; see `contract.Engine`."""
        return self._core.near_clusters(vectors, min(limit, max(self.n_clusters, 1)))

    def event_rows(self, since: int) -> tuple[int, npt.NDArray[np.int64]]:
        """Return the events from sequence `since` on."""
        refuse_forgotten(since, self.oldest_event())
        return since, self._core.event_rows(since)

    def unions(
        self,
        blocs: Blocs,
        thresholds: Thresholds,
        restrictions: Restrictions = UNRESTRICTED,
        progress: Progress | None = None,
        *,
        listed: int = 0,
    ) -> Unions:
        """Unite rows of subclusters by margin, without a copy of their sums."""
        columns = self._core.unions(
            blocs.numbers,
            blocs.places,
            blocs.masses,
            *_figures(thresholds),
            *_restricted(restrictions),
            progress=progress,
            listed=listed,
        )
        return Unions(*columns)

    def totals(self, numbers: Integers, places: Integers, n: int) -> Integers:
        """Return the sum of the subclusters of each place."""
        return self._core.totals(numbers, places, n)

    def outline(self) -> State:
        """Return the state without sums, vectors and events."""
        return self._state(self._core.outline())

    def parts(self, *clusters: int) -> State:
        """Return some clusters; see `contract.Engine`."""
        return self._state(self._core.parts(np.array(clusters, dtype=np.int64)))

    def state(self) -> State:
        """Return the whole state as plain arrays."""
        return self._state(self._core.state())

    def _state(self, values: dict[str, Any]) -> State:
        return State(
            thresholds=self.thresholds,
            dimension=self.dimension,
            track_vectors=self.track_vectors,
            cluster_evidence=self.cluster_evidence,
            **values,
        )

    @classmethod
    def from_state(
        cls, state: State, vector_store: VectorStore | None = None, *, threads: int | None = None
    ) -> NativeEngine:
        """Return an engine that continues from a state."""
        engine = cls(
            state.thresholds,
            state.dimension,
            track_vectors=state.track_vectors,
            cluster_evidence=state.cluster_evidence,
            threads=threads,
            vector_store=vector_store,
        )
        arrays = {FIELDS[name]: array for name, array in state.arrays().items()}
        engine._core.restore({**state.scalars(), **arrays})
        return engine


def _pairs(pairs: list[tuple[int, int]]) -> npt.NDArray[np.int64]:
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _decision(
    cluster: int,
    subcluster: int,
    kind: int,
    similarity: float | None,
    threshold: float | None,
    sequence: int,
    margin: float | None,
) -> Decision:
    return Decision(cluster, subcluster, KINDS[kind], similarity, threshold, sequence, margin)


def quantise(rows: npt.NDArray[np.float32]) -> tuple[Fixed, Floats]:
    """Return the fixed-point rows and lengths of `fixed_point.quantise`, bit for bit."""
    return _core.quantise(rows)


def unions(
    sums: Integers,
    masses: Floats,
    thresholds: Thresholds,
    restrictions: Restrictions = UNRESTRICTED,
    progress: Progress | None = None,
    *,
    threads: int | None = None,
    listed: int = 0,
) -> Unions:
    """Return the pairs and margins of `linkage.unions`, bit for bit.

    `listed` is the number of partners to list for each row, about; 0: as memory allows.
    """
    columns = _core.unions(
        np.ascontiguousarray(sums),
        masses,
        *_figures(thresholds),
        *_restricted(restrictions),
        threads=threads or default_threads(),
        kernel=kernel_name(),
        progress=progress,
        listed=listed,
    )
    return Unions(*columns)


def _figures(thresholds: Thresholds) -> tuple[float, float, float]:
    return (
        thresholds.cluster_similarity,
        thresholds.subcluster_similarity,
        thresholds.pair_similarity_max,
    )


def _restricted(restrictions: Restrictions) -> tuple[Integers, Integers, float]:
    """Return pairs that are barred, labels and the least likeness, as the core takes them."""
    labels = restrictions.labels
    return (
        np.ascontiguousarray(restrictions.barred),
        np.empty(0, dtype=np.int64) if labels is None else labels,
        0.0 if restrictions.alike is None else restrictions.alike,
    )
