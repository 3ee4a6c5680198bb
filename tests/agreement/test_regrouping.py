"""A settlement that is applied in place: the state of one that is restored, in both engines."""

from __future__ import annotations

import io
from dataclasses import fields, replace

import numpy as np
import pytest

from linkstream import Links, Thresholds
from linkstream.engine.linkage import UNRESTRICTED, Blocs
from linkstream.engine.log import UNTRACKED_LIMIT
from linkstream.engine.regroup import Regrouped
from linkstream.engine.state import State
from linkstream.engine.totals import StateSubclusters
from linkstream.errors import ArgumentError
from linkstream.identity import settling
from linkstream.identity.regrouping import Regrouping
from streams import ENGINES, KINDS, make

OPTIONS = {
    "paper": {},
    "untracked": {"track_vectors": False, "keep_vectors": False},
    "healed": {"evidence": "cluster", "heal": "settle"},
}
LOOSE, STRICT = Thresholds(0.5, 0.9, 0.7), Thresholds(0.85, 0.9, 0.95)

native = pytest.mark.skipif("native" not in ENGINES, reason="built without the compiled core")


def parts(state):
    return {each.name: getattr(state, each.name) for each in fields(State)}


def assert_same(one, other):
    for name, value in parts(one).items():
        np.testing.assert_array_equal(value, getattr(other, name), err_msg=name)


def begun(kind, engine, options, *, corrected=False):
    stream = make(kind, 5)
    links = Links(*stream.thresholds, engine=engine, threads=2, **options)
    half = len(stream.vectors) // 2
    links.add_many(stream.vectors[:half])
    if corrected:
        labels = links.labels()
        other = int(np.argmax(labels != labels[0])) or 1  # of another cluster, if there is one
        links.name(int(labels[other]), "Ann")
        links.same(0, other)
        links.add_group(stream.vectors[half : half + 2], group="photo")
    return links, stream.vectors[half:]


def copied(links, engine):
    """A clusterer that was saved and loaded, so that it was restored."""
    return Links.from_bytes(links.to_bytes(), engine=engine)


def expected(links, thresholds):
    """The state with a settlement applied, as arrays."""
    core = links.core
    subclusters = StateSubclusters(links.state(), core.factory.unions)
    return settling.settle(subclusters, thresholds, laws=core.laws(), asked=True)[1].finish()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_settling_in_place_gives_the_state_that_is_computed_on_arrays(kind, options, engine):
    links, rest = begun(kind, engine, OPTIONS[options])
    for thresholds in (LOOSE, STRICT, links.thresholds):
        state = expected(links, thresholds)
        links.settle(apply=True, thresholds=thresholds)
        assert_same(links.state(), state)
        links.state().check()
        assert links.n_clusters == len(np.unique(state.clusters))
    restored = copied(links, engine)
    assert links.add_many(rest).tolist() == restored.add_many(rest).tolist()
    assert links.state_hash() == restored.state_hash()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_settling_in_place_obeys_corrections(kind, engine):
    links, rest = begun(kind, engine, {}, corrected=True)
    for thresholds in (LOOSE, STRICT):
        state = expected(links, thresholds)
        links.settle(apply=True, thresholds=thresholds)
        assert_same(links.state(), state)
    restored = copied(links, engine)
    assert links.add_many(rest).tolist() == restored.add_many(rest).tolist()
    assert links.state_hash() == restored.state_hash()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("options", OPTIONS)
def test_a_graph_that_is_rolled_back_leaves_nothing_behind(options, engine):
    for kind in KINDS:
        links, rest = begun(kind, engine, OPTIONS[options])
        untouched = copied(links, engine)
        core, before = links.core, links.state()
        for thresholds in (LOOSE, STRICT):
            _, graph = settling.settle(core.running(), thresholds, asked=True)
            core.running().begin()
            core.running().regroup(graph.result())
            core.running().rollback()
            assert_same(links.state(), before)
        assert links.add_many(rest).tolist() == untouched.add_many(rest).tolist()
        assert links.state_hash() == untouched.state_hash()


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_unites_rows_of_its_subclusters_like_the_sums_of_its_state(engine):
    links, _ = begun("lobes", engine, {})
    state, rng = links.state(), np.random.default_rng(1)
    inside = StateSubclusters(state, links.core.factory.unions)
    n = len(state.numbers) // 2
    places = rng.permutation(np.arange(len(state.numbers)) % n)
    order = rng.permutation(len(state.numbers))
    rows = Blocs(state.numbers[order], places[order], rng.uniform(1, 9, n))
    ours = links.core.running().unions(rows, LOOSE, UNRESTRICTED, None)
    theirs = inside.unions(rows, LOOSE, UNRESTRICTED, None)
    for name in ("kept", "gone", "margins"):
        assert getattr(ours, name).tolist() == getattr(theirs, name).tolist()
    assert len(ours.kept)
    totals = links.core.running().totals(rows.numbers, rows.places, n)
    np.testing.assert_array_equal(totals, inside.totals(rows.numbers, rows.places, n))


@pytest.mark.parametrize("engine", ENGINES)
def test_an_outline_is_the_state_without_sums_vectors_and_events(engine):
    links, _ = begun("lobes", engine, {})
    whole, outline = links.state(), links.core.running().outline()
    assert not outline.sums.size
    assert not outline.vectors.size
    assert not outline.events.size
    full = {name: getattr(whole, name) for name in ("sums", "vectors", "events")}
    assert_same(replace(outline, **full), whole)


