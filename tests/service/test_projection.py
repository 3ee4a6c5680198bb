"""The map: points do not move, clusters are regions, and no two points coincide."""

from __future__ import annotations

import math
from dataclasses import astuple, replace
from itertools import pairwise

import numpy as np
import pytest

from linkstream import Links
from linkstream.engine.state import State
from linkstream.paper.thresholds import Thresholds
from linkstream.service.hexgrid import HexGrid
from linkstream.service.projection import Layout, Projection

T = Thresholds(0.7, 0.85, 0.8)
STEP = 40
ROWS = (
    "numbers",
    "clusters",
    "counts",
    "first_seen",
    "last_seen",
    "missing_weight",
    "flags",
    "sums",
)


def stream(clusters=12, count=600, dimension=48, seed=0):
    """Return vectors of a few clusters."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((clusters, dimension))
    X = centres[rng.integers(0, clusters, count)] + 0.7 * rng.standard_normal((count, dimension))
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)


def states(**options):
    """Return the states of a stream."""
    links, found = Links(*astuple(T), threads=1), []
    X = stream(**options)
    for start in range(0, len(X), STEP):
        links.add_many(X[start : start + STEP])
        found.append(links.state())
    return found


def places(layout: Layout):
    return dict(zip(layout.subcluster.tolist(), zip(layout.x, layout.y, strict=True), strict=True))


def made(rows, clusters, counts=None, edges=()):
    """Return a state with these directions, clusters and edges."""
    n, d = rows.shape
    counts = np.ones(n, dtype=np.int64) if counts is None else np.asarray(counts)
    blank = np.zeros(n, dtype=np.int64)
    ties = np.array(sorted(edges), dtype=np.int64).reshape(-1, 2)
    return State(
        T,
        d,
        track_vectors=False,
        n_vectors=int(counts.sum()),
        next_subcluster=n,
        next_cluster=n,
        numbers=np.arange(n),
        clusters=np.asarray(clusters),
        counts=counts,
        first_seen=blank,
        last_seen=blank,
        missing_weight=blank,
        flags=blank,
        sums=np.rint(rows * counts[:, np.newaxis] * 2.0**30).astype(np.int64),
        edges=ties,
        edge_rules=np.zeros(len(ties), dtype=np.int64),
    )


def test_points_do_not_move_as_vectors_arrive():
    projection = Projection()
    maps = [places(projection.update(state)) for state in states()]
    assert all(
        before[number] == after[number]
        for before, after in pairwise(maps)
        for number in before.keys() & after.keys()
    )
    assert len(maps[-1]) > len(maps[0])


def test_the_same_states_give_the_same_map():
    one, other = Projection(), Projection()
    for state in states(seed=1):
        assert places(one.update(state)) == places(other.update(state))


def test_no_two_subclusters_are_nearer_than_a_quarter_of_a_cell():
    projection = Projection()
    for state in states(clusters=30, seed=2):
        layout = projection.update(state)
    points = np.column_stack([layout.x, layout.y])
    apart = np.linalg.norm(points[:, np.newaxis] - points, axis=2) + 2 * np.eye(len(points))
    assert apart.min() > 0.25 - 1e-9


def test_a_new_map_has_empty_cells_between_clusters():
    layout = Projection().update(states(clusters=30, seed=3)[-1])
    points = np.column_stack([layout.x, layout.y])
    apart = np.linalg.norm(points[:, np.newaxis] - points, axis=2)
    strangers = layout.cluster[:, np.newaxis] != layout.cluster
    assert apart[strangers].min() > 1.7


def test_a_region_is_about_as_wide_as_a_disc_of_its_subclusters():
    rng = np.random.default_rng(4)
    rows = np.linalg.qr(rng.standard_normal((256, 256)))[0]
    star = [(0, leaf) for leaf in range(1, 200)]
    layout = Projection().update(made(rows[:201], [0] * 200 + [1], edges=star))
    reach = np.hypot(layout.x - layout.x[0], layout.y - layout.y[0])[:200].max()
    assert reach < 1.15 * math.sqrt(200 * math.sqrt(3) / 2 / math.pi) + 1


def test_an_enclosed_region_grows_between_its_own_cells():
    grid = HexGrid()
    grid.start_region(0, None, room=2)
    for number in range(1, 60):
        grid.start_region(number, number - 1, room=2)
    for number in range(60, 160):
        grid.extend_region(number, 0)
    x, y = grid.points(list(range(160)))
    inland = np.hypot(x[60:] - x[0], y[60:] - y[0])
    assert np.mean(inland < 4) > 0.9
    assert len(set(zip(x, y, strict=True))) == 160


def test_a_fragment_lies_beside_the_cluster_it_is_similar_to():
    rows = np.eye(64)[:41]
    rows[40] = rows[17] + 0.5 * np.eye(64)[60]
    rows[40] /= np.linalg.norm(rows[40])
    layout = Projection().update(made(rows, np.arange(41)))
    apart = np.hypot(layout.x - layout.x[40], layout.y - layout.y[40])[:40]
    assert apart[17] <= np.sort(apart)[3] < 12


def test_dissimilar_subclusters_keep_their_direction_after_a_restart():
    rows = np.eye(300)
    grown, whole = Projection(), made(rows, np.arange(300))
    for n in range(10, 301, 10):
        before = grown.update(replace(whole, **{name: getattr(whole, name)[:n] for name in ROWS}))
    after = Projection().update(whole)
    turned = np.angle((before.x + 1j * before.y) * np.conj(after.x + 1j * after.y))
    assert np.mean(np.abs(turned[1:]) < 0.5) > 0.9


def test_an_undo_returns_a_subcluster_to_its_cell():
    links, projection = Links(*astuple(T), threads=1, keep_vectors=True), Projection()
    links.add_many(stream(count=200))
    before = links.state().n_events
    here = places(projection.update(links.state()))
    links.add_many(stream(count=20, seed=9))
    grown = places(projection.update(links.state()))
    links.undo(to=before)
    assert places(projection.update(links.state())) == here
    gone = sorted(grown.keys() - here.keys())
    grid = projection.grid
    beside = next(iter(here))
    for number in gone:
        grid.extend_region(number, beside)
    x, y = grid.points(gone)
    assert list(zip(x, y, strict=True)) == [grown[number] for number in gone]


def test_edges_are_those_of_the_state():
    state = states(seed=5)[-1]
    layout = Projection().update(state)
    ends = np.column_stack([layout.subcluster[layout.a], layout.subcluster[layout.b]])
    assert np.array_equal(ends, state.edges)
    assert np.array_equal(layout.count, state.counts)
    assert np.array_equal(layout.cluster, state.clusters)


def test_the_map_of_an_empty_state_is_empty():
    layout = Projection().update(State(T, 0))
    assert len(layout.x) == len(layout.a) == layout.left_out == 0


def test_a_full_map_shows_the_largest_and_counts_the_rest():
    counts = np.arange(1, 31)
    projection = Projection(limit=10)
    layout = projection.update(made(np.eye(40)[:30], np.arange(30), counts))
    assert layout.left_out == 20
    assert layout.count.tolist() == counts[20:].tolist()
    again = projection.update(made(np.eye(40)[:30], np.arange(30), counts[::-1]))
    assert places(again) == places(layout)


def test_subclusters_with_zero_sums_get_a_cell():
    state = made(np.eye(8)[:3], np.arange(3))
    layout = Projection().update(replace(state, sums=np.zeros_like(state.sums)))
    assert len(set(places(layout).values())) == 3


@pytest.mark.parametrize("singles", [False, True])
def test_twenty_thousand_subclusters_get_different_positions(singles):
    rng = np.random.default_rng(6)
    n = 20_000
    clusters = np.arange(n) if singles else np.sort(rng.integers(0, 1_500, n))
    first = np.searchsorted(clusters, clusters)
    edges = [(int(a), b) for b, a in enumerate(first) if a != b]
    rows = rng.standard_normal((1_500, 128))[clusters % 1_500] + rng.standard_normal((n, 128))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    layout = Projection().update(made(rows, clusters, edges=edges))
    assert len({(x, y) for x, y in zip(layout.x, layout.y, strict=True)}) == n


def test_a_removed_region_frees_its_cells():
    grid = HexGrid()
    grid.start_region(0, None, room=4)
    grid.extend_region(1, 0)
    grid.start_region(2, 0, room=4)
    grid.retain({2})
    grid.start_region(3, 2, room=4)
    assert set(grid.cells) == {2, 3}
    grid.retain(set())
    grid.start_region(4, None, room=4)
    assert grid.points([4])[0] == 0


def test_very_many_clusters_are_laid_out_apart_and_stay():
    rng = np.random.default_rng(6)
    n = 4_000
    rows = rng.standard_normal((n, 16))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    clusters = np.arange(n)
    clusters[1:1_200:3] = clusters[0:1_200:3]  # some have two subclusters
    edges = [(i, i + 1) for i in range(0, 1_200, 3)]
    counts = rng.integers(1, 50, n)
    state, projection = made(rows, clusters, counts, edges), Projection()
    before = projection.update(replace(state, **{k: getattr(state, k)[: n - 5] for k in ROWS}))
    points = np.column_stack([before.x, before.y])
    order = np.argsort(points[:, 0])
    near = [
        np.linalg.norm(points[a] - points[b])
        for place, a in enumerate(order)
        for b in order[place + 1 : place + 60]
        if points[b, 0] - points[a, 0] < 1.7 and before.cluster[a] != before.cluster[b]
    ]
    assert min(near) > 1.7
    assert np.ptp(before.x) > 1.2 * np.ptp(before.y)
    after = places(projection.update(state))
    assert all(after[number] == place for number, place in places(before).items())
    assert len(after) == n
