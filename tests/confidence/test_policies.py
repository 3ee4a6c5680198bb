"""What is done with unsure vectors: bounds, vectors that are held, decisions on them later."""

from __future__ import annotations

import numpy as np
import pytest

from confidence.sure import HELD, NEW
from linkstream import Links, Space, saving
from linkstream.clusterer.confidence import setting
from linkstream.confidence import Curve, Model, Policy
from linkstream.engine import snapshot
from linkstream.errors import ArgumentError, NotTrackedError, RemovedError, SnapshotError
from linkstream.identity.held import POINT, Held
from linkstream.identity.steps import Steps
from streams import ENGINES, lobes

STREAM = lobes(np.random.default_rng(0), 700)
X = np.float32(STREAM.vectors)
SURE = 0.8


def links(**options):
    """Return an empty clusterer with a model that holds for it."""
    clusterer = Links(*STREAM.thresholds, **options)
    clusterer.confidence.use(Model(setting(clusterer.core), HELD, NEW, HELD, 40))
    return clusterer


MODEL = links().confidence.model


def held_numbers(clusterer):
    return [each.vector for each in clusterer.held(limit=10_000)][::-1]


def holding(n=300, probability=SURE, **options):
    """Return a clusterer that has held some of the first n vectors, and all decisions on them."""
    clusterer = links(**{key: value for key, value in options.items() if key != "new"})
    first = clusterer.decide_many(X[:1])
    clusterer.accept(probability, **{key: v for key, v in options.items() if key == "new"})
    return clusterer, [first, clusterer.decide_many(X[1:n])]


# Bounds


def test_a_decision_is_sure_exactly_if_its_probability_is_high_enough():
    for probability in np.linspace(0.3, 0.97, 50).tolist():
        policy = Policy.of(MODEL, probability, probability, unsure="hold", weight=0.0)
        for bound, curve, sign in ((policy.joined_margin, HELD, 1), (policy.new_margin, NEW, -1)):
            x = sign * bound
            below = float(np.nextafter(x, -np.inf))
            assert float(curve.probabilities(x)) >= probability
            assert not float(curve.probabilities(below)) >= probability


def test_a_policy_survives_its_text_bit_for_bit():
    policy = Policy.of(MODEL, 0.91, 0.0, unsure="weigh", weight=0.25)
    assert Policy.from_bounds(policy.bounds) == policy
    assert policy.new_margin is None
    assert Policy.from_bounds(None) == Policy()
    for text in ("[]", '["hold"]', policy.bounds.replace("0.25", "2.5"), '{"a": 1}'):
        with pytest.raises(ValueError, match=r"\w"):
            Policy.from_bounds(text)


def test_a_kind_without_a_curve_is_sure_as_a_whole_or_never():
    few = Curve(0.0, 0.0, 0.0, 0.0, 0.99, 150, 1)
    model = Model(MODEL.setting, HELD, few, HELD, 40)
    assert Policy.of(model, 0.9, 0.9, unsure="hold", weight=0.0).new_margin is None
    with pytest.raises(ArgumentError, match=r"tells at most 0\.986 of a vector that is new"):
        Policy.of(model, 0.9, 0.99, unsure="hold", weight=0.0)


# Vectors that are held


@pytest.mark.parametrize("engine", ENGINES)
def test_unsure_vectors_are_held_and_change_no_cluster(engine):
    clusterer, (_, told) = holding(engine=engine)
    waits = told.kind == 3
    assert 0 < waits.sum() < len(waits)
    assert (told.cluster[waits] == -1).all()
    assert (told.subcluster[waits] == -1).all()
    assert not (told.probability[waits] >= SURE).any()
    assert (told.probability[~waits] >= SURE).all()
    assert told.at(int(np.argmax(waits))).kind == "held"
    assert clusterer.n_vectors == 300
    assert np.flatnonzero(clusterer.labels() == -1).tolist() == held_numbers(clusterer)
    assert sum(each.size for each in clusterer.clusters()) == 300 - len(held_numbers(clusterer))