@native
def test_a_graph_that_does_not_fit_is_refused_and_changes_nothing():
    links, _ = begun("lobes", "native", {})
    state = links.state()
    given = Regrouped(
        state.clusters, state.edges, state.edge_rules, state.events[:0], state.free_cluster
    )
    beyond = np.full_like(state.clusters, state.free_cluster)
    wrong = [
        {"clusters": state.clusters[1:]},
        {"clusters": beyond},
        {"clusters": -1 - state.clusters},
        {"edges": state.edges[::-1].copy()},
        {"edges": state.edges[:, ::-1].copy()},
        {"edges": state.edges + 10**6},
        {"edges": state.edges[1:]},
        {"edge_rules": state.edge_rules + 3},
        {"edge_rules": state.edge_rules - 3},
        {"free_cluster": state.free_cluster - 1},
        {"free_cluster": 2**62},
    ]
    for change in wrong:
        with pytest.raises(ValueError, match=r"cluster|edge|rule"):
            links.core.running().regroup(replace(given, **change))
        assert_same(links.state(), state)
    links.core.running().regroup(given)
    assert_same(links.state(), state)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("options", OPTIONS)
def test_clusters_that_are_regrouped_alone_become_what_they_become_in_the_whole_graph(
    options, engine
):
    ends = []
    for alone in (False, True):
        links, rest = begun("lobes", engine, OPTIONS[options])
        running, state = links.core.running(), links.state()
        largest = int(np.bincount(state.clusters).argmax())
        other = int(state.clusters[state.clusters != largest][0])
        graph = Regrouping(running.parts(largest, other) if alone else state)
        inside = state.clusters[np.searchsorted(state.numbers, state.edges[:, 0])] == largest
        for a, b in state.edges[inside].tolist()[:2]:
            graph.cut(a, b)
        here, there = (int(state.numbers[state.clusters == each][0]) for each in (largest, other))
        graph.tie(here, there)
        running.regroup(graph.result())
        links.add_many(rest)
        ends.append(links.state())
    assert_same(*ends)


@native
def test_clusters_of_which_some_subclusters_are_missing_are_refused():
    links, _ = begun("lobes", "native", {})
    running, state = links.core.running(), links.state()
    largest = int(np.bincount(state.clusters).argmax())
    given = Regrouping(running.parts(largest)).result()
    elsewhere = np.full_like(given.clusters, int(state.clusters[state.clusters != largest][0]))
    turned = given.numbers[::-1].copy()
    for change in ({"numbers": given.numbers[1:]}, {"clusters": elsewhere}, {"numbers": turned}):
        with pytest.raises(ValueError, match="cluster"):
            running.regroup(replace(given, **change))
        assert_same(links.state(), state)


@native
def test_rows_of_subclusters_that_do_not_exist_are_refused():
    links, _ = begun("lobes", "native", {})
    engine, numbers = links.core.running(), links.state().numbers[:4]
    places, masses = np.arange(4), np.ones(4)
    for rows in (
        Blocs(numbers + 10**6, places, masses),
        Blocs(numbers, places + 1, masses),
        Blocs(numbers, places - 1, masses),
        Blocs(numbers, places[:3], masses),
        Blocs(numbers, places, np.ones(5)),
    ):
        with pytest.raises(ValueError, match=r"subcluster|group|lengths"):
            engine.unions(rows, LOOSE, UNRESTRICTED, None)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("apply", [False, True])
def test_progress_may_read_the_clusterer_but_not_change_it(engine, apply):
    links, rest = begun("lobes", engine, {})
    before, seen = links.state_hash(), []
    links.settle(apply=False, progress=lambda share: seen.append(links.n_clusters))
    assert set(seen) == {links.n_clusters}
    with pytest.raises(ArgumentError, match="while subclusters are compared"):
        links.settle(apply=apply, progress=lambda share: links.add_many(rest))
    assert links.state_hash() == before
    links.settle(apply=True)
    assert links.add(rest[0]).sequence == len(links.labels()) - 1


@pytest.mark.parametrize("engine", ENGINES)
def test_progress_that_raises_leaves_the_state_before(engine):
    links, _ = begun("lobes", engine, {})
    before = links.state_hash()

    def end(share):
        raise io.UnsupportedOperation("enough")

    with pytest.raises(io.UnsupportedOperation):
        links.settle(apply=True, progress=end)
    assert links.state_hash() == before


@pytest.mark.parametrize("engine", ENGINES)
def test_a_clusterer_whose_vectors_were_all_removed_is_settled(engine):
    links = Links(0.7, 0.8, 0.9, engine=engine)
    links.add(np.float32([1, 2, 3]))
    links.remove(0)
    changes = links.settle(apply=True)
    assert (changes.joins, changes.cuts, changes.n_clusters_after) == ((), (), 0)


@pytest.mark.parametrize("engine", ENGINES)
def test_without_tracking_all_events_of_a_change_can_be_read_until_it_is_committed(engine):
    links, _ = begun("lobes", engine, OPTIONS["untracked"])
    state, running = links.state(), links.core.running()
    rows = np.tile(state.events[-1:], (UNTRACKED_LIMIT + 7, 1))
    given = Regrouped(state.clusters, state.edges, state.edge_rules, rows, state.free_cluster)
    running.begin()
    running.regroup(given)
    assert running.oldest_event() == state.n_events
    np.testing.assert_array_equal(running.event_rows(state.n_events)[1], rows)
    running.rollback()
    assert_same(links.state(), state)
    running.regroup(given)
    assert running.oldest_event() == state.n_events + 7
    assert len(links.state().events) == UNTRACKED_LIMIT
