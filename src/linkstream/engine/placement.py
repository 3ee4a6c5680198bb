"""How the graph changes when a vector joins, links, begins a cluster or is withdrawn.

Paper: the three outcomes of section 3.3. C++ twin: placement.hpp. The sum of a node is exactly the
sum of the shares of its vectors.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkstream.engine import events
from linkstream.engine.cluster_sums import ClusterSums
from linkstream.engine.fixed_point import dot
from linkstream.engine.forest import CLAIM, DUE, FULL, PINNED, TESTED, Node, add_edge
from linkstream.engine.graph import Graph
from linkstream.engine.log import Journal
from linkstream.engine.state import Integers
from linkstream.engine.update import Update


@dataclass(frozen=True, slots=True)
class Contribution:
    """What a vector adds to a sum, the weight it lacks in 256ths, and its number."""

    share: Integers
    missing_weight: int
    member: int


class Placement:
    """Put vectors into the graph and take them out."""

    def __init__(
        self, graph: Graph, journal: Journal, cluster_sums: ClusterSums, update: Update
    ) -> None:
        self._graph, self._journal = graph, journal
        self._cluster_sums, self._update = cluster_sums, update

    def join(self, node: Node, part: Contribution) -> Node:
        """Add a vector to a subcluster; return the node that holds it. A locked one only counts."""
        self._arrive(events.JOINED, part.member, node.number, -1, node.cluster)
        missing_weight = FULL if node.locked else part.missing_weight
        self._graph.add_vectors(node, 1, missing_weight, part.member, part.member)
        if node.locked:
            return node
        self.change_sum(node, part.share)
        return self._update(node)

    def link(self, partner: Node, part: Contribution, rule: int = TESTED) -> Node:
        """Start a subcluster of one vector, with an edge to another; return it."""
        self._graph.save(partner)
        node = self._new_node(partner.cluster, part)
        add_edge(node, partner, rule=rule)
        self._arrive(events.LINKED, part.member, node.number, partner.number, node.cluster)
        return node

    def create(self, part: Contribution) -> Node:
        """Start a subcluster of one vector in a cluster of its own; return it."""
        node = self._new_node(self._graph.open_cluster(self._journal.new_cluster()), part)
        self._arrive(events.CREATED, part.member, node.number, -1, node.cluster)
        return node

    def withdraw(self, node: Node, part: Contribution) -> None:
        """Take a vector out of the subcluster that holds it, exactly."""
        graph = self._graph
        graph.save(node)
        stats = graph.clusters[node.cluster]
        node.count, stats.size = node.count - 1, stats.size - 1
        node.missing_weight -= part.missing_weight
        stats.missing_weight -= part.missing_weight
        self._journal.record(events.REMOVED, part.member, node.number, node.cluster)
        if not node.count:
            self._vanish(node)
        elif part.share.any():
            self.change_sum(node, -part.share)
            self._update(node)

    def flag(self, node: Node, flags: int) -> None:
        """Set the flags of a subcluster: LOCKED, CLAIM, both or none."""
        self._graph.save(node)
        stats = self._graph.clusters[node.cluster]
        stats.claims += bool(flags & CLAIM) - bool(node.flags & CLAIM)
        node.flags = node.flags & DUE | flags
        self._journal.record(events.FLAGGED, node.number, flags)

    def change_sum(self, node: Node, added: Integers) -> None:
        """Add to the sums of a node and of its cluster."""
        square = dot(added, added)
        self._graph.add_sum(node, added, square)
        self._cluster_sums.add(node.cluster, added, square)

    def _arrive(self, code: int, member: int, number: int, partner: int, cluster: int) -> None:
        """Record where a new vector arrived, or where an old one was moved."""
        if member < self._journal.n_vectors:
            self._journal.record(events.MOVED, member, number, partner, cluster)
        elif code == events.LINKED:
            self._journal.record(code, number, partner, cluster)
        else:
            self._journal.record(code, number, cluster)

    def _new_node(self, cluster: int, part: Contribution) -> Node:
        number, square = self._journal.new_subcluster(), dot(part.share, part.share)
        node = Node(number, cluster, 1, square, part.member, part.member, part.missing_weight)
        self._graph.add_node(node, part.share)
        self._cluster_sums.add(cluster, part.share, square)
        return node

    def _vanish(self, node: Node) -> None:
        """Remove an empty subcluster; its edges move to its heir.

        Heir: a neighbour by an edge that is not pinned, then of the most vectors, then the oldest.
        """
        graph = self._graph
        heir = max(
            (graph.nodes[number] for number in node.neighbours),
            key=lambda other: (node.rules.get(other.number) != PINNED, other.count, -other.number),
            default=None,
        )
        graph.move_edges(node, heir)
        graph.clusters[node.cluster].count(node, -1)
        if heir is not None:
            self._cluster_sums.add(node.cluster, -graph.rows.sum(node.number), node.square)
        else:
            self._cluster_sums.close(node.cluster)
            del graph.clusters[node.cluster]
        graph.release(node)
        to = heir.number if heir else -1
        self._journal.record(events.VANISHED, node.number, to, node.cluster)
        if heir is not None:
            self._update(heir)
