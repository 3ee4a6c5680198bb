"""The graph of the reference engine: nodes with their sums, edges and clusters (section 3.2).

C++ twin: graph.hpp; `columns` and `read` are in state.hpp. While a change is open, `save` keeps the
nodes and clusters as they were before their first change, so that `rollback` can restore them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from linkstream.engine.bars import Bars
from linkstream.engine.fixed_point import dot, dots, similarity
from linkstream.engine.forest import CLAIM, DUE, TESTED, ClusterStats, Node, add_edge, move_edges
from linkstream.engine.rows import Rows
from linkstream.engine.state import PER_NODE, Integers, State
from linkstream.paper.thresholds import Thresholds


@dataclass(slots=True)
class Before:
    """Nodes and clusters before the open change; None stands for one that did not exist."""

    nodes: dict[int, tuple[Node, Integers] | None] = field(default_factory=dict)
    clusters: dict[int, ClusterStats | None] = field(default_factory=dict)


class Graph:
    """Nodes by number with their sums, and the statistics of clusters by ID."""

    def __init__(self, thresholds: Thresholds, dimension: int) -> None:
        self.thresholds = thresholds
        self.dimension = dimension
        self.nodes: dict[int, Node] = {}
        self.rows = Rows(dimension)
        self.clusters: dict[int, ClusterStats] = {}
        self.bars = Bars()
        self._before: Before | None = None

    # Nodes

    def add_node(self, node: Node, total: Integers) -> None:
        """Add a node with the sum of its vectors."""
        if self._before is not None:
            self._before.nodes[node.number] = None
            self._save_cluster(node.cluster)
        self.nodes[node.number] = node
        self.rows.set(node.number, total, node.square)
        self.clusters[node.cluster].count(node)

    def open_cluster(self, cluster: int) -> int:
        """Add a cluster without nodes; return its ID."""
        self._save_cluster(cluster)
        self.clusters[cluster] = ClusterStats()
        return cluster

    def move_to(self, cluster: int, node: Node) -> None:
        """Move a node to another cluster; its edges stay."""
        self.save(node)
        self._save_cluster(cluster)
        self.clusters[node.cluster].count(node, -1)
        self.clusters[cluster].count(node)
        node.cluster = cluster

    def add_vectors(self, node: Node, n: int, missing_weight: int, first: int, last: int) -> None:
        """Count `n` vectors numbered from `first` to `last` in a node; its sum stays."""
        self.save(node)
        node.count += n
        node.missing_weight += missing_weight
        node.first_seen = min(node.first_seen, first)
        node.last_seen = max(node.last_seen, last)
        self.clusters[node.cluster].size += n
        self.clusters[node.cluster].missing_weight += missing_weight

    def add_sum(self, node: Node, added: Integers, square: int) -> None:
        """Add to the sum of a node: ‖S+q‖² = ‖S‖² + 2 q·S + ‖q‖² exactly."""
        self.save(node)
        total = self.rows.sum(node.number)
        node.square += 2 * dot(added, total) + square
        self.rows.set(node.number, total + added, node.square)

    def merge(self, node: Node, absorbed: Node) -> None:
        """Give a node the vectors and the edges of a neighbour, and remove that neighbour."""
        self.save(node, absorbed, *map(self.nodes.__getitem__, absorbed.neighbours))
        united = self.rows.sum(node.number) + self.rows.sum(absorbed.number)
        node.square = dot(united, united)
        self.clusters[node.cluster].claims -= bool(node.flags & absorbed.flags & CLAIM)
        node.take_in(absorbed)
        self.rows.set(node.number, united, node.square)
        self.move_edges(absorbed, node)
        self.release(absorbed)

    def move_edges(self, gone: Node, heir: Node | None) -> None:
        """Move the edges of a node to one of its neighbours; remove them if there is no heir."""
        self.save(gone, *map(self.nodes.__getitem__, gone.neighbours))
        move_edges(self.nodes, gone, heir)

    def release(self, node: Node) -> None:
        """Remove a node that has no edges."""
        self.save(node)
        self.rows.remove(node.number)
        del self.nodes[node.number]

    # Exact similarities

    def similarities(self, node: Node, numbers: Iterable[int]) -> list[tuple[Node, float]]:
        """Return nodes with the similarity of their centroid to that of `node`."""
        return self.exact(list(numbers), self.rows.sum(node.number), node.square)

    def exact(self, numbers: list[int], vector: Integers, square: int) -> list[tuple[Node, float]]:
        """Return nodes with the similarity of their centroid to a vector or sum."""
        if not numbers:
            return []
        nodes = [self.nodes[number] for number in numbers]
        products = dots(self.rows.sums(numbers), vector)
        return [
            (node, similarity(product, square, node.square))
            for node, product in zip(nodes, products, strict=True)
        ]

    # Changes

    def begin(self) -> None:
        """Begin a change."""
        self._before = Before()

    def record(self) -> Before:
        """Return what `take_back` needs after the open change was committed."""
        assert self._before is not None, "a change was begun"
        return self._before

    def commit(self) -> None:
        """Keep the change."""
        self._before = None
        self.bars.commit()

    def take_back(self, before: Before) -> None:
        """Take the last change back; what corrections require is not taken back."""
        self._before = before
        self._restore()

    def forget_due(self) -> None:
        """Mark no node as one that healing must look at."""
        for node in self.nodes.values():
            node.flags &= ~DUE

    def rollback(self) -> None:
        """Restore all nodes and clusters that the change has saved."""
        self._restore()
        self.bars.rollback()

    def _restore(self) -> None:
        before = self._before
        assert before is not None, "a change was begun"
        for number, saved in before.nodes.items():
            if saved is not None:
                self.nodes[number] = saved[0]
                self.rows.set(number, saved[1], saved[0].square)
                continue
            self.nodes.pop(number, None)
            if number in self.rows:
                self.rows.remove(number)
        for cluster, stats in before.clusters.items():
            if stats is not None:
                self.clusters[cluster] = stats
            else:
                self.clusters.pop(cluster, None)
        self._before = None

    def save(self, *nodes: Node) -> None:
        """Save nodes and their clusters before they are changed for the first time."""
        if self._before is None:
            return
        for node in nodes:
            if node.number not in self._before.nodes:
                image = replace(node, neighbours=set(node.neighbours), rules=dict(node.rules))
                self._before.nodes[node.number] = image, self.rows.sum(node.number).copy()
            self._save_cluster(node.cluster)

    def _save_cluster(self, cluster: int) -> None:
        if self._before is not None and cluster not in self._before.clusters:
            stats = self.clusters.get(cluster)
            self._before.clusters[cluster] = None if stats is None else replace(stats)

    # Exchange

    def nodes_in(self, clusters: set[int]) -> dict[int, Node]:
        """Return the nodes of some clusters, by number."""
        return {n: node for n, node in self.nodes.items() if node.cluster in clusters}

    def columns(self, nodes: Mapping[int, Node] | None = None) -> dict[str, Any]:
        """Return nodes, all if none are given, and edges as the arrays of `State`, in its order."""
        nodes = self.nodes if nodes is None else nodes
        return {**columns_of(nodes), "sums": self.rows.sums(sorted(nodes))}

    def read(self, state: State) -> None:
        """Add the nodes and edges of a state to an empty graph."""
        for node, total in zip(nodes_of(state).values(), state.sums, strict=False):
            node.square = dot(total, total)
            self.clusters.setdefault(node.cluster, ClusterStats())
            self.add_node(node, total)


def nodes_of(state: State) -> dict[int, Node]:
    """Return the nodes of a state by number, with their edges; squares are 0."""
    nodes = {}
    rows = zip(*(getattr(state, name).tolist() for name in PER_NODE), strict=True)
    for number, cluster, count, *rest in rows:
        nodes[number] = Node(number, cluster, count, 0, *rest)
    for (a, b), rule in zip(state.edges.tolist(), state.edge_rules.tolist(), strict=True):
        add_edge(nodes[a], nodes[b], rule=rule)
    return nodes


def columns_of(nodes: Mapping[int, Node]) -> dict[str, Any]:
    """Return nodes and edges as the arrays of `State`, in its order, without sums."""
    ordered = [nodes[number] for number in sorted(nodes)]
    edges = [(a.number, b) for a in ordered for b in sorted(a.neighbours) if a.number < b]
    fields = ("number", "cluster", "count", "first_seen", "last_seen", "missing_weight", "flags")
    names = zip(PER_NODE, fields, strict=True)
    return {
        **{name: column(getattr(node, own) for node in ordered) for name, own in names},
        "edges": np.array(edges, dtype=np.int64).reshape(-1, 2),
        "edge_rules": column(nodes[a].rules.get(b, TESTED) for a, b in edges),
    }


def column(values: Iterable[int]) -> Integers:
    """Return integers as an array of int64."""
    return np.array(list(values), dtype=np.int64)
