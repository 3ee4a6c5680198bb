"""The review queue, with answers from the labels."""

from __future__ import annotations

import json

import numpy as np
import pytest

from identity.asking import queue
from linkstream import Links
from linkstream.engine.forest import PINNED
from linkstream.metrics import accuracy
from linkstream.paper.generative import sample_stream
from streams import ENGINES, make

engines = pytest.mark.parametrize("engine", ENGINES)

FRAGMENTS, BLENDS = (0.68, 0.84, 0.95), (0.52, 0.84, 0.45)  # thresholds: too strict, too lax


def voices(thresholds, seed=0, **options):
    """Return twenty identities of the model of the paper, and the labels."""
    X, y = sample_stream(20, 12, 24, 0.16, np.random.default_rng(seed))
    links = Links(*thresholds, threads=1, **options)
    links.add_many(X)
    return links, y


def answer(links, y, a, b):
    """Answer by the labels of the first vector of each subcluster."""
    vectors = links.state().vectors.tolist()
    same = y[vectors.index(a)] == y[vectors.index(b)]
    (links.same if same else links.different)(a, b, of="subclusters")
    return bool(same)


def reviewed(links, y, count):
    """Return the accuracy before and after each answer."""
    scores = [accuracy(y, links.labels())]
    for _ in range(count):
        for each in queue(links):
            answer(links, y, each.a, each.b)
        scores.append(accuracy(y, links.labels()))
    return scores


