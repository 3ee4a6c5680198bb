"""Graphs of subclusters: all in one plane, or each cluster apart."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Cluster
from linkstream.engine.fixed_point import SCALE
from linkstream.engine.state import State
from linkstream.errors import ArgumentError
from linkstream.plots import style
from linkstream.plots.style import FRAGMENT, INK, PALETTE, Colours, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from linkstream.plots.style import Clustering

_LABELS_MAX = 12  # clusters with a label
_LARGEST_NODE = 700.0  # points², the area of the node with the most vectors
_LABEL_NODE = 190.0  # points², the area from which on an ID is drawn inside the node

CLUSTERS_MAX = 80
_SIDE = 8.0  # inches
_NODE_MIN = 0.07  # radius of a node of one vector; that of the biggest node is 1
_GAP = 0.35  # between two clusters
_SHARE = 6  # no cluster has more than a sixth of all subclusters that are drawn

Points = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


def graph(
    links: Clustering, *, vectors: npt.ArrayLike | None = None, colours: Colours | None = None
) -> Figure:
    """Draw the subclusters in the plane, with area by count, colour by cluster, and edges.

    The plane is spanned by the two main directions of the centroids, weighted by their counts.

    Args:
        links: a clusterer or a store with at least one vector.
        vectors: all vectors in order of arrival, to be drawn as faint dots; None draws none.
        colours: colour by cluster ID; by default the biggest clusters get one each.
    """
    figure = new_figure(6.0, 5.2)
    draw_graph(figure.add_subplot(), links, vectors, colours)
    return figure


def draw_graph(
    axes: Axes, links: Clustering, vectors: npt.ArrayLike | None, colours: Colours | None
) -> None:
    """Draw the graph into a panel; see `graph`."""
    state, clusters = links.state(), style.by_size(links)
    style.refuse_empty(state)
    colours = style.colours_by_size(clusters) if colours is None else colours
    sums, counts = state.sums, state.counts
    mean, plane = main_plane(sums, counts)
    points = (unit(sums) - mean) @ plane
    if vectors is not None:
        # Draw a node at the mean of its vectors; the normalised centroid lies further out.
        points = (sums / (counts[:, np.newaxis] * SCALE) - mean) @ plane
        _draw_vectors(axes, links, vectors, mean, plane, colours)
    nodes = [colours.get(cluster, FRAGMENT) for cluster in state.clusters.tolist()]
    ends = np.searchsorted(state.numbers, state.edges)
    _draw_edges(axes, points[ends], [nodes[a] for a in ends[:, 0].tolist()], alpha=0.7, width=1.0)
    areas = _LARGEST_NODE * counts / counts.max() + 12.0
    axes.scatter(
        points[:, 0],
        points[:, 1],
        s=areas,
        c=nodes,
        edgecolors="white",
        linewidths=1.2,
        zorder=3,
        label="subclusters",
    )
    _label_clusters(axes, clusters, state.numbers, points, areas)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.12)
    style.hide_ticks(axes)


def _draw_edges(
    axes: Axes, lines: Any, colours: str | list[str], *, alpha: float, width: float
) -> None:
    from matplotlib.collections import LineCollection

    axes.add_collection(
        LineCollection(
            lines, colors=colours, alpha=alpha, linewidths=width, zorder=2, label="edges"
        )
    )


def _draw_vectors(
    axes: Axes,
    links: Clustering,
    vectors: npt.ArrayLike,
    mean: Points,
    plane: Points,
    colours: Colours,
) -> None:
    rows = unit(np.asarray(vectors))
    if links.space.mean is not None:
        rows = unit(rows - links.space.mean)
    labels = links.labels()
    if len(rows) != len(labels):
        raise ArgumentError(
            f"{len(rows)} vectors for a clusterer with {len(labels)}",
            expected="all vectors of the clusterer, in order of arrival",
            remedy="Leave them out to draw subclusters only.",
        )
    points = (rows - mean) @ plane
    axes.scatter(
        points[:, 0],
        points[:, 1],
        s=6.0,
        c=[colours.get(label, FRAGMENT) for label in labels.tolist()],
        alpha=0.5,
        linewidths=0,
        zorder=1,
        label="vectors",
    )


def _label_clusters(
    axes: Axes,
    clusters: list[Cluster],
    numbers: npt.NDArray[np.int64],
    points: Points,
    areas: Points,
) -> None:
    """Label the biggest clusters at their biggest subcluster: inside it, or above a small one.

    A cluster of one vector has no label, unless it is the only cluster.
    """
    for cluster in clusters[:_LABELS_MAX]:
        nodes = np.flatnonzero(np.isin(numbers, cluster.subclusters))
        if (cluster.size == 1 and len(clusters) > 1) or not len(nodes):
            continue
        node = int(nodes[np.argmax(areas[nodes])])
        inside = areas[node] >= _LABEL_NODE and cluster.name is None
        axes.annotate(
            str(cluster.id) if inside else style.title(cluster),
            (float(points[node, 0]), float(points[node, 1])),
            xytext=(0, 0 if inside else 4 + math.sqrt(areas[node]) / 2),
            textcoords="offset points",
            ha="center",
            va="center_baseline" if inside else "bottom",
            fontsize=9,
            fontweight="bold",
            color="white" if inside else INK,
            zorder=4,
            parse_math=False,
        )


def main_plane(sums: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> tuple[Points, Points]:
    """Return the weighted mean of the unit centroids, and their two main directions as columns.

    The sign of a direction is chosen so that its largest coordinate is positive.
    """
    centroids = unit(sums)
    weights = counts / counts.sum()
    mean = weights @ centroids
    spread = (centroids - mean) * np.sqrt(weights)[:, np.newaxis]
    directions = np.linalg.svd(spread, full_matrices=False)[2][:2]
    plane = np.zeros((2, centroids.shape[1]))
    plane[: len(directions)] = directions
    largest = np.argmax(np.abs(plane), axis=1)
    signs = np.where(plane[[0, 1], largest] < 0, -1.0, 1.0)
    return mean, (plane * signs[:, np.newaxis]).T


def unit(rows: npt.NDArray[Any]) -> Points:
    """Return the rows scaled to length 1."""
    floats = rows.astype(np.float64)
    return np.asarray(floats / np.linalg.norm(floats, axis=1, keepdims=True))


def cluster_graphs(links: Clustering, *, limit: int = 1500) -> Figure:
    """Draw the graph of each of the biggest clusters apart, the biggest in the middle.

    The area of a node is its number of vectors. The subclusters of a cluster lie in the plane of
    the two main directions of their centroids; the position of a cluster has no meaning.

    Args:
        links: a clusterer or a store with at least one vector.
        limit: maximum number of subclusters. The biggest ones of the biggest clusters are drawn,
            at most a sixth of the limit for each cluster.
    """
    state, clusters = links.state(), style.by_size(links)
    style.refuse_empty(state)
    shown = _biggest_clusters(state, clusters, limit)
    largest = float(state.counts.max())
    radii = [np.maximum(_NODE_MIN, np.sqrt(state.counts[rows] / largest)) for _, rows in shown]
    outlines = np.array([1.5 * np.sqrt((r * r).sum()) + 0.12 for r in radii])
    centres = _packed_centres(outlines)
    figure = new_figure(_SIDE, _SIDE + 0.3)
    axes = figure.add_subplot()
    reach = float((np.abs(centres) + outlines[:, np.newaxis]).max()) + 0.3
    points_a_unit = 72 * (_SIDE - 0.3) / (2 * reach)
    for rank, (cluster, rows) in enumerate(shown):
        points = centres[rank] + _layout(state, rows, radii[rank], float(outlines[rank]))
        colour = PALETTE[rank % len(PALETTE)]
        _draw_edges(axes, points[_edges_within(state, rows)], colour, alpha=0.45, width=0.9)
        areas = (2 * radii[rank] * points_a_unit) ** 2
        x, y = points.T
        axes.scatter(x, y, s=areas, c=colour, edgecolors="white", linewidths=0.6, zorder=3)
        below = float((points[:, 1] - radii[rank]).min()) - 0.04
        _label_cluster(
            axes, cluster, (float(centres[rank, 0]), below), float(outlines[rank]) * points_a_unit
        )
    axes.set_xlim(-reach, reach)
    axes.set_ylim(-reach, reach)
    axes.set_aspect("equal")
    style.hide_ticks(axes)
    _write_heading(axes, state, clusters, shown)
    return figure


def _biggest_clusters(
    state: State, clusters: list[Cluster], limit: int
) -> list[tuple[Cluster, Rows]]:
    """Return the clusters to draw, the biggest first, and the rows of their subclusters."""
    shown, left, most = [], limit, max(1, limit // _SHARE)
    for cluster in clusters[:CLUSTERS_MAX]:
        rows = np.searchsorted(state.numbers, cluster.subclusters)
        rows = rows[np.argsort(-state.counts[rows], kind="stable")][: min(left, most)]
        left -= len(rows)
        if not len(rows):
            break
        shown.append((cluster, rows.astype(np.int64)))
    return shown


def _packed_centres(radii: Points) -> Points:
    """Return centres of discs that do not overlap, each as near to the middle as possible."""
    step = 0.5 * float(radii.min()) + 0.05
    turns = np.arange(4000)
    angle = 2.399963 * turns  # multiples of the golden angle
    spiral = step * np.sqrt(turns)[:, np.newaxis] * np.column_stack([np.cos(angle), np.sin(angle)])
    reach = 2 * float(radii.sum()) + _GAP * len(radii)
    spiral = np.concatenate([spiral, [[reach, 0.0]]])
    centres = np.zeros((len(radii), 2))
    for position in range(1, len(radii)):
        apart = np.linalg.norm(spiral[:, np.newaxis] - centres[:position], axis=2)
        free = (apart >= radii[:position] + radii[position] + _GAP).all(axis=1)
        centres[position] = spiral[np.argmax(free)]
    return centres


def _layout(state: State, rows: Rows, radii: Points, outline: float) -> Points:
    """Return the positions of the subclusters of a cluster, relative to its centre."""
    mean, plane = main_plane(state.sums[rows], state.counts[rows])
    points: Points = (unit(state.sums[rows]) - mean) @ plane
    if len(rows) == 1:
        return np.zeros((1, 2))
    points -= (points.max(axis=0) + points.min(axis=0)) / 2
    furthest = np.linalg.norm(points, axis=1)
    room = np.maximum(outline - radii, 0.0)
    stretch = np.min(room[furthest > 0] / furthest[furthest > 0], initial=np.inf)
    return points * (stretch if np.isfinite(stretch) else 0.0)


def _edges_within(state: State, rows: Rows) -> npt.NDArray[np.intp]:
    """Return the edges between these subclusters, as positions in `rows`."""
    position = np.full(len(state.numbers), -1)
    position[rows] = np.arange(len(rows))
    ends = position[np.searchsorted(state.numbers, state.edges)]
    return np.asarray(ends[(ends >= 0).all(axis=1)])


def _label_cluster(
    axes: Axes, cluster: Cluster, below: tuple[float, float], outline: float
) -> None:
    """Label a cluster below its lowest node, in a font size that fits its outline (in points)."""
    axes.annotate(
        style.title(cluster, 16) if cluster.name else str(cluster.id),
        below,
        ha="center",
        va="top",
        fontsize=float(np.clip(outline / 3.2, 5.0, 10.0)),
        fontweight="bold" if cluster.name else "normal",
        color=INK,
        zorder=4,
        parse_math=False,
    )


def _write_heading(
    axes: Axes, state: State, clusters: list[Cluster], shown: list[tuple[Cluster, Rows]]
) -> None:
    nodes = sum(len(rows) for _, rows in shown)
    if len(shown) == len(clusters) and nodes == len(state.numbers):
        words = f"all {len(clusters):,} clusters, {nodes:,} subclusters"
    else:
        words = (
            f"the biggest {len(shown):,} of {len(clusters):,} clusters, "
            f"{nodes:,} of {len(state.numbers):,} subclusters"
        )
    style.heading(axes, f"{words}; area by vectors")
