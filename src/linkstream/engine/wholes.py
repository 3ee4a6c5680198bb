"""Whole clusters: the sum of all vectors of each, where these are to give the evidence."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from linkstream.engine.fixed_point import dot, dots, similarity
from linkstream.engine.table import Table

Integers = npt.NDArray[np.int64]


class Wholes:
    """The exact sum of each cluster and its squared length, by cluster ID."""

    def __init__(self, dimension: int) -> None:
        self._table = Table(dimension)
        self._squares: dict[int, int] = {}

    def __bool__(self) -> bool:
        return True

    def add(self, cluster: int, total: Integers, square: int) -> None:
        """Add a vector, or the sum of several, of which the squared length is given."""
        if cluster in self._squares:
            ours = self._table.sum(cluster)
            square += self._squares[cluster] + 2 * dot(total, ours)
            total = total + ours
        self._set(cluster, total, square)

    def split(self, cluster: int, fresh: int, leaving: Integers) -> None:
        """Subclusters of these sums leave a cluster for a fresh one."""
        part = leaving.sum(axis=0)
        rest = self._table.sum(cluster) - part
        self._set(cluster, rest, dot(rest, rest))
        self._set(fresh, part, dot(part, part))

    def remove(self, cluster: int) -> None:
        """A cluster is gone."""
        self._table.remove(cluster)
        del self._squares[cluster]

    def reaching(self, q: Integers, square: int, *, at_least: float) -> Iterator[tuple[int, float]]:
        """Clusters whose similarity is at least so much, with that similarity."""
        near = self._table.reaching(q, at_least=at_least)
        found = [cluster for cluster in near if self._squares[cluster]]
        products = dots(self._table.sums(found), q) if found else []
        for cluster, product in zip(found, products, strict=True):
            score = similarity(product, square, self._squares[cluster])
            if score >= at_least:
                yield cluster, score

    def _set(self, cluster: int, total: Integers, square: int) -> None:
        self._squares[cluster] = square
        self._table.set(cluster, total, square)
