"""Suggestions: clusters that may be one, and edges that may be wrong; the user decides.

Sections 3.3 and 3.4 never join two clusters, so fragments stay until they are tied. A cluster may
be held together by one weak edge, or be a blend of two that good edges hold together. All are
ranked by margin, similarity − s~.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from linkstream.engine import linkage
from linkstream.engine.cluster_index import ClusterIndex, two
from linkstream.engine.forest import SETTLED, TESTED
from linkstream.engine.linkage import Progress
from linkstream.engine.state import State


@dataclass(frozen=True, slots=True)
class MergeSuggestion:
    """Two clusters that may be one: their similarity as wholes, and s~.

    `subclusters` are the two most similar ones, to look at. `probability` is that both are one
    identity; None if it is unknown.
    """

    clusters: tuple[int, int]
    sizes: tuple[int, int]
    similarity: float
    threshold: float
    margin: float
    subclusters: tuple[int, int]
    probability: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        (a, b), (k, k2) = self.clusters, self.sizes
        return (
            f"cluster {a} ({k} vectors) and cluster {b} ({k2}) may be one: similarity "
            f"{self.similarity:.4f}, s~ {self.threshold:.4f} ({self.margin:+.4f}); look at "
            f"subclusters {self.subclusters[0]} and {self.subclusters[1]}"
        )


@dataclass(frozen=True, slots=True)
class SplitSuggestion:
    """An edge that holds the two parts of a cluster together.

    Attributes:
        subclusters: the edge's ends, the older first.
        sizes: number of vectors on the side of each end.
        evidence: what the figures are of: "edge", the two subclusters; or "parts", the two parts
            as wholes, if these are less similar, or the edge is firm. Parts below s~ whose edge
            passes are a blend of two clusters.
        firm: whether a settlement, or evidence of whole clusters, tied the edge; equation 22 does
            not test it.
    """

    cluster: int
    subclusters: tuple[int, int]
    sizes: tuple[int, int]
    similarity: float
    threshold: float
    margin: float
    firm: bool
    evidence: Literal["edge", "parts"] = "edge"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        figures = f"{self.similarity:.4f}, s~ {self.threshold:.4f} ({self.margin:+.4f})"
        edge = f"the edge of subclusters {self.subclusters[0]} and {self.subclusters[1]}"
        if self.evidence == "edge":
            why = f"{edge} has similarity {figures}"
        else:
            why = f"as wholes they have similarity {figures}; {edge} holds them together"
        return (
            f"cluster {self.cluster} may be two, of {self.sizes[0]} and {self.sizes[1]} "
            f"vectors: {why}"
        )


Nearest = Callable[[int, int], tuple[int, int]]  # the most similar subclusters of two clusters


def merges(
    index: ClusterIndex, limit: int, nearest: Nearest, progress: Progress | None = None
) -> list[MergeSuggestion]:
    """Return the pairs of clusters with the greatest margins, best first (tie: the lower IDs).

    Pairs that corrections keep apart, and ignored clusters, are left out.
    """
    pairs = index.best_margins(limit, progress)
    margins = pairs.margin
    order = np.lexsort((pairs.clusters[:, 1], pairs.clusters[:, 0], -margins))
    return [
        MergeSuggestion(
            clusters=two(pairs.clusters[i]),
            sizes=two(pairs.sizes[i]),
            similarity=float(pairs.similarity[i]),
            threshold=float(pairs.threshold[i]),
            margin=float(margins[i]),
            subclusters=nearest(*two(pairs.clusters[i])),
        )
        for i in order[:limit].tolist()
    ]


def splits(index: ClusterIndex, limit: int) -> list[SplitSuggestion]:
    """Return the edges with the least margins, weakest first (tie: the older); no pinned ones.

    The margin of an edge is its own or that of the two parts, whichever is less; of a settled edge
    that of the parts.
    """
    edges = index.weakest_edges(limit).in_order()
    own = edges.end_similarity - edges.end_threshold
    blended = (edges.margin < own) | (edges.rules != TESTED)
    scores = np.where(blended, edges.similarity, edges.end_similarity)
    required = np.where(blended, edges.threshold, edges.end_threshold)
    order = np.argsort(scores - required, kind="stable")
    return [
        SplitSuggestion(
            cluster=int(edges.clusters[i]),
            subclusters=two(edges.subclusters[i]),
            sizes=two(edges.sizes[i]),
            similarity=float(scores[i]),
            threshold=float(required[i]),
            margin=float(scores[i] - required[i]),
            firm=bool(edges.rules[i] == SETTLED),
            evidence="parts" if blended[i] else "edge",
        )
        for i in order[:limit].tolist()
    ]


def nearest(one: State, other: State) -> tuple[int, int]:
    """Return the two most similar subclusters of two clusters (tie: the older), by number."""
    ours, theirs = (linkage.centroids(each.sums) for each in (one, other))
    best = int(np.argmax(ours @ theirs.T))
    a, b = best // len(theirs), best % len(theirs)
    return int(one.numbers[a]), int(other.numbers[b])
