"""The sum of all vectors of each cluster, for cluster evidence. C++ twin: cluster_sums.hpp."""

from __future__ import annotations

from collections.abc import Iterator

from linkstream.engine.fixed_point import dot, dots, similarity
from linkstream.engine.graph import Graph
from linkstream.engine.rows import Rows
from linkstream.engine.state import Integers


class ClusterSums:
    """The exact sum of each cluster and its squared length by cluster ID; nothing unless `on`."""

    def __init__(self, graph: Graph, *, on: bool) -> None:
        self.on = on
        self._graph = graph
        self._rows = Rows(graph.dimension)
        self._squares: dict[int, int] = {}

    def turn_on(self, wanted: bool) -> None:
        """Compute all sums, and keep them from now on, if that is wanted."""
        if wanted and not self.on:
            self.on = True
            self.read()

    def add(self, cluster: int, total: Integers, square: int) -> None:
        """Add a vector, or the sum of several vectors, of which the squared length is given."""
        if not self.on:
            return
        if cluster in self._squares:
            ours = self._rows.sum(cluster)
            square += self._squares[cluster] + 2 * dot(total, ours)
            total = total + ours
        self._set(cluster, total, square)

    def split(self, cluster: int, fresh: int, leaving: list[int]) -> None:
        """Move subclusters from one cluster to a new one."""
        if not self.on:
            return
        part = self._graph.rows.sums(leaving).sum(axis=0)
        rest = self._rows.sum(cluster) - part
        self._set(cluster, rest, dot(rest, rest))
        self._set(fresh, part, dot(part, part))

    def join(self, kept: int, gone: int) -> None:
        """Add the sum of one cluster to another, and remove it."""
        if self.on:
            total = self._rows.sum(kept) + self._rows.sum(gone)
            self._set(kept, total, dot(total, total))
            self.close(gone)

    def sum(self, cluster: int) -> Integers:
        """Return the sum of a cluster."""
        return self._rows.sum(cluster)

    def close(self, cluster: int) -> None:
        """Remove a cluster."""
        if self.on:
            self._rows.remove(cluster)
            del self._squares[cluster]

    def read(self) -> None:
        """Compute all sums from the nodes of the graph."""
        if not self.on:
            return
        self._rows, self._squares = Rows(self._graph.dimension), {}
        for node in self._graph.nodes.values():
            self.add(node.cluster, self._graph.rows.sum(node.number), node.square)

    def reaching(self, q: Integers, square: int, *, at_least: float) -> Iterator[tuple[int, float]]:
        """Yield each cluster whose similarity is at least `at_least`, with that similarity."""
        near = self._rows.reaching(q, at_least=at_least)
        found = [cluster for cluster in near if self._squares[cluster]]
        products = dots(self._rows.sums(found), q) if found else []
        for cluster, product in zip(found, products, strict=True):
            score = similarity(product, square, self._squares[cluster])
            if score >= at_least:
                yield cluster, score

    def _set(self, cluster: int, total: Integers, square: int) -> None:
        self._squares[cluster] = square
        self._rows.set(cluster, total, square)
