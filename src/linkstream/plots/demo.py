"""The picture of the demo: lanes and graph side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from linkstream.clusterer import Links
from linkstream.plots.canvas import INK, heading, new_figure
from linkstream.plots.lanes import checked, colours_of, draw_timeline, most_frequent
from linkstream.plots.nodes import draw_graph

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    who, given, when = checked(y_true, ids, times)
    stands_for = most_frequent(who, given) if matched is None else dict(matched)
    colours = colours_of(given, stands_for)
    figure = new_figure(12.0, 4.9)
    left, right = figure.subplots(1, 2, width_ratios=(1.75, 1.0))
    draw_timeline(left, who, given, when, stands_for, colours)
    left.set_xlabel("order of arrival" if times is None else "time (s)")
    heading(left, "IDs given at arrival, one lane a speaker")
    draw_graph(right, links, vectors, colours)
    heading(right, "subclusters and their vectors at the end")
    if title:
        figure.suptitle(title, x=0.012, ha="left", fontsize=14, fontweight="bold", color=INK)
    if subtitle:
        figure.supxlabel(subtitle, x=0.012, ha="left", fontsize=8.5, color="#666666")
    return figure
