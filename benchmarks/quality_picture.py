"""Draw docs/img/quality.png from stored results: a row per set, a marker per method."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmarks.quality_tables import Row, decimal, headline, rows, set_names, title_of

IMAGE = Path(__file__).resolve().parent.parent / "docs" / "img" / "quality.png"
INK, QUIET, FAINT, BAND = "#222222", "#8a8a8a", "#f3f3f3", "#dbe7f0"
# Colours of Okabe and Ito, which colour-blind readers can distinguish. Shapes differ as well.
LINKS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
STYLES = {
    "average linkage": ("s", "#E69F00"),
    "Ward linkage": ("D", "#E69F00"),
    "HDBSCAN": ("^", "#9a9a9a"),
    "DBSCAN": ("v", "#9a9a9a"),
    "MiniBatchKMeans": ("P", "#9a9a9a"),
    "Birch": ("X", "#9a9a9a"),
    "DBSTREAM": ("*", "#9a9a9a"),
    "one centroid": ("h", "#009E73"),
    "linkscluster": ("d", "#CC79A7"),
}
SPREAD = 0.62  # part of the height of a row that the methods share, so that no marker hides another


def draw(results: dict[str, Any], path: Path) -> None:
    """Draw the picture, unless nothing has been run."""
    found = [row for row in rows(results) if row.cells]
    if not found:
        return
    names = set_names(results)
    figure = Figure(figsize=(9.6, 0.62 * (len(names) + 1) + 1.9))
    axes = figure.add_subplot()
    methods = by_mean(found, names)
    styles = {method: style_of(method, sorted(methods)) for method in methods}
    for place, name in enumerate(["mean", *names]):
        if place % 2 == 0:
            band = FAINT if place else BAND
            axes.axhspan(place - 0.5, place + 0.5, color=band, lw=0, zorder=0)
        for row in found:
            offset = offset_of(methods.index(row.method), len(methods))
            dot(axes, row, name, names, place + offset, styles[row.method])
    style_axes(axes, names)
    legend(axes, found, styles)
    figure.tight_layout()
    figure.savefig(path, dpi=130, metadata={"Software": None})


def by_mean(found: list[Row], names: list[str]) -> list[str]:
    """Return the methods by the mean of their best moment, best first."""
    best: dict[str, float] = {}
    for row in found:
        mean = row.over_sets(headline(names), "given") or 0.0
        best[row.method] = max(best.get(row.method, 0.0), mean)
    return sorted(best, key=lambda method: -best[method])


def style_of(method: str, methods: list[str]) -> tuple[str, str]:
    """Return marker and colour of a method; rows of Links are discs of different colours."""
    ours = [name for name in methods if name not in STYLES]
    return STYLES.get(method) or ("o", LINKS[ours.index(method) % len(LINKS)])


def offset_of(place: int, total: int) -> float:
    """Return the offset of a method from the middle of its row."""
    return SPREAD * ((place + 0.5) / total - 0.5)


def dot(
    axes: Axes, row: Row, name: str, names: list[str], height: float, style: tuple[str, str]
) -> None:
    """Draw the given order as a marker (hollow at arrival), and the range over orders as a line."""
    marker, colour = style
    if name == "mean":
        value = row.over_sets(headline(names), "given")
        ends: tuple[float, ...] = ()
    else:
        cell = row.cells.get(name)
        value = cell.given if cell else None
        ends = cell.orders if cell and row.ordered else ()
    if value is None:
        return
    if ends:
        axes.hlines(height, min(ends), max(ends), color=colour, lw=1.1, alpha=0.55, zorder=2)
    hollow = row.moment == "instant"
    axes.plot(
        *(value, height),
        marker=marker,
        color="white" if hollow else colour,
        markeredgecolor=colour,
        markeredgewidth=1.3 if hollow else 0.6,
        markersize=6.5 if marker in "oP*X" else 5.5,
        zorder=3 if hollow else 4,
    )


def style_axes(axes: Axes, names: list[str]) -> None:
    """Label the sets, with the mean on top, and style the frame."""
    axes.set_ylim(len(names) + 0.5, -0.5)
    axes.set_yticks(range(len(names) + 1), ["mean", *(name.replace("_", " ") for name in names)])
    axes.get_yticklabels()[0].set_fontweight("bold")
    axes.set_xlabel("held-out accuracy (marker: given order; line: range over orders)", color=INK)
    axes.tick_params(labelsize=9.5, colors=INK, left=False)
    axes.grid(axis="x", color="#d0d0d0", lw=0.6, zorder=1)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(QUIET)


def legend(axes: Axes, found: list[Row], styles: dict[str, tuple[str, str]]) -> None:
    """Draw the legend: every method with the mean of its best moment, best first."""
    names = headline(sorted({name for row in found for name in row.cells}))
    handles = []
    for method, (marker, colour) in styles.items():
        mine = [row for row in found if row.method == method]
        means = [mean for row in mine if (mean := row.over_sets(names, "given")) is not None]
        text = f"{title_of(mine[0])}  {decimal(max(means, default=None))}"
        handles.append(Line2D([], [], marker=marker, color=colour, ls="", ms=7, label=text))
    if any(row.moment == "instant" for row in found):
        hollow = Line2D([], [], marker="o", color="white", markeredgecolor=INK, ls="", ms=7)
        hollow.set_label("hollow: at arrival")
        handles.append(hollow)
    axes.legend(
        handles=handles,
        loc="lower center",
        bbox_to_anchor=(0.42, 1.005),
        ncols=4,
        frameon=False,
        fontsize=9,
        handletextpad=0.3,
        columnspacing=1.4,
    )
