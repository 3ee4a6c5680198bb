"""The reference engine: sections 3.2–3.5 of the paper in plain Python, the living definition.

Read it with the paper open. Every decision is made on exact integers (fixed_point.py); the only
floating-point search is `_near`, which proposes candidates with a proven error bound and leaves
the decision to the exact similarity. Where the paper is silent, docs/choices.md says what was
chosen and why. The compiled engine follows this file paragraph by paragraph.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from linkstream.engine import events
from linkstream.engine.contract import JOINED, LINKED, NEW, Candidate, Decisions
from linkstream.engine.fixed_point import dot, dots, similarity
from linkstream.engine.log import EventLog
from linkstream.engine.state import State
from linkstream.engine.table import Table
from linkstream.paper.thresholds import Thresholds


@dataclass(slots=True)
class Node:
    """A subcluster (section 3.2): its count k, S·S, its edges; its sum S stands in the table."""

    number: int
    cluster: int
    count: int
    square: int
    first_seen: int
    last_seen: int
    neighbours: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Nearest:
    """J, the most similar subcluster, and x·μ_J (equation 19)."""

    node: Node
    similarity: float


class ReferenceEngine:
    """Links on one core in plain Python; see `contract.Engine`."""

    name: ClassVar[str] = "reference"

    def __init__(self, thresholds: Thresholds, dimension: int, *, track_vectors: bool) -> None:
        self.thresholds = thresholds
        self.dimension = dimension
        self.track_vectors = track_vectors
        self._nodes: dict[int, Node] = {}
        self._table = Table(dimension)
        self._cluster_sizes: dict[int, int] = {}  # vectors in each cluster
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
        return _decisions(first, [self._add_one(vector) for vector in vectors.astype(np.int64)])

    def add_floats(self, rows: npt.NDArray[np.float32]) -> None:
        """Nothing: this engine takes fixed-point vectors only."""

    def add_one(self, x: object) -> None:
        """Nothing: this engine takes fixed-point vectors only."""

    def ask(self, vectors: npt.NDArray[np.int32]) -> Decisions:
        """What equations 20 and 21 say of each vector; nothing changes."""
        answers = [self._ask_one(vector) for vector in vectors.astype(np.int64)]
        return _decisions(self._n_vectors, answers)

    # Section 3.3: assessing cluster membership

    def _add_one(self, q: npt.NDArray[np.int64]) -> tuple[int, int, int, float, float]:
        square = dot(q, q)
        nearest = self._nearest(q, square)
        kind, threshold = self._assess(nearest)
        if nearest is not None and kind == JOINED:
            self._join(nearest.node, q, square)
            node = self._update(nearest.node)
        elif nearest is not None and kind == LINKED:
            node = self._link(nearest.node, q, square)
        else:
            node = self._create(q, square)
        if self.track_vectors:
            self._vector_nodes.append(node.number)
        self._n_vectors += 1
        score = nearest.similarity if nearest else math.nan
        return node.cluster, node.number, kind, score, threshold

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

    def _assess(self, nearest: Nearest | None) -> tuple[int, float]:
        """Which of the three outcomes, and the threshold it was judged by."""
        if nearest is None:
            return NEW, math.nan
        if nearest.similarity >= self.thresholds.subcluster_similarity:  # equation 20
            return JOINED, self.thresholds.subcluster_similarity
        threshold = self.thresholds.edge(nearest.node.count, 1)  # s~(k_J), equation 25
        return (LINKED if nearest.similarity >= threshold else NEW), threshold  # equation 21

    def _ask_one(self, q: npt.NDArray[np.int64]) -> tuple[int, int, int, float, float]:
        nearest = self._nearest(q, dot(q, q))
        kind, threshold = self._assess(nearest)
        if nearest is None:
            return -1, -1, NEW, math.nan, math.nan
        cluster = nearest.node.cluster if kind != NEW else -1
        number = nearest.node.number if kind == JOINED else -1
        return cluster, number, kind, nearest.similarity, threshold

    def _join(self, node: Node, q: npt.NDArray[np.int64], square: int) -> None:
        """Add x to subcluster J; ‖S+q‖² = ‖S‖² + 2 q·S + ‖q‖² exactly."""
        node.square += 2 * dot(q, self._table.sum(node.number)) + square
        node.count += 1
        node.last_seen = self._n_vectors
        self._cluster_sizes[node.cluster] += 1
        self._table.set(node.number, self._table.sum(node.number) + q, node.square)
        self._record(events.JOINED, node.number, node.cluster)

    def _link(self, nearest: Node, q: npt.NDArray[np.int64], square: int) -> Node:
        """Start a subcluster containing just x, with an edge to J."""
        node = self._new_node(nearest.cluster, q, square)
        self._add_edge(node, nearest)
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
            if margin < 0:  # equation 22 does not continue to hold
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
            self._remove_edge(absorbed, self._nodes[other])
            if other != node.number:
                self._add_edge(node, self._nodes[other])
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
        self._remove_edge(node, partner)
        self._record(events.SEVERED, node.number, partner.number, node.cluster)
        part = self._part(partner)
        candidates = (
            (score - self.thresholds.edge(node.count, other.count), -other.number)
            for other, score in self._similarities(node, part)
        )
        margin, number = max(candidates)  # tie: the older
        if margin >= 0:
            self._add_edge(node, self._nodes[-number])
            self._record(events.REJOINED, node.number, -number, node.cluster)
        else:
            self._split(node, partner, part)

    def _split(self, node: Node, partner: Node, part: set[int]) -> None:
        """Give the smaller part a fresh ID; the larger keeps the old (tie: the oldest node's)."""
        cluster, rest = node.cluster, self._part(node)
        vectors = sum(self._nodes[number].count for number in part)
        others = self._cluster_sizes[cluster] - vectors
        leaves = (vectors, -min(part)) < (others, -min(rest))
        leaving, inside, outside = (part, partner, node) if leaves else (rest, node, partner)
        fresh = self._new_cluster()
        for number in leaving:
            self._nodes[number].cluster = fresh
        self._cluster_sizes[fresh] = vectors if leaves else others
        self._cluster_sizes[cluster] = others if leaves else vectors
        self._record(events.SPLIT, inside.number, outside.number, cluster, fresh)

    # The graph

    def _new_node(self, cluster: int, q: npt.NDArray[np.int64], square: int) -> Node:
        number = self._next_subcluster
        self._next_subcluster += 1
        node = Node(number, cluster, 1, square, self._n_vectors, self._n_vectors)
        self._nodes[number] = node
        self._table.set(number, q, square)
        self._cluster_sizes[cluster] = self._cluster_sizes.get(cluster, 0) + 1
        return node

    def _new_cluster(self) -> int:
        cluster = self._next_cluster
        self._next_cluster += 1
        return cluster

    @staticmethod
    def _add_edge(a: Node, b: Node) -> None:
        a.neighbours.add(b.number)
        b.neighbours.add(a.number)

    @staticmethod
    def _remove_edge(a: Node, b: Node) -> None:
        a.neighbours.remove(b.number)
        b.neighbours.remove(a.number)

    def _part(self, start: Node) -> set[int]:
        """Numbers of the nodes in one piece with `start`."""
        seen = {start.number}
        todo = [start]
        while todo:
            for number in todo.pop().neighbours - seen:
                seen.add(number)
                todo.append(self._nodes[number])
        return seen

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
            vectors=_column(self._live_nodes()),
            events=self._log.rows(),
        )

    @classmethod
    def from_state(cls, state: State) -> ReferenceEngine:
        """An engine that goes on from a state."""
        engine = cls(state.thresholds, state.dimension, track_vectors=state.track_vectors)
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
        for a, b in state.edges.tolist():
            engine._add_edge(engine._nodes[a], engine._nodes[b])
        return engine


def _column(values: Iterable[int]) -> npt.NDArray[np.int64]:
    return np.array(list(values), dtype=np.int64)


def _decisions(first: int, rows: list[tuple[int, int, int, float, float]]) -> Decisions:
    cluster, subcluster, kind, score, threshold = zip(*rows, strict=True) if rows else ((),) * 5
    return Decisions(
        first_sequence=first,
        cluster=np.array(cluster, dtype=np.int64),
        subcluster=np.array(subcluster, dtype=np.int64),
        kind=np.array(kind, dtype=np.int8),
        similarity=np.array(score, dtype=np.float64),
        threshold=np.array(threshold, dtype=np.float64),
    )
