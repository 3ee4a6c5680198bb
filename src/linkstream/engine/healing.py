"""Settling as the stream goes on: clusters that have grown are settled with what is near them.

C++ twin: healing.hpp. Sections 3.3 and 3.4 of the paper never join two clusters, so fragments would
stay. A cluster is *due* when its number of vectors passes a mark: 1, 2, 3, …, each mark about
`growth` times the one before. Every POINT vectors, each due cluster is settled: its subclusters and
the clusters near it, each as a whole, are grouped by margin linkage; edges between groups are cut,
and groups are tied. The work is bounded by LEAVES and AROUND, whatever the size of the graph
(docs/choices.md, "Healing looks again at clusters that have grown").
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from linkstream.engine import events
from linkstream.engine.cluster_sums import ClusterSums
from linkstream.engine.contract import Requirements
from linkstream.engine.fixed_point import dot
from linkstream.engine.forest import DUE, PINNED, SETTLED, Node, add_edge, find_root, part_of
from linkstream.engine.graph import Graph
from linkstream.engine.linkage import CENTROID_SCALE, Floats, centroids
from linkstream.engine.log import Journal
from linkstream.engine.state import Integers
from linkstream.engine.update import Update
from linkstream.paper.thresholds import Thresholds

POINT = 32  # vectors between two points
LEAVES = 256  # subclusters of a cluster that is settled; a larger one takes part as a whole
AROUND = 8  # clusters near it that take part


def passes_mark(before: int, now: int, growth: float) -> bool:
    """Return whether a mark lies above `before` and is at most `now`.

    >>> [n for n in range(1, 20) if passes_mark(n - 1, n, 1.3)]
    [1, 2, 3, 4, 5, 6, 7, 9, 11, 14, 18]
    """
    mark = 1
    while (following := max(mark + 1, int(mark * growth))) <= now:
        mark = following
    return before < mark <= now


@dataclass(slots=True)
class _Row:
    """Subclusters that are one from the start: tied ones, old ones, or a whole cluster."""

    nodes: list[int]  # of a whole cluster: none, until they are needed
    cluster: int
    total: Integers
    mass: float
    label: int


class Healer:
    """Mark clusters that have grown, and settle them at the next point."""

    def __init__(
        self, graph: Graph, journal: Journal, cluster_sums: ClusterSums, update: Update
    ) -> None:
        self._graph, self._journal = graph, journal
        self._cluster_sums, self._update = cluster_sums, update
        self.growth, self.steadiness, self.final_after = 0.0, 0.0, 0
        self._labels: dict[int, int] = {}  # of clusters, by ID

    @property
    def on(self) -> bool:
        """Return whether clusters are marked."""
        return self.growth > 0

    def arrived(self, node: Node, n: int = 1) -> None:
        """Mark a node that has taken `n` vectors if its cluster has passed a mark."""
        size = self._graph.clusters[node.cluster].size
        if self.on and passes_mark(size - n, size, self.growth):
            self._graph.save(node)
            node.flags |= DUE

    def require(self, requirements: Requirements) -> None:
        """Keep what corrections require; it follows subclusters through merges."""
        self._graph.bars.set_pairs(requirements.barred)
        self._labels = dict(requirements.labels)

    def settle(self) -> None:
        """Settle the clusters that are due with what is near them."""
        due = [node for _, node in sorted(self._graph.nodes.items()) if node.flags & DUE]
        if not due:
            return
        self._graph.save(*due)
        for node in due:
            node.flags &= ~DUE
        while due:
            grown = [node for node in due if node.cluster == due[0].cluster]
            due = [node for node in due if node.cluster != grown[0].cluster]
            self._settle_cluster(grown)

    def _settle_cluster(self, grown: list[Node]) -> None:
        """Settle the cluster of some subclusters that have grown."""
        rows = self._rows(grown)
        bars = self._bars(rows)
        unions = unite(rows, bars, self._graph.thresholds, self.steadiness)
        self._cut(rows, unions)
        self._tie(rows, unions)

    # The rows

    def _rows(self, grown: list[Node]) -> list[_Row]:
        """Return the subclusters of the cluster, oldest first, then whole clusters by ID."""
        leaves, whole = sorted(part_of(self._graph.nodes, grown[0])), self._around(grown)
        if len(leaves) > LEAVES:
            leaves, whole = [], whole | {grown[0].cluster}
        rows = [self._leaf(nodes) for nodes in self._tied(leaves)]
        return rows + [self._whole(cluster) for cluster in sorted(whole)]

    def _tied(self, leaves: list[int]) -> list[list[int]]:
        """Return groups of subclusters that are one by pinned edges or by their age."""
        nodes, root = self._graph.nodes, {number: number for number in leaves}
        pinned = (
            (number, other)
            for number in leaves
            for other, rule in nodes[number].rules.items()
            if rule == PINNED
        )
        for pair in (*pairwise(self._final(leaves)), *pinned):
            one, two = sorted(find_root(root, number) for number in pair)
            root[two] = one
        found: dict[int, list[int]] = {}
        for number in leaves:
            found.setdefault(find_root(root, number), []).append(number)
        return list(found.values())

    def _final(self, leaves: list[int]) -> list[int]:
        """Return the subclusters that stay together, since their first vectors are old."""
        if not self.final_after:
            return []
        since = self._journal.n_vectors - self.final_after
        return [number for number in leaves if self._graph.nodes[number].first_seen < since]

    def _leaf(self, nodes: list[int]) -> _Row:
        cluster = self._graph.nodes[nodes[0]].cluster
        mass = sum(self._graph.nodes[number].mass for number in nodes)
        total = self._graph.rows.sums(nodes).sum(axis=0)
        return _Row(nodes, cluster, total, mass, self._label(cluster))

    def _whole(self, cluster: int) -> _Row:
        total, mass = self._cluster_sums.sum(cluster), self._graph.clusters[cluster].mass
        return _Row([], cluster, total, mass, self._label(cluster))

    def _label(self, cluster: int) -> int:
        return self._labels.get(cluster, -1)

    def _around(self, grown: list[Node]) -> set[int]:
        """Return the clusters with the greatest margins over s~ to the cluster or what has grown.

        Only clusters that reach the least s~ count. Tie: the lower ID.
        """
        own, best = grown[0].cluster, dict[int, float]()
        clusters, sums = self._graph.clusters, self._cluster_sums
        queries = [(self._graph.rows.sum(node.number), node.mass) for node in grown]
        for total, mass in [*queries, (sums.sum(own), clusters[own].mass)]:
            square, least = dot(total, total), self._graph.thresholds.edge(1, 1)
            for cluster, score in sums.reaching(total, square, at_least=least) if square else ():
                margin = score - self._graph.thresholds.edge(clusters[cluster].mass, mass)
                best[cluster] = max(margin, best.get(cluster, margin))
        best.pop(own, None)
        return set(sorted(best, key=lambda cluster: (-best[cluster], cluster))[:AROUND])

    def _bars(self, rows: list[_Row]) -> set[tuple[int, int]]:
        """Return pairs of rows that may not be united."""
        nodes, bars = self._graph.nodes, self._graph.bars
        leaves = {number: i for i, row in enumerate(rows) for number in row.nodes}
        wholes = {row.cluster: i for i, row in enumerate(rows) if not row.nodes}

        def row_of(number: int) -> int | None:
            there = number in nodes
            return leaves.get(number, wholes.get(nodes[number].cluster)) if there else None

        barred = {number: row_of(number) for number in bars.numbers()}
        pairs = ((i, barred[other]) for a, i in barred.items() for other in bars.apart(a))
        return {(a, b) for a, b in pairs if a is not None and b is not None and a < b}

    # The changes

    def _cut(self, rows: list[_Row], unions: list[tuple[int, int]]) -> None:
        """Cut the edges between subclusters of different groups, by their numbers."""
        root = list(range(len(rows)))
        for kept, gone in unions:
            root[gone] = kept
        groups = {number: find_root(root, i) for i, row in enumerate(rows) for number in row.nodes}
        crossing = [
            (a, b)
            for a in sorted(groups)
            for b in sorted(self._graph.nodes[a].neighbours)
            if a < b and groups[a] != groups[b]
        ]
        for a, b in crossing:
            self._update.cut(self._graph.nodes[a], self._graph.nodes[b])

    def _tie(self, rows: list[_Row], unions: list[tuple[int, int]]) -> None:
        """Tie the largest subclusters of the groups that were united, in order."""
        heads: dict[int, Node] = {}
        for kept, gone in unions:
            for i in (kept, gone):
                if i not in heads:
                    heads[i] = self._head(rows[i])
            a, b = heads[kept], heads[gone]
            if a.cluster != b.cluster:
                older, newer = sorted((a, b), key=lambda node: node.number)
                self._join(older, newer)
            heads[kept] = max(a, b, key=_size)

    def _head(self, row: _Row) -> Node:
        nodes = self._graph.nodes
        if row.nodes:
            return max((nodes[number] for number in row.nodes), key=_size)
        return max((node for node in nodes.values() if node.cluster == row.cluster), key=_size)

    def _join(self, a: Node, b: Node) -> None:
        """Join two clusters by an edge; a labelled one keeps its ID, then the older."""
        graph = self._graph
        kept, gone = sorted(
            (a.cluster, b.cluster), key=lambda cluster: (self._label(cluster) < 0, cluster)
        )
        leaving = part_of(graph.nodes, a if a.cluster == gone else b)
        moved = [graph.nodes[number] for number in sorted(leaving)]
        graph.save(a, b, *moved)
        for node in moved:
            graph.clusters[kept].count(node)
            node.cluster = kept
        del graph.clusters[gone]
        self._cluster_sums.join(kept, gone)
        add_edge(a, b, rule=SETTLED)
        self._journal.record(events.UNITED, a.number, b.number, kept, gone)


def _size(node: Node) -> tuple[int, int]:
    return node.count, -node.number


def unite(
    rows: list[_Row], bars: set[tuple[int, int]], thresholds: Thresholds, steadiness: float
) -> list[tuple[int, int]]:
    """Unite the pair of greatest margin (tie: the lowest rows) while one is 0 or more.

    The margin of two groups of one cluster is raised by `steadiness`, that of others lowered. A
    group counts to the cluster of the heavier of the two that were united (tie: the lower row).
    """
    groups = _Groups(rows, bars, thresholds, steadiness)
    found = []
    while (pair := groups.best()) is not None:
        found.append(pair)
        groups.unite(*pair)
    return found


class _Groups:
    def __init__(
        self,
        rows: list[_Row],
        bars: set[tuple[int, int]],
        thresholds: Thresholds,
        steadiness: float,
    ) -> None:
        n = len(rows)
        self._thresholds, self._steadiness = thresholds, steadiness
        self._totals = np.array([row.total for row in rows])
        self._units = centroids(self._totals)
        self._masses = np.array([row.mass for row in rows])
        self._clusters = np.array([row.cluster for row in rows])
        self._labels = np.array([row.label for row in rows])
        self._apart = np.eye(n, dtype=bool)
        for a, b in bars:
            self._apart[a, b] = self._apart[b, a] = True
        self._margins = np.full((n, n), -np.inf)
        for i in range(n):
            self._look(i)

    def best(self) -> tuple[int, int] | None:
        """Return the pair to unite, the lower row first; None if there is none."""
        i = int(np.argmax(self._margins))  # the lowest of equals
        a, b = divmod(i, len(self._margins))
        return (a, b) if self._margins[a, b] >= 0 else None

    def unite(self, kept: int, gone: int) -> None:
        """Add one group to another."""
        if self._masses[gone] > self._masses[kept]:
            self._clusters[kept] = self._clusters[gone]
        self._totals[kept] += self._totals[gone]
        self._units[kept] = centroids(self._totals[kept : kept + 1])[0]
        self._masses[kept] += self._masses[gone]
        self._labels[kept] = max(self._labels[kept], self._labels[gone])
        self._apart[kept] |= self._apart[gone]
        self._apart[:, kept] = self._apart[kept]
        self._apart[gone] = self._apart[:, gone] = True
        self._margins[gone] = self._margins[:, gone] = -np.inf
        self._look(kept)

    def _look(self, row: int) -> None:
        products: Floats = self._units @ self._units[row]
        needed = self._thresholds.edges(np.full_like(self._masses, self._masses[row]), self._masses)
        margins = products / CENTROID_SCALE**2 - needed
        same = self._clusters == self._clusters[row]
        margins += np.where(same, self._steadiness, -self._steadiness)
        both = (self._labels >= 0) & (self._labels[row] >= 0)
        margins[self._apart[row] | (both & (self._labels != self._labels[row]))] = -np.inf
        self._margins[row] = self._margins[:, row] = margins
