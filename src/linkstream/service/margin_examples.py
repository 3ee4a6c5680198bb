"""Examples of what other thresholds would change: clusters that would join, edges that would fail.

The same graph and the same limits as in `margins`, which counts them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from linkstream.engine.comparison import Comparison, edge_figures
from linkstream.engine.forest import TESTED
from linkstream.engine.state import State
from linkstream.paper.thresholds import Thresholds
from linkstream.service import margins

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Example:
    """Two clusters that would join, or two subclusters whose edge would fail.

    Attributes:
        a, b: the clusters, or the subclusters.
        similarity: their similarity.
        threshold: what it would be compared with.
    """

    a: int
    b: int
    similarity: float
    threshold: float


def joined(state: State, thresholds: Thresholds, limit: int) -> tuple[int, list[Example]]:
    """Return how many pairs of clusters would pass that do not now, and the clearest of them."""
    if not len(state.numbers):
        return 0, []
    clusters = Comparison.of(margins.biggest(state))
    pairs = clusters.best(lambda found, _, __: found, margins.PAIRS)
    similarity, now = clusters.figures(pairs)
    then = _required(thresholds, clusters.totals.masses[pairs])
    change = (similarity < now) & (similarity >= then)
    worth = np.where(change, similarity - then, -1.0)
    return _examples(clusters.totals.ids[pairs], similarity, then, worth, limit)


def parted(state: State, thresholds: Thresholds, limit: int) -> tuple[int, list[Example]]:
    """Return how many edges would fail that do not now, and the clearest of them."""
    tested = margins.picked(np.flatnonzero(state.edge_rules == TESTED))
    if not len(tested):
        return 0, []
    part = replace(state, edges=state.edges[tested], edge_rules=state.edge_rules[tested])
    similarity = edge_figures(part)[0]
    masses = state.masses()[np.searchsorted(state.numbers, part.edges)]
    now, then = (_required(each, masses) for each in (state.thresholds, thresholds))
    change = (similarity >= now) & (similarity < then)
    worth = np.where(change, then - similarity, -1.0)
    return _examples(part.edges, similarity, then, worth, limit)


def _required(thresholds: Thresholds, masses: Floats) -> Floats:
    return thresholds.edges(masses[:, 0], masses[:, 1])


def _examples(
    pairs: Integers, similarity: Floats, threshold: Floats, worth: Floats, limit: int
) -> tuple[int, list[Example]]:
    """Return how many pairs change (worth from 0 on), and those of the greatest worth."""
    count = int((worth >= 0.0).sum())
    order = np.argsort(-worth, kind="stable")[: min(limit, count)]
    figures = zip(
        pairs[order].tolist(), similarity[order].tolist(), threshold[order].tolist(), strict=True
    )
    return count, [Example(a, b, s, t) for (a, b), s, t in figures]
