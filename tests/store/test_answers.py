"""A store answers as the clusterer it holds, and goes on after a reopening as if there was none."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from linkstream import Links, Space
from linkstream.errors import NotTrackedError
from linkstream.identity.settling import Healing
from linkstream.presets import preset
from linkstream.store import Store
from store.internals import EarlyMaintenance, told
from store.operations import (
    DIMENSION,
    THRESHOLDS,
    Shadow,
    do,
    make_operation,
    new,
    plain,
    state_of,
    vectors,
)
from streams import ENGINES

X = vectors(np.random.default_rng(0), 60)

# Options of Links that a store must keep.
OPTIONS = {
    "plain": {},
    "space": {"space": Space(mean=[0.1] * DIMENSION, model="encoder-7")},
    "evidence": {"evidence": "cluster"},
    "settling": {"heal": "settle"},
    "joining": {"heal": Healing("join", first=8, growth=1.1, min_size=2)},
    "limits": {"max_subclusters": 9, "max_idle": 25, "min_size": 2},
    "unkept": {"keep_vectors": False},
    "untracked": {"track_vectors": False},
    "untracked, limited": {"track_vectors": False, "max_subclusters": 9},
}


def assert_as(store, links):
    """All that can be asked has one answer."""
    assert store.state_hash() == links.state_hash()
    assert store.labels().tolist() == links.labels().tolist()
    assert store.clusters() == links.clusters()
    assert store.events() == links.events()
    assert list(store.journal.events()) == links.events()
    assert store.predict(X).tolist() == links.predict(X).tolist()
    for name in ("n_vectors", "n_subclusters", "n_clusters", "dimension", "thresholds"):
        assert getattr(store, name) == getattr(links, name), name


# The same answers.


@pytest.mark.parametrize("engine", ENGINES)
def test_a_store_gives_the_answers_of_a_plain_clusterer(path, engine):
    links = Links.from_thresholds(THRESHOLDS, engine=engine, threads=1)
    with new(path, engine=engine) as store:
        for x in X[:20]:
            assert store.add(x) == links.add(x)
        assert store.add(X[20], weight=0.5) == links.add(X[20], weight=0.5)
        assert store.add(X[20], weight=0) == links.add(X[20], weight=0)
        assert store.add(X[21], group="photo") == links.add(X[21], group="photo")
        assert store.add_many(X[22:50]).tolist() == links.add_many(X[22:50]).tolist()
        assert store.add_group(X[50:53]).tolist() == links.add_group(X[50:53]).tolist()
        assert store.enrol("Ann", X[53:55]) == links.enrol("Ann", X[53:55])
        assert store.move(0, 3) == links.move(0, 3)
        assert_as(store, links)


def test_a_store_has_every_read_method_of_links(path):
    links = Links.from_thresholds(THRESHOLDS, threads=1)
    with new(path) as store:
        for target in (store, links):
            target.add_many(X)
            target.name(0, "Ann")
            target.same(0, 1)
        assert [store.resolve(i) for i in range(3)] == [links.resolve(i) for i in range(3)]
        assert store.named("Ann") == links.named("Ann")
        assert store.corrections() == links.corrections() != []
        assert store.explain(X[5]) == links.explain(X[5])
        assert store.explain_pair(0, 9) == links.explain_pair(0, 9)
        assert store.explain_pair(0, 1, of="clusters") == links.explain_pair(0, 1, of="clusters")
        assert store.history(0) == links.history(0)
        assert store.exemplars(0) == links.exemplars(0)
        assert store.members(0, limit=3).tolist() == links.members(0, limit=3).tolist()
        assert store.review_queue(5) == links.review_queue(5)
        assert store.suggest_merges(5) == links.suggest_merges(5)
        assert store.suggest_splits(limit=5) == links.suggest_splits(limit=5)
        assert store.events(since=7) == links.events(since=7)


@pytest.mark.parametrize(
    "verb",
    [
        *("add", "add_many", "add_group", "enrol", "same", "different", "move", "name", "rename"),
        *("retract", "corrections"),
        *("ignore", "remove", "forget", "undo", "predict", "explain", "explain_pair", "history"),
        *("resolve", "named", "exemplars", "review_queue", "suggest_merges", "suggest_splits"),
        "members",
    ],
)
def test_a_method_has_the_parameters_and_defaults_of_links(verb):
    ours = inspect.signature(getattr(Store, verb)).parameters
    theirs = inspect.signature(getattr(Links, verb)).parameters
    for name, parameter in theirs.items():
        if (verb, name) not in {("remove", "x"), ("remove", "cluster"), ("remove", "weight")}:
            assert name in ours, name
            assert ours[name].default == parameter.default, name


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("engine", ENGINES)
def test_every_operation_changes_a_store_as_it_changes_a_clusterer(path, engine, seed):
    shadow = Shadow(seed, sizes=(1, 7, 30))
    with new(path, engine=engine) as store:
        for number in range(60):
            answer = shadow.do(store, number)
            shadow.until(number + 1)
            assert answer == shadow.answers[number], number
            assert state_of(store) == shadow.states[number + 1], number
        assert_as(store, shadow.links)
        store.verify()


@pytest.mark.parametrize("seed", range(10, 12))
def test_reopening_after_each_operation_changes_no_answer(path, seed):
    shadow, store = Shadow(seed, sizes=(1, 7, 30)), new(path)
    for number in range(40):
        answer = shadow.do(store, number)
        store.close()
        store = Store.open(path, engine=ENGINES[number % len(ENGINES)], threads=1)
        shadow.until(number + 1)
        assert answer == shadow.answers[number], number
        assert state_of(store) == shadow.states[number + 1], number
    assert_as(store, shadow.links)
    store.close()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 140))
def test_reopening_at_random_changes_no_answer_in_long_runs(path, seed):
    rng, shadow, store = np.random.default_rng(seed), Shadow(seed), new(path)
    for number in range(400):
        answer = shadow.do(store, number)
        if rng.random() < 0.2:
            store.close()
            store = Store.open(path, engine=str(rng.choice(ENGINES)), threads=1)
        shadow.until(number + 1)
        assert answer == shadow.answers[number], number
        assert state_of(store) == shadow.states[number + 1], number
    store.close()


# Numbers of vectors.


def test_vectors_of_weight_zero_get_no_number(path):
    links, weight = Links.from_thresholds(THRESHOLDS), [1.0, 0.0, 1.0, 1.0]
    with new(path) as store:
        for target in (store, links):
            target.add_many(X[:4], weight=weight)
            target.add_many(X[:4], weight=0.0)
            target.add_many(X[4:8])
            target.remove(1)
        assert_as(store, links)
        assert np.array_equal(store.vectors([0, 2, 3, 6]), X[[0, 3, 4, 7]])
    with Store.open(path) as store:
        assert np.array_equal(store.vectors([0, 2, 3, 6]), X[[0, 3, 4, 7]])


def test_a_new_vector_replaces_an_undone_one_with_the_same_number(path):
    links = Links.from_thresholds(THRESHOLDS)
    with new(path) as store:
        for target in (store, links):
            target.add_many(X[:4])
            target.add_many(X[4:6])
            for _ in range(4):
                target.undo()
            target.add_many(X[20:30])
            target.remove(4)
        assert_as(store, links)
        assert np.array_equal(store.vectors([0, 1, 2, 3, 5]), X[[0, 1, 20, 21, 23]])
    with Store.open(path) as store:
        assert np.array_equal(store.vectors([5, 0]), X[[23, 0]])


def test_vectors_come_back_as_they_were_given(path):
    given = np.float32([[3.0, 4.0], [1e-8, 0.0], [-0.0, 1e8], [0.1, 1e-45]])
    with new(path) as store:
        store.add_many(given)
        assert store.vectors(range(4)).tobytes() == given.tobytes()
        assert store.vectors([]).shape[0] == 0
        assert store.vectors(np.array([3, 3, 0])).tobytes() == given[[3, 3, 0]].tobytes()
    with Store.open(path) as store:
        assert store.vectors([2]).dtype == np.float32
        assert store.vectors(range(4)).tobytes() == given.tobytes()


def test_an_operation_with_a_large_batch_keeps_its_vectors_in_order(path):
    rows = vectors(np.random.default_rng(1), 40_000)  # more than fit one row of the file
    links = Links.from_thresholds(THRESHOLDS, threads=1)
    with new(path) as store:
        assert store.add_many(rows).tolist() == links.add_many(rows).tolist()
    with Store.open(path, threads=1) as store:
        some = [39_999, 0, 32_767, 32_768, 17]
        assert np.array_equal(store.vectors(some), rows[some])
        assert store.state_hash() == links.state_hash()


# Undo, options, empty batches.


def test_undo_goes_back_beyond_a_reopening(path):
    links = Links.from_thresholds(THRESHOLDS)
    with new(path) as store:
        for target in (store, links):
            target.add_many(X[:10])
            target.name(0, "Ann")
            target.remove(3)
    for _ in range(5):
        with Store.open(path) as store:
            store.undo()
            links.undo()
            assert_as(store, links)
    with Store.open(path) as store:
        store.undo(to=0)
        links.undo(to=0)
        assert_as(store, links)
        assert len(store.labels()) == 0


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_options_of_the_clusterer_survive(path, options):
    links = Links.from_thresholds(THRESHOLDS, **options)
    with new(path, **options) as store:
        assert store.add_many(X[:30]).tolist() == links.add_many(X[:30]).tolist()
    for rows in (X[30:45], X[45:]):
        for again in ({}, {"thresholds": THRESHOLDS, **options}):
            with Store.open(path, **again) as store:
                assert store.state_hash() == links.state_hash()
                assert store.space.model == links.space.model
        with Store.open(path) as store:
            assert store.add_many(rows).tolist() == links.add_many(rows).tolist()
            assert store.state_hash() == links.state_hash()
            assert store.clusters() == links.clusters()
            assert store.suggest_merges(4) == links.suggest_merges(4)
            store.verify()


@pytest.mark.parametrize("name", ["ge2e", "arcface"])
def test_a_preset_gives_a_store_the_options_of_a_clusterer(path, name):
    rows = np.random.default_rng(0).standard_normal((30, preset(name).dimension))
    links = Links.preset(name)
    with Store.open(path, preset=name) as store:
        assert store.thresholds == preset(name).thresholds
        assert store.add_many(rows).tolist() == links.add_many(rows).tolist()
    with Store.open(path, preset=name) as store:
        assert store.state_hash() == links.state_hash()


@pytest.mark.parametrize("options", [{"keep_vectors": False}, {"track_vectors": False}])
def test_vectors_that_are_not_kept_cannot_be_read(path, options):
    with new(path, **options) as store:
        store.add_many(X)
        for _ in range(2):
            with pytest.raises(NotTrackedError):
                store.vectors([0])
            with pytest.raises(NotTrackedError):
                store.undo()
            assert len(store.events()) >= len(X)


@pytest.mark.parametrize("empty", [[], np.empty((0, DIMENSION), dtype=np.float32)])
def test_an_empty_batch_changes_nothing(path, empty):
    with new(path) as store:
        assert store.add_many(empty).tolist() == []
        assert store.add_group(empty).tolist() == []
        assert store.add_many(empty, payloads=[]).tolist() == []
        ids = store.add_many(X[:3]).tolist()
        assert store.add_many(empty).tolist() == []
        assert ids == Links.from_thresholds(THRESHOLDS).add_many(X[:3]).tolist()
    with Store.open(path) as store:
        assert len(store.labels()) == 3


def test_numpy_integers_are_accepted(path):
    links = Links.from_thresholds(THRESHOLDS)
    with new(path) as store:
        for target in (store, links):
            target.add_many(X[:20], weight=np.float32(0.5))
            target.add_many(X[20:22], weight=np.array([0.5, 0.25], dtype=np.float16))
            target.add(X[22], weight=np.float64(0.25))
            target.add_many(X[23:25], weight=(1, 0))
            target.same(np.int64(0), np.int32(1))
            target.remove(np.uint8(5))
            target.name(np.int64(0), np.str_("Ann"), claim=np.bool_(True))
            target.ignore(np.int16(0), np.bool_(False))
            target.undo(to=np.int64(30))
        assert_as(store, links)
    with Store.open(path) as store:
        assert_as(store, links)


def test_the_journal_lists_the_operations(path):
    with new(path) as store:
        ids = store.add_many(X[:3], payloads=["a", None, 2], idempotency_key="k")
        decision = store.add(X[3], weight=0.5)
        store.name(0, "Ann")
        store.remove(1)
        cluster = store.enrol("Bob", X[4:6])
    with Store.open(path, read_only=True) as store:
        done = list(told(store))
        assert store.journal.n_operations == 5
        assert [op.number for op in done] == [1, 2, 3, 4, 5]
        assert [op.verb for op in done] == ["add_many", "add", "name", "remove", "enrol"]
        assert [op.first_vector for op in done] == [0, 3, 4, 4, 4]
        assert [op.key for op in done] == ["k", None, None, None, None]
        assert np.array_equal(done[0].vectors, X[:3])
        assert np.array_equal(done[1].vectors, X[3:4])
        assert done[2].vectors is None
        assert done[0].result.tolist() == ids.tolist()
        assert done[1].result == decision
        assert done[4].result == cluster
        assert done[0].payloads == ["a", None, 2]
        assert [op.number for op in store.journal.operations(since=3)] == [4, 5]
        for beyond in (5, 6, 1_000, 2**70):
            assert list(store.journal.operations(since=beyond)) == []
            assert store.events(since=beyond + 100) == []


def test_snapshots_change_no_state(path, tmp_path):
    other = tmp_path / "often.links"
    with EarlyMaintenance(10), new(other) as often, new(path) as seldom:
        for number in range(25):
            what = make_operation(8, number, seldom, sizes=(1, 7))
            assert plain(do(often, what)) == plain(do(seldom, what))
        assert state_of(often) == state_of(seldom)
        before = state_of(often)
    with Store.open(other) as store:
        assert state_of(store) == before
        assert store.verify().snapshots >= 1
