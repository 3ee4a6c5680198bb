"""The outcome of a vector, and the similarity and threshold that decided it.

Paper: equations 19, 20, 21 and 25. C++ twins: assess.hpp; arrivals.hpp for `nearest`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from linkstream.engine.cluster_sums import ClusterSums
from linkstream.engine.contract import JOINED, LINKED, NEW
from linkstream.engine.decisions import Row
from linkstream.engine.forest import SETTLED, TESTED, Node
from linkstream.engine.graph import Graph
from linkstream.engine.state import Integers


@dataclass(frozen=True, slots=True)
class Nearest:
    """J, the most similar subcluster, and x·μ_J (equation 19)."""

    node: Node
    similarity: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome, the similarity and threshold that decided it, and the node to join or link to.

    `cluster_margin` is set afterwards (cluster_margin.py).
    """

    kind: int = NEW
    similarity: float = math.nan
    threshold: float = math.nan
    partner: Node | None = None
    rule: int = TESTED  # of the edge of a link; SETTLED if cluster evidence decided
    cluster_margin: float = math.nan

    def row(self, cluster: int, subcluster: int) -> Row:
        """Return the decision on a vector that these hold."""
        figures = self.similarity, self.threshold, self.cluster_margin
        return cluster, subcluster, self.kind, *figures


class Assess:
    """The tests of section 3.3."""

    def __init__(
        self, graph: Graph, cluster_sums: ClusterSums, *, cluster_evidence: bool = False
    ) -> None:
        self._graph, self._cluster_sums = graph, cluster_sums
        self.cluster_evidence = cluster_evidence
        self._thresholds = graph.thresholds

    def nearest(self, q: Integers, square: int, *, at_least: float | None = None) -> Nearest | None:
        """Return J = argmax x·μ_j (eq 19); None if no similarity reaches `at_least`.

        If that is None, the lowest threshold is taken.
        """
        best: Nearest | None = None
        lowest = self._thresholds.lowest if at_least is None else at_least
        near = self._graph.rows.near(q, at_least=lowest)
        for node, score in self._graph.exact(near, q, square):
            if score < lowest:
                continue
            # Tie: the older subcluster (choices.md, "ties go to the older").
            if best is None or (score, -node.number) > (best.similarity, -best.node.number):
                best = Nearest(node, score)
        return best

    def __call__(
        self,
        nearest: Nearest | None,
        q: Integers,
        square: int,
        k: float = 1.0,
        *,
        joins: bool = True,
    ) -> Verdict:
        """Return the outcome of a vector, or of a sum of vectors of weight k.

        With `joins` false it does not join a subcluster.
        """
        t_s = self._thresholds.subcluster_similarity
        if nearest is not None and nearest.similarity >= t_s and joins:  # equation 20
            return Verdict(JOINED, nearest.similarity, t_s, nearest.node)
        if self.cluster_evidence:
            return self._assess_clusters(q, square, nearest, k)
        if nearest is None:
            return Verdict()
        threshold = self._thresholds.edge(nearest.node.mass, k)  # s~(k_J), equation 25
        if nearest.similarity >= threshold:  # equation 21
            return Verdict(LINKED, nearest.similarity, threshold, nearest.node)
        return Verdict(NEW, nearest.similarity, threshold)

    def _assess_clusters(
        self, q: Integers, square: int, nearest: Nearest | None, k: float
    ) -> Verdict:
        """Test equation 21 with each cluster in J's place (choices.md, "cluster evidence")."""
        graph, lowest = self._graph, self._thresholds.edge(1, 1)
        best: tuple[float, int, float, float] | None = None
        for cluster, score in self._cluster_sums.reaching(q, square, at_least=lowest):
            threshold = self._thresholds.edge(graph.clusters[cluster].mass, k)
            found = (score - threshold, -cluster, score, threshold)  # tie: the lower ID
            best = found if best is None else max(best, found)
        if best is None:
            return Verdict()
        margin, cluster, score, threshold = best[0], -best[1], best[2], best[3]
        if margin < 0:
            return Verdict(NEW, score, threshold)
        if nearest is not None and nearest.node.cluster == cluster:
            return Verdict(LINKED, score, threshold, nearest.node, SETTLED)
        oldest = min(node.number for node in graph.nodes.values() if node.cluster == cluster)
        return Verdict(LINKED, score, threshold, graph.nodes[oldest], SETTLED)
