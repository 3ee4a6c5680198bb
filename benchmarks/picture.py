"""Draws docs/img/performance.png from what a run kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.page import kept
from benchmarks.records import Rate, readable

IMAGE = Path(__file__).resolve().parent.parent / "docs" / "img" / "performance.png"
# From Okabe and Ito's palette: told apart by every kind of colour vision.
OURS, THEIRS, INK, QUIET = "#0072B2", "#E69F00", "#222222", "#8a8a8a"

PANELS = {
    ("tight", "the whole stream"): "tight: 100 subclusters",
    ("lobes", "the whole stream"): "lobes: merges, cuts and splits",
    ("scatter", "the last 1,000"): "scatter: the last 1,000 of 20,000 subclusters",
    ("hub", "the last 1,000"): "hub: the last 1,000 of 12,000, on 6,000 edges",
    ("wide", "1,000 more"): "wide: 1,000 more at 100,000 subclusters",
    ("wide", "one vector alone"): "wide: one vector a call at 100,000 subclusters",
}


def draw(results: dict[str, Any]) -> None:
    """A panel a task, a bar a contestant; nothing where a task has not been run."""
    found = [record for record in kept(results) if isinstance(record, Rate)]
    panels = {
        title: [rate for rate in found if (rate.workload, rate.task) == key]
        for key, title in PANELS.items()
    }
    panels = {title: rates for title, rates in panels.items() if rates}
    if not panels:
        return
    heights = [max(len(rates), 2) for rates in panels.values()]
    figure = Figure(figsize=(8.6, 0.3 * sum(heights) + 0.62 * len(panels) + 0.5))
    axes = figure.subplots(len(panels), 1, sharex=True, height_ratios=heights, squeeze=False)
    most = max(rate.best for rates in panels.values() for rate in rates)
    for axis, (title, rates) in zip(axes[:, 0], panels.items(), strict=True):
        bars(axis, title, rates, most)
    axes[-1, 0].set_xlabel("vectors a second, log scale", color=INK)
    figure.tight_layout(h_pad=1.0)
    figure.savefig(IMAGE, dpi=130, metadata={"Software": None})


def bars(axis: Axes, title: str, rates: list[Rate], most: float) -> None:
    """One task: fastest on top, each bar with its figure."""
    rates = sorted(rates, key=lambda rate: rate.best)
    colours = [OURS if "linkstream" in rate.who else THEIRS for rate in rates]
    axis.barh([rate.who for rate in rates], [rate.best for rate in rates], color=colours)
    axis.set_xscale("log")
    axis.set_xlim(10, most * 4)
    for place, rate in enumerate(rates):
        axis.text(
            rate.best * 1.08, place, readable(rate.best), va="center", color=INK, fontsize=8.5
        )
    axis.set_title(title, loc="left", fontsize=10, color=INK)
    axis.tick_params(labelsize=9, colors=INK)
    axis.tick_params(axis="x", which="minor", bottom=False)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axis.spines[side].set_color(QUIET)
