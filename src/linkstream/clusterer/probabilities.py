"""`predict_proba`: the clusters that a vector may belong to, and "new", with probabilities."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from linkstream.clusterer.checks import whole_number
from linkstream.clusterer.core import Core
from linkstream.confidence import Model
from linkstream.confidence.curve import Curve
from linkstream.engine.decisions import NEW

NOWHERE = -1  # stands for a new cluster
_LEAST = 1e-12
_BLOCK = 4_096  # vectors that are looked at together

Floats = npt.NDArray[np.float64]
Probabilities = list[dict[int, float]]


def predict_proba(core: Core, X: npt.ArrayLike, limit: int = 5) -> Probabilities:
    """Return for each vector the best clusters and "new"; see `Links.predict_proba`."""
    rows = core.check_rows(X)
    most = whole_number("limit", limit, "how many clusters to return of each vector")
    fixed = core.quantised(rows)
    model = core.confidence.holding()
    if model is None or core.engine is None:
        return [{} for _ in rows]
    blocks = (fixed[first : first + _BLOCK] for first in range(0, len(fixed), _BLOCK))
    return [each for block in blocks for each in _of_block(core, model, block, most)]


def _of_block(
    core: Core, model: Model, vectors: npt.NDArray[np.int32], limit: int
) -> Probabilities:
    """Return the probabilities of some vectors: one question and one scan for all."""
    engine = core.running()
    asked = engine.ask(vectors)
    told = model.probabilities(asked.kind, asked.cluster_margin, core.n_vectors)
    ids, margins = engine.near_clusters(vectors, limit + 1)
    held, new = model.curves
    n = core.n_vectors
    odds, odds_of_new = _odds(held, margins, n), _odds(new, -margins[:, :1], n)[:, 0]
    decided = np.where(asked.kind == NEW, NOWHERE, asked.cluster)
    figures = zip(told.tolist(), odds_of_new.tolist(), strict=True)
    rows = zip(decided.tolist(), figures, ids.tolist(), odds.tolist(), strict=True)
    return [_of_one(*row, limit) for row in rows]


def _of_one(
    decided: int, figures: tuple[float, float], ids: list[int], odds: list[float], limit: int
) -> dict[int, float]:
    """Share what the decision leaves among the best of the other outcomes, by their odds.

    `figures` are the probability of the decision, and the odds that the vector is new.
    """
    told, odds_of_new = figures
    if told != told:
        return {}
    there = zip(ids, odds, strict=True)
    others = [pair for pair in there if pair[0] not in (decided, NOWHERE)]
    kept = others[: limit - (decided != NOWHERE)]
    if decided != NOWHERE:
        kept.append((NOWHERE, odds_of_new))
    whole = sum(each for _, each in kept)
    shares = {cluster: (1.0 - told) * each / whole for cluster, each in kept}
    found = {decided: told if kept else 1.0, **shares}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _odds(curve: Curve, x: Floats, number: int) -> Floats:
    """Return the odds by a curve, also below the range that it was fitted to."""
    odds: Floats = np.exp(np.clip(curve.log_odds(x, number), -60.0, 60.0))
    return np.maximum(odds, _LEAST)
