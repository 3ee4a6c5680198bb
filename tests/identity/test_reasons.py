"""Explanations of a decision, of its counterfactuals, and of two vectors or clusters."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from identity.asking import merges, splits
from linkstream import Links
from linkstream.clusterer import explain as reasons
from linkstream.engine.reference import ReferenceEngine
from linkstream.engine.vector_store import ReferenceVectorStore
from linkstream.explanation import explain
from linkstream.identity import paths, review
from linkstream.paper.algorithm import fixed_point
from streams import ENGINES, around, make, unit

engines = pytest.mark.parametrize("engine", ENGINES)
evidences = pytest.mark.parametrize("evidence", ["nearest", "cluster"])
KINDS = ("generative", "lobes", "chains", "anything")


def clustered(kind="lobes", seed=1, n=60, **options):
    stream = make(kind, seed)
    links = Links(*stream.thresholds, threads=1, **options)
    links.add_many(stream.vectors[:n])
    return links, stream.vectors[n : n + 25]


def engine_of(state):
    return ReferenceEngine.from_state(state, ReferenceVectorStore(state.dimension))


def asked(state, x):
    """Return the answer of the engine for a vector: joined, linked or new, and the cluster."""
    answer = engine_of(state).ask(fixed_point(x).astype(np.int32)[np.newaxis]).at(0)
    return answer.kind, answer.cluster


def outcome(sentence):
    """Return the outcome that a sentence predicts, in the form of `asked`."""
    if "begin a cluster" in sentence:
        return "new", -1
    found = re.search(r"(linked to|join subcluster \d+ of) cluster (\d+)", sentence)
    if found:
        return "linked" if found[1] == "linked to" else "joined", int(found[2])
    return "joined", None


# What would change an answer


@evidences
@pytest.mark.parametrize("kind", KINDS)
def test_the_counterfactual_threshold_gives_the_predicted_answer(evidence, kind):
    links, rest = clustered(kind, evidence=evidence, engine="reference")
    state, told = links.state(), 0
    for x in rest:
        for sentence in links.explain(x).changes:
            found = re.match(r"with (\w+) ([\d.]+) or (more|less)", sentence)
            if not found:
                continue
            name, value, more = found[1], float(found[2]), found[3] == "more"
            for beyond in (value, value + (0.004 if more else -0.004)):
                if not 0 < beyond < 1 or (
                    name[0] == "c" and beyond**2 > state.thresholds.pair_similarity_max
                ):
                    continue
                other = replace(state, thresholds=replace(state.thresholds, **{name: beyond}))
                verdict, cluster = asked(other, x)
                expected = outcome(sentence)
                assert verdict == expected[0], sentence
                if beyond == value and expected[1] is not None:
                    assert cluster == expected[1], sentence
                told += 1
    assert told > 10


@evidences
@pytest.mark.parametrize("kind", KINDS)
def test_leaving_out_the_named_cluster_gives_the_predicted_answer(evidence, kind):
    links, rest = clustered(kind, evidence=evidence, engine="reference")
    state, told = links.state(), 0
    for x in rest:
        for sentence in links.explain(x).changes:
            found = re.match(r"without (subcluster|cluster) (\d+)", sentence)
            if not found:
                continue
            column = state.numbers if found[1] == "subcluster" else state.clusters
            stays = column != int(found[2])
            verdict, cluster = asked(_only(state, stays), x) if stays.any() else ("new", -1)
            assert (verdict, cluster) == outcome(sentence), sentence
            told += 1
    assert told


def _only(state, stays):
    """Return a state with only some of its subclusters, enough for predictions."""
    names = (
        "numbers",
        "clusters",
        "counts",
        "first_seen",
        "last_seen",
        "missing_weight",
        "flags",
        "sums",
    )
    left = {name: getattr(state, name)[stays] for name in names}
    inside = np.isin(state.edges, left["numbers"]).all(axis=1)
    return replace(state, **left, edges=state.edges[inside], edge_rules=state.edge_rules[inside])


@engines
@evidences
@pytest.mark.parametrize("kind", KINDS)
def test_the_missing_amount_is_the_threshold_minus_the_similarity(engine, evidence, kind):
    links, rest = clustered(kind, evidence=evidence, engine=engine)
    for x in rest:
        told = links.explain(x)
        best = told.nearest[0]
        assert (told.to_join is None) == (told.kind == "joined")
        assert (told.to_link is None) == (told.kind != "new")
        if told.to_join is not None:
            assert told.to_join == best.join_threshold - best.similarity > 0
        if told.to_link is not None:
            assert told.to_link == told.judged.threshold - told.judged.similarity > 0
        if told.kind == "linked":
            assert told.judged.cluster == told.cluster
            assert told.margin >= 0
        assert (told.judged.subcluster is None) == (evidence == "cluster")
        assert json.loads(json.dumps(told.to_dict()))["kind"] == told.kind
        assert str(told).count("change: ") == len(told.changes)


def test_under_cluster_evidence_the_figures_are_those_of_clusters():
    links, rest = clustered("lobes", evidence="cluster")
    state = links.state()
    seen = set()
    for x in rest:
        told = links.explain(x)
        if told.kind == "joined":
            continue
        seen.add(told.kind)
        inside = state.clusters == told.judged.cluster
        total = state.sums[inside].sum(axis=0).astype(float)
        similarity = total @ fixed_point(x) / np.linalg.norm(total) / 2**30
        assert told.judged.similarity == pytest.approx(similarity, abs=1e-9)
        assert told.judged.mass == state.counts[inside].sum()
        assert "to the whole cluster" in str(told).splitlines()[0]
    assert seen


def test_nothing_is_missing_in_an_empty_clusterer():
    told = explain(None, np.zeros(3, dtype=np.int32), limit=1)
    assert (told.to_join, told.to_link, told.changes) == (None, None, ())


# Two of anything


def _all(links):
    """Return a function that returns all events for any path."""
    return lambda _: links.events()


@engines
def test_the_path_of_two_subclusters_is_the_path_of_their_vectors(engine):
    links, _ = clustered("chains", engine=engine)
    state = links.state()
    for a, b in np.random.default_rng(0).integers(60, size=(30, 2)).tolist():
        ends = state.vectors[[a, b]].tolist()
        way = paths.between(state, *ends, _all(links), of="subclusters")
        vectors = paths.between(state, a, b, _all(links))
        assert way.steps == vectors.steps
        assert way.clusters == vectors.clusters
        assert json.loads(json.dumps(way.to_dict()))["of"] == "subclusters"


def test_two_clusters_are_explained_by_their_most_similar_subclusters():
    links, _ = clustered("lobes")
    state = links.state()
    one, other = np.unique(state.clusters)[:2].tolist()
    told = paths.between(state, one, other, _all(links), of="clusters")
    units = state.sums / np.linalg.norm(state.sums.astype(float), axis=1, keepdims=True)
    best = (units[state.clusters == one] @ units[state.clusters == other].T).max()
    assert told.similarity == pytest.approx(best, abs=1e-6)
    assert told.margin == told.similarity - told.threshold
    assert not told.together
    assert not told.steps
    assert f"clusters {one} and {other} are nearest in subclusters" in str(told)


def test_corrections_appear_in_paths_and_between_clusters():
    rng = np.random.default_rng(3)
    centres = unit(rng.standard_normal((3, 32)))
    links = Links(0.7, 0.9, 0.8, engine="reference")
    links.add_many(around(rng, np.repeat(centres, 4, axis=0), 0.95))
    ids = links.labels()[[0, 4, 8]].tolist()
    links.same(ids[0], ids[1], of="clusters")
    links.different(ids[1], ids[2], of="clusters")
    laws, state = links.core.laws(), links.state()
    way = paths.between(state, 0, 4, _all(links), laws=laws)
    assert 2 in [step.firm for step in way.steps]
    assert "a person's word" in str(way)
    assert [step.made is not None for step in way.steps if step.firm == 2] == [True]
    ours, theirs = links.labels()[[0, 8]].tolist()
    apart = paths.between(state, ours, theirs, _all(links), of="clusters", laws=laws)
    assert apart.barred is not None
    assert "kept apart: different(" in str(apart)


# Suggestions that obey


def test_joins_forbidden_by_a_correction_are_not_suggested():
    links, _ = clustered("lobes", n=100, engine="reference")
    first = links.suggest_merges(1)[0]
    links.different(*first.clusters, of="clusters")
    after = links.suggest_merges(10_000)
    assert first.clusters not in [each.clusters for each in after]
    pairs = links.n_clusters * (links.n_clusters - 1) // 2
    assert len(after) == pairs - 1


def test_ignored_clusters_are_not_suggested():
    links, _ = clustered("lobes", n=100)
    ignored = links.suggest_merges(1)[0].clusters[0]
    found = merges(links, 10_000, ignored=[ignored])
    assert found
    assert all(ignored not in each.clusters for each in found)
    assert all(each.cluster != ignored for each in splits(links, 99, ignored=[ignored]))


def test_a_mixed_cluster_with_sound_edges_is_found_by_its_parts():
    # A chain from one centre to another: each edge is sound, the two ends are strangers.
    a, b = np.eye(16)[:2]
    steps = np.linspace(0, np.pi / 2, 9)
    chain = np.cos(steps)[:, np.newaxis] * a + np.sin(steps)[:, np.newaxis] * b
    links = Links(0.8, 0.99, 0.9)
    links.add_many(chain)
    assert links.n_clusters == 1
    worst = links.suggest_splits(1)[0]
    assert worst.evidence == "parts"
    assert worst.margin < 0
    assert sorted(worst.sizes) == [4, 5]
    assert "as wholes they have similarity" in str(worst)
    assert json.loads(json.dumps(worst.to_dict()))["evidence"] == "parts"


def test_parts_are_the_two_sides_of_a_removed_edge():
    links, _ = clustered("chains", n=100)
    state = links.state()
    for each in links.suggest_splits(10_000):
        kept = [tuple(edge) for edge in state.edges.tolist() if tuple(edge) != each.subclusters]
        reached, grown = {each.subclusters[0]}, True
        while grown:
            beyond = {end for edge in kept if reached & set(edge) for end in edge}
            grown = not beyond <= reached
            reached |= beyond
        inside = np.isin(state.numbers, list(reached))
        assert each.sizes[0] == state.counts[inside].sum()
        if each.evidence == "parts":
            ours = state.sums[inside].sum(axis=0).astype(float)
            rest = state.sums[(state.clusters == each.cluster) & ~inside].sum(axis=0).astype(float)
            cosine = ours @ rest / np.linalg.norm(ours) / np.linalg.norm(rest)
            assert each.similarity == pytest.approx(cosine, abs=1e-6)


# Exemplars


def test_exemplars_are_the_most_central_the_newest_and_the_most_doubtful():
    rng = np.random.default_rng(5)
    one, other = unit(rng.standard_normal((2, 32)))
    near = around(rng, np.tile(one, (8, 1)), 0.9)
    centre, doubtful = one, unit(0.8 * one + 0.5 * other)
    links = Links(0.7, 0.6, 0.8)
    rows = np.concatenate([near[:4], [centre, doubtful], near[4:], [other, other]])
    labels = links.add_many(rows)
    assert len(set(labels[:10].tolist())) == 1 != len(set(labels.tolist()))
    found = links.exemplars(int(labels[0]), limit=3)
    assert found.central[0] == 4
    assert found.newest == (9, 8, 7)
    assert found.doubtful[0] == 5
    assert str(found).splitlines()[0].split() == ["central", *f"{found.central}"[1:-1].split()]
    assert json.loads(json.dumps(found.to_dict()))["newest"] == [9, 8, 7]


def test_vectors_that_sum_to_zero_cause_no_error():
    links = Links(0.9, 0.95, 0.9, engine="reference")
    links.add_many([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    links.same(0, 1)
    assert [each.similarity for each in links.suggest_merges(5)] == [0.0]
    assert links.suggest_splits(5) == []
    assert reasons.shown(links.core, 0) == (0,)


def test_exemplars_of_many_vectors_are_sampled_from_the_whole_stream(monkeypatch):
    links, looked = Links(0.7, 0.6, 0.9), []
    links.add_many(np.tile([[1.0, 0.0], [0.999, 0.01]], (50, 1)))
    monkeypatch.setattr(review, "LOOKED", 10)
    fetch = links.core.kept
    monkeypatch.setattr(links.core, "kept", lambda n: looked.extend(n.tolist()) or fetch(n))
    found = links.exemplars(0, limit=2)
    assert looked == list(range(0, 100, 10))
    assert found.newest == (99, 98)  # these are known without looking
    assert set(found.central) <= set(looked)
