"""The vectors of one cluster: both engines list them alike, at a cost that is the cluster's."""

from __future__ import annotations

import numpy as np
import pytest

from agreement.test_corrections import Operations
from engine.lives import CHANGES, attempt, crowd
from linkstream import Links
from linkstream.engine import choice
from linkstream.engine.contract import JOINED, NEW
from linkstream.engine.fixed_point import quantise
from linkstream.engine.state import PER_NODE, State
from linkstream.identity.settling import Healing
from linkstream.paper.thresholds import Thresholds
from streams import ENGINES, KINDS, around, make, unit

ALL = 2**62
engines = pytest.mark.parametrize("engine", ENGINES)
native = pytest.mark.skipif("native" not in ENGINES, reason="built without the compiled core")


def assert_members(engine):
    """Compare the members of every ID that was given with the labels of all vectors."""
    labels = engine.labels()
    there = set(labels.tolist())
    for cluster in range(engine.n_cluster_ids + 1):
        expected = np.flatnonzero(labels == cluster)[::-1]
        found = engine.members(cluster, ALL, ALL)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, expected)
        assert engine.has_cluster(cluster) == (cluster in there)
        before, limit = engine.n_vectors * 2 // 3, 3
        page = expected[expected < before][:limit]
        np.testing.assert_array_equal(engine.members(cluster, limit, before), page)
    assert_parts(engine)


def assert_parts(engine):
    """Compare each cluster that is read alone with its rows of the whole state."""
    whole, names = engine.state(), (*PER_NODE, "sums")
    for cluster in range(engine.n_cluster_ids + 1):
        part, rows = engine.parts(cluster), whole.clusters == cluster
        for name in names:
            np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[rows])
        edges = np.isin(whole.edges, whole.numbers[rows]).all(axis=1)
        np.testing.assert_array_equal(part.edges, whole.edges[edges])
        np.testing.assert_array_equal(part.edge_rules, whole.edge_rules[edges])
        assert part.n_vectors == whole.n_vectors
        assert len(part.vectors) == len(part.events) == 0


class Checked(Operations):
    """Operations of which some are rolled back, whose members are compared."""

    def tracked(self):
        return self.groups[0]

    def rolled_back(self):
        """Do operations in a change, look at the members within it, and take them back."""
        before = list(self.missing_weight)
        for engine in self.engines:
            engine.begin()
        for _ in range(int(self.rng.integers(1, 12))):
            self.anything()
        for engine in self.tracked():
            assert_members(engine)
        for engine in self.engines:
            engine.rollback()
        self.missing_weight = before


@native
@pytest.mark.parametrize("evidence", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_members_are_those_of_the_labels_whatever_is_done(kind, evidence, monkeypatch):
    stream = make(kind, 3, n=170)
    operations = Checked(stream, 3, monkeypatch, evidence=evidence, kernels=["portable"])
    for step in range(200):
        if len(operations.missing_weight) > 140:
            break
        operations.anything()
        if step % 7 == 0:
            operations.rolled_back()
        if step % 5 == 0:
            for engine in operations.tracked():
                assert_members(engine)
        if step % 60 == 59:
            operations.exchange()
    for engine in operations.tracked():
        assert_members(engine)


WAYS = {
    "plain": {},
    "settled": {"evidence": "cluster", "heal": Healing("settle", first=12, growth=1.5)},
    "limited": {"max_subclusters": 9},
    "idle": {"max_idle": 12, "min_size": 3},
}


@engines
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(3))
def test_members_are_those_of_the_labels_after_every_verb(engine, way, seed):
    rng = np.random.default_rng([seed, 6])
    links = Links(0.75, 0.9, 0.85, engine=engine, threads=1, **WAYS[way])
    links.add_many(crowd(rng, 40))
    verbs = [*CHANGES, "undo", "redo", "move", "same", "add_many", "add_many"]
    for step in range(60):
        attempt(links, verbs[int(rng.integers(len(verbs)))], rng)
        if step % 20 == 19:
            links = Links.from_bytes(links.to_bytes(), engine=engine, threads=1)
        if links.core.engine is not None:
            assert_members(links.core.engine)


@engines
def test_a_vector_that_comes_back_is_listed_once(engine):
    fixed, _ = quantise(np.float32([[1, 0], [1, 0.01], [0, 1], [0.01, 1]]))
    made = choice.choose(engine, 1).make(State(Thresholds(0.7, 0.95, 0.8), 2), None)
    made.add(fixed)
    assert made.members(0, ALL, ALL).tolist() == [1, 0]
    for target in (2, 0, 2, 0):
        held = made.holder(1)
        made.withdraw(fixed[1], missing_weight=0, target=held, member=1)
        assert 1 not in made.members(made.cluster_of(held), ALL, ALL)
        numbers = sorted({made.holder(member) for member in (0, 2)})
        made.place(fixed[1], outcome=JOINED, target=numbers[target > 0], member=1)
        assert_members(made)
    assert made.members(0, ALL, ALL).tolist() == [1, 0]
    made.withdraw(fixed[3], missing_weight=0, target=made.holder(3), member=3)
    made.place(fixed[3], outcome=NEW, member=3)
    assert_members(made)


@engines
def test_a_clusterer_that_does_not_track_vectors_lists_none(engine):
    fixed, _ = quantise(np.float32([[1, 0], [0, 1]]))
    state = State(Thresholds(0.7, 0.95, 0.8), 2, track_vectors=False)
    made = choice.choose(engine, 1).make(state, None)
    made.add(fixed)
    assert made.members(0, ALL, ALL).tolist() == []


@native
def test_reading_a_small_cluster_visits_what_it_holds_however_long_the_stream_is():
    rng = np.random.default_rng(1)
    small, *others = unit(rng.standard_normal((30, 64)))
    engine = choice.choose("native", 1).make(State(Thresholds(0.6, 0.9, 0.7), 64), None)
    core, visited = engine._core, []
    engine.add(quantise(np.float32(around(rng, np.repeat([small], 9, axis=0), 0.97)))[0])
    cluster = int(engine.labels()[0])
    assert (engine.labels() == cluster).all()
    for n in (500, 2_000, 6_000):
        stream = np.array(others)[rng.integers(len(others), size=n)]
        engine.add(quantise(np.float32(around(rng, stream, 0.9)))[0])
        walks, before = core.n_walks, core.n_visited
        assert engine.members(cluster, ALL, ALL).tolist() == list(range(8, -1, -1))
        assert engine.has_cluster(cluster)
        assert engine.parts(cluster).counts.sum() == 9
        assert core.n_walks == walks
        visited.append(core.n_visited - before)
    assert visited[0] == visited[1] == visited[2] <= 18


@native
def test_a_page_of_a_large_cluster_does_not_visit_all_its_vectors():
    rng = np.random.default_rng(2)
    engine = choice.choose("native", 1).make(State(Thresholds(0.6, 0.9, 0.7), 64), None)
    centre = unit(rng.standard_normal((1, 64)))
    engine.add(quantise(np.float32(around(rng, np.repeat(centre, 5_000, axis=0), 0.97)))[0])
    before = engine._core.n_visited
    assert engine.members(0, 10, ALL).tolist() == list(range(4_999, 4_989, -1))
    assert engine._core.n_visited - before < 200
