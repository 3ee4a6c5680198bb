"""Probabilities of clusterers: told with each decision, kept in snapshots, void elsewhere."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import numpy as np
import pytest

from linkstream import Links, Space, saving
from linkstream.clusterer.confidence import setting
from linkstream.confidence import Curve, Model
from linkstream.engine import snapshot
from linkstream.errors import ArgumentError, SnapshotError
from streams import ENGINES, make

HELD = Curve(1.0, 8.0, -0.4, 0.5, 0.99, 900, 90)
NEW = Curve(0.5, 5.0, -0.2, 1.0, 0.98, 300, 30)
SAME = Curve(-1.0, 9.0, -0.3, 0.1, 0.9, 40, 400)


def clusterer(stream, *, identities=40, **options):
    """Return a clusterer with a model that holds for it."""
    links = Links(*stream.thresholds, **options)
    links.confidence.use(Model(setting(links.core), HELD, NEW, SAME, identities))
    return links


def expected(decision):
    margin = decision.cluster_margin
    if margin is None:
        return None
    curve, x = (NEW, -margin) if decision.kind == "new" else (HELD, margin)
    found = float(curve.probabilities(x))
    return None if math.isnan(found) else found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("mode", ["paper", "best"])
def test_each_decision_has_the_probability_of_its_margin(engine, mode):
    stream = make("lobes", 0)
    links = clusterer(stream, engine=engine, mode=mode)
    alone = [links.add(x) for x in stream.vectors[:150]]
    assert [each.probability for each in alone] == [expected(each) for each in alone]
    assert sum(each.probability is not None for each in alone) > 100
    batch = clusterer(stream, engine=engine, mode=mode).decide_many(stream.vectors[:150])
    assert [batch.at(i) for i in range(150)] == alone
    assert batch.part(20, 30).at(4) == alone[24]


def test_weighted_vectors_have_a_probability_and_groups_have_none():
    stream = make("lobes", 1)
    links = clusterer(stream)
    links.add_many(stream.vectors[:100])
    lighter, asked = (links.add(stream.vectors[100], weight=weight) for weight in (0.5, 0.0))
    assert lighter.probability == expected(lighter) is not None
    assert asked.probability == expected(asked)
    assert links.add(stream.vectors[101], group="photo").probability is None


def test_without_a_model_there_is_no_probability():
    stream = make("lobes", 2)
    links = Links(*stream.thresholds)
    assert links.decide_many(stream.vectors[:20]).probability is None
    assert links.add(stream.vectors[20]).probability is None
    assert links.confidence.model is None
    assert "no model" in links.confidence.why


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"evidence": "cluster"}, "evidence"),
        ({"heal": "settle"}, "healing"),
        ({"space": Space(model="other")}, "space"),
    ],
)
def test_a_model_of_another_setting_is_void(options, name):
    stream = make("lobes", 3)
    model = clusterer(stream).confidence.model
    other = Links(*stream.thresholds, **options)
    other.confidence.use(model)
    assert f"other {name}" in other.confidence.why
    assert other.add(stream.vectors[0]).probability is None
    assert other.decide_many(stream.vectors[1:60]).probability is None


def test_a_rebuild_with_other_thresholds_voids_the_model_until_it_is_undone():
    stream = make("lobes", 4)
    links = clusterer(stream)
    links.add_many(stream.vectors[:80])
    assert links.confidence.why == ""
    t, event = links.thresholds, links.n_events
    links.rebuild(True, thresholds=replace(t, pair_similarity_max=t.pair_similarity_max - 0.01))
    assert "other thresholds" in links.confidence.why
    assert links.decide_many(stream.vectors[80:90]).probability is None
    links.undo(to=event)
    assert links.confidence.why == ""


def test_a_model_that_learnt_from_few_identities_says_unknown():
    stream = make("lobes", 5)
    links = clusterer(stream, identities=19)
    assert links.decide_many(stream.vectors[:50]).probability is None
    assert "19 identities" in links.confidence.why


def test_snapshots_and_copies_carry_the_model_and_the_digest_leaves_it_out():
    stream = make("lobes", 6)
    links, plain = clusterer(stream), Links(*stream.thresholds)
    for each in (links, plain):
        each.add_many(stream.vectors[:90])
    assert links.state_hash() == plain.state_hash()
    twins = [Links.from_bytes(links.to_bytes()), copy.deepcopy(links)]
    told = [each.decide_many(stream.vectors[90:140]) for each in (links, *twins)]
    for twin, said in zip(twins, told[1:], strict=True):
        assert twin.confidence.model == links.confidence.model
        assert np.array_equal(told[0].probability, said.probability, equal_nan=True)


def test_a_copy_of_a_clusterer_without_a_model_goes_on_computing_margins():
    stream = make("lobes", 6)
    links = Links(*stream.thresholds)
    links.confidence.set_margins(True)
    links.add_many(stream.vectors[:50])
    twin = copy.copy(links)
    ours, theirs = (each.decide_many(stream.vectors[50:90]) for each in (links, twin))
    assert np.isfinite(ours.cluster_margin).all()
    assert np.array_equal(ours.cluster_margin, theirs.cluster_margin)


def test_undo_keeps_probabilities():
    stream = make("lobes", 7)
    links = clusterer(stream)
    links.add_many(stream.vectors[:90])
    first = links.add(stream.vectors[90])
    links.undo()
    again = links.add(stream.vectors[90])
    assert again.probability == first.probability is not None


@pytest.mark.parametrize("wrong", [1, {}, {"identities": 20}, [[0.7, 0.6, 0.9]]])
def test_a_snapshot_with_a_wrong_model_is_refused(wrong):
    stream = make("lobes", 8)
    data = clusterer(stream).to_bytes()
    meta, arrays = snapshot.decode(data, meta=saving._META, arrays=saving._ARRAYS)
    with pytest.raises(SnapshotError, match="confidence"):
        Links.from_bytes(snapshot.encode(meta | {"confidence": wrong}, arrays))


def test_only_a_model_can_be_used():
    links = Links(0.7, 0.6, 0.9)
    with pytest.raises(ArgumentError, match="model of confidence"):
        links.confidence.use("tuned")
    links.confidence.use(None)
    assert links.add([1.0, 0.0]).probability is None


def test_answers_make_and_correct_a_model():
    stream = make("lobes", 9)
    links = Links(*stream.thresholds)
    links.confidence.set_margins(True)
    decisions = links.decide_many(stream.vectors)
    assert decisions.probability is None
    right = np.nan_to_num(decisions.cluster_margin) > np.nanmedian(decisions.cluster_margin)
    links.confidence.update(decisions.part(0, 40), right[:40])
    assert "39" in links.confidence.why  # the first vector has no margin
    links.confidence.update(decisions, right)
    links.confidence.update(decisions.part(40, 60), right[40:100])
    assert len(links.confidence.model.answers) == 39 + 149 + 60
    assert "answers" not in links.confidence.why
    told = [each for each in links.decide_many(stream.vectors[:40]).probability if each == each]
    assert len(told) > 20
    links.confidence.update(decisions, np.zeros(150, dtype=bool))
    after = [each for each in links.decide_many(stream.vectors[:40]).probability if each == each]
    assert np.mean(after) < np.mean(told)
    twin = Links.from_bytes(links.to_bytes())
    assert twin.confidence.model == links.confidence.model


def test_answers_must_be_one_for_each_decision():
    stream = make("lobes", 9)
    links = clusterer(stream)
    decisions = links.decide_many(stream.vectors[:5])
    for wrong in ([True] * 4, [1] * 5, True, [[True] * 5]):
        with pytest.raises(ArgumentError, match="answers"):
            links.confidence.update(decisions, wrong)
    assert links.confidence.model.answers == ()


def test_answers_under_other_settings_begin_anew():
    stream = make("lobes", 9)
    model = clusterer(stream).confidence.model
    other = Links(*stream.thresholds, evidence="cluster")
    other.confidence.use(model)
    decisions = other.decide_many(stream.vectors[:60])
    other.confidence.update(decisions, np.arange(60) % 2 == 0)
    assert other.confidence.model.identities == 0
    assert other.confidence.model.setting == setting(other.core)
    assert other.confidence.why == "" or "needed" in other.confidence.why
