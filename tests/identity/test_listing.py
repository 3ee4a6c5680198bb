"""The table of clusters: after any change it equals one that is made again."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream import Links
from linkstream.clusterer import listing, near
from linkstream.errors import LinkstreamError


def table(links):
    """Return the rows of the table as `Links.clusters` has them."""
    now = listing.clusters_now(links.core)
    _, rows = now.page(now.chosen(None), "id", 0, 10_000)
    return [
        (c.id, c.size, count, c.name, c.first_seen, c.last_seen, c.ignored) for c, count in rows
    ]


def expected(links):
    return [
        (c.id, c.size, len(c.subclusters), c.name, c.first_seen, c.last_seen, c.ignored)
        for c in links.clusters()
    ]


def change(links, rng):
    """Make a random change; refused ones change nothing."""
    n = len(links.labels())
    a, b, c = (int(each) for each in rng.integers(0, n, 3))
    live = links.labels()
    changes = [
        lambda: links.add_many(rng.normal(size=(3, 8))),
        lambda: links.same(a, b),
        lambda: links.different(a, b),
        lambda: links.move([a, b], int(live[c])),
        lambda: links.move([a, b], -1),
        lambda: links.remove([a, b]),
        lambda: links.forget(int(live[a])),
        lambda: links.rename(int(live[a]), f"name {a}"),
        lambda: links.ignore(int(live[a]), bool(b % 2)),
        lambda: links.same(int(live[a]), int(live[b]), of="clusters"),
        lambda: links.add_group(rng.normal(size=(2, 8))),
        lambda: links.settle(apply=True),
        lambda: links.rebuild(apply=True),
        links.undo,
        links.redo,
    ]
    try:
        changes[rng.integers(len(changes))]()
    except LinkstreamError:
        return


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("seed", range(4))
def test_the_table_follows_every_change(engine, seed):
    rng = np.random.default_rng(seed)
    links = Links(0.5, 0.6, 0.9, engine=engine, heal="settle" if seed % 2 else None)
    links.add_many(rng.normal(size=(40, 8)))
    for _ in range(60):
        change(links, rng)
        assert table(links) == expected(links)


def test_the_table_is_empty_before_the_first_vector():
    assert table(Links(0.5, 0.6, 0.9)) == []


def test_only_clusters_that_changed_are_read_again(monkeypatch):
    links = Links(0.5, 0.6, 0.9)
    links.add_many(np.random.default_rng(0).normal(size=(200, 8)))
    table(links)
    engine = links.core.running()
    read = []
    parts = type(engine).parts
    monkeypatch.setattr(type(engine), "outline", lambda self: pytest.fail("all clusters were read"))
    monkeypatch.setattr(
        type(engine), "parts", lambda self, *ids: read.extend(ids) or parts(self, *ids)
    )
    links.add([1.0] * 8)
    listing.clusters_now(links.core)
    assert len(set(read)) < 5


def test_the_most_central_vectors_are_shown_first():
    links = Links(0.5, 0.6, 0.9)
    rows = np.array([[1.0, 0.6, 0, 0], [1.0, -0.1, 0, 0], [1.0, 0.1, 0, 0], [1.0, -0.5, 0, 0]])
    links.add_many(rows)
    assert listing.exemplars(links.core, 0, 2) == (2, 1)
    links.remove(2)
    assert 2 not in listing.exemplars(links.core, 0, 4)


def test_near_clusters_are_those_of_the_greatest_margin():
    links = Links(0.7, 0.8, 0.9)
    angles = np.array([0.0, 1.2, 2.5, 3.9])
    links.add_many(np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1))
    assert [each.cluster for each in near.near_cluster(links.core, 1, 2)] == [0, 2]
    assert near.near_cluster(links.core, 0, 1)[0].similarity == pytest.approx(np.cos(1.2), abs=1e-6)
    found = near.near_vectors(links.core, [0, 2], 4)
    assert sorted(each.cluster for each in found) == [0, 1, 2, 3]