def asked_at_random(links, y, count, seed):
    """Return the accuracies with questions drawn at random."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        state = links.state()
        edges = state.edges[state.edge_rules != PINNED]
        if len(edges) and rng.random() < 0.5:
            a, b = rng.choice(edges).tolist()
        else:
            pair = rng.choice(np.unique(state.clusters), 2, replace=False)
            a, b = (int(rng.choice(state.numbers[state.clusters == c])) for c in pair)
        answer(links, y, a, b)
    return accuracy(y, links.labels())


@engines
@pytest.mark.parametrize("thresholds", [FRAGMENTS, BLENDS])
def test_the_review_queue_corrects_more_than_random_questions(engine, thresholds):
    links, y = voices(thresholds, engine=engine)
    start, end = accuracy(y, links.labels()), reviewed(links, y, 25)[-1]
    drawn = [
        asked_at_random(voices(thresholds, engine=engine)[0], y, 25, seed) for seed in range(3)
    ]
    assert end > start + 0.05
    assert end > max(drawn) + 0.03


@pytest.mark.parametrize("thresholds", [FRAGMENTS, BLENDS])
def test_120_answers_reach_an_accuracy_of_99_percent(thresholds):
    links, y = voices(thresholds)
    assert max(reviewed(links, y, 120)) > 0.99


@engines
@pytest.mark.parametrize("thresholds", [FRAGMENTS, BLENDS])
def test_questions_implied_by_earlier_answers_are_not_asked(engine, thresholds):
    links, y = voices(thresholds, engine=engine)
    seen = set()
    for _ in range(40):
        (each,) = queue(links)
        state, laws = links.state(), links.core.laws()
        cluster = dict(zip(state.numbers.tolist(), state.clusters.tolist(), strict=True))
        assert (cluster[each.a], cluster[each.b]) == each.clusters
        assert (each.kind == "cut") == (each.clusters[0] == each.clusters[1])
        assert frozenset((each.a, each.b)) not in seen
        assert each.b not in laws.bloc(each.a)
        sides = [state.numbers[state.clusters == c].tolist() for c in each.clusters]
        assert each.kind == "cut" or laws.clash(*sides) is None
        seen.add(frozenset((each.a, each.b)))
        answer(links, y, each.a, each.b)


@pytest.mark.parametrize("kind", ["lobes", "chains", "generative", "duplicates", "anything"])
def test_the_queue_is_a_function_of_the_state_and_its_head_does_not_depend_on_its_length(kind):
    stream = make(kind, 2)
    links = Links(*stream.thresholds, threads=1)
    links.add_many(stream.vectors)
    before = links.state_hash()
    long = queue(links, 20)
    assert queue(links, 20) == long
    assert queue(links, 1) == long[:1]
    assert links.state_hash() == before
    assert [each.gain for each in long] == sorted((each.gain for each in long), reverse=True)


def test_questions_of_one_list_do_not_depend_on_each_other():
    links, _ = voices(FRAGMENTS)
    found = queue(links, 40)
    cuts = [each.clusters[0] for each in found if each.kind == "cut"]
    assert len(cuts) == len(set(cuts))
    groups = {}
    for each in found:
        if each.kind == "join":
            one, other = (groups.setdefault(c, {c}) for c in each.clusters)
            assert one is not other
            one |= other
            groups.update((c, one) for c in other)


@pytest.mark.parametrize("kind", ["lobes", "mirrored", "generative", "anything"])
def test_answers_to_one_list_are_accepted_in_any_order(kind):
    stream, rng = make(kind, 3), np.random.default_rng(3)
    links = Links(*stream.thresholds, threads=1)
    links.add_many(stream.vectors[:100])
    for _ in range(8):
        found = queue(links, 6)
        for place in rng.permutation(len(found)).tolist():  # somebody who guesses
            each = found[place]
            (links.same if rng.random() < 0.5 else links.different)(each.a, each.b, of=each.of)


def test_figures_of_a_question_are_those_of_its_two_sides():
    links, _ = voices(BLENDS)
    state = links.state()
    for each in queue(links, 40):
        assert each.margin == each.similarity - each.threshold
        assert 0 <= each.gain <= min(each.sizes)
        vectors = [np.flatnonzero(state.vectors == end) for end in each.subclusters]
        assert all(set(v) <= set(n.tolist()) for v, n in zip(each.vectors, vectors, strict=True))
        if each.kind == "cut":
            assert sorted(each.subclusters) in state.edges.tolist()
            assert sum(each.sizes) == state.counts[state.clusters == each.clusters[0]].sum()
        else:
            sums = [
                state.sums[state.clusters == c].sum(axis=0).astype(float) for c in each.clusters
            ]
            cosine = sums[0] @ sums[1] / np.linalg.norm(sums[0]) / np.linalg.norm(sums[1])
            assert each.similarity == pytest.approx(cosine, abs=1e-6)


def test_answers_adjust_the_probability_of_joins():
    links, _ = voices(FRAGMENTS)
    state = links.state()
    before = {each.clusters: each.gain for each in queue(links, 200) if each.kind == "join"}
    for each in [each for each in queue(links, 50) if each.kind == "join"][:5]:
        links.different(each.a, each.b, of="subclusters")
    assert np.array_equal(links.state().clusters, state.clusters)
    after = {each.clusters: each.gain for each in queue(links, 200) if each.kind == "join"}
    both = before.keys() & after.keys()
    assert both
    assert all(after[pair] <= before[pair] for pair in both)
    assert sum(after[pair] for pair in both) < sum(before[pair] for pair in both)


def test_ignored_clusters_are_not_asked_about():
    links, _ = voices(FRAGMENTS)
    first = queue(links)[0]
    rest = queue(links, 50, ignored=first.clusters)
    assert rest
    assert all(set(each.clusters).isdisjoint(first.clusters) for each in rest)


def test_a_question_reads_as_a_sentence_and_as_json():
    links, _ = voices(FRAGMENTS)
    texts = {each.kind: (str(each), each) for each in queue(links, 60)}
    join, each = texts["join"]
    assert join.startswith(f"are clusters {each.clusters[0]} ({each.sizes[0]} vectors) and")
    assert f"subclusters {each.a} and {each.b}, vectors " in join
    assert "are the two parts of cluster" in texts["cut"][0]
    plain = json.loads(json.dumps(each.to_dict()))
    assert (plain["a"], plain["b"], plain["of"]) == (each.a, each.b, "subclusters")
    assert plain["margin"] == each.margin


def test_the_caller_chooses_the_vectors_to_show():
    links, _ = voices(FRAGMENTS)
    (each,) = queue(links, show=lambda number: (number, 7))
    assert each.vectors == ((each.a, 7), (each.b, 7))
    untracked, _ = voices(FRAGMENTS, track_vectors=False)
    (each,) = queue(untracked)
    assert each.vectors == ((), ())
    assert "vectors" not in str(each).split("look at")[1]


def test_no_vector_or_one_vector_gives_no_question():
    links = Links(0.7, 0.6, 0.9)
    assert links.review_queue(3) == []
    links.add([1.0, 0.0])
    assert queue(links, 3) == []