@pytest.mark.parametrize("mode", ["paper", "best"])
@pytest.mark.parametrize("weight", [1.0, 0.5])
def test_decisions_do_not_depend_on_how_the_stream_is_cut(mode, weight):
    hashes, n_held = set(), 0
    for cut in (1, 7, 100, 10_000):
        clusterer = links(mode=mode)
        clusterer.add(X[0])
        clusterer.accept(SURE)
        for first in range(1, 600, cut):
            told = clusterer.decide_many(X[first : min(first + cut, 600)], weight=weight)
            n_held += int((told.kind == 3).sum())
        hashes.add((clusterer.state_hash(), tuple(held_numbers(clusterer))))
    assert len(hashes) == 1
    assert n_held > 40


def test_vectors_that_are_held_are_asked_again_at_points_of_the_stream():
    clusterer, _ = holding(POINT - 1)
    before = held_numbers(clusterer)
    would = [each.vector for each in clusterer.held(limit=POINT) if (each.probability or 0) >= SURE]
    assert would  # more evidence has come since
    clusterer.add(X[POINT - 1])
    after = held_numbers(clusterer)
    assert not set(would) & set(after)
    assert set(after) - {POINT - 1} < set(before)
    assert clusterer.labels()[would].min() >= 0


def test_a_point_asks_few_blocks_and_each_vector_rarely():
    held, n = Held(range(0, 100 * POINT, 10)), 100 * POINT
    asked = [number for point in range(POINT, n + 1, POINT) for number in held.due(point)]
    assert np.bincount(asked).max() <= 8
    assert len(held.due(n)) <= 8 * POINT
    held.discard(Steps(), 0)
    assert 0 not in held
    assert 10 in held


def test_accept_without_a_probability_takes_what_waits():
    clusterer, _ = holding()
    policy = clusterer.accept()
    assert (policy, clusterer.policy) == (Policy(), Policy())
    assert clusterer.held() == []
    assert clusterer.labels().min() >= 0
    clusterer.add_many(X[300:320])
    assert clusterer.held() == []
    before = clusterer.core.running().n_events
    assert clusterer.accept() == Policy()
    assert clusterer.core.running().n_events == before


def test_unsure_vectors_can_weigh_less():
    clusterer = links()
    clusterer.add(X[0])
    clusterer.accept(SURE, unsure="weigh", weight=0.25)
    told = clusterer.decide_many(X[1:200])
    unsure = np.flatnonzero(~(told.probability >= SURE)) + 1
    weights = clusterer.core.up_to_date_ledger().missing_weights
    assert weights == dict.fromkeys(unsure.tolist(), 192)
    assert (told.cluster >= 0).all()


def test_groups_and_prototypes_are_always_taken():
    clusterer, _ = holding(100)
    before = len(held_numbers(clusterer))
    clusterer.add_many(X[100:120], group="photo")
    clusterer.enrol("Ann", X[120:130])
    assert len(held_numbers(clusterer)) == before


# What people say


def test_a_person_decides_on_a_vector_that_is_held():
    clusterer, _ = holding()
    into, fresh, tests, gone = held_numbers(clusterer)[:4]
    target = clusterer.clusters()[0].id
    assert clusterer.assign(into, target).cluster == clusterer.labels()[into] == target
    assert [each.verb for each in clusterer.corrections()] == ["move"]
    new = clusterer.assign(fresh, -1)
    assert (new.kind, clusterer.cluster(new.cluster).size) == ("new", 1)
    assert clusterer.assign(tests).cluster == clusterer.labels()[tests] >= 0
    clusterer.remove(gone)
    assert not {into, fresh, tests, gone} & set(held_numbers(clusterer))
    assert clusterer.labels()[gone] == -1
    with pytest.raises(RemovedError, match="which is not held"):
        clusterer.assign(gone)


def test_other_calls_say_that_a_vector_is_held():
    clusterer, _ = holding()
    waits = held_numbers(clusterer)[0]
    for call in (lambda: clusterer.move(waits, 0), lambda: clusterer.same(0, waits)):
        with pytest.raises(RemovedError, match=r"which is held.*assign\(\)"):
            call()


