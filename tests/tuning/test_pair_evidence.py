"""The likelihood ratio that two vectors are one identity, from known pairs."""

from __future__ import annotations

import json

import numpy as np
import pytest

from linkstream.errors import ArgumentError
from linkstream.tuning import calibrate
from linkstream.tuning.pair_evidence import PairEvidence
from tuning.test_calibration import identities, known_pairs


def normals(n_same, n_different, seed=0):
    """Similarities of two normal kinds, whose log ratio is linear: 40·(similarity − .5)."""
    rng = np.random.default_rng(seed)
    return rng.normal(0.6, 0.0707, n_same), rng.normal(0.4, 0.0707, n_different)


def test_the_ratio_is_that_of_the_densities():
    found = PairEvidence.of(*normals(600, 600))
    assert np.log(found.likelihood_ratio(0.5)) == pytest.approx(0.0, abs=0.4)
    log = np.log(found.likelihood_ratio([0.45, 0.55]))
    assert log == pytest.approx([-2.0, 2.0], abs=0.7)


def test_how_many_pairs_of_each_kind_are_known_says_nothing_of_the_base_rate():
    many, few = (PairEvidence.of(*normals(600, n)) for n in (600, 100))
    logs = [np.log(each.likelihood_ratio([0.45, 0.5, 0.55])) for each in (many, few)]
    assert logs[0] == pytest.approx(logs[1], abs=0.7)


def test_no_ratio_is_beyond_what_so_many_pairs_can_show():
    found = PairEvidence.of(*normals(100, 50))
    assert found.likelihood_ratio([-1.0, 1.0]) == pytest.approx([1 / 101, 51])
    apart = PairEvidence.of(np.full(20, 0.9), np.full(30, 0.1))
    assert apart.likelihood_ratio(0.9) <= 31.0 + 1e-9


def test_a_probability_needs_a_base_rate():
    found = PairEvidence.of(*normals(200, 200))
    ratio = float(found.likelihood_ratio(0.55))
    assert found.probability(0.55, 0.5) == pytest.approx(ratio / (1 + ratio))
    told = found.probability(np.linspace(0, 1, 9), base_rate=0.01)
    assert (np.diff(told) >= 0).all()
    assert told[-1] < 0.7
    for wrong in (0.0, 1.0, -1, True, "half", None):
        with pytest.raises(ArgumentError, match="base_rate"):
            found.probability(0.5, wrong)


def test_a_calibration_from_pairs_has_evidence_and_gives_no_model():
    X, y = identities()
    same, different = known_pairs(y, 60)
    found = calibrate(X, same=same, different=different)
    assert (found.evidence.same, found.evidence.different) == (60, 60)
    low, high = found.evidence.likelihood_ratio([0.0, 0.8])
    assert low < 0.1 < 10 < high
    assert json.loads(json.dumps(found.to_dict()))["evidence"]["same"] == 60
    assert found.links().confidence.model is None


def test_without_pairs_there_is_no_evidence():
    assert calibrate(identities()[0]).evidence is None
