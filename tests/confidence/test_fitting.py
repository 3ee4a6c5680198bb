"""Models fitted to labelled vectors: which decisions were right, and how well the model tells."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream import Links
from linkstream.engine.contract import NEW
from linkstream.paper.thresholds import Thresholds
from linkstream.tuning import tune
from linkstream.tuning.candidates import Candidate
from linkstream.tuning.confidence import fit_confidence, judged
from streams import ENGINES, around, unit

THRESHOLDS = (0.75, 0.7, 0.9)


def people(identities, each, seed, dimension=24):
    """Vectors of identities that are hard to tell apart, and who each is."""
    rng = np.random.default_rng(seed)
    base = unit(rng.standard_normal((1, dimension)))
    centres = around(rng, np.repeat(base, identities, axis=0), 0.45)
    y = rng.permutation(np.repeat(np.arange(identities), each))
    return np.float32(around(rng, centres[y], rng.uniform(0.6, 0.95, len(y)))), y


def naive(links, X, y):
    """Right or wrong by counting labels after each vector."""
    right = []
    for i, x in enumerate(X):
        decision = links.add(x)
        others = y[:i][links.labels()[:i] == links.resolve(decision.cluster)]
        if decision.kind == "new":
            right.append(y[i] not in y[:i])
        else:
            counts = {who: (others == who).sum() for who in others}  # in order of arrival
            right.append(bool(counts) and max(counts, key=counts.get) == y[i])
    return right


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("mode", ["paper", "best"])
def test_decisions_are_right_by_the_majority_of_their_cluster(engine, mode):
    X, y = people(12, 10, seed=0)
    options = {"engine": engine, "mode": mode}
    found = judged(Links(*THRESHOLDS, **options), X, y)
    assert found.right.tolist() == naive(Links(*THRESHOLDS, **options), X, y)
    assert found.identities == 12
    assert found.right[0]
    assert found.kind[0] == NEW
    assert 0 < found.right.mean() < 1


def test_a_model_tells_how_often_unseen_identities_are_decided_rightly():
    X, y = people(60, 20, seed=1)
    candidate = Candidate(Thresholds(*THRESHOLDS))
    orders = [np.arange(len(y)), np.random.default_rng(0).permutation(len(y))]
    model = fit_confidence(candidate, X, y, orders)
    assert model.why == ""
    fresh = judged(candidate.links(), *people(60, 20, seed=2))
    told = model.probabilities(fresh.kind, fresh.margin)
    seen = np.isfinite(told)
    assert seen.mean() > 0.95
    order = np.argsort(told[seen])
    for part in np.array_split(order, 4):
        assert told[seen][part].mean() == pytest.approx(fresh.right[seen][part].mean(), abs=0.1)
    assert fresh.right[seen][order[-200:]].mean() > fresh.right[seen][order[:200]].mean() + 0.1


def test_tune_returns_a_model_that_its_links_use():
    X, y = people(25, 8, seed=3)
    tuned = tune(X, y, trials=4, orders=2, workers=1)
    assert tuned.confidence.identities == 25
    links = tuned.links()
    assert links.confidence.model == tuned.confidence
    assert links.confidence.why == tuned.confidence.why
    again = tune(X, y, trials=4, orders=2, workers=2)
    assert again.confidence == tuned.confidence
    assert "evidence" in tuned.links(evidence="cluster").confidence.why
