"""Redo restores what undo reverted, until another change."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream import Links
from linkstream.errors import NotTrackedError, UndoError
from streams import ENGINES, KINDS, make

A, NEAR_A, B, C = [1.0, 0.0, 0.0], [0.99, 0.1, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


def clusterer(engine, **options):
    return Links(0.7, 0.6, 0.9, engine=engine, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_redoing_each_undo_restores_the_ids(engine, kind):
    stream = make(kind, 2)
    links, twin = (Links(*stream.thresholds, engine=engine) for _ in range(2))
    for x in stream.vectors[:30]:
        links.add(x)
    twin.add_many(stream.vectors[:30])
    hashes = []
    for _ in range(12):
        hashes.append(links.state_hash())
        links.undo()
    while hashes:
        links.redo()
        assert links.state_hash() == hashes.pop()
    later = stream.vectors[30:60]
    assert links.add_many(later).tolist() == twin.add_many(later).tolist()
    assert links.state_hash() == twin.state_hash()


def test_redo_restores_names_corrections_prototypes_and_removals(engine):
    links = clusterer(engine)
    links.add_many([A, NEAR_A, B, C, C])
    for deed in (
        lambda: links.name(0, "Ann"),
        lambda: links.same(0, 2),
        lambda: links.different(0, 3),
        lambda: links.enrol("Bob", [B, C]),
        lambda: links.remove(1),
        lambda: links.forget(links.labels()[3]),
    ):
        deed()
        after, labels, names = links.state_hash(), links.labels(), links.clusters()
        links.undo()
        assert links.state_hash() != after
        links.redo()
        assert (links.state_hash(), links.clusters()) == (after, names)
        np.testing.assert_array_equal(links.labels(), labels)


def test_one_redo_restores_all_that_one_undo_reverted(engine):
    links = clusterer(engine)
    links.add_many([A, B, C])
    after = links.state_hash()
    links.undo(to=0)
    assert links.n_vectors == 0
    links.redo()
    assert (links.n_vectors, links.state_hash()) == (3, after)


@pytest.mark.parametrize(
    "change",
    [
        lambda links: links.add(B),
        lambda links: links.name(0, "Ann"),
        lambda links: links.remove(0),
        lambda links: links.settle(apply=True),
    ],
    ids=["a vector", "a name", "a removal", "a settlement"],
)
def test_any_other_change_discards_the_redo_history(engine, change):
    links = clusterer(engine)
    links.add_many([A, B, C])
    links.undo()
    change(links)
    before = links.state_hash(), links.events()
    with pytest.raises(UndoError, match="any other change ends"):
        links.redo()
    assert (links.state_hash(), links.events()) == before


def test_queries_keep_the_redo_history(engine):
    links = clusterer(engine)
    links.add_many([A, B, C])
    after = links.state_hash()
    links.undo()
    links.predict([C])
    links.add(C, weight=0.0)
    links.add_many(np.empty((0, 3)))
    links.settle()
    links.redo()
    assert links.state_hash() == after


def test_redo_is_refused_if_there_is_nothing_to_redo(engine):
    links = clusterer(engine)
    with pytest.raises(UndoError):
        links.redo()
    links.add_many([A, B])
    with pytest.raises(UndoError):
        links.redo()
    links.undo()
    links.redo()
    with pytest.raises(UndoError):
        links.redo()


def test_a_redone_change_can_be_undone_and_redone_again(engine):
    links = clusterer(engine)
    links.add_many([A, B, C])
    hashes = {links.state_hash()}
    links.undo()
    before = links.state_hash()
    for _ in range(3):
        links.redo()
        hashes.add(links.state_hash())
        links.undo()
        assert links.state_hash() == before
    links.undo()
    links.redo()
    links.redo()
    assert hashes == {links.state_hash()}


def test_redo_needs_a_snapshot_with_history(engine):
    links = clusterer(engine)
    links.add_many([A, B, C])
    after = links.state_hash()
    links.undo()
    links.undo()
    again = Links.from_bytes(links.to_bytes(), engine=engine)
    assert again.to_bytes() == links.to_bytes()
    again.redo()
    again.redo()
    assert again.state_hash() == after
    with pytest.raises(UndoError):
        Links.from_bytes(links.to_bytes(history=False), engine=engine).redo()


def test_a_snapshot_holds_no_vector_that_can_no_longer_be_redone(engine):
    links = clusterer(engine)
    links.add_many([A, B, C])
    links.undo()
    size = len(links.to_bytes())
    links.ignore(0)
    assert len(links.to_bytes()) < size + 48  # an event more, and no vector


def test_draining_events_discards_the_redo_history(engine):
    links = clusterer(engine)
    links.add_many([A, B, C])
    links.undo()
    links.drain_events()
    with pytest.raises(UndoError):
        links.redo()


def test_redo_is_refused_without_kept_vectors(engine):
    links = clusterer(engine, keep_vectors=False)
    links.add_many([A, B])
    with pytest.raises(NotTrackedError):
        links.redo()


def test_a_history_includes_redone_events(engine):
    links = clusterer(engine)
    links.add_many([A, B])
    links.same(0, 1)
    told = links.history(1)
    links.undo()
    assert links.history(1) != told
    links.redo()
    assert links.history(1) == told


def test_one_redo_restores_an_absorption(engine):
    links, other = clusterer(engine), clusterer(engine)
    links.add_many([A, B])
    other.add_many([NEAR_A, C])
    other.name(1, "Cid")
    moved = links.absorb(other)
    after = links.state_hash()
    links.undo(to=moved.event)
    assert links.n_vectors == 2
    links.redo()
    assert (links.n_vectors, links.state_hash()) == (4, after)


def test_a_claim_is_undone_if_the_log_holds_nothing_before_it(engine):
    """Enrol into a cluster that has the name: a flag is set without an event."""
    links = clusterer(engine)
    links.add(A)
    links.name(0, "Ann")
    links = Links.from_bytes(links.to_bytes(history=False), engine=engine)
    before = links.state_hash()
    links.name(0, "Ann", claim=True)
    links.undo()
    assert links.state_hash() == before


@pytest.mark.parametrize("n", [1, 5])
def test_redo_works_after_save_and_load_as_after_bytes(engine, tmp_path, n):
    links = clusterer(engine)
    links.add_many([A, B])
    links.add_many([NEAR_A] * n)
    after = links.state_hash()
    links.undo()
    links.save(tmp_path / "a.links")
    for copy in (Links.load(tmp_path / "a.links"), Links.from_bytes(links.to_bytes())):
        copy.redo()
        assert (copy.n_vectors, copy.state_hash()) == (2 + n, after)


def test_undo_after_load_goes_back_beyond_the_moment_of_saving(engine, tmp_path):
    links = clusterer(engine)
    links.add_many([A, B])
    before = links.state_hash()
    links.same(0, 1)
    links.save(tmp_path / "a.links")
    loaded = Links.load(tmp_path / "a.links")
    loaded.undo()
    assert loaded.state_hash() == before
