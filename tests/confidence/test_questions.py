"""Probabilities of vectors that are asked about, and of clusters that may be one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from confidence import sure
from confidence.test_links import HELD, NEW, SAME, clusterer
from linkstream import Links
from linkstream.confidence.curve import sigmoid
from linkstream.errors import ArgumentError
from linkstream.store import Store
from streams import ENGINES, make


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("mode", ["paper", "best"])
def test_the_outcomes_of_a_vector_sum_to_one_and_start_from_the_decision(engine, mode):
    stream = make("lobes", 0)
    links = clusterer(stream, engine=engine, mode=mode)
    links.add_many(stream.vectors[:120])
    rows = stream.vectors[120:180]
    before = links.state_hash()
    found = links.predict_proba(rows, limit=3)
    assert links.state_hash() == before
    asked = [links.add(x, weight=0.0) for x in rows]
    answered = 0
    for outcomes, decision in zip(found, asked, strict=True):
        if decision.probability is None:
            assert outcomes == {}
            continue
        answered += 1
        assert sum(outcomes.values()) == pytest.approx(1.0)
        assert list(outcomes.values()) == sorted(outcomes.values(), reverse=True)
        assert outcomes[decision.cluster] == decision.probability
        assert -1 in outcomes
        assert len(outcomes) <= 4
        assert set(outcomes) - {-1} <= {each.id for each in links.clusters()}
    assert answered >= 30


def test_what_the_decision_leaves_is_shared_by_the_odds_of_the_margins():
    links = clusterer(make("lobes", 0))
    links.add_many([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    x = np.array([0.97, 0.2, 0.1])
    (outcomes,) = links.predict_proba([x])
    t = links.thresholds
    margins = x[:2] / np.linalg.norm(x) - t.edge(1, 1)
    told = sigmoid(HELD.intercept + HELD.slope * margins)
    odds = np.array([told[1] / (1 - told[1]), math.exp(NEW.intercept - NEW.slope * margins[0])])
    shares = (1 - told[0]) * odds / odds.sum()
    assert outcomes[0] == pytest.approx(told[0], abs=1e-6)
    assert [outcomes[1], outcomes[-1]] == pytest.approx(shares.tolist(), abs=1e-6)


def test_without_a_model_or_vectors_there_is_nothing_to_tell():
    stream = make("lobes", 1)
    assert Links(*stream.thresholds).predict_proba(stream.vectors[:3]) == [{}] * 3
    assert clusterer(stream).predict_proba(stream.vectors[:2]) == [{}] * 2
    with pytest.raises(ArgumentError, match="limit"):
        clusterer(stream).predict_proba(stream.vectors[:2], limit=0)


def test_suggestions_and_questions_tell_whether_clusters_are_one():
    stream = make("lobes", 2)
    links = clusterer(stream)
    links.add_many(stream.vectors[:200])
    merges = links.suggest_merges(limit=30)
    expected = SAME.probabilities([each.margin for each in merges]).tolist()
    assert [each.probability for each in merges] == [None if p != p else p for p in expected]
    assert any(each.probability is not None for each in merges)
    for question in links.review_queue(20):
        if question.kind == "cut":
            assert question.probability is None
        else:
            told = float(SAME.probabilities(question.margin))
            assert question.probability == (None if math.isnan(told) else told)
    plain = Links(*stream.thresholds)
    plain.add_many(stream.vectors[:200])
    assert {each.probability for each in plain.suggest_merges()} == {None}


def test_a_store_answers_as_links(tmp_path):
    stream = make("lobes", 3)
    links = clusterer(stream)
    links.add_many(stream.vectors[:100])
    model = links.confidence.model
    path = tmp_path / "a.links"
    with Store.open(path, thresholds=links.thresholds, confidence=model) as store:
        store.add_many(stream.vectors[:100])
        rows = stream.vectors[100:120]
        assert store.predict_proba(rows) == links.predict_proba(rows)
        assert store.suggest_merges() == links.suggest_merges()
        assert store.review_queue() == links.review_queue()


def test_an_explanation_says_how_probably_the_answer_is_right():
    links = sure.links()
    links.add_many(sure.STREAM.vectors[:60])
    seen = set()
    for x in sure.STREAM.vectors[60:90]:
        why = links.explain(x)
        decision = links.add(x)
        assert (why.probability, why.cluster_margin) == (
            decision.probability,
            decision.cluster_margin,
        )
        known = why.probability is not None
        assert (f"right with probability {why.probability or 0:.3f}, margin" in str(why)) is known
        assert why.to_dict()["probability"] == why.probability
        seen.add(known)
    assert True in seen
    plain = Links(*sure.STREAM.thresholds)
    assert plain.explain(x).probability is None
    assert "probability" not in str(plain.explain(x))
