"""The reliability diagram shows what was told and what was right."""

from __future__ import annotations

import numpy as np
import pytest

from confidence import sure
from linkstream import Links
from linkstream.errors import ArgumentError
from linkstream.plots import reliability, save
from linkstream.plots.reliability import bins


def test_bins_have_means_shares_and_errors():
    told = np.array([0.11, 0.19, 0.85, 0.85, 1.0])
    found = bins(told, np.array([False, True, True, True, True]))
    assert [row[:2] for row in found] == [(pytest.approx(0.15), 0.5), (0.85, 1.0), (1.0, 1.0)]
    assert all(0 < row[2] < 0.5 for row in found)


def test_a_diagram_is_drawn_and_saved_without_the_unknown(tmp_path):
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    told = rng.random(500)
    figure = reliability(np.where(told < 0.1, np.nan, told), rng.random(500) < told)
    (axes,) = figure.axes
    assert axes.get_title(loc="left") == f"{(told >= 0.1).sum():,} decisions"
    assert len(axes.containers[0][0].get_xdata()) == 9
    save(figure, tmp_path / "reliability.png")
    assert (tmp_path / "reliability.png").stat().st_size > 5_000


def test_nothing_to_draw_is_refused():
    for probability, right in (([np.nan], [True]), ([0.5], [True, False]), ([], [])):
        with pytest.raises(ArgumentError, match="probabilities"):
            reliability(probability, right)


def test_the_picture_of_confidence_has_the_answers_and_the_curves():
    told = sure.links()
    told.add_many(sure.STREAM.vectors[:60])
    for vector in range(1, 40):
        told.judge(vector, vector % 4 > 0)
    left, right = told.confidence.plot().axes
    judged = len(told.confidence.told().answered)
    assert left.get_title(loc="left") == f"{judged} decisions"
    assert 0 < judged <= 39
    assert [line.get_linestyle() for line in right.lines] == ["-", "-", "-"]
    empty = Links(0.7, 0.6, 0.9).confidence.plot().axes
    assert not empty[1].lines
