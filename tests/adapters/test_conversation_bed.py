"""Test the conversations that the benchmark of the time model judges methods on."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from benchmarks import conversation_bed as bed

from linkstream.adapters.rttm import Turn, write_rttm


def some(count=4, seed=1, **options):
    return bed.conversations(bed.made_up_voices(), count, seed=seed, **options)


def test_the_same_seed_makes_the_same_conversations_and_another_seed_others():
    for one, other, third in zip(some(), some(), some(seed=2), strict=True):
        assert np.array_equal(one.X, other.X)
        assert np.array_equal(one.heard, other.heard)
        assert one.X.shape != third.X.shape or not np.array_equal(one.X, third.X)


def test_a_conversation_does_not_depend_on_how_many_are_made():
    assert np.array_equal(some(2)[1].X, some(4)[1].X)


def test_turns_have_the_lengths_and_overlaps_that_the_module_states():
    turns = [bed.generate(np.random.default_rng(seed)) for seed in range(200)]
    lengths = np.array([(end - start) * bed.FRAME for some in turns for start, end, _ in some])
    assert np.median(lengths) == pytest.approx(bed.TURN_MEDIAN, rel=0.15)
    overlapped = [later[0] < early[1] for some in turns for early, later in pairwise(some)]
    assert np.mean(overlapped) == pytest.approx(0.36, abs=0.08)


def test_without_overlaps_one_speaker_speaks_at_a_time():
    turns = bed.one_at_a_time(bed.generate(np.random.default_rng(0)))
    assert all(early[1] <= later[0] for early, later in pairwise(turns))


def test_the_two_halves_share_no_voice_and_no_deviation():
    voices = bed.made_up_voices()
    one, other = voices.halves()
    assert len(one.means) + len(other.means) == len(voices.means)
    assert not {row.tobytes() for row in one.means} & {row.tobytes() for row in other.means}
    heard = [{some.tobytes() for some in half.deviations} for half in (one, other)]
    assert not heard[0] & heard[1]


def test_the_truth_has_least_confusion_and_one_label_has_that_of_all_but_the_main_speaker():
    for each in some():
        assert each.confusion(each.truth + 5) < 0.03
        alone = 1 - each.heard.sum(axis=0).max() / each.seconds
        assert each.confusion(np.zeros(len(each.X))) == pytest.approx(alone)


def test_all_speech_is_judged_once_though_windows_overlap():
    turns = [(0, 3000, 0), (3000, 4000, 1), (4100, 6000, 0)]
    made = bed.fill(turns, bed.made_up_voices(), np.random.default_rng(0))
    assert made.seconds == pytest.approx(58.0, abs=1.0)
    assert np.allclose(made.heard.sum(axis=1), made.speech)


def test_with_overlaps_either_of_two_speakers_is_right():
    turns = [(0, 2000, 0), (0, 2000, 1)]
    made = bed.fill(turns, bed.made_up_voices(), np.random.default_rng(0))
    assert made.confusion(np.zeros(len(made.X))) == pytest.approx(0)
    assert made.heard.sum() == pytest.approx(2 * made.seconds)


def test_turns_are_read_from_rttm_files(tmp_path: Path):
    turns = [Turn(0, 2, "Ann"), Turn(1.5, 4, "Bob"), Turn(4, 400, "Ann")]
    (tmp_path / "a.rttm").write_text(write_rttm(turns, uri="a"))
    (tmp_path / "b.rttm").write_text(write_rttm(turns[:1], uri="alone"))
    assert bed.from_rttm(tmp_path) == [[(0, 200, 0), (150, 400, 1), (400, 30000, 0)]]


def test_deviations_leave_out_windows_beside_a_change_of_readers():
    y = np.repeat([0, 1], 10)
    X = np.random.default_rng(0).normal(size=(20, 4))
    assert [len(some) for some in bed.deviations(X, y)] == [8, 8]
    assert all(np.allclose(some.mean(axis=0), 0) for some in bed.deviations(X, y))
