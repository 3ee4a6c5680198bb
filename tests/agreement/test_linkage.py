"""Margin linkage: the definition against a naive oracle, the compiled twin against both.

The compiled twin has the same pairs and margins for every kernel and every number of threads.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
import pytest

from linkstream import Thresholds
from linkstream.engine import linkage
from linkstream.engine.choice import choose
from linkstream.engine.linkage import Restrictions
from streams import ENGINES, around, unit

COMPILED = "native" in ENGINES
needs_core = pytest.mark.skipif(not COMPILED, reason="built without the compiled core on purpose")
if COMPILED:
    from linkstream import _core
    from linkstream.engine import native

    KERNELS = _core.kernels()


class Problem(NamedTuple):
    """Rows to unite, with the thresholds and restrictions to unite them by."""

    sums: np.ndarray
    masses: np.ndarray
    thresholds: Thresholds
    restrictions: Restrictions = linkage.UNRESTRICTED


def nodes(rng, n=60, d=16, identities=6):
    """Sums and counts of subclusters of a few identities, some of them equal."""
    centres = unit(rng.standard_normal((identities, d)))
    units = around(rng, centres[rng.integers(identities, size=n)], rng.uniform(0.7, 0.98, n))
    units[rng.integers(n, size=4)] = units[0]
    counts = rng.integers(1, 40, n)
    return np.rint(units * counts[:, np.newaxis] * 2.0**30).astype(np.int64), counts.astype(float)


def thresholds(rng):
    t_c = rng.uniform(0.4, 0.9)
    return Thresholds(t_c, 0.9, t_c * t_c + rng.uniform(0, 1) * (1 - t_c * t_c))


def plain(rng, n):
    return Problem(*nodes(rng, n), thresholds(rng))


def equal_rows(rng, n):
    """Few directions and one weight, so that most margins are equal."""
    sums = np.rint(unit(rng.standard_normal((3, 8))) * 2.0**30).astype(np.int64)
    return Problem(sums[rng.integers(3, size=n)], np.ones(n), thresholds(rng))


def on_axes(rng, n):
    """Rows of small whole numbers, some of them zero or opposite: many equal margins."""
    sums = rng.integers(-2, 3, (n, 4)) * 2**30
    return Problem(sums, rng.integers(256, 1024, n) / 256.0, thresholds(rng))


def many_equal(rng, n):
    """One weight and T_p = T_c², so that s~ is the same for all groups."""
    sums, _ = nodes(rng, n, d=3)
    t_c = rng.uniform(0.4, 0.9)
    return Problem(sums, np.ones(n), Thresholds(t_c, 0.9, t_c * t_c))


def barred(rng, n):
    sums, masses = nodes(rng, n)
    pairs = rng.integers(n, size=(n, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return Problem(sums, masses, thresholds(rng), Restrictions(pairs))


def labelled(rng, n):
    sums, masses = nodes(rng, n)
    labels = np.where(rng.random(n) < 0.3, rng.integers(5, size=n), -1)
    return Problem(sums, masses, thresholds(rng), Restrictions(labels=labels))


def alike(rng, n):
    sums, masses = nodes(rng, n)
    least = float(rng.uniform(0.5, 1.0))
    return Problem(sums, masses, thresholds(rng), Restrictions(alike=least))


def restricted(rng, n):
    sums, masses, test, bars = barred(rng, n)
    labels = labelled(rng, n).restrictions.labels
    return Problem(sums, masses, test, Restrictions(bars.barred, labels, 0.7))


def dense(rng, n):
    """One identity: every pair is above the threshold at first."""
    units = around(rng, np.tile(unit(rng.standard_normal(24)), (n, 1)), rng.uniform(0.6, 0.9))
    return Problem(np.rint(units * 2.0**30).astype(np.int64), np.ones(n), Thresholds(0.4, 0.9, 0.6))


KINDS = {
    each.__name__: each
    for each in (
        plain,
        equal_rows,
        on_axes,
        many_equal,
        barred,
        labelled,
        alike,
        restricted,
        dense,
    )
}


def problem(kind, seed, n):
    return KINDS[kind](np.random.default_rng([seed, n]), n)


def run(engine, given, threads=None):
    found = choose(engine, threads).unions(*given, None)
    return columns(found)


def columns(found):
    return found.kept.tolist(), found.gone.tolist(), found.margins.tolist()


class Oracle:
    """The definition in Python's own numbers: all pairs of groups are compared at each step."""

    def __init__(self, given: Problem) -> None:
        self.given = given
        self.groups = {row: [row] for row in range(len(given.masses))}
        self.within = [self._within(row) for row in self.groups]

    def _unit(self, rows):
        total = sum(self.given.sums[row].astype(object) for row in rows)
        return [int(each) for each in linkage.centroids(np.array([total], dtype=np.int64))[0]]

    def _cosine(self, ours, theirs):
        product = sum(a * b for a, b in zip(self._unit(ours), self._unit(theirs), strict=True))
        return product / 2.0**50

    def _length(self, row):
        return max(float(linkage.norms(self.given.sums[[row]].astype(float))[0]), 1.0) / 2.0**30

    def _within(self, row):
        k = float(self.given.masses[row])
        return (self._length(row) * self._length(row) - k) / (k * max(k - 1.0, 1.0))

    def margin(self, a, b):
        masses = [math.fsum(self.given.masses[self.groups[name]]) for name in (a, b)]
        return self._cosine(self.groups[a], self.groups[b]) - self.given.thresholds.edge(*masses)

    def allowed(self, a, b):
        return all(
            self._allowed_rows(i, j) for i, j in itertools.product(self.groups[a], self.groups[b])
        )

    def _allowed_rows(self, i, j):
        pairs, labels, alike = (getattr(self.given.restrictions, name) for name in FIELDS)
        if [i, j] in pairs.tolist() or [j, i] in pairs.tolist():
            return False
        if labels is not None and min(labels[i], labels[j]) >= 0 and labels[i] != labels[j]:
            return False
        if alike is None:
            return True
        k = self.given.masses[i] * self.given.masses[j]
        between = self._cosine([i], [j]) * (self._length(i) * self._length(j)) / k
        return between >= alike * max(self.within[i], self.within[j])

    def unions(self):
        found = []
        while True:
            pairs = [(-self.margin(a, b), a, b) for a, b in itertools.combinations(self.groups, 2)]
            best = next((p for p in sorted(pairs) if p[0] <= 0 and self.allowed(*p[1:])), None)
            if best is None:
                return tuple(map(list, zip(*found, strict=True))) or ([], [], [])
            found.append((best[1], best[2], -best[0]))
            self.groups[best[1]] += self.groups.pop(best[2])


