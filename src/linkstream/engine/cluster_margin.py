"""The cluster margin of a vector, the evidence for the probability that a decision is right.

It is the similarity to a cluster as a whole, less s~(k, 1) for its k vectors, before the vector is
added. The cluster is that which the vector goes to; for a new vector see
docs/choices.md, "cluster margin". Paper: equation 24. C++ twin: cluster_margin.hpp.
"""

from __future__ import annotations

import math

from linkstream.engine.assess import Assess, Nearest, Verdict
from linkstream.engine.cluster_sums import ClusterSums
from linkstream.engine.fixed_point import dot, similarity
from linkstream.engine.graph import Graph
from linkstream.engine.state import Integers

LEAST = -2.0  # less than any similarity


class ClusterMargin:
    """Compute the margin of each decision; NaN unless `on`."""

    def __init__(self, graph: Graph, cluster_sums: ClusterSums, assess: Assess) -> None:
        self._graph, self._cluster_sums, self._assess = graph, cluster_sums, assess
        self._on = False

    def set(self, on: bool) -> None:
        """Compute margins from now on, or no longer."""
        self._on = on
        self._cluster_sums.turn_on(on)

    def __call__(
        self, verdict: Verdict, nearest: Nearest | None, q: Integers, square: int
    ) -> float:
        """Return the margin of a vector that was assessed and is not yet added."""
        if not self._on:
            return math.nan
        if verdict.partner is not None:
            return self._margin(verdict.partner.cluster, q, square)
        if self._assess.cluster_evidence:
            margins = (self._margin(cluster, q, square) for cluster in self._graph.clusters)
            return max((each for each in margins if each == each), default=math.nan)
        nearest = nearest or self._assess.nearest(q, square, at_least=LEAST)
        return math.nan if nearest is None else self._margin(nearest.node.cluster, q, square)

    def _margin(self, cluster: int, q: Integers, square: int) -> float:
        """Return the margin to one cluster; NaN if its vectors cancel out."""
        total = self._cluster_sums.sum(cluster)
        own = dot(total, total)
        if not own:
            return math.nan
        threshold = self._graph.thresholds.edge(self._graph.clusters[cluster].mass, 1)
        return similarity(dot(total, q), square, own) - threshold
