"""Each verb in a small scenario, on both engines; test_machine.py combines them."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream import Links
from linkstream.errors import (
    ArgumentError,
    ContradictionError,
    NotTrackedError,
    RemovedError,
    UndoError,
    UnknownIdError,
)
from streams import ENGINES, KINDS, make

pytestmark = pytest.mark.parametrize("engine", ENGINES)

A, B, C = np.eye(3)
NEAR_A, NEAR_B = [0.96, 0.28, 0.0], [0.28, 0.96, 0.0]


def clusterer(engine, **options):
    return Links(0.7, 0.8, 0.9, engine=engine, **options)


def kinds(links, since=0):
    return [event.kind for event in links.events(since)]


# IDs


def test_joining_two_clusters_keeps_the_older_id(engine):
    links = clusterer(engine)
    links.add_many([A, B, B, B])
    links.same(1, 0, of="clusters")
    assert links.labels().tolist() == [0, 0, 0, 0]
    assert links.resolve(1) == 0


def test_joining_keeps_the_id_of_the_named_cluster(engine):
    links = clusterer(engine)
    links.add_many([A, B])
    links.name(1, "Bob")
    links.same(0, 1)
    assert links.labels().tolist() == [1, 1]
    assert links.resolve(0) == 1
    assert links.clusters()[0].name == "Bob"


def test_a_split_gives_the_id_to_the_part_with_prototypes(engine):
    links = clusterer(engine)
    cluster = links.enrol("Ann", [A])
    links.add_many([B] * 5)
    links.same(0, 1)  # Bob's five with Ann's one
    links.undo()
    links.same(0, 1)
    links.different(0, 2)  # one of the five is taken out, the law holds the rest
    assert links.labels()[0] == cluster
    assert links.clusters()[0].name == "Ann"


def test_ids_are_not_reused_after_undo(engine):
    links = clusterer(engine)
    links.add_many([A, B])
    links.undo()
    assert links.add(C).cluster == 2
    assert links.resolve(1) == -1
    with pytest.raises(RemovedError):
        links.name(1, "Bob")


# Corrections


def test_a_correction_holds_against_many_later_vectors_and_a_reload(engine):
    links = clusterer(engine)
    links.add_many([A, B, NEAR_A])
    links.different(0, 2)
    links.same(0, 1)
    rng = np.random.default_rng(0)
    centres = np.array([A, B, NEAR_A])[rng.integers(0, 3, 300)]
    for part in np.split(centres + 0.05 * rng.normal(size=(300, 3)), 3):
        links.add_many(part)
        links = Links.from_bytes(links.to_bytes(), engine=engine)
        links.settle(apply=True)
        labels = links.labels()
        assert labels[0] == labels[1] != labels[2]


def test_moving_a_vector_moves_its_contribution(engine):
    links, plain = clusterer(engine), clusterer(engine)
    links.add_many([A, A, B])
    links.move(1, 1)
    plain.add_many([A, B])
    sums = links.state().sums
    assert np.array_equal(sums[0], plain.state().sums[0])
    assert links.labels().tolist() == [0, 1, 1]


def test_a_vector_can_be_moved_back(engine):
    links = clusterer(engine)
    links.add_many([A, A, B, C])
    for cluster in (1, 2, 0):
        links.move(1, cluster)
        assert links.labels()[1] == cluster


def test_separated_and_ignored_clusters_are_not_suggested(engine):
    links = clusterer(engine)
    links.add_many([A, B, C])
    links.different(0, 1, of="clusters")
    assert {s.clusters for s in links.suggest_merges()} == {(0, 2), (1, 2)}
    links.ignore(2)
    assert links.suggest_merges() == []
    links.ignore(2, False)
    assert len(links.suggest_merges()) == 2


# Removal and undo


@pytest.mark.parametrize("kind", KINDS)
def test_removals_leave_the_exact_sum_of_the_other_vectors(engine, kind):
    stream = make(kind, 1)
    links = Links(*stream.thresholds, engine=engine)
    links.add_many(stream.vectors[:60])
    rng = np.random.default_rng(0)
    for vector in rng.permutation(60)[:30].tolist():
        links.remove(vector)
    state = links.state()
    rows = links.core.vectors.rows(np.arange(60)).astype(np.int64)
    for place, number in enumerate(state.numbers.tolist()):
        assert np.array_equal(state.sums[place], rows[state.vectors == number].sum(axis=0))
    assert (state.vectors == -1).sum() == 30


def test_removing_every_vector_leaves_an_empty_graph(engine):
    links = clusterer(engine)
    links.add_many([A, NEAR_A, B])
    for vector in range(3):
        links.remove(vector)
    assert (links.n_subclusters, links.n_clusters) == (0, 0)
    assert links.labels().tolist() == [-1, -1, -1]
    assert [links.resolve(cluster) for cluster in (0, 1)] == [-1, -1]
    assert links.add(A).cluster == 2


def test_untracked_vectors_are_removed_by_coordinates(engine):
    links = clusterer(engine, track_vectors=False)
    links.add_many([A, NEAR_A, B])
    links.remove(NEAR_A)
    assert [(view.id, view.size) for view in links.clusters()] == [(0, 1), (1, 1)]
    only = clusterer(engine, track_vectors=False)
    only.add_many([A, B])
    assert np.array_equal(links.state().sums, only.state().sums)


def test_a_vector_that_is_tracked_and_not_kept_is_removed_with_its_coordinates(engine):
    links = clusterer(engine, keep_vectors=False)
    links.add_many([A, NEAR_A])
    links.remove(1, x=NEAR_A)
    assert links.labels().tolist() == [0, -1]


@pytest.mark.parametrize("kind", KINDS)
def test_undo_goes_back_vector_by_vector_to_the_beginning(engine, kind):
    stream = make(kind, 2)
    links = Links(*stream.thresholds, engine=engine)
    hashes = [links.state_hash()]
    for x in stream.vectors[:40]:
        links.add(x)
        hashes.append(links.state_hash())
    while hashes:
        assert links.state_hash() == hashes.pop()
        if hashes:
            links.undo()
    with pytest.raises(UndoError):
        links.undo()


def test_undo_takes_back_settling_joins_and_forgetting(engine):
    links = clusterer(engine)
    links.add_many([A, [0.72, 0.69, 0.0], C, C])
    for deed in (
        lambda: links.settle(apply=True),
        lambda: links.same(0, 2),
        lambda: links.forget(links.labels()[0]),
        lambda: links.enrol("Ann", [A, C]),
    ):
        before = links.state_hash()
        deed()
        assert links.state_hash() != before
        links.undo()
        assert links.state_hash() == before


def test_drained_events_are_returned_once_and_cannot_be_undone(engine):
    links = clusterer(engine)
    links.add_many([A, B])
    assert [event.sequence for event in links.drain_events()] == [0, 1]
    assert links.drain_events() == []
    with pytest.raises(NotTrackedError):
        links.events(since=0)
    before = links.state_hash()
    links.add(C)
    links.same(0, 1)
    assert kinds(links, 2)[0] == "created"
    links.undo()
    links.undo()
    assert links.state_hash() == before
    with pytest.raises(UndoError):
        links.undo()


# Seeds, weights, bounds


def test_a_locked_prototype_accepts_vectors_and_does_not_move(engine):
    links = clusterer(engine)
    cluster = links.enrol("Ann", [A])
    before = links.state().sums.copy()
    assert set(links.add_many([NEAR_A] * 20)) == {cluster}
    assert np.array_equal(links.state().sums, before)
    assert links.clusters()[0].size == 21
    loose = clusterer(engine)
    loose.enrol("Ann", [A], locked=False)
    loose.add_many([NEAR_A] * 20)
    assert not np.array_equal(loose.state().sums, before)


def test_a_lower_weight_moves_the_centroid_less_and_weight_zero_not_at_all(engine):
    links = clusterer(engine)
    links.add(A)
    full, light = clusterer(engine), clusterer(engine)
    full.add_many([A, NEAR_A])
    light.add_many([A, NEAR_A], weight=[1.0, 0.25])
    before = links.state_hash()
    assert links.add(NEAR_A, weight=0).cluster == 0
    assert links.add(C, weight=0).cluster == -1
    assert links.state_hash() == before

    def turned(clusterer):
        total = clusterer.state().sums[0]
        return total[1] / np.linalg.norm(total)

    assert 0 < turned(light) < turned(full)


def test_adding_and_removing_weighted_vectors_restores_the_sums(engine):
    links = clusterer(engine)
    links.add_many([A, B])
    sums = links.state().sums
    for weight in (0.004, 0.1, 0.33, 0.999):
        links.add(NEAR_A, weight=weight)
        links.remove(links.n_vectors - 1)
        assert np.array_equal(links.state().sums, sums)


def test_a_limit_of_subclusters_removes_clusters_without_a_name(engine):
    links = clusterer(engine, max_subclusters=10)
    rng = np.random.default_rng(0)
    links.add(A)
    links.name(0, "Ann")
    stranger = links.add(-A).cluster
    for x in rng.normal(size=(300, 3)):
        links.add(x)
        assert links.n_subclusters <= 10
    assert links.resolve(0) == 0
    assert links.resolve(stranger) == -1
    assert "forgotten" in kinds(links)


def test_limits_do_not_depend_on_batch_sizes(engine):
    X = np.random.default_rng(1).normal(size=(200, 4))
    hashes = set()
    for size in (1, 7, 200):
        links = clusterer(engine, max_subclusters=12, max_idle=50)
        for start in range(0, 200, size):
            links.add_many(X[start : start + size])
        hashes.add(links.state_hash())
    assert len(hashes) == 1


def test_idle_clusters_without_a_name_are_forgotten(engine):
    links = clusterer(engine, max_idle=20)
    links.add_many([A, B])
    links.name(0, "Ann")
    links.add_many([C] * 40)
    assert [view.id for view in links.clusters()] == [0, 2]


def test_small_clusters_without_a_name_are_pending(engine):
    links = clusterer(engine, min_size=2)
    links.add_many([A, A, B, C])
    links.name(2, "Cy")
    assert [view.pending for view in links.clusters()] == [False, True, False]


def test_options_and_corrections_survive_a_reload(engine):
    links = clusterer(engine, min_size=3, max_subclusters=50, max_idle=900)
    links.add_group([A, B], group="photo")
    links.name(0, "Ann")
    links.ignore(1)
    links.add(C, weight=0.5)
    links.different(0, 2)
    again = Links.from_bytes(links.to_bytes(), engine=engine)
    assert again.state_hash() == links.state_hash()
    assert again.clusters() == links.clusters()
    assert again.events() == links.events()
    assert (again.limits, again.min_size, again.keep_vectors) == (links.limits, 3, True)
    for clusterer_ in (links, again):
        assert clusterer_.add(A, group="photo").cluster == 3
        clusterer_.undo()
        clusterer_.undo()
    assert again.state_hash() == links.state_hash()


# Reasons


def test_a_history_lists_creation_names_splits_joins_and_removal(engine):
    links = clusterer(engine)
    links.add_many([A, NEAR_A, B])
    links.name(0, "Ann")
    links.different(0, 1)
    links.same(1, 2)
    links.forget(0)
    told = [str(links.history(cluster)).count("event") for cluster in (0, 1, 2)]
    assert "named 'Ann'" in str(links.history(0))
    assert "forgotten" in str(links.history(0))
    assert "taken out" in str(links.history(2))
    assert links.history(2).survivor == 1
    assert min(told) >= 2


def test_exemplars_are_members_central_first_and_newest_last(engine):
    links = clusterer(engine)
    links.add_many([A, NEAR_A, A, B])
    shown = links.exemplars(0, limit=2)
    assert shown.central[0] in (0, 2)
    assert shown.newest[0] == 2
    assert shown.doubtful[0] == 1


def test_members_are_the_vectors_of_a_cluster_newest_first(engine):
    links = clusterer(engine)
    links.add_many([A, NEAR_A, A, B])
    assert links.members(0).tolist() == [2, 1, 0]
    assert links.members(0, limit=2).tolist() == [2, 1]
    assert links.members(0, before=2).tolist() == [1, 0]
    assert links.members(0, before=0).tolist() == []
    links.remove(1)
    assert links.members(0).tolist() == [2, 0]
    links.same(0, 3)
    assert links.members(1).tolist() == links.members(0).tolist() == [3, 2, 0]


def test_a_cluster_is_read_alone_as_among_all(engine):
    links = clusterer(engine)
    links.add_many([A, A, B, A])
    links.name(0, "Ann")
    links.ignore(1)
    assert [links.cluster(each.id) for each in links.clusters()] == links.clusters()
    assert links.cluster(0).name == "Ann"
    assert links.cluster(1).ignored
    links.same(0, 1, of="clusters")
    assert links.cluster(1) == links.cluster(0) == links.clusters()[0]
    assert links.cluster_state(1).counts.sum() == 4
    links.forget(0)
    with pytest.raises(RemovedError, match="It was forgotten"):
        links.cluster(0)


def test_members_of_what_is_not_there_are_refused(engine):
    links = clusterer(engine)
    with pytest.raises(UnknownIdError, match="nothing was added"):
        links.members(0)
    links.add_many([A, B])
    for options in ({"limit": 0}, {"limit": 1.5}, {"before": -1}, {"before": True}):
        with pytest.raises(ArgumentError, match="a whole number"):
            links.members(0, **options)
    links.forget(1)
    with pytest.raises(RemovedError, match="It was forgotten"):
        links.members(1)
    untracked = clusterer(engine, track_vectors=False)
    untracked.add(A)
    with pytest.raises(NotTrackedError, match=r"members\(\) of a clusterer that does not track"):
        untracked.members(0)


# What an examiner found


@pytest.mark.parametrize("leave", ["remove", "move"])
def test_corrections_of_clusters_survive_the_removal_of_their_subclusters(engine, leave):
    links = Links(0.6, 0.95, 0.9, engine=engine)
    links.add_many([A, B, C])
    links.different(0, 1, of="clusters")
    links.add([0.8, 0.6, 0.0])  # a second subcluster of cluster 0
    if leave == "remove":
        links.remove(0)
    else:
        links.move(0, 2)
    links.settle(apply=True)
    assert links.resolve(0) != links.resolve(1)
    with pytest.raises(ContradictionError):
        links.same(0, 1, of="clusters")


def test_joined_clusters_stay_joined_when_the_connecting_vector_is_removed(engine):
    links = Links(0.6, 0.95, 0.9, engine=engine)
    links.add_many([A, C])
    links.same(0, 1, of="clusters")
    links.add([0.8, 0.6, 0.0])
    links.remove(0)
    assert links.labels().tolist() == [-1, 0, 0]


def test_untracked_removal_is_exact_for_weighted_vectors_and_locked_subclusters(engine):
    links = clusterer(engine, track_vectors=False)
    links.enrol("Ann", [A])
    links.add(B)
    sums = links.state().sums
    for x, weight in ((NEAR_A, 1.0), (NEAR_B, 0.25)):
        links.add(x, weight=weight)
        links.add(x, weight=weight)
        links.remove(x, weight=weight)
        links.remove(x, weight=weight)
    assert np.array_equal(links.state().sums, sums)
    assert [view.size for view in links.clusters()] == [1, 1]


def test_a_named_part_keeps_the_id_if_requested(engine):
    links = Links(0.6, 0.95, 0.9, engine=engine)
    links.add_many([A, A, A])
    links.name(0, "Ann", claim=True)
    links.add_many([[0.8, 0.6, 0.0]] * 9)
    links.different(0, 3)  # three against nine, and the three have the claim
    labels = links.labels()
    assert labels[0] == 0
    assert labels[3] != 0


def test_limits_apply_to_one_large_cluster_and_keep_the_newest(engine):
    rng = np.random.default_rng(0)
    centre = rng.standard_normal(16)
    links = Links(0.5, 0.9, 0.95, engine=engine, max_subclusters=20)
    links.add(centre)
    links.name(0, "Ann")
    for x in centre + 0.9 * rng.standard_normal((150, 16)):
        decision = links.add(x)
        assert links.resolve(decision.cluster) == decision.cluster
        assert links.n_subclusters <= 20
    assert links.resolve(0) == 0


def test_a_history_omits_undone_events(engine):
    links = clusterer(engine)
    links.add_many([A, B])
    links.same(0, 1)
    links.undo()
    assert links.history(1).survivor is None
    assert "joined" not in str(links.history(1))


def test_adding_with_weight_zero_changes_nothing_and_respects_groups(engine):
    links = clusterer(engine)
    assert links.add(A, weight=0).cluster == -1
    assert links.dimension is None
    links.add(A, group="photo")
    assert links.add(NEAR_A, weight=0).cluster == 0
    assert links.add(NEAR_A, weight=0, group="photo").cluster == -1


@pytest.mark.parametrize(
    "misuse",
    [
        lambda links: links.same(None, 1),
        lambda links: links.different("a", 1),
        lambda links: links.same(0, 1, of=np.array(["vectors"])),
        lambda links: links.name(0, float("nan")),
        lambda links: links.named(np.array([0, 1])),
        lambda links: links.add(A, weight=np.array([1.0, 1.0])),
        lambda links: links.settle(thresholds=0.7),
        lambda links: links.settle(apply="yes"),
        lambda links: links.undo(to=[0]),
        lambda links: links.undo(to=True),
        lambda links: links.same(2**70, 0, of="subclusters"),
        lambda links: links.events(-1),
        lambda links: links.enrol("Ann", [A], locked="a"),
        lambda links: links.remove(0, cluster=0),
    ],
)
def test_arguments_of_wrong_types_give_typed_errors(engine, misuse):
    links = clusterer(engine)
    links.add_many([A, B])
    before = links.state_hash(), links.events()
    with pytest.raises(ArgumentError):
        misuse(links)
    assert (links.state_hash(), links.events()) == before