FIELDS = ("barred", "labels", "alike")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_the_pair_of_greatest_margin_is_united_until_none_is_left(engine, kind, seed):
    given = problem(kind, seed, 10)
    assert run(engine, given) == Oracle(given).unions()


@needs_core
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_both_engines_unite_alike_bit_for_bit(kind, seed):
    given = problem(kind, seed, 2 + 61 * seed)
    assert run("native", given) == run("reference", given)


@needs_core
@pytest.mark.parametrize("kind", KINDS)
def test_kernels_and_threads_change_nothing(kind, monkeypatch):
    given = problem(kind, 11, 700)
    expected = run("reference", given)
    for kernel, threads in itertools.product(KERNELS, (1, 2)):
        monkeypatch.setenv(native.KERNEL_VARIABLE, kernel)
        assert run("native", given, threads) == expected


@needs_core
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("listed", [1, 3, 10, 40])
def test_short_lists_change_nothing(kind, listed):
    """Short lists make the floor rise and fall, and groups be searched for again."""
    for seed in range(3):
        given = problem(kind, seed, 420 + seed)
        found = native.unions(*given, threads=1 + seed % 2, listed=listed)
        assert columns(found) == run("reference", given)


@pytest.mark.parametrize("engine", ENGINES)
def test_equal_margins_go_to_the_lowest_rows(engine):
    sums = np.rint(np.repeat(np.eye(4), 3, axis=0) * 2.0**30).astype(np.int64)
    kept, gone, _ = run(engine, Problem(sums, np.ones(12), Thresholds(0.7, 0.9, 0.9)))
    assert list(zip(kept, gone, strict=True))[:2] == [(0, 1), (3, 4)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n", [0, 1])
def test_nothing_to_unite_is_fine(engine, n):
    rows = np.full((n, 3), 2**29)
    assert run(engine, Problem(rows, np.ones(n), Thresholds(0.7, 0.6, 1))) == ([], [], [])


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_that_sum_to_zero_are_never_united(engine):
    rows = np.zeros((5, 3), dtype=np.int64)
    assert run(engine, Problem(rows, np.ones(5), Thresholds(0.1, 0.6, 0.01))) == ([], [], [])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["barred", "labelled", "alike", "restricted"])
def test_no_group_holds_rows_that_are_kept_apart(engine, kind):
    given = problem(kind, 7, 60)
    oracle = Oracle(given)
    kept, gone, _ = run(engine, given)
    assert kept
    for ours, theirs in zip(kept, gone, strict=True):
        assert oracle.allowed(ours, theirs)
        oracle.groups[ours] += oracle.groups.pop(theirs)


@pytest.mark.parametrize("engine", ENGINES)
def test_progress_rises_to_1_and_what_it_raises_ends_the_work(engine):
    given, shares = problem("plain", 1, 300), []
    choose(engine, None).unions(*given, shares.append)
    assert shares == sorted(shares)
    assert shares[0] >= 0
    assert shares[-1] == 1

    def end(_share):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        choose(engine, None).unions(*given, end)


def test_products_are_whole_numbers_so_that_every_machine_agrees():
    sums, _ = nodes(np.random.default_rng(3))
    units = linkage.centroids(sums)
    forwards = units @ units.T
    backwards = units[:, ::-1] @ units[:, ::-1].T
    assert np.array_equal(forwards, backwards)
    assert np.abs(forwards).max() < 2.0**53
