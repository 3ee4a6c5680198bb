"""IDs over time: a row for each identity, coloured by the IDs that it was given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Links
from linkstream.errors import ArgumentError
from linkstream.plots import style
from linkstream.plots.graphs import draw_graph
from linkstream.plots.style import FAINT, FRAGMENT, INK, PALETTE, Colours, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def timeline(
    y_true: npt.ArrayLike,
    ids: npt.ArrayLike,
    times: npt.ArrayLike | None = None,
    *,
    matched: Mapping[int, Any] | None = None,
) -> Figure:
    """Draw a row for each identity, coloured by the IDs that it was given.

    Args:
        y_true: the identity of each vector, in order of arrival.
        ids: the ID given to each vector.
        times: start time of each vector in seconds, rising; None draws the order of arrival.
        matched: identity by ID, as returned by `metrics.match`. By default, an ID is matched to
            an identity if each is the other's most frequent.
    """
    who, given, when = _checked(y_true, ids, times)
    stands_for = _most_frequent(who, given) if matched is None else dict(matched)
    figure = new_figure(9.0, 1.2 + 0.42 * len(np.unique(who)))
    axes = figure.add_subplot()
    _draw_timeline(axes, who, given, when, stands_for, _colours_of(given, stands_for))
    axes.set_xlabel("order of arrival" if times is None else "time (s)")
    return figure


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
    """Draw the IDs of a stream over time, and the final graph.

    Args:
        y_true: the identity of each vector, in order of arrival.
        ids: the ID given to each vector.
        links: the clusterer after the last vector.
        times: start time of each vector in seconds, rising; None draws the order of arrival.
        vectors: the vectors in order of arrival, to be drawn as dots; None draws none.
        matched: identity by ID, as for `timeline`.
        title: the title of the picture.
        subtitle: a line below the picture.
    """
    who, given, when = _checked(y_true, ids, times)
    stands_for = _most_frequent(who, given) if matched is None else dict(matched)
    colours = _colours_of(given, stands_for)
    figure = new_figure(12.0, 4.9)
    left, right = figure.subplots(1, 2, width_ratios=(1.75, 1.0))
    _draw_timeline(left, who, given, when, stands_for, colours)
    left.set_xlabel("order of arrival" if times is None else "time (s)")
    style.heading(left, "IDs given at arrival, one row per speaker")
    draw_graph(right, links, vectors, colours)
    style.heading(right, "subclusters and their vectors at the end")
    if title:
        style.figure_title(figure, title)
    if subtitle:
        figure.supxlabel(subtitle, x=0.012, ha="left", fontsize=8.5, color="#666666")
    return figure


def _checked(
    y_true: npt.ArrayLike, ids: npt.ArrayLike, times: npt.ArrayLike | None
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Check labels and times of a stream, and return them as arrays."""
    who, given = np.asarray(y_true), np.asarray(ids)
    when = np.arange(len(who.ravel()), dtype=np.float64) if times is None else np.asarray(times)
    if not (who.ndim == given.ndim == when.ndim == 1 and len(who) == len(given) == len(when) > 0):
        raise ArgumentError(
            f"y_true, ids and times of shapes {who.shape}, {given.shape} and {when.shape}",
            expected="one value per vector in each, and at least one vector",
            remedy="Give all three in order of arrival, none left out.",
        )
    if given.dtype.kind not in "iu":
        raise ArgumentError(
            f"ids of dtype {given.dtype}",
            expected="whole numbers",
            remedy="Pass the IDs that add_many() or labels() returned.",
        )
    if not np.all(np.diff(when) >= 0):
        raise ArgumentError(
            "times that decrease",
            expected="times in ascending order",
            remedy="Sort the stream by time.",
        )
    return who, given.astype(np.int64), when.astype(np.float64)


def _most_frequent(who: npt.NDArray[Any], given: npt.NDArray[np.int64]) -> dict[int, Any]:
    """Return identity by ID, where each is the other's most frequent."""
    stands_for = {}
    for identity in np.unique(who):
        ids, counts = np.unique(given[who == identity], return_counts=True)
        favourite = int(ids[np.argmax(counts)])
        others, counts = np.unique(who[given == favourite], return_counts=True)
        if others[np.argmax(counts)] == identity:
            stands_for[favourite] = identity
    return stands_for


