"""The cluster margin of each decision: both engines agree, and with a naive reading of the rule."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream import Links
from linkstream.engine.contract import NEW
from linkstream.paper.algorithm import cosine, fixed_point
from linkstream.paper.thresholds import anisotropic_pair_threshold
from streams import ENGINES, KINDS, make

OPTIONS = ({}, {"evidence": "cluster"}, {"heal": "settle"}, {"mode": "best"})
both = pytest.mark.skipif("native" not in ENGINES, reason="built without the compiled core")


def clusterer(stream, engine, **options):
    """Return a clusterer with margins."""
    links = Links(*stream.thresholds, engine=engine, **options)
    links.confidence.set_margins(True)
    return links


def naive_margins(stream, fixed, labels, x):
    t_c, _, t_p = stream.thresholds
    margins = {}
    for cluster in np.unique(labels).tolist():
        members = [fixed[i] for i in np.flatnonzero(labels == cluster)]
        threshold = anisotropic_pair_threshold(t_c, t_p, len(members), 1)
        margins[cluster] = cosine(x, sum(members)) - threshold
    return margins


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("options", OPTIONS[:2], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_the_margin_is_that_of_the_whole_cluster_before_the_vector(engine, options, kind):
    stream = make(kind, 0)
    links = clusterer(stream, engine, **options)
    fixed = [fixed_point(x) for x in stream.vectors[:100]]
    for n, x in enumerate(stream.vectors[:100]):
        state, labels = links.state(), links.labels()
        margins = naive_margins(stream, fixed, labels, fixed[n])
        expected = max(margins.values(), default=None)
        decision = links.add(x)
        if decision.kind != "new":
            expected = margins.get(decision.cluster, decision.cluster_margin)  # it may have split
        elif margins and not options:
            number = state.numbers[np.argmax([cosine(fixed[n], total) for total in state.sums])]
            expected = margins[int(labels[np.flatnonzero(state.vectors == number)[0]])]
        assert decision.cluster_margin == expected


@both
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_both_engines_compute_the_same_margins(options, kind, seed):
    stream = make(kind, seed)
    one, other = (clusterer(stream, engine, **options) for engine in ENGINES)
    ours, theirs = (each.decide_many(stream.vectors) for each in (one, other))
    assert np.array_equal(ours.cluster_margin, theirs.cluster_margin, equal_nan=True)
    assert np.array_equal(ours.cluster, theirs.cluster)
    assert one.state_hash() == other.state_hash()
    asked = [
        each.core.running().ask(each.core.quantised(stream.vectors[:40])) for each in (one, other)
    ]
    assert np.array_equal(asked[0].cluster_margin, asked[1].cluster_margin)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_margins_do_not_depend_on_batches_and_change_no_decision(engine, options):
    stream = make("lobes", 3)
    whole, plain = (
        clusterer(stream, engine, **options),
        Links(*stream.thresholds, engine=engine, **options),
    )
    plain.add_many(stream.vectors)
    batch = whole.decide_many(stream.vectors)
    links = clusterer(stream, engine, **options)
    alone = [links.add(x) for x in stream.vectors]
    assert [batch.at(i) for i in range(len(alone))] == alone
    assert links.state_hash() == whole.state_hash() == plain.state_hash()


@pytest.mark.parametrize("engine", ENGINES)
def test_corrections_keep_the_sums_that_margins_use(engine):
    stream = make("lobes", 4)
    links = clusterer(stream, engine)
    rng = np.random.default_rng(0)
    for x in stream.vectors[:120]:
        links.add(x, weight=float(rng.choice([1.0, 0.4])))
        if rng.random() < 0.3:
            links.remove(int(rng.choice(np.flatnonzero(links.labels() >= 0))))
        if rng.random() < 0.1:
            links.undo()
    fresh = Links.from_bytes(links.to_bytes(), engine=engine)
    fresh.confidence.set_margins(True)
    rows = stream.vectors[120:180]
    ours, theirs = links.decide_many(rows), fresh.decide_many(rows)
    assert np.array_equal(ours.cluster_margin, theirs.cluster_margin, equal_nan=True)
    assert np.isfinite(ours.cluster_margin).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_there_is_no_margin_without_clusters_or_if_they_are_off(engine):
    stream = make("lobes", 5)
    links = Links(*stream.thresholds, engine=engine)
    decisions = links.decide_many(stream.vectors[:50])
    assert np.isnan(decisions.cluster_margin).all()
    assert decisions.at(0).cluster_margin is None
    assert decisions.at(7).as_batch().at(0) == decisions.at(7)
    links.confidence.set_margins(True)
    assert links.add(stream.vectors[50]).cluster_margin is not None
    links.confidence.set_margins(False)
    assert links.add(stream.vectors[51]).cluster_margin is None


@pytest.mark.parametrize("engine", ENGINES)
def test_a_new_cluster_has_the_margin_it_missed(engine):
    links = Links(0.7, 0.6, 0.9, engine=engine)
    links.add([1.0, 0.0])
    links.confidence.set_margins(True)
    decisions = links.decide_many([[0.0, 1.0]])
    assert decisions.kind[0] == NEW
    assert decisions.cluster_margin[0] == pytest.approx(-(0.7**2))
