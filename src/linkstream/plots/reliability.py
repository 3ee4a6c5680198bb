"""The reliability diagram: how often decisions were right that were told a probability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from linkstream.confidence import Curve, Model
from linkstream.confidence.curve import sigmoid
from linkstream.errors import ArgumentError
from linkstream.plots.style import FAINT, INK, PALETTE, heading, new_figure, open_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BINS = 10


class Bin(NamedTuple):
    """Judged decisions that were told about the same probability.

    Attributes:
        told: the mean of the probabilities.
        right: the share that was right.
        error: the standard error of that share.
        answers: how many decisions.
    """

    told: float
    right: float
    error: float
    answers: int


def reliability(probability: npt.ArrayLike, right: npt.ArrayLike) -> Figure:
    """Draw the share of decisions that were right over the probability that was told.

    A bar is one standard error. Points on the diagonal are well calibrated. NaN is left out.

    Args:
        probability: what was told of each decision, such as `decide_many(X).probability`.
        right: whether each decision was right.
    """
    told, hit = np.asarray(probability, dtype=np.float64), np.asarray(right, dtype=bool)
    known = np.isfinite(told)
    if told.shape != hit.shape or not known.any():
        raise ArgumentError(
            f"{known.sum()} probabilities and {hit.size} answers",
            expected="an answer for each decision, some with a probability",
            remedy="Pass decide_many(X).probability, and whether each decision was right.",
        )
    figure = new_figure(4.2, 4.2)
    _diagram(figure.add_subplot(), told[known], hit[known])
    return figure


def confidence(model: Model | None, answered: Sequence[tuple[float, bool]]) -> Figure:
    """Draw the reliability diagram of judged decisions, and the curves of a model beside it.

    A curve is drawn over the margins that it was fitted to, and is dotted if it is unknown.

    Args:
        model: the model; None draws no curves.
        answered: the probability that was told of each decision, and whether it was right.
    """
    figure = new_figure(8.4, 4.2)
    told = np.array([each[0] for each in answered])
    right = np.array([each[1] for each in answered], dtype=bool)
    _diagram(figure.add_subplot(1, 2, 1), told, right)
    axes = figure.add_subplot(1, 2, 2)
    for place, (name, curve, sign) in enumerate(() if model is None else _curves(model)):
        x = np.linspace(curve.low, curve.high, 200)
        usual = np.expm1(curve.usual)  # vectors: of two clusters, those of the smaller one
        p = np.minimum(sigmoid(curve.log_odds(x, usual)), curve.ceiling)
        label = f"{name}: {curve.right:,} yes, {curve.wrong:,} no"
        style = "-" if curve.is_known else ":"
        axes.plot(sign * x, p, color=PALETTE[place], linestyle=style, label=label)
    axes.set_ylim(-0.02, 1.3)
    axes.set_yticks(np.linspace(0, 1, 6))
    axes.set_xlabel("margin", color=INK)
    axes.set_ylabel("probability", color=INK)
    heading(axes, "no model" if model is None else "by margin")
    open_frame(axes, "top", "right")
    if axes.lines:
        axes.legend(frameon=False, fontsize=8, loc="upper left")
    return figure


def _curves(model: Model) -> list[tuple[str, Curve, int]]:
    held, new = model.curves
    same = model.pair_curve or model.same
    named = [("given a cluster", held, 1), ("new", new, -1), ("two are one", same, 1)]
    return [each for each in named if each[1].right + each[1].wrong]


def _diagram(axes: Axes, told: npt.NDArray[np.float64], right: npt.NDArray[np.bool_]) -> None:
    axes.plot([0, 1], [0, 1], color=FAINT, zorder=0)
    if len(told):
        rows = bins(told, right)
        means, shares, errors, _ = (np.array(column) for column in zip(*rows, strict=True))
        axes.errorbar(means, shares, errors, fmt="o", color=PALETTE[0], capsize=2, markersize=5)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel("probability that was told", color=INK)
    axes.set_ylabel("share that was right", color=INK)
    heading(axes, f"{len(told):,} decisions")
    open_frame(axes, "top", "right")


def bins(told: npt.NDArray[np.float64], right: npt.NDArray[np.bool_]) -> list[Bin]:
    """Return the bins of judged decisions that are not empty, the least probability first."""
    place = np.minimum((told * BINS).astype(np.int64), BINS - 1)
    found = []
    for each in np.unique(place).tolist():
        row = place == each
        share, n = float(right[row].mean()), int(row.sum())
        smoothed = (right[row].sum() + 1) / (n + 2)
        error = float(np.sqrt(smoothed * (1 - smoothed) / n))
        found.append(Bin(float(told[row].mean()), share, error, n))
    return found
