"""Reviews, suggestions and exemplars against their definition, and what they cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.lives import CHANGES, attempt, crowd
from identity import review_model as model
from linkstream import Links
from linkstream.clusterer import explain
from linkstream.clusterer.confidence import setting
from linkstream.confidence import Curve, Model
from linkstream.errors import LinkstreamError
from linkstream.identity.settling import Healing
from streams import ENGINES, KINDS, around, make, unit

engines = pytest.mark.parametrize("engine", ENGINES)
native = pytest.mark.skipif("native" not in ENGINES, reason="built without the compiled core")


def short_lists(monkeypatch, listed=3):
    """Let the compiled index list few pairs, so that its bounds matter."""
    if "native" in ENGINES:
        from linkstream.engine import native_index

        monkeypatch.setattr(native_index, "LISTED", listed)


def assert_questions(links, limit=4):
    """Compare all questions with their definition."""
    core = links.core
    state, laws, ignored = links.state(), core.laws(), core.ledger.ignored
    if core.engine is None:
        assert links.review_queue() == links.suggest_merges() == links.suggest_splits() == []
        return
    fetch = None if core.vectors is None else core.vectors.rows
    options = {"laws": laws, "ignored": ignored}
    odds = core.confidence.odds_of_pairs()
    asked = model.questions(
        state,
        **options,
        limit=limit,
        show=lambda n: model.central(state, n, fetch, limit=3),
        odds=(odds.even, odds.spread),
    )
    assert [replace(each, probability=None) for each in links.review_queue(limit)] == asked
    merges = [replace(each, probability=None) for each in links.suggest_merges(limit)]
    assert merges == model.merges(state, limit, **options)
    assert links.suggest_splits(limit) == model.splits(state, limit, ignored=ignored)


def assert_exemplars(links):
    """Compare the exemplars of every cluster with their definition."""
    state, fetch = links.state(), links.core.kept
    for cluster in np.unique(state.clusters).tolist():
        found = links.exemplars(cluster, limit=3)
        assert found == model.exemplars(state, cluster, fetch, limit=3)


@engines
@pytest.mark.parametrize("kind", KINDS)
def test_questions_are_those_of_the_definition_as_a_stream_goes_on(engine, kind, monkeypatch):
    short_lists(monkeypatch)
    stream = make(kind, 5, n=120)
    links = Links(*stream.thresholds, engine=engine, threads=2)
    for start in range(0, 120, 12):
        links.add_many(stream.vectors[start : start + 12])
        assert_questions(links)
    assert_exemplars(links)


@engines
@pytest.mark.parametrize("kind", KINDS)
def test_questions_are_ordered_by_the_curve_of_a_tuning_as_it_comes_and_goes(
    engine, kind, monkeypatch
):
    short_lists(monkeypatch)
    stream = make(kind, 5, n=120)
    links = Links(*stream.thresholds, engine=engine, threads=2)
    curve = Curve(0.0, 5.0, -1.0, 1.0, 0.9, 40, 400)
    orders = set()
    for step in range(20):
        links.add_many(stream.vectors[6 * step : 6 * step + 6])
        same = replace(curve, intercept=float(step % 3), slope=(5.0, 200.0, 0.0)[step % 3])
        known = Model(setting(links.core), curve, curve, same, 40)
        links.confidence.use(None if step % 4 == 3 else known)
        assert_questions(links)
        orders.add(links.confidence.odds_of_pairs())
    assert len(orders) == 3


@engines
@pytest.mark.parametrize("seed", range(12))
def test_questions_are_those_of_the_definition_whatever_is_done(engine, seed, monkeypatch):
    short_lists(monkeypatch, listed=1 + seed)
    rng = np.random.default_rng([seed, 3])
    options = [{}, {"evidence": "cluster"}, {"heal": Healing("settle", first=12, growth=1.5)}]
    links = Links(0.75, 0.9, 0.85, engine=engine, threads=1, **options[seed % 3])
    links.add_many(crowd(rng, 30))
    verbs = list(CHANGES)
    for step in range(60):
        attempt(links, verbs[int(rng.integers(len(verbs)))], rng)
        if step % 3 == 0:
            assert_questions(links, limit=1 + step % 7)
        if step == 40:
            links = Links.from_bytes(links.to_bytes(), engine=engine, threads=1)
    assert_exemplars(links)


@engines
def test_answers_move_the_even_odds_and_the_next_questions_follow(engine, monkeypatch):
    short_lists(monkeypatch, listed=2)
    rng = np.random.default_rng(8)
    links = Links(0.75, 0.9, 0.85, engine=engine, threads=1)
    links.add_many(crowd(rng, 60))
    for step in range(25):
        (question,) = links.review_queue(1)
        answer = links.same if rng.random() < 0.5 else links.different
        answer(question.a, question.b, of=question.of)
        assert_questions(links, limit=1 + step % 5)


@engines
def test_questions_within_a_change_that_is_taken_back_leave_no_trace(engine):
    rng = np.random.default_rng(2)
    links = Links(0.75, 0.9, 0.85, engine=engine, threads=1)
    links.add_many(crowd(rng, 40))
    before = links.review_queue(9), links.suggest_merges(9), links.suggest_splits(9)
    links.core.engine.begin()
    links.core.engine.add(links.core.quantised(crowd(rng, 20)))
    index = links.core.engine.clusters
    assert index.read(parts=True, budget=2**40)
    links.core.engine.rollback()
    assert before == (links.review_queue(9), links.suggest_merges(9), links.suggest_splits(9))


@engines
def test_names_that_come_and_go_bar_and_free_pairs(engine, monkeypatch):
    short_lists(monkeypatch, listed=2)
    rng = np.random.default_rng(4)
    links = Links(0.75, 0.9, 0.85, engine=engine, threads=1)
    links.add_many(crowd(rng, 50))
    ids = [each.id for each in links.clusters()]
    for step in range(30):
        cluster = ids[int(rng.integers(len(ids)))]
        try:
            links.rename(cluster, [None, "Ann", "Bob"][int(rng.integers(3))])
        except LinkstreamError:
            links.ignore(cluster, on=bool(step % 2))
        assert_questions(links, limit=3)


@engines
def test_clusters_whose_vectors_cancel_out_are_compared_too(engine, monkeypatch):
    short_lists(monkeypatch, listed=1)
    links = Links(0.9, 0.95, 0.9, engine=engine, threads=1)
    links.add_many(np.concatenate([np.eye(4), -np.eye(4)]).astype(np.float32))
    assert_questions(links, limit=3)
    for a in range(3):
        links.same(a, a + 4)
        assert_questions(links, limit=5)
        assert_exemplars(links)


@engines
def test_equal_margins_are_told_in_order_of_ids(engine, monkeypatch):
    short_lists(monkeypatch, listed=2)
    links = Links(0.9, 0.95, 0.9, engine=engine, threads=1)
    for row in np.eye(12, dtype=np.float32):
        links.add(row)
        assert_questions(links, limit=5)


def changed_stream(engine="native"):
    """A clusterer of many small clusters that was asked, and vectors of few of them."""
    rng = np.random.default_rng(11)
    centres = unit(rng.standard_normal((400, 24)))
    links = Links(0.8, 0.95, 0.9, engine=engine, threads=2)
    links.add_many(np.float32(around(rng, np.repeat(centres, 3, axis=0), 0.97)))
    links.review_queue(5)
    links.suggest_merges(5)
    return links, np.float32(around(rng, np.repeat(centres[:4], 2, axis=0), 0.97))


@native
def test_only_clusters_that_changed_are_read_and_compared_again():
    links, more = changed_stream()
    core = links.core.engine._core
    read, scanned = core.index_counts
    assert read == links.n_clusters
    touched = len(set(links.add_many(more).tolist()))
    links.review_queue(5)
    links.suggest_merges(5)
    assert core.index_counts[0] - read <= 2 * touched
    assert core.index_counts[1] - scanned <= 4 * touched
    assert_questions(links, limit=5)


@native
def test_a_question_does_not_copy_the_state(monkeypatch):
    links, more = changed_stream()
    engine = links.core.engine
    for name in ("state", "outline", "labels"):
        monkeypatch.setattr(engine, name, lambda name=name: pytest.fail(f"{name}() was called"))
    links.add_many(more)
    assert links.review_queue(5)
    assert links.suggest_merges(5)
    links.suggest_splits(5)
    assert links.exemplars(0)
    assert links.explain_pair(0, 1)


@native
def test_exemplars_and_paths_walk_over_their_clusters_only():
    links, _ = changed_stream()
    core = links.core.engine._core
    links.exemplars(0)
    links.explain_pair(0, 1, of="clusters")
    before, visited = core.n_walks, core.n_visited
    for cluster in range(0, 50, 5):
        links.exemplars(cluster)
        links.explain_pair(cluster, cluster + 1, of="clusters")
    assert core.n_walks == before
    assert core.n_visited - visited < 200


@engines
def test_a_search_ends_when_its_progress_raises_and_can_be_asked_again(engine):
    links, more = changed_stream(engine)
    links.add_many(more)

    class Enough(Exception):  # noqa: N818 - as the service ends a question
        pass

    def stop(_share):
        raise Enough

    fresh = Links.from_bytes(links.to_bytes(), engine=engine, threads=1)
    for ask in (explain.review_queue, explain.suggest_merges):
        with pytest.raises(Enough):
            ask(explain.Direct(fresh.core), 5, stop)
    assert fresh.review_queue(5) == links.review_queue(5)
    assert fresh.suggest_merges(5) == links.suggest_merges(5)


@engines
def test_vectors_that_were_shown_before_are_not_read_again(engine, monkeypatch):
    links = Links(0.7, 0.65, 0.8, engine=engine)
    links.add_many(crowd(np.random.default_rng(3), 200))
    asked, fetched = links.review_queue(), []
    rows = links.core.vectors.rows

    class Counted:
        def rows(self, numbers):
            fetched.append(len(numbers))
            return rows(numbers)

    monkeypatch.setattr(links.core, "vectors", Counted())
    assert asked
    assert links.review_queue() == asked
    assert fetched == []
    links.core.shown.clear()
    assert links.review_queue() == asked
    assert any(fetched)
