"""Groups: vectors seen together get different clusters by the best assignment."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from linkstream import Links
from linkstream.errors import ArgumentError, VectorError
from linkstream.paper.algorithm import cosine, fixed_point
from linkstream.paper.thresholds import anisotropic_pair_threshold
from streams import ENGINES, around, make, unit

engines = pytest.mark.parametrize("engine", ENGINES)
KINDS = ("generative", "lobes", "chains", "grid", "lattice", "mirrored", "duplicates", "anything")
SCALE = 2**40  # totals are compared as sums of whole numbers


def clusterer(stream, engine, n, **options):
    links = Links(*stream.thresholds, engine=engine, threads=1, **options)
    links.add_many(stream.vectors[:n])
    return links


def admissible(links, x, taken=()):
    """Return the clusters that accept a vector (equations 20 and 21) and its similarities."""
    t_c, t_s, t_p = vars_of(links.thresholds)
    state, q, best = links.state(), fixed_point(x), {}
    for cluster, total, mass in zip(
        state.clusters.tolist(), state.sums, state.masses().tolist(), strict=True
    ):
        similarity = cosine(q, total)  # by number, so that of equals the older is kept
        if cluster not in best or similarity > best[cluster][0]:
            best[cluster] = similarity, min(t_s, anisotropic_pair_threshold(t_c, t_p, mass, 1.0))
    return {c: s for c, (s, needed) in best.items() if s >= needed and c not in taken}


def vars_of(thresholds):
    return (
        thresholds.cluster_similarity,
        thresholds.subcluster_similarity,
        thresholds.pair_similarity_max,
    )


def best_total(options):
    """Return the greatest total of all one-to-one assignments by trying each."""
    best = 0
    for choice in itertools.product(*[[None, *row] for row in options]):
        there = [cluster for cluster in choice if cluster is not None]
        if len(there) == len(set(there)):
            total = sum(
                round(row[cluster] * SCALE)
                for row, cluster in zip(options, choice, strict=True)
                if cluster is not None
            )
            best = max(best, total)
    return best


def placed(links, since):
    """Return the cluster of each arrival since an event, None for a new one."""
    kinds = ("created", "joined", "linked")
    arrivals = [event for event in links.events(since) if event.kind in kinds]
    return [None if event.kind == "created" else event.cluster for event in arrivals]


@engines
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6])
def test_no_other_assignment_has_a_greater_total(engine, kind, size):
    rng = np.random.default_rng([size, *kind.encode()])
    contested = 0
    for seed in range(6):
        stream = make(kind, 900 + seed, 60)
        links = clusterer(stream, engine, 30)
        group = stream.vectors[rng.choice(60, size=size, replace=False)]
        options = [admissible(links, x) for x in group]
        n_events = len(links.events())
        ids = links.add_group(group)
        choice = placed(links, n_events)
        assert [c is None or c in row for c, row in zip(choice, options, strict=True)] == [
            True
        ] * size
        total = sum(
            round(row[c] * SCALE) for c, row in zip(choice, options, strict=True) if c is not None
        )
        assert total == best_total(options)
        assert len(set(ids.tolist())) == size
        assert ids.tolist() == links.labels()[-size:].tolist()
        firsts = [max(row, key=row.get) for row in options if row]
        contested += len(firsts) > len(set(firsts))
    assert contested or size == 1


@engines
def test_the_second_best_cluster_is_chosen_if_the_total_is_greater(engine):
    links = Links(0.6, 0.9, 0.9, engine=engine)
    links.add_many([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    # The first would rather go to cluster 0, but only it can go to cluster 1.
    assert links.add_group([[0.8, 0.7, 0.0], [0.9, 0.0, 0.3]]).tolist() == [1, 0]


@engines
def test_equal_vectors_of_one_group_get_different_clusters(engine):
    links = Links(0.7, 0.6, 0.9, engine=engine)
    first = links.add_group([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    assert sorted(first.tolist()) == [0, 1, 2]
    assert sorted(links.add_group([[1.0, 0.0]] * 4).tolist()) == [0, 1, 2, 3]


@engines
def test_groups_of_one_key_are_one_group(engine):
    rng = np.random.default_rng(5)
    centre = unit(rng.standard_normal(8))
    links = Links(0.7, 0.8, 0.9, engine=engine)
    seen = []
    for _ in range(4):
        X = around(rng, np.tile(centre, (2, 1)), 0.98)
        seen += links.add_group(X, group="photo 1").tolist()
    seen.append(links.add(centre, group="photo 1").cluster)
    assert len(set(seen)) == len(seen) == 9
    assert links.add(centre, group="photo 2").cluster in seen
    again = Links.from_bytes(links.to_bytes(), engine=engine)
    assert again.add(centre, group="photo 1").cluster not in seen


@engines
@pytest.mark.parametrize("kind", KINDS)
def test_members_of_a_group_stay_apart_as_vectors_arrive(engine, kind):
    stream = make(kind, 77, 120)
    links = Links(*stream.thresholds, engine=engine, threads=1)
    groups = []
    for start in range(0, 120, 6):
        links.add_many(stream.vectors[start : start + 2])
        groups.append(range(start + 2, start + 6))
        links.add_group(stream.vectors[start + 2 : start + 6])
        links.settle(apply=True)
        labels = links.labels()
        for group in groups:
            assert len(set(labels[group].tolist())) == len(group)


@engines
def test_a_group_is_added_completely_or_not_at_all(engine):
    links = Links(0.7, 0.6, 0.9, engine=engine)
    links.add_many([[1.0, 0.0], [0.0, 1.0]])
    before = links.state_hash(), len(links.events())
    with pytest.raises(VectorError):
        links.add_group([[1.0, 0.1], [np.nan, 1.0]])
    assert (links.state_hash(), len(links.events())) == before
    links.add_group([[1.0, 0.1], [0.1, 1.0], [1.0, 0.1]])
    assert links.n_vectors == 5
    links.undo()
    assert links.state_hash() == before[0]


@engines
def test_an_empty_group_changes_nothing(engine):
    links = Links(0.7, 0.6, 0.9, engine=engine)
    links.add([1.0, 0.0])
    before = links.state_hash(), len(links.events())
    assert links.add_group([]).tolist() == []
    assert (links.state_hash(), len(links.events())) == before


@engines
@pytest.mark.parametrize("evidence", ["nearest", "cluster"])
def test_a_cluster_whose_vectors_cancel_out_is_similar_to_nothing(engine, evidence):
    links = Links(0.7, 0.8, 0.9, engine=engine, evidence=evidence)
    links.add_many([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    links.same(0, 1)
    links.settle(apply=True)
    assert links.add_group([[0.0, 0.0, 1.0], [0.0, 1.0, 0.1]]).tolist() == [3, 2]


@engines
def test_a_group_key_that_is_not_a_string_is_refused(engine):
    links = Links(0.7, 0.6, 0.9, engine=engine)
    with pytest.raises(ArgumentError):
        links.add_group([[1.0, 0.0]], group=7)
    assert links.n_vectors == 0


@pytest.mark.skipif("native" not in ENGINES, reason="built without the compiled core on purpose")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("evidence", ["nearest", "cluster"])
def test_both_engines_assign_alike(kind, evidence):
    stream = make(kind, 31, 90)
    both = [clusterer(stream, engine, 20, evidence=evidence) for engine in ENGINES]
    for start in range(20, 90, 7):
        group = stream.vectors[start : start + 7]
        one, other = (links.add_group(group, group=f"k{start % 2}").tolist() for links in both)
        assert one == other
    assert both[0].state_hash() == both[1].state_hash()
    assert both[0].events() == both[1].events()
