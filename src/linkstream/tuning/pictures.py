"""Pictures of `tune` and `diagnose`."""

from __future__ import annotations

import statistics
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from linkstream.plots.style import FAINT, INK, PALETTE, figure_title, new_figure
from linkstream.tuning import studies
from linkstream.tuning.diagnosis import Diagnosis
from linkstream.tuning.result import TuneResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, PINK, _, RED = PALETTE[:6]
SEVERITY = {"ok": GREEN, "note": ORANGE, "warning": RED}
GREY = "#777777"

_SCORE_RANGE = 0.25  # scores further below the best have the darkest colour
_MARKERS = {"given": "o", "centred": "^"}
_TITLE_WIDTH = 44


def trials_figure(tuned: TuneResult) -> Figure:
    """Draw T_s and T_p over T_c, one point per trial; a ring marks the chosen trial.

    Small points are trials that were pruned after the first order of arrival.
    """
    thresholds, scores, complete, spaces = _trials(tuned)
    figure = new_figure(11.0, 4.9)
    left, right = figure.subplots(1, 2, sharex=True)
    for axes, column in ((left, 1), (right, 2)):
        shown = _draw_trials(axes, thresholds[:, [0, column]], scores, complete, spaces)
        _draw_square(axes, thresholds[:, 0])
        _mark_chosen(axes, tuned, column)
        axes.set_xlabel("T_c, cluster similarity")
        axes.spines[["top", "right"]].set_visible(False)
    left.set_ylabel("T_s, subcluster similarity")
    right.set_ylabel("T_p, pair similarity max")
    _explain_markers(figure, spaces)
    bar = figure.colorbar(shown, ax=[left, right], pad=0.015, aspect=30, extend="min")
    bar.set_label(tuned.objective.name, color=INK)
    bar.outline.set_visible(False)
    title = f"{len(scores)} trials; score of the chosen one: {tuned.score:.3f}"
    figure_title(figure, title, fontsize=13)
    return figure


def _trials(
    tuned: TuneResult,
) -> tuple[
    npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[Any]
]:
    """Return thresholds, score, completeness and space of each trial, the worst first."""
    trials = studies.finished(tuned.study)
    thresholds = np.array([trial.user_attrs["thresholds"] for trial in trials])
    scores = np.array([statistics.fmean(studies.scores(trial)) for trial in trials])
    complete = np.array([len(studies.scores(trial)) == len(tuned.scores) for trial in trials])
    spaces = np.array([studies.space_of(trial) for trial in trials])
    order = np.argsort(scores, kind="stable")
    return thresholds[order], scores[order], complete[order], spaces[order]


def _draw_trials(
    axes: Axes,
    points: npt.NDArray[np.float64],
    scores: npt.NDArray[np.float64],
    complete: npt.NDArray[np.bool_],
    spaces: npt.NDArray[Any],
) -> Any:
    best = float(scores.max())
    worst = max(float(scores.min()), best - _SCORE_RANGE)
    worst = min(worst, best - 0.01)  # keep a scale if all scores are equal
    for name in np.unique(spaces).tolist():
        mine = spaces == name
        shown = axes.scatter(
            points[mine, 0],
            points[mine, 1],
            c=scores[mine],
            s=np.where(complete[mine], 34.0, 12.0),
            cmap="viridis",
            vmin=worst,
            vmax=best,
            marker=_MARKERS.get(name, "o"),
            edgecolors="white",
            linewidths=0.4,
            zorder=2,
        )
    return shown


def _draw_square(axes: Axes, t_c: npt.NDArray[np.float64]) -> None:
    """Draw T_c², the similarity of two vectors of one cluster, over the range of the trials."""
    x = np.linspace(t_c.min(), t_c.max(), 100)
    axes.plot(x, x * x, color=FAINT, linewidth=1.6, zorder=0)
    axes.annotate(
        "T_c²",
        (float(x[-1]), float(x[-1] ** 2)),
        xytext=(3, 3),
        textcoords="offset points",
        color=GREY,
        fontsize=8.5,
    )


def _mark_chosen(axes: Axes, tuned: TuneResult, column: int) -> None:
    chosen = tuned.thresholds
    x = chosen.cluster_similarity
    y = (chosen.subcluster_similarity, chosen.pair_similarity_max)[column - 1]
    axes.scatter([x], [y], s=190.0, facecolors="none", edgecolors=RED, linewidths=2.2, zorder=4)
    text = f"chosen: {x:.4f}, {y:.4f}"
    axes.set_title(text, loc="right", color=RED, fontsize=9.5, fontweight="bold")


def _explain_markers(figure: Figure, spaces: npt.NDArray[Any]) -> None:
    from matplotlib.lines import Line2D

    def sample(marker: str, size: float) -> Line2D:
        return Line2D([], [], linestyle="", marker=marker, markersize=size, color=GREY)

    entries = {"a trial": sample("o", 6.0)}
    if len(np.unique(spaces)) > 1:
        entries = {"as given": sample("o", 6.0), "centred": sample("^", 6.0)}
    entries["pruned after the first order"] = sample("o", 3.4)
    figure.legend(
        list(entries.values()),
        list(entries),
        loc="upper right",
        ncols=len(entries),
        handletextpad=0.2,
        columnspacing=1.2,
        frameon=False,
        fontsize=9,
        labelcolor=INK,
    )


def diagnosis_figure(diagnosis: Diagnosis) -> Figure:
    """Draw the measurements of a diagnosis in six panels."""
    figure = new_figure(13.0, 7.4)
    panels = figure.subplots(2, 3)
    draw = (_similarities, _cliff, _findings, _growth, _spectrum, _lengths)
    for axes, panel in zip(panels.flat, draw, strict=True):
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=INK, labelsize=8.5)
        panel(axes, diagnosis)
    figure_title(figure, diagnosis.headline())
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)  # type: ignore[union-attr, call-arg]
    return figure


