"""One picture of a diagnosis: similarities, the cliff, the growth, the spectrum, the lengths."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from linkstream.errors import MissingExtraError
from linkstream.plots import FAINT, INK, PALETTE
from linkstream.tuning.diagnosis import Diagnosis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, PINK = PALETTE[:4]
SEVERITY = {"ok": GREEN, "note": ORANGE, "warning": PALETTE[5]}
GREY = "#888888"

_TITLE_WIDTH = 44


def portrait(diagnosis: Diagnosis) -> Figure:
    """The figures of a diagnosis in six panels; write it with `figure.savefig(path)`."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise MissingExtraError("matplotlib", extra="plots", purpose="Drawing") from missing
    figure = Figure(figsize=(13.0, 7.4), dpi=130, layout="constrained")
    panels = figure.subplots(2, 3)
    draw = (_similarities, _cliff, _words, _growth, _spectrum, _lengths)
    for axes, panel in zip(panels.flat, draw, strict=True):
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=INK, labelsize=8.5)
        panel(axes, diagnosis)
    figure.suptitle(
        diagnosis.headline(), x=0.012, ha="left", fontsize=14, fontweight="bold", color=INK
    )
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)  # type: ignore[union-attr, call-arg]
    return figure


def _title(axes: Axes, title: str, x: str, y: str = "") -> None:
    axes.set_title(title, loc="left", fontsize=10.5, color=INK)
    axes.set_xlabel(x, fontsize=9, color=INK)
    axes.set_ylabel(y, fontsize=9, color=INK)


def _similarities(axes: Axes, diagnosis: Diagnosis) -> None:
    """Neighbours and random pairs, each as a share, with the thresholds between them."""
    found = diagnosis.similarities
    edges = np.array(found.edges)
    for counts, colour, name in (
        (found.pairs, GREY, "two at random"),
        (found.neighbours, BLUE, "nearest neighbours"),
    ):
        shares = np.array(counts) / max(sum(counts), 1)
        axes.stairs(shares, edges, fill=True, color=colour, alpha=0.45, label=name)
        axes.stairs(shares, edges, color=colour, linewidth=1.0)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_ylim(0.0, 1.42 * axes.dataLim.y1)
    marks = _thresholds_of(diagnosis)
    for height, (name, value) in zip((0.97, 0.89, 0.81, 0.73), marks.items(), strict=False):
        _mark(axes, name, value, height)
    _title(axes, "How alike are the vectors?", "similarity")
    axes.legend(loc="upper left", frameon=False, fontsize=8.5, labelcolor=INK)


def _thresholds_of(diagnosis: Diagnosis) -> dict[str, float]:
    given = diagnosis.thresholds
    if given is None:
        return {}
    return {
        "$T_c^2$": given.cluster_similarity**2,
        "$T_s$": given.subcluster_similarity,
        "$T_p$": given.pair_similarity_max,
    }


def _mark(
    axes: Axes, name: str, value: float, height: float, *, colour: str = INK, left: bool = False
) -> None:
    """An upright line with its name at a height of its own, so that names do not collide."""
    axes.axvline(value, ymax=height, color=colour, linewidth=1.0, linestyle=(0, (4, 2)))
    low, high = axes.get_xlim()
    left = left or value > low + 0.8 * (high - low)
    axes.annotate(
        f"{name} = {value:.3g}",
        (value, height),
        xycoords=("data", "axes fraction"),
        xytext=(-4 if left else 4, -1),
        textcoords="offset points",
        ha="right" if left else "left",
        va="top",
        fontsize=8.5,
        color=colour,
        bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0.0, "pad": 1.0},
    )


def _cliff(axes: Axes, diagnosis: Diagnosis) -> None:
    """Subclusters over vectors against T_s: the steep part is the cliff."""
    cliff, given = diagnosis.cliff, diagnosis.thresholds
    tried = [run.subcluster_similarity for run in cliff.curve]
    shares = [100.0 * run.subclusters for run in cliff.curve]
    begun = [100.0 * run.clusters for run in cliff.curve]
    axes.fill_between(tried, begun, shares, color=BLUE, alpha=0.13, linewidth=0.0)
    axes.plot(tried, shares, color=BLUE, linewidth=2.0, marker="o", markersize=3.5)
    axes.plot(tried, begun, color=GREY, linewidth=1.2)
    axes.annotate(
        "clusters",
        (tried[-1], begun[-1]),
        (0, 4),
        textcoords="offset points",
        ha="right",
        fontsize=8.5,
        color=GREY,
    )
    axes.set_ylim(0.0, 104.0)
    values = [] if given is None else [given.subcluster_similarity, given.cluster_similarity**2]
    axes.set_xlim(min([*tried, *values]) - 0.02, max([*tried, *values]) + 0.02)
    if given is not None and cliff.at is not None:
        _mark(axes, "$T_s$", given.subcluster_similarity, 0.97, left=True)
        _mark(axes, "$T_c^2$", given.cluster_similarity**2, 0.87, left=True)
        here = 100.0 * cliff.at.subclusters
        axes.plot([given.subcluster_similarity], [here], "o", color=INK, markersize=8)
    if diagnosis.groups.pair is not None:
        _mark(axes, "two of one group", diagnosis.groups.pair, 0.77, colour=GREEN, left=True)
    title = f"Where does $T_s$ break? ({cliff.vectors:,} vectors, clustered)"
    _title(axes, title, "$T_s$", "subclusters, % of vectors")


