"""Test the picture of who spoke when."""

import pytest

from linkstream import plots
from linkstream.adapters.rttm import Turn

TURNS = [
    Turn(0, 60, "Bob"),
    Turn(60, 90, "Ann $x$\n"),
    Turn(90, 90.05, "speaker-3"),
    Turn(91, 99, "Bob"),
]


def bars(figure):
    return [patch for each in figure.axes[0].collections for patch in each.get_paths()]


def test_each_speaker_has_a_lane_in_the_order_of_first_speaking():
    (axes,) = plots.speakers(TURNS, title="monday").axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["Bob  68 s", "Ann $x$�  30 s", "speaker-3  0 s"]
    assert axes.get_title(loc="left") == "monday"
    assert axes.get_xlim() == (0, 99)
    assert len(bars(axes.figure)) == len(TURNS)


def test_a_speaker_of_a_moment_is_grey():
    (axes,) = plots.speakers(TURNS).axes
    colours = [tuple(each.get_facecolor()[0]) for each in axes.collections]
    assert colours[0] == colours[3] != colours[1]
    assert colours[2] not in (colours[0], colours[1])


@pytest.mark.parametrize("turns", [[], TURNS[:1]])
def test_few_turns_are_drawn_and_saved(turns, tmp_path):
    plots.save(plots.speakers(turns), tmp_path / "turns.png")
    assert (tmp_path / "turns.png").stat().st_size > 1000
