"""Histories and explanations of a store: those of its whole log, which is read once."""

from __future__ import annotations

import numpy as np
import pytest

from identity import whole_log
from linkstream import Links
from linkstream.errors import StoreError
from linkstream.store import Store
from linkstream.store.journal import Journal
from store.operations import THRESHOLDS, make_operation, new, perform, vectors

X = vectors(np.random.default_rng(6), 80)


def check(store, log):
    whole_log.check_histories(store, log)
    whole_log.check_paths(store, log)


@pytest.mark.parametrize("engine", ["reference", "auto"])
@pytest.mark.parametrize("seed", range(3))
def test_answers_of_a_store_are_those_of_the_whole_log(path, seed, engine):
    links = Links.from_thresholds(THRESHOLDS)
    store = new(path, engine=engine)
    for number in range(60):
        made = make_operation(seed, number, links, sizes=(1, 7))
        assert perform(links, made) == perform(store, made)
        if number % 20 == 15:
            store.close()
            store = new(path, engine=engine)
        if number % 10 in (4, 5):
            check(store, links.events())
    check(store, links.events())
    store.close()


def _log(path):
    """Return the events from the oldest snapshot on."""
    with Store.open(path, read_only=True) as reader:
        return reader.handle.read(
            lambda model: model.remember(lambda links: links.events(links.core.oldest_event()))
        )


@pytest.mark.parametrize("seed", range(3))
def test_a_compacted_store_tells_of_events_since_its_oldest_snapshot(path, seed):
    links = Links.from_thresholds(THRESHOLDS)
    with new(path) as store:
        for number in range(40):
            made = make_operation(seed, number, links, sizes=(1, 7))
            perform(links, made)
            perform(store, made)
            if number == 25:
                store.compact()
    log = _log(path)
    assert 0 < len(log) < links.n_events
    with new(path) as store:
        check(store, log)
        store.add_many(X[:10])
        store.undo()
        check(store, _log(path))


def test_a_reader_follows_the_writer(path):
    with new(path) as store, Store.open(path, read_only=True) as reader:
        store.add_many(X[:40])
        reader.refresh()
        assert reader.history(0) == store.history(0)
        store.name(0, "Ann")
        assert reader.history(0) != store.history(0)
        reader.refresh()
        assert reader.history(0) == store.history(0)


def test_the_journal_is_read_at_the_first_question_only(path, monkeypatch):
    with new(path) as store:
        store.add_many(X)
    with new(path) as store:
        read, real = [], Journal.operations
        monkeypatch.setattr(
            Journal, "operations", lambda *about: read.append(about) or real(*about)
        )
        assert store.history(0).chapters
        assert len(read) == 1
        store.add(X[0])
        assert store.history(1).chapters
        store.explain_pair(0, 1)
        assert len(read) == 1


def test_an_index_that_failed_half_way_is_read_again(path, monkeypatch):
    with new(path) as store:
        store.add_many(X)
        expected = store.history(0)
    with new(path) as store:
        with monkeypatch.context() as broken:
            broken.setattr("linkstream.identity.event_index._KEPT", np.zeros(1, dtype=bool))
            with pytest.raises(StoreError):
                store.history(0)
        assert store.history(0) == expected


def test_a_store_that_does_not_track_vectors_tells_of_the_events_that_are_kept(path):
    with Store.open(path, thresholds=THRESHOLDS, track_vectors=False) as store:
        store.add_many(X)
        store.name(0, "Ann")
        assert [event.kind for event in store.history(0).chapters] == ["created", "named"]
    with Store.open(path) as store:
        assert store.history(0).chapters == ()
