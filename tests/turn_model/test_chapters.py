"""Test chapters: labels of a whole recording, up to date at the cost of what changed."""

import numpy as np
import pytest

from linkstream.turn_model import Chapters, TimeModel, Windows, chapters, fixed_point, reestimate

MODEL = TimeModel()
NOBODY = np.empty(0, dtype=np.int64)


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(chapters, "CHAPTER", 20)


def recording(n, *, seed=0, noise=0.3):
    """Return windows of three speakers in turns of ten windows, and labels with some errors."""
    rng = np.random.default_rng(seed)
    people = np.arange(n) // 10 % 3
    rows = fixed_point(np.eye(12)[people] + noise * rng.normal(size=(n, 12)))
    given = np.where(rng.random(n) < 0.1, rng.integers(0, 5, n), people)
    return Windows(rows, np.full(n, 400.0), np.full(n, 0.4)), given


def gathered(windows, seen):
    """Return a function for windows by their places, which counts the windows asked for."""

    def at(places):
        seen.append(len(places))
        return windows.at(places)

    return at


@pytest.mark.parametrize("n", [1, 19, 20, 45, 60])
def test_up_to_three_chapters_are_estimated_at_once(short, n):
    windows, given = recording(n)
    found = Chapters(MODEL, windows.at).labels(given, NOBODY)
    assert np.array_equal(found, reestimate(windows, given, MODEL))


def test_a_chapter_in_the_middle_is_estimated_with_its_neighbours(short):
    windows, given = recording(140)
    found = Chapters(MODEL, windows.at).labels(given, NOBODY)
    around = np.arange(40, 100)
    alone = reestimate(windows.at(around), given[around], MODEL)
    assert np.array_equal(found[60:80], alone[20:40])
    assert len(found) == 140


@pytest.mark.parametrize("seed", range(5))
def test_the_answer_is_that_of_the_labels_alone_whatever_was_asked_before(short, seed):
    rng = np.random.default_rng(seed)
    windows, given = recording(170, seed=seed)
    asked, names = Chapters(MODEL, windows.at), NOBODY
    for n in range(1, 171):
        if rng.random() < 0.1:  # a label of an earlier window changes, or a vector is removed
            given[rng.integers(0, n)] = rng.integers(-1, 5)
        if rng.random() < 0.05:
            names = np.flatnonzero(rng.random(5) < 0.3)
        if rng.random() < 0.3 or n == 170:
            fresh = Chapters(MODEL, windows.at).labels(given[:n], names)
            assert np.array_equal(asked.labels(given[:n], names), fresh)


def test_a_new_window_costs_three_chapters_however_long_the_recording_is(short):
    windows, given = recording(400)
    seen = []
    asked = Chapters(MODEL, gathered(windows, seen))
    asked.labels(given[:390], NOBODY)
    seen.clear()
    asked.labels(given[:391], NOBODY)
    assert len(seen) == 1
    assert seen[0] <= 60
    seen.clear()
    asked.labels(given[:391], NOBODY)
    assert seen == []


def test_a_label_that_changes_costs_the_spans_around_it(short):
    windows, given = recording(400)
    seen = []
    asked = Chapters(MODEL, gathered(windows, seen))
    asked.labels(given, NOBODY)
    seen.clear()
    given[200] = 4
    asked.labels(given, NOBODY)
    assert seen == [60, 60, 60]


def test_a_name_costs_the_spans_with_that_cluster(short):
    windows, given = recording(400)
    given = given % 3
    given[10] = 7
    seen = []
    asked = Chapters(MODEL, gathered(windows, seen))
    asked.labels(given, NOBODY)
    seen.clear()
    asked.labels(given, np.array([7, 9]))
    assert seen == [60]


def test_windows_whose_vectors_were_removed_have_no_label(short):
    windows, given = recording(150)
    given[:70] = -1
    found = Chapters(MODEL, windows.at).labels(given, NOBODY)
    assert (found[:70] == -1).all()
    assert (found[70:] >= 0).all()
