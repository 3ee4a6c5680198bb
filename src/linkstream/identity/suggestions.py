"""Suggestions: clusters that may be one, and edges that may not hold; people decide.

Sections 3.3 and 3.4 never join two clusters, so fragments stay until somebody ties them; and a
cluster may hang together by one weak edge. Both are ranked by margin, similarity − s~.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from linkstream.engine import linkage
from linkstream.engine.linkage import CENTROID_SCALE, Floats, Integers
from linkstream.engine.state import State
from linkstream.identity.regrouping import neighbours_of
from linkstream.identity.totals import Totals


@dataclass(frozen=True, slots=True)
class MergeSuggestion:
    """Two clusters that may be one: their similarity as wholes, and what s~ asks of them.

    `subclusters` are the two most similar ones, as evidence to look at.
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
    """An edge that holds a cluster together: without it the two parts would be apart."""

    cluster: int
    subclusters: tuple[int, int]
    sizes: tuple[int, int]
    similarity: float
    threshold: float
    margin: float
    firm: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        tied = "was tied by a settlement" if self.firm else "is tied by similarity alone"
        return (
            f"cluster {self.cluster} may be two, of {self.sizes[0]} and {self.sizes[1]} vectors: "
            f"the edge of subclusters {self.subclusters[0]} and {self.subclusters[1]} has "
            f"similarity {self.similarity:.4f}, s~ {self.threshold:.4f} ({self.margin:+.4f}), "
            f"and {tied}"
        )


def merges(state: State, limit: int) -> list[MergeSuggestion]:
    """The pairs of clusters with the greatest margins, best first (tie: the lower IDs).

    Costs n²·d steps and 8·n² bytes for n clusters.
    """
    totals = Totals.of(state)
    table, squares = linkage.products(totals.sums)
    roots = np.sqrt(squares)
    counts = totals.counts.astype(np.float64)
    first, second = np.triu_indices(len(counts), k=1)
    similarity = table[first, second] / (roots[first] * roots[second])
    threshold = state.thresholds.edges(counts[first], counts[second])
    margin = similarity - threshold
    order = np.lexsort((second, first, -margin))[:limit]
    units = linkage.centroids(state.sums)
    return [
        MergeSuggestion(
            clusters=(int(totals.ids[first[i]]), int(totals.ids[second[i]])),
            sizes=(int(totals.counts[first[i]]), int(totals.counts[second[i]])),
            similarity=float(similarity[i]),
            threshold=float(threshold[i]),
            margin=float(margin[i]),
            subclusters=_nearest(state, units, totals.place, int(first[i]), int(second[i])),
        )
        for i in order.tolist()
    ]


def splits(state: State, limit: int) -> list[SplitSuggestion]:
    """The edges with the least margins, weakest first (tie: the older)."""
    similarity, threshold = edge_figures(state)
    margin = similarity - threshold
    order = np.argsort(margin, kind="stable")[:limit]
    total = Totals.of(state)
    size = dict(zip(total.ids.tolist(), total.counts.tolist(), strict=True))
    cluster = dict(zip(state.numbers.tolist(), state.clusters.tolist(), strict=True))
    neighbours = neighbours_of(state)
    counts = dict(zip(state.numbers.tolist(), state.counts.tolist(), strict=True))
    found = []
    for i in order.tolist():
        a, b = state.edges[i].tolist()
        ours = _vectors_beyond(neighbours, counts, a, b)
        found.append(
            SplitSuggestion(
                cluster=cluster[a],
                subclusters=(a, b),
                sizes=(ours, size[cluster[a]] - ours),
                similarity=float(similarity[i]),
                threshold=float(threshold[i]),
                margin=float(margin[i]),
                firm=bool(state.firm[i]),
            )
        )
    return found


def edge_figures(state: State) -> tuple[Floats, Floats]:
    """Similarity of each edge, and what s~ asks of it."""
    ends = np.searchsorted(state.numbers, state.edges)
    units = linkage.centroids(state.sums)
    products = (units[ends[:, 0]] * units[ends[:, 1]]).sum(axis=1)
    counts = state.counts.astype(np.float64)
    threshold = state.thresholds.edges(counts[ends[:, 0]], counts[ends[:, 1]])
    return products / CENTROID_SCALE**2, threshold


def _nearest(state: State, units: Floats, place: Integers, one: int, other: int) -> tuple[int, int]:
    rows, columns = np.flatnonzero(place == one), np.flatnonzero(place == other)
    best = int(np.argmax(units[rows] @ units[columns].T))
    a, b = rows[best // len(columns)], columns[best % len(columns)]
    return int(state.numbers[a]), int(state.numbers[b])


def _vectors_beyond(
    neighbours: Mapping[int, set[int]], counts: Mapping[int, int], start: int, barred: int
) -> int:
    """Vectors of the part that holds `start` once its edge to `barred` is gone."""
    seen, todo = {start, barred}, [start]
    vectors = 0
    while todo:
        number = todo.pop()
        vectors += counts[number]
        fresh = neighbours[number] - seen
        seen |= fresh
        todo += fresh
    return vectors
