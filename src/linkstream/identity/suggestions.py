"""Suggestions: clusters that may be one, and edges that may be wrong; the user decides.

Sections 3.3 and 3.4 never join two clusters, so fragments stay until they are tied. A cluster may
be held together by one weak edge, or be a blend of two that good edges hold together. All are
ranked by margin, similarity − s~.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from linkstream.engine import linkage
from linkstream.engine.forest import PINNED, SETTLED, TESTED
from linkstream.engine.linkage import Floats, Integers
from linkstream.engine.state import State
from linkstream.identity.comparison import Comparison, Parts, Totals, similarities
from linkstream.identity.laws import Laws


@dataclass(frozen=True, slots=True)
class MergeSuggestion:
    """Two clusters that may be one: their similarity as wholes, and s~.

    `subclusters` are the two most similar ones, to look at.
    """

    clusters: tuple[int, int]
    sizes: tuple[int, int]
    similarity: float
    threshold: float
    margin: float
    subclusters: tuple[int, int]

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


def merges(
    state: State, limit: int, *, laws: Laws | None = None, ignored: Collection[int] = ()
) -> list[MergeSuggestion]:
    """Return the pairs of clusters with the greatest margins, best first (tie: the lower IDs).

    Pairs that corrections keep apart, and ignored clusters, are left out. Costs n²·d steps for n
    clusters.
    """
    wholes = Comparison.of(state, laws or Laws(), ignored)
    totals = wholes.totals
    pairs = wholes.best(lambda margins, _, __: margins, limit)
    units = linkage.centroids(state.sums) if len(pairs) else np.empty((0, 0))
    similarity, threshold = wholes.figures(pairs)
    return [
        MergeSuggestion(
            clusters=(int(totals.ids[one]), int(totals.ids[other])),
            sizes=(int(totals.counts[one]), int(totals.counts[other])),
            similarity=score,
            threshold=required,
            margin=score - required,
            subclusters=nearest(state, units, totals.place, one, other),
        )
        for (one, other), score, required in zip(
            pairs.tolist(), similarity.tolist(), threshold.tolist(), strict=True
        )
    ]


def splits(state: State, limit: int, *, ignored: Collection[int] = ()) -> list[SplitSuggestion]:
    """Return the edges with the least margins, weakest first (tie: the older); no pinned ones.

    The margin of an edge is its own or that of the two parts, whichever is less; of a settled edge
    that of the parts.
    """
    similarity, threshold = edge_figures(state)
    totals = Totals.of(state)
    parts = Parts.of(state, totals)
    blended = (parts.margin < similarity - threshold) | (state.edge_rules != TESTED)
    scores = np.where(blended, parts.similarity, similarity)
    required = np.where(blended, parts.threshold, threshold)
    place = totals.place[np.searchsorted(state.numbers, state.edges[:, 0])]
    clusters = totals.ids[place]
    asked = (state.edge_rules != PINNED) & ~np.isin(clusters, list(ignored))
    order = np.argsort(np.where(asked, scores - required, np.inf), kind="stable")
    return [
        SplitSuggestion(
            cluster=int(clusters[i]),
            subclusters=(int(state.edges[i, 0]), int(state.edges[i, 1])),
            sizes=(int(parts.sizes[i, 0]), int(parts.sizes[i, 1])),
            similarity=float(scores[i]),
            threshold=float(required[i]),
            margin=float(scores[i] - required[i]),
            firm=bool(state.edge_rules[i] == SETTLED),
            evidence="parts" if blended[i] else "edge",
        )
        for i in order[: min(limit, int(asked.sum()))].tolist()
    ]


def edge_figures(state: State) -> tuple[Floats, Floats]:
    """Return similarity and s~ of each edge."""
    ends = np.searchsorted(state.numbers, state.edges)
    units = linkage.centroids(state.sums)
    masses = state.masses()
    threshold = state.thresholds.edges(masses[ends[:, 0]], masses[ends[:, 1]])
    return similarities(units[ends[:, 0]], units[ends[:, 1]]), threshold


def nearest(state: State, units: Floats, place: Integers, one: int, other: int) -> tuple[int, int]:
    """Return the two most similar subclusters of two clusters (tie: the older), by number."""
    rows, columns = np.flatnonzero(place == one), np.flatnonzero(place == other)
    best = int(np.argmax(units[rows] @ units[columns].T))
    a, b = rows[best // len(columns)], columns[best % len(columns)]
    return int(state.numbers[a]), int(state.numbers[b])