@pytest.mark.parametrize("engine", ENGINES)
def test_each_step_can_be_undone_and_done_again(engine):
    clusterer, _ = holding(engine=engine)
    waits = held_numbers(clusterer)
    steps = [
        lambda: clusterer.assign(waits[0], -1),
        lambda: clusterer.assign(waits[1], clusterer.clusters()[0].id),
        lambda: clusterer.remove(waits[2]),
        lambda: clusterer.add(X[300]),
        lambda: clusterer.accept(0.9),
        clusterer.accept,
    ]
    for step in steps:
        before, policy = clusterer.state_hash(), clusterer.policy
        step()
        after, changed = clusterer.state_hash(), clusterer.policy
        clusterer.undo()
        assert (clusterer.state_hash(), clusterer.policy) == (before, policy)
        clusterer.redo()
        assert (clusterer.state_hash(), clusterer.policy) == (after, changed)
    clusterer.undo(to=clusterer.events()[200].sequence)
    again = Links.from_bytes(clusterer.to_bytes(), engine=engine)
    assert held_numbers(again) == held_numbers(clusterer) != []


# Where there is no policy


def test_what_cannot_be_is_refused_and_changes_nothing():
    clusterer, _ = holding(50)
    before = clusterer.state_hash()
    for probability, options, words in (
        (0.999, {}, "tells at most"),
        (1.0, {}, "a probability below 1"),
        (0.0, {}, "a probability below 1"),
        (0.9, {"new": -0.1}, "new=-0.1"),
        (0.9, {"unsure": "drop"}, "'hold' or 'weigh'"),
        (0.9, {"unsure": "weigh", "weight": 1.0}, "weight=1.0"),
    ):
        with pytest.raises(ArgumentError, match=words):
            clusterer.accept(probability, **options)
    assert clusterer.state_hash() == before


def test_a_policy_needs_a_model_a_dimension_and_for_holding_vectors():
    with pytest.raises(ArgumentError, match="probabilities are unknown: no model"):
        Links(*STREAM.thresholds).accept(0.9)
    with pytest.raises(ArgumentError, match="the dimension is not known"):
        links().accept(SURE)
    with pytest.raises(NotTrackedError, match="does not keep its vectors"):
        links(keep_vectors=False).accept(SURE)
    early = links(space=Space(dimension=X.shape[1]))
    early.accept(SURE)
    early.add_many(X[:300])
    late, _ = holding()
    assert held_numbers(early) == held_numbers(late)


def test_with_other_settings_the_policy_rests_and_nothing_is_lost():
    clusterer, _ = holding()
    waits = held_numbers(clusterer)
    t = clusterer.thresholds
    other = type(t)(t.cluster_similarity, t.subcluster_similarity - 0.01, t.pair_similarity_max)
    clusterer.rebuild(apply=True, thresholds=other)
    assert clusterer.policy.unsure == "hold"
    assert (clusterer.decide_many(X[300:600]).cluster >= 0).all()
    assert held_numbers(clusterer) == waits
    clusterer.accept()
    assert held_numbers(clusterer) == []


def test_another_space_is_refused_while_vectors_are_held():
    clusterer, _ = holding()
    with pytest.raises(ArgumentError, match="vectors are held"):
        clusterer.rebuild(apply=True, vectors=X[:300])
    assert clusterer.core.space == Space()


def test_a_snapshot_whose_held_vectors_are_in_clusters_is_refused():
    clusterer, _ = holding()
    meta, arrays = snapshot.decode(
        clusterer.to_bytes(), meta=saving._META, arrays=saving._ARRAYS, views=("kept",)
    )
    for name, value in (("held", [0]), ("held", ["a"]), ("policy", "[1]"), ("policy", 5)):
        broken = {**meta, "ledger": {**meta["ledger"], name: value}}
        with pytest.raises(SnapshotError):
            saving.unpack(snapshot.encode(broken, arrays))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_clusterer_that_holds_vectors_is_not_absorbed_nor_stripped_of_its_vectors(engine):
    one, _ = holding(120, engine=engine)
    other = links(engine=engine)
    other.add_many(X[200:220])
    waiting, before = len(one.held(limit=500)), (one.state_hash(), other.state_hash())
    assert waiting
    for refused in (lambda: other.absorb(one), one.without_vectors):
        with pytest.raises(ArgumentError, match=f"that holds {waiting} vectors"):
            refused()
    assert (one.state_hash(), other.state_hash()) == before
    one.absorb(other)  # what is held here stays held
    assert len(one.held(limit=500)) == waiting
    one.accept()
    other.absorb(one)
    assert other.n_vectors == 160
