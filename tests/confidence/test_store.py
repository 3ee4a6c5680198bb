"""Probabilities of stores: the model is kept; a call that is repeated gets them again."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest

from confidence.sure import MODEL, STREAM, THRESHOLDS
from linkstream import Links
from linkstream.errors import ArgumentError
from linkstream.store import Store, repair


def told(n=60):
    """Decisions of a clusterer in memory."""
    links = Links.from_thresholds(THRESHOLDS, confidence=MODEL)
    return [links.add(x) for x in STREAM.vectors[:n]]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "people.links"


def test_a_store_tells_the_probabilities_of_links_also_when_it_is_opened_again(path):
    expected, decisions = told(), []
    for first in (0, 30):
        with Store.open(path, thresholds=THRESHOLDS, confidence=MODEL) as store:
            decisions += [store.add(x) for x in STREAM.vectors[first : first + 30]]
    assert decisions == expected
    assert sum(each.probability is not None for each in decisions) > 40
    with Store.open(path) as store:
        assert store.confidence.model == MODEL
        assert store.confidence.why == ""
        assert store.verify().operations == 60


def test_a_repeated_call_gets_the_same_probability(path):
    with Store.open(path, thresholds=THRESHOLDS, confidence=MODEL) as store:
        store.add_many(STREAM.vectors[:40])
        first = store.add(STREAM.vectors[40], idempotency_key="one")
        assert store.add(STREAM.vectors[40], idempotency_key="one") == first
    with Store.open(path) as store:
        again = store.add(STREAM.vectors[40], idempotency_key="one")
    assert again == first
    assert first.probability is not None


def test_a_store_that_lost_all_snapshots_is_repaired_with_its_model(path):
    with Store.open(path, thresholds=THRESHOLDS, confidence=MODEL) as store:
        store.add_many(STREAM.vectors[:40])
        first = store.add(STREAM.vectors[40])
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM snapshots")
    assert repair(path).lost == 0
    with Store.open(path) as store:
        assert store.n_vectors == 41
        assert store.confidence.model == MODEL
        store.undo()
        assert store.add(STREAM.vectors[40]).probability == first.probability


def test_a_store_made_with_another_model_is_refused(path):
    Store.open(path, thresholds=THRESHOLDS, confidence=MODEL).close()
    with pytest.raises(ArgumentError, match="a model of 41 identities"):
        Store.open(path, confidence=replace(MODEL, identities=41))
    Store.open(path, confidence=MODEL).close()
    plain = path.with_name("plain.links")
    Store.open(plain, thresholds=THRESHOLDS).close()
    with pytest.raises(ArgumentError, match="which has None"):
        Store.open(plain, confidence=MODEL)
    with Store.open(plain) as store:
        assert store.add(STREAM.vectors[0]).probability is None
