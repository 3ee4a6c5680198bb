"""Groups: vectors seen together are different identities, so each gets a different cluster.

Of all one-to-one assignments of vectors to clusters that accept them (equations 20 and 21), the one
with the greatest total similarity is chosen; a vector without a cluster begins a new one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.engine.contract import JOINED, LINKED, NEW, Candidate, Engine
from linkstream.engine.fixed_point import dot, dots, similarity
from linkstream.engine.forest import SETTLED, TESTED
from linkstream.engine.state import Fixed

_SCALE = 2**40  # similarities as whole numbers: sums of them are exact in any order


@dataclass(frozen=True, slots=True)
class Place:
    """Where a vector would go in one cluster."""

    cluster: int
    outcome: int
    target: int
    similarity: float
    threshold: float
    rule: int = TESTED


NOWHERE = Place(-1, NEW, -1, float("nan"), float("nan"))


def assign(engine: Engine, vectors: Fixed, *, barred: Collection[int]) -> list[Place]:
    """Return the place of each vector of a group; clusters in `barred` hold others of the group."""
    options = [_places(engine, vector, barred) for vector in vectors]
    chosen = best_assignment(
        [{place.cluster: place.similarity for place in places} for places in options]
    )
    return [
        next((place for place in places if place.cluster == cluster), NOWHERE)
        for places, cluster in zip(options, chosen, strict=True)
    ]


def nearest(engine: Engine, vector: Fixed) -> dict[int, Candidate]:
    """Return the most similar subcluster of each cluster near a vector (tie: the older)."""
    limit, found = 32, engine.ranked(vector, 32)
    while len(found) == limit and found[-1].similarity >= engine.thresholds.lowest:
        limit *= 8
        found = engine.ranked(vector, limit)
    first: dict[int, Candidate] = {}
    for candidate in found:
        if candidate.similarity >= engine.thresholds.lowest:
            first.setdefault(candidate.cluster, candidate)
    return first


def nearest_in(engine: Engine, vector: Fixed, cluster: int) -> Place:
    """Return the place of a vector in a given cluster: at its most similar subcluster."""
    part, q = engine.parts(cluster), vector.astype(np.int64)
    squares = [dot(total, total) for total in part.sums]
    products, square = dots(part.sums, q), dot(q, q)
    pairs = zip(products, squares, strict=True)
    scores = [similarity(product, square, other) for product, other in pairs]
    best = max(range(len(scores)), key=lambda row: (scores[row], -row))
    threshold = engine.thresholds.subcluster_similarity
    outcome = JOINED if scores[best] >= threshold else LINKED
    return Place(cluster, outcome, int(part.numbers[best]), scores[best], threshold)


def _places(engine: Engine, vector: Fixed, barred: Collection[int]) -> list[Place]:
    t_s = engine.thresholds.subcluster_similarity
    near = nearest(engine, vector)
    places = []
    for cluster, c in near.items():
        if c.similarity >= t_s:
            places.append(Place(cluster, JOINED, c.subcluster, c.similarity, t_s))
        elif not engine.cluster_evidence and c.similarity >= c.link_threshold:
            places.append(Place(cluster, LINKED, c.subcluster, c.similarity, c.link_threshold))
    if engine.cluster_evidence:
        joined = {place.cluster for place in places}
        places += [p for p in _wholes(engine, vector, near) if p.cluster not in joined]
    return [place for place in places if place.cluster not in barred]


def _wholes(engine: Engine, vector: Fixed, near: dict[int, Candidate]) -> list[Place]:
    """Return places in clusters that pass equation 21 as wholes."""
    clusters, masses, scores = engine.wholes(vector)
    thresholds = engine.thresholds.edges(masses, np.ones_like(masses))
    places = []
    for row in np.flatnonzero(scores >= thresholds).tolist():
        cluster = int(clusters[row])
        if cluster in near:
            target = near[cluster].subcluster
        else:
            target = int(engine.parts(cluster).numbers[0])  # the oldest
        figures = float(scores[row]), float(thresholds[row])
        places.append(Place(cluster, LINKED, target, *figures, SETTLED))
    return places


def best_assignment(scores: Sequence[dict[int, float]]) -> list[int]:
    """Return one key for each row, no key twice, of the greatest total; −1 for no key.

    Exact and the same on every machine: scores are integers in units of 2⁻⁴⁰. Of equal totals, the
    first in order of rows and keys is taken.

    >>> best_assignment([{7: 0.9, 8: 0.8}, {7: 0.85}])
    [8, 7]
    """
    keys = sorted({key for row in scores for key in row})
    n, m = len(scores), len(keys)
    # A place of its own for each row beside the keys: to go nowhere costs nothing.
    costs = np.ones((n, m + n), dtype=np.int64)
    for i, row in enumerate(scores):
        costs[i, m + i] = 0
        for j, key in enumerate(keys):
            if key in row:
                costs[i, j] = -round(row[key] * _SCALE)
    return [keys[j] if j < m else -1 for j in _cheapest(costs)]


def _cheapest(costs: npt.NDArray[np.int64]) -> list[int]:
    """Return the column of each row in an assignment of least cost (shortest augmenting paths)."""
    n, m = costs.shape
    row_price, column_price = np.zeros(n, dtype=np.int64), np.zeros(m, dtype=np.int64)
    owner = np.full(m, -1, dtype=np.int64)
    for start in range(n):
        distance = np.full(m, np.iinfo(np.int64).max)
        came_from = np.full(m, -1, dtype=np.int64)
        done = np.zeros(m, dtype=bool)
        row, column, reached = start, -1, 0
        while row >= 0:
            step = reached + costs[row] - row_price[row] - column_price
            shorter = ~done & (step < distance)
            distance[shorter], came_from[shorter] = step[shorter], column
            column = int(np.argmin(np.where(done, np.iinfo(np.int64).max, distance)))
            reached = int(distance[column])
            done[column] = True
            row = int(owner[column])
        slack = np.where(done, reached - distance, 0)
        row_price[start] += reached
        taken = done & (owner >= 0)
        row_price[owner[taken]] += slack[taken]
        column_price -= slack
        while column >= 0:  # the way back: each column goes to the row that reached it
            before = int(came_from[column])
            owner[column] = owner[before] if before >= 0 else start
            column = before
    result = np.empty(n, dtype=np.int64)
    held = owner >= 0
    result[owner[held]] = np.flatnonzero(held)
    return list(result.tolist())
