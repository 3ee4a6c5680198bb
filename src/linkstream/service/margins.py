"""What-if: margins of the current graph, and what other thresholds would change in it.

This is not a run with other thresholds, which would have made other subclusters; `linkstream tune`
runs streams again.

`figures` returns the answer to `GET …/margins`:

    thresholds      cluster_similarity, subcluster_similarity, pair_similarity_max, as set
    counts          vectors, subclusters, clusters
    edges           edges that equation 22 tests. total: their number; shown: how many were examined
                    (at most EDGES, evenly spaced by age); similarity: histogram
    firm            the same for edges made by a settlement or by the evidence of whole clusters;
                    the similarity is that of the two parts that the edge holds together (a vector
                    of less weight counts in full)
    law             edges made by user corrections; no threshold affects them
    pairs           shown: pairs of clusters examined, those nearest to being one, at most PAIRS;
                    clusters: how many of the largest clusters were compared, at most COMPARED;
                    similarity: histogram of the pairs. A pair passes if its similarity reaches s~,
                    whatever the corrections say.
    recent          null, or for the decisions given: joined, linked, new: how many of each;
                    margin: histogram of similarity − threshold
    similarity_bins low, width, count: of the histograms of similarities
    margin_bins     low, width, count, zero: of the histograms of margins. Bin number `zero` begins
                    at 0. Values beyond the first or last bin are counted in it.
    moves           the changes of each threshold, −0.10 … 0.10; the middle one is 0
    edge            T_c and T_p changed. edge.edges[i][j], edge.firm[i][j] and edge.pairs[i][j] are
                    histograms of margins with T_c + moves[i] and T_p + moves[j]: edges below 0
                    would fail equation 22, parts of firm edges below 0 would fail s~, pairs from 0
                    on would pass. null if such thresholds are not valid. edge.floor[i]: s~ of two
                    single vectors with T_c + moves[i]; null if not valid.
    subcluster      T_s changed. subcluster.merged[i]: of subcluster.shown edges of any kind, those
                    whose subclusters reach T_s + moves[i] and would merge when a vector next joins
                    either. subcluster.unjoined[i]: recent joins that T_s + moves[i] would have
                    refused. null if the threshold is not valid, or no decisions were given. Merged
                    subclusters are not split, so the graph cannot show more of a higher T_s.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from linkstream.engine.comparison import Comparison, Parts, Totals, edge_figures
from linkstream.engine.contract import KINDS, Decision
from linkstream.engine.forest import PINNED, SETTLED, TESTED
from linkstream.engine.state import State
from linkstream.errors import ThresholdError
from linkstream.paper.thresholds import Thresholds

EDGES = 20_000  # examined
PAIRS = 2_000
COMPARED = 2_000  # clusters, pairwise
MOVES = tuple(step / 100 for step in range(-10, 11))
_MARGIN = (-0.3, 0.01, 70)  # low, width, count
_SIMILARITY = (-0.2, 0.02, 60)

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Group = tuple[Floats, Floats]  # similarities, and the masses of both sides


class HasState(Protocol):
    """A clusterer or a store."""

    def state(self) -> State:
        """Return the whole state as plain arrays."""


def figures(store_like: HasState, *, recent: Iterable[Decision] | None = None) -> dict[str, Any]:
    """Return the values described above, of a clusterer or a store and of recent decisions.

    Costs about a second for 2,000 clusters and 20,000 edges of 256 dimensions.
    """
    state = store_like.state()
    edges, firm = _edges(state), _firm(state)
    pairs, compared = _pairs(state)
    decisions = None if recent is None else list(recent)
    low, width, count = _MARGIN
    return {
        "thresholds": asdict(state.thresholds),
        "counts": {
            "vectors": int(state.counts.sum()),
            "subclusters": len(state.numbers),
            "clusters": len(np.unique(state.clusters)),
        },
        "edges": {"total": int((state.edge_rules == TESTED).sum()), **_shown(edges)},
        "firm": {"total": int((state.edge_rules == SETTLED).sum()), **_shown(firm)},
        "law": int((state.edge_rules == PINNED).sum()),
        "pairs": {"clusters": compared, **_shown(pairs)},
        "recent": None if decisions is None else _recent(decisions),
        "similarity_bins": dict(zip(("low", "width", "count"), _SIMILARITY, strict=True)),
        "margin_bins": {"low": low, "width": width, "count": count, "zero": round(-low / width)},
        "moves": list(MOVES),
        "edge": _edge_moves(state.thresholds, {"edges": edges, "firm": firm, "pairs": pairs}),
        "subcluster": _subcluster_moves(state, decisions),
    }


def _shown(some: Group) -> dict[str, Any]:
    return {"shown": len(some[0]), "similarity": _histogram(some[0], _SIMILARITY)}


def _edges(state: State) -> Group:
    """Return the edges that equation 22 tests, with the masses of their ends."""
    tested = picked(np.flatnonzero(state.edge_rules == TESTED))
    masses = state.masses()[np.searchsorted(state.numbers, state.edges[tested])]
    return _similarity(state, tested), masses


def _similarity(state: State, edges: Integers) -> Floats:
    """Return the similarities of the ends of edges."""
    if not len(edges):
        return np.empty(0)
    part = replace(state, edges=state.edges[edges], edge_rules=state.edge_rules[edges])
    return edge_figures(part)[0]


def _firm(state: State) -> Group:
    """Return the settled edges, with the masses of the parts they hold together."""
    firm = picked(np.flatnonzero(state.edge_rules == SETTLED))
    if not len(firm):
        return np.empty(0), np.empty((0, 2))
    parts = Parts.of(state, Totals.of(state))
    return parts.similarity[firm], parts.sizes[firm].astype(np.float64)


def picked(edges: Integers) -> Integers:
    """Return the edges that are examined: all, or some evenly spaced by age."""
    if len(edges) <= EDGES:
        return edges
    return edges[np.linspace(0, len(edges) - 1, EDGES).astype(np.int64)]


def _pairs(state: State) -> tuple[Group, int]:
    """Return the pairs of clusters nearest to being one, and how many were compared."""
    if not len(state.numbers):
        return (np.empty(0), np.empty((0, 2))), 0
    wholes = Comparison.of(biggest(state))
    pairs = wholes.best(lambda margins, _, __: margins, PAIRS)
    return (wholes.figures(pairs)[0], wholes.totals.masses[pairs]), len(wholes.totals.ids)


def biggest(state: State) -> State:
    """Return the state with the largest clusters only, enough to compare them."""
    ids, place = np.unique(state.clusters, return_inverse=True)
    if len(ids) <= COMPARED:
        return state
    sizes = np.bincount(place, weights=state.counts)
    kept = np.isin(place, np.argsort(-sizes, kind="stable")[:COMPARED])
    columns = ("numbers", "clusters", "counts", "missing_weight", "sums")
    part: dict[str, Any] = {name: getattr(state, name)[kept] for name in columns}
    return replace(state, **part)


def _edge_moves(now: Thresholds, groups: dict[str, Group]) -> dict[str, Any]:
    """Return histograms of margins for every change of T_c and T_p."""
    table = [
        [_moved(now, cluster_similarity=c, pair_similarity_max=p) for p in MOVES] for c in MOVES
    ]
    alone = [_moved(now, cluster_similarity=c, pair_similarity_max=None) for c in MOVES]
    found: dict[str, Any] = {
        name: [[_margins(thresholds, *group) for thresholds in row] for row in table]
        for name, group in groups.items()
    }
    return {**found, "floor": [None if each is None else each.edge(1, 1) for each in alone]}


def _margins(thresholds: Thresholds | None, similarity: Floats, masses: Floats) -> list[int] | None:
    if thresholds is None:
        return None
    required = thresholds.edges(masses[:, 0], masses[:, 1])
    return _histogram(similarity - required, _MARGIN)


def _subcluster_moves(state: State, recent: list[Decision] | None) -> dict[str, Any]:
    """Return what other values of T_s would merge, and which recent joins they would refuse."""
    similarity = _similarity(state, picked(np.arange(len(state.edges))))
    moved = [_moved(state.thresholds, subcluster_similarity=move) for move in MOVES]
    at = [None if each is None else each.subcluster_similarity for each in moved]
    joins = [d.similarity for d in recent or () if d.kind == "joined" and d.similarity is not None]
    return {
        "shown": len(similarity),
        "merged": [None if t is None else int((similarity >= t).sum()) for t in at],
        "unjoined": [
            None if t is None or recent is None else sum(each < t for each in joins) for t in at
        ],
    }


def _moved(now: Thresholds, **moves: float | None) -> Thresholds | None:
    """Return the thresholds with some changed, or at 1 for None; None if not valid."""
    values = {
        name: 1.0 if move is None else getattr(now, name) + move for name, move in moves.items()
    }
    try:
        return replace(now, **values)
    except ThresholdError:
        return None


def _recent(decisions: list[Decision]) -> dict[str, Any]:
    margins = [each.margin for each in decisions if each.margin is not None]
    return {
        **{kind: sum(each.kind == kind for each in decisions) for kind in KINDS},
        "margin": _histogram(np.array(margins, dtype=np.float64), _MARGIN),
    }


def _histogram(values: Floats, bins: tuple[float, float, int]) -> list[int]:
    """Count the values in each bin; values beyond the ends count in the outer bins.

    Bins are counted from 0, so that 0 begins a bin exactly.
    """
    low, width, count = bins
    place = np.floor(values / width).astype(np.int64) - round(low / width)
    found: list[int] = np.bincount(np.clip(place, 0, count - 1), minlength=count).tolist()
    return found
