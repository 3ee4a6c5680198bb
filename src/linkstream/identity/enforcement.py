"""Make the graph obey corrections. Pure functions on a `Regrouping`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from linkstream.engine.fixed_point import dot, similarity
from linkstream.engine.forest import FULL, PINNED, SETTLED, TESTED
from linkstream.engine.state import Integers
from linkstream.identity.laws import Laws, contradiction
from linkstream.identity.regrouping import Edge, Regrouping, edge_of, way

_BLOCK = 256  # subclusters compared at a time


def tie(graph: Regrouping, laws: Laws, a: int, b: int) -> None:
    """Tie two subclusters by an edge that nothing cuts.

    If their clusters hold others that must stay apart, those are cut off first.
    """
    if a == b:
        return
    if graph.clusters[a] != graph.clusters[b]:
        while (pair := laws.clash(graph.part(a), graph.part(b))) is not None:
            ways = _weakest(graph, pair[0], a), _weakest(graph, pair[1], b)
            weakest = [edge for edge in ways if edge is not None]
            if not weakest:
                raise contradiction("a correction", (laws.bar(*pair),))
            graph.cut(*min(weakest, key=lambda edge: (margin(graph, edge), edge)))
        graph.tie(a, b, PINNED)
        return
    if b in graph.neighbours[a]:
        graph.hold(a, b, PINNED)
    elif (weakest_edge := _weakest(graph, a, b)) is not None:
        graph.retie(a, b, weakest_edge)


def enforce(graph: Regrouping, laws: Laws) -> list[Edge]:
    """Make a graph obey all laws by few changes; return edges that no law holds any more."""
    released = _release(graph, laws)
    pinned = sorted(node for node in graph.clusters if laws.ledger.pins_at(node))
    for a in pinned:
        apart = laws.said(a)
        for b in sorted({b for others, _ in apart for b in others & graph.part(a)}):
            _part(graph, laws, a, b)
    for a in pinned:
        for b in sorted(laws.bonds(a)):
            tie(graph, laws, a, b)
    return released


def judge(graph: Regrouping, edges: Iterable[Edge]) -> None:
    """Test edges that only a law held; cut those that fail.

    The part that is cut off is tied again if two subclusters of both parts pass equation 22, by the
    greatest margin (tie: the older). If whole clusters are the evidence, the parts are compared.
    """
    for a, b in edges:
        if graph.rules.get((a, b)) != TESTED:
            continue
        if graph.state.cluster_evidence:
            if _wholes_hold(graph, a, b):
                graph.hold(a, b, SETTLED)
            else:
                graph.cut(a, b)
        elif margin(graph, (a, b)) < 0:
            ones, others = graph.sides(a, b)
            best = _best(graph, sorted(ones), sorted(others))
            if margin(graph, best) >= 0:
                graph.rejoin(a, b, best)
            else:
                graph.cut(a, b)


def _wholes_hold(graph: Regrouping, a: int, b: int) -> bool:
    """Return whether the parts on both sides of an edge pass s~ as wholes."""
    state = graph.state
    rows = [[graph.places[number] for number in sorted(part)] for part in graph.sides(a, b)]
    one, other = (state.sums[part].sum(axis=0) for part in rows)
    if not (one.any() and other.any()):
        return False
    masses = [
        max(float(state.counts[part].sum()) - float(state.missing_weight[part].sum()) / FULL, 1.0)
        for part in rows
    ]
    return similarity(dot(one, other), dot(one, one), dot(other, other)) >= (
        state.thresholds.edge(*masses)
    )


def _best(graph: Regrouping, ones: list[int], others: list[int]) -> Edge:
    """Return the possible edge between two parts of the greatest margin."""
    state, found = graph.state, []
    places = [[graph.places[number] for number in part] for part in (ones, others)]
    masses = state.masses()
    centres = [_directions(state.sums[part]) for part in places]
    greatest = -np.inf
    for start in range(0, len(ones), _BLOCK):
        block = slice(start, start + _BLOCK)
        needed = state.thresholds.edges(
            masses[places[0][block]][:, np.newaxis], masses[places[1]][np.newaxis]
        )
        margins = centres[0][block] @ centres[1].T - needed
        greatest = max(greatest, float(margins.max()))
        near = np.argwhere(margins >= greatest - 1e-9)  # far more than the products are wrong by
        found += [edge_of(ones[start + i], others[j]) for i, j in near.tolist()]
    return min(found, key=lambda edge: (-margin(graph, edge), edge))


def _directions(sums: Integers) -> npt.NDArray[np.float64]:
    wide = sums.astype(np.float64)
    lengths = np.sqrt((wide * wide).sum(axis=1, keepdims=True))
    directions: npt.NDArray[np.float64] = wide / lengths
    return directions


def _part(graph: Regrouping, laws: Laws, a: int, b: int) -> None:
    """Cut edges between two subclusters, the weakest first, until they are apart."""
    while graph.clusters[a] == graph.clusters[b]:
        edge = _weakest(graph, a, b)
        if edge is None:
            raise contradiction("a correction", laws.chain(a, b) or ("other corrections",))
        graph.cut(*edge)


def _release(graph: Regrouping, laws: Laws) -> list[Edge]:
    """Let equation 22 test edges that no law holds any more; return them."""
    released = []
    for (a, b), rule in list(graph.rules.items()):
        if rule == PINNED and b not in laws.bonds(a):
            graph.hold(a, b, TESTED)
            released.append((a, b))
    return released


def margin(graph: Regrouping, edge: Edge) -> float:
    """Return similarity − s~ of an edge, exactly as the engines compute it."""
    (one, other), state = (graph.places[number] for number in edge), graph.state
    a, b = state.sums[one], state.sums[other]
    masses = state.masses()
    needed = state.thresholds.edge(float(masses[one]), float(masses[other]))
    return similarity(dot(a, b), dot(a, a), dot(b, b)) - needed


def _weakest(graph: Regrouping, a: int, b: int) -> Edge | None:
    """Return the edge of least margin between two subclusters that no law holds, if any."""
    edges = itertools.starmap(edge_of, itertools.pairwise(way(graph.neighbours, a, b)))
    loose = [edge for edge in edges if graph.rules[edge] != PINNED]
    return min(loose, key=lambda edge: (margin(graph, edge), edge), default=None)
