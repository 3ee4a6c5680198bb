"""The examples run as a reader runs them, are short, and show what they say."""

import ast
import json
import os
import runpy
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

from linkstream import Links
from linkstream.adapters.diarization import Diarizer, Turn, load_rttm, turns_of, write_rttm
from linkstream.data import voice_stream
from linkstream.metrics import accuracy

FOLDER = Path(__file__).resolve().parent.parent / "examples"
PICTURES = ("photo_library", "news_day", "support_tickets", "live_speakers")
LINES = 80
PNG = b"\x89PNG\r\n\x1a\n"


def example(name):
    """What an example defines."""
    return runpy.run_path(str(FOLDER / f"{name}.py"))


def tones(pitch, seconds, rng, *, rate=16_000):
    """A voice of a kind: ten harmonics of a pitch that wavers, and some breath."""
    time = np.arange(int(seconds * rate)) / rate
    phase = 2 * np.pi * pitch * (time + 0.002 * np.sin(9 * time))
    harmonics = sum(np.sin(k * phase) / k for k in range(1, 11))
    return 0.2 * harmonics + 0.005 * rng.normal(size=len(time))


def spectrum(window):
    """A stand-in for an encoder: levels of the spectrum below 4 kHz, their mean taken away."""
    levels = np.abs(np.fft.rfft(window * np.hanning(len(window))))[: len(window) // 4]
    bands = np.log1p(np.add.reduceat(levels, np.arange(0, len(levels), 32)))
    return bands - bands.mean()


def write(path, sound, *, rate=16_000, channels=1):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((np.clip(sound, -1, 1) * 32767).astype("<i2").tobytes())


# As a reader runs them


@pytest.mark.parametrize("name", PICTURES)
def test_the_example_runs_and_draws_its_picture(name, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(FOLDER / f"{name}.py"), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    picture = (tmp_path / f"{name}.png").read_bytes()
    assert picture.startswith(PNG)
    assert len(picture) > 5_000


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_is_short_and_tells_how_it_is_run(path):
    text = path.read_text("utf-8")
    assert len(text.splitlines()) < LINES
    assert f"python examples/{path.name}" in ast.get_docstring(ast.parse(text)).splitlines()[0]


@pytest.mark.parametrize("name", ["photo_library", "news_day", "support_tickets"])
def test_made_up_vectors_are_called_so_in_the_first_line(name):
    assert "made-up vectors" in (FOLDER / f"{name}.py").read_text("utf-8").splitlines()[0]


def test_every_example_is_on_the_page_of_examples_with_its_picture():
    page = (FOLDER / "README.md").read_text("utf-8")
    for path in FOLDER.glob("*.py"):
        assert f"({path.name})" in page
    for name in PICTURES:
        assert f"(img/{name}.png)" in page
        assert (FOLDER / "img" / f"{name}.png").read_bytes().startswith(PNG)


# What they show


def test_photos_taken_as_groups_keep_the_sisters_apart_and_names_stay(tmp_path):
    made = example("photo_library")
    links, alone, together = made["main"](tmp_path)
    assert alone < 0.85
    assert together > 0.95
    named = sorted(cluster.name for cluster in links.clusters() if cluster.name)
    assert named == sorted(made["PEOPLE"])


def test_each_story_of_the_day_is_found_and_the_flood_is_one(tmp_path):
    made = example("news_day")
    links = made["main"](tmp_path)
    names = [cluster.name for cluster in links.clusters() if cluster.name]
    assert sorted(names) == sorted(story[0] for story in made["STORIES"])
    assert any(event.kind == "united" for event in links.events())


def test_the_new_trouble_is_a_new_topic_on_the_day_it_breaks(tmp_path):
    made = example("support_tickets")
    later = [(day, subject) for day, subject in made["main"](tmp_path) if day > 0]
    assert later == [(made["BREAKS"], "app crash")]


def test_live_speakers_are_told_anew_at_the_end_and_one_is_known_by_name(tmp_path):
    made = example("live_speakers")
    diarizer = made["main"](tmp_path)
    stream = voice_stream()
    spans = [(t, t + made["LENGTH"]) for t in stream.t.tolist()]
    labels = diarizer.links.labels()[-len(spans) :]
    assert diarizer.current() != diarizer.instant()
    assert accuracy(stream.y, labels) > 0.85
    told = load_rttm(tmp_path / "live_speakers.rttm")["readers"]
    assert "Ann" in {turn.speaker for turn in told}
    assert len(told) == len(turns_of(spans, labels, gap=0.5))


# From sound


@pytest.fixture
def talk(tmp_path):
    """Three voices, 6 s each, twice over, with a pause in the middle."""
    rng = np.random.default_rng(0)
    parts = [tones(pitch, 6, rng) for pitch in (90, 140, 230)]
    parts += [np.zeros(3 * 16_000)] + [tones(pitch, 6, rng) for pitch in (140, 90, 230)]
    path = tmp_path / "talk.wav"
    write(path, np.concatenate(parts))
    return path


def test_sound_becomes_rttm_with_the_encoder_that_is_given(talk):
    links = Links(0.8, 0.75, 0.85)
    target = example("sound_to_rttm")["main"](talk, spectrum, links)
    turns = load_rttm(target)["talk"]
    truth = [(0, 6), (6, 12), (12, 18), (21, 27), (27, 33), (33, 39)]
    long = [turn for turn in turns if turn.duration > 2]
    assert len(long) == len(truth)
    for turn, (start, end) in zip(long, truth, strict=True):
        assert abs(turn.start - start) < 1.3
        assert abs(turn.end - end) < 1.3
    first, second, third, *again = [turn.speaker for turn in long]
    assert len({first, second, third}) == 3
    assert again == [second, first, third]


def test_channels_are_made_one(tmp_path):
    read = example("sound_to_rttm")["read"]
    sound = 0.5 * np.sin(np.arange(1600) / 9)
    write(tmp_path / "one.wav", sound)
    write(tmp_path / "two.wav", np.repeat(sound, 2), channels=2)
    np.testing.assert_allclose(read(tmp_path / "one.wav"), sound, atol=1e-4)
    np.testing.assert_array_equal(read(tmp_path / "one.wav"), read(tmp_path / "two.wav"))


def test_silence_and_sounds_too_short_have_no_turns():
    diarize = example("sound_to_rttm")["diarize"]
    for n in (0, 100, 80_000):
        sound = np.zeros(n, dtype=np.float32)
        assert diarize(sound, spectrum, Links(0.8, 0.75, 0.85)).rttm() == ""


def test_sound_of_another_rate_is_refused(tmp_path):
    write(tmp_path / "fast.wav", np.zeros(100), rate=44_100)
    with pytest.raises(SystemExit, match="16000 Hz"):
        example("sound_to_rttm")["main"](tmp_path / "fast.wav", spectrum)


# Other front ends


def test_people_who_speak_at_once_in_chunks_are_told_apart():
    turns = example("local_speakers")["main"]()
    first = turns[0].speaker
    truth = {True: [(6 * n, 6 * n + 3.5) for n in range(5)]}
    truth[False] = [(6 * n + 3, min(6 * n + 6.5, 30)) for n in range(5)]
    for who, spans in truth.items():
        seen = [(turn.start, turn.end) for turn in turns if (turn.speaker == first) == who]
        np.testing.assert_allclose(seen, spans, atol=1e-6)


def test_a_chunk_without_speech_or_embedding_adds_nothing():
    made = example("local_speakers")
    diarizer = Diarizer(Links(0.7, 0.6, 0.9), overlaps="keep")
    silent, speech = np.zeros((50, 2)), np.ones((50, 2))
    missing = np.full((2, 8), np.nan)
    for activity, rows in ((silent, np.eye(8)[:2]), (speech, missing)):
        assert made["add_chunk"](diarizer, 0, activity, rows, step=0.5, frame=0.1) == []
    turns = made["add_chunk"](diarizer, 3, speech, np.eye(8)[:2], step=0.5, frame=0.1)
    assert [(turn.start, turn.end) for turn in turns] == [(6.0, 6.5)] * 2
    assert len({turn.cluster for turn in turns}) == 2


def test_words_of_a_transcript_become_lines_with_speakers(tmp_path, capsys):
    words = [("Hello", 0.2, 0.6), ("Ann", 0.7, 1.0), ("Good", 2.1, 2.4), ("morning", 2.5, 2.9)]
    spoken = [{"word": word, "start": start, "end": end} for word, start, end in words]
    transcript = {"segments": [{"start": 0.2, "end": 2.9, "words": spoken}]}
    (tmp_path / "words.json").write_text(json.dumps(transcript))
    turns = [Turn(0.0, 2.0, "Bob"), Turn(2.0, 3.0, "Ann Lee")]
    (tmp_path / "turns.rttm").write_text(write_rttm(turns))
    files = [tmp_path / name for name in ("words.json", "turns.rttm", "out.json")]
    example("words_with_speakers")["main"](*files)
    assert capsys.readouterr().out == "Bob: Hello Ann\nAnn Lee: Good morning\n"
    told = json.loads((tmp_path / "out.json").read_text())["segments"][0]["words"]
    assert [word["speaker"] for word in told] == ["Bob", "Bob", "Ann Lee", "Ann Lee"]
