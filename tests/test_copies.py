"""Copies of a clusterer: `copy`, `deepcopy` and `pickle` share nothing; a store is refused."""

from __future__ import annotations

import copy
import pickle
import pickletools

import numpy as np
import pytest

from linkstream import Links, Space, Thresholds
from linkstream.errors import StoreError
from linkstream.store import Store
from streams import make

COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda links: pickle.loads(pickle.dumps(links)),
}
OPTIONS = {
    "plain": {},
    "one thread": {"threads": 1},
    "the reference engine": {"engine": "reference"},
    "healed and limited": {"heal": "join", "max_subclusters": 60, "min_size": 3},
    "untracked": {"track_vectors": False},
    "in a space": {"space": Space(np.full(12, 0.1), model="encoder")},
    "of a fixed dimension": {"space": Space(model="encoder", dimension=12)},
}


def half_way(**options):
    """A clusterer with half of a stream, a name and a correction, and the other half."""
    X, thresholds = make("lobes", 3)
    links = Links(*thresholds, **options)
    links.add_many(X[: len(X) // 2])
    links.name(links.clusters()[0].id, "Ann")
    return links, X[len(X) // 2 :]


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_copy_goes_on_with_the_same_decisions_and_the_original_stays(way, options):
    links, rest = half_way(**options)
    before = links.state_hash()
    copied = COPIES[way](links)
    assert (copied.state_hash(), copied.space) == (before, links.space)
    assert (copied.engine, copied.core.engine_options) == (links.engine, links.core.engine_options)
    given = copied.add_many(rest)
    copied.rename(copied.clusters()[0].id, "Bob")
    assert links.state_hash() == before
    assert links.add_many(rest).tolist() == given.tolist()


@pytest.mark.parametrize("way", COPIES)
def test_a_clusterer_without_vectors_can_be_copied(way):
    links = Links(0.7, 0.6, 0.9)
    copied = COPIES[way](links)
    copied.add([1.0, 0.0])
    assert (links.n_vectors, copied.n_vectors) == (0, 1)


@pytest.mark.parametrize("way", COPIES)
def test_what_the_original_can_undo_the_copy_can_undo(way):
    links, rest = half_way()
    links.add_many(rest[:5])
    copied = COPIES[way](links)
    copied.undo()
    assert copied.n_vectors == links.n_vectors - 1
    links.undo()
    assert copied.state_hash() == links.state_hash()


def test_a_copy_undoes_as_far_as_the_original_after_its_events_were_drained():
    links, rest = half_way()
    links.drain_events()
    links.add_many(rest[:5])
    copied = copy.deepcopy(links)
    for each in (links, copied):
        each.undo()
    assert copied.state_hash() == links.state_hash()
    assert copied.last_decisions == links.last_decisions


def test_one_clusterer_in_two_places_stays_one_when_both_are_copied():
    links, _ = half_way()
    one, other = copy.deepcopy([links, links])
    assert one is other
    assert one is not links


def test_a_pickle_holds_the_snapshot_and_names_nothing_but_our_own_door():
    links, _ = half_way()
    data = pickle.dumps(links, protocol=2)
    codes = [(code.name, value) for code, value, _ in pickletools.genops(data)]
    named = {value for name, value in codes if name == "GLOBAL"}
    ours = {"linkstream.clusterer.links Links", "linkstream.clusterer.links _unpickled"}
    assert named <= {*ours, "_codecs encode"}  # the latter: bytes, as protocol 2 writes them
    assert links.to_bytes() in pickle.dumps(links)


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("read_only", [False, True])
def test_a_store_refuses_to_be_copied_and_says_how_to_go_on(way, read_only, tmp_path):
    path = tmp_path / "people.links"
    Store.open(path, thresholds=Thresholds(0.7, 0.6, 0.9)).close()
    with Store.open(path, read_only=read_only) as store:
        with pytest.raises(StoreError, match=r"copied or pickled.*backup\(\)"):
            COPIES[way](store)
        assert store.n_vectors == 0
