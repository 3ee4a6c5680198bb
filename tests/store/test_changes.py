"""Store.changes: the report of Links, from the journal; also after reopening and compacting."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from linkstream import Links
from linkstream.errors import NotTrackedError, StoreError
from linkstream.identity.following import Follower
from linkstream.store import Store, following
from store.operations import THRESHOLDS, make_operation, new, perform, vectors

X = vectors(np.random.default_rng(6), 80)


@pytest.mark.parametrize("seed", range(4))
def test_the_report_of_a_store_is_that_of_links_and_leads_to_its_labels(path, seed, monkeypatch):
    monkeypatch.setattr(following, "AT_ONCE", 37)
    links = Links.from_thresholds(THRESHOLDS)
    store = new(path)
    seen = {0: store.labels()}
    rng = np.random.default_rng(seed)
    for number in range(60):
        made = make_operation(seed, number, links, sizes=(1, 7))
        assert perform(links, made) == perform(store, made)
        seen[store.n_events] = store.labels()
        if number % 20 == 15:
            store.close()
            store = new(path)
        if number % 7 == 3:
            store.changes()
    if seed % 2:
        store.compact()
    moments = sorted(seen)
    for one, other in rng.integers(len(moments), size=(25, 2)).tolist():
        since, until = moments[min(one, other)], moments[max(one, other)]
        report = store.changes(since, until)
        np.testing.assert_array_equal(report.apply(seen[since]), seen[until])
        assert report.to_dict() == links.changes(since, until).to_dict()
    store.close()


def test_a_read_only_store_tells_of_what_it_has_read(path):
    with new(path) as store, Store.open(path, read_only=True) as reader:
        assert reader.changes().counts()["added"] == 0
        store.add_many(X)
        assert reader.changes().until == 0
        reader.refresh()
        assert len(reader.changes().added) == len(X)
        assert reader.changes().to_dict() == store.changes().to_dict()


def test_events_are_read_once_and_in_pieces(path, monkeypatch):
    monkeypatch.setattr(following, "AT_ONCE", 25)
    read = []
    real = Follower.read
    monkeypatch.setattr(
        Follower, "read", lambda self, rows: read.append(len(rows)) or real(self, rows)
    )
    with new(path) as store:
        store.add_many(X)
        since = store.n_events
        store.changes()
        assert sum(read) == since
        assert max(read) == 25
        read.clear()
        store.add_many(X[:3])
        assert store.changes(since).added.tolist() == [80, 81, 82]
        assert sum(read) == store.n_events - since


def test_a_failure_half_way_is_made_good_by_the_next_call(path, monkeypatch):
    with new(path) as store:
        store.add_many(X)
        with monkeypatch.context() as broken:
            broken.setattr("linkstream.identity.following._PLAYERS", {0: len})
            with pytest.raises(StoreError):
                store.changes()
        assert len(store.changes().added) == len(X)


def test_threads_get_the_same_report_while_others_write(path):
    with new(path) as store:
        store.add_many(X[:20])
        labels, since = store.labels(), store.n_events
        reports = []

        def ask():
            reports.extend(store.changes(since) for _ in range(5))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for x in X[20:50]:
            store.add(x)
        for thread in threads:
            thread.join()
        final = store.labels()
        report = store.changes(since)
        np.testing.assert_array_equal(report.apply(labels), final)
        for each in reports:
            rest = store.changes(each.until)
            np.testing.assert_array_equal(rest.apply(each.apply(labels)), final)


def test_a_store_that_does_not_track_vectors_is_refused(path):
    with Store.open(path, thresholds=THRESHOLDS, track_vectors=False) as store:
        store.add_many(X)
        with pytest.raises(NotTrackedError):
            store.changes()
    with Store.open(path, read_only=True) as store, pytest.raises(NotTrackedError):
        store.changes()
