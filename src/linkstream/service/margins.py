"""What-if: how near the present graph is to its thresholds, and what moving them would touch.

It is about the graph as it is, not a run with other thresholds: had they been others from the
start, other subclusters would have come about. `linkstream tune` runs streams anew.

`figures` answers `GET …/margins`:

    thresholds      cluster_similarity, subcluster_similarity, pair_similarity_max, as they are
    counts          vectors, subclusters, clusters
    edges           of the edges that equation 22 judges, total: how many there are; shown: how many
                    were looked at (at most EDGES, evenly picked by age); similarity: histogram
    firm            the same of the edges that it does not judge, tied by a settlement or by whole
                    clusters as evidence; the figures are of the two parts that each holds
                    together, as wholes (a vector of less weight counts in full)
    law             edges that a person's word has tied; no threshold touches these
    pairs           shown: pairs of clusters that were looked at, those nearest to being one, at
                    most PAIRS; clusters: how many clusters were compared, the biggest ones, at most
                    COMPARED; similarity: histogram of the pairs shown. A pair passes where its
                    similarity as wholes reaches s~, whatever people have said of the two.
    recent          null, or of the decisions given: joined, linked, new: how many of each;
                    margin: histogram of similarity − threshold
    similarity_bins low, width, count: of the histograms of similarities
    margin_bins     low, width, count, zero: of the histograms of margins. Bin number `zero` begins
                    at 0. What lies beyond the first or last bin is counted in it.
    moves           how far each threshold is moved, −0.10 … 0.10; the middle one is 0
    edge            T_c and T_p moved. edge.edges[i][j], edge.firm[i][j] and edge.pairs[i][j] are
                    histograms of margins with T_c + moves[i] and T_p + moves[j]: edges below 0
                    would fail equation 22, the parts of firm edges below 0 would be less alike than
                    s~ asks, pairs from 0 on would pass. null where no such thresholds exist.
                    edge.floor[i]: the least that s~ asks with T_c + moves[i], of two vectors; null
                    where there is none.
    subcluster      T_s moved. subcluster.merged[i]: of subcluster.shown edges of any kind, those
                    whose two subclusters are as similar as T_s + moves[i] asks, and would be merged
                    into one when a vector next joins either. subcluster.unjoined[i]:
                    of the recent decisions, joins that T_s + moves[i] would have refused. null
                    where no such threshold exists, or no decisions were given. What has been merged
                    is not taken apart, so the graph alone cannot say more of a higher T_s.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from linkstream.engine.contract import KINDS, Decision
from linkstream.engine.forest import FIRM, LAW, LOOSE
from linkstream.engine.state import State
from linkstream.errors import ThresholdError
from linkstream.identity.comparison import Comparison, Parts
from linkstream.identity.laws import Laws
from linkstream.identity.suggestions import edge_figures
from linkstream.identity.totals import Totals
from linkstream.paper.thresholds import Thresholds

EDGES = 20_000  # looked at
PAIRS = 2_000
COMPARED = 2_000  # clusters: every two of them
MOVES = tuple(step / 100 for step in range(-10, 11))
_MARGIN = (-0.3, 0.01, 70)  # low, width, count
_SIMILARITY = (-0.2, 0.02, 60)

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Group = tuple[Floats, Floats]  # similarities, and what the two sides of each weigh


class Standing(Protocol):
    """What has a graph: a clusterer or a store."""

    def state(self) -> State:
        """The whole state as plain arrays."""


def figures(store_like: Standing, *, recent: Iterable[Decision] | None = None) -> dict[str, Any]:
    """What the page of thresholds shows, as plain values; the module says what each one is.

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
        "edges": {"total": int((state.firm == LOOSE).sum()), **_shown(edges)},
        "firm": {"total": int((state.firm == FIRM).sum()), **_shown(firm)},
        "law": int((state.firm == LAW).sum()),
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
    """The edges that equation 22 judges, by their ends."""
    judged = _picked(np.flatnonzero(state.firm == LOOSE))
    masses = state.masses()[np.searchsorted(state.numbers, state.edges[judged])]
    return _similarity(state, judged), masses


def _similarity(state: State, edges: Integers) -> Floats:
    """Of the ends of some edges."""
    if not len(edges):
        return np.empty(0)
    return edge_figures(replace(state, edges=state.edges[edges], firm=state.firm[edges]))[0]


def _firm(state: State) -> Group:
    """The edges that a settlement or whole clusters have tied, by the parts they hold together."""
    firm = _picked(np.flatnonzero(state.firm == FIRM))
    if not len(firm):
        return np.empty(0), np.empty((0, 2))
    parts = Parts.of(state, Totals.of(state))
    return parts.similarity[firm], parts.sizes[firm].astype(np.float64)


def _picked(places: Integers) -> Integers:
    if len(places) <= EDGES:
        return places
    return places[np.linspace(0, len(places) - 1, EDGES).astype(np.int64)]


def _pairs(state: State) -> tuple[Group, int]:
    """The pairs of clusters nearest to being one, and how many clusters were compared."""
    if not len(state.numbers):
        return (np.empty(0), np.empty((0, 2))), 0
    wholes = Comparison.of(_biggest(state), Laws())
    pairs = wholes.best(lambda margins, _, __: margins, PAIRS)
    return (wholes.figures(pairs)[0], wholes.totals.masses[pairs]), len(wholes.totals.ids)


def _biggest(state: State) -> State:
    """The state without clusters beyond those that are compared; enough to compare by."""
    ids, place = np.unique(state.clusters, return_inverse=True)
    if len(ids) <= COMPARED:
        return state
    sizes = np.bincount(place, weights=state.counts)
    kept = np.isin(place, np.argsort(-sizes, kind="stable")[:COMPARED])
    columns = ("numbers", "clusters", "counts", "light", "sums")
    part: dict[str, Any] = {name: getattr(state, name)[kept] for name in columns}
    return replace(state, **part)


def _edge_moves(now: Thresholds, groups: dict[str, Group]) -> dict[str, Any]:
    """Histograms of margins for every move of T_c and T_p."""
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
    """What T_s moved would merge, and which recent joins it would have refused."""
    similarity = _similarity(state, _picked(np.arange(len(state.edges))))
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
    """The thresholds with some moved, or put at the top of their range; None where not allowed."""
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
    """How many lie in each bin; what lies beyond the ends counts with the last ones.

    Where a value meets a bin's edge is decided by the value's sign, so that 0 begins a bin.
    """
    low, width, count = bins
    place = np.floor(values / width).astype(np.int64) - round(low / width)
    found: list[int] = np.bincount(np.clip(place, 0, count - 1), minlength=count).tolist()
    return found
