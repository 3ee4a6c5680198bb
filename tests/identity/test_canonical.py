"""The canonical order of a graph does not depend on the numbers of its vertices."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from linkstream.identity import canonical
from linkstream.identity.canonical import canonical_order


def form(colours, edges):
    """Return colours and edges by place in the canonical order."""
    order = canonical_order(colours, edges)
    assert sorted(order) == sorted(colours)
    place = {vertex: i for i, vertex in enumerate(order)}
    pairs = sorted(tuple(sorted((place[a], place[b]))) for a, b in edges)
    return [colours[vertex] for vertex in order], pairs


def renumbered(rng, colours, edges):
    new = dict(zip(colours, rng.permutation(list(colours)).tolist(), strict=True))
    told = [(new[a], new[b]) if rng.random() < 0.5 else (new[b], new[a]) for a, b in edges]
    rng.shuffle(told)
    return {new[v]: colours[v] for v in sorted(new, key=new.__getitem__)}, told


def cycle(n, first=0):
    return [(first + i, first + (i + 1) % n) for i in range(n)]


def cube(d):
    return [(v, v ^ bit) for v in range(2**d) for bit in (1 << i for i in range(d)) if v < v ^ bit]


def shrikhande():
    """Return a strongly regular graph: refinement tells nothing of its vertices."""
    steps = [(0, 1), (1, 0), (1, 1)]
    cells = itertools.product(range(4), repeat=2)
    return [(4 * x + y, 4 * ((x + dx) % 4) + (y + dy) % 4) for x, y in cells for dx, dy in steps]


def rook():
    """Return the graph of rooks on a board of 4 × 4; it has the parameters of `shrikhande`."""
    pairs = itertools.combinations(range(16), 2)
    return [(a, b) for a, b in pairs if a // 4 == b // 4 or a % 4 == b % 4]


def apart(n, of):
    """Return all pairs but those within groups of `of`."""
    return [(a, b) for a, b in itertools.combinations(range(n), 2) if a // of != b // of]


GRAPHS = {
    "hexagon": (6, cycle(6)),
    "two triangles": (6, cycle(3) + cycle(3, 3)),
    "pairs": (40, [(2 * i, 2 * i + 1) for i in range(20)]),
    "all but pairs": (20, apart(20, 2)),
    "all": (30, list(itertools.combinations(range(30), 2))),
    "cube": (32, cube(5)),
    "long cycle": (101, cycle(101)),
    "rook": (16, rook()),
    "shrikhande": (16, shrikhande()),
    "tree": (31, [(i, (i - 1) // 2) for i in range(1, 31)]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_symmetric_graphs_have_one_form_whatever_their_numbers(name):
    rng = np.random.default_rng(0)
    n, edges = GRAPHS[name]
    colours = dict.fromkeys(range(n), b"")
    forms = [form(*renumbered(rng, colours, edges)) for _ in range(6)]
    assert all(each == forms[0] for each in forms)


@pytest.mark.parametrize(("one", "other"), [("hexagon", "two triangles"), ("rook", "shrikhande")])
def test_regular_graphs_that_differ_have_different_forms(one, other):
    found = [
        form(dict.fromkeys(range(n), b""), edges) for n, edges in map(GRAPHS.get, (one, other))
    ]
    assert found[0] != found[1]


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_have_one_form_whatever_their_numbers(seed):
    rng = np.random.default_rng([seed, 1])
    n = int(rng.integers(1, 25))
    colours = {v: bytes([c]) for v, c in enumerate(rng.integers(1 + seed % 3, size=n).tolist())}
    pairs = list(itertools.combinations(range(n), 2))
    edges = [pair for pair in pairs if rng.random() < (0.05, 0.15, 0.5, 0.9)[seed % 4]]
    forms = [form(*renumbered(rng, colours, edges)) for _ in range(5)]
    assert all(each == forms[0] for each in forms)


def test_many_equal_components_are_ordered_one_by_one():
    n = 6000
    edges = [edge for first in range(0, n, 3) for edge in cycle(3, first)]
    order = canonical_order(dict.fromkeys(range(n), b""), edges)
    assert {tuple(sorted(v // 3 for v in order[i : i + 3])) for i in range(0, n, 3)} == {
        (i,) * 3 for i in range(n // 3)
    }


def test_a_component_beyond_the_budget_is_ordered_by_number(monkeypatch):
    monkeypatch.setattr(canonical, "BUDGET", 100)
    edges = [*rook(), (16, 17)]
    colours = dict.fromkeys(range(16), b"a") | {16: b"c", 17: b"b"}
    order = canonical_order(colours, edges)
    assert [v for v in order if v < 16] == list(range(16))
    assert order.index(17) < order.index(16)
