"""Who was given which ID when: a lane for each identity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from linkstream.errors import ArgumentError
from linkstream.plots.canvas import FAINT, FRAGMENT, INK, PALETTE, Colours, new_figure

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
    """A lane for each identity, coloured by the IDs it was given.

    Args:
        y_true: who it was, in order of arrival.
        ids: the ID given to each.
        times: when each began, rising, in seconds; without it, the order of arrival.
        matched: ID → identity, as `metrics.match` gives. Without it an ID stands for an identity
            when each is the other's most frequent.
    """
    who, given, when = checked(y_true, ids, times)
    stands_for = most_frequent(who, given) if matched is None else dict(matched)
    lanes = len(np.unique(who))
    figure = new_figure(9.0, 1.2 + 0.42 * lanes)
    axes = figure.add_subplot()
    draw_timeline(axes, who, given, when, stands_for, colours_of(given, stands_for))
    axes.set_xlabel("order of arrival" if times is None else "time (s)")
    return figure


def checked(
    y_true: npt.ArrayLike, ids: npt.ArrayLike, times: npt.ArrayLike | None
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Labels and times of a stream, checked: as many of each, times rising."""
    who, given = np.asarray(y_true), np.asarray(ids)
    when = np.arange(len(who.ravel()), dtype=np.float64) if times is None else np.asarray(times)
    if not (who.ndim == given.ndim == when.ndim == 1 and len(who) == len(given) == len(when) > 0):
        raise ArgumentError(
            f"y_true, ids and times of shapes {who.shape}, {given.shape} and {when.shape}",
            expected="one of each for every vector, at least one vector",
            remedy="Give them in order of arrival, none left out.",
        )
    if given.dtype.kind not in "iu":
        raise ArgumentError(
            f"ids of dtype {given.dtype}",
            expected="whole numbers",
            remedy="Pass what add_many() or labels() returned.",
        )
    if not np.all(np.diff(when) >= 0):
        raise ArgumentError(
            "times that go back",
            expected="times that rise from vector to vector",
            remedy="Sort the stream by time.",
        )
    return who, given.astype(np.int64), when.astype(np.float64)


def most_frequent(who: npt.NDArray[Any], given: npt.NDArray[np.int64]) -> dict[int, Any]:
    """ID → identity where each is the other's most frequent."""
    stands_for = {}
    for identity in np.unique(who):
        ids, counts = np.unique(given[who == identity], return_counts=True)
        favourite = int(ids[np.argmax(counts)])
        others, counts = np.unique(who[given == favourite], return_counts=True)
        if others[np.argmax(counts)] == identity:
            stands_for[favourite] = identity
    return stands_for


def colours_of(given: npt.NDArray[np.int64], stands_for: Mapping[int, Any]) -> dict[int, str]:
    """A colour for each ID that stands for somebody, in order of appearance; grey for others."""
    ids, first = np.unique(given, return_index=True)
    known = [int(i) for i in ids[np.argsort(first)] if int(i) in stands_for]
    colours = {int(i): FRAGMENT for i in ids}
    return colours | {i: PALETTE[n % len(PALETTE)] for n, i in enumerate(known)}


def draw_timeline(
    axes: Axes,
    who: npt.NDArray[Any],
    given: npt.NDArray[np.int64],
    when: npt.NDArray[np.float64],
    stands_for: Mapping[int, Any],
    colours: Colours,
) -> None:
    """Draw the lanes into a panel; see `timeline`."""
    _, first = np.unique(who, return_index=True)
    lanes = who[np.sort(first)]  # in order of appearance, the first on top
    step = float(np.median(np.diff(when))) if len(when) > 1 else 1.0
    ends = np.minimum(np.append(when[1:], when[-1] + step), when + step)
    for lane, identity in enumerate(lanes):
        axes.axhline(lane, color=FAINT, linewidth=0.8, zorder=0)
        for cluster in np.unique(given[who == identity]).tolist():
            bars = _bars((who == identity) & (given == cluster), when, ends)
            _draw_bars(axes, bars, lane, cluster, colours[cluster])
    axes.set_yticks(range(len(lanes)), _lane_names(lanes))
    axes.set_ylim(len(lanes) - 0.45, -0.55)
    axes.set_xlim(when[0], ends[-1])
    _name_the_ids(axes, lanes, who, given, stands_for, colours)
    if FRAGMENT in colours.values():
        _explain_fragments(axes)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _draw_bars(
    axes: Axes, bars: list[tuple[float, float]], lane: int, cluster: int, colour: str
) -> None:
    fragment = colour == FRAGMENT
    axes.broken_barh(
        bars,
        (lane - 0.34, 0.68),
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
        ["an ID that stands for nobody"],
        loc="lower right",
        bbox_to_anchor=(1.0, 0.995),
        borderaxespad=0.2,
        frameon=False,
        fontsize=8.5,
        labelcolor=INK,
    )


def _bars(
    chosen: npt.NDArray[np.bool_],
    when: npt.NDArray[np.float64],
    ends: npt.NDArray[np.float64],
) -> list[tuple[float, float]]:
    """Runs of chosen vectors as (start, width); a gap in time, beyond a jitter, ends a run."""
    jitter = 0.01 * (ends[:-1] - when[:-1])
    unbroken = chosen[1:] & chosen[:-1] & (when[1:] - ends[:-1] <= jitter)
    begins = np.flatnonzero(chosen & ~np.append(False, unbroken))
    stops = np.flatnonzero(chosen & ~np.append(unbroken, False))
    return [(float(when[a]), float(ends[b] - when[a])) for a, b in zip(begins, stops, strict=True)]


def _lane_names(lanes: npt.NDArray[Any]) -> Sequence[str]:
    return [str(identity) if lanes.dtype.kind in "US" else f"#{identity}" for identity in lanes]


def _name_the_ids(
    axes: Axes,
    lanes: npt.NDArray[Any],
    who: npt.NDArray[Any],
    given: npt.NDArray[np.int64],
    stands_for: Mapping[int, Any],
    colours: Colours,
) -> None:
    """Beside each lane: the ID that stands for it, and how much of the lane has it."""
    for cluster, identity in stands_for.items():
        lane = int(np.flatnonzero(lanes == identity)[0])
        share = float(np.mean(given[who == identity] == cluster))
        axes.annotate(
            f"ID {cluster} · {share:.0%}",
            (1.0, lane),
            xycoords=("axes fraction", "data"),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=colours.get(cluster, INK),
            fontsize=9,
            fontweight="bold",
        )