def _colours_of(given: npt.NDArray[np.int64], stands_for: Mapping[int, Any]) -> dict[int, str]:
    """Return a colour for each matched ID, in order of appearance; grey for the others."""
    ids, first = np.unique(given, return_index=True)
    known = [int(i) for i in ids[np.argsort(first)] if int(i) in stands_for]
    colours = {int(i): FRAGMENT for i in ids}
    return colours | {i: PALETTE[n % len(PALETTE)] for n, i in enumerate(known)}


def _draw_timeline(
    axes: Axes,
    who: npt.NDArray[Any],
    given: npt.NDArray[np.int64],
    when: npt.NDArray[np.float64],
    stands_for: Mapping[int, Any],
    colours: Colours,
) -> None:
    """Draw the rows into a panel; see `timeline`."""
    _, first = np.unique(who, return_index=True)
    identities = who[np.sort(first)]  # in order of appearance, the first on top
    step = float(np.median(np.diff(when))) if len(when) > 1 else 1.0
    ends = np.minimum(np.append(when[1:], when[-1] + step), when + step)
    for row, identity in enumerate(identities):
        axes.axhline(row, color=FAINT, linewidth=0.8, zorder=0)
        for cluster in np.unique(given[who == identity]).tolist():
            bars = _bars((who == identity) & (given == cluster), when, ends)
            _draw_bars(axes, bars, row, cluster, colours[cluster])
    mark = "" if identities.dtype.kind in "US" else "#"
    axes.set_yticks(range(len(identities)), [f"{mark}{identity}" for identity in identities])
    axes.set_ylim(len(identities) - 0.45, -0.55)
    axes.set_xlim(when[0], ends[-1])
    _label_ids(axes, identities, who, given, stands_for, colours)
    if FRAGMENT in colours.values():
        _explain_fragments(axes)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _draw_bars(
    axes: Axes, bars: list[tuple[float, float]], row: int, cluster: int, colour: str
) -> None:
    fragment = colour == FRAGMENT
    axes.broken_barh(
        bars,
        (row - 0.34, 0.68),
        facecolor=colour,
        edgecolor="white" if fragment else colour,
        hatch="////" if fragment else None,
        linewidth=0.0 if fragment else 0.3,
        label=f"ID {cluster}",
    )


def _explain_fragments(axes: Axes) -> None:
    from matplotlib.patches import Patch

    swatch = Patch(facecolor=FRAGMENT, edgecolor="white", hatch="////", linewidth=0.0)
    axes.legend(
        [swatch],
        ["an ID matched to no identity"],
        loc="lower right",
        bbox_to_anchor=(1.0, 0.995),
        borderaxespad=0.2,
        frameon=False,
        fontsize=8.5,
        labelcolor=INK,
    )


def _bars(
    chosen: npt.NDArray[np.bool_], when: npt.NDArray[np.float64], ends: npt.NDArray[np.float64]
) -> list[tuple[float, float]]:
    """Return runs of chosen vectors as (start, width); a gap in time of more than 1 % ends one."""
    jitter = 0.01 * (ends[:-1] - when[:-1])
    unbroken = chosen[1:] & chosen[:-1] & (when[1:] - ends[:-1] <= jitter)
    begins = np.flatnonzero(chosen & ~np.append(False, unbroken))
    stops = np.flatnonzero(chosen & ~np.append(unbroken, False))
    return [(float(when[a]), float(ends[b] - when[a])) for a, b in zip(begins, stops, strict=True)]


def _label_ids(
    axes: Axes,
    identities: npt.NDArray[Any],
    who: npt.NDArray[Any],
    given: npt.NDArray[np.int64],
    stands_for: Mapping[int, Any],
    colours: Colours,
) -> None:
    """Write the matched ID beside each row, with its share of the row."""
    for cluster, identity in stands_for.items():
        row = int(np.flatnonzero(identities == identity)[0])
        share = float(np.mean(given[who == identity] == cluster))
        axes.annotate(
            f"ID {cluster} · {share:.0%}",
            (1.0, row),
            xycoords=("axes fraction", "data"),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=colours.get(cluster, INK),
            fontsize=9,
            fontweight="bold",
        )
