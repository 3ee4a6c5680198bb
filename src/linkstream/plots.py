"""Pictures: who was given which ID when, and the graph of subclusters.

Every function returns a `matplotlib.figure.Figure` that belongs to no window and no global state;
write it with `figure.savefig(path)`. One colour is one ID throughout a picture. Grey, hatched,
are the IDs that stand for nobody: fragments.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Links
from linkstream.engine.fixed_point import SCALE
from linkstream.errors import ArgumentError, MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart by colour-blind readers (their yellow is too pale for bars),
# then darker ones for streams with more identities.
PALETTE = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"),
    *("#332288", "#8C6D31", "#882255", "#117733", "#AA99DD", "#F0A58F"),
)
FRAGMENT = "#B4B4B4"
INK, FAINT = "#333333", "#E4E4E4"

_LABELLED = 12  # more clusters than this are drawn without a label
_LARGEST_NODE = 700.0  # points², the area of the node with the most vectors
_ROOMY_NODE = 190.0  # points², an area that holds an ID

Colours = Mapping[int, str]


def timeline(
    y_true: npt.ArrayLike,
    ids: npt.ArrayLike,
    times: npt.ArrayLike | None = None,
    *,
    matched: Mapping[int, Any] | None = None,
) -> Figure:
    """A lane for each identity, coloured by the IDs it was given.

    Args:
        y_true: who it was, in order of arrival.
        ids: the ID given to each.
        times: when each began, rising, in seconds; without it, the order of arrival.
        matched: ID → identity, as `metrics.match` gives. Without it an ID stands for an identity
            when each is the other's most frequent.
    """
    who, given, when = _stream(y_true, ids, times)
    stands_for = _most_frequent(who, given) if matched is None else dict(matched)
    lanes = len(np.unique(who))
    figure = new_figure(9.0, 1.2 + 0.42 * lanes)
    axes = figure.add_subplot()
    _draw_timeline(axes, who, given, when, stands_for, _colours_of(given, stands_for))
    axes.set_xlabel("order of arrival" if times is None else "time (s)")
    return figure


def graph(
    links: Links,
    *,
    vectors: npt.ArrayLike | None = None,
    colours: Colours | None = None,
) -> Figure:
    """The subclusters in the plane: area by count, colour by cluster, edges between them.

    The plane is that of the two main directions of the centroids, each weighed by its count.

    Args:
        links: a clusterer with at least one vector.
        vectors: the vectors it was given, in order, to be drawn as faint dots.
        colours: cluster ID → colour; without it the biggest clusters get one each.
    """
    figure = new_figure(6.0, 5.2)
    _draw_graph(figure.add_subplot(), links, vectors, colours)
    return figure


def demo_picture(
    y_true: npt.ArrayLike,
    ids: npt.ArrayLike,
    links: Links,
    *,
    times: npt.ArrayLike | None = None,
    vectors: npt.ArrayLike | None = None,
    matched: Mapping[int, Any] | None = None,
    title: str = "",
    subtitle: str = "",
) -> Figure:
    """The whole story of a stream: IDs as they were given, and the graph they ended in."""
    who, given, when = _stream(y_true, ids, times)
    stands_for = _most_frequent(who, given) if matched is None else dict(matched)
    colours = _colours_of(given, stands_for)
    figure = new_figure(12.0, 4.9)
    left, right = figure.subplots(1, 2, width_ratios=(1.75, 1.0))
    _draw_timeline(left, who, given, when, stands_for, colours)
    left.set_xlabel("order of arrival" if times is None else "time (s)")
    left.set_title("IDs given at arrival, one lane a speaker", loc="left", fontsize=10, color=INK)
    _draw_graph(right, links, vectors, colours)
    right.set_title("subclusters and their vectors at the end", loc="left", fontsize=10, color=INK)
    if title:
        figure.suptitle(title, x=0.012, ha="left", fontsize=14, fontweight="bold", color=INK)
    if subtitle:
        figure.supxlabel(subtitle, x=0.012, ha="left", fontsize=8.5, color="#666666")
    return figure


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise MissingExtraError("matplotlib", extra="plots", purpose="Drawing") from missing
    return Figure(figsize=(width, height), dpi=150, layout="constrained")


def _stream(
    y_true: npt.ArrayLike, ids: npt.ArrayLike, times: npt.ArrayLike | None
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Labels and times of a stream, checked: as many of each, times rising."""
    who, given = np.asarray(y_true), np.asarray(ids)
    when = np.arange(len(who.ravel()), dtype=np.float64) if times is None else np.asarray(times)
    if not (who.ndim == given.ndim == when.ndim == 1 and len(who) == len(given) == len(when) > 0):
        raise ArgumentError(
            f"y_true, ids and times of shapes {who.shape}, {given.shape} and {when.shape}",
            expected="one of each for every vector, at least one vector",
            remedy="Give them in order of arrival, none left out.",
        )
    if given.dtype.kind not in "iu":
        raise ArgumentError(
            f"ids of dtype {given.dtype}",
            expected="whole numbers",
            remedy="Pass what add_many() or labels() returned.",
        )
    if not np.all(np.diff(when) >= 0):
        raise ArgumentError(
            "times that go back",
            expected="times that rise from vector to vector",
            remedy="Sort the stream by time.",
        )
    return who, given.astype(np.int64), when.astype(np.float64)


