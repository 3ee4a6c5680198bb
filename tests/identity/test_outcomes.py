"""A correction that returns has done what it says: `same` joins, `move` moves, the rest stays."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream import Links
from linkstream.errors import ContradictionError, RemovedError
from streams import ENGINES, around, unit

pytestmark = pytest.mark.parametrize("engine", ENGINES)


def clusterer(engine, vectors, *thresholds):
    links = Links(*(thresholds or (0.7, 0.8, 0.9)), engine=engine, threads=1)
    links.add_many(vectors)
    return links


def test_same_of_clusters_after_a_move_between_them_joins_them_whole(engine):
    links = clusterer(engine, [[0.1, 1, 0.9], [0.3, -0.4, -0.1], [-0.5, 0, 1], [1.6, -0.1, 0.4]])
    links.move(0, 1)
    assert links.labels().tolist() == [1, 1, 0, 1]
    links.same(0, 1, of="clusters")
    assert links.labels().tolist() == [0, 0, 0, 0]
    assert links.resolve(0) == links.resolve(1) == 0
    assert [each.verb for each in links.corrections()] == ["same"]  # the move gave way


def test_a_moved_vector_is_in_the_cluster_asked_for_and_takes_no_other_along(engine):
    rows = [[1.6, -0.4, -0.2], [0.4, 0.1, 0.8], [0.2, 0.4, 0.1], [1.2, 0.4, 0.5]]
    rows += [[0.3, 1.5, -0.4], [1, 0.1, -0.2], [-0.3, -0.5, 0.9], [-0.2, 0.8, 0.6]]
    links = clusterer(engine, rows)
    assert links.labels().tolist() == [0, 1, 2, 1, 2, 0, 1, 2]
    before = links.state_hash()
    decision = links.move(5, 1)
    assert links.labels().tolist() == [0, 1, 2, 1, 2, 1, 1, 2]
    assert decision.cluster == links.resolve(1) == 1
    assert decision.kind == "linked"  # to join the nearest subcluster would split the cluster
    links.undo()
    assert links.state_hash() == before


def test_the_error_for_a_cluster_that_is_gone_says_why_it_is_gone(engine):
    links = clusterer(engine, [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    links.undo()
    links.forget(0)
    links.remove(1)
    reasons = {0: "It was forgotten", 1: "All its vectors were removed", 2: "It was undone"}
    for cluster, reason in reasons.items():
        with pytest.raises(RemovedError) as raised:
            links.name(cluster, "Ann")
        assert raised.value.remedy == f"{reason}; clusters() lists those that are there."


def test_same_of_one_and_itself_changes_nothing(engine):
    links = clusterer(engine, [[1, 0, 0], [1, 0, 0]])
    before = links.state_hash(), links.n_events
    for of in ("vectors", "subclusters", "clusters"):
        links.same(0, 0, of=of)
    assert (links.state_hash(), links.n_events) == before
    assert links.corrections() == []


def chain_and_square():
    """Return a cluster of three linked subclusters, then one of two vectors in one subcluster."""
    return [
        [1, 0, 0, 0, 0, 0],
        [1, 0, 0, 0, 0, 0],
        [0.8, 0.6, 0, 0, 0, 0],
        [0.28, 0.96, 0, 0, 0, 0],
        [0.28, 0.96, 0, 0, 0, 0],
        [0, 0, 0, 1, 0, 0],
        [0, 0, 0, 1, 0, 0],
    ]


def test_same_of_clusters_takes_out_one_separated_vector_and_nothing_beside_it(engine):
    links = clusterer(engine, chain_and_square(), 0.6, 0.95, 0.9)
    assert links.labels().tolist() == [0, 0, 0, 0, 0, 1, 1]
    links.different(5, 4)  # 4 is not in the largest subcluster of cluster 0
    links.same(1, 0, of="clusters")
    labels = links.labels().tolist()
    assert labels[:4] + labels[5:] == [0] * 6
    assert labels[4] not in (-1, 0)
    assert [each.verb for each in links.corrections()] == ["different", "same"]


def clusters_with_two_of_a_photo(engine, n):
    """Return a clusterer of two clusters: `n` vectors, one of the photo, two more; and three."""
    links = clusterer(engine, [[1, 0, 0, 0]] * n, 0.6, 0.95, 0.9)
    links.add_group([[0.8, 0.6, 0, 0], [0, 0, 1, 0]])
    links.add_many([[0.28, 0.96, 0, 0], [0.28, 0.96, 0, 0], [0, 0, 0.8, 0.6], [0, 0, 0.8, 0.6]])
    assert links.labels()[[0, n, n + 2, n + 3]].tolist() == [0] * 4
    assert links.labels()[[n + 1, n + 4, n + 5]].tolist() == [1] * 3
    return links


def test_clusters_that_a_photo_tears_apart_are_not_joined(engine):
    """The part that must be cut off is the larger one and keeps the ID: nothing would be joined."""
    links = clusters_with_two_of_a_photo(engine, 2)
    before = links.state_hash()
    with pytest.raises(ContradictionError, match="vectors 2 and 3 were seen together"):
        links.same(0, 1, of="clusters")
    assert links.state_hash() == before


def test_clusters_are_joined_without_the_smaller_part_that_a_photo_keeps_apart(engine):
    links = clusters_with_two_of_a_photo(engine, 3)
    links.same(0, 1, of="clusters")
    assert links.labels().tolist() == [0, 0, 0, 2, 0, 2, 2, 0, 0]
    assert links.resolve(1) == links.resolve(0)


@pytest.mark.parametrize("seed", range(4))
def test_random_moves_and_joins_of_clusters_do_what_they_say(engine, seed):
    rng = np.random.default_rng([seed, 21])
    centres = around(rng, np.repeat(unit(rng.standard_normal((4, 5))), 3, axis=0), 0.85)
    X = np.float32(around(rng, centres[rng.integers(12, size=60)], 0.93))
    whole = clusterer(engine, X, 0.7, 0.85, 0.8).to_bytes()
    joined = 0
    for _ in range(25):
        links = Links.from_bytes(whole, engine=engine, threads=1)
        a, b = rng.choice(np.unique(links.labels()), size=2, replace=False).tolist()
        vector = int(rng.choice(np.flatnonzero(links.labels() == a)))
        there = np.flatnonzero(links.labels() == b)
        links.move(vector, b)
        assert set(links.labels()[[vector, *there]].tolist()) == {b}
        if links.resolve(a) >= 0:
            either = np.flatnonzero(np.isin(links.labels(), [a, b]))
            links.same(a, b, of="clusters")
            assert len(set(links.labels()[either].tolist())) == 1
            joined += 1
    assert joined > 10
