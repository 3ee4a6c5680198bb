"""The landscape of a search: every trial over its thresholds, coloured by its score."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from linkstream.plots import FAINT, INK, new_figure
from linkstream.tuning import studies

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from linkstream.tuning.tuned import Tuned

CHOSEN = "#D55E00"
_QUIET = "#777777"
_DEPTH = 0.25  # scores further below the best have the darkest colour
_MARKERS = {"given": "o", "centred": "^"}


def landscape(tuned: Tuned) -> Figure:
    """T_s and T_p over T_c, one point a trial; the chosen one is ringed.

    Small points are trials that were given up after the first order of arrival.
    """
    thresholds, scores, whole, spaces = _trials(tuned)
    figure = new_figure(11.0, 4.9)
    left, right = figure.subplots(1, 2, sharex=True)
    for axes, column in ((left, 1), (right, 2)):
        shown = _draw_trials(axes, thresholds[:, [0, column]], scores, whole, spaces)
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
    figure.suptitle(
        f"{len(scores)} trials; the chosen one scores {tuned.score:.3f}",
        x=0.012,
        ha="left",
        fontsize=13,
        fontweight="bold",
        color=INK,
    )
    return figure


def _trials(
    tuned: Tuned,
) -> tuple[
    npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[Any]
]:
    """Thresholds, score, whether judged in every order, and space of each trial, worst first."""
    trials = studies.finished(tuned.study)
    thresholds = np.array([trial.user_attrs["thresholds"] for trial in trials])
    scores = np.array([statistics.fmean(studies.scores(trial)) for trial in trials])
    whole = np.array([len(studies.scores(trial)) == len(tuned.scores) for trial in trials])
    spaces = np.array([studies.space_of(trial) for trial in trials])
    order = np.argsort(scores, kind="stable")
    return thresholds[order], scores[order], whole[order], spaces[order]


def _draw_trials(
    axes: Axes,
    points: npt.NDArray[np.float64],
    scores: npt.NDArray[np.float64],
    whole: npt.NDArray[np.bool_],
    spaces: npt.NDArray[Any],
) -> Any:
    best = float(scores.max())
    worst = max(float(scores.min()), best - _DEPTH)
    worst = min(worst, best - 0.01)  # a flat landscape still has a scale
    for name in np.unique(spaces).tolist():
        mine = spaces == name
        shown = axes.scatter(
            points[mine, 0],
            points[mine, 1],
            c=scores[mine],
            s=np.where(whole[mine], 34.0, 12.0),
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
    """T_c², the similarity of two members of one cluster, as far as there are trials."""
    x = np.linspace(t_c.min(), t_c.max(), 100)
    axes.plot(x, x * x, color=FAINT, linewidth=1.6, zorder=0)
    axes.annotate(
        "T_c²",
        (float(x[-1]), float(x[-1] ** 2)),
        xytext=(3, 3),
        textcoords="offset points",
        color=_QUIET,
        fontsize=8.5,
    )


def _mark_chosen(axes: Axes, tuned: Tuned, column: int) -> None:
    chosen = tuned.thresholds
    x = chosen.cluster_similarity
    y = (chosen.subcluster_similarity, chosen.pair_similarity_max)[column - 1]
    axes.scatter([x], [y], s=190.0, facecolors="none", edgecolors=CHOSEN, linewidths=2.2, zorder=4)
    text = f"chosen: {x:.4f}, {y:.4f}"
    axes.set_title(text, loc="right", color=CHOSEN, fontsize=9.5, fontweight="bold")


def _explain_markers(figure: Figure, spaces: npt.NDArray[Any]) -> None:
    from matplotlib.lines import Line2D

    def sample(marker: str, size: float) -> Line2D:
        return Line2D([], [], linestyle="", marker=marker, markersize=size, color=_QUIET)

    entries = {"a trial": sample("o", 6.0)}
    if len(np.unique(spaces)) > 1:
        entries = {"as given": sample("o", 6.0), "centred": sample("^", 6.0)}
    entries["given up after the first order"] = sample("o", 3.4)
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
