"""The reliability diagram: how often decisions were right that were told a probability."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from linkstream.errors import ArgumentError
from linkstream.plots.style import FAINT, INK, PALETTE, heading, new_figure, open_frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS = 10


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
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1], color=FAINT, zorder=0)
    rows = bins(told[known], hit[known])
    means, shares, errors = (np.array(column) for column in zip(*rows, strict=True))
    axes.errorbar(means, shares, errors, fmt="o", color=PALETTE[0], capsize=2, markersize=5)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel("probability that was told", color=INK)
    axes.set_ylabel("share that was right", color=INK)
    heading(axes, f"{int(known.sum()):,} decisions")
    open_frame(axes, "top", "right")
    return figure


def bins(
    told: npt.NDArray[np.float64], right: npt.NDArray[np.bool_]
) -> list[tuple[float, float, float]]:
    """Return mean probability, share that was right and its standard error of each bin."""
    place = np.minimum((told * BINS).astype(np.int64), BINS - 1)
    found = []
    for each in np.unique(place).tolist():
        row = place == each
        share, n = float(right[row].mean()), int(row.sum())
        smoothed = (right[row].sum() + 1) / (n + 2)
        error = float(np.sqrt(smoothed * (1 - smoothed) / n))
        found.append((float(told[row].mean()), share, error))
    return found