def _most_frequent(who: npt.NDArray[Any], given: npt.NDArray[np.int64]) -> dict[int, Any]:
    """ID → identity where each is the other's most frequent."""
    stands_for = {}
    for identity in np.unique(who):
        ids, counts = np.unique(given[who == identity], return_counts=True)
        favourite = int(ids[np.argmax(counts)])
        others, counts = np.unique(who[given == favourite], return_counts=True)
        if others[np.argmax(counts)] == identity:
            stands_for[favourite] = identity
    return stands_for


def _colours_of(given: npt.NDArray[np.int64], stands_for: Mapping[int, Any]) -> dict[int, str]:
    """A colour for each ID that stands for somebody, in order of appearance; grey for others."""
    ids, first = np.unique(given, return_index=True)
    known = [int(i) for i in ids[np.argsort(first)] if int(i) in stands_for]
    colours = {int(i): FRAGMENT for i in ids}
    return colours | {i: PALETTE[n % len(PALETTE)] for n, i in enumerate(known)}


def _draw_timeline(
    axes: Axes,
    who: npt.NDArray[Any],
    given: npt.NDArray[np.int64],
    when: npt.NDArray[np.float64],
    stands_for: Mapping[int, Any],
    colours: Colours,
) -> None:
    _, first = np.unique(who, return_index=True)
    lanes = who[np.sort(first)]  # in order of appearance, the first on top
    step = float(np.median(np.diff(when))) if len(when) > 1 else 1.0
    ends = np.minimum(np.append(when[1:], when[-1] + step), when + step)
    for lane, identity in enumerate(lanes):
        axes.axhline(lane, color=FAINT, linewidth=0.8, zorder=0)
        for cluster in np.unique(given[who == identity]).tolist():
            bars = _bars((who == identity) & (given == cluster), when, ends)
            _draw_bars(axes, bars, lane, cluster, colours[cluster])
    axes.set_yticks(range(len(lanes)), _lane_names(lanes))
    axes.set_ylim(len(lanes) - 0.45, -0.55)
    axes.set_xlim(when[0], ends[-1])
    _name_the_ids(axes, lanes, who, given, stands_for, colours)
    if FRAGMENT in colours.values():
        _explain_fragments(axes)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _draw_bars(
    axes: Axes, bars: list[tuple[float, float]], lane: int, cluster: int, colour: str
) -> None:
    fragment = colour == FRAGMENT
    axes.broken_barh(
        bars,
        (lane - 0.34, 0.68),
        facecolor=colour,
        edgecolor="white" if fragment else colour,
        hatch="////" if fragment else None,
        linewidth=0.0 if fragment else 0.3,
        label=f"ID {cluster}",
    )


def _explain_fragments(axes: Axes) -> None:
    from matplotlib.patches import Patch

    swatch = Patch(facecolor=FRAGMENT, edgecolor="white", hatch="////", linewidth=0.0)
    axes.legend(
        [swatch],
        ["an ID that stands for nobody"],
        loc="lower right",
        bbox_to_anchor=(1.0, 0.995),
        borderaxespad=0.2,
        frameon=False,
        fontsize=8.5,
        labelcolor=INK,
    )


def _bars(
    chosen: npt.NDArray[np.bool_],
    when: npt.NDArray[np.float64],
    ends: npt.NDArray[np.float64],
) -> list[tuple[float, float]]:
    """Runs of chosen vectors as (start, width); a gap in time, beyond a jitter, ends a run."""
    jitter = 0.01 * (ends[:-1] - when[:-1])
    unbroken = chosen[1:] & chosen[:-1] & (when[1:] - ends[:-1] <= jitter)
    begins = np.flatnonzero(chosen & ~np.append(False, unbroken))
    stops = np.flatnonzero(chosen & ~np.append(unbroken, False))
    return [(float(when[a]), float(ends[b] - when[a])) for a, b in zip(begins, stops, strict=True)]


def _lane_names(lanes: npt.NDArray[Any]) -> Sequence[str]:
    return [str(identity) if lanes.dtype.kind in "US" else f"#{identity}" for identity in lanes]


