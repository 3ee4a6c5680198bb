"""What corrections require when clusters heal: told once, followed by the engine, never missed."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream import Links
from linkstream.clusterer.core import Core
from linkstream.engine import choice, healing
from linkstream.engine.contract import Requirements
from linkstream.engine.fixed_point import quantise
from linkstream.engine.state import State
from linkstream.errors import ArgumentError
from linkstream.paper.thresholds import Thresholds
from streams import ENGINES, around, unit

THRESHOLDS = (0.7, 0.7, 0.8)
engines = pytest.mark.parametrize("engine", ENGINES)
native = pytest.mark.skipif("native" not in ENGINES, reason="built without the compiled core")


def crowd(seed, n=600, people=8, d=24, cosine=0.72):
    """Return vectors of people whose clusters begin as fragments and overlap a little."""
    rng = np.random.default_rng(seed)
    centres = unit(rng.standard_normal((people, d)))
    return around(rng, centres[rng.integers(people, size=n)], cosine).astype(np.float32)


def corrected(X, seed, **options):
    """Return a clusterer of some vectors with corrections, a group and names."""
    links = Links(*THRESHOLDS, evidence="cluster", heal="settle", **options)
    links.add_many(X)
    rng = np.random.default_rng(seed)
    of = "vectors" if options.get("track_vectors", True) else "subclusters"
    for verb in ("different", "same") * 12:
        known = range(len(X)) if of == "vectors" else links.state().numbers.tolist()
        try:
            getattr(links, verb)(*map(int, rng.choice(known, size=2, replace=False)), of=of)
        except ArgumentError:  # it contradicts another
            continue
    links.add_group(X[:3])
    for cluster in links.clusters()[:3]:
        links.name(cluster.id, f"cluster {cluster.id}")
    return links


def told_again(links, X):
    """Add vectors; gather what corrections require again before each of them."""
    for x in X:
        links.core.up_to_date_ledger().revise()
        links.core.is_ready = links.core.fast_path = False
        links.add_many(x[np.newaxis])


WAYS = {
    "tracked": {},
    "untracked": {"track_vectors": False, "keep_vectors": False},
    "limited": {"max_subclusters": 60},
    "idle": {"max_idle": 90},
}


@engines
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(2))
def test_the_engine_follows_what_corrections_require(engine, way, seed):
    X = crowd(seed, n=400)
    at_once, one_by_one = (corrected(X[:150], seed, engine=engine, **WAYS[way]) for _ in range(2))
    before = [pin.node for pin in at_once.core.up_to_date_ledger().pins]
    at_once.add_many(X[150:])
    told_again(one_by_one, X[150:])
    assert at_once.state_hash() == one_by_one.state_hash()
    after = [pin.node for pin in at_once.core.up_to_date_ledger().pins]
    assert before != after, "a subcluster of a correction was merged"
    assert any(event.kind == "united" for event in at_once.events())


@native
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(3))
def test_both_engines_heal_alike_with_corrections(way, seed):
    X = crowd(seed + 10, n=400)
    hashes = set()
    for engine in ENGINES:
        links = corrected(X[:150], seed, engine=engine, **WAYS[way])
        links.add_many(X[150:])
        hashes.add(links.state_hash())
    assert len(hashes) == 1


@engines
def test_what_corrections_require_is_gathered_only_after_a_change_of_them(engine, monkeypatch):
    counted, gather = [], Core.requirements

    def counting(core):
        counted.append(core)
        return gather(core)

    X = crowd(3, n=520)
    links = corrected(X[:150], 3, engine=engine)
    monkeypatch.setattr(Core, "requirements", counting)

    def gathered(change):
        counted.clear()
        change()
        links.add_many(X[150:400])
        for x in X[400:440]:
            links.add(x)
        return len(counted)

    cluster = links.clusters()[-1].id
    assert gathered(lambda: links.name(cluster, "somebody")) == 1
    assert gathered(lambda: None) == 0
    assert gathered(lambda: links.clusters()) == 0
    assert gathered(lambda: links.ignore(links.resolve(cluster))) <= 1
    assert gathered(lambda: links.undo(to=links.n_vectors - 1)) == 1
    assert gathered(lambda: links.retract(links.corrections()[0].number)) == 1
    assert gathered(lambda: links.add_group(X[:2])) >= 1
    assert gathered(lambda: None) == 0


@native
def test_healing_with_corrections_does_not_walk_over_all_subclusters():
    X = crowd(4, n=900)
    links = corrected(X[:150], 4, engine="native")
    links.add_many(X[150:190])
    engine = links.core.running()._core
    before = engine.n_walks
    links.add_many(X[190:])
    assert links.n_vectors // healing.POINT > 20
    assert engine.n_walks == before


@native
def test_a_vector_linked_to_another_cluster_than_its_nearest_walks_over_that_cluster_only():
    X = crowd(5, n=300, cosine=0.62)
    fixed, _ = quantise(X)
    state = State(Thresholds(0.6, 0.9, 0.7), X.shape[1], cluster_evidence=True)
    walking, asked = (choice.choose(engine, 1).make(state, None) for engine in ENGINES[::-1])
    before, elsewhere = walking._core.n_walks, 0
    for row in fixed:
        near = asked.ranked(row, 1)
        decided = [engine.add(row[np.newaxis]).at(0) for engine in (walking, asked)]
        assert decided[0] == decided[1]
        elsewhere += decided[0].kind == "linked" and decided[0].cluster != near[0].cluster
    assert elsewhere > 5
    assert walking._core.n_walks == before


@engines
def test_a_rollback_takes_back_where_merges_led(engine):
    X = crowd(6, n=400)
    fixed, _ = quantise(X)
    state = State(Thresholds(*THRESHOLDS), X.shape[1], cluster_evidence=True)
    hashes = []
    for tries in (False, True):
        bound = choice.choose(engine, 1).make(state, None)
        bound.set_healing(1.3, 0.0, alone=True)
        bound.add(fixed[:100])
        numbers = bound.state().numbers.tolist()
        pairs = {(a, b) for a in numbers for b in numbers if a < b}
        apart = {(a, b) for a, b in pairs if bound.cluster_of(a) != bound.cluster_of(b)}
        bound.require(Requirements(frozenset(apart)))
        if tries:
            bound.begin()
            bound.add(fixed[250:])
            assert not set(numbers) <= set(bound.state().numbers.tolist()), "some were merged"
            bound.rollback()
        bound.add(fixed[100:])
        hashes.append(bound.state().digest())
    assert hashes[0] == hashes[1]


@engines
@pytest.mark.parametrize("verb", ["name", "redo", "undo"])
def test_reading_between_a_change_and_the_next_vectors_changes_nothing(engine, verb):
    X = crowd(7, n=500)
    kept = 0
    for place in range(6):
        hashes = []
        for reads in (False, True):
            links = Links(*THRESHOLDS, evidence="cluster", heal="settle", engine=engine)
            links.add_many(X[:90])
            cluster = sorted(c.id for c in links.clusters())[-1 - place]
            links.name(cluster, "somebody")
            if verb != "name":
                links.undo()
            if verb == "redo":
                links.redo()
            if reads:
                links.clusters()
            links.add_many(X[90:])
            hashes.append(links.state_hash())
            kept += links.resolve(cluster) == cluster
        assert hashes[0] == hashes[1]
    assert kept == 12 or verb == "undo", "a named cluster keeps its ID"


@engines
def test_an_engine_is_told_again_after_a_change_that_was_rolled_back(engine, monkeypatch):
    X = crowd(8, n=300)
    expected, links = (corrected(X[:150], 8, engine=engine) for _ in range(2))
    expected.add_many(X[150:])

    def failing(core):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Core, "requirements", failing)
        with pytest.raises(MemoryError):
            links.add_many(X[150:])
    links.add_many(X[150:])
    assert links.state_hash() == expected.state_hash()
