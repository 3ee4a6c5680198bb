"""Replace the edges and clusters of a graph, whose subclusters stay. C++ twin: regroup.hpp."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from linkstream.engine.cluster_sums import ClusterSums
from linkstream.engine.forest import TESTED, add_edge, remove_edge
from linkstream.engine.graph import Graph
from linkstream.engine.log import Journal
from linkstream.engine.state import Integers


@dataclass(frozen=True, slots=True)
class Regrouped:
    """The edges and clusters that a graph is to have.

    Attributes:
        clusters: the cluster of each subcluster that takes part, in order of their numbers.
        edges: pairs of subcluster numbers, the older first, in order.
        edge_rules: the rule of each edge.
        events: the rows of events that led there.
        free_cluster: the next cluster ID to be given.
        numbers: the subclusters that take part, rising: all of some clusters; none: all there are.
    """

    clusters: Integers
    edges: Integers
    edge_rules: Integers
    events: Integers
    free_cluster: int
    numbers: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))


class Regroup:
    """Changes the edges and clusters of the reference engine."""

    def __init__(self, graph: Graph, journal: Journal, cluster_sums: ClusterSums) -> None:
        self._graph, self._journal, self._cluster_sums = graph, journal, cluster_sums

    def __call__(self, given: Regrouped) -> None:
        """Make the graph what is given."""
        self._replace_edges(given)
        self._move_nodes(given)
        self._cluster_sums.read()
        journal = self._journal
        if given.free_cluster > journal.free_cluster:
            journal.next_cluster = journal.free_cluster = given.free_cluster
        journal.newest = max(journal.n_vectors - 1, 0)
        for row in given.events.tolist():
            journal.log.append(tuple(row))

    def _replace_edges(self, given: Regrouped) -> None:
        """Remove and add edges where the two graphs differ."""
        nodes = self._graph.nodes
        before = {
            (a, b): nodes[a].rules.get(b, TESTED)
            for a in self._taking_part(given)
            for b in nodes[a].neighbours
            if a < b
        }
        edges = map(tuple, given.edges.tolist())
        after = dict(zip(edges, given.edge_rules.tolist(), strict=True))
        for a, b in [edge for edge in before if after.get(edge) != before[edge]]:
            self._graph.save(nodes[a], nodes[b])
            remove_edge(nodes[a], nodes[b])
        for (a, b), rule in after.items():
            if before.get((a, b)) != rule:
                self._graph.save(nodes[a], nodes[b])
                add_edge(nodes[a], nodes[b], rule=rule)

    def _taking_part(self, given: Regrouped) -> list[int]:
        return given.numbers.tolist() or sorted(self._graph.nodes)

    def _move_nodes(self, given: Regrouped) -> None:
        """Move the nodes whose cluster changes, and remove the clusters that are then empty."""
        graph, left = self._graph, set[int]()
        for number, cluster in zip(self._taking_part(given), given.clusters.tolist(), strict=True):
            node = graph.nodes[number]
            if node.cluster == cluster:
                continue
            if cluster not in graph.clusters:
                graph.open_cluster(cluster)
            left.add(node.cluster)
            graph.move_to(cluster, node)
        for cluster in left:
            if not graph.clusters[cluster].size:
                del graph.clusters[cluster]
