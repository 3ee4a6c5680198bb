"""The graph of the reference engine as it changes: section 3.4 of the paper, on integers.

Read with the paper open, beside reference.py, which has section 3.3. The compiled twins are
graph.hpp and update.hpp.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from linkstream.engine import events
from linkstream.engine.contract import Keep
from linkstream.engine.fixed_point import dot, dots, similarity
from linkstream.engine.forest import CLAIM, Node, Whole, add_edge, part_of, remove_edge
from linkstream.engine.log import EventLog
from linkstream.engine.rollback import Before
from linkstream.engine.table import Table
from linkstream.engine.wholes import Wholes
from linkstream.paper.thresholds import Thresholds


class Graph:
    """Subclusters, edges and clusters, with what follows when a centroid has changed."""

    def __init__(
        self,
        thresholds: Thresholds,
        dimension: int,
        *,
        track_vectors: bool,
        cluster_evidence: bool = False,
        keep: Keep | None = None,
    ) -> None:
        self.thresholds = thresholds
        self.dimension = dimension
        self.track_vectors = track_vectors
        self.cluster_evidence = cluster_evidence
        self._nodes: dict[int, Node] = {}
        self._table = Table(dimension)
        self._clusters: dict[int, Whole] = {}
        self._wholes = Wholes(dimension) if cluster_evidence else None
        self._keep = keep
        self._n_vectors = 0
        self._newest = 0  # the vector on its way in, or the newest: events bear it
        self._next_subcluster = self._free_subcluster = 0
        self._next_cluster = self._free_cluster = 0
        self._vector_nodes: list[int] = []  # subcluster of each vector, when it came; −1 removed
        self._survivor: dict[int, int] = {}  # a merged subcluster → the one that holds it
        self._log = EventLog.keeping(track_vectors)
        self._before: Before | None = None  # what the open change has touched, if there is one

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
        return len(self._clusters)

    @property
    def n_cluster_ids(self) -> int:
        """Cluster IDs given so far."""
        return self._free_cluster

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
        while True:
            scores = [
                (score, -other.number)
                for other, score in self._similarities(node, node.neighbours)
                if score >= self.thresholds.subcluster_similarity
                and not (node.locked or other.locked)
            ]
            if not scores:
                return node
            node = self._merge(node, self._nodes[-max(scores)[1]])  # tie: the older

    def _merge(self, a: Node, b: Node) -> Node:
        """Replace two joined nodes by one with the vectors and the edges of both."""
        node, absorbed = (a, b) if a.number < b.number else (b, a)  # the older number survives
        self._save(node, absorbed, *map(self._nodes.__getitem__, absorbed.neighbours))
        united = self._table.sum(a.number) + self._table.sum(b.number)
        node.square = dot(united, united)
        node.count += absorbed.count
        node.light += absorbed.light
        self._clusters[node.cluster].claims -= bool(node.flags & absorbed.flags & CLAIM)
        node.flags |= absorbed.flags
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
            if self._before is not None:
                self._before.survivors.append(absorbed.number)
            self._survivor[absorbed.number] = node.number
        self._record(events.MERGED, node.number, absorbed.number, node.cluster)
        return node

    def _edge_margins(self, node: Node) -> list[tuple[float, int]]:
        """Similarity − s~(k_i, k_j) of each edge of a node, with the other end's number."""
        return [
            (score - self.thresholds.edge(node.mass, other.mass), other.number)
            for other, score in self._similarities(node, node.neighbours)
        ]

    def _sever(self, node: Node, partner: Node) -> None:
        """Remove an edge; then re-join the part cut off, or let the cluster be split."""
        self._save(node, partner)
        remove_edge(node, partner)
        self._record(events.SEVERED, node.number, partner.number, node.cluster)
        part = part_of(self._nodes, partner)
        candidates = (
            (score - self.thresholds.edge(node.mass, other.mass), -other.number)
            for other, score in self._similarities(node, part)
        )
        margin, number = max(candidates)  # tie: the older
        if margin >= 0:
            self._save(self._nodes[-number])
            add_edge(node, self._nodes[-number])
            self._record(events.REJOINED, node.number, -number, node.cluster)
        else:
            self._split(node, partner, part)

    def _split(self, node: Node, partner: Node, part: set[int]) -> None:
        """Give the smaller part a fresh ID; the larger keeps the old (tie: the oldest node's).

        A part with more nodes that claim the ID keeps it, whatever its size.
        """
        cluster, rest = node.cluster, part_of(self._nodes, node)
        leaves = self._claim(part) < self._claim(rest)
        leaving, inside, outside = (part, partner, node) if leaves else (rest, node, partner)
        fresh = self._new_cluster()
        self._save(*(self._nodes[number] for number in leaving))
        for number in leaving:
            self._clusters[cluster].take(self._nodes[number], -1)
            self._clusters[fresh].take(self._nodes[number])
            self._nodes[number].cluster = fresh
        if self._wholes:
            self._wholes.split(cluster, fresh, self._table.sums(sorted(leaving)))
        self._record(events.SPLIT, inside.number, outside.number, cluster, fresh)

    def _claim(self, part: set[int]) -> tuple[int, int, int]:
        """What a part of a cluster has to say for keeping the ID."""
        whole = Whole()
        for number in part:
            whole.take(self._nodes[number])
        return whole.claims, whole.size, -min(part)

    # The graph

    def _new_node(
        self, cluster: int, total: npt.NDArray[np.int64], light: int, member: int
    ) -> Node:
        number = self._free_subcluster
        if self._before is not None:
            self._before.nodes[number] = None
            self._before.save_cluster(cluster, self._clusters[cluster])
        self._next_subcluster = self._free_subcluster = number + 1
        square = dot(total, total)
        node = Node(number, cluster, 1, square, member, member, light)
        self._nodes[number] = node
        self._table.set(number, total, square)
        if self._wholes:
            self._wholes.add(cluster, total, square)
        self._clusters[cluster].take(node)
        return node

    def _new_cluster(self) -> int:
        cluster = self._free_cluster
        if self._before is not None:
            self._before.save_cluster(cluster, None)
        self._next_cluster = self._free_cluster = cluster + 1
        self._clusters[cluster] = Whole()
        return cluster

    # Changes: kept wholly, or taken back

    @property
    def in_change(self) -> bool:
        """Whether a change of several calls is open."""
        return self._before is not None

    def begin(self) -> None:
        """Begin a change of several calls."""
        assert not self.in_change, "changes do not nest"
        n_kept = 0 if self._keep is None else len(self._keep)
        before = Before(self._counters(), len(self._vector_nodes), n_kept)
        self._log.begin()
        self._before = before

    def commit(self) -> None:
        """Keep all calls since `begin`."""
        self._log.commit()
        self._before = None

    def rollback(self) -> None:
        """Take back all calls since `begin`."""
        before = self._before
        assert before is not None, "a change was begun"
        for number, node in before.nodes.items():
            self._put_back(number, node, before)
        for cluster, whole in before.clusters.items():
            if whole is not None:
                self._clusters[cluster] = whole
            else:
                self._clusters.pop(cluster, None)
        if self._wholes is not None:
            self._wholes = self._summed()
        for member, number in before.members.items():
            self._vector_nodes[member] = number
        del self._vector_nodes[before.n_members :]
        for number in before.survivors:
            self._survivor.pop(number, None)
        if self._keep is not None:
            self._keep.cut(before.n_kept)
        self._set_counters(before.counters)
        self._log.rollback()
        self._before = None

    def _put_back(self, number: int, node: Node | None, before: Before) -> None:
        if node is not None:
            self._nodes[number] = node
            self._table.set(number, before.sums[number], node.square)
            return
        self._nodes.pop(number, None)
        if number in self._table:
            self._table.remove(number)

    def _save(self, *nodes: Node) -> None:
        """Save nodes, and their clusters, that are about to change."""
        if self._before is None:
            return
        for node in nodes:
            if node.number not in self._before.nodes:
                self._before.save_node(node, self._table.sum(node.number))
            self._before.save_cluster(node.cluster, self._clusters[node.cluster])

    def _save_member(self, member: int) -> None:
        """Save where a vector is that is about to be moved or removed."""
        if self._before is not None:
            self._before.members.setdefault(member, self._vector_nodes[member])

    def _summed(self) -> Wholes:
        """The sums of all clusters, from those of their nodes."""
        wholes = Wholes(self.dimension)
        for node in self._nodes.values():
            wholes.add(node.cluster, self._table.sum(node.number), node.square)
        return wholes

    def _counters(self) -> tuple[int, ...]:
        return (
            self._n_vectors,
            self._newest,
            self._next_subcluster,
            self._free_subcluster,
            self._next_cluster,
            self._free_cluster,
        )

    def _set_counters(self, counters: tuple[int, ...]) -> None:
        self._n_vectors, self._newest, *given = counters
        self._next_subcluster, self._free_subcluster, *given = given
        self._next_cluster, self._free_cluster = given

    def _record(self, code: int, *numbers: int) -> None:
        self._log.append((code, self._newest, *numbers))

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
