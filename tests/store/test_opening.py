"""Opening and closing: what is refused leaves nothing behind, and what was closed is whole."""

from __future__ import annotations

import contextlib
import os
import threading

import numpy as np
import pytest

from linkstream.errors import (
    ArgumentError,
    LinkstreamError,
    StoreClosedError,
    StoreError,
)
from linkstream.paper.thresholds import Thresholds
from linkstream.store import Store, repair
from store.operations import THRESHOLDS, new, state_of, vectors

X = vectors(np.random.default_rng(0), 30)


def filled(path):
    with new(path) as store:
        store.add_many(X)
        return state_of(store)


def files(path):
    """What lies in a store's folder; an empty log and shared memory are what readers leave."""
    beside = [file for file in path.parent.iterdir() if not file.name.endswith("-shm")]
    return {file.name: file.read_bytes() for file in beside if file.stat().st_size}


def open_handles():
    return len(os.listdir("/proc/self/fd"))


# Opening.

OTHERS = {
    "thresholds": {"thresholds": Thresholds(0.7, 0.6, 0.9)},
    "another preset": {"preset": "arcface"},
    "evidence": {"evidence": "cluster"},
    "healing": {"heal": "settle"},
    "limits": {"max_subclusters": 7},
    "idleness": {"max_idle": 7},
    "size": {"min_size": 2},
    "tracking": {"track_vectors": False},
    "keeping": {"keep_vectors": False},
    "an unknown option": {"colour": "red"},
    "an unknown engine": {"engine": "steam"},
    "no thresholds": {"thresholds": 0.7},
    "an unknown preset": {"preset": "nobody"},
    "thresholds and a preset": {"thresholds": THRESHOLDS, "preset": "arcface"},
}


@pytest.mark.parametrize("options", OTHERS.values(), ids=OTHERS)
def test_other_options_than_its_own_are_refused_and_the_store_stays_usable(path, options):
    before = filled(path)
    there, handles = files(path), open_handles()
    for _ in range(3):
        with pytest.raises((ArgumentError, TypeError)):
            Store.open(path, **options)
    assert open_handles() == handles
    assert files(path) == there
    with new(path) as store:
        assert state_of(store) == before


@pytest.mark.parametrize(
    "options",
    [
        {"min_size": 0},
        {"evidence": "hearsay"},
        {"heal": "magic"},
        {"space": 5},
        {"engine": "steam"},
        {"colour": "red"},
        {"keep_vectors": True, "track_vectors": False},
        {"thresholds": "tight"},
        {"preset": "nobody", "thresholds": None},
    ],
)
def test_options_that_are_refused_leave_nothing_behind(path, options):
    handles = open_handles()
    with pytest.raises((ArgumentError, LinkstreamError, TypeError)):
        Store.open(path, **{"thresholds": THRESHOLDS} | options)
    assert not path.exists()
    assert [file for file in path.parent.iterdir() if file.suffix != ".lock"] == []
    assert open_handles() == handles
    with pytest.raises(StoreError, match=r"people\.links"):
        Store.open(path)
    filled(path)


def test_a_missing_file_without_thresholds_is_refused(path):
    for read_only in (False, True):
        with pytest.raises(StoreError, match=r"people\.links"):
            Store.open(path, read_only=read_only)
        assert not path.exists()
    filled(path)  # and nothing of that attempt is in the way


def test_a_missing_file_is_not_made_by_a_reader(path):
    with pytest.raises((StoreError, ArgumentError)):
        Store.open(path, thresholds=THRESHOLDS, read_only=True)
    assert not path.exists()


def test_a_missing_folder_is_refused_with_its_name(tmp_path):
    for options in ({"thresholds": THRESHOLDS}, {"read_only": True}, {}):
        with pytest.raises(StoreError, match="nowhere"):
            Store.open(tmp_path / "nowhere" / "people.links", **options)


