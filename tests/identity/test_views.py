"""Queries: histories, paths between vectors, suggestions."""

from __future__ import annotations

import json

import numpy as np
import pytest

from linkstream import Links, Thresholds
from linkstream.errors import ArgumentError, NotTrackedError, UnknownIdError
from linkstream.paper.thresholds import anisotropic_pair_threshold
from streams import ENGINES, KINDS, around, make, unit


def clustered(kind="lobes", seed=1, **options):
    stream = make(kind, seed)
    links = Links(*stream.thresholds, **options)
    links.add_many(stream.vectors)
    return links


# Histories


@pytest.mark.parametrize("kind", KINDS)
def test_every_id_has_a_history_that_begins_with_its_creation(kind):
    links = clustered(kind, heal="settle")
    live = set(links.labels().tolist())
    given = {e.cluster for e in links.events() if e.kind == "created"}
    given |= {e.new_cluster for e in links.events() if e.kind == "split"}
    for cluster in given:
        story = links.history(cluster)
        first = story.chapters[0]
        assert first.kind in ("created", "split")
        assert cluster == (first.cluster if first.kind == "created" else first.new_cluster)
        assert (story.survivor is None) == (cluster in live)
        assert [e.sequence for e in story.chapters] == sorted(e.sequence for e in story.chapters)
        assert json.loads(json.dumps(story.to_dict()))["cluster"] == cluster


def test_a_history_reads_as_sentences():
    links = Links(0.8, 0.72, 0.9)
    rng = np.random.default_rng(0)
    centres = unit(rng.standard_normal((8, 64)))
    links.add_many(around(rng, centres[rng.integers(8, size=400)], 0.75))
    links.settle(apply=True, thresholds=Thresholds(0.65, 0.72, 0.8))
    united = next(event for event in links.events() if event.kind == "united")
    assert f"joined into cluster {united.cluster}" in str(links.history(united.gone))
    assert f"cluster {united.gone} joined it" in str(links.history(united.cluster))
    assert str(links.history(united.gone)).startswith("event ")


@pytest.mark.parametrize("engine", ENGINES)
def test_many_ids_are_resolved_like_single_ones(engine):
    stream = make("lobes", 1)
    links = Links(*stream.thresholds, engine=engine, heal="settle", evidence="cluster")
    ids = links.add_many(stream.vectors)
    links.same(0, 1, of="clusters")
    links.forget(int(links.labels()[-1]))
    resolved = links.resolve_many(ids)
    assert resolved.tolist() == [links.resolve(each) for each in ids.tolist()]
    assert set(resolved.tolist()) <= {-1, *(each.id for each in links.clusters())}
    assert len(set(ids.tolist())) > len(set(resolved.tolist()))  # some were joined


def test_a_list_of_ids_is_checked_and_may_be_empty_or_hold_minus_one():
    links = clustered()
    assert links.resolve_many([]).tolist() == []
    assert Links(0.7, 0.6, 0.9).resolve_many([-1, -1]).tolist() == [-1, -1]
    assert links.resolve_many(np.array([0], dtype=np.uint8)).tolist() == [0]
    for wrong in ([0, 10_000], [-2], np.array([2**63], dtype=np.uint64)):
        with pytest.raises(UnknownIdError):
            links.resolve_many(wrong)
    for wrong in ([[0]], 0, [0.5], ["a"], [[0], [1, 2]], [True]):
        with pytest.raises(ArgumentError, match="1-D array of integers"):
            links.resolve_many(wrong)


def test_an_unknown_id_has_no_history():
    with pytest.raises(UnknownIdError):
        clustered().history(10_000)


