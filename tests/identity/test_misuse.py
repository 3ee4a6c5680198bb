"""Misuse of the verbs gives a typed error and changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream import Links, errors
from streams import ENGINES

A, B, C = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
NEAR_A = [0.9, 0.1, 0.0]


def clusterer(engine, **options):
    """Return clusters 0 (vectors 0, 3), 1 (vector 1, named Bob), 2 (vector 2); 4 is removed."""
    links = Links(0.7, 0.8, 0.9, engine=engine, threads=1, **options)
    links.add_many([A, B, C, NEAR_A, C])
    links.remove(4)
    links.name(1, "Bob")
    links.different(0, 1, of="vectors")
    return links


# Each: what is done wrong, and the error that says so.
MISUSES = {
    "same of an unknown vector": (lambda k: k.same(0, 99), errors.UnknownIdError),
    "same of a negative vector": (lambda k: k.same(-1, 0), errors.UnknownIdError),
    "same of no number": (lambda k: k.same("0", 1), errors.ArgumentError),
    "same of a fraction": (lambda k: k.same(0.5, 1), errors.ArgumentError),
    "same of a truth value": (lambda k: k.same(True, 0), errors.ArgumentError),
    "same of a removed vector": (lambda k: k.same(0, 4), errors.RemovedError),
    "same of an unknown subcluster": (
        lambda k: k.same(0, 99, of="subclusters"),
        errors.UnknownIdError,
    ),
    "same of an unknown cluster": (lambda k: k.same(0, 99, of="clusters"), errors.UnknownIdError),
    "same of another kind": (lambda k: k.same(0, 1, of="faces"), errors.ArgumentError),
    "same against different": (lambda k: k.same(0, 1), errors.ContradictionError),
    "same of subclusters against different": (
        lambda k: k.same(0, 1, of="subclusters"),
        errors.ContradictionError,
    ),
    "different of an unknown vector": (lambda k: k.different(99, 0), errors.UnknownIdError),
    "different of a removed vector": (lambda k: k.different(4, 0), errors.RemovedError),
    "different from itself": (lambda k: k.different(0, 0), errors.ArgumentError),
    "a subcluster different from itself": (
        lambda k: k.different(0, 0, of="subclusters"),
        errors.ArgumentError,
    ),
    "a cluster different from itself": (
        lambda k: k.different(0, 0, of="clusters"),
        errors.ArgumentError,
    ),
    "different of another kind": (lambda k: k.different(0, 1, of=2), errors.ArgumentError),
    "moving an unknown vector": (lambda k: k.move(99, 0), errors.UnknownIdError),
    "moving a removed vector": (lambda k: k.move(4, 0), errors.RemovedError),
    "moving to an unknown cluster": (lambda k: k.move(0, 99), errors.UnknownIdError),
    "moving where it is barred": (lambda k: k.move(0, 1), errors.ContradictionError),
    "retracting an unknown correction": (lambda k: k.retract(10**6), errors.UnknownIdError),
    "retracting what is no correction": (lambda k: k.retract(0), errors.UnknownIdError),
    "naming an unknown cluster": (lambda k: k.name(99, "Ann"), errors.UnknownIdError),
    "naming by no text": (lambda k: k.name(0, 5), errors.ArgumentError),
    "naming by an empty text": (lambda k: k.name(0, ""), errors.ArgumentError),
    "renaming an unknown cluster": (lambda k: k.rename(99, "Ann"), errors.UnknownIdError),
    "ignoring an unknown cluster": (lambda k: k.ignore(99), errors.UnknownIdError),
    "removing an unknown vector": (lambda k: k.remove(99), errors.UnknownIdError),
    "removing half a vector": (lambda k: k.remove(0.5), errors.ArgumentError),
    "removing by a truth value": (lambda k: k.remove(True), errors.ArgumentError),
    "removing from an unknown cluster": (lambda k: k.remove(0, cluster=99), errors.ArgumentError),
    "removing what is no number": (lambda k: k.remove([0.0] * 3), errors.UnknownIdError),
    "removing what is kept, by itself": (lambda k: k.remove(0, x=A), errors.ArgumentError),
    "removing twice": (lambda k: k.remove(4), errors.RemovedError),
    "forgetting an unknown cluster": (lambda k: k.forget(99), errors.UnknownIdError),
    "undoing to an event that never was": (lambda k: k.undo(to=10**6), errors.UndoError),
    "undoing to before the start": (lambda k: k.undo(to=-1), errors.UndoError),
    "undoing to no number": (lambda k: k.undo(to="all"), errors.ArgumentError),
    "undoing to half an event": (lambda k: k.undo(to=1.5), errors.ArgumentError),
    "naming by another's name": (lambda k: k.name(0, "Bob"), errors.ArgumentError),
    "naming what has a name": (lambda k: k.name(1, "Ann"), errors.ArgumentError),
    "moving to where it is": (lambda k: k.move(0, 0), errors.ArgumentError),
    "moving half a vector": (lambda k: k.move(0.5, 1), errors.ArgumentError),
    "resolving an unknown ID": (lambda k: k.resolve(99), errors.UnknownIdError),
    "the history of an unknown ID": (lambda k: k.history(99), errors.UnknownIdError),
    "a weight above 1": (lambda k: k.add(A, weight=1.5), errors.ArgumentError),
    "a weight below 0": (lambda k: k.add(A, weight=-0.1), errors.ArgumentError),
    "a weight that is no number": (lambda k: k.add(A, weight=float("nan")), errors.ArgumentError),
    "a weight of words": (lambda k: k.add(A, weight="heavy"), errors.ArgumentError),
    "a group key of no text": (lambda k: k.add(A, group=[1]), errors.ArgumentError),
    "a key that cannot be a key": (lambda k: k.add_group([A, B], group={}), errors.ArgumentError),
    "a weight of 0 in a group": (lambda k: k.add_group([A, B], weight=0.0), errors.ArgumentError),
    "weights for other vectors": (lambda k: k.add_many([A, B], weight=[1.0] * 3), ValueError),
    "a group of another dimension": (lambda k: k.add_group([[1.0, 0.0]]), errors.DimensionError),
    "a group with a zero vector": (lambda k: k.add_group([A, [0.0] * 3]), errors.VectorError),
    "one vector for a group": (lambda k: k.add_group(A), errors.VectorError),
    "enrolling by no name": (lambda k: k.enrol("", [A]), errors.ArgumentError),
    "enrolling nothing": (lambda k: k.enrol("Ann", []), errors.ArgumentError),
    "enrolling what is no vector": (lambda k: k.enrol("Ann", [[np.inf] * 3]), errors.VectorError),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("misuse", MISUSES)
def test_misuse_gives_a_typed_error_and_changes_nothing(engine, misuse):
    links = clusterer(engine)
    wrong, error = MISUSES[misuse]
    before = links.state_hash(), links.events(), links.labels().tolist(), links.to_bytes()
    with pytest.raises(error) as raised:
        wrong(links)
    assert isinstance(raised.value, ValueError)
    assert raised.value.seen
    assert raised.value.expected
    assert raised.value.remedy
    after = links.state_hash(), links.events(), links.labels().tolist(), links.to_bytes()
    assert after == before


@pytest.mark.parametrize("engine", ENGINES)
def test_the_error_of_a_contradiction_names_its_corrections(engine):
    links = clusterer(engine)
    links.same(1, 2)
    with pytest.raises(errors.ContradictionError) as raised:
        links.same(2, 0)
    assert len(raised.value.chain) == 2
    for said in ("same(1, 2)", "different(0, 1)"):
        assert any(said in link for link in raised.value.chain)
    assert "same(1, 2)" in str(raised.value)  # the newest of them, alone
    assert "different(0, 1)" not in str(raised.value)


@pytest.mark.parametrize("engine", ENGINES)
def test_same_of_clusters_with_different_names_is_refused(engine):
    links = clusterer(engine)
    links.name(2, "Cid")
    before = links.state_hash()
    for of, pair in (("clusters", (1, 2)), ("vectors", (1, 2)), ("subclusters", (1, 2))):
        with pytest.raises(errors.ContradictionError, match="Bob"):
            links.same(*pair, of=of)
    assert links.state_hash() == before


@pytest.mark.parametrize("engine", ENGINES)
def test_the_only_prototype_of_a_locked_subcluster_cannot_be_removed(engine):
    links = Links(0.7, 0.8, 0.9, engine=engine)
    cluster = links.enrol("Ann", [A])
    visitor = links.add(NEAR_A)
    assert (visitor.cluster, visitor.kind) == (cluster, "joined")
    other = links.add(B).cluster
    before = links.state_hash(), links.events()
    for verb in (lambda: links.remove(0), lambda: links.move(0, other)):
        with pytest.raises(errors.ArgumentError):
            verb()
    assert (links.state_hash(), links.events()) == before
    links.remove(1)
    links.remove(0)
    assert links.resolve(cluster) == -1


@pytest.mark.parametrize("engine", ENGINES)
def test_refused_calls_leave_an_empty_clusterer_empty(engine):
    links = Links(0.7, 0.8, 0.9, engine=engine)
    before = links.state_hash()
    verbs = [
        lambda: links.same(0, 1),
        lambda: links.different(0, 1, of="clusters"),
        lambda: links.same(0, 1, of="subclusters"),
        lambda: links.move(0, 0),
        lambda: links.name(0, "Ann"),
        lambda: links.remove(0),
        lambda: links.remove(A),
        lambda: links.forget(0),
        lambda: links.undo(),
        lambda: links.undo(to=0),
        lambda: links.add_group([A, [np.nan] * 3]),
        lambda: links.add_group([A], group=7),
        lambda: links.add(A, group=7),
        lambda: links.add(A, weight=2.0),
        lambda: links.enrol("Ann", [[0.0] * 3]),
        lambda: links.enrol(None, [A]),
    ]
    for verb in verbs:
        with pytest.raises(errors.ArgumentError):
            verb()
    assert (links.state_hash(), links.dimension, links.events()) == (before, None, [])


@pytest.mark.parametrize("engine", ENGINES)
def test_undo_past_the_start_is_refused(engine):
    links = Links(0.7, 0.8, 0.9, engine=engine)
    with pytest.raises(errors.UndoError):
        links.undo()
    links.add_many([A, B])
    links.undo()
    links.undo()
    before = links.state_hash(), len(links.events())
    with pytest.raises(errors.UndoError):
        links.undo()
    assert (links.state_hash(), len(links.events())) == before
    assert links.add(A).cluster == 2  # IDs given before are not given again


@pytest.mark.parametrize("engine", ENGINES)
def test_a_change_cannot_be_undone_twice(engine):
    links = Links(0.7, 0.8, 0.9, engine=engine)
    links.add_many([A, B, C])
    links.undo(to=1)
    before = links.state_hash(), len(links.events())
    for sequence in (1, 2, 3):
        with pytest.raises(errors.UndoError):
            links.undo(to=sequence)
    assert (links.state_hash(), len(links.events())) == before


@pytest.mark.parametrize("engine", ENGINES)
def test_a_forgotten_cluster_resolves_to_none_and_refuses_verbs(engine):
    links = clusterer(engine)
    links.forget(2)
    assert links.resolve(2) == -1
    before = links.state_hash(), len(links.events())
    verbs = [
        lambda: links.name(2, "Cid"),
        lambda: links.forget(2),
        lambda: links.ignore(2),
        lambda: links.move(0, 2),
        lambda: links.same(0, 2, of="clusters"),
        lambda: links.remove(2),
        lambda: links.move(2, 0),
    ]
    for verb in verbs:
        with pytest.raises(errors.RemovedError):
            verb()
    assert (links.state_hash(), len(links.events())) == before


@pytest.mark.parametrize("engine", ENGINES)
def test_verbs_that_need_tracked_vectors_raise_not_tracked_error(engine):
    links = Links(0.7, 0.8, 0.9, engine=engine, track_vectors=False)
    links.add_many([A, B, C])
    before = links.state_hash()
    verbs = [
        lambda: links.same(0, 1),
        lambda: links.different(0, 1),
        lambda: links.move(0, 1),
        lambda: links.undo(),
        lambda: links.labels(),
    ]
    for verb in verbs:
        with pytest.raises(errors.NotTrackedError):
            verb()
    assert links.state_hash() == before
    assert links.n_vectors == 3


@pytest.mark.parametrize("engine", ENGINES)
def test_moving_and_removing_by_number_need_vectors_that_are_kept(engine):
    links = Links(0.7, 0.8, 0.9, engine=engine, keep_vectors=False)
    links.add_many([A, NEAR_A, B])
    before = links.state_hash(), links.events()
    for verb in (lambda: links.remove(0), lambda: links.move(0, 1), lambda: links.undo()):
        with pytest.raises(errors.NotTrackedError):
            verb()
    with pytest.raises(errors.NotTrackedError):
        links.different(0, 1)  # both are in one subcluster: one of them would have to be moved
    assert (links.state_hash(), links.events()) == before
    links.different(0, 2)
    assert links.labels()[0] != links.labels()[2]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("options", [{}, {"keep_vectors": False}, {"track_vectors": False}])
def test_removal_by_coordinates_is_exact_or_refused(engine, options):
    links = Links(0.7, 0.8, 0.9, engine=engine, **options)
    links.add_many([A, NEAR_A, B])
    before = links.state_hash(), links.events()
    try:
        links.remove(NEAR_A)
    except errors.LinkstreamError:
        assert (links.state_hash(), links.events()) == before
    else:
        assert [view.size for view in links.clusters()] == [1, 1]
        if links.track_vectors:
            assert links.labels().tolist() == [0, -1, 1]
    links.state().check()


@pytest.mark.parametrize("option", ["max_subclusters", "max_idle", "min_size"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "10", True])
def test_invalid_limits_are_refused(option, value):
    with pytest.raises(errors.ArgumentError, match=option):
        Links(0.7, 0.8, 0.9, **{option: value})


def test_adding_distant_vectors_makes_only_created_events():
    links = Links(0.7, 0.8, 0.9)
    links.add_many([A, B, C])
    assert {event.kind for event in links.events()} == {"created"}
