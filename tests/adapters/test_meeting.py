"""Test the benchmark of one meeting by VBx's protocol, and its table on the page."""

import numpy as np
import pytest
from benchmarks import meeting
from benchmarks.diarization import Recording

from linkstream import Links


def recording(n=240):
    """Return two well separated speakers in turns of thirty windows."""
    rng = np.random.default_rng(0)
    y = np.arange(n) // 30 % 2
    X = np.eye(8, dtype=np.float32)[y] + 0.1 * rng.normal(size=(n, 8)).astype(np.float32)
    t = 0.4 * np.arange(n)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return Recording(X, y, np.column_stack([t, t + 1.6]))


def test_the_truth_has_no_error_and_borders_near_the_collar_hardly_any():
    heard = recording()
    assert meeting.rate(heard, heard.turns(heard.y)) == 0
    late = np.concatenate([heard.y[:1], heard.y[:-1]])  # each turn ends 0.4 s late
    assert meeting.rate(heard, heard.turns(late)) == pytest.approx(0, abs=2)
    assert meeting.rate(heard, heard.turns(np.zeros(240, dtype=int))) == pytest.approx(50, abs=2)


def test_near_windows_do_not_overlap_and_far_ones_are_half_a_minute_apart():
    spans = recording().spans
    near = meeting.pairs(spans, near=True)
    pauses = spans[near[:, 1], 0] - spans[near[:, 0], 1]
    assert pauses.min() >= 0
    assert pauses.max() <= meeting.NEAR
    far = meeting.pairs(spans, near=False)
    assert (spans[far[:, 1], 0] - spans[far[:, 0], 0]).min() >= meeting.FAR
    one, other = meeting.medians(recording().X.astype(np.float64), spans)
    assert one > 0.8 > other


def test_a_recording_has_a_rate_for_each_moment():
    found = meeting.rates(recording(), Links(0.7, 0.6, 0.9, mode="best"))
    assert len(found) == len(meeting.MOMENTS)
    assert max(found) < 10


def test_the_page_shows_the_table_and_the_command_that_made_it():
    text = meeting.PAGE.read_text("utf-8")
    table = text[text.index("<!-- meeting -->") : text.index("<!-- /meeting -->")]
    assert "python -m benchmarks.meeting FOLDER --docs" in table
    assert table.count("| carried over") == 2
