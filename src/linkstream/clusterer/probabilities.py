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

Floats = npt.NDArray[np.float64]
Probabilities = list[dict[int, float]]


def predict_proba(core: Core, X: npt.ArrayLike, limit: int = 5) -> Probabilities:
    """Return for each vector the best clusters and "new"; see `Links.predict_proba`."""
    rows = core.check_rows(X)
    most = whole_number("limit", limit, "how many clusters to return of each vector")
    model = core.confidence.holding()
    if model is None or core.engine is None:
        return [{} for _ in rows]
    return [_of_one(core, model, vector, most) for vector in core.quantised(rows)]


def _of_one(
    core: Core, model: Model, vector: npt.NDArray[np.int32], limit: int
) -> dict[int, float]:
    engine = core.running()
    asked = engine.ask(vector[np.newaxis])
    told = float(model.probabilities(asked.kind, asked.cluster_margin)[0])
    if told != told:
        return {}
    ids, masses, similarities = engine.wholes(vector)
    margins = similarities - core.origin.thresholds.edges(masses, np.ones_like(masses))
    held, new = model.curves
    odds = _odds(held, margins)
    outcomes = dict(zip(ids.tolist(), odds.tolist(), strict=True))
    outcomes[NOWHERE] = float(_odds(new, -margins.max(keepdims=True))[0])
    decided = NOWHERE if asked.kind[0] == NEW else int(asked.cluster[0])
    del outcomes[decided]
    return _shared(decided, told, outcomes, limit)


def _shared(decided: int, told: float, outcomes: dict[int, float], limit: int) -> dict[int, float]:
    """Share what the decision leaves among the best of the other outcomes, by their odds."""
    clusters = sorted((each for each in outcomes if each != NOWHERE), key=lambda c: -outcomes[c])
    kept = clusters[: limit - (decided != NOWHERE)]
    if decided != NOWHERE:
        kept.append(NOWHERE)
    whole = sum(outcomes[each] for each in kept)
    shares = {each: (1.0 - told) * outcomes[each] / whole for each in kept}
    found = {decided: told if kept else 1.0, **shares}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _odds(curve: Curve, x: Floats) -> Floats:
    """Return the odds by a curve, also below the range that it was fitted to."""
    odds: Floats = np.exp(np.clip(curve.intercept + curve.slope * x, -60.0, 60.0))
    return np.maximum(odds, _LEAST)
