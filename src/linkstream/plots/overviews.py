"""Overviews of a clusterer or store: arrivals over time, sizes of clusters, margins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Cluster
from linkstream.errors import NotTrackedError
from linkstream.plots import style
from linkstream.plots.style import FAINT, FRAGMENT, INK, PALETTE, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from linkstream.plots.style import Clustering

SHOWN = 14
BINS = 240  # of the stream, from its first vector to its last
PAIRS_MAX = 2000  # pairs of clusters whose margins are drawn
COMPARED_MAX = 4000  # clusters; comparing more takes too long for a picture
_ALL_EDGES = 2**31

Labels = npt.NDArray[np.int64]


def stream(links: Clustering) -> Figure:
    """Draw the arrivals of the biggest clusters, and the growth of the number of clusters.

    Each row shows the number of vectors of a cluster over the stream. If vectors are not tracked,
    it only shows a line from the first vector to the last.

    Args:
        links: a clusterer or a store with at least one vector.
    """
    style.refuse_empty(links.state())
    clusters = style.by_size(links)
    shown = sorted(clusters[:SHOWN], key=lambda cluster: cluster.first_seen)
    figure = new_figure(10.0, 2.6 + 0.36 * len(shown))
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(0.36 * len(shown) + 0.3, 1.5))
    try:
        labels: Labels | None = links.labels()
    except NotTrackedError:
        labels = None
    _draw_arrivals(upper, shown, labels, style.colours_by_size(clusters), links.n_vectors)
    more = f"the biggest {len(shown)} of {len(clusters):,}" if len(shown) < len(clusters) else "all"
    style.heading(upper, f"vectors of each cluster over the stream ({more})")
    _draw_growth(lower, clusters, links.n_vectors)
    style.heading(lower, "number of today's clusters, each from its first vector on")
    lower.set_xlabel("order of arrival", color=INK, fontsize=9)
    return figure


def _draw_arrivals(
    axes: Axes, shown: list[Cluster], labels: Labels | None, colours: style.Colours, n: int
) -> None:
    step = max(1, -(-n // BINS))  # vectors in each part of the stream
    counts = _binned(shown, labels, step, n)
    edges = np.minimum(step * np.arange(counts.shape[1] + 1), n)
    highest = max(1.0, float(counts.max(initial=1)))
    for row, cluster in enumerate(shown):
        colour = colours.get(cluster.id, FRAGMENT)
        span = (cluster.first_seen, cluster.last_seen + 1)
        axes.plot(span, (row, row), color=colour, linewidth=1.0, alpha=0.6, label="span")
        if labels is not None:
            heights = 0.42 * np.sqrt(counts[row] / highest)
            axes.stairs(
                row + heights,
                edges,
                baseline=row - heights,
                fill=True,
                color=colour,
                label="vectors",
            )
    axes.set_yticks(range(len(shown)), [style.title(cluster) for cluster in shown])
    style.plain_labels(axes)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlim(0, n)
    style.open_frame(axes, "top", "right", "left", "bottom")
    axes.tick_params(length=0)


def _binned(
    shown: list[Cluster], labels: Labels | None, step: int, n: int
) -> npt.NDArray[np.float64]:
    """Return the number of vectors of each cluster in each part of the stream."""
    bins = max(1, -(-n // step))
    if labels is None:
        return np.zeros((len(shown), bins))
    row = np.arange(len(labels)) // step
    return np.array(
        [np.bincount(row[labels == cluster.id], minlength=bins) for cluster in shown],
        dtype=np.float64,
    )


def _draw_growth(axes: Axes, clusters: list[Cluster], n: int) -> None:
    first = np.sort([cluster.first_seen for cluster in clusters])
    steps = np.arange(1, len(first) + 1)
    axes.step([0, *first, n], [0, *steps, len(first)], where="post", color=PALETTE[0])
    axes.fill_between(
        [0, *first, n], [0, *steps, len(first)], step="post", color=PALETTE[0], alpha=0.12
    )
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    style.open_frame(axes, "top", "right")


def sizes(links: Clustering) -> Figure:
    """Draw the sizes of the biggest clusters, and the number of clusters by size.

    Args:
        links: a clusterer or a store with at least one vector.
    """
    style.refuse_empty(links.state())
    clusters = style.by_size(links)
    figure = new_figure(10.0, 4.6)
    left, right = figure.subplots(1, 2)
    shown = clusters[:SHOWN]
    colours = style.colours_by_size(clusters)
    bars = left.barh(
        range(len(shown)),
        [cluster.size for cluster in shown],
        color=[colours.get(cluster.id, FRAGMENT) for cluster in shown],
        height=0.7,
    )
    left.bar_label(bars, fmt="{:,.0f}", padding=4, fontsize=8.5, color=INK)
    left.set_yticks(range(len(shown)), [style.title(cluster) for cluster in shown])
    style.plain_labels(left)
    left.set_ylim(max(len(shown), 4) - 0.4, -0.6)
    left.margins(x=0.14)
    left.set_xticks([])
    style.open_frame(left, "top", "right", "bottom", "left")
    left.tick_params(length=0)
    more = f"{len(shown)} of {len(clusters):,}" if len(shown) < len(clusters) else "all"
    style.heading(left, f"vectors of the biggest clusters ({more})")
    _draw_sizes(right, np.array([cluster.size for cluster in clusters]))
    return figure


def _draw_sizes(axes: Axes, sizes: npt.NDArray[np.int64]) -> None:
    """Draw the number of clusters of 1, 2–3, 4–7, … vectors."""
    octaves = np.floor(np.log2(sizes)).astype(np.int64)
    counts = np.bincount(octaves)
    names = [
        f"{2**k:,}" if k == 0 else f"{2**k:,}–{2 ** (k + 1) - 1:,}" for k in range(len(counts))
    ]
    bars = axes.bar(range(len(counts)), counts, color=PALETTE[0], width=0.75)
    axes.bar_label(
        bars, [f"{n:,}" if n else "" for n in counts.tolist()], padding=2, fontsize=8.5, color=INK
    )
    axes.set_xticks(range(len(counts)), names, rotation=35, ha="right", fontsize=8.5)
    axes.margins(y=0.1)
    axes.set_yticks([])
    style.open_frame(axes, "top", "right", "left")
    axes.tick_params(length=0)
    style.heading(axes, f"clusters by number of vectors ({len(sizes):,} in all)")


def margins(links: Clustering) -> Figure:
    """Draw the margins of the edges within clusters, and of pairs of clusters.

    Args:
        links: a clusterer or a store with at least one vector.
    """
    style.refuse_empty(links.state())
    figure = new_figure(10.0, 4.0)
    left, right = figure.subplots(1, 2)
    edges = links.suggest_splits(limit=_ALL_EDGES)
    judged = [edge.margin for edge in edges if not edge.firm]
    settled = [edge.margin for edge in edges if edge.firm]
    _draw_margins(left, {"judged by equation 22": judged, "settled": settled}, "edges")
    _label_sides(left, "doubtful", "sound")
    style.heading(left, "edges within clusters")
    if links.n_clusters <= COMPARED_MAX:
        pairs = [pair.margin for pair in links.suggest_merges(limit=PAIRS_MAX)]
        _draw_margins(right, {"pairs": pairs}, "pairs of clusters")
        _label_sides(right, "two", "perhaps one")
    else:
        _write_message(right, f"more than {COMPARED_MAX:,} clusters: not compared")
    style.heading(right, f"pairs of clusters, the nearest {PAIRS_MAX:,} at most")
    return figure


def _draw_margins(axes: Axes, kinds: dict[str, list[float]], what: str) -> None:
    from matplotlib.ticker import MaxNLocator

    kinds = {name: values for name, values in kinds.items() if values}
    if not kinds:
        _write_message(axes, f"no {what}")
        return
    every = np.concatenate([np.asarray(values) for values in kinds.values()])
    low, high = min(0.0, float(every.min())), max(0.0, float(every.max()))
    room = 0.04 * (high - low) or 0.01
    bins = np.linspace(low - room, high + room, 46)
    axes.hist(
        list(kinds.values()),
        bins=bins.tolist(),
        stacked=True,
        color=[PALETTE[0], PALETTE[1]][: len(kinds)],
        label=list(kinds),
    )
    axes.axvline(0.0, color=INK, linewidth=1.0)
    axes.set_xlabel("margin: similarity − threshold s~", color=INK, fontsize=9)
    axes.set_ylabel(what, color=INK, fontsize=9)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.margins(y=0.14)
    style.open_frame(axes, "top", "right")
    if len(kinds) > 1:
        axes.legend(frameon=False, fontsize=8.5, labelcolor=INK, loc="center right")


def _label_sides(axes: Axes, left: str, right: str) -> None:
    """Write the meaning of the two sides of the line at 0."""
    if not axes.lines:
        return
    for words, offset, side in ((f"← {left}", -5, "right"), (f"{right} →", 5, "left")):
        axes.annotate(
            words,
            (0.0, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(offset, -9),
            textcoords="offset points",
            ha=side,
            fontsize=8.5,
            color="#666666",
        )


def _write_message(axes: Axes, words: str) -> None:
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color=INK)
    style.hide_ticks(axes)
