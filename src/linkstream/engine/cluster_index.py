"""What reviews and suggestions ask about all clusters: by the definition, from a copy of the state.

C++ twin: cluster_index.hpp, which keeps its answers up: it reads and compares only clusters that
changed since the last question.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from linkstream.engine.comparison import (
    SPREAD,
    ClusterRestrictions,
    Comparison,
    Parts,
    Totals,
    chance,
    directions,
    edge_figures,
)
from linkstream.engine.forest import PINNED
from linkstream.engine.linkage import Floats, Integers, Progress
from linkstream.engine.state import State


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of clusters: IDs and sizes of both, similarity as wholes, and s~."""

    clusters: Integers
    sizes: Integers
    similarity: Floats
    threshold: Floats

    @property
    def margin(self) -> Floats:
        """Similarity − s~."""
        return self.similarity - self.threshold


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges, and the two parts that each holds together.

    Attributes:
        clusters: the cluster of each.
        subclusters: the ends, the older first.
        sizes: number of vectors on the side of each end.
        rules: the rule of each (forest.TESTED, SETTLED, PINNED).
        similarity, threshold: of the parts as wholes, and s~.
        end_similarity, end_threshold: of the ends.
    """

    clusters: Integers
    subclusters: Integers
    sizes: Integers
    rules: Integers
    similarity: Floats
    threshold: Floats
    end_similarity: Floats
    end_threshold: Floats

    @property
    def margin(self) -> Floats:
        """Similarity − s~ of the parts."""
        return self.similarity - self.threshold

    def rows(self, chosen: Integers) -> Edges:
        """Return some of the edges."""
        return Edges(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))

    def in_order(self) -> Edges:
        """Return the edges in order of their ends."""
        return self.rows(np.lexsort((self.subclusters[:, 1], self.subclusters[:, 0])))


def two(pair: Integers) -> tuple[int, int]:
    """Return a row of two numbers as plain numbers."""
    return int(pair[0]), int(pair[1])


class ClusterIndex(Protocol):
    """All clusters as wholes, as they were when they were last read to the end.

    A question takes `lock`, calls `read` until it returns True, then `restrict`; it asks with the
    lock held. Answers may have more than was asked for: all that may be among the best.
    """

    lock: threading.Lock

    def read(self, *, parts: bool, budget: int) -> bool:
        """Read clusters that changed since the last call; return whether all are read.

        Args:
            parts: read their edges, too.
            budget: about how many numbers of sums to read before it returns.
        """

    def restrict(self, given: ClusterRestrictions) -> None:
        """Set which clusters are not compared."""

    def best_margins(self, limit: int, progress: Progress | None) -> Pairs:
        """Return the pairs with the greatest margins; `progress` may raise to end the search."""

    def best_gains(
        self, even: float, limit: int, progress: Progress | None, spread: float = SPREAD
    ) -> Pairs:
        """Return the pairs with the greatest gains: smaller size × chance of margin − even."""

    def figures(self, pairs: Integers) -> Pairs:
        """Return the figures of pairs of clusters that are there, by ID."""

    def best_cuts(self, even: float, limit: int) -> Edges:
        """Return the edge of the greatest gain, smaller size × chance(even − margin), of clusters.

        Pinned edges and clusters that are left out are not among them.
        """

    def weakest_edges(self, limit: int) -> Edges:
        """Return the edges with the least margins, of themselves or of their parts.

        Of edges that equation 22 does not test the margin of the parts counts. Pinned edges and
        clusters that are left out are not among them.
        """

    def pinned_edges(self) -> Edges:
        """Return the pinned edges."""

    def hearts(self, clusters: Integers) -> Integers:
        """Return the subcluster most similar to each cluster as a whole (tie: the older)."""


class StateIndex:
    """The definition of `ClusterIndex`: every question compares all clusters of a state."""

    def __init__(self, source: Callable[[], State]) -> None:
        self.lock = threading.Lock()
        self._source = source
        self._restrictions = ClusterRestrictions()
        self._state: State | None = None
        self._comparison: Comparison | None = None
        self._edges: Edges | None = None

    def read(self, *, parts: bool = True, budget: int = 0) -> bool:
        """Copy the state."""
        self._state, self._comparison, self._edges = self._source(), None, None
        return True

    def restrict(self, given: ClusterRestrictions) -> None:
        """Set which clusters are not compared."""
        self._restrictions, self._comparison, self._edges = given, None, None

    def best_margins(self, limit: int, progress: Progress | None = None) -> Pairs:
        """Return the pairs with the greatest margins."""
        return self._pairs(self._wholes().best(lambda margins, _, __: margins, limit, progress))

    def best_gains(
        self, even: float, limit: int, progress: Progress | None = None, spread: float = SPREAD
    ) -> Pairs:
        """Return the pairs with the greatest gains."""

        def gains(margins: Floats, ours: Floats, theirs: Floats) -> Floats:
            return np.minimum(ours, theirs) * chance(margins - even, spread)

        return self._pairs(self._wholes().best(gains, limit, progress))

    def figures(self, pairs: Integers) -> Pairs:
        """Return the figures of pairs of clusters."""
        return self._pairs(np.searchsorted(self._wholes().totals.ids, pairs))

    def best_cuts(self, even: float, limit: int) -> Edges:
        """Return all edges that are not pinned."""
        return self._free_edges()

    def weakest_edges(self, limit: int) -> Edges:
        """Return all edges that are not pinned."""
        return self._free_edges()

    def pinned_edges(self) -> Edges:
        """Return the pinned edges."""
        edges = self._all_edges()
        return edges.rows(np.flatnonzero(edges.rules == PINNED))

    def hearts(self, clusters: Integers) -> Integers:
        """Return the subcluster most similar to each cluster as a whole."""
        return np.array([self._heart(cluster) for cluster in clusters.tolist()], dtype=np.int64)

    def _heart(self, cluster: int) -> int:
        assert self._state is not None, "read"
        wholes = self._wholes()
        place = int(np.searchsorted(wholes.totals.ids, cluster))
        rows = np.flatnonzero(wholes.totals.place == place)
        scores = directions(self._state.sums[rows]) @ wholes.units[place]
        return int(self._state.numbers[rows[np.argmax(scores)]])

    def _wholes(self) -> Comparison:
        assert self._state is not None, "read"
        if self._comparison is None:
            self._comparison = Comparison.of(self._state, self._restrictions)
        return self._comparison

    def _pairs(self, rows: Integers) -> Pairs:
        wholes = self._wholes()
        totals = wholes.totals
        return Pairs(totals.ids[rows], totals.counts[rows], *wholes.figures(rows))

    def _free_edges(self) -> Edges:
        edges = self._all_edges()
        left_out = np.isin(edges.clusters, self._restrictions.left_out)
        return edges.rows(np.flatnonzero((edges.rules != PINNED) & ~left_out))

    def _all_edges(self) -> Edges:
        if self._edges is None:
            assert self._state is not None, "read"
            self._edges = _edges_of(self._state)
        return self._edges


def _edges_of(state: State) -> Edges:
    totals = Totals.of(state)
    parts = Parts.of(state, totals)
    clusters = state.clusters[np.searchsorted(state.numbers, state.edges[:, 0])]
    return Edges(
        clusters,
        state.edges,
        parts.sizes,
        state.edge_rules,
        parts.similarity,
        parts.threshold,
        *edge_figures(state),
    )
