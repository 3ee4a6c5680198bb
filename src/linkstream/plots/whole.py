"""A clusterer or a store as a whole: its stream, its sizes, its margins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Cluster
from linkstream.errors import NotTrackedError
from linkstream.identity.suggestions import MergeSuggestion, SplitSuggestion
from linkstream.plots import canvas
from linkstream.plots.canvas import FAINT, FRAGMENT, INK, PALETTE, Clustering, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LANES = 14
BINS = 240  # of the stream, from its first vector to its last
PAIRS = 2000  # of clusters, whose margins are drawn
COMPARED = 4000  # clusters; to compare more takes too long for a picture
_EDGES = 2**31

Labels = npt.NDArray[np.int64]


class Suggesting(Clustering, Protocol):
    """What can also say which edges and pairs are doubtful."""

    @property
    def n_clusters(self) -> int:
        """Clusters there are."""

    def suggest_splits(self, limit: int = 20) -> list[SplitSuggestion]:
        """Edges by margin."""

    def suggest_merges(self, limit: int = 20) -> list[MergeSuggestion]:
        """Pairs of clusters by margin."""


def stream(links: Clustering) -> Figure:
    """The biggest clusters over the stream, and how many clusters there are the further it goes.

    Each lane shows how many vectors of the cluster came when; where vectors are not tracked, only
    from the first to the last.
    """
    canvas.refuse_empty(links.state())
    clusters = canvas.by_size(links)
    lanes = sorted(clusters[:LANES], key=lambda cluster: cluster.first_seen)
    figure = new_figure(10.0, 2.6 + 0.36 * len(lanes))
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(0.36 * len(lanes) + 0.3, 1.5))
    try:
        labels: Labels | None = links.labels()
    except NotTrackedError:
        labels = None
    _draw_lanes(upper, lanes, labels, canvas.colours_by_size(clusters), links.n_vectors)
    more = f"the biggest {len(lanes)} of {len(clusters):,}" if len(lanes) < len(clusters) else "all"
    canvas.heading(upper, f"vectors of each cluster as they arrived ({more})")
    _draw_growth(lower, clusters, links.n_vectors)
    canvas.heading(lower, "clusters there are now, counted from their first vector")
    lower.set_xlabel("order of arrival", color=INK, fontsize=9)
    return figure


def _draw_lanes(
    axes: Axes, lanes: list[Cluster], labels: Labels | None, colours: canvas.Colours, n: int
) -> None:
    step = max(1, -(-n // BINS))  # vectors in each part of the stream
    counts = _binned(lanes, labels, step, n)
    edges = np.minimum(step * np.arange(counts.shape[1] + 1), n)
    highest = max(1.0, float(counts.max(initial=1)))
    for place, cluster in enumerate(lanes):
        colour = colours.get(cluster.id, FRAGMENT)
        span = (cluster.first_seen, cluster.last_seen + 1)
        axes.plot(span, (place, place), color=colour, linewidth=1.0, alpha=0.6, label="span")
        if labels is not None:
            heights = 0.42 * np.sqrt(counts[place] / highest)
            axes.stairs(
                place + heights,
                edges,
                baseline=place - heights,
                fill=True,
                color=colour,
                label="vectors",
            )
    axes.set_yticks(range(len(lanes)), [canvas.title(cluster) for cluster in lanes])
    canvas.as_they_are(axes)
    axes.set_ylim(len(lanes) - 0.4, -0.6)
    axes.set_xlim(0, n)
    canvas.open_frame(axes, "top", "right", "left", "bottom")
    axes.tick_params(length=0)


def _binned(
    lanes: list[Cluster], labels: Labels | None, step: int, n: int
) -> npt.NDArray[np.float64]:
    """Vectors of each lane in each part of the stream."""
    bins = max(1, -(-n // step))
    if labels is None:
        return np.zeros((len(lanes), bins))
    place = np.arange(len(labels)) // step
    return np.array(
        [np.bincount(place[labels == cluster.id], minlength=bins) for cluster in lanes],
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
    canvas.open_frame(axes, "top", "right")


def sizes(links: Clustering) -> Figure:
    """The biggest clusters by name, and how many clusters there are of each size."""
    canvas.refuse_empty(links.state())
    clusters = canvas.by_size(links)
    figure = new_figure(10.0, 4.6)
    left, right = figure.subplots(1, 2)
    shown = clusters[:LANES]
    colours = canvas.colours_by_size(clusters)
    bars = left.barh(
        range(len(shown)),
        [cluster.size for cluster in shown],
        color=[colours.get(cluster.id, FRAGMENT) for cluster in shown],
        height=0.7,
    )
    left.bar_label(bars, fmt="{:,.0f}", padding=4, fontsize=8.5, color=INK)
    left.set_yticks(range(len(shown)), [canvas.title(cluster) for cluster in shown])
    canvas.as_they_are(left)
    left.set_ylim(max(len(shown), 4) - 0.4, -0.6)
    left.margins(x=0.14)
    left.set_xticks([])
    canvas.open_frame(left, "top", "right", "bottom", "left")
    left.tick_params(length=0)
    more = f"{len(shown)} of {len(clusters):,}" if len(shown) < len(clusters) else "all"
    canvas.heading(left, f"vectors of the biggest clusters ({more})")
    _draw_sizes(right, np.array([cluster.size for cluster in clusters]))
    return figure


def _draw_sizes(axes: Axes, sizes: npt.NDArray[np.int64]) -> None:
    """Clusters of 1, 2–3, 4–7, … vectors."""
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
    canvas.open_frame(axes, "top", "right", "left")
    axes.tick_params(length=0)
    canvas.heading(axes, f"clusters by number of vectors ({len(sizes):,} in all)")


def margins(links: Suggesting) -> Figure:
    """By how much the edges hold, and by how much pairs of clusters miss being one."""
    canvas.refuse_empty(links.state())
    figure = new_figure(10.0, 4.0)
    left, right = figure.subplots(1, 2)
    edges = links.suggest_splits(limit=_EDGES)
    judged = [edge.margin for edge in edges if not edge.firm]
    settled = [edge.margin for edge in edges if edge.firm]
    _draw_margins(left, {"judged by equation 22": judged, "settled": settled}, "edges")
    _beside_zero(left, "doubtful", "sound")
    canvas.heading(left, "edges: what holds clusters together")
    if links.n_clusters <= COMPARED:
        pairs = [pair.margin for pair in links.suggest_merges(limit=PAIRS)]
        _draw_margins(right, {"pairs": pairs}, "pairs of clusters")
        _beside_zero(right, "two", "perhaps one")
    else:
        _say(right, f"more than {COMPARED:,} clusters: not compared")
    canvas.heading(right, f"pairs of clusters, the nearest {PAIRS:,} at most")
    return figure


def _draw_margins(axes: Axes, kinds: dict[str, list[float]], what: str) -> None:
    from matplotlib.ticker import MaxNLocator

    kinds = {name: values for name, values in kinds.items() if values}
    if not kinds:
        _say(axes, f"no {what}")
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
    axes.set_xlabel("margin: similarity − what s~ asks", color=INK, fontsize=9)
    axes.set_ylabel(what, color=INK, fontsize=9)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.margins(y=0.14)
    canvas.open_frame(axes, "top", "right")
    if len(kinds) > 1:
        axes.legend(frameon=False, fontsize=8.5, labelcolor=INK, loc="center right")


def _beside_zero(axes: Axes, left: str, right: str) -> None:
    """What the two sides of the line mean."""
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


def _say(axes: Axes, words: str) -> None:
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color=INK)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color(FAINT)