def _title(axes: Axes, title: str, x: str, y: str = "") -> None:
    axes.set_title(title, loc="left", fontsize=10.5, color=INK)
    axes.set_xlabel(x, fontsize=9, color=INK)
    axes.set_ylabel(y, fontsize=9, color=INK)


def _similarities(axes: Axes, diagnosis: Diagnosis) -> None:
    """Draw the similarities of neighbours and of random pairs, with the thresholds."""
    found = diagnosis.similarities
    edges = np.array(found.edges)
    for counts, colour, name in (
        (found.pairs, GREY, "random pairs"),
        (found.neighbours, BLUE, "nearest neighbours"),
    ):
        shares = np.array(counts) / max(sum(counts), 1)
        axes.stairs(shares, edges, fill=True, color=colour, alpha=0.45, label=name)
        axes.stairs(shares, edges, color=colour, linewidth=1.0)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_ylim(0.0, 1.65 * axes.dataLim.y1)
    given = diagnosis.thresholds
    if given is not None:
        _mark(axes, "$T_c^2$", given.cluster_similarity**2, 0.82)
        _mark(axes, "$T_s$", given.subcluster_similarity, 0.74)
        _mark(axes, "$T_p$", given.pair_similarity_max, 0.66)
    _title(axes, "Similarities of the vectors", "similarity")
    axes.legend(loc="upper left", frameon=False, fontsize=8.5, labelcolor=INK)


def _mark(
    axes: Axes, name: str, value: float, height: float, *, colour: str = INK, left: bool = False
) -> None:
    """Draw a vertical line with a label at this height, so that labels do not overlap."""
    axes.axvline(value, ymax=height, color=colour, linewidth=1.0, linestyle=(0, (4, 2)))
    low, high = axes.get_xlim()
    position = (value - low) / (high - low)
    left = position > (0.25 if left else 0.8)
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
    """Draw subclusters per vector over T_s; T_s is too high where the curve is steep."""
    cliff, given = diagnosis.cliff, diagnosis.thresholds
    tried = [run.subcluster_similarity for run in cliff.curve]
    shares = [100.0 * run.subclusters for run in cliff.curve]
    clusters = [100.0 * run.clusters for run in cliff.curve]
    axes.fill_between(tried, clusters, shares, color=BLUE, alpha=0.13, linewidth=0.0)
    axes.plot(tried, shares, color=BLUE, linewidth=2.0, marker="o", markersize=3.5)
    axes.plot(tried, clusters, color=GREY, linewidth=1.2)
    axes.annotate(
        "clusters",
        (tried[-1], clusters[-1]),
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
        _mark(axes, "pairs of one group", diagnosis.groups.pair, 0.77, colour=GREEN, left=True)
    title = f"Subclusters by $T_s$ (the first {cliff.vectors:,} vectors)"
    _title(axes, title, "$T_s$", "subclusters, % of vectors")


def _findings(axes: Axes, diagnosis: Diagnosis) -> None:
    """Write the titles of the findings, warnings first."""
    axes.set_axis_off()
    axes.set_title("Findings", loc="left", fontsize=10.5, color=INK)
    height = 0.96
    for found in diagnosis.findings:
        lines = textwrap.wrap(found.title, _TITLE_WIDTH)
        style: dict[str, Any] = {"fontsize": 9, "va": "top"}
        colour, severity = SEVERITY[found.severity], found.severity
        axes.text(0.0, height, severity, color=colour, fontweight="bold", **style)
        weight = "bold" if severity == "warning" else "normal"
        axes.text(0.19, height, "\n".join(lines), color=INK, fontweight=weight, **style)
        height -= 0.072 * len(lines)


def _growth(axes: Axes, diagnosis: Diagnosis) -> None:
    """Draw subclusters over vectors, measured and forecast."""
    growth = diagnosis.growth
    title = "Growth of subclusters"
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
    axes.plot(every, every, color=GREY, linewidth=0.9, label="one per vector")
    axes.legend(loc="upper left", frameon=False, fontsize=8.5, labelcolor=INK)
    _title(axes, title, "vectors", "subclusters")


def _spectrum(axes: Axes, diagnosis: Diagnosis) -> None:
    """Draw the variance along the main directions."""
    spectrum = diagnosis.spectrum
    shares = 100.0 * np.array(spectrum.shares)
    axes.bar(np.arange(1, len(shares) + 1), shares, width=0.85, color=PINK, linewidth=0.0)
    axes.grid(axis="y", color=FAINT, linewidth=0.7)
    axes.set_axisbelow(True)
    words = f"effective dimension {spectrum.effective_dimension:.0f} of {diagnosis.dimension}"
    axes.text(
        0.97, 0.93, words, transform=axes.transAxes, ha="right", va="top", fontsize=9, color=INK
    )
    _title(axes, "Variance by direction", "main direction", "% of the variance")


def _lengths(axes: Axes, diagnosis: Diagnosis) -> None:
    """Draw the lengths before normalising."""
    lengths = diagnosis.lengths
    title = "Lengths before normalising"
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    if lengths.most - lengths.least < 0.01 * lengths.median:
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)
        words = f"all about {lengths.median:.3g}"
        axes.text(0.0, 0.9, words, color=GREY, fontsize=9.5, va="top", transform=axes.transAxes)
        _title(axes, title, "")
        return
    axes.stairs(lengths.counts, lengths.edges, fill=True, color=GREEN, alpha=0.7)
    axes.set_ylim(0.0, 1.2 * axes.dataLim.y1)
    _mark(axes, "median", lengths.median, 0.97)
    _title(axes, title, "length")
