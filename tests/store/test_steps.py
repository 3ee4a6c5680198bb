"""Steps, undo and redo of a store: what one command did goes and comes back as a whole."""

from __future__ import annotations

import shutil
import threading

import numpy as np
import pytest

from linkstream.errors import ArgumentError, NotTrackedError, StoreError, UndoError
from linkstream.io import export, import_store
from linkstream.store import Batch, Store
from store.operations import THRESHOLDS, new, state_of, vectors

X = vectors(np.random.default_rng(3), 60)


@pytest.fixture
def store(path):
    with new(path) as opened:
        yield opened


def fed(store, rows, command="cluster", **options):
    """Rows in pieces of ten, as one step."""
    batches = [
        Batch(rows[i : i + 10], payloads=list(range(10)), idempotency_key=f"{command}-{i}")
        for i in range(0, len(rows), 10)
    ]
    with store.step(command):
        return [ids.tolist() for ids in store.feed(batches, **options)]


def crashed(store, folder):
    """A copy of the files as a kill at this moment would leave them."""
    folder.mkdir()
    for suffix in ("", "-wal"):
        file = store.path.with_name(store.path.name + suffix)
        if file.exists():
            shutil.copy(file, folder)
    return folder / store.path.name


def test_undo_of_a_step_undoes_exactly_the_calls_of_one_command(store):
    store.add_many(X[:20])
    before = state_of(store)[0]
    fed(store, X[20:60])
    store.undo(step=True)
    assert (store.n_vectors, state_of(store)[0]) == (20, before)
    store.undo(step=True)  # the call before it, which was part of no command
    assert store.n_vectors == 0
    with pytest.raises(UndoError):
        store.undo(step=True)


def test_undo_without_step_undoes_the_last_vector(store):
    fed(store, X)
    store.undo()
    assert store.n_vectors == 59


def test_undo_of_a_step_undoes_a_killed_command(store, tmp_path):
    store.name(store.add(X[0]).cluster, "Ann")
    with store.step("cluster"):
        store.add_many(X[1:20])
        store.add_many(X[20:30])
        copy = crashed(store, tmp_path / "copy")
        store.add_many(X[30:40])
    with Store.open(copy, threads=1) as again:
        assert again.n_vectors == 30
        fed(again, X[30:50], "watch")
        again.undo(step=True)
        assert again.n_vectors == 30
        again.undo(step=True)
        assert (again.n_vectors, again.clusters()[0].name) == (1, "Ann")
        again.redo()
        again.redo()
        assert again.n_vectors == 50
        again.verify()


@pytest.mark.parametrize("way", ["reopened", "crashed", "read from a snapshot"])
def test_redo_survives_the_end_of_the_process(store, tmp_path, way):
    fed(store, X[:40])
    store.same(0, 1)
    store.name(store.labels()[0], "Ann")
    after = state_of(store)
    for _ in range(3):
        store.undo(step=True)
    assert store.n_vectors == 0
    if way == "read from a snapshot":
        store.handle.maintenance.write_snapshot()
    copy = crashed(store, tmp_path / "copy")
    if way == "reopened":
        store.close()
        copy = store.path
    with Store.open(copy, threads=1) as again:
        for _ in range(3):
            again.redo()
        assert state_of(again)[::2] == after[::2]  # hash; labels, vectors and payloads
        later = again.add_many(X[40:])
        again.verify()
    with new(tmp_path / "twin.links") as twin:
        fed(twin, X[:40])
        twin.same(0, 1)
        twin.name(twin.labels()[0], "Ann")
        np.testing.assert_array_equal(twin.add_many(X[40:]), later)


def test_redo_brings_back_vectors_and_payloads_by_number(store):
    fed(store, X[:30])
    store.undo()
    store.undo(step=True)
    store.redo()
    store.redo()
    assert store.vectors(list(range(30))).tolist() == X[:30].tolist()
    assert store.payloads([0, 9, 10, 29]) == [0, 9, 0, 9]
    store.undo(step=True)
    store.add_many(X[40:45])
    assert store.vectors([0, 4]).tolist() == X[[40, 44]].tolist()


def test_redo_is_refused_after_any_other_change(store):
    fed(store, X[:30])
    store.undo(step=True)
    store.add(X[50])
    before = state_of(store)
    with pytest.raises(UndoError, match="any other change ends"):
        store.redo()
    assert state_of(store) == before
    store.undo()
    store.redo()
    assert state_of(store)[0] == before[0]


def test_redo_is_refused_after_a_compaction(store):
    fed(store, X[:30])
    store.undo()
    store.compact()
    with pytest.raises(UndoError):
        store.redo()
    store.add(X[50])
    store.undo()
    store.redo()
    assert store.n_vectors == 30
    store.verify()


def test_the_steps_are_listed_the_newest_first_with_what_can_be_redone_before_them(store):
    store.add_many(X[:5])
    fed(store, X[5:35])
    with store.step("name"):
        store.name(store.labels()[0], "Ann")
    shown = [(s.number, s.command, s.calls, s.vectors, s.undone) for s in store.steps()]
    expected = [(5, "name", 1, 0), (2, "cluster", 3, 30), (1, "add_many", 1, 5)]
    assert shown == [(*step, False) for step in expected]
    assert store.steps(limit=1) == store.steps()[:1]
    store.undo(step=True)
    store.undo()
    first, second, third, _ = store.steps()
    assert (first.command, first.undone, first.vectors) == ("name", True, 0)
    assert (second.command, second.undone, second.vectors) == ("cluster", True, 1)
    assert (third.command, third.undone, third.vectors) == ("cluster", False, 29)
    store.undo(to=third.event)
    assert store.n_vectors == 5
    store.redo()
    store.undo(to=0)
    assert [(s.command, s.vectors) for s in store.steps()][-1] == ("add_many, cluster", 34)


