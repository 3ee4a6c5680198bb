"""Test the benchmarks of live diarization, of names, and of recordings with evidence of time."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks import conversation_bed as bed
from benchmarks import known_speakers, live_turns, timed_recordings
from benchmarks.diarization import Recording

from linkstream import Links, Space
from linkstream.adapters import turns
from linkstream.adapters.diarization import Diarizer
from linkstream.turn_model import live


def recording(n=240):
    """Return four well separated speakers in turns of at least six windows."""
    rng = np.random.default_rng(0)
    y = np.repeat(rng.permuted(np.arange(n // 6) % 4), 6)
    X = np.eye(8, dtype=np.float32)[y] + 0.1 * rng.normal(size=(n, 8)).astype(np.float32)
    t = 0.4 * np.arange(n)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return Recording(X, y, np.column_stack([t, t + 1.6]))


def test_a_recording_is_a_conversation_with_the_same_error_rate():
    heard = recording()
    talk = timed_recordings.as_conversation(heard)
    for labels in (heard.y, np.zeros(240, dtype=int), np.arange(240) // 30):
        assert talk.confusion(labels) == pytest.approx(heard.error_rate(labels), abs=1e-6)


def test_recordings_are_judged_on_unseen_speakers_with_and_without_time(monkeypatch):
    kinds = [
        (name, kind, replace(tuner, trials=8) if hasattr(tuner, "trials") else tuner)
        for name, kind, tuner in timed_recordings.METHODS
    ]
    monkeypatch.setattr(timed_recordings, "METHODS", tuple(kinds[::2]))
    monkeypatch.setattr(timed_recordings, "halves", lambda speakers: [speakers[:2], speakers[2:]])
    kept = timed_recordings.judge(recording(), Space(mean=np.full(8, 0.1)))
    assert len(kept) == 3
    for columns in kept.values():
        assert all(len(columns[name]) == 2 for name in timed_recordings.COLUMNS)
    grid = timed_recordings.table(kept)
    assert [len(row) for row in grid] == [len(timed_recordings.COLUMNS) + 1] * 4


def test_the_last_hour_of_a_recording_is_measured_beside_the_first(capsys):
    words = ["--conversations", "3", "--windows", "5", "--hours", "0.05"]
    assert live_turns.main(words) == 0
    told = capsys.readouterr().out
    for name in ("conversations: 3", "first hour", "last hour", "MiB a conversation"):
        assert name in told


def test_a_window_costs_the_same_work_however_long_the_recording_is(monkeypatch):
    """The paths of a window run over the windows that are not final, and over no others."""
    rows = []
    real = live.forward

    def counting(scores, *others):
        rows.append(scores.shape)
        return real(scores, *others)

    monkeypatch.setattr(live, "forward", counting)
    diarizer = Diarizer(Links(0.7, 0.6, 0.9), delay=1.0)
    for n in range(400):
        diarizer.add(0.4 * n, 0.4 * n + 1.6, np.eye(3)[n // 8 % 3])
    assert max(shape[0] for shape in rows) <= 4
    assert max(shape[1] for shape in rows) == 3


def test_names_of_a_first_conversation_hold_in_the_second_and_strangers_have_none():
    voices = bed.made_up_voices(12)
    space = Space(dimension=48)
    rows = [
        known_speakers.trial(voices, space, number, enrol=False)["current"] for number in (1, 2)
    ]
    right, _, _, strangers = np.mean(rows, axis=0)
    assert right > 0.9
    assert strangers < 0.1


def test_shares_of_names_are_of_the_time_of_known_people_and_of_strangers():
    talk = bed.fill(
        [(0, 1000, 0), (1000, 2000, 1)], bed.made_up_voices(), np.random.default_rng(0), cast=[5, 7]
    )
    links = Links(0.5, 0.5, 0.5)
    for _ in range(3):
        links.add(np.eye(48)[0])
        links.add(-np.eye(48)[0])
    links.name(0, "voice 5")
    half = np.where(np.arange(len(talk.X)) % 2, 0, 1)
    everywhere = np.zeros(len(talk.X), dtype=int)
    shares = known_speakers.shares(links, talk, everywhere, [5, 7], {5})
    assert shares == [1.0, 0.0, 0.0, 1.0]
    right, other, none, named = known_speakers.shares(links, talk, half, [5, 7], {5})
    assert (right, none, named) == pytest.approx((0.5, 0.5, 0.5), abs=0.05)
    assert other == 0.0


def test_the_command_for_names_prints_shares(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(known_speakers, "load_voices", lambda folder: bed.made_up_voices(32))
    for words in ([], ["--enrol"]):
        assert known_speakers.main([str(tmp_path), "--count", "2", *words]) == 0
    assert capsys.readouterr().out.count("strangers named") == 4


def test_a_segment_is_compared_with_its_neighbours_and_not_with_all_before_it(monkeypatch):
    seen = []
    real = turns._first_start

    def counting(chunk):
        seen.append(chunk)
        return real(chunk)

    monkeypatch.setattr(turns, "_first_start", counting)
    times = turns.SegmentTimes("cut")
    for n in range(8000):
        times.add((0.4 * n, 0.4 * n + 1.6))
    seen.clear()
    assert times.add((3200.0, 3201.6)) == [7997, 7998, 7999, 8000]
    assert len(seen) < 30
