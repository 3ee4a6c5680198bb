"""Thresholds for a rebuild from the present clusters, which serve as labels."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest

from linkstream import Links, Space, Thresholds
from linkstream.clusterer import rebuilding
from linkstream.errors import ArgumentError, IdempotencyError
from linkstream.identity.cluster_labels import (
    CLUSTERS_MIN,
    FROM_CLUSTERS,
    LabelledClusters,
    confirmed_clusters,
)
from linkstream.metrics import accuracy
from linkstream.store import Store
from streams import ENGINES, around, unit

TIGHT = (0.98, 0.99, 0.99)  # thresholds that leave almost every vector alone
FITTING = (0.8, 0.9, 0.75)


def voices(seed, n=150, identities=16, d=32, cosine=0.85):
    """Return vectors around identities, and their identities."""
    rng = np.random.default_rng(seed)
    who = rng.integers(identities, size=n)
    return np.float32(around(rng, unit(rng.standard_normal((identities, d)))[who], cosine)), who


def taught(thresholds, X, who, **options):
    """Return a clusterer in which each vector was moved to its identity."""
    links = Links(*thresholds, **options)
    links.add_many(X)
    first = {}
    for vector, identity in enumerate(who.tolist()):
        anchor = first.setdefault(identity, vector)
        if anchor != vector and links.labels()[anchor] != links.labels()[vector]:
            links.move(vector, int(links.labels()[anchor]))
    return links


def source_of(links):
    return rebuilding.source_for_read(links.core, "rebuild")


def test_thresholds_for_another_encoder_come_from_the_clusters_before():
    X, who = voices(1)
    links = Links(*FITTING)
    links.add_many(X)
    links.rebuild(apply=True)
    assert accuracy(who, links.labels()) > 0.95
    rng = np.random.default_rng(2)
    cone = 0.6 * unit(rng.standard_normal(32)) + 0.4 * X  # every cosine is far higher there
    links.rebuild(vectors=cone, apply=True)
    assert accuracy(who, links.labels()) < 0.2
    links.undo()
    report = links.rebuild(vectors=cone, thresholds=FROM_CLUSTERS, apply=True)
    assert accuracy(who, links.labels()) > 0.9
    assert report.evidence.changed
    assert report.evidence.agreement > 0.9 > 0.3 > report.evidence.agreement_before
    assert links.thresholds == report.thresholds != Thresholds(*FITTING)
    links.undo()
    assert links.thresholds == Thresholds(*FITTING)


def test_corrected_clusters_show_how_fine_the_clusters_are_to_be():
    X, who = voices(3)
    links = taught(TIGHT, X, who)
    evidence = links.rebuild(thresholds=FROM_CLUSTERS).evidence
    assert evidence.n_confirmed == evidence.n_clusters == 16
    assert evidence.changed
    assert evidence.agreement > 0.95 > evidence.agreement_before
    found = links.rebuild(thresholds=FROM_CLUSTERS).thresholds
    fresh = Links.from_thresholds(found)
    others, theirs = voices(4, cosine=0.85)
    fresh.add_many(others)
    fresh.rebuild(apply=True)
    assert accuracy(theirs, fresh.labels()) > 0.95


def test_the_present_thresholds_stay_if_no_others_agree_better():
    X, _ = voices(5)
    links = Links(*FITTING)
    links.add_many(X)
    links.rebuild(apply=True)
    before = links.partition_hash()
    report = links.rebuild(thresholds=FROM_CLUSTERS, apply=True)
    assert not report.evidence.changed
    assert (report.thresholds, links.thresholds) == (Thresholds(*FITTING),) * 2
    assert links.partition_hash() == before
    assert "none agree better" in str(report)


@pytest.mark.parametrize("new", [False, True])
def test_the_result_does_not_depend_on_engine_or_order(new):
    X, who = voices(6, n=48, identities=10, d=16)
    space = Space(np.full(16, 0.05)) if new else None
    found = set()
    for engine in ENGINES:
        for seed in range(2):
            order = np.random.default_rng(seed).permutation(len(X))
            links = taught(TIGHT, X[order], who[order], engine=engine, threads=1)
            report = links.rebuild(thresholds=FROM_CLUSTERS, space=space)
            found.add(json.dumps([asdict(report.thresholds), asdict(report.evidence)]))
    assert len(found) == 1


def test_the_share_of_the_work_that_is_done_rises_to_one():
    X, who = voices(7, n=60, identities=12)
    shares = []
    taught(TIGHT, X, who).rebuild(thresholds=FROM_CLUSTERS, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


@pytest.mark.parametrize("apply", [False, True])
def test_too_few_clusters_are_refused_and_nothing_changes(apply):
    links = Links(*FITTING)
    with pytest.raises(ArgumentError, match="and 0 clusters of two vectors or more"):
        links.rebuild(apply, thresholds=FROM_CLUSTERS)
    X, _ = voices(8, identities=CLUSTERS_MIN - 1)
    links.add_many(X)
    links.rebuild(apply=True)
    before = links.state_hash()
    with pytest.raises(ArgumentError, match="9 clusters of two vectors or more; expected at least"):
        links.rebuild(apply, thresholds=FROM_CLUSTERS)
    with pytest.raises(ArgumentError, match="thresholds='of clusters'; expected Thresholds, 'from"):
        links.rebuild(apply, thresholds="of clusters")
    with pytest.raises(ArgumentError, match="thresholds of type int"):
        links.rebuild(apply, thresholds=3)
    with pytest.raises(ArgumentError, match="expected Thresholds or None"):
        links.settle(thresholds=FROM_CLUSTERS)
    assert links.state_hash() == before


def test_named_and_corrected_clusters_come_first_and_count_more():
    X, _who = voices(9, n=1400, identities=120)
    links = Links(*FITTING, mode="best")
    links.add_many(X)
    links.rebuild(apply=True)
    sizes = {each.id: each.size for each in links.clusters()}
    large = sorted(sizes, key=sizes.get)[-3:]
    links.name(large[0], "Ann")
    rows = np.flatnonzero(links.labels() == large[1])
    links.same(int(rows[0]), int(rows[1]))
    source = source_of(links)
    assert confirmed_clusters(source.state, source.ledger).tolist() == sorted(large[:2])
    labelled = LabelledClusters.of(source.content(links.core.kept), source.state, source.ledger)
    labels, shares = labelled.examples.labels, labelled.examples.shares
    assert len(labels) == 1000
    assert np.bincount(labels).max() == 10
    assert {*large[:2]} <= {*labels.tolist()}
    assert {*labels[shares == 4.0].tolist()} == {*large[:2]}
    for cluster in np.unique(labels).tolist():
        assert len({*labelled.halves[labels == cluster].tolist()}) == 1
    assert 0.4 < labelled.halves.mean() < 0.6


def test_vectors_that_are_alone_count_least():
    X, _ = voices(10, n=80, identities=12)
    lonely = np.float32(unit(np.random.default_rng(11).standard_normal((5, 32))))
    links = Links(*FITTING)
    links.add_many(np.concatenate([X, lonely]))
    links.rebuild(apply=True)
    source = source_of(links)
    labelled = LabelledClusters.of(source.content(links.core.kept), source.state, source.ledger)
    sizes = np.bincount(links.labels())[labelled.examples.labels]
    np.testing.assert_array_equal(labelled.examples.shares, np.where(sizes > 1, 1.0, 0.25))


def test_a_store_keeps_the_thresholds_that_were_found_in_its_journal(tmp_path):
    X, _who = voices(12)
    links = Links(*FITTING)
    cone = 0.6 * unit(np.ones(32)) + 0.4 * X
    with Store.open(tmp_path / "a.links", thresholds=Thresholds(*FITTING)) as store:
        with pytest.raises(ArgumentError, match="and 0 clusters"):
            store.rebuild(thresholds=FROM_CLUSTERS)
        for each in (links, store):
            each.add_many(X)
        expected = links.rebuild(thresholds=FROM_CLUSTERS, vectors=cone)
        assert store.rebuild(thresholds=FROM_CLUSTERS, vectors=cone) == expected
        done = links.rebuild(True, thresholds=FROM_CLUSTERS, vectors=cone)
        given = {"thresholds": FROM_CLUSTERS, "vectors": cone, "idempotency_key": "a"}
        assert store.rebuild(True, **given) == done
        assert store.rebuild(True, **given).applied  # the same call again
        with pytest.raises(IdempotencyError):
            store.rebuild(True, **{**given, "thresholds": done.thresholds})
        assert store.state_hash() == links.state_hash()
    with Store.open(tmp_path / "a.links") as store:
        assert store.thresholds == done.thresholds
        assert store.state_hash() == links.state_hash()
        store.verify()
