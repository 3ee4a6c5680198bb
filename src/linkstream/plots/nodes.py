"""The graph of subclusters in the plane."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Cluster
from linkstream.engine.fixed_point import SCALE
from linkstream.engine.state import State
from linkstream.errors import ArgumentError
from linkstream.plots import canvas
from linkstream.plots.canvas import FAINT, FRAGMENT, INK, Clustering, Colours, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LABELLED = 12  # more clusters than this are drawn without a label
_LARGEST_NODE = 700.0  # points², the area of the node with the most vectors
_ROOMY_NODE = 190.0  # points², an area that holds an ID

Points = npt.NDArray[np.float64]


def graph(
    links: Clustering,
    *,
    vectors: npt.ArrayLike | None = None,
    colours: Colours | None = None,
) -> Figure:
    """The subclusters in the plane: area by count, colour by cluster, edges between them.

    The plane is that of the two main directions of the centroids, each weighed by its count.

    Args:
        links: a clusterer or a store with at least one vector.
        vectors: the vectors it was given, in order, to be drawn as faint dots.
        colours: cluster ID → colour; without it the biggest clusters get one each.
    """
    figure = new_figure(6.0, 5.2)
    draw_graph(figure.add_subplot(), links, vectors, colours)
    return figure


def draw_graph(
    axes: Axes,
    links: Clustering,
    vectors: npt.ArrayLike | None,
    colours: Colours | None,
) -> None:
    """Draw the graph into a panel; see `graph`."""
    state, clusters = links.state(), canvas.by_size(links)
    canvas.refuse_empty(state)
    colours = canvas.colours_by_size(clusters) if colours is None else colours
    sums, counts = state.sums, state.counts
    mean, plane = main_plane(sums, counts)
    points = (unit(sums) - mean) @ plane
    if vectors is not None:
        # Among its vectors a node stands in their midst; the centroid proper lies further out.
        points = (sums / (counts[:, np.newaxis] * SCALE) - mean) @ plane
        _draw_vectors(axes, links, vectors, mean, plane, colours)
    nodes = [colours.get(cluster, FRAGMENT) for cluster in state.clusters.tolist()]
    _draw_edges(axes, state, points, nodes)
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
    _frame(axes)


def _draw_edges(axes: Axes, state: State, points: Points, nodes: list[str]) -> None:
    from matplotlib.collections import LineCollection

    ends = np.searchsorted(state.numbers, state.edges)
    lines: Any = points[ends]
    axes.add_collection(
        LineCollection(
            lines,
            colors=[nodes[a] for a in ends[:, 0].tolist()],
            alpha=0.7,
            linewidths=1.0,
            zorder=2,
            label="edges",
        )
    )


def _frame(axes: Axes) -> None:
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.12)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color(FAINT)


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
            f"{len(rows)} vectors for a clusterer that has seen {len(labels)}",
            expected="the vectors it was given, all of them, in order",
            remedy="Leave them out to draw subclusters alone.",
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
    """Name the biggest clusters at their biggest subcluster: inside it, or above where it is small.

    A lone vector needs no name.
    """
    for cluster in clusters[:_LABELLED]:
        nodes = np.flatnonzero(np.isin(numbers, cluster.subclusters))
        if (cluster.size == 1 and len(clusters) > 1) or not len(nodes):
            continue
        node = int(nodes[np.argmax(areas[nodes])])
        roomy = areas[node] >= _ROOMY_NODE and cluster.name is None
        axes.annotate(
            str(cluster.id) if roomy else canvas.title(cluster),
            (float(points[node, 0]), float(points[node, 1])),
            xytext=(0, 0 if roomy else 4 + math.sqrt(areas[node]) / 2),
            textcoords="offset points",
            ha="center",
            va="center_baseline" if roomy else "bottom",
            fontsize=9,
            fontweight="bold",
            color="white" if roomy else INK,
            zorder=4,
            parse_math=False,
        )


def main_plane(sums: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> tuple[Points, Points]:
    """Weighted mean of the unit centroids, and their two main directions as columns.

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
    """Rows of length 1."""
    floats = rows.astype(np.float64)
    found: Points = floats / np.linalg.norm(floats, axis=1, keepdims=True)
    return found
