"""The index of clusters of the compiled core (cpp/include/linkstream/cluster_index.hpp).

It only translates; the definition is `StateIndex` of cluster_index.py.
"""

from __future__ import annotations

import threading

import numpy as np

from linkstream import _core
from linkstream.engine.cluster_index import Edges, Pairs
from linkstream.engine.comparison import SPREAD, ClusterRestrictions
from linkstream.engine.linkage import Floats, Integers, Progress

Columns = tuple[Integers, Floats]

MOST = 2**40  # pairs or edges that can be asked for
LISTED = 0  # how many pairs to list, about; 0: as many as usual. Tests list few


class NativeIndex:
    """All clusters as wholes; see `cluster_index.ClusterIndex`."""

    def __init__(self, core: _core.Engine) -> None:
        self.lock = threading.Lock()
        self._core = core
        self._numbers: dict[str, int] = {}  # of names, which keep them

    def read(self, *, parts: bool, budget: int) -> bool:
        """Read clusters that changed since the last call; return whether all are read."""
        return self._core.read_clusters(parts, budget, LISTED)

    def restrict(self, given: ClusterRestrictions) -> None:
        """Set which clusters are not compared."""
        numbers = self._numbers
        labels = [(c, numbers.setdefault(n, len(numbers))) for c, n in given.names.items()]
        rows = np.array(labels, dtype=np.int64).reshape(-1, 2)
        self._core.restrict_clusters(
            np.ascontiguousarray(given.barred), rows, np.ascontiguousarray(given.left_out)
        )

    def best_margins(self, limit: int, progress: Progress | None = None) -> Pairs:
        """Return the pairs with the greatest margins, and equals of the last, in any order."""
        return _pairs(self._core.best_margins(min(limit, MOST), progress))

    def best_gains(
        self, even: float, limit: int, progress: Progress | None = None, spread: float = SPREAD
    ) -> Pairs:
        """Return the pairs with the greatest gains, and about equals of the last, in any order."""
        return _pairs(self._core.best_gains(even, spread, min(limit, MOST), progress))

    def figures(self, pairs: Integers) -> Pairs:
        """Return the figures of pairs of clusters that are there, by ID."""
        return _pairs(self._core.pair_figures(np.ascontiguousarray(pairs)))

    def best_cuts(self, even: float, limit: int) -> Edges:
        """Return the edges of the greatest gains, for each cluster the best."""
        return _edges(self._core.best_cuts(even, SPREAD, min(limit, MOST)))

    def weakest_edges(self, limit: int) -> Edges:
        """Return the edges with the least margins, of themselves or of their parts."""
        return _edges(self._core.weakest_edges(min(limit, MOST)))

    def pinned_edges(self) -> Edges:
        """Return the pinned edges."""
        return _edges(self._core.pinned_edges())

    def hearts(self, clusters: Integers) -> Integers:
        """Return the subcluster most similar to each cluster as a whole (tie: the older)."""
        return self._core.hearts(np.ascontiguousarray(clusters))


def _pairs(columns: Columns) -> Pairs:
    whole, figures = columns
    return Pairs(whole[:, :2], whole[:, 2:], figures[:, 0], figures[:, 1])


def _edges(columns: Columns) -> Edges:
    whole, figures = columns
    return Edges(whole[:, 0], whole[:, 1:3], whole[:, 3:5], whole[:, 5], *figures.T)
