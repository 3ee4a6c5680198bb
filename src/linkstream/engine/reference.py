"""The reference engine: sections 3.2–3.5 of the paper in plain Python, the living definition.

Read it with the paper open. Every decision is made on exact integers (fixed_point.py); the only
floating-point search is `_near`, which proposes candidates with a proven error bound and leaves
the decision to the exact similarity. Where the paper is silent, docs/choices.md says what was
chosen and why. The compiled engine follows this file paragraph by paragraph.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from linkstream.engine import events
from linkstream.engine.contract import JOINED, LINKED, NEW, Candidate, Decisions
from linkstream.engine.fixed_point import dot, dots, similarity
from linkstream.engine.forest import Node, add_edge, part_of, remove_edge
from linkstream.engine.log import EventLog
from linkstream.engine.state import State
from linkstream.engine.table import Table
from linkstream.engine.wholes import Wholes
from linkstream.paper.thresholds import Thresholds


@dataclass(frozen=True, slots=True)
class Nearest:
    """J, the most similar subcluster, and x·μ_J (equation 19)."""

    node: Node
    similarity: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which outcome, by which similarity and threshold; whom to join or to link to."""

    kind: int
    similarity: float = math.nan
    threshold: float = math.nan
    partner: Node | None = None


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
    ) -> None:
        self.thresholds = thresholds
        self.dimension = dimension
        self.track_vectors = track_vectors
        self._nodes: dict[int, Node] = {}
        self._table = Table(dimension)
        self._cluster_sizes: dict[int, int] = {}  # vectors in each cluster
        self._wholes = Wholes(dimension) if cluster_evidence else None
        self._n_vectors = 0
        self._next_subcluster = 0
        self._next_cluster = 0
        self._vector_nodes: list[int] = []  # subcluster of each vector, when it came
        self._survivor: dict[int, int] = {}  # a merged subcluster → the one that holds it
        self._log = EventLog.keeping(track_vectors)

    @property
    def n_vectors(self) -> int:
        """Vectors added so far."""
        return self._n_vectors

    @property
    def n_subclusters(self) -> int:
        """Nodes of the graph."""
        return len(self._nodes)

    @property
    def n_clusters(self) -> int:
        """Connected components of the graph."""
        return len(self._cluster_sizes)

    @property
    def n_cluster_ids(self) -> int:
        """Cluster IDs given so far."""
        return self._next_cluster

    def add(self, vectors: npt.NDArray[np.int32]) -> Decisions:
        """Take vectors in order of arrival."""
        first = self._n_vectors
        return Decisions.of(first, [self._add_one(vector) for vector in vectors.astype(np.int64)])

    def add_floats(self, rows: npt.NDArray[np.float32]) -> None:
        """Nothing: this engine takes fixed-point vectors only."""

    def add_one(self, x: object) -> None:
        """Nothing: this engine takes fixed-point vectors only."""

    def ask(self, vectors: npt.NDArray[np.int32]) -> Decisions:
        """What equations 20 and 21 say of each vector; nothing changes."""
        answers = [self._ask_one(vector) for vector in vectors.astype(np.int64)]
        return Decisions.of(self._n_vectors, answers)

    # Section 3.3: assessing cluster membership

    def _add_one(self, q: npt.NDArray[np.int64]) -> tuple[int, int, int, float, float]:
        square = dot(q, q)
        verdict = self._assess(q, square)
        if verdict.partner is None:
            node = self._create(q, square)
        elif verdict.kind == JOINED:
            self._join(verdict.partner, q, square)
            node = self._update(verdict.partner)
        else:
            node = self._link(verdict.partner, q, square)
        if self.track_vectors:
            self._vector_nodes.append(node.number)
        self._n_vectors += 1
        return node.cluster, node.number, verdict.kind, verdict.similarity, verdict.threshold

    def _nearest(self, q: npt.NDArray[np.int64], square: int) -> Nearest | None:
        """J = argmax x·μ_j (eq 19); None where no similarity reaches the lowest threshold."""
        best: Nearest | None = None
        lowest = self.thresholds.lowest
        for node, score in self._exact(self._table.near(q, at_least=lowest), q, square):
            if score < lowest:
                continue
            # Tie: the older subcluster (choices.md, "ties go to the older").
            if best is None or (score, -node.number) > (best.similarity, -best.node.number):
                best = Nearest(node, score)
        return best

    def _assess(self, q: npt.NDArray[np.int64], square: int) -> Verdict:
        """Which of the three outcomes, and what it was judged by."""
        nearest = self._nearest(q, square)
        t_s = self.thresholds.subcluster_similarity
        if nearest is not None and nearest.similarity >= t_s:  # equation 20
            return Verdict(JOINED, nearest.similarity, t_s, nearest.node)
        if self._wholes is not None:
            return self._assess_wholes(self._wholes, q, square, nearest)
        if nearest is None:
            return Verdict(NEW)
        threshold = self.thresholds.edge(nearest.node.count, 1)  # s~(k_J), equation 25
        if nearest.similarity >= threshold:  # equation 21
            return Verdict(LINKED, nearest.similarity, threshold, nearest.node)
        return Verdict(NEW, nearest.similarity, threshold)

    def _assess_wholes(
        self, wholes: Wholes, q: npt.NDArray[np.int64], square: int, nearest: Nearest | None
    ) -> Verdict:
        """Equation 21 with each whole cluster in J's place (choices.md, "cluster evidence")."""
        best: tuple[float, int, float, float] | None = None
        for cluster, score in wholes.reaching(q, square, at_least=self.thresholds.edge(1, 1)):
            threshold = self.thresholds.edge(self._cluster_sizes[cluster], 1)
            found = (score - threshold, -cluster, score, threshold)  # tie: the lower ID
            best = found if best is None else max(best, found)
        if best is None:
            return Verdict(NEW)
        margin, cluster, score, threshold = best[0], -best[1], best[2], best[3]
        if margin < 0:
            return Verdict(NEW, score, threshold)
        if nearest is not None and nearest.node.cluster == cluster:
            return Verdict(LINKED, score, threshold, nearest.node)
        oldest = min(node.number for node in self._nodes.values() if node.cluster == cluster)
        return Verdict(LINKED, score, threshold, self._nodes[oldest])

    def _ask_one(self, q: npt.NDArray[np.int64]) -> tuple[int, int, int, float, float]:
        verdict = self._assess(q, dot(q, q))
        cluster = verdict.partner.cluster if verdict.partner else -1
        number = verdict.partner.number if verdict.partner and verdict.kind == JOINED else -1
        return cluster, number, verdict.kind, verdict.similarity, verdict.threshold

    def _join(self, node: Node, q: npt.NDArray[np.int64], square: int) -> None:
        """Add x to subcluster J; ‖S+q‖² = ‖S‖² + 2 q·S + ‖q‖² exactly."""
        node.square += 2 * dot(q, self._table.sum(node.number)) + square
        node.count += 1
        node.last_seen = self._n_vectors
        self._cluster_sizes[node.cluster] += 1
        self._table.set(node.number, self._table.sum(node.number) + q, node.square)
        if self._wholes:
            self._wholes.add(node.cluster, q, square)
        self._record(events.JOINED, node.number, node.cluster)

    def _link(self, nearest: Node, q: npt.NDArray[np.int64], square: int) -> Node:
        """Start a subcluster containing just x, with an edge to J.

        Where whole clusters gave the evidence the edge is firm: that of J alone may not pass.
        """
        node = self._new_node(nearest.cluster, q, square)
        add_edge(node, nearest, firm=self._wholes is not None)
        self._record(events.LINKED, node.number, nearest.number, node.cluster)
        return node

    def _create(self, q: npt.NDArray[np.int64], square: int) -> Node:
        """Start a subcluster containing just x, in a cluster of its own."""
        node = self._new_node(self._new_cluster(), q, square)
        self._record(events.CREATED, node.number, node.cluster)
        return node

    # Section 3.4: updating clusters

    def _update(self, node: Node) -> Node:
        """After a subcluster's centroid has changed: merge, then check the edges (choices.md)."""
        node = self._merge_neighbours(node)
        for margin, partner in sorted(self._edge_margins(node)):  # worst first; tie: the older
            if margin < 0 and partner not in node.firm:  # equation 22 no longer holds
                self._sever(node, self._nodes[partner])
        return node

    def _merge_neighbours(self, node: Node) -> Node:
        """Merge with the most similar neighbour at or above T_s, again and again."""
        while node.neighbours:
            scores = self._similarities(node, node.neighbours)
            best, score = max(scores, key=lambda pair: (pair[1], -pair[0].number))
            if score < self.thresholds.subcluster_similarity:
                break
            node = self._merge(node, best)
        return node

    def _merge(self, a: Node, b: Node) -> Node:
        """Replace two joined nodes by one with the vectors and the edges of both."""
        node, absorbed = (a, b) if a.number < b.number else (b, a)  # the older number survives
        united = self._table.sum(a.number) + self._table.sum(b.number)
        node.square = dot(united, united)
        node.count += absorbed.count
        node.first_seen = min(a.first_seen, b.first_seen)
        node.last_seen = max(a.last_seen, b.last_seen)
        for other in list(absorbed.neighbours):
            firm = remove_edge(absorbed, self._nodes[other])
            if other != node.number:
                add_edge(node, self._nodes[other], firm=firm)
        self._table.set(node.number, united, node.square)
        self._table.remove(absorbed.number)
        del self._nodes[absorbed.number]
        if self.track_vectors:
            self._survivor[absorbed.number] = node.number
        self._record(events.MERGED, node.number, absorbed.number, node.cluster)
        return node

    def _edge_margins(self, node: Node) -> list[tuple[float, int]]:
        """Similarity − s~(k_i, k_j) of each edge of a node, with the other end's number."""
        return [
            (score - self.thresholds.edge(node.count, other.count), other.number)
            for other, score in self._similarities(node, node.neighbours)
        ]

    def _sever(self, node: Node, partner: Node) -> None:
        """Remove an edge; then re-join the part cut off, or let the cluster be split."""
        remove_edge(node, partner)
        self._record(events.SEVERED, node.number, partner.number, node.cluster)
        part = part_of(self._nodes, partner)
        candidates = (
            (score - self.thresholds.edge(node.count, other.count), -other.number)
            for other, score in self._similarities(node, part)
        )
        margin, number = max(candidates)  # tie: the older
        if margin >= 0:
            add_edge(node, self._nodes[-number])
            self._record(events.REJOINED, node.number, -number, node.cluster)
        else:
            self._split(node, partner, part)

    def _split(self, node: Node, partner: Node, part: set[int]) -> None:
        """Give the smaller part a fresh ID; the larger keeps the old (tie: the oldest node's)."""
        cluster, rest = node.cluster, part_of(self._nodes, node)
        vectors = sum(self._nodes[number].count for number in part)
        others = self._cluster_sizes[cluster] - vectors
        leaves = (vectors, -min(part)) < (others, -min(rest))
        leaving, inside, outside = (part, partner, node) if leaves else (rest, node, partner)
        fresh = self._new_cluster()
        for number in leaving:
            self._nodes[number].cluster = fresh
        self._cluster_sizes[fresh] = vectors if leaves else others
        self._cluster_sizes[cluster] = others if leaves else vectors
        if self._wholes:
            self._wholes.split(cluster, fresh, self._table.sums(sorted(leaving)))
        self._record(events.SPLIT, inside.number, outside.number, cluster, fresh)

    # The graph

    def _new_node(self, cluster: int, q: npt.NDArray[np.int64], square: int) -> Node:
        number = self._next_subcluster
        self._next_subcluster += 1
        node = Node(number, cluster, 1, square, self._n_vectors, self._n_vectors)
        self._nodes[number] = node
        self._table.set(number, q, square)
        if self._wholes:
            self._wholes.add(cluster, q, square)
        self._cluster_sizes[cluster] = self._cluster_sizes.get(cluster, 0) + 1
        return node

    def _new_cluster(self) -> int:
        cluster = self._next_cluster
        self._next_cluster += 1
        return cluster

    def _record(self, code: int, *numbers: int) -> None:
        self._log.append((code, self._n_vectors, *numbers))

    # Exact similarities

    def _similarities(self, node: Node, numbers: Iterable[int]) -> list[tuple[Node, float]]:
        """Similarity of a node's centroid to those of others."""
        return self._exact(list(numbers), self._table.sum(node.number), node.square)

    def _exact(
        self, numbers: list[int], vector: npt.NDArray[np.int64], square: int
    ) -> list[tuple[Node, float]]:
        if not numbers:
            return []
        nodes = [self._nodes[number] for number in numbers]
        products = dots(self._table.sums(numbers), vector)
        return [
            (node, similarity(product, square, node.square))
            for node, product in zip(nodes, products, strict=True)
        ]

    # Answers and exchange

    def ranked(self, vector: npt.NDArray[np.int32], limit: int) -> list[Candidate]:
        """The most similar subclusters, best first (tie: the older)."""
        q = vector.astype(np.int64)
        found = self._exact(self._table.top(q, limit), q, dot(q, q))
        found.sort(key=lambda pair: (-pair[1], pair[0].number))
        return [
            Candidate(
                subcluster=node.number,
                cluster=node.cluster,
                count=node.count,
                similarity=score,
                join_threshold=self.thresholds.subcluster_similarity,
                link_threshold=self.thresholds.edge(node.count, 1),
            )
            for node, score in found[:limit]
        ]

    def labels(self) -> npt.NDArray[np.int64]:
        """Current cluster of each vector, in order of arrival."""
        clusters = [self._nodes[number].cluster for number in self._live_nodes()]
        return np.array(clusters, dtype=np.int64)

    def _live_nodes(self) -> list[int]:
        """Subcluster that now holds each vector; shortens the chains of merges as it goes."""
        for place, number in enumerate(self._vector_nodes):
            while number in self._survivor:
                number = self._survivor[number]
            self._vector_nodes[place] = number
        return self._vector_nodes

    def event_rows(self, since: int) -> tuple[int, npt.NDArray[np.int64]]:
        """Events kept from sequence `since` on."""
        return self._log.since(since)

    def state(self) -> State:
        """All there is to know, as plain arrays."""
        nodes = [self._nodes[number] for number in sorted(self._nodes)]
        edges = [(a.number, b) for a in nodes for b in sorted(a.neighbours) if a.number < b]
        numbers = [node.number for node in nodes]
        return State(
            thresholds=self.thresholds,
            dimension=self.dimension,
            track_vectors=self.track_vectors,
            cluster_evidence=self._wholes is not None,
            n_vectors=self._n_vectors,
            n_events=self._log.n_events,
            next_subcluster=self._next_subcluster,
            next_cluster=self._next_cluster,
            numbers=_column(numbers),
            clusters=_column(node.cluster for node in nodes),
            counts=_column(node.count for node in nodes),
            first_seen=_column(node.first_seen for node in nodes),
            last_seen=_column(node.last_seen for node in nodes),
            sums=self._table.sums(numbers),
            edges=np.array(edges, dtype=np.int64).reshape(-1, 2),
            firm=_column(b in self._nodes[a].firm for a, b in edges),
            vectors=_column(self._live_nodes()),
            events=self._log.rows(),
        )

    @classmethod
    def from_state(cls, state: State) -> ReferenceEngine:
        """An engine that goes on from a state."""
        engine = cls(
            state.thresholds,
            state.dimension,
            track_vectors=state.track_vectors,
            cluster_evidence=state.cluster_evidence,
        )
        engine._n_vectors = state.n_vectors
        engine._next_subcluster = state.next_subcluster
        engine._next_cluster = state.next_cluster
        engine._vector_nodes = state.vectors.tolist()
        engine._log = EventLog.keeping(state.track_vectors, state.n_events, state.events)
        columns = (state.numbers, state.clusters, state.counts, state.first_seen, state.last_seen)
        for place, values in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
            number, cluster, count, first_seen, last_seen = values
            total = state.sums[place]
            node = Node(number, cluster, count, dot(total, total), first_seen, last_seen)
            engine._nodes[number] = node
            engine._table.set(number, total, node.square)
            size = engine._cluster_sizes.get(cluster, 0)
            engine._cluster_sizes[cluster] = size + count
            if engine._wholes:
                engine._wholes.add(cluster, total, node.square)
        for (a, b), firm in zip(state.edges.tolist(), state.firm.tolist(), strict=True):
            add_edge(engine._nodes[a], engine._nodes[b], firm=bool(firm))
        return engine


def _column(values: Iterable[int]) -> npt.NDArray[np.int64]:
    return np.array(list(values), dtype=np.int64)
