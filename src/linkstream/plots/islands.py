"""The graph of a store that holds many clusters: each an island, with its subclusters and edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Cluster
from linkstream.engine.state import State
from linkstream.plots import canvas
from linkstream.plots.canvas import FAINT, INK, PALETTE, Clustering, new_figure
from linkstream.plots.nodes import main_plane, unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ISLANDS = 80
_SIDE = 8.0  # inches
_LEAST = 0.07  # radius of a node of one vector; that of the greatest node is 1
_SHORE = 0.35  # between two islands
_SHARE = 6  # no island has more than a sixth of all subclusters that are drawn

Points = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


def islands(links: Clustering, *, limit: int = 1500) -> Figure:
    """The biggest clusters side by side, the biggest in the middle; area by number of vectors.

    Within an island the subclusters lie in the plane of the two main directions of their centroids;
    where an island lies says nothing.

    Args:
        links: a clusterer or a store with at least one vector.
        limit: at most so many subclusters, the biggest ones of the biggest clusters, and of one
            cluster no more than a sixth of that.
    """
    state, clusters = links.state(), canvas.by_size(links)
    canvas.refuse_empty(state)
    shown = _shown(state, clusters, limit)
    largest = float(state.counts.max())
    radii = [np.maximum(_LEAST, np.sqrt(state.counts[rows] / largest)) for _, rows in shown]
    coasts = np.array([1.5 * np.sqrt((r * r).sum()) + 0.12 for r in radii])
    centres = _packed(coasts)
    figure = new_figure(_SIDE, _SIDE + 0.3)
    axes = figure.add_subplot()
    reach = float((np.abs(centres) + coasts[:, np.newaxis]).max()) + 0.3
    points_a_unit = 72 * (_SIDE - 0.3) / (2 * reach)
    for rank, (cluster, rows) in enumerate(shown):
        points = centres[rank] + _within(state, rows, radii[rank], float(coasts[rank]))
        colour = PALETTE[rank % len(PALETTE)]
        _draw_edges(axes, state, rows, points, colour)
        areas = (2 * radii[rank] * points_a_unit) ** 2
        x, y = points.T
        axes.scatter(x, y, s=areas, c=colour, edgecolors="white", linewidths=0.6, zorder=3)
        foot = float((points[:, 1] - radii[rank]).min()) - 0.04
        _name(axes, cluster, (float(centres[rank, 0]), foot), float(coasts[rank]) * points_a_unit)
    _frame(axes, reach)
    _say_what(axes, state, clusters, shown)
    return figure


def _shown(state: State, clusters: list[Cluster], limit: int) -> list[tuple[Cluster, Places]]:
    """The clusters to draw, the biggest first, and the places of their biggest subclusters."""
    shown, left, most = [], limit, max(1, limit // _SHARE)
    for cluster in clusters[:ISLANDS]:
        rows = np.searchsorted(state.numbers, cluster.subclusters)
        rows = rows[np.argsort(-state.counts[rows], kind="stable")][: min(left, most)]
        left -= len(rows)
        if not len(rows):
            break
        shown.append((cluster, rows.astype(np.int64)))
    return shown


def _packed(radii: Points) -> Points:
    """Centres of discs that do not overlap, each as near to the middle as the ones before allow."""
    step = 0.5 * float(radii.min()) + 0.05
    turns = np.arange(4000)
    spiral = (
        step
        * np.sqrt(turns)[:, np.newaxis]
        * np.column_stack(
            [np.cos(2.399963 * turns), np.sin(2.399963 * turns)]  # the golden angle
        )
    )
    reach = 2 * float(radii.sum()) + _SHORE * len(radii)
    spiral = np.concatenate([spiral, [[reach, 0.0]]])
    centres = np.zeros((len(radii), 2))
    for place in range(1, len(radii)):
        apart = np.linalg.norm(spiral[:, np.newaxis] - centres[:place], axis=2)
        free = (apart >= radii[:place] + radii[place] + _SHORE).all(axis=1)
        centres[place] = spiral[np.argmax(free)]
    return centres


def _within(state: State, rows: Places, radii: Points, coast: float) -> Points:
    """Where the subclusters of an island lie, from its middle."""
    mean, plane = main_plane(state.sums[rows], state.counts[rows])
    points: Points = (unit(state.sums[rows]) - mean) @ plane
    if len(rows) == 1:
        return np.zeros((1, 2))
    points -= (points.max(axis=0) + points.min(axis=0)) / 2
    furthest = np.linalg.norm(points, axis=1)
    room = np.maximum(coast - radii, 0.0)
    stretch = np.min(room[furthest > 0] / furthest[furthest > 0], initial=np.inf)
    return points * (stretch if np.isfinite(stretch) else 0.0)


def _draw_edges(axes: Axes, state: State, rows: Places, points: Points, colour: str) -> None:
    from matplotlib.collections import LineCollection

    place = np.full(len(state.numbers), -1)
    place[rows] = np.arange(len(rows))
    ends = place[np.searchsorted(state.numbers, state.edges)]
    lines: Any = points[ends[(ends >= 0).all(axis=1)]]
    axes.add_collection(
        LineCollection(lines, colors=colour, alpha=0.45, linewidths=0.9, zorder=2, label="edges")
    )


def _name(axes: Axes, cluster: Cluster, foot: tuple[float, float], coast: float) -> None:
    """Name an island below its lowest node, in letters that fit its coast, which is in points."""
    axes.annotate(
        canvas.title(cluster, 16) if cluster.name else str(cluster.id),
        foot,
        ha="center",
        va="top",
        fontsize=float(np.clip(coast / 3.2, 5.0, 10.0)),
        fontweight="bold" if cluster.name else "normal",
        color=INK,
        zorder=4,
        parse_math=False,
    )


def _frame(axes: Axes, reach: float) -> None:
    axes.set_xlim(-reach, reach)
    axes.set_ylim(-reach, reach)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color(FAINT)


def _say_what(
    axes: Axes, state: State, clusters: list[Cluster], shown: list[tuple[Cluster, Places]]
) -> None:
    nodes = sum(len(rows) for _, rows in shown)
    if len(shown) == len(clusters) and nodes == len(state.numbers):
        words = f"all {len(clusters):,} clusters, {nodes:,} subclusters"
    else:
        words = (
            f"the biggest {len(shown):,} of {len(clusters):,} clusters, "
            f"{nodes:,} of {len(state.numbers):,} subclusters"
        )
    canvas.heading(axes, f"{words}; area by vectors")
