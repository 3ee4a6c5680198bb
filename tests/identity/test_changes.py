"""changes(): the report between any two moments turns the labels of one into those of the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identity.trial import LARGEST, VERBS, Trial
from linkstream import Links
from linkstream.errors import ArgumentError, NotTrackedError
from linkstream.identity.following import Follower
from streams import ENGINES, KINDS, make

A, NEAR_A, B, C = [1.0, 0.0, 0.0], [0.99, 0.1, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


class Watched:
    """Clusterers, and their labels and live clusters at each number of events seen."""

    def __init__(self, links):
        self.links = links
        self.seen = {}
        self.look()

    def look(self):
        links = self.links[0]
        live = {int(each) for each in np.unique(links.labels()) if each >= 0}
        self.seen[links.n_events] = links.labels(), live

    def check(self, pairs):
        moments = sorted(self.seen)
        for one, other in pairs:
            since, until = sorted((moments[one % len(moments)], moments[other % len(moments)]))
            (labels, live), (later, live_later) = self.seen[since], self.seen[until]
            reports = [links.changes(since, until) for links in self.links]
            for report in reports:
                np.testing.assert_array_equal(report.apply(labels), later)
                assert report.to_dict() == reports[0].to_dict()
            self.check_rows(reports[0], labels, later)
            self.check_clusters(reports[0], live, live_later)

    def check_rows(self, report, labels, later):
        n = min(len(labels), len(later))
        differs = np.flatnonzero(labels[:n] != later[:n])
        moved = differs[(labels[differs] >= 0) & (later[differs] >= 0)]
        np.testing.assert_array_equal(report.moved, moved)
        assert len(report.added) - len(report.removed) == (later >= 0).sum() - (labels >= 0).sum()
        assert np.all(report.before != report.after)

    def check_clusters(self, report, live, later):
        came = {*report.new, *(new for _, new in report.split)}
        went = {*report.gone, *(gone for gone, _ in report.joined)}
        assert came == later - live
        assert went == live - later
        assert {cluster for cluster, _ in report.split} <= live
        assert {into for _, into in report.joined} <= later
        assert len(came) == len(report.new) + len(report.split)


NUMBERS = st.integers(0, LARGEST)
CHOICES = [verb for verb, times in VERBS.items() for _ in range(times)]
DEEDS = st.tuples(st.sampled_from(CHOICES), NUMBERS, NUMBERS, NUMBERS, NUMBERS)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.integers(0, 10_000),
    st.lists(DEEDS, min_size=10, max_size=40),
    st.lists(st.tuples(NUMBERS, NUMBERS), min_size=6, max_size=6),
    st.booleans(),
)
def test_a_report_leads_from_the_labels_of_any_moment_to_those_of_any_other(
    seed, deeds, pairs, early
):
    trial = Trial(seed)
    watched = Watched(trial.links)
    for verb, *numbers in deeds:
        if verb == "save_and_load":
            continue
        getattr(trial, verb)(*numbers)
        watched.links = trial.links
        watched.look()
        if early:  # the log is followed as it grows, or at once in the end
            watched.check([(0, len(watched.seen) - 1)])
    watched.check([*pairs, (0, len(watched.seen) - 1)])


@pytest.mark.parametrize("seed", range(6))
def test_long_random_lives_with_every_verb(seed):
    rng = np.random.default_rng(seed)
    trial = Trial(seed)
    watched = Watched(trial.links)
    for _ in range(150):
        verb = CHOICES[rng.integers(len(CHOICES))]
        if verb != "save_and_load":
            getattr(trial, verb)(*rng.integers(LARGEST, size=4).tolist())
            watched.links = trial.links
            watched.look()
    watched.check(rng.integers(1000, size=(60, 2)).tolist())
    kinds = {event.kind for event in trial.links[0].events()}
    assert {"undone", "removed", "moved", "split"} <= kinds


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("heal", ["join", "settle"])
def test_healing_is_followed(kind, heal):
    stream = make(kind, 4, 200)
    links = [Links(*stream.thresholds, engine=each, heal=heal, threads=1) for each in ENGINES]
    watched = Watched(links)
    for start in range(0, 200, 20):
        for each in links:
            each.add_many(stream.vectors[start : start + 20])
        watched.look()
    for each in links:
        each.settle(apply=True)
    watched.look()
    watched.check([(i, j) for i in range(12) for j in range(i, 12)])


def test_joins_splits_births_and_ends_are_told_in_words(engine):
    links = Links(0.7, 0.6, 0.9, engine=engine)
    links.add_many([A, B, NEAR_A, C])
    since = links.n_events
    links.same(0, 1)
    links.remove(3)
    links.different(0, 2)
    links.add([0.0, -1.0, 0.0])
    report = links.changes(since)
    assert report.counts() == {
        "added": 1, "removed": 1, "moved": 2, "joined": 1, "split": 1, "new": 1, "gone": 1,
    }  # fmt: skip
    split = report.split[0]
    assert str(report) == (
        f"Events {since} to {links.n_events}: vectors: 1 added, 1 removed, 2 moved; clusters: "
        "1 joined, 1 split off, 1 new, 1 gone.\n"
        f"  joined: 1 into 0\n  split off: {split[1]} from 0\n  new: {report.new[0]}\n  gone: 2"
    )


def test_what_was_done_and_undone_in_between_does_not_count(engine):
    links = Links(0.7, 0.6, 0.9, engine=engine)
    links.add_many([A, B])
    since = links.n_events
    links.same(0, 1)
    joined = links.n_events
    links.undo()
    assert sum(links.changes(since).counts().values()) == 0
    assert links.changes(since, joined).joined == ((1, 0),)
    assert links.changes(joined).split == ((0, 1),)
    undone = links.n_events
    links.redo()
    assert links.changes(undone).joined == ((1, 0),)
    assert sum(links.changes(joined).counts().values()) == 0


def test_clusters_that_came_and_went_in_between_are_named_by_what_is_there():
    links = Links(0.7, 0.6, 0.9)
    links.add_many([A, B, C])
    since = links.n_events
    links.same(1, 2)
    links.same(0, 1)
    report = links.changes(since)
    assert set(report.joined) == {(1, 0), (2, 0)}


def test_many_clusters_are_cut_short_in_the_text():
    links = Links(0.7, 0.6, 0.9)
    links.add_many(np.eye(30))
    assert "new: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 20 more" in links.changes().text()


def test_each_event_is_read_once_and_a_report_reads_the_records_in_between(monkeypatch, engine):
    links = Links(0.7, 0.6, 0.9, engine=engine)
    links.add_many(np.random.default_rng(0).standard_normal((400, 6)))
    read, looked = [], []
    real_read = Follower.read
    monkeypatch.setattr(
        Follower, "read", lambda self, rows: read.append(len(rows)) or real_read(self, rows)
    )
    links.changes()
    since = links.n_events
    assert read == [since]
    assert since >= 400
    links.add_many(np.random.default_rng(1).standard_normal((5, 6)))
    between = links.core.follower.vectors.between
    records = links.core.follower.vectors

    def counted(*moments):
        found = between(*moments)
        looked.append(len(found))
        return found

    monkeypatch.setattr(records, "between", counted)
    report = links.changes(since)
    assert read == [since, links.n_events - since]
    touched = {int(v) for v in report.vectors}
    assert len(touched) <= looked[0] < 400


def test_undo_reads_again_only_what_it_takes(monkeypatch, engine):
    links = Links(0.7, 0.6, 0.9, engine=engine)
    links.add_many(np.random.default_rng(0).standard_normal((300, 6)))
    links.changes()
    fetched = []
    follower = links.core.follower
    fetch = follower.fetch
    monkeypatch.setattr(follower, "fetch", lambda a, b: fetched.append(b - a) or fetch(a, b))
    before = links.n_events
    links.add([1.0, 0, 0, 0, 0, 0])
    added = links.n_events - before
    links.undo()
    assert sum(links.changes(before).counts().values()) == 0
    assert sum(fetched) == added


def test_moments_out_of_order_or_unknown_are_refused():
    links = Links(0.7, 0.6, 0.9)
    links.add_many([A, B])
    for since, until in ((3, None), (2, 1), (0, 3), (-1, None), (True, None), (0.5, 1), (0, "x")):
        with pytest.raises(ArgumentError):
            links.changes(since, until)
    with pytest.raises(ArgumentError, match="labels of another moment"):
        links.changes(1).apply([0, 5])
    assert links.changes(2).apply(links.labels()).tolist() == [0, 1]


def test_a_clusterer_that_does_not_track_vectors_is_refused(engine):
    links = Links(0.7, 0.6, 0.9, engine=engine, track_vectors=False)
    links.add_many([A, B])
    with pytest.raises(NotTrackedError):
        links.changes()


@pytest.mark.parametrize("followed", [False, True])
def test_a_log_without_its_beginning_is_followed_from_there(engine, followed):
    stream = make("chains", 1, 90)
    links = Links(*stream.thresholds, engine=engine)
    links.add_many(stream.vectors[:60])
    if followed:
        links.changes()
    links = Links.from_bytes(links.to_bytes(history=False), engine=engine)
    since, labels = links.n_events, links.labels()
    links.add_many(stream.vectors[60:])
    links.same(0, 1)
    links.undo()
    links.remove(3)
    np.testing.assert_array_equal(links.changes(since).apply(labels), links.labels())
    with pytest.raises(NotTrackedError):
        links.changes(since - 1)


def test_drained_events_stay_known_if_they_were_followed(engine):
    links = Links(0.7, 0.6, 0.9, engine=engine)
    links.add_many([A, B])
    links.changes()
    links.drain_events()
    before = links.n_events
    links.add_many([C, NEAR_A])
    assert links.changes(1).added.tolist() == [1, 2, 3]
    links.drain_events()
    links.add(A)
    after = links.n_events
    links.drain_events()
    links.remove(0)
    assert links.changes(after).removed.tolist() == [0]
    with pytest.raises(NotTrackedError):
        links.changes(before)