def _name_the_ids(
    axes: Axes,
    lanes: npt.NDArray[Any],
    who: npt.NDArray[Any],
    given: npt.NDArray[np.int64],
    stands_for: Mapping[int, Any],
    colours: Colours,
) -> None:
    """Beside each lane: the ID that stands for it, and how much of the lane has it."""
    for cluster, identity in stands_for.items():
        lane = int(np.flatnonzero(lanes == identity)[0])
        share = float(np.mean(given[who == identity] == cluster))
        axes.annotate(
            f"ID {cluster} · {share:.0%}",
            (1.0, lane),
            xycoords=("axes fraction", "data"),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=colours.get(cluster, INK),
            fontsize=9,
            fontweight="bold",
        )


def _draw_graph(
    axes: Axes, links: Links, vectors: npt.ArrayLike | None, colours: Colours | None
) -> None:
    state = links.state()
    if not len(state.numbers):
        raise ArgumentError(
            "a clusterer without vectors",
            expected="at least one subcluster to draw",
            remedy="Add vectors first.",
        )
    colours = _colours_by_size(links) if colours is None else colours
    mean, plane = _main_plane(state.sums, state.counts)
    points = (_unit(state.sums) - mean) @ plane
    if vectors is not None:
        # Among its vectors a node stands in their midst; the centroid proper lies further out.
        points = (state.sums / (state.counts[:, np.newaxis] * SCALE) - mean) @ plane
        _draw_vectors(axes, links, vectors, mean, plane, colours)
    nodes = [colours.get(cluster, FRAGMENT) for cluster in state.clusters.tolist()]
    for a, b in np.searchsorted(state.numbers, state.edges).tolist():
        x, y = points[[a, b]].T
        axes.plot(x, y, color=nodes[a], alpha=0.7, linewidth=1.0, zorder=2, label="edge")
    areas = _LARGEST_NODE * state.counts / state.counts.max() + 12.0
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
    _label_clusters(axes, links, points, areas)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.12)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color(FAINT)


def _draw_vectors(
    axes: Axes,
    links: Links,
    vectors: npt.ArrayLike,
    mean: npt.NDArray[np.float64],
    plane: npt.NDArray[np.float64],
    colours: Colours,
) -> None:
    unit = _unit(np.asarray(vectors))
    if links.space.mean is not None:
        unit = _unit(unit - links.space.mean)
    labels = links.labels()
    if len(unit) != len(labels):
        raise ArgumentError(
            f"{len(unit)} vectors for a clusterer that has seen {len(labels)}",
            expected="the vectors it was given, all of them, in order",
            remedy="Leave them out to draw subclusters alone.",
        )
    points = (unit - mean) @ plane
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


def _colours_by_size(links: Links) -> dict[int, str]:
    clusters = sorted(links.clusters(), key=lambda cluster: (-cluster.size, cluster.id))
    return {cluster.id: colour for cluster, colour in zip(clusters, PALETTE, strict=False)}


def _label_clusters(
    axes: Axes, links: Links, points: npt.NDArray[np.float64], areas: npt.NDArray[np.float64]
) -> None:
    """Name the biggest clusters at their biggest subcluster: inside it, or above where it is small.

    A lone vector needs no name.
    """
    numbers = links.state().numbers
    clusters = sorted(links.clusters(), key=lambda cluster: (-cluster.size, cluster.id))
    for cluster in clusters[:_LABELLED]:
        if cluster.size == 1 and len(clusters) > 1:
            continue
        nodes = np.searchsorted(numbers, cluster.subclusters)
        node = int(nodes[np.argmax(areas[nodes])])
        roomy = areas[node] >= _ROOMY_NODE and cluster.name is None
        axes.annotate(
            str(cluster.id) if roomy else cluster.name or f"ID {cluster.id}",
            (float(points[node, 0]), float(points[node, 1])),
            xytext=(0, 0 if roomy else 4 + math.sqrt(areas[node]) / 2),
            textcoords="offset points",
            ha="center",
            va="center_baseline" if roomy else "bottom",
            fontsize=9,
            fontweight="bold",
            color="white" if roomy else INK,
            zorder=4,
        )


def _main_plane(
    sums: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Weighted mean of the unit centroids, and their two main directions as columns.

    The sign of a direction is chosen so that its largest coordinate is positive.
    """
    centroids = _unit(sums)
    weights = counts / counts.sum()
    mean = weights @ centroids
    spread = (centroids - mean) * np.sqrt(weights)[:, np.newaxis]
    directions = np.linalg.svd(spread, full_matrices=False)[2][:2]
    plane = np.zeros((2, centroids.shape[1]))
    plane[: len(directions)] = directions
    largest = np.argmax(np.abs(plane), axis=1)
    signs = np.where(plane[[0, 1], largest] < 0, -1.0, 1.0)
    return mean, (plane * signs[:, np.newaxis]).T


def _unit(rows: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    floats = rows.astype(np.float64)
    unit: npt.NDArray[np.float64] = floats / np.linalg.norm(floats, axis=1, keepdims=True)
    return unit
