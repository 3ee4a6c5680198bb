"""What follows when the centroid of a subcluster has changed: merges, cuts, re-joins and splits.

Paper: section 3.4. C++ twin: update.hpp. Merges come first, then the edges are checked
(docs/choices.md); ties go to the older.
"""

from __future__ import annotations

from linkstream.engine import events
from linkstream.engine.cluster_sums import ClusterSums
from linkstream.engine.forest import ClusterStats, Node, add_edge, part_of, remove_edge
from linkstream.engine.graph import Graph
from linkstream.engine.log import Journal
from linkstream.engine.members import Members


class Update:
    """Section 3.4 for one changed node at a time."""

    def __init__(
        self, graph: Graph, journal: Journal, members: Members, cluster_sums: ClusterSums
    ) -> None:
        self._graph, self._journal = graph, journal
        self._members, self._cluster_sums = members, cluster_sums
        self._thresholds = graph.thresholds

    def __call__(self, node: Node) -> Node:
        """Merge the node, then check its edges; return the node that holds its vectors."""
        node = self._merge_neighbours(node)
        for margin, partner in sorted(self._edge_margins(node)):  # worst first; tie: the older
            if margin < 0 and partner not in node.rules:  # equation 22 no longer holds
                self._sever(node, self._graph.nodes[partner])
        return node

    def cut(self, node: Node, partner: Node) -> None:
        """Remove an edge and split the cluster."""
        self._remove_edge(node, partner)
        self._split(node, partner, part_of(self._graph.nodes, partner))

    def _merge_neighbours(self, node: Node) -> Node:
        """Merge with the most similar neighbour at or above T_s until there is none."""
        while True:
            scores = [
                (score, -other.number)
                for other, score in self._graph.similarities(node, node.neighbours)
                if score >= self._thresholds.subcluster_similarity
                and not (node.locked or other.locked)
            ]
            if not scores:
                return node
            node = self._merge(node, self._graph.nodes[-max(scores)[1]])  # tie: the older

    def _merge(self, a: Node, b: Node) -> Node:
        """Replace two neighbours by one node; the older number survives."""
        node, absorbed = (a, b) if a.number < b.number else (b, a)
        self._graph.merge(node, absorbed)
        self._members.merged(absorbed.number, node.number)
        self._graph.bars.merged(absorbed.number, node.number)
        self._journal.record(events.MERGED, node.number, absorbed.number, node.cluster)
        return node

    def _edge_margins(self, node: Node) -> list[tuple[float, int]]:
        """Return similarity − s~(k_i, k_j) of each edge of a node, with the other end's number."""
        return [
            (score - self._thresholds.edge(node.mass, other.mass), other.number)
            for other, score in self._graph.similarities(node, node.neighbours)
        ]

    def _sever(self, node: Node, partner: Node) -> None:
        """Remove an edge; then re-join the part cut off, or split the cluster."""
        graph = self._graph
        self._remove_edge(node, partner)
        part = part_of(graph.nodes, partner)
        candidates = (
            (score - self._thresholds.edge(node.mass, other.mass), -other.number)
            for other, score in graph.similarities(node, part)
        )
        margin, number = max(candidates)  # tie: the older
        if margin >= 0:
            graph.save(graph.nodes[-number])
            add_edge(node, graph.nodes[-number])
            self._journal.record(events.REJOINED, node.number, -number, node.cluster)
        else:
            self._split(node, partner, part)

    def _remove_edge(self, node: Node, partner: Node) -> None:
        self._graph.save(node, partner)
        remove_edge(node, partner)
        self._journal.record(events.SEVERED, node.number, partner.number, node.cluster)

    def _split(self, node: Node, partner: Node, part: set[int]) -> None:
        """Give the smaller part a new ID; the larger keeps the old (tie: the oldest node's).

        A part with more nodes that claim the ID keeps it, whatever its size.
        """
        graph, cluster = self._graph, node.cluster
        rest = part_of(graph.nodes, node)
        leaves = self._claim(part) < self._claim(rest)
        leaving, inside, outside = (part, partner, node) if leaves else (rest, node, partner)
        fresh = graph.open_cluster(self._journal.new_cluster())
        moved = [graph.nodes[number] for number in sorted(leaving)]
        graph.save(*moved)
        for each in moved:
            graph.clusters[cluster].count(each, -1)
            graph.clusters[fresh].count(each)
            each.cluster = fresh
        self._cluster_sums.split(cluster, fresh, sorted(leaving))
        self._journal.record(events.SPLIT, inside.number, outside.number, cluster, fresh)

    def _claim(self, part: set[int]) -> tuple[int, int, int]:
        """Return the claims, the size and the age of a part: the greater keeps the ID."""
        stats = ClusterStats()
        for number in part:
            stats.count(self._graph.nodes[number])
        return stats.claims, stats.size, -min(part)