# Ways between vectors


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_path_between_two_vectors_consists_of_edges_with_figures(engine, kind):
    links = clustered(kind, engine=engine)
    state, labels = links.state(), links.labels()
    edges = {tuple(edge) for edge in state.edges.tolist()}
    rng = np.random.default_rng(0)
    t_c, _, t_p = make(kind, 1).thresholds
    counts = dict(zip(state.numbers.tolist(), state.counts.tolist(), strict=True))
    for a, b in rng.integers(len(labels), size=(40, 2)).tolist():
        pair = links.explain_pair(a, b)
        assert pair.together == (labels[a] == labels[b])
        if not pair.together:
            assert pair.steps == ()
            continue
        ends = [pair.subclusters[0], *(step.subclusters[1] for step in pair.steps)]
        assert ends[-1] == pair.subclusters[1]
        for step, start in zip(pair.steps, ends, strict=False):
            one, other = step.subclusters
            assert one == start
            assert (min(one, other), max(one, other)) in edges
            needed = anisotropic_pair_threshold(t_c, t_p, counts[one], counts[other])
            assert step.threshold == pytest.approx(needed, abs=1e-12)
            made = links.events(since=step.made)[0]
            assert made.kind in ("linked", "rejoined", "united")


def test_a_path_reads_as_lines():
    links = clustered("chains")
    labels = links.labels()
    pairs = [links.explain_pair(0, i) for i in range(len(labels))]
    longest = max(pairs, key=lambda pair: len(pair.steps))
    assert len(str(longest).splitlines()) == 1 + len(longest.steps)
    assert "in one subcluster" in str(links.explain_pair(0, 0))
    assert json.loads(json.dumps(longest.to_dict()))["together"] is True


def test_unknown_or_untracked_vectors_are_refused():
    with pytest.raises(UnknownIdError, match="vector 5000"):
        clustered().explain_pair(0, 5000)
    with pytest.raises(UnknownIdError, match="True"):
        clustered().explain_pair(0, True)
    with pytest.raises(NotTrackedError):
        clustered(track_vectors=False).explain_pair(0, 1)


# Suggestions


def test_two_fragments_of_one_identity_are_the_first_suggestion():
    rng = np.random.default_rng(2)
    centres = unit(rng.standard_normal((5, 64)))
    links = Links(0.85, 0.8, 0.9)
    links.add_many(np.repeat(centres, 10, axis=0))
    links.add_many(np.repeat(around(rng, centres[:1], 0.7), 10, axis=0))  # the first, seen anew
    best, *rest = links.suggest_merges()
    assert best.clusters == (0, 5)
    assert best.sizes == (10, 10)
    assert best.similarity == pytest.approx(0.7, abs=1e-6)
    assert best.margin == best.similarity - best.threshold
    assert [each.margin for each in rest] == sorted((each.margin for each in rest), reverse=True)
    assert "cluster 0 (10 vectors) and cluster 5 (10) may be one" in str(best)
    assert json.loads(json.dumps(best.to_dict()))["clusters"] == [0, 5]


def test_suggestions_that_pass_are_those_of_healing_and_settling():
    links = clustered("lobes")
    for each in links.suggest_merges(limit=50):
        state = links.state()
        counts = [int(state.counts[state.clusters == cluster].sum()) for cluster in each.clusters]
        assert tuple(counts) == each.sizes


@pytest.mark.parametrize("kind", ["lobes", "chains", "hub"])
def test_the_weakest_edges_are_suggested_with_their_parts(kind):
    links = clustered(kind)
    state = links.state()
    found = links.suggest_splits(limit=10_000)
    assert len(found) == len(state.edges)
    assert [each.margin for each in found] == sorted(each.margin for each in found)
    sizes = {cluster.id: cluster.size for cluster in links.clusters()}
    for each in found:
        assert sum(each.sizes) == sizes[each.cluster]
        assert min(each.sizes) > 0
    if found:
        assert f"cluster {found[0].cluster} may be two" in str(found[0])


def test_an_empty_clusterer_has_no_suggestions():
    assert Links(0.7, 0.6, 0.9).suggest_merges() == []
    assert Links(0.7, 0.6, 0.9).suggest_splits() == []
