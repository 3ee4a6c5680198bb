"""Corrections: people's word made law in the graph. Pure functions on a `Regrouping`."""

from __future__ import annotations

import itertools

from linkstream.engine.fixed_point import dot, similarity
from linkstream.engine.forest import LAW, LOOSE
from linkstream.identity.laws import Laws, contradiction
from linkstream.identity.regrouping import Edge, Regrouping, edge_of, way


def tie(graph: Regrouping, laws: Laws, a: int, b: int) -> None:
    """Two subclusters are of one cluster from now on: an edge that is law.

    Where their clusters hold others that are barred from one another, these are cut off first.
    """
    if a == b:
        return
    if graph.clusters[a] != graph.clusters[b]:
        while (pair := laws.clash(graph.part(a), graph.part(b))) is not None:
            ways = _weakest(graph, pair[0], a), _weakest(graph, pair[1], b)
            weakest = [edge for edge in ways if edge is not None]
            if not weakest:
                raise contradiction("a correction", (laws.barred(pair[0])[pair[1]],))
            graph.cut(*min(weakest, key=lambda edge: (margin(graph, edge), edge)))
        graph.tie(a, b, LAW)
        return
    if b in graph.neighbours[a]:
        graph.hold(a, b, LAW)
    elif (weakest_edge := _weakest(graph, a, b)) is not None:
        graph.retie(a, b, weakest_edge)


def enforce(graph: Regrouping, laws: Laws) -> None:
    """Make a graph obey all laws, by as few changes as it takes."""
    _release(graph, laws)
    for a, apart in sorted(laws.said.items()):
        for b in sorted({b for others, _ in apart for b in others & graph.part(a)}):
            _part(graph, laws, a, b)
    for a, others in sorted(laws.bonds.items()):
        for b in sorted(others):
            tie(graph, laws, a, b)


def _part(graph: Regrouping, laws: Laws, a: int, b: int) -> None:
    """Cut what ties two subclusters, the weakest edge first."""
    while graph.clusters[a] == graph.clusters[b]:
        edge = _weakest(graph, a, b)
        if edge is None:
            raise contradiction("a correction", laws.chain(a, b) or ())
        graph.cut(*edge)


def _release(graph: Regrouping, laws: Laws) -> None:
    """Edges whose ends no law speaks of any more are judged by equation 22 again."""
    for (a, b), firm in list(graph.firm.items()):
        if firm == LAW and b not in laws.bonds.get(a, {}):
            graph.hold(a, b, LOOSE)


def margin(graph: Regrouping, edge: Edge) -> float:
    """Similarity − s~ of an edge, exactly as the engines find it."""
    (one, other), state = (graph.places[number] for number in edge), graph.state
    a, b = state.sums[one], state.sums[other]
    masses = state.masses()
    needed = state.thresholds.edge(float(masses[one]), float(masses[other]))
    return similarity(dot(a, b), dot(a, a), dot(b, b)) - needed


def _weakest(graph: Regrouping, a: int, b: int) -> Edge | None:
    """Of the edges between two of one cluster, the one of least margin that is not law."""
    edges = itertools.starmap(edge_of, itertools.pairwise(way(graph.neighbours, a, b)))
    loose = [edge for edge in edges if graph.firm[edge] != LAW]
    return min(loose, key=lambda edge: (margin(graph, edge), edge), default=None)
