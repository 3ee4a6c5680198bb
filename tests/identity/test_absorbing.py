"""Absorbing a clusterer: no vector is lost, corrections hold, the order is fixed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from linkstream import Links, Space
from linkstream.data import voice_halves
from linkstream.errors import (
    ArgumentError,
    ContradictionError,
    DimensionError,
    NotTrackedError,
    SpaceError,
)
from linkstream.metrics import accuracy
from streams import ENGINES, make

engines = pytest.mark.parametrize("engine", ENGINES)
KINDS = ("generative", "lobes", "chains", "anything")
THREE = np.eye(3, dtype=np.float32)


def pair(kind="lobes", seed=1, **options):
    """Return two clusterers of one half of a stream each, and the halves."""
    stream = make(kind, seed)
    parts = stream.vectors[0:140:2], stream.vectors[1:140:2]
    made = [Links(*stream.thresholds, threads=1, **options) for _ in parts]
    for links, part in zip(made, parts, strict=True):
        links.add_many(part)
    return *made, *parts


def fresh(*rows, **options):
    links = Links(0.7, 0.6, 0.9, threads=1, **options)
    if rows:
        links.add_many(np.array(rows, dtype=np.float32))
    return links


def check(links):
    """Check that a state is valid: save, load and continue."""
    again = Links.from_bytes(links.to_bytes())
    assert again.state_hash() == links.state_hash()
    sizes = sum(cluster.size for cluster in links.clusters())
    assert sizes == links.n_vectors - int((links.labels() < 0).sum())


@engines
@pytest.mark.parametrize("kind", KINDS)
def test_every_vector_is_where_the_answer_says(kind, engine):
    one, two, _, part = pair(kind, 3, engine=engine)
    before = two.state_hash()
    moved = one.absorb(two)
    assert two.state_hash() == before  # the other stays as it is
    assert one.n_vectors == 140
    assert sorted(moved.vectors.tolist()) == list(range(70, 140))
    again = Links.from_thresholds(one.thresholds, threads=1)
    again.add_many(part)
    assert np.array_equal(one.core.kept(moved.vectors), again.core.kept(np.arange(70)))
    check(one)


@engines
def test_sums_are_those_of_the_vectors_to_the_last_bit(engine):
    one, two, *_ = pair("lobes", 5, engine=engine)
    one.absorb(two)
    state = one.state()
    rows = one.core.kept(np.arange(one.n_vectors)).astype(np.int64)
    for number, total in zip(state.numbers, state.sums, strict=True):
        assert np.array_equal(rows[state.vectors == number].sum(axis=0), total)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("evidence", ["nearest", "cluster"])
def test_both_engines_absorb_alike(kind, evidence):
    hashes = set()
    for engine in ENGINES:
        one, two, *_ = pair(kind, 7, engine=engine, evidence=evidence)
        moved = one.absorb(two)
        hashes.add((one.state_hash(), str(moved.to_dict()), str(one.events())))
    assert len(hashes) == 1


def test_absorbing_into_an_empty_clusterer_keeps_the_clusters():
    stream = make("generative", 2)
    other = Links(*stream.thresholds, threads=1)
    other.add_many(stream.vectors[:100])
    links = Links(*stream.thresholds, threads=1)
    moved = links.absorb(other)
    assert accuracy(other.labels(), links.labels()[moved.vectors]) > 0.95


def test_absorbing_an_empty_clusterer_changes_nothing():
    links = fresh(*THREE)
    before = links.state_hash()
    moved = links.absorb(fresh())
    assert (links.state_hash(), moved.clusters, len(moved.vectors)) == (before, {}, 0)
    assert links.absorb(fresh()).event == 3


def test_ids_of_the_source_are_mapped_and_not_confused_with_ours():
    one, two = fresh([1, 0, 0], [0, 1, 0]), fresh([0, 0, 1], [0, 1, 0], [-1, 0, 0])
    moved = one.absorb(two)
    assert moved.clusters == {0: 2, 1: 1, 2: 3}
    assert one.labels()[moved.vectors].tolist() == [2, 1, 3]


def test_joined_ids_of_the_source_map_to_one_cluster():
    one, two = fresh([1, 0, 0]), fresh([0, 1, 0], [0, 0, 1])
    two.same(0, 1, of="clusters")
    moved = one.absorb(two)
    assert moved.clusters[0] == moved.clusters[1] == one.labels()[moved.vectors[0]]


def test_a_removed_vector_is_not_absorbed():
    one, two = fresh([1, 0, 0]), fresh([0, 1, 0], [0, 0.99, 0.1], [0, 0, 1])
    two.remove(1)
    moved = one.absorb(two)
    assert moved.vectors.tolist() == [1, -1, 2]
    assert one.n_vectors == 3
    check(one)


def test_absorbed_vectors_keep_their_weight():
    one, two = fresh([1, 0, 0]), fresh()
    two.add([0, 1, 0], weight=0.25)
    two.add([0, 0.98, 0.2])
    one.absorb(two)
    missing_weight = one.state().missing_weight
    assert missing_weight.tolist() == [0, 192]
    check(one)


def test_different_corrections_are_carried_over():
    one, two = fresh([1, 0, 0]), fresh([0.99, 0.14, 0], [0.99, -0.14, 0])
    two.different(0, 1)
    assert two.n_clusters == 2
    moved = one.absorb(two)
    a, b = one.labels()[moved.vectors].tolist()
    assert a != b
    with pytest.raises(ContradictionError):
        one.same(int(moved.vectors[0]), int(moved.vectors[1]))
    one.add([0.99, 0.0, 0])
    a, b = one.labels()[moved.vectors].tolist()
    assert a != b


def test_members_of_a_group_stay_apart_after_absorbing():
    one, two = fresh([1, 0, 0]), fresh()
    two.add_group([[0.99, 0.14, 0], [0.99, -0.14, 0]], group="photo")
    moved = one.absorb(two)
    assert len(set(one.labels()[moved.vectors].tolist())) == 2


def test_names_are_carried_over_and_equal_names_join_clusters():
    one, two = fresh([1, 0, 0], [0, 1, 0]), fresh([0, 0, 1], [-1, 0, 0])
    one.name(0, "Ann")
    two.name(0, "Ann")
    two.name(1, "Ben")
    moved = one.absorb(two)
    assert one.named("Ann") == 0 == one.resolve(moved.clusters[0])
    assert one.named("Ben") == moved.clusters[1]
    check(one)


def test_clusters_of_different_names_are_not_joined():
    one, two = fresh([1, 0, 0]), fresh([0.999, 0.04, 0])
    one.name(0, "Ann")
    two.name(0, "Ben")
    moved = one.absorb(two)
    assert one.named("Ben") == moved.clusters[0] != one.named("Ann")


def test_prototypes_stay_locked_and_in_one_cluster():
    one, two = fresh([1, 0, 0]), fresh()
    two.enrol("Ann", [[0, 1, 0], [0, 0, 1]])
    moved = one.absorb(two)
    assert one.labels()[moved.vectors].tolist() == [one.named("Ann")] * 2
    flags = one.state().flags
    assert (flags[1:] == 3).all()
    before = one.state().sums
    one.add([0, 0.99, 0.1])
    assert np.array_equal(one.state().sums, before)  # they count, and do not drift


def test_a_contradiction_is_refused_and_changes_nothing():
    one, two = fresh([1, 0, 0], [0, 1, 0]), fresh([0.999, 0.04, 0], [0.04, 0.999, 0])
    one.different(0, 1, of="subclusters")
    two.same(0, 1, of="subclusters")
    before, n = one.state_hash(), len(one.events())
    with pytest.raises(ContradictionError):
        one.absorb(two)
    assert (one.state_hash(), len(one.events()), one.n_vectors) == (before, n, 2)
    assert one.add([0.0, 0.0, 1.0]).cluster == 2  # and it goes on


def test_corrections_of_vectors_hold_for_these_vectors_alone_after_absorbing():
    """They were once carried over as corrections of the subclusters that held the vectors."""
    one, two = fresh([1, 0, 0], [0, 1, 0]), fresh([0.999, 0.04, 0], [0.04, 0.999, 0])
    one.different(0, 1)
    two.same(0, 1)
    two.add_group([[0, 0, 1], [0, 0, -1]])
    moved = one.absorb(two)
    assert moved.vectors is not None
    labels = one.labels()
    a, b, *group = moved.vectors.tolist()
    assert labels[0] != labels[1]
    assert labels[a] == labels[b]
    assert labels[group[0]] != labels[group[1]]
    said = [(each.verb, each.a, each.b, each.of) for each in one.corrections()]
    assert said == [
        ("different", 0, 1, "vectors"),
        ("same", a, b, "vectors"),
        ("different", *group, "vectors"),
    ]


@engines
def test_one_undo_reverts_an_absorption(engine):
    one, two, *_ = pair("lobes", 9, engine=engine)
    before = one.state_hash()
    moved = one.absorb(two)
    after = one.state_hash()
    one.undo(to=moved.event)
    assert (one.state_hash(), one.n_vectors) == (before, 70)
    one.absorb(two)
    assert one.n_vectors == 140
    assert after != before


def test_undo_without_arguments_removes_all_absorbed_vectors():
    one, two, *_ = pair("lobes", 9)
    before = one.state_hash()
    one.absorb(two)
    one.undo()
    assert one.state_hash() == before


def test_untracked_counts_and_clusters_are_absorbed():
    one, two, *_ = pair("lobes", 4, track_vectors=False)
    sums = one.state().sums.sum() + two.state().sums.sum()
    moved = one.absorb(two)
    assert moved.vectors is None
    assert (one.n_vectors, one.state().counts.sum(), one.state().sums.sum()) == (140, 140, sums)


@pytest.mark.parametrize(
    ("other", "error"),
    [
        (lambda: fresh([1, 0]), DimensionError),
        (lambda: fresh([1, 0, 0], space=Space(model="another")), SpaceError),
        (lambda: fresh([1, 0, 0.5], space=Space(mean=[0.1, 0, 0])), SpaceError),
        (lambda: fresh([1, 0, 0], track_vectors=False), NotTrackedError),
        (lambda: fresh([1, 0, 0], keep_vectors=False), NotTrackedError),
        (lambda: THREE, ArgumentError),
    ],
)
def test_clusterers_that_do_not_fit_are_refused(other, error):
    links = fresh(*THREE)
    before = links.state_hash()
    with pytest.raises(error):
        links.absorb(other())
    assert links.state_hash() == before


def test_absorbing_itself_is_refused():
    links = fresh(*THREE)
    with pytest.raises(ArgumentError, match="itself"):
        links.absorb(links)


def test_voices_clustered_in_parts_are_as_accurate_as_in_one_run():
    _, voices = voice_halves()
    thresholds = 0.766, 0.645, 0.738
    whole = Links(*thresholds, threads=1)
    whole.add_many(voices.X)
    half = len(voices.X) // 2
    one, two = Links(*thresholds, threads=1), Links(*thresholds, threads=1)
    one.add_many(voices.X[:half])
    two.add_many(voices.X[half:])
    moved = one.absorb(two)
    joined = np.concatenate([one.labels()[:half], one.labels()[moved.vectors]])
    assert accuracy(voices.y, joined) > accuracy(voices.y, whole.labels()) - 0.05


# Subclusters: where each went, told to one who keeps a map of them

OPTIONS = [{}, {"heal": "join"}, {"heal": "settle"}, {"evidence": "cluster"}]


def holders(links):
    """Return the subcluster of each vector."""
    return links.state().vectors


@engines
@pytest.mark.parametrize("options", [*OPTIONS, {"track_vectors": False}], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_every_subcluster_of_the_source_maps_to_a_live_one(kind, options, engine):
    for seed in range(4):
        one, two, *_ = pair(kind, seed, engine=engine, **options)
        before = set(one.state().numbers.tolist())
        moved = one.absorb(two)
        living = set(one.state().numbers.tolist())
        assert moved.subclusters.keys() == set(two.state().numbers.tolist())
        assert set(moved.subclusters.values()) <= living
        assert before - living <= moved.merged.keys()  # what is no more is told
        assert not moved.merged.keys() & living
        assert set(moved.merged.values()) <= living


@engines
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", [*KINDS, "hub", "grid"])
def test_the_map_of_subclusters_agrees_with_the_vectors(kind, options, engine):
    for seed in range(4):
        one, two, *_ = pair(kind, seed, engine=engine, **options)
        mine, theirs = holders(one), holders(two)
        moved = one.absorb(two)
        now = holders(one)
        assert [moved.merged.get(number, number) for number in mine.tolist()] == now[:70].tolist()
        assert [moved.subclusters[number] for number in theirs.tolist()] == now[
            moved.vectors
        ].tolist()


def test_the_streams_of_these_tests_merge_subclusters():
    merged = 0
    for kind in (*KINDS, "hub", "grid"):
        for seed in range(4):
            one, two, *_ = pair(kind, seed)
            merged += len(one.absorb(two).merged)
    assert merged > 30


def test_the_map_follows_merges_of_merged_subclusters():
    """Merge a subcluster into a second, and that into a third."""
    chains = 0
    for kind in (*KINDS, "drifting", "hub"):
        for seed in range(12):
            one, two, *_ = pair(kind, seed)
            since = one.n_events
            moved = one.absorb(two)
            steps = {
                event.absorbed: event.subcluster
                for event in one.events(since)
                if event.kind == "merged"
            }
            chains += sum(survivor in steps for survivor in steps.values())
            assert moved.merged.keys() == steps.keys()
            assert not set(moved.merged.values()) & steps.keys()
    assert chains > 0


@pytest.mark.parametrize("limits", [{"max_subclusters": 4}, {"max_idle": 30}])
def test_subclusters_removed_by_limits_are_not_mapped_to_live_ones(limits):
    for kind in KINDS:
        one, two, *_ = pair(kind, 3, **limits)
        mine, theirs = holders(one), holders(two)
        moved = one.absorb(two)
        living, now = set(one.state().numbers.tolist()), holders(one)
        for before, after in zip(mine.tolist(), now[:70].tolist(), strict=True):
            here = moved.merged.get(before, before)
            assert here == after if here in living else after == -1
        for before, number in zip(theirs.tolist(), moved.vectors.tolist(), strict=True):
            here = moved.subclusters.get(before, -1)
            after = now[number] if number >= 0 else -1
            assert here == after if here in living else after == -1


def test_absorbing_an_empty_clusterer_gives_an_empty_map():
    links = fresh(*THREE)
    moved = links.absorb(fresh())
    assert (moved.subclusters, moved.merged) == ({}, {})


def test_the_answer_is_plain_values():
    one, two, *_ = pair("lobes", 1)
    moved = one.absorb(two)
    plain = json.loads(json.dumps(moved.to_dict()))
    assert set(plain) == {"clusters", "vectors", "event", "subclusters", "merged"}
    assert {int(number): here for number, here in plain["subclusters"].items()} == moved.subclusters


# Without vectors: what a shard sends


@engines
@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_without_vectors_has_the_same_clusters_and_decisions(kind, engine):
    stream = make(kind, 6)
    options = {"engine": engine, "threads": 1, "min_size": 2}
    links = Links(*stream.thresholds, **options)
    links.add_many(stream.vectors[:100])
    links.name(int(links.labels()[0]), "Ann")
    before = links.state_hash()
    bare = links.without_vectors()
    assert links.state_hash() == before
    assert (bare.track_vectors, bare.keep_vectors) == (False, False)
    assert (bare.engine, bare.n_vectors, bare.n_events) == (engine, 100, links.n_events)
    assert bare.clusters() == links.clusters()
    assert bare.state_hash() == Links.from_bytes(bare.to_bytes()).state_hash()
    more = stream.vectors[100:]
    assert bare.add_many(more).tolist() == links.add_many(more).tolist()
    assert bare.clusters() == links.clusters()
    assert bare.named("Ann") == links.named("Ann")
    assert len(bare.to_bytes()) < len(links.to_bytes())
    before = links.state_hash()
    bare.rename(bare.named("Ann"), "Bea")
    bare.forget(bare.named("Bea"))
    assert links.state_hash() == before


def test_a_copy_without_vectors_equals_an_untracked_run():
    stream = make("drifting", 4)
    links, plain = (Links(*stream.thresholds, track_vectors=track) for track in (True, False))
    for each in (links, plain):
        each.add_many(stream.vectors)
    assert links.without_vectors().state_hash() == plain.state_hash()
    assert plain.without_vectors().state_hash() == plain.state_hash()


def test_weights_aliases_and_ignored_clusters_are_copied():
    links = fresh([1, 0, 0], [0, 1, 0], [0, 0, 1])
    links.add([0.99, 0.1, 0], weight=0.25)
    links.remove(1)
    links.ignore(2)
    bare = links.without_vectors()
    assert bare.state().missing_weight.tolist() == links.state().missing_weight.tolist()
    assert (bare.resolve(1), bare.n_clusters) == (-1, 2)
    assert [cluster.ignored for cluster in bare.clusters()] == [False, True]
    again = fresh()
    again = again.without_vectors()
    assert again.n_vectors == 0
    again.absorb(bare)
    assert sorted(again.state().missing_weight.tolist()) == sorted(
        links.state().missing_weight.tolist()
    )


def test_ids_joined_by_healing_still_map_to_one_cluster():
    stream = make("lobes", 3)
    links = Links(*stream.thresholds, threads=1, heal="settle")
    links.add_many(stream.vectors)
    given = range(links.core.engine.n_cluster_ids)
    bare = links.without_vectors()
    assert [bare.resolve(each) for each in given] == [links.resolve(each) for each in given]


@pytest.mark.parametrize(
    "said",
    [
        lambda links: links.different(0, 1),
        lambda links: links.same(0, 1),
        lambda links: links.enrol("Ann", [[1, 1, 0]]),
        lambda links: links.add_group([[0, 1, 1], [1, 0, 1]]),
    ],
)
def test_a_copy_that_would_lose_corrections_of_vectors_is_refused(said):
    links = fresh(*THREE)
    said(links)
    with pytest.raises(ArgumentError, match="constraints, groups or prototypes"):
        links.without_vectors()


@pytest.mark.parametrize("kind", KINDS)
def test_absorbing_copies_without_vectors_gives_the_same_clusters(kind):
    one, two, *_ = pair(kind, 8)
    bare, other = one.without_vectors(), two.without_vectors()
    moved, barely = one.absorb(two), bare.absorb(other)
    assert bare.clusters() == one.clusters()
    assert (barely.clusters, barely.subclusters, barely.merged) == (
        moved.clusters,
        moved.subclusters,
        moved.merged,
    )
    assert barely.vectors is None
