"""A canonical order of the vertices of a graph: it follows from the graph, not from their numbers.

Vertices have colours. Refinement tells apart vertices of one colour by the colours of their
neighbours, until nothing changes. Between two colours few or no edges then matter: pairs that are
mostly edges are taken by what they lack. What is left falls into components, which are ordered one
by one and then by what they look like. A component of which vertices still share a colour is
ordered once for each such vertex that goes first; the least result stands. Vertices that a symmetry
of the component exchanges give the same result, so that one of them is tried.

Components that need more than `BUDGET` steps are ordered by number. Corrections made by hand come
nowhere near: that takes hundreds of equal vectors in a pattern such as a Cai–Fürer–Immerman graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from linkstream.engine.forest import find_root

Colours = dict[int, int]
Graph = dict[int, set[int]]
Certificate = tuple[tuple[int, ...], tuple[tuple[int, int], ...]]

BUDGET = 1_000_000  # vertices and neighbours in all trials of a component


def canonical_order(colours: Mapping[int, bytes], edges: Iterable[tuple[int, int]]) -> list[int]:
    """Return the vertices in canonical order.

    Args:
        colours: the colour of each vertex.
        edges: pairs of vertices.
    """
    graph: Graph = {vertex: set() for vertex in colours}
    for a, b in edges:
        graph[a].add(b)
        graph[b].add(a)
    ranks = {colour: rank for rank, colour in enumerate(sorted(set(colours.values())))}
    ranked = {vertex: ranks[colour] for vertex, colour in sorted(colours.items())}
    return _Search().order(ranked, graph)


class _BudgetError(Exception):
    pass


@dataclass(slots=True)
class _Search:
    """A search with a number of steps for each component."""

    left: int = BUDGET

    def order(self, colours: Colours, graph: Graph) -> list[int]:
        """Return the vertices in canonical order, components beyond the budget by number."""
        colours = _refined(colours, graph)
        graph = _essential(colours, graph)
        found = []
        for part in _components(graph):
            mine, edges = _part(part, colours, graph)
            self.left = BUDGET
            try:
                order = self._within(mine, edges)
            except (_BudgetError, RecursionError):
                order = sorted(part, key=lambda v: (colours[v], v))
            found.append((_certificate(order, mine, edges), order))
        return _concatenated(found)

    def _split(self, colours: Colours, graph: Graph) -> list[int]:
        """Return the vertices in canonical order."""
        colours = _refined(colours, graph)
        graph = _essential(colours, graph)
        parts = _components(graph)
        if len(parts) == 1:
            return self._tried(colours, graph)
        found = []
        for part in parts:
            mine, edges = _part(part, colours, graph)
            order = self._within(mine, edges)
            found.append((_certificate(order, mine, edges), order))
        return _concatenated(found)

    def _within(self, colours: Colours, graph: Graph) -> list[int]:
        """Return the vertices of one component in canonical order."""
        if len(set(colours.values())) == len(colours):
            return sorted(colours, key=colours.__getitem__)
        return self._split(colours, graph)

    def _tried(self, colours: Colours, graph: Graph) -> list[int]:
        """Return the least order of those in which one vertex of the first colour goes first."""
        cells = _cells(colours)
        cell = next(cells[colour] for colour in sorted(cells) if len(cells[colour]) > 1)
        orbit = {vertex: vertex for vertex in colours}
        known: dict[Certificate, list[int]] = {}
        tried: set[int] = set()
        for vertex in cell:
            if find_root(orbit, vertex) in {find_root(orbit, other) for other in tried}:
                continue
            tried.add(vertex)
            self._spend(len(graph) + sum(map(len, graph.values())))
            marked = {v: 2 * colour + (v != vertex) for v, colour in colours.items()}
            order = self._split(marked, graph)
            twin = known.setdefault(_certificate(order, colours, graph), order)
            for a, b in zip(twin, order, strict=True):
                orbit[find_root(orbit, b)] = find_root(orbit, a)
        return known[min(known)]

    def _spend(self, steps: int) -> None:
        """Count steps; raise if there were too many."""
        self.left -= steps
        if self.left < 0:
            raise _BudgetError


def _refined(colours: Colours, graph: Graph) -> Colours:
    """Return colours split until vertices of one colour have neighbours of equal colours."""
    n = len(set(colours.values()))
    while True:
        told = {v: (c, sorted(colours[w] for w in graph[v])) for v, c in colours.items()}
        ranks: list[tuple[int, list[int]]] = []
        finer: Colours = {}
        for vertex in sorted(told, key=told.__getitem__):
            if not ranks or ranks[-1] != told[vertex]:
                ranks.append(told[vertex])
            finer[vertex] = len(ranks) - 1
        if len(ranks) == n:
            return finer
        colours, n = finer, len(ranks)


def _essential(colours: Colours, graph: Graph) -> Graph:
    """Return the pairs that tell more than the colours: the rarer of edges and pairs without.

    All vertices of a refined colour have as many neighbours of any other, so that both sides of a
    pair of colours decide alike.
    """
    cells = {colour: set(cell) for colour, cell in _cells(colours).items()}
    found: Graph = {}
    for vertex, near in graph.items():
        by_colour: dict[int, set[int]] = {}
        for other in near:
            by_colour.setdefault(colours[other], set()).add(other)
        kept: set[int] = set()
        for colour, mine in by_colour.items():
            rest = len(cells[colour]) - (colour == colours[vertex]) - len(mine)
            kept |= mine if len(mine) <= rest else cells[colour] - mine - {vertex}
        found[vertex] = kept
    return found


def _cells(colours: Colours) -> dict[int, list[int]]:
    cells: dict[int, list[int]] = {}
    for vertex, colour in colours.items():
        cells.setdefault(colour, []).append(vertex)
    return cells


def _components(graph: Graph) -> list[list[int]]:
    root = {vertex: vertex for vertex in graph}
    for vertex, near in graph.items():
        for other in near:
            root[find_root(root, other)] = find_root(root, vertex)
    found: dict[int, list[int]] = {}
    for vertex in graph:
        found.setdefault(find_root(root, vertex), []).append(vertex)
    return list(found.values())


def _part(part: Sequence[int], colours: Colours, graph: Graph) -> tuple[Colours, Graph]:
    return {v: colours[v] for v in part}, {v: graph[v] for v in part}


def _certificate(order: Sequence[int], colours: Colours, graph: Graph) -> Certificate:
    """Return colours and edges in this order: equal for two parts that look alike."""
    place = {vertex: i for i, vertex in enumerate(order)}
    edges = sorted((i, place[w]) for i, v in enumerate(order) for w in graph[v])
    return tuple(colours[v] for v in order), tuple(edges)


def _concatenated(found: list[tuple[Certificate, list[int]]]) -> list[int]:
    found.sort(key=lambda pair: pair[0])
    return [vertex for _, order in found for vertex in order]