def test_a_folder_is_no_store(tmp_path):
    for options in ({"thresholds": THRESHOLDS}, {"read_only": True}, {}):
        with pytest.raises(StoreError, match=tmp_path.name):
            Store.open(tmp_path, **options)
    with pytest.raises(StoreError, match=tmp_path.name):
        repair(tmp_path)


@pytest.mark.parametrize("path", [5, None, "", "a\0b", object()])
def test_an_invalid_path_is_refused(path):
    with pytest.raises(LinkstreamError if isinstance(path, str) else (LinkstreamError, TypeError)):
        Store.open(path, thresholds=THRESHOLDS)


@pytest.mark.parametrize(
    "name", ["with space.links", "Dünya.links", "a#b?c=d%20e.links", "-x", "a'b\"c;.links"]
)
def test_any_file_name_is_accepted(tmp_path, name):
    for path in (tmp_path / name, str(tmp_path / ("2" + name))):
        with new(path) as store:
            store.add_many(X)
            before = store.state_hash()
        for read_only in (False, True):
            with Store.open(path, read_only=read_only) as store:
                assert store.state_hash() == before
    assert (tmp_path / name).exists()


# Closing.


def test_closing_twice_is_harmless(path):
    store = new(path)
    store.add_many(X)
    store.close()
    with path.open("rb") as another:  # which may have been given the number of the lock's handle
        store.close()
        assert another.read(6) == b"SQLite"
    with Store.open(path) as store:
        assert len(store.labels()) == len(X)


def test_a_closed_store_refuses_every_change(path):
    store = new(path)
    store.add_many(X)
    store.close()
    for change in (
        lambda: store.add(X[0]),
        lambda: store.add_many(X),
        lambda: store.add_many(X[:0]),
        lambda: store.add_many(X, idempotency_key="a"),
        lambda: store.add_group(X[:2]),
        lambda: store.enrol("Ann", X[:2]),
        lambda: store.same(0, 1),
        lambda: store.name(0, "Ann"),
        lambda: store.remove(0),
        lambda: list(store.feed([X])),
        store.undo,
        store.settle,
        store.compact,
        store.verify,
        lambda: store.backup(path.with_name("copy.links")),
    ):
        with pytest.raises(StoreClosedError, match=r"people\.links"):
            change()


def test_a_closed_store_gives_no_wrong_answer(path):
    store = new(path)
    store.add_many(X, payloads=list(range(30)))
    before = state_of(store), store.events()
    store.close()
    for ask, right in (
        (store.state_hash, before[0][0]),
        (lambda: store.events(), before[1]),
        (lambda: store.payloads([3])[0], 3),
        (lambda: store.vectors([3]).tolist(), X[3:4].tolist()),
        (lambda: store.n_vectors, 30),
        (lambda: len(list(store.journal.operations())), 1),
    ):
        with contextlib.suppress(StoreClosedError):
            assert ask() == right


def test_an_error_inside_with_closes_the_store(path):
    def session():
        with new(path) as store:
            store.add_many(X)
            raise KeyError("the caller's own")

    with pytest.raises(KeyError):
        session()
    with Store.open(path) as store:
        assert len(store.labels()) == len(X)


def test_a_clean_close_leaves_one_file_to_copy(path, tmp_path):
    before = filled(path)
    beside = {file.name for file in tmp_path.iterdir()} - {path.name, path.name + ".lock"}
    assert beside == set()
    copy = tmp_path / "elsewhere" / "copy.links"
    copy.parent.mkdir()
    copy.write_bytes(path.read_bytes())
    with Store.open(copy) as store:
        assert state_of(store) == before


def test_opening_and_closing_leaves_no_handle_and_no_thread_behind(path):
    filled(path)
    handles, threads = open_handles(), threading.active_count()
    for _ in range(3):
        with Store.open(path) as store:
            store.add_many(X)
        with Store.open(path, read_only=True) as store:
            store.labels()
    assert open_handles() == handles
    assert threading.active_count() == threads
