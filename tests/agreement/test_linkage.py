"""Margin linkage: the definition against a naive oracle, the compiled twin against both."""

from __future__ import annotations

import numpy as np
import pytest

from linkstream import Thresholds
from linkstream.engine import linkage
from linkstream.engine.choice import choose
from linkstream.errors import ArgumentError
from linkstream.paper.thresholds import anisotropic_pair_threshold
from streams import ENGINES, around, unit


def nodes(seed, n=60, d=16):
    """Sums and counts of subclusters of a few identities, some of them equal."""
    rng = np.random.default_rng(seed)
    centres = unit(rng.standard_normal((6, d)))
    units = around(rng, centres[rng.integers(6, size=n)], rng.uniform(0.7, 0.98, n))
    units[rng.integers(n, size=4)] = units[0]
    counts = rng.integers(1, 40, n)
    return np.rint(units * counts[:, np.newaxis] * 2.0**30).astype(np.int64), counts


def thresholds(seed):
    rng = np.random.default_rng(seed)
    t_c = rng.uniform(0.4, 0.9)
    return Thresholds(t_c, 0.9, t_c * t_c + rng.uniform(0, 1) * (1 - t_c * t_c))


def run(engine, sums, counts, test):
    table, squares = linkage.products(sums)
    return choose(engine, None).unions(table, squares, counts.astype(float), test)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(8))
def test_the_pair_of_greatest_margin_is_united_until_none_is_left(engine, seed):
    sums, counts = nodes(seed, n=24)
    test = thresholds(seed)
    groups = {i: (sums[i].astype(float), int(counts[i])) for i in range(len(counts))}

    def margin(a, b):
        (s, k), (t, j) = groups[a], groups[b]
        cosine = s @ t / np.sqrt((s @ s) * (t @ t))
        return cosine - anisotropic_pair_threshold(
            test.cluster_similarity, test.pair_similarity_max, k, j
        )

    found = run(engine, sums, counts, test)
    for kept, gone, seen in zip(found.kept, found.gone, found.margins, strict=True):
        margins = {(a, b): margin(a, b) for a in groups for b in groups if a < b}
        assert margins[kept, gone] == pytest.approx(seen, abs=1e-6)
        assert margins[kept, gone] == pytest.approx(max(margins.values()), abs=1e-6)
        other = groups.pop(gone)
        groups[kept] = (groups[kept][0] + other[0], groups[kept][1] + other[1])
    assert all(margin(a, b) < 1e-6 for a in groups for b in groups if a < b)


@pytest.mark.skipif("native" not in ENGINES, reason="built without the compiled core on purpose")
@pytest.mark.parametrize("seed", range(30))
def test_both_engines_unite_alike_bit_for_bit(seed):
    sums, counts = nodes(seed, n=40 + 7 * seed)
    test = thresholds(seed)
    one, other = (run(engine, sums, counts, test) for engine in ("reference", "native"))
    assert np.array_equal(one.kept, other.kept)
    assert np.array_equal(one.gone, other.gone)
    assert np.array_equal(one.margins, other.margins)


@pytest.mark.parametrize("engine", ENGINES)
def test_equal_margins_go_to_the_lowest_rows(engine):
    sums = np.rint(np.repeat(np.eye(4), 3, axis=0) * 2.0**30).astype(np.int64)
    found = run(engine, sums, np.ones(12, dtype=np.int64), Thresholds(0.7, 0.9, 0.9))
    assert list(zip(found.kept, found.gone, strict=True))[:2] == [(0, 1), (3, 4)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n", [0, 1])
def test_nothing_to_unite_is_fine(engine, n):
    found = run(engine, np.full((n, 3), 2**29), np.ones(n, dtype=np.int64), Thresholds(0.7, 0.6, 1))
    assert len(found.kept) == 0


def test_products_are_whole_numbers_so_that_every_machine_agrees():
    sums, _ = nodes(3)
    units = linkage.centroids(sums)
    forwards = units @ units.T
    backwards = units[:, ::-1] @ units[:, ::-1].T
    assert np.array_equal(forwards, backwards)
    assert np.abs(forwards).max() < 2.0**53


def test_more_subclusters_than_memory_allows_are_refused(monkeypatch):
    monkeypatch.setattr(linkage, "NODES_MAX", 10)
    with pytest.raises(ArgumentError, match="11 subclusters"):
        linkage.products(np.ones((11, 4), dtype=np.int64))
