"""Healing: opt-in, at fixed numbers of vectors, independent of batch sizes."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream import Links
from linkstream.errors import ArgumentError, SnapshotError
from linkstream.identity.settling import Healing
from linkstream.metrics import accuracy
from replay import Replay
from streams import ENGINES, KINDS, around, make, unit

MODES = ("join", "settle")


def late_fragments(seed=0, d=64):
    """Return identities that begin as fragments: few vectors at first, many later."""
    rng = np.random.default_rng(seed)
    centres = unit(rng.standard_normal((6, d)))
    y = rng.integers(6, size=900)
    return around(rng, centres[y], 0.72).astype(np.float32), y


def test_healing_is_off_by_default():
    X, _ = late_fragments()
    links = Links(0.66, 0.6, 0.75)
    links.add_many(X)
    assert links.healing is None
    assert not any(event.kind == "united" for event in links.events())


@pytest.mark.parametrize("mode", MODES)
def test_healing_joins_fragments_that_the_paper_leaves(mode):
    X, y = late_fragments()
    figures = []
    for heal in (None, mode):
        links = Links(0.72, 0.6, 0.75, heal=heal)
        links.add_many(X)
        figures.append((accuracy(y, links.labels()), links.n_clusters))
    (without, many), (healed, fewer) = figures
    assert healed > without
    assert fewer < many


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_healing_does_not_depend_on_batch_sizes(engine, mode, kind):
    stream = make(kind, 1)
    X = stream.vectors[:160]
    seen = []
    for cuts in ([], [1, 2, 3, 50, 51, 60], [49, 100]):
        links = Links(*stream.thresholds, engine=engine, heal=mode)
        ids = [i for part in np.split(X, cuts) if len(part) for i in links.add_many(part)]
        seen.append((ids, links.state_hash()))
    one_by_one = Links(*stream.thresholds, engine=engine, heal=mode)
    seen.append(([one_by_one.add(x).cluster for x in X], one_by_one.state_hash()))
    assert all(ids == seen[0][0] and state == seen[0][1] for ids, state in seen)


@pytest.mark.skipif("native" not in ENGINES, reason="built without the compiled core on purpose")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_both_engines_heal_alike(mode, kind):
    stream = make(kind, 2)
    both = [Links(*stream.thresholds, engine=engine, heal=mode) for engine in ENGINES]
    for links in both:
        links.add_many(stream.vectors)
        replay = Replay(links.events())
        assert replay.labels() == links.labels().tolist()
    assert both[0].state_hash() == both[1].state_hash()


@pytest.mark.parametrize("mode", MODES)
def test_healing_continues_after_save_and_load(mode):
    X, _ = late_fragments()
    whole = Links(0.72, 0.6, 0.75, heal=mode)
    whole.add_many(X)
    links = Links(0.72, 0.6, 0.75, heal=mode)
    links.add_many(X[:333])
    links = Links.from_bytes(links.to_bytes())
    assert links.healing == whole.healing
    links.add_many(X[333:])
    assert links.state_hash() == whole.state_hash()


def test_a_cluster_with_few_vectors_is_not_healed():
    X, _ = late_fragments()
    cautious = Links(0.72, 0.6, 0.75, heal=Healing("join", min_size=10_000))
    cautious.add_many(X)
    assert not any(event.kind == "united" for event in cautious.events())


def test_a_stray_subcluster_cannot_tie_two_clusters():
    """A single bridge joined two identities when pairs of nodes were tested."""
    rng = np.random.default_rng(3)
    a, b = unit(rng.standard_normal((2, 48)))
    X = around(rng, np.array([a] * 80 + [b] * 80 + [unit(a + b)] * 12), 0.93)
    y = np.repeat([0, 1], 80)
    links = Links(0.8, 0.8, 0.7, heal="join")
    links.add_many(X)
    assert accuracy(y, links.labels()[:160]) == 1.0


def test_an_untested_t_p_does_not_join_all_clusters():
    rng = np.random.default_rng(4)
    centre = unit(rng.standard_normal(2048))
    centres = around(rng, np.tile(centre, (8, 1)), 0.75)  # strangers of a cone: similarity .56
    y = rng.integers(8, size=400)
    X = around(rng, centres[y], 0.9)
    for heal in (None, "join"):
        links = Links(0.74, 0.65, 0.548, heal=heal)  # T_p below what any two clusters have
        links.add_many(X)
        assert accuracy(y, links.labels()) == 1.0
    everything = links.settle(thresholds=links.thresholds)
    assert everything.n_clusters_after == 1  # what s~ alone would do


def test_healing_runs_at_fixed_numbers_of_vectors():
    healing = Healing("join", first=10, growth=1.5)
    marks = [healing.after(n) for n in range(100)]
    assert sorted(set(marks)) == [10, 15, 22, 33, 49, 73, 109]
    assert all(mark > n for n, mark in enumerate(marks))


@pytest.mark.parametrize(
    "given",
    [
        "mend",
        "rebuild",
        7,
        True,
        {"mode": "join", "growth": 1.0},
        {"first": 0},
        {"min_size": 0},
        {"growth": float("nan")},
        {"mode": "settle", "final_after": 0},
        {"mode": "settle", "final_after": 10.0},
        {"mode": "settle", "final_after": 10**13},
        {"mode": "settle", "final_after": 100, "steadiness": None},
        {"mode": "join", "final_after": 100},
    ],
)
def test_invalid_healing_options_are_refused(given):
    with pytest.raises(ArgumentError):
        Links(0.7, 0.6, 0.9, heal=Healing(**given) if isinstance(given, dict) else given)


def test_a_snapshot_with_impossible_healing_is_refused():
    with pytest.raises(SnapshotError, match="healing"):
        Healing.read({"mode": "mend"})
    with pytest.raises(SnapshotError, match="healing"):
        Healing.read([1, 2])
