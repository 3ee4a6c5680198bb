"""The examples run as a reader runs them, are short, and show what they say."""

import ast
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from linkstream import Links
from linkstream.adapters.diarization import Diarizer, Turn, load_rttm, turns_of, write_rttm
from linkstream.data import voice_stream
from linkstream.metrics import accuracy
from sounds import check_talk, spectrum, talk_of_three, write

FOLDER = Path(__file__).resolve().parent.parent / "examples"
PICTURES = ("photo_library", "news_day", "support_tickets", "live_speakers")
LINES = 80
PNG = b"\x89PNG\r\n\x1a\n"


def example(name):
    """What an example defines."""
    return runpy.run_path(str(FOLDER / f"{name}.py"))


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
    path = tmp_path / "talk.wav"
    write(path, talk_of_three())
    return path


def test_sound_becomes_rttm_with_the_encoder_that_is_given(talk):
    links = Links(0.8, 0.75, 0.85)
    target = example("sound_to_rttm")["main"](talk, spectrum, links)
    check_talk(load_rttm(target)["talk"])


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