def _words(axes: Axes, diagnosis: Diagnosis) -> None:
    """The findings' titles, worst first."""
    axes.set_axis_off()
    axes.set_title("What was found", loc="left", fontsize=10.5, color=INK)
    height = 0.96
    for found in diagnosis.findings:
        lines = textwrap.wrap(found.title, _TITLE_WIDTH)
        axes.text(
            0.0,
            height,
            found.severity,
            color=SEVERITY[found.severity],
            fontsize=9,
            fontweight="bold",
            va="top",
        )
        bold = "bold" if found.severity == "warning" else "normal"
        words = "\n".join(lines)
        axes.text(0.19, height, words, color=INK, fontsize=9, va="top", fontweight=bold)
        height -= 0.072 * len(lines)


def _growth(axes: Axes, diagnosis: Diagnosis) -> None:
    """Subclusters against vectors as they came, and the fan of what may follow."""
    growth = diagnosis.growth
    title = "What will the stream cost?"
    if growth is None:
        axes.set_axis_off()
        axes.set_title(title, loc="left", fontsize=10.5, color=INK)
        words = "Give thresholds to see how\nsubclusters grow with the stream."
        axes.text(0.0, 0.9, words, color=GREY, fontsize=9.5, va="top", transform=axes.transAxes)
        return
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.plot(growth.vectors, growth.subclusters, color=BLUE, linewidth=2.0, label="measured")
    start = (growth.vectors[-1], growth.subclusters[-1])
    ahead = [start[0]] + [each.vectors for each in growth.forecasts]
    low, middle, high = (
        [start[1]] + [getattr(each, name) for each in growth.forecasts]
        for name in ("low", "subclusters", "high")
    )
    axes.fill_between(ahead, low, high, color=BLUE, alpha=0.18, linewidth=0.0)
    axes.plot(ahead, middle, color=BLUE, linewidth=1.5, linestyle=(0, (4, 2)), label="forecast")
    every = np.array([growth.vectors[0], ahead[-1]])
    axes.plot(every, every, color=GREY, linewidth=0.9, label="each vector its own")
    axes.legend(loc="upper left", frameon=False, fontsize=8.5, labelcolor=INK)
    _title(axes, title, "vectors", "subclusters")


def _spectrum(axes: Axes, diagnosis: Diagnosis) -> None:
    """Variance along the main directions."""
    spectrum = diagnosis.spectrum
    shares = 100.0 * np.array(spectrum.shares)
    _bars(axes, np.arange(1, len(shares) + 1), shares, PINK)
    words = f"effective dimension {spectrum.effective_dimension:.0f} of {diagnosis.dimension}"
    axes.text(
        0.97, 0.93, words, transform=axes.transAxes, ha="right", va="top", fontsize=9, color=INK
    )
    _title(axes, "How many directions are in use?", "main direction", "% of the variance")


def _bars(
    axes: Axes, places: npt.NDArray[np.int64], heights: npt.NDArray[np.float64], colour: str
) -> None:
    axes.bar(places, heights, width=0.85, color=colour, linewidth=0.0)
    axes.grid(axis="y", color=FAINT, linewidth=0.7)
    axes.set_axisbelow(True)


def _lengths(axes: Axes, diagnosis: Diagnosis) -> None:
    """Lengths before normalising."""
    lengths = diagnosis.lengths
    title = "How long were they before normalising?"
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    if lengths.most - lengths.least < 0.01 * lengths.median:
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)
        words = f"all alike: {lengths.median:.3g}"
        axes.text(0.0, 0.9, words, color=GREY, fontsize=9.5, va="top", transform=axes.transAxes)
        _title(axes, title, "")
        return
    axes.stairs(lengths.counts, lengths.edges, fill=True, color=GREEN, alpha=0.7)
    axes.set_ylim(0.0, 1.2 * axes.dataLim.y1)
    _mark(axes, "median", lengths.median, 0.97)
    _title(axes, title, "length")
