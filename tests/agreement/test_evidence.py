"""Cluster evidence: the two engines, and a naive reading of the rule, decide alike."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream import Links
from linkstream.errors import ArgumentError
from linkstream.paper.algorithm import cosine, fixed_point
from linkstream.paper.thresholds import anisotropic_pair_threshold
from replay import Replay
from streams import ENGINES, KINDS, make


def clusterer(stream, engine, **options):
    return Links(*stream.thresholds, engine=engine, evidence="cluster", **options)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_vector_goes_to_the_whole_cluster_with_the_greatest_margin(engine, kind, seed):
    stream = make(kind, seed)
    links = clusterer(stream, engine)
    t_c, t_s, t_p = stream.thresholds
    fixed = [fixed_point(x) for x in stream.vectors[:120]]
    for n, x in enumerate(stream.vectors[:120]):
        labels = links.labels()
        state = links.state()
        decision = links.add(x)
        best = max((cosine(fixed[n], total) for total in state.sums), default=-1.0)
        if best >= t_s:
            assert decision.kind == "joined"
            continue
        margins = {}
        for cluster in np.unique(labels).tolist():
            members = np.flatnonzero(labels == cluster)
            score = cosine(fixed[n], sum(fixed[i] for i in members))
            if score >= anisotropic_pair_threshold(t_c, t_p, 1, 1):
                margins[cluster] = score - anisotropic_pair_threshold(t_c, t_p, len(members), 1)
        if margins and max(margins.values()) >= 0:
            assert decision.kind == "linked"
            assert margins[decision.cluster] == max(margins.values()) == decision.margin
        else:
            assert decision.kind == "new"


@pytest.mark.skipif("native" not in ENGINES, reason="built without the compiled core on purpose")
@pytest.mark.parametrize("heal", [None, "settle"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))]
)
def test_both_engines_decide_alike(kind, seed, heal):
    stream = make(kind, seed)
    one, other = (clusterer(stream, engine, heal=heal) for engine in ENGINES)
    assert np.array_equal(one.add_many(stream.vectors), other.add_many(stream.vectors))
    assert one.state_hash() == other.state_hash()
    assert one.events() == other.events()
    assert np.array_equal(one.predict(stream.vectors[:50]), other.predict(stream.vectors[:50]))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_batches_snapshots_and_replays_change_nothing(engine, kind):
    stream = make(kind, 5)
    whole = clusterer(stream, engine)
    whole.add_many(stream.vectors)
    links = clusterer(stream, engine)
    for part in np.array_split(stream.vectors, 7):
        links.add_many(part)
        links = Links.from_bytes(links.to_bytes(), engine=engine)
        assert links.evidence == "cluster"
    assert links.state_hash() == whole.state_hash()
    assert Replay(whole.events()).labels() == whole.labels().tolist()


@pytest.mark.parametrize("engine", ENGINES)
def test_asking_tells_the_next_add(engine):
    stream = make("lobes", 2)
    links = clusterer(stream, engine)
    for x in stream.vectors[:150]:
        asked = int(links.predict([x])[0])
        decision = links.add(x)
        assert asked == (-1 if decision.kind == "new" else decision.cluster) or decision.kind == (
            "joined"
        )


def test_other_evidence_is_refused():
    with pytest.raises(ArgumentError, match="evidence"):
        Links(0.7, 0.6, 0.9, evidence="majority")
