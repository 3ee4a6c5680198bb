"""`linkstream diagnose`: text on a terminal, JSON in a pipe, a picture on request."""

from __future__ import annotations

import numpy as np
import pytest

from cli.command import json_lines, run, run_on_a_terminal
from linkstream.data import voice_halves
from linkstream.tuning.diagnosis import diagnose

THRESHOLDS = (0.766, 0.645, 0.738)


@pytest.fixture(scope="module")
def voices():
    return voice_halves()[1]


@pytest.fixture
def folder(tmp_path, voices):
    np.savez(tmp_path / "voices.npz", X=voices.X, y=voices.y)
    return tmp_path


def refused(done):
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_a_pipe_gets_every_measured_value(folder, voices):
    done = run("diagnose", "voices.npz", "--thresholds", *THRESHOLDS, "--labels", "y", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    (record,) = json_lines(done.stdout)
    expected = diagnose(voices.X, THRESHOLDS, y=voices.y)
    assert record["labelled"]
    assert record["cone"]["identities"] == 5
    assert record["cliff"]["at"]["subclusters"] == expected.cliff.at.subclusters
    assert [each["title"] for each in record["findings"]] == [
        each.title for each in expected.findings
    ]


def test_a_terminal_gets_the_findings_in_colour(folder):
    code, shown = run_on_a_terminal("diagnose", "voices.npz", cwd=folder)
    assert code == 0
    assert "801 vectors of dimension 256, without labels" in shown
    assert "Strangers are similar: a cone" in shown
    assert "\x1b[1;31mwarning" in shown
    assert "--picture diagnosis.png" in shown


def test_the_picture_is_written(folder):
    done = run("diagnose", "voices.npz", "--picture", "voices.png", cwd=folder)
    assert done.returncode == 0
    assert (folder / "voices.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["voices.gif", "nowhere/voices.png"])
def test_a_picture_that_cannot_be_written_is_refused_at_the_start(folder, name):
    assert name in refused(run("diagnose", "voices.npz", "--picture", name, cwd=folder))


def test_invalid_thresholds_labels_and_vectors_are_refused_in_one_line(folder, voices):
    bad = voices.X.copy()
    bad[5] = np.nan
    np.save(folder / "bad.npy", bad)
    assert "bad.npy: row 5 is not finite" in refused(run("diagnose", "bad.npy", cwd=folder))
    assert "'who'" in refused(run("diagnose", "voices.npz", "--labels", "who", cwd=folder))
    wrong = ("--thresholds", 0.7, 1.6, 0.9)
    assert "--thresholds: T_s is 1.6" in refused(run("diagnose", "voices.npz", *wrong, cwd=folder))
