"""`linkstream diarize` with a sound file: windows, an encoder, turns."""

from __future__ import annotations

import json
import sys
from types import ModuleType

import numpy as np
import pytest
import soundfile

from cli.command import refused, run, said
from linkstream.adapters.diarization import Turn, load_rttm
from linkstream.store import Store
from sounds import check_talk, spectrum, talk_of_three

ENCODER = ("--encoder", "sounds:spectrum")
THRESHOLDS = (
    *("--cluster-similarity", 0.8, "--subcluster-similarity", 0.75),
    *("--pair-similarity-max", 0.85),
)


@pytest.fixture
def talk(tmp_path):
    """Return a folder with talk.flac, of three voices."""
    soundfile.write(tmp_path / "talk.flac", talk_of_three(), 16_000)
    return tmp_path


def heard(done):
    assert (done.returncode, done.stderr) == (0, "")
    records = [json.loads(line) for line in done.stdout.splitlines()]
    return [Turn(each["start"], each["end"], each["speaker"]) for each in records]


def test_sound_becomes_turns_files_and_a_picture(talk):
    files = ("--output", "talk.rttm", "--picture", "talk.png")
    turns = heard(run("diarize", "talk.flac", *ENCODER, *THRESHOLDS, *files, cwd=talk))
    check_talk(turns)
    read = load_rttm(talk / "talk.rttm")["talk"]
    assert [turn.speaker for turn in read] == [turn.speaker for turn in turns]
    assert (talk / "talk.png").stat().st_size > 5000


def test_windows_may_be_longer_and_the_recording_named(talk):
    words = (*ENCODER, *THRESHOLDS, "--length", 2.4, "--uri", "monday", "--output", "a.json")
    longer = heard(run("diarize", "talk.flac", *words, cwd=talk))
    assert longer != heard(run("diarize", "talk.flac", *ENCODER, *THRESHOLDS, cwd=talk))
    assert json.loads((talk / "a.json").read_text())["uri"] == "monday"


def test_segments_of_sound_are_written_when_they_are_final(talk):
    words = (*ENCODER, *THRESHOLDS, "--live", "--gap", 0.5)
    segments = heard(run("diarize", "talk.flac", *words, cwd=talk))
    assert [turn.start for turn in segments] == sorted(turn.start for turn in segments)
    assert len(segments) > 60


@pytest.fixture
def fake_resemblyzer(monkeypatch):
    class VoiceEncoder:
        def __init__(self, device, *, verbose):
            pass

        def embed_utterance(self, wav):
            return np.abs(spectrum(wav)[:256])

    module = ModuleType("resemblyzer")
    module.VoiceEncoder = VoiceEncoder
    monkeypatch.setitem(sys.modules, "resemblyzer", module)


@pytest.mark.usefixtures("fake_resemblyzer")
def test_without_options_resemblyzer_and_its_preset_are_used(talk):
    bands = len(spectrum(np.zeros(25_600)))
    refusal = refused(run("diarize", "talk.flac", cwd=talk))
    assert f"dimension {bands}" in refusal
    assert "256" in refusal  # the preset's
    heard(run("diarize", "talk.flac", *THRESHOLDS, cwd=talk))


@pytest.mark.usefixtures("fake_resemblyzer")
def test_a_store_keeps_its_thresholds_and_names(talk):
    keep = ("diarize", "talk.flac", "--store", "people.links")
    first = heard(run(*keep, *THRESHOLDS, cwd=talk))
    said(talk, "name", "people.links", first[0].speaker.removeprefix("speaker-"), "Ann")
    assert "Ann" in {turn.speaker for turn in heard(run(*keep, cwd=talk))}
    with Store.open(talk / "people.links", read_only=True) as store:
        assert store.thresholds.cluster_similarity == 0.8


def test_without_the_encoder_the_line_to_install_it_is_shown(talk, monkeypatch):
    monkeypatch.setitem(sys.modules, "resemblyzer", None)
    done = run("diarize", "talk.flac", cwd=talk)
    assert done.returncode == 3
    assert 'pip install "linkstream[resemblyzer]"' in done.stderr
    assert not (talk / "people.links").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("talk.flac", *ENCODER), "--preset NAME"),
        (("talk.flac", "--encoder", "sounds:nothing", *THRESHOLDS), "sounds:nothing"),
        (("talk.flac", "--encoder", "math:sqrt", *THRESHOLDS), "math:sqrt failed at 0.0 s"),
        (("other.flac", *ENCODER, *THRESHOLDS), "other.flac"),
        (("talk.npz", *ENCODER, *THRESHOLDS), "a sound file for an encoder"),
    ],
)
def test_sound_that_cannot_be_heard_is_refused(talk, words, reason):
    assert reason in refused(run("diarize", *words, "--store", "new.links", cwd=talk))
    assert not (talk / "new.links").exists()
