"""The clusters that are most similar to a cluster, or to some vectors: targets of joins and moves.

One scan of the clusters proposes some; the two sides as wholes decide on their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkstream.clusterer.checks import whole_number
from linkstream.clusterer.core import Core
from linkstream.engine.comparison import Totals, directions, similarities
from linkstream.engine.corrections import share
from linkstream.engine.linkage import CENTROID_SCALE
from linkstream.engine.state import Integers, State

_SPARE = 4  # clusters proposed for each that is returned: the order of margins is another one
_LEAST = 24


@dataclass(frozen=True, slots=True)
class NearCluster:
    """A cluster that may be the one that is sought.

    Attributes:
        cluster: its ID.
        similarity: of both sides as wholes.
        margin: similarity − s~ for their weights.
        probability: that both are one identity; None if it is unknown, or not of two clusters.
        apart: why both cannot be joined: "correction", "name"; None if they can.
    """

    cluster: int
    similarity: float
    margin: float
    probability: float | None = None
    apart: str | None = None


@dataclass(frozen=True, slots=True)
class _Side:
    """What is compared with the clusters: a sum, its weight, and clusters that are left out."""

    total: Integers
    mass: float
    left_out: frozenset[int]


def near_cluster(core: Core, cluster_id: int, limit: int = 8) -> list[NearCluster]:
    """Return the clusters most similar to a cluster, the greatest margin first."""
    limit = whole_number("limit", limit, "how many clusters to return")
    live = core.live(cluster_id)
    part = core.running().parts(live)
    own = Totals.of(part)
    side = _Side(own.sums[0], float(own.masses[0]), frozenset({live}))
    found, state = _nearest(core, side, limit)
    theirs = [int(state.counts[state.clusters == each.cluster].sum()) for each in found]
    sizes = [(int(part.counts.sum()), each) for each in theirs]
    told = core.confidence.one_identity([each.margin for each in found], sizes)
    return [
        NearCluster(
            each.cluster, each.similarity, each.margin, p, _apart(core, live, part, state, each)
        )
        for each, p in zip(found, told, strict=True)
    ]


def near_vectors(core: Core, vectors: Sequence[int], limit: int = 8) -> list[NearCluster]:
    """Return the clusters most similar to some vectors together, without one that holds them all.

    The vectors have to be kept.
    """
    limit = whole_number("limit", limit, "how many clusters to return")
    nodes = [core.holder(vector) for vector in vectors]
    missing = core.up_to_date_ledger().missing_weights
    rows = core.kept([int(vector) for vector in vectors])
    pairs = zip(vectors, rows, strict=True)
    total = np.sum([share(row, missing.get(int(vector), 0)) for vector, row in pairs], axis=0)
    here = {core.running().cluster_of(node) for node in nodes}
    left_out = frozenset(here) if len(here) == 1 else frozenset()
    return _nearest(core, _Side(total, float(len(rows)), left_out), limit)[0]


def _nearest(core: Core, side: _Side, limit: int) -> tuple[list[NearCluster], State]:
    """Return the nearest clusters, and these as a state."""
    engine = core.running()
    unit = directions(side.total[np.newaxis])
    if not unit.any():
        return [], engine.parts()
    asked = core.factory.quantise((unit / CENTROID_SCALE).astype(np.float32))[0]
    proposed = engine.near_clusters(asked, max(_LEAST, _SPARE * limit) + len(side.left_out))[0][0]
    ids = sorted({*proposed.tolist()} - {-1} - side.left_out)
    state = engine.parts(*ids)
    if not ids:
        return [], state
    totals = Totals.of(state)
    similarity = similarities(np.broadcast_to(unit, totals.sums.shape), directions(totals.sums))
    masses = np.full_like(totals.masses, max(side.mass, 1.0))
    margin = similarity - core.origin.thresholds.edges(totals.masses, masses)
    order = np.lexsort((totals.ids, -margin))[:limit]
    rows = (column[order].tolist() for column in (totals.ids, similarity, margin))
    return [NearCluster(*row) for row in zip(*rows, strict=True)], state


def _apart(core: Core, cluster: int, part: State, state: State, near: NearCluster) -> str | None:
    """Return what keeps two clusters apart; None if nothing does."""
    laws, names = core.laws(), core.ledger.names
    theirs = state.numbers[state.clusters == near.cluster].tolist()
    if laws.clash(part.numbers.tolist(), theirs) is not None:
        return "correction"
    two: list[Any] = [names.get(each) for each in (cluster, near.cluster)]
    return "name" if None not in two else None
