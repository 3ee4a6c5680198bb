"""Vectors are moved and removed together: as one change, with the corrections that hold."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream import Links, Thresholds
from linkstream.errors import ArgumentError, ContradictionError
from linkstream.identity.laws import obeyed
from linkstream.store import Store

T = (0.7, 0.8, 0.9)


def around(place: int, count: int = 6) -> np.ndarray:
    """Return unit vectors near an axis."""
    rows = np.random.default_rng(place).normal(0, 0.05, (count, 16))
    rows[:, place] += 1.0
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def three(links):
    """Add three clusters of six vectors: 0, 1 and 2."""
    for place in range(3):
        links.add_many(around(place))
    assert links.labels().tolist() == [0] * 6 + [1] * 6 + [2] * 6
    return links


@pytest.fixture(params=["reference", "native"])
def links(request):
    return three(Links(*T, engine=request.param))


def test_several_vectors_move_to_a_cluster_as_one_change(links):
    before = links.state_hash()
    found = links.move([6, 7, 13], 0)
    assert [each.cluster for each in found] == [0, 0, 0]
    assert np.flatnonzero(links.labels() == 0).tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 13]
    assert obeyed(links.core.up_to_date_ledger(), links.state())
    links.undo()
    assert links.labels().tolist() == [0] * 6 + [1] * 6 + [2] * 6
    links.redo()
    assert links.labels()[13] == 0
    assert links.state_hash() != before


def test_several_vectors_go_into_one_new_cluster(links):
    found = links.move([0, 1, 12], -1)
    (fresh,) = {each.cluster for each in found}
    assert fresh == 3
    assert np.flatnonzero(links.labels() == fresh).tolist() == [0, 1, 12]
    again = Links.from_bytes(links.to_bytes())
    assert [(c.verb, c.b) for c in again.corrections()] == [("move", -1)] * 3
    assert obeyed(links.core.up_to_date_ledger(), links.state())


def test_one_vector_that_is_cut_out_stays_out(links):
    decision = links.move(4, -1)
    assert (decision.kind, decision.cluster) == ("new", 3)
    links.add_many(around(0, 20))
    assert links.labels()[4] == 3
    links.rebuild(apply=True)
    assert links.labels()[4] != links.labels()[3]


def test_vectors_that_are_the_same_move_together_and_not_apart(links):
    links.same(0, 1)
    with pytest.raises(ContradictionError):
        links.move([0, 2], 1)
    links.move([0, 1, 2], 1)
    assert links.labels()[:3].tolist() == [1, 1, 1]
    assert obeyed(links.core.up_to_date_ledger(), links.state())


def test_vectors_that_are_different_do_not_move_into_one_cluster(links):
    links.different(0, 6)
    with pytest.raises(ContradictionError):
        links.move([0, 6], 2)
    assert links.labels().tolist() == [0] * 6 + [1] * 6 + [2] * 6


@pytest.mark.parametrize("given", [[0, 0], [0, 99], [0, -1], [], [0.0, 1.0], [True], [0, 6]])
def test_a_list_that_is_not_usable_changes_nothing(links, given):
    before = links.state_hash()
    with pytest.raises(Exception, match="expected"):
        links.move(given, 1)
    assert links.state_hash() == before


def test_several_vectors_are_removed_as_one_change(links):
    links.remove([0, 8, 13])
    assert np.flatnonzero(links.labels() < 0).tolist() == [0, 8, 13]
    links.undo()
    assert links.labels().min() == 0


@pytest.fixture
def reopened(tmp_path):
    """Return a function that makes a change, then opens the store again: undo reads the log."""

    def change(work):
        path = tmp_path / "x.links"
        with Store.open(path, thresholds=Thresholds(*T)) as store:
            three(store)
            store.add([0.0] * 3 + [1.0] + [0.0] * 12, id="last")
            store.remove("last")
            work(store)
            store.move(17, 1)
            store.remove(3)
        return Store.open(path)

    return change


@pytest.mark.parametrize("verb", ["move", "remove"])
def test_undo_by_the_log_takes_back_all_vectors_of_one_call_and_no_more(reopened, verb):
    def work(store):
        if verb == "move":
            store.move([0, 1, 2], -1)
        else:
            store.remove([0, 1, 2])

    with reopened(work) as store:
        store.undo()
        store.undo()
        here = 4 if verb == "move" else -1
        assert store.labels()[:18].tolist() == [here] * 3 + [0] * 3 + [1] * 6 + [2] * 6
        store.undo()
        assert store.labels()[:18].tolist() == [0] * 6 + [1] * 6 + [2] * 6
        assert store.labels()[18] == -1  # the removal before is another change
        store.redo()
        assert store.labels()[0] == here
        store.verify()


def test_several_vectors_are_named_by_their_keys_and_a_retry_gets_the_same_answer(tmp_path):
    with Store.open(tmp_path / "x.links", thresholds=Thresholds(*T)) as store:
        store.add_many(around(0), ids=[f"a{i}" for i in range(6)])
        store.add_many(around(1))
        found = store.move(["a0", 1, "a2"], 1, idempotency_key="once")
        assert store.move(["a0", 1, "a2"], 1, idempotency_key="once") == found
        assert store.labels()[:3].tolist() == [1, 1, 1]
        store.remove(["a3", 4])
        assert store.labels().tolist() == [1, 1, 1, -1, -1, 0] + [1] * 6
        assert store.verify()


def test_coordinates_are_still_removed_where_vectors_are_not_tracked():
    links = Links(*T, track_vectors=False)
    links.add([1, 0, 0, 0])
    links.add([0, 1, 0, 0])
    links.remove([1, 0, 0, 0])
    assert [cluster.id for cluster in links.clusters()] == [1]


def test_too_many_vectors_in_one_call_are_refused(links):
    with pytest.raises(ArgumentError, match="at most"):
        links.move(list(range(10_001)), 0)
