"""The clusters with the greatest margins to a vector: both engines agree, and with all margins."""

from __future__ import annotations

import numpy as np
import pytest

from confidence.sure import MODEL, THRESHOLDS
from linkstream import Links
from linkstream.clusterer.probabilities import NOWHERE, _odds
from linkstream.engine.decisions import NEW
from streams import ENGINES, KINDS, make

OPTIONS = ({}, {"evidence": "cluster"}, {"mode": "best"})
LIMITS = (1, 3, 10_000)


def clusterer(stream, engine, **options):
    links = Links(*stream.thresholds, engine=engine, **options)
    links.add_many(stream.vectors)
    return links


def all_margins(engine, vector):
    """Return all clusters by margin, best first; those that cancel out are left out."""
    ids, masses, scores = engine.wholes(vector)
    margins = scores - engine.thresholds.edges(masses, np.ones_like(masses))
    order = np.lexsort((ids, -margins))
    there = [i for i in order if engine.parts(int(ids[i])).sums.sum(axis=0).any()]
    return [(int(ids[i]), float(margins[i])) for i in there]


def pairs(ids, margins):
    return [(i, m) for i, m in zip(ids.tolist(), margins.tolist(), strict=True) if i >= 0]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_they_are_the_first_of_all_by_margin_in_every_engine(kind, options):
    stream = make(kind, 0)
    links = [clusterer(stream, engine, **options) for engine in ENGINES]
    vectors = links[0].core.quantised(np.concatenate([stream.vectors[:25], -stream.vectors[:5]]))
    for limit in LIMITS:
        found = [each.core.running().near_clusters(vectors, limit) for each in links]
        for ids, margins in found:
            np.testing.assert_array_equal(ids, found[0][0])
            np.testing.assert_array_equal(margins, found[0][1])
        for row, vector in enumerate(vectors):
            expected = all_margins(links[0].core.running(), vector)[:limit]
            assert pairs(found[0][0][row], found[0][1][row]) == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_a_search_that_has_to_look_again_finds_the_same(engine):
    rng = np.random.default_rng(7)
    heavy = rng.standard_normal((40, 24))
    links = Links(0.55, 0.5, 1.0, engine=engine)
    links.add_many(np.repeat(heavy, 30, axis=0) + 0.01 * rng.standard_normal((1200, 24)))
    links.add_many(rng.standard_normal((900, 24)), weight=0.25)  # light, with low thresholds
    core = links.core.running()
    vectors = links.core.quantised(rng.standard_normal((300, 24)).astype(np.float32))
    ids, margins = core.near_clusters(vectors, 4)
    for row in range(0, 300, 7):
        assert pairs(ids[row], margins[row]) == all_margins(core, vectors[row])[:4]


@pytest.mark.parametrize("engine", ENGINES)
def test_vectors_that_cancel_out_are_no_cluster_to_belong_to(engine):
    links = Links(0.7, 0.6, 0.9, engine=engine)
    links.add_many(np.eye(3))
    links.same(0, 1)
    links.add([-1.0, -1.0, 0.0])
    links.same(0, 3, of="vectors")
    core = links.core.running()
    vectors = links.core.quantised(np.eye(3, dtype=np.float32))
    ids, margins = core.near_clusters(vectors, 9)
    assert ids.shape == margins.shape == (3, links.n_clusters)
    for row, vector in enumerate(vectors):
        assert pairs(ids[row], margins[row]) == all_margins(core, vector)


@pytest.mark.parametrize("engine", ENGINES)
def test_probabilities_are_those_of_all_clusters_looked_at_one_by_one(engine):
    stream = make("lobes", 0)
    links = Links.from_thresholds(THRESHOLDS, confidence=MODEL, engine=engine)
    links.add_many(stream.vectors[:120])
    asked = np.concatenate([stream.vectors[120:160], -stream.vectors[:4]])
    for x, found in zip(asked, links.predict_proba(asked, limit=3), strict=True):
        vector = links.core.quantised(np.asarray(x, dtype=np.float32)[np.newaxis])
        decided = links.core.running().ask(vector)
        told = float(MODEL.probabilities(decided.kind, decided.cluster_margin)[0])
        if told != told:
            assert found == {}
            continue
        margins = dict(all_margins(links.core.running(), vector[0]))
        held, new = MODEL.curves
        n = links.n_vectors
        odds = {each: float(_odds(held, np.array([m]), n)[0]) for each, m in margins.items()}
        ours = NOWHERE if decided.kind[0] == NEW else int(decided.cluster[0])
        odds[NOWHERE] = float(_odds(new, -np.array([max(margins.values())]), n)[0])
        del odds[ours]
        best = sorted(set(odds) - {NOWHERE}, key=lambda each: -odds[each])
        kept = best[:3] if ours == NOWHERE else [*best[:2], NOWHERE]
        whole = sum(odds[each] for each in kept)
        expected = {ours: told, **{each: (1 - told) * odds[each] / whole for each in kept}}
        assert found == pytest.approx(expected)
        assert list(found.values()) == sorted(found.values(), reverse=True)
    sizes = [len(each) for each in links.predict_proba(asked, limit=3)]
    assert set(sizes) <= {0, 4}
    assert sizes.count(4) > 20