def test_an_empty_store_has_no_steps_and_one_without_vectors_refuses(store, tmp_path):
    assert store.steps() == []
    with new(tmp_path / "bare.links", keep_vectors=False) as bare:
        bare.add_many(X)
        for call in (bare.steps, bare.redo, lambda: bare.undo(step=True)):
            with pytest.raises(NotTrackedError):
                call()


def test_readers_see_the_steps(store):
    fed(store, X[:30])
    with Store.open(store.path, read_only=True, threads=1) as reader:
        assert reader.steps() == store.steps()
        store.undo(step=True)
        reader.refresh()
        assert [step.undone for step in reader.steps()] == [True]
        with pytest.raises(StoreError):
            reader.redo()


def test_a_call_of_another_thread_in_between_ends_a_step(store):
    with store.step("cluster"):
        store.add_many(X[:10])
        other = threading.Thread(target=store.add_many, args=(X[10:20],))
        other.start()
        other.join()
        store.add_many(X[20:30])
        store.add_many(X[30:40])
    for left in (20, 10, 0):
        store.undo(step=True)
        assert store.n_vectors == left


def test_a_step_within_a_step_is_part_of_it(store):
    with store.step("review"):
        store.add_many(X[:10])
        with store.step("merge"):
            store.add_many(X[10:20])
        store.add_many(X[20:30])
    assert [(step.command, step.calls) for step in store.steps()] == [("review", 3)]
    store.add(X[40])
    assert store.steps(limit=1)[0].command == "add"


def test_calls_that_change_nothing_are_no_steps(store):
    with store.step("cluster"):
        store.add_many(X[:0])
        store.add_many(X[:10])
        store.add_many(X[:0])
    store.add_many(X[10:20])
    store.add_many(X[:0])
    assert [step.vectors for step in store.steps()] == [10, 10]
    store.undo(step=True)
    store.add_many(X[:0])
    store.redo()
    assert store.n_vectors == 20


@pytest.mark.parametrize("options", [{"to": 0, "step": True}, {"step": 1}, {"step": "last"}])
def test_undo_with_to_and_step_is_refused(store, options):
    store.add_many(X[:5])
    before = state_of(store)
    with pytest.raises(ArgumentError):
        store.undo(**options)
    assert state_of(store) == before


@pytest.mark.parametrize("command", ["", None, 7, "x" * 65])
def test_a_step_needs_a_short_name(store, command):
    with pytest.raises(ArgumentError), store.step(command):
        store.add(X[0])
    assert store.n_vectors == 0


# Idempotency keys


def test_undo_and_redo_under_a_key_are_done_once(store):
    fed(store, X[:30])
    for _ in range(2):
        store.undo(step=True, idempotency_key="back")
    assert store.n_vectors == 0
    for _ in range(2):
        store.redo(idempotency_key="forth")
    assert store.n_vectors == 30
    store.undo(step=True, idempotency_key="back")  # done before, though it was redone
    assert store.n_vectors == 30


def test_undone_rows_are_added_again_with_renew(store):
    first = fed(store, X[:30])
    assert fed(store, X[:30], renew=True) == first
    assert store.n_vectors == 30
    store.undo(step=True)
    assert fed(store, X[:30]) == first  # without renew they count as taken
    assert store.n_vectors == 0
    again = fed(store, X[:30], renew=True)
    assert store.n_vectors == 30
    assert fed(store, X[:30], renew=True) == again
    assert store.n_vectors == 30


def test_the_newest_call_under_a_key_is_the_one_that_is_found(store):
    fed(store, X[:30])
    store.undo(step=True)
    fed(store, X[:30], renew=True)
    store.close()
    with Store.open(store.path, threads=1) as again:
        found = again.journal.find("cluster-10")
        assert (found.number, again.journal.vectors_left(found)) == (6, 10)
        again.undo()
        assert again.journal.vectors_left(again.journal.find("cluster-20")) == 9
        again.undo(step=True)
        assert again.journal.vectors_left(again.journal.find("cluster-20")) == 0
        again.redo()
        assert again.journal.vectors_left(again.journal.find("cluster-20")) == 9


# Other ways of a store


def test_an_export_keeps_the_steps_undos_and_redos(store, tmp_path):
    fed(store, X[:30])
    store.same(0, 1)
    store.undo(step=True)
    store.redo()
    fed(store, X[30:50], "watch")
    store.undo(step=True)
    export(store, tmp_path / "files")
    import_store(tmp_path / "files", tmp_path / "again.links")
    with Store.open(tmp_path / "again.links", threads=1) as again:
        assert again.steps() == store.steps()
        again.redo()
        store.redo()
        assert state_of(again) == state_of(store)


def test_names_of_commands_are_all_that_a_step_leaves_in_the_file(path):
    with Store.open(path, thresholds=THRESHOLDS, threads=1) as store, store.step("name"):
        store.add_many(X[:10])
        store.name(store.labels()[0], "Zerlinda")
        store.rename(store.labels()[0], None)
        store.compact()
    assert b"Zerlinda" not in path.read_bytes()
