"""Corrections after corrections: the more specific one wins, contradictions are refused."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest

from linkstream import Links
from linkstream.errors import ArgumentError, ContradictionError, UnknownIdError
from linkstream.identity import records
from streams import ENGINES, around, unit

pytestmark = pytest.mark.parametrize("engine", ENGINES)

A, B, C, D = np.eye(4)


def clusterer(engine, *vectors, **options):
    links = Links(0.7, 0.8, 0.9, engine=engine, threads=1, **options)
    links.add_many(list(vectors))
    return links


def refusal(verb, *arguments, **options):
    with pytest.raises(ContradictionError) as raised:
        verb(*arguments, **options)
    return raised.value


# One wrong face among two that were joined


def test_a_vector_can_be_separated_from_two_joined_clusters(engine):
    links = clusterer(engine, A, A, A, B, B, B)
    links.same(0, 1, of="clusters")
    links.different(0, 4)  # across the merge: the second leaves
    assert links.labels().tolist() == [0, 0, 0, 0, 2, 0]
    links.different(0, 1)  # of one side only
    assert links.labels().tolist() == [0, 3, 0, 0, 2, 0]
    links.add_many([A, B])
    assert links.labels()[-2:].tolist() == [0, 0]  # one identity still


def test_two_joined_clusters_of_one_vector_can_be_separated_by_vectors(engine):
    links = clusterer(engine, A, B)
    links.same(0, 1, of="clusters")
    links.different(0, 1)
    assert len(set(links.labels().tolist())) == 2


@pytest.mark.parametrize("leave", ["different", "move", "remove"])
def test_joined_clusters_stay_joined_when_the_pinned_subcluster_is_removed(engine, leave):
    links = Links(0.6, 0.95, 0.9, engine=engine, threads=1)
    links.add_many([A, A, [0.8, 0.6, 0, 0], C, D])  # cluster 0: two subclusters, the first larger
    links.same(0, 1, of="clusters")
    for vector in (0, 1):
        if leave == "different":
            links.different(3, vector)
        elif leave == "move":
            links.move(vector, 2)
        else:
            links.remove(vector)
    labels = links.labels()
    assert labels[2] == labels[3]
    assert labels[0] != labels[2] != labels[1]


def joined_crowds(engine, seed, **options):
    """Return two large joined clusters of several subclusters each, and some others."""
    rng = np.random.default_rng(seed)
    people = unit(rng.standard_normal((6, 16)))
    sizes = [60, 50, 10, 10, 5, 5]
    looks = [around(rng, np.repeat(person[np.newaxis], 3, axis=0), 0.9) for person in people]
    places = [look[rng.integers(3, size=n)] for look, n in zip(looks, sizes, strict=True)]
    X = around(rng, np.concatenate(places), 0.97)
    links = Links(0.7, 0.93, 0.85, engine=engine, threads=1, **options)
    links.add_many(X[rng.permutation(len(X))])
    one, other = sorted(links.clusters(), key=lambda view: -view.size)[:2]
    links.same(one.id, other.id, of="clusters")
    members = np.flatnonzero(links.labels() == links.resolve(one.id))
    assert len(one.subclusters) + len(other.subclusters) > 4
    return links, members, rng


def said_to_be(said, v, w):
    """Return whether the corrections imply that two vectors are the same, or different."""
    groups = {x: {x} for pair in [*said["same"], *said["different"], (v, w)] for x in pair}
    for a, b in said["same"]:
        both = groups[a] | groups[b]
        for x in both:
            groups[x] = both
    if w in groups[v]:
        return "same"
    apart = [(groups[v], groups[w]), (groups[w], groups[v])]
    if any(a in ones and b in others for a, b in said["different"] for ones, others in apart):
        return "different"
    return None


@pytest.mark.parametrize(
    "options", [{}, pytest.param({"evidence": "cluster"}, marks=pytest.mark.long)]
)
def test_only_contradictions_are_refused_among_300_corrections_after_a_merge(engine, options):
    links, members, rng = joined_crowds(engine, 5, **options)
    said, named = {"same": [], "different": []}, []
    for _ in range(300):
        v, w = rng.choice(members, size=2, replace=False).tolist()
        verb = str(rng.choice(["different", "different", "same"]))
        follows = said_to_be(said, v, w)
        try:
            getattr(links, verb)(v, w)
        except ContradictionError as error:
            assert follows not in (None, verb)
            named.append(error.correction)
        else:
            assert follows in (None, verb)
            said[verb].append((v, w))
        labels = links.labels()
        assert all(labels[a] == labels[b] for a, b in said["same"])
        assert all(labels[a] != labels[b] for a, b in said["different"])
    assert 0 < len(named) < 100
    assert set(named) <= {correction.number for correction in links.corrections()}


# Which of two corrections wins


def test_same_of_vectors_overrides_an_earlier_different_of_clusters(engine):
    links = clusterer(engine, A, A, B, B)
    links.different(0, 1, of="clusters")
    links.same(0, 2)  # the second comes to the first
    assert links.labels().tolist() == [0, 0, 0, 1]
    links.settle(apply=True)
    assert links.labels().tolist() == [0, 0, 0, 1]


def test_different_of_vectors_overrides_an_earlier_same_of_subclusters(engine):
    links = clusterer(engine, A, A, B, B)
    links.same(0, 1, of="subclusters")
    links.different(0, 2)
    assert links.labels().tolist() == [0, 0, 2, 0]


def test_same_of_subclusters_overrides_an_earlier_different_of_clusters(engine):
    links = Links(0.6, 0.95, 0.9, engine=engine, threads=1)
    links.add_many([A, [0.8, 0.6, 0, 0], C, [0, 0, 0.8, 0.6]])
    assert links.labels().tolist() == [0, 0, 1, 1]
    links.different(0, 1, of="clusters")
    links.same(0, 2, of="subclusters")
    assert links.labels().tolist() == [0, 0, 0, 2]  # and the rest of them stays apart
    retracted = [event for event in links.events() if event.kind == "retracted"]
    assert [(event.subcluster, event.asked) for event in retracted] == [(2, 0)]


def test_different_of_subclusters_overrides_an_earlier_same_of_clusters(engine):
    links = clusterer(engine, A, B)
    links.same(0, 1, of="clusters")
    links.different(0, 1, of="subclusters")
    assert links.labels().tolist() == [0, 2]
    assert [str(each).split(": ")[1] for each in links.corrections()] == [
        "different(0, 1) of subclusters"
    ]


def test_joining_clusters_leaves_out_separated_vectors(engine):
    links = clusterer(engine, A, A, B, B)
    links.different(0, 2)
    links.same(0, 1, of="clusters")
    assert links.labels().tolist() == [0, 0, 2, 0]


def test_clusters_of_only_two_separated_vectors_are_not_joined(engine):
    links = clusterer(engine, A, B)
    links.different(0, 1)
    error = refusal(links.same, 0, 1, of="clusters")
    assert "different(0, 1) of vectors" in str(error)


def test_a_moved_vector_leaves_after_a_later_different(engine):
    links = clusterer(engine, A, A, B, C)
    for vector in (0, 1):
        links.move(vector, 1)
    links.different(0, 1)
    labels = links.labels()
    assert labels[0] == labels[2] != labels[1]


def test_vectors_declared_the_same_leave_together(engine):
    links = clusterer(engine, A, A, A, B, B, B)
    links.same(0, 1, of="clusters")
    links.same(1, 3)  # one of each side
    links.same(0, 4)
    links.different(0, 1)
    labels = links.labels()
    assert labels[0] == labels[4] != labels[1] == labels[3]


def test_prototypes_stay_together_and_other_vectors_leave(engine):
    links = clusterer(engine, B, B, B)
    links.enrol("Ann", [A, C])
    links.same(links.named("Ann"), 0, of="clusters")
    links.different(3, 0)
    labels = links.labels()
    assert labels[3] == labels[4] == labels[1] == links.named("Ann") != labels[0]
    error = refusal(links.different, 3, 4)
    assert error.correction is None
    assert "enrol('Ann')" in str(error)


def test_members_of_a_group_stay_apart_after_same_of_their_clusters(engine):
    links = clusterer(engine)
    links.add_group([A, B])
    for of in ("vectors", "subclusters", "clusters"):
        error = refusal(links.same, 0, 1, of=of)
        assert "seen together" in str(error)
        assert error.correction is None


# A contradiction names one correction, once


def test_a_contradiction_about_the_same_vectors_is_refused_by_name(engine):
    links = clusterer(engine, A, B)
    number = links.n_events
    links.same(0, 1)
    before = links.state_hash()
    error = refusal(links.different, 0, 1)
    assert error.correction == number
    assert str(error).count("same(0, 1)") == 1
    assert f"retract({number})" in error.remedy
    assert links.state_hash() == before
    links.retract(number)
    links.different(0, 1)


def test_the_error_names_the_newest_correction_of_a_chain_once(engine):
    links = clusterer(engine, A, B, C, D)
    links.same(0, 1)
    links.same(2, 3)
    newest = links.n_events
    links.same(1, 2)
    error = refusal(links.different, 0, 3)
    assert error.correction == newest
    assert len(error.chain) == len(set(error.chain)) == 3
    assert str(error).count("same(") == 1
    assert "same(1, 2)" in str(error)


def test_the_chain_of_a_contradiction_has_every_step_from_one_to_the_other(engine):
    links = clusterer(engine, A, A)
    links.enrol("Ann", [A])  # vector 2, in the locked subcluster 1
    links.add_many([B, C])
    links.move(0, links.named("Ann"))
    links.different(4, 3)
    links.same(0, 3)
    told = [str(each).split(": ")[1] for each in links.corrections()]
    assert told == ["move(0, 1)", "different(4, 3) of vectors", "same(0, 3) of vectors"]
    error = refusal(links.same, 4, 2)
    steps = [step.split(", event")[0] for step in error.chain]
    assert steps == [*told[1:], "vectors 0 and 2 are in subcluster 1"]
    assert error.correction == links.corrections()[-1].number
    back = refusal(links.same, 2, 4)
    assert back.chain == error.chain[::-1]


def test_the_chain_of_a_cut_that_is_refused_has_every_step(engine):
    links = clusterer(engine, A, A, B)
    links.same(0, 2)
    error = refusal(links.different, 0, 1, of="subclusters")
    assert [step.split(", event")[0] for step in error.chain] == [
        "vector 0 is in subcluster 0",
        "same(0, 2) of vectors",
        "vector 2 is in subcluster 1",
    ]


# Retracting


def test_retracting_separates_parts_joined_by_the_correction_alone(engine):
    links = clusterer(engine, A, B, C)
    first = links.n_events
    links.same(0, 1)
    links.same(1, 2)  # stays, though it came later
    links.retract(first)
    labels = links.labels()
    assert labels[0] != labels[1] == labels[2]
    assert [correction.number for correction in links.corrections()] != [first]
    with pytest.raises(UnknownIdError):
        links.retract(first)


def test_retracting_keeps_parts_together_that_the_evidence_joins(engine):
    links = Links(0.6, 0.95, 0.9, engine=engine, threads=1)
    chain = [[1, 0, 0, 0], [0.8, 0.6, 0, 0], [0.28, 0.96, 0, 0], [-0.35, 0.93, 0, 0]]
    links.add_many(chain)
    assert links.n_clusters == 1
    edges = links.state().edges.tolist()
    links.same(0, 3)  # takes the place of the weakest edge between them
    assert links.state().edges.tolist() != edges
    links.retract(links.corrections()[0].number)
    assert links.n_clusters == 1
    assert links.state().edges.tolist() == edges
    assert not links.state().edge_rules.any()


def test_another_correction_keeps_parts_together_after_a_retraction(engine):
    links = clusterer(engine, A, B)
    first = links.n_events
    links.same(0, 1)
    links.same(0, 1, of="subclusters")
    links.retract(first)
    assert links.labels().tolist() == [0, 0]


def test_retracting_a_different_joins_nothing_and_allows_joins(engine):
    links = clusterer(engine, A, A, B)
    links.different(0, 1)
    number = links.corrections()[0].number
    refusal(links.same, 0, 1)
    links.retract(number)
    assert links.labels().tolist() == [0, 2, 1]
    links.same(0, 1)
    assert links.labels().tolist() == [0, 0, 1]


def test_retracting_a_move_leaves_the_vector_in_place(engine):
    links = clusterer(engine, A, A, B)
    links.move(1, 1)
    links.retract(links.corrections()[0].number)
    assert links.corrections() == []
    assert links.labels()[0] == 0
    links.move(1, 0)
    assert links.labels()[1] == 0


def test_a_retraction_can_be_undone_and_survives_a_reload(engine):
    links = clusterer(engine, A, B, C)
    links.same(0, 1)
    links.different(1, 2)
    before, told = links.state_hash(), links.corrections()
    links.retract(told[0].number)
    again = Links.from_bytes(links.to_bytes(), engine=engine, threads=1)
    assert again.corrections() == links.corrections() == told[1:]
    assert again.state_hash() == links.state_hash() != before
    for each in (links, again):
        each.undo()
        assert each.state_hash() == before
        assert each.corrections() == told


def test_corrections_are_listed_by_their_events(engine):
    links = clusterer(engine, A, A, B, B)
    links.same(0, 1)
    links.different(0, 1, of="clusters")
    links.move(3, 0)
    told = links.corrections()
    assert [(each.verb, each.a, each.b, each.of) for each in told] == [
        ("same", 0, 1, "vectors"),
        ("different", 0, 1, "clusters"),
        ("move", 3, 0, "vectors"),
    ]
    kinds = {event.sequence: event.kind for event in links.events()}
    assert [kinds[each.number] for each in told] == ["same", "different", "relocated"]
    assert told[0].to_dict() == {
        "number": told[0].number,
        "verb": "same",
        "a": 0,
        "b": 1,
        "of": "vectors",
    }


@pytest.mark.parametrize("number", [-1, 0, 10**9, "0", None, True, 0.0])
def test_an_event_that_is_not_a_correction_cannot_be_retracted(engine, number):
    links = clusterer(engine, A, B)
    links.same(0, 1)
    before = links.state_hash(), links.n_events
    with pytest.raises(ArgumentError):
        links.retract(number)
    with pytest.raises(ArgumentError):
        Links(0.7, 0.8, 0.9, engine=engine).retract(number)
    assert (links.state_hash(), links.n_events) == before


def test_snapshots_without_levels_of_corrections_are_read(engine):
    links = clusterer(engine, A, A, B, B, C)
    links.same(0, 1, of="clusters")
    links.different(0, 4)
    links.same(0, 1)
    links.move(3, links.labels()[4])
    links.enrol("x) of clusters, event 1", [D, -D])
    plain = records.to_plain(links.core.ledger)
    old = copy.deepcopy(plain)
    for row in old["laws"]:
        del row[6:]
    read = records.from_plain(old, links.state())
    assert records.to_plain(read) == plain
    assert {law.level for law in read.laws} == {-1, 0, 2}


def test_every_pair_of_corrections_holds_or_is_refused_by_name(engine):
    """Call each verb after each other verb, at every level, on the same two clusters."""
    numbers = {"vectors": (0, 3), "subclusters": (0, 1), "clusters": (0, 1)}
    contradicting = {(of, of) for of in numbers}  # later and more general: of what they consist of
    contradicting |= {("vectors", "subclusters"), ("subclusters", "clusters")}
    said = list(itertools.product(("same", "different"), numbers))
    for (one, of), (other, kind) in itertools.product(said, repeat=2):
        links = clusterer(engine, A, A, A, B, B, B)
        getattr(links, one)(*numbers[of], of=of)
        if one == "same" and kind == "clusters":
            continue  # there are no two clusters any more
        if one != other and (of, kind) in contradicting:
            error = refusal(getattr(links, other), *numbers[kind], of=kind)
            assert error.correction == links.corrections()[0].number
            continue
        getattr(links, other)(*numbers[kind], of=kind)
        labels = links.labels()
        assert (labels[0] == labels[3]) == (other == "same") or kind == "clusters"
