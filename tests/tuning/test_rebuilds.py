"""Thresholds for `rebuild`, tuned for themselves."""

from __future__ import annotations

import json

import numpy as np
import pytest

from linkstream import Links, Space, Thresholds, metrics
from linkstream.data import voice_halves
from linkstream.errors import ArgumentError
from linkstream.tuning import rebuilds, tune
from linkstream.tuning.inputs import LabelledVectors
from linkstream.tuning.objective import Objective
from linkstream.tuning.rebuilds import tuned_for_rebuilds
from streams import ENGINES

QUICK = {"trials": 8, "orders": 1, "mode": "best"}


@pytest.fixture(scope="module")
def voices():
    """Return a short stream of five speakers with their labels, in fewer dimensions."""
    stream = voice_halves()[0]
    return stream.X[::4, :96], stream.y[::4]


@pytest.fixture(scope="module")
def tuned(voices):
    return tune(*voices, **QUICK, rebuild=True)


def found(X, y, objective=None, *, space=None, engine="auto"):
    options = {"join": 0.8, "seed": 0, "engine": engine, "threads": 1}
    examples = LabelledVectors.of(X, y)
    return tuned_for_rebuilds(examples, space or Space(), objective or Objective(), **options)


def test_the_links_of_a_result_rebuild_with_their_own_thresholds(voices, tuned):
    X, y = voices
    links = tuned.links()
    assert links.rebuild_thresholds == tuned.rebuild_thresholds != links.thresholds
    links.add_many(X)
    report = links.rebuild(apply=True)
    assert report.thresholds == tuned.rebuild_thresholds
    assert metrics.accuracy(y, links.labels()) == tuned.rebuilds.score
    assert links.thresholds == tuned.thresholds


def test_thresholds_for_rebuilds_are_found_only_if_asked_for(voices, tuned):
    plain = tune(*voices, **QUICK)
    assert plain.rebuild_thresholds is None
    assert plain.thresholds == tuned.thresholds
    assert plain.links().rebuild_thresholds is None
    assert "rebuild" not in plain.text()
    with pytest.raises(ArgumentError, match="rebuild=1"):
        tune(*voices, **QUICK, rebuild=1)


def test_the_result_shows_them_in_every_form(tuned):
    own = tuned.rebuild_thresholds
    told = json.loads(json.dumps(tuned.to_dict()))
    assert Thresholds(**told["rebuild_thresholds"]) == own
    assert told["rebuilt"] == tuned.rebuilds.score
    assert f"{own.cluster_similarity:.4f}, {own.pair_similarity_max:.4f}" in tuned.text()
    scope = {"Links": Links, "Thresholds": Thresholds}
    exec(tuned.python, scope)
    assert scope["links"].rebuild_thresholds == own


def test_the_subcluster_similarity_is_that_of_the_stream(tuned):
    stream = tuned.thresholds.subcluster_similarity
    assert tuned.rebuild_thresholds.subcluster_similarity == stream


def test_engines_and_orders_agree(voices):
    X, y = voices
    few = np.arange(0, len(X), 5)
    results = set()
    for engine in ENGINES:
        for seed in range(2):
            order = np.random.default_rng(seed).permutation(few)
            results.add(found(X[order], y[order], engine=engine))
    assert len(results) == 1


def test_more_weight_on_conflation_gives_no_larger_clusters(voices):
    X, y = voices
    sizes = []
    for weight in (0.2, 5.0):
        links = Links.from_thresholds(
            found(X, y, Objective(conflation_weight=weight)).thresholds, threads=1
        )
        links.add_many(X)
        links.rebuild(apply=True)
        sizes.append(links.n_clusters)
    assert sizes[0] <= sizes[1]


def test_vectors_are_brought_to_the_space(voices):
    X, y = voices
    cone = X + np.float32(0.5)
    mean = (X / np.linalg.norm(X, axis=1, keepdims=True)).mean(axis=0) * 0.5
    assert found(cone, y).thresholds.cluster_similarity > 0.9
    assert found(X, y, space=Space(mean)) != found(X, y)


def test_many_vectors_are_sampled_by_identity(voices, monkeypatch):
    X, y = voices
    monkeypatch.setattr(rebuilds, "VECTORS_MAX", 60)
    rows = rebuilds._sample(LabelledVectors.of(X, y).y, 0)
    assert len(rows) == 60
    assert np.all(np.diff(rows) > 0)
    kept = np.bincount(LabelledVectors.of(X, y).y[rows], minlength=5)
    whole = np.bincount(LabelledVectors.of(X, y).y)
    assert np.count_nonzero((kept > 0) & (kept < whole)) <= 1
