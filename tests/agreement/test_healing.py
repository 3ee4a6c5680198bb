"""Healing inside the engine: both engines, kernels, threads and ways to call it give one answer."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream import Links
from linkstream.engine import choice, healing, linkage
from linkstream.engine.contract import Requirements
from linkstream.engine.fixed_point import quantise
from linkstream.engine.forest import DUE, SETTLED
from linkstream.engine.linkage import Restrictions
from linkstream.engine.state import State
from linkstream.identity.settling import Healing
from linkstream.paper.thresholds import Thresholds
from streams import ENGINES, around, make, unit

KINDS = ("generative", "lobes", "chains", "hub", "duplicates", "grid", "anything")
engines = pytest.mark.parametrize("engine", ENGINES)
kinds = pytest.mark.parametrize("kind", KINDS)


def clusterer(stream, **options):
    options.setdefault("evidence", "cluster")
    options.setdefault("heal", "settle")
    return Links(*stream.thresholds, **options)


def crowd(seed, n=700, people=9, d=24, cosine=0.72):
    """Return vectors of people whose clusters begin as fragments and overlap a little."""
    rng = np.random.default_rng(seed)
    centres = unit(rng.standard_normal((people, d)))
    y = rng.integers(people, size=n)
    return around(rng, centres[y], cosine).astype(np.float32), y


def made(engine, thresholds, dimension, *, alone, evidence=True, steadiness=0.0):
    state = State(Thresholds(*thresholds), dimension, cluster_evidence=evidence)
    found = choice.choose(engine, 1).make(state, None)
    found.set_healing(1.3, steadiness, alone=alone)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_rows_are_united_as_margin_linkage_unites_them(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    centres = unit(rng.standard_normal((5, 12)))
    fixed, _ = quantise(around(rng, centres[rng.integers(5, size=n)], 0.8))
    weights = rng.integers(1, 9, size=n)
    sums = fixed.astype(np.int64) * weights[:, np.newaxis]
    labels = rng.choice([-1, -1, -1, 0, 1], size=n)
    bars = {(int(a), int(b)) for a, b in rng.integers(n, size=(4, 2)) if a != b}
    rows = [healing._Row([i], i, sums[i], float(weights[i]), int(labels[i])) for i in range(n)]
    test = Thresholds(0.7, 0.8, 0.85)
    pairs = healing.unite(rows, bars, test, 0.0)
    barred = np.array(sorted(bars), dtype=np.int64).reshape(-1, 2)
    found = linkage.unions(sums, weights.astype(float), test, Restrictions(barred, labels))
    assert pairs == list(zip(found.kept.tolist(), found.gone.tolist(), strict=True))
    assert pairs


@pytest.mark.skipif("native" not in ENGINES, reason="built without the compiled core on purpose")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("steadiness", [0.0, 0.02])
@pytest.mark.parametrize("final_after", [None, 150])
@pytest.mark.parametrize("evidence", ["nearest", "cluster"])
def test_both_engines_cut_and_tie_the_same_clusters(seed, steadiness, final_after, evidence):
    X, _ = crowd(seed)
    heal = Healing("settle", steadiness=steadiness, final_after=final_after)
    both = [Links(0.7, 0.8, 0.8, evidence=evidence, heal=heal, engine=e) for e in ENGINES]
    for links in both:
        links.add_many(X)
    assert both[0].events() == both[1].events()
    assert both[0].state_hash() == both[1].state_hash()
    kinds = {event.kind for event in both[0].events()}
    assert {"united", "split"} <= kinds


@pytest.mark.skipif("native" not in ENGINES, reason="built without the compiled core on purpose")
@kinds
def test_kernels_and_threads_do_not_change_healing(kind, monkeypatch):
    from linkstream import _core

    stream, seen = make(kind, 3), set()
    for kernel in _core.kernels():
        monkeypatch.setenv("LINKSTREAM_KERNEL", kernel)
        for threads in (1, 3):
            links = clusterer(stream, engine="native", threads=threads)
            links.add_many(stream.vectors)
            seen.add(links.state_hash())
    assert len(seen) == 1


@pytest.mark.skipif("native" not in ENGINES, reason="built without the compiled core on purpose")
def test_a_batch_equals_one_by_one_where_hundreds_of_clusters_are_near():
    rng, n, d = np.random.default_rng(5), 700, 96
    common = unit(rng.standard_normal((1, d)))
    centres = unit(0.92 * common + 0.39 * unit(rng.standard_normal((n, d))))
    begun = np.repeat(np.arange(n), 6)  # light clusters would be linked with one another
    X = around(rng, centres[np.concatenate([begun, rng.integers(n, size=1500)])], 0.985)
    X = X.astype(np.float32)
    batch, one_by_one = (Links(0.9, 0.99, 0.95, evidence="cluster", heal="settle") for _ in "ab")
    for links in (batch, one_by_one):
        links.add_many(X[: len(begun)])
        links.add(X[0], weight=0.25)
    labels, rows = batch.labels(), unit(X[: len(begun)])
    sums = np.array([rows[labels[:-1] == c].sum(axis=0) for c in np.unique(labels)])
    near = unit(X[-300:]) @ unit(sums).T >= batch.thresholds.edge(1, 1)
    assert np.median(near.sum(axis=1)) > 530
    batch.add_many(X[len(begun) :])
    for vector in X[len(begun) :]:
        one_by_one.add(vector)
    assert batch.state_hash() == one_by_one.state_hash()


@engines
@pytest.mark.parametrize("final_after", [None, 200])
@pytest.mark.parametrize("tracked", [True, False])
def test_saving_between_two_points_does_not_change_healing(engine, tracked, final_after):
    X, _ = crowd(4)
    heal = Healing("settle", final_after=final_after)
    options = {"evidence": "cluster", "heal": heal, "engine": engine, "track_vectors": tracked}
    options["keep_vectors"] = tracked
    whole = Links(0.7, 0.8, 0.8, **options)
    whole.add_many(X)
    links = Links(0.7, 0.8, 0.8, **options)
    for part in np.split(X, [5, 31, 32, 33, 100, 300, 301, 650]):
        links.add_many(part)
        links = Links.from_bytes(links.to_bytes(), engine=engine)
    assert links.state_hash() == whole.state_hash()
    assert any(event.kind == "united" for event in whole.events())


@engines
def test_an_engine_that_heals_alone_does_what_a_caller_does_at_each_point(engine):
    X, _ = crowd(5)
    fixed, _ = quantise(X)
    alone = made(engine, (0.7, 0.8, 0.8), X.shape[1], alone=True)
    alone.add(fixed)
    called = made(engine, (0.7, 0.8, 0.8), X.shape[1], alone=False)
    for part in np.split(fixed, range(healing.POINT, len(fixed), healing.POINT)):
        called.add(part)
        if called.n_vectors % healing.POINT == 0:
            called.heal()
    assert called.state().digest() == alone.state().digest()
    assert np.array_equal(called.event_rows(0)[1], alone.event_rows(0)[1])


@engines
def test_subclusters_that_must_stay_apart_and_named_clusters_are_not_united(engine):
    X, _ = crowd(6, n=320)
    fixed, _ = quantise(X)
    free = made(engine, (0.7, 0.8, 0.8), X.shape[1], alone=False)
    free.add(fixed)
    bound = made(engine, (0.7, 0.8, 0.8), X.shape[1], alone=False)
    bound.add(fixed)
    before = free.state()
    free.heal()
    after = free.state()
    united = [
        (a, b)
        for a in before.numbers.tolist()
        for b in before.numbers.tolist()
        if a < b
        and bound.cluster_of(a) != bound.cluster_of(b)
        and free.cluster_of(a) == free.cluster_of(b)
    ]
    assert united, "something to keep apart"
    labels = {int(cluster): i for i, cluster in enumerate(np.unique(before.clusters))}
    bound.require(Requirements(frozenset(united), labels))
    bound.heal()
    assert not any(bound.cluster_of(a) == bound.cluster_of(b) for a, b in united)
    assert len(np.unique(after.clusters)) != len(np.unique(before.clusters))


@engines
def test_a_cluster_of_more_subclusters_than_are_settled_one_by_one_is_not_cut(engine):
    rng = np.random.default_rng(7)
    n = healing.LEAVES + 44
    around_two = around(rng, np.repeat(unit(rng.standard_normal((2, 64))), n // 2, axis=0), 0.6)
    fixed, _ = quantise(around_two.astype(np.float32))
    engine = made(engine, (0.2, 0.99, 0.95), 64, alone=False)
    first = engine.place(fixed[0], outcome=2)
    for row in fixed[1:]:
        engine.place(row, outcome=1, target=first.subcluster, rule=SETTLED)
    engine.heal()
    assert engine.n_clusters == 1
    assert not (engine.state().flags & DUE).any()


def share_that_stays(engine, **options):
    """Return the share of vectors that stay in the cluster they were given, over three crowds."""
    shares = []
    for seed in range(3):
        X, _ = crowd(seed, n=500)
        heal = Healing("settle", **options)
        links = Links(0.7, 0.8, 0.8, evidence="cluster", heal=heal, engine=engine)
        given = [links.resolve(int(i)) for i in links.add_many(X)]
        shares.append(np.mean(np.array(given) == links.labels()))
    return np.mean(shares)


@engines
def test_steadiness_leaves_more_vectors_in_the_cluster_they_were_given(engine):
    still = [share_that_stays(engine, steadiness=steadiness) for steadiness in (0.0, 0.1)]
    assert still[1] > still[0]


def apart_after_being_together(links, X, final_after):
    """Add vectors point by point; return the pairs of final vectors whose clusters came apart."""
    parted = 0
    for first in range(0, len(X), healing.POINT):
        before = links.labels()
        links.add_many(X[first : first + healing.POINT])
        old = max(links.n_vectors - final_after, 0)
        before, now = before[:old], links.labels()[:old]
        together = before[:, np.newaxis] == before
        parted += int((together & (now[:, np.newaxis] != now)).sum()) // 2
    return parted


@engines
def test_final_vectors_of_one_cluster_stay_together(engine):
    parted = []
    for final_after in (None, 100):
        heal, pairs = Healing("settle", final_after=final_after), 0
        for seed in range(3):
            X, _ = crowd(seed, n=400)
            links = Links(0.7, 0.8, 0.8, evidence="cluster", heal=heal, engine=engine)
            pairs += apart_after_being_together(links, X, 100)
        parted.append(pairs)
    assert parted[0] > 0
    assert parted[1] == 0


@engines
def test_with_final_ids_more_vectors_stay_in_the_cluster_they_were_given(engine):
    still = [share_that_stays(engine, final_after=final_after) for final_after in (None, 50)]
    assert still[1] > still[0]
