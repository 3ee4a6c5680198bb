"""A picture of who spoke when: a lane for each speaker, a bar for each turn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from linkstream.plots.style import FRAGMENT, INK, PALETTE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEAST = 0.002  # share of the speech below which a speaker is drawn in grey


class SpokenTurn(Protocol):
    """A time span with a speaker, such as `linkstream.adapters.diarization.Turn`."""

    @property
    def start(self) -> float:
        """Start in seconds."""

    @property
    def end(self) -> float:
        """End in seconds."""

    @property
    def speaker(self) -> str:
        """Name of the speaker."""


def speakers(turns: Iterable[SpokenTurn], *, title: str = "") -> Figure:
    """Draw a lane for each speaker, in the order in which they first speak.

    Args:
        turns: the turns.
        title: text above the picture.
    """
    spoken = sorted(turns, key=lambda turn: (turn.start, turn.end, turn.speaker))
    lanes = {who: lane for lane, who in enumerate(dict.fromkeys(turn.speaker for turn in spoken))}
    figure = new_figure(9.0, 1.2 + 0.34 * max(len(lanes), 1))
    axes = figure.add_subplot()
    seconds = dict.fromkeys(lanes, 0.0)
    for turn in spoken:
        seconds[turn.speaker] += turn.end - turn.start
    least = _LEAST * sum(seconds.values())
    heard = [who for who in lanes if seconds[who] >= least]
    colours = {who: PALETTE[n % len(PALETTE)] for n, who in enumerate(heard)}
    for turn in spoken:
        bar = [(turn.start, turn.end - turn.start)]
        colour = colours.get(turn.speaker, FRAGMENT)
        axes.broken_barh(bar, (lanes[turn.speaker] - 0.4, 0.8), color=colour)
    axes.set(yticks=range(len(lanes)), ylim=(len(lanes) - 0.4, -0.6), xlabel="time (s)")
    labels = [f"{_printable(who)}  {seconds[who]:,.0f} s" for who in lanes]
    axes.set_yticklabels(labels, parse_math=False)
    axes.set_xlim(0, max((turn.end for turn in spoken), default=1.0))
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False, colors=INK)
    axes.set_title(_printable(title), loc="left", color=INK, parse_math=False)
    return figure


def _printable(text: str, width: int = 40) -> str:
    """Return a text for a picture: one line, unprintable characters replaced."""
    shown = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
    return shown if len(shown) <= width else shown[: width - 1] + "…"
