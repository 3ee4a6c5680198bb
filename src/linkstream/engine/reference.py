"""The reference engine: sections 3.2–3.5 of the paper in plain Python, the definition of Links.

C++ twin: engine.hpp. Both engines are composed of the same parts, which have the same names. Every
decision is made on exact integers (fixed_point.py); the search in floating point (rows.py) proposes
candidates with a proven error bound. Where the paper is silent, docs/choices.md says what was
chosen and why.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from linkstream.engine import door, events, linkage
from linkstream.engine.absorb import Absorb
from linkstream.engine.assess import Assess, Verdict
from linkstream.engine.cluster_index import ClusterIndex, StateIndex
from linkstream.engine.cluster_margin import ClusterMargin
from linkstream.engine.cluster_sums import ClusterSums
from linkstream.engine.comparison import elsewhere, near_clusters, wholes
from linkstream.engine.contract import Candidate, Requirements, Stop, VectorStore, Wholes
from linkstream.engine.corrections import Corrections, share
from linkstream.engine.decisions import HELD, JOINED, LINKED, Decision, Decisions, Row
from linkstream.engine.fixed_point import dot
from linkstream.engine.forest import FULL, TESTED, Node
from linkstream.engine.graph import Graph, column
from linkstream.engine.healing import POINT, Healer
from linkstream.engine.kept_changes import KeptChanges
from linkstream.engine.linkage import Blocs, Floats, Progress, Restrictions, Unions
from linkstream.engine.log import EventLog, Journal
from linkstream.engine.members import Members
from linkstream.engine.placement import Contribution, Placement
from linkstream.engine.policy import Doubt, Policy
from linkstream.engine.regroup import Regroup, Regrouped
from linkstream.engine.state import Fixed, Integers, State
from linkstream.engine.totals import totals
from linkstream.engine.transaction import Transaction
from linkstream.engine.update import Update
from linkstream.paper.thresholds import Thresholds


class ReferenceEngine:
    """Links on one core in plain Python; see `contract.Engine`."""

    name: ClassVar[str] = "reference"

    def __init__(
        self,
        thresholds: Thresholds,
        dimension: int,
        *,
        track_vectors: bool,
        cluster_evidence: bool = False,
        vector_store: VectorStore | None = None,
    ) -> None:
        self.thresholds, self.dimension = thresholds, dimension
        self.track_vectors, self.cluster_evidence = track_vectors, cluster_evidence
        self._graph = graph = Graph(thresholds, dimension)
        self._journal = journal = Journal(EventLog.keeping(track_vectors))
        self._members = members = Members(track_vectors)
        self._cluster_sums = sums = ClusterSums(graph, on=cluster_evidence)
        self._assess = Assess(graph, sums, cluster_evidence=cluster_evidence)
        self._margin = ClusterMargin(graph, sums, self._assess)
        self._update = Update(graph, journal, members, sums)
        self._placement = Placement(graph, journal, sums, self._update)
        self._corrections = Corrections(graph, members, self._placement)
        self._healer = Healer(graph, journal, sums, self._update)
        self._regroup = Regroup(graph, journal, sums)
        self._heals_alone = False
        self._policy = Policy(graph)
        self.can_keep = True  # any change; their number is bounded
        self._absorb = Absorb(graph, journal, members, sums, self._assess, self._placement)
        self._vector_store = vector_store
        self._kept = KeptChanges(graph, members, journal, sums)
        parts = graph, members, journal, sums, vector_store
        self._transaction = Transaction(*parts, self._kept)
        self.clusters: ClusterIndex = StateIndex(self.state)

    @property
    def n_vectors(self) -> int:
        """Return the number of vectors added so far."""
        return self._journal.n_vectors

    @property
    def n_events(self) -> int:
        """Return the number of events so far."""
        return self._journal.log.n_events

    @property
    def n_subclusters(self) -> int:
        """Return the number of nodes of the graph."""
        return len(self._graph.nodes)

    @property
    def n_clusters(self) -> int:
        """Return the number of connected components of the graph."""
        return len(self._graph.clusters)

    @property
    def n_cluster_ids(self) -> int:
        """Return the number of cluster IDs given so far."""
        return self._journal.free_cluster

    # Changes: kept wholly, or taken back

    def begin(self) -> None:
        """Begin a change of several calls."""
        self._transaction.begin()

    def commit(self, *, keep: bool = False) -> None:
        """Keep all calls since `begin`; see `contract.Engine`."""
        self._transaction.commit(keep=keep)

    @property
    def n_kept(self) -> int:
        """Return how many of the newest changes can be taken back."""
        return len(self._kept)

    def take_back(self, n: int, code: int, number: int) -> None:
        """Take back the newest changes; see `contract.Engine`."""
        shared = (self._vector_store, self.clusters)
        twin = copy.deepcopy(self, {id(each): each for each in shared})
        stored = twin._kept.take_back(n)
        twin._journal.record(code, number)
        vars(self).update(vars(twin))
        if self._vector_store is not None:
            self._vector_store.cut(stored)

    def rollback(self) -> None:
        """Take back all calls since `begin`."""
        self._transaction.rollback()

    # Section 3.3: assessing cluster membership

    def add(self, rows: Fixed | npt.NDArray[np.float32], stop: Stop | None = None) -> Decisions:
        """Add vectors in order of arrival until `stop` returns True."""
        first, decided = self.n_vectors, list[Row]()
        with self._transaction.change():
            for vector in door.fixed(rows):
                if stop is not None and decided and stop():
                    break
                decided.append(self._add_one(vector))
                if self._heals_alone and self.n_vectors % POINT == 0:
                    self._healer.settle()
        return Decisions.of(first, decided)

    def add_one(self, x: object) -> None:
        """Return None: this engine has no fast path for one vector."""

    def ask(self, vectors: Fixed) -> Decisions:
        """Return what equations 20 and 21 say of each vector; change nothing."""
        return Decisions.of(self.n_vectors, [self._ask_one(vector) for vector in vectors])

    def _tested(self, vector: Fixed) -> Verdict:
        q = vector.astype(np.int64)
        square = dot(q, q)
        nearest = self._assess.nearest(q, square)
        verdict = self._assess(nearest, q, square)
        return replace(verdict, cluster_margin=self._margin(verdict, nearest, q, square))

    def _add_one(self, vector: Fixed) -> Row:
        self._journal.newest = self.n_vectors
        verdict = self._tested(vector)
        missing_weight = self._policy.lacking(verdict)
        if missing_weight == FULL:
            return self._hold(verdict, vector)
        if missing_weight:
            self._journal.record(events.WEIGHED, FULL - missing_weight)
        part = Contribution(share(vector, missing_weight), missing_weight, self.n_vectors)
        node = self._apply(verdict, part)
        self._arrived(node, vector)
        return verdict.row(node.cluster, node.number)

    def _hold(self, verdict: Verdict, vector: Fixed, missing_weight: int = 0) -> Row:
        """Count and store a new vector that is in no subcluster."""
        if missing_weight:
            self._journal.record(events.WEIGHED, FULL - missing_weight)
        self._journal.record(events.DEFERRED)
        self._stored(-1, vector)
        return replace(verdict, kind=HELD).row(-1, -1)

    def _apply(self, verdict: Verdict, part: Contribution) -> Node:
        """Carry out a verdict; return the node that then holds the vector."""
        if verdict.partner is None:
            return self._placement.create(part)
        if verdict.kind == JOINED:
            return self._placement.join(verdict.partner, part)
        return self._placement.link(verdict.partner, part, verdict.rule)

    def _arrived(self, node: Node, vector: Fixed) -> None:
        """Count and store a new vector that a node holds."""
        self._stored(node.number, vector)
        self._healer.arrived(node)

    def _stored(self, number: int, vector: Fixed) -> None:
        self._members.joined(number)
        if self._vector_store is not None:
            self._vector_store.append(vector[np.newaxis])
        self._journal.n_vectors += 1

    def _ask_one(self, vector: Fixed) -> Row:
        verdict = self._tested(vector)
        cluster = verdict.partner.cluster if verdict.partner else -1
        number = verdict.partner.number if verdict.partner and verdict.kind == JOINED else -1
        return verdict.row(cluster, number)

    # Beyond the paper

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
        is_new, journal = member < 0, self._journal
        with self._transaction.change():
            given = self._corrections.given(outcome, target, rule) if outcome >= 0 else None
            verdict, number = given or self._tested(vector), self.n_vectors if is_new else member
            if is_new:
                journal.newest = self.n_vectors
            lacking = self._policy.lacking(verdict) if is_new and given is None else 0
            if lacking == FULL:
                return Decisions.of(number, [self._hold(verdict, vector, missing_weight)]).at(0)
            missing_weight = max(missing_weight, lacking)
            part = Contribution(share(vector, missing_weight), missing_weight, number)
            self._corrections.check_sum(verdict, part.share)
            if is_new and missing_weight:
                journal.record(events.WEIGHED, FULL - missing_weight)
            node = self._apply(verdict, part)
            if is_new:
                self._arrived(node, vector)
            else:
                self._members.moved(member, node.number)
            if not is_new and given is None:
                self._healer.arrived(node)
                if verdict.kind == LINKED and verdict.partner:  # the event tells of a pinned edge
                    journal.record(events.HELD, node.number, verdict.partner.number, verdict.rule)
        return Decisions.of(part.member, [verdict.row(node.cluster, node.number)]).at(0)

    def withdraw(self, vector: Fixed, *, missing_weight: int, target: int, member: int) -> None:
        """Take a vector's share out of the subcluster that holds it, exactly."""
        with self._transaction.change():
            self._corrections.withdraw(vector, missing_weight, target, member)

    def flag(self, number: int, flags: int) -> None:
        """Set the flags of a subcluster."""
        with self._transaction.change():
            self._placement.flag(self._graph.nodes[number], flags)

    def note(self, rows: Iterable[tuple[int, ...]]) -> None:
        """Append events that the engine does not produce itself."""
        with self._transaction.change():
            for code, *numbers in rows:
                self._journal.record(code, *numbers)

    def absorb(
        self,
        totals: Integers,
        missing_weights: Integers,
        sizes: Integers | None = None,
        *,
        rows: Fixed | None = None,
        flags: int = 0,
        apart: bool = False,
    ) -> Decisions:
        """Add vectors by their sums; see `contract.Engine`."""
        ends = np.array([len(missing_weights)]) if sizes is None else np.cumsum(sizes)
        parts = np.split(missing_weights, ends[:-1])
        first = self.n_vectors
        with self._transaction.change():
            decided = [
                self._absorbed(*self._absorb(total, part, flags, apart=apart), len(part))
                for total, part in zip(np.atleast_2d(totals), parts, strict=True)
            ]
            if self._vector_store is not None and rows is not None:
                self._vector_store.append(rows)
        return Decisions.of(first, decided)

    def _absorbed(self, node: Node, verdict: Verdict, n: int) -> Row:
        if verdict.kind == JOINED:
            node = self._update(node)
        self._healer.arrived(node, n)
        return verdict.row(node.cluster, node.number)

    def set_cluster_margins(self, on: bool) -> None:
        """Compute the cluster margin of each decision from now on, or no longer."""
        self._margin.set(on)

    def set_policy(self, doubt: Doubt | None) -> None:
        """Say what to do with unsure vectors from now on; see `contract.Engine`."""
        self._policy.doubt = doubt

    # Healing and settling

    def set_healing(
        self, growth: float, steadiness: float, *, alone: bool, final_after: int = 0
    ) -> None:
        """Mark clusters that grow; `alone`: settle them at each point; see `contract.Engine`."""
        self._healer.growth, self._healer.steadiness = growth, steadiness
        self._healer.final_after = final_after
        self._heals_alone = alone and self._healer.on
        self._cluster_sums.turn_on(self._healer.on)

    def require(self, requirements: Requirements) -> None:
        """Replace what corrections require of groups; see `contract.Engine`."""
        self._healer.require(requirements)

    def heal(self) -> None:
        """Settle the clusters that are due; see `contract.Engine`."""
        with self._transaction.change():
            self._healer.settle()

    def outline(self) -> State:
        """Return the state without sums, vectors and events."""
        whole = self.state()
        empty = State(self.thresholds, self.dimension)
        return replace(whole, sums=empty.sums, vectors=empty.vectors, events=empty.events)

    def unions(
        self,
        blocs: Blocs,
        thresholds: Thresholds,
        restrictions: Restrictions = linkage.UNRESTRICTED,
        progress: Progress | None = None,
    ) -> Unions:
        """Unite rows of subclusters by margin."""
        sums = self.totals(blocs.numbers, blocs.places, len(blocs.masses))
        return linkage.unions(sums, blocs.masses, thresholds, restrictions, progress)

    def totals(self, numbers: Integers, places: Integers, n: int) -> Integers:
        """Return the sum of the subclusters of each place."""
        sums = self._graph.rows.sums(numbers.tolist())
        return totals(sums, np.arange(len(numbers)), places, n)

    def regroup(self, given: Regrouped) -> None:
        """Replace the edges and clusters of the subclusters; append the events."""
        with self._transaction.change():
            self._regroup(given)

    # Answers and exchange

    def ranked(self, vector: Fixed, limit: int) -> list[Candidate]:
        """Return the most similar subclusters, best first (tie: the older)."""
        q = vector.astype(np.int64)
        found = self._graph.exact(self._graph.rows.top(q, limit), q, dot(q, q))
        found.sort(key=lambda pair: (-pair[1], pair[0].number))
        join = self.thresholds.subcluster_similarity
        return [
            Candidate(n.number, n.cluster, n.count, score, join, self.thresholds.edge(n.mass, 1))
            for n, score in found[:limit]
        ]

    def holder(self, member: int) -> int:
        """Return the subcluster that holds a vector; −1 if the vector was removed."""
        return self._members.holder(member)

    def cluster_of(self, number: int) -> int:
        """Return the cluster of a subcluster; −1 if there is no such subcluster."""
        node = self._graph.nodes.get(number)
        return -1 if node is None else node.cluster

    def has_cluster(self, cluster: int) -> bool:
        """Return whether a cluster exists."""
        return cluster in self._graph.clusters

    def total_of(self, number: int) -> tuple[int, Integers]:
        """Return the number of vectors of a subcluster, and their sum."""
        node = self._graph.nodes.get(number)
        if node is None:
            return 0, np.zeros(self.dimension, dtype=np.int64)
        return node.count, self._graph.rows.sum(number).copy()

    def oldest_event(self) -> int:
        """Return the sequence number of the oldest event that is kept."""
        return self._journal.log.oldest

    def labels(self) -> Integers:
        """Return the current cluster of each vector, in order of arrival."""
        return column(self.cluster_of(number) for number in self._members.live())

    def members(self, cluster: int, limit: int, before: int) -> Integers:
        """Return the vectors of a cluster, the newest first; see `contract.Engine`."""
        nodes = self._graph.nodes.values()
        numbers = [node.number for node in nodes if node.cluster == cluster]
        return column(self._members.vectors_of(numbers, limit, before))

    def held_by(self, number: int, limit: int, before: int) -> Integers:
        """Return the vectors of a subcluster, the newest first."""
        return column(self._members.vectors_of([number], limit, before))

    def elsewhere(self, vectors: Fixed, cluster: int) -> npt.NDArray[np.float64]:
        """Return the greatest similarity of each vector to another cluster; −1 if there is none."""
        return elsewhere(self.state(), vectors, cluster)

    def wholes(self, vector: Fixed) -> Wholes:
        """Return all clusters, their weights and similarities to a vector."""
        return wholes(self.state(), vector)

    def near_clusters(self, vectors: Fixed, limit: int) -> tuple[Integers, Floats]:
        """Return the clusters with the greatest margins to each vector; see `contract.Engine`."""
        return near_clusters(self.state(), vectors, min(limit, max(self.n_clusters, 1)))

    def event_rows(self, since: int) -> tuple[int, Integers]:
        """Return the events from sequence `since` on."""
        return self._journal.log.since(since)

    def parts(self, *clusters: int) -> State:
        """Return some clusters; see `contract.Engine`."""
        nodes = self._graph.nodes_in(set(clusters))
        return replace(self.outline(), **self._graph.columns(nodes))

    def state(self) -> State:
        """Return the whole state as plain arrays."""
        return State(
            thresholds=self.thresholds,
            dimension=self.dimension,
            track_vectors=self.track_vectors,
            cluster_evidence=self.cluster_evidence,
            n_vectors=self.n_vectors,
            vectors=column(self._members.live()),
            **self._journal.columns(),
            **self._graph.columns(),
        )

    @classmethod
    def from_state(cls, state: State, vector_store: VectorStore | None = None) -> ReferenceEngine:
        """Return an engine that continues from a state."""
        engine = cls(
            state.thresholds,
            state.dimension,
            track_vectors=state.track_vectors,
            cluster_evidence=state.cluster_evidence,
            vector_store=vector_store,
        )
        engine._journal.read(state)
        engine._members.restore(state.vectors.tolist())
        engine._graph.read(state)
        engine._cluster_sums.read()
        return engine
