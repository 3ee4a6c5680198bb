"""`linkstream tune`: thresholds from a file of labelled vectors."""

from __future__ import annotations

import sys
import zipfile

import numpy as np
import pytest

from cli.command import json_lines, run, run_on_a_terminal
from linkstream.cli import run as run_command
from linkstream.data import voice_halves
from linkstream.errors import InputFileError
from linkstream.tuning import tune
from linkstream.tuning.labels import read_labels

QUICK = ("--trials", 12, "--orders", 2)


@pytest.fixture(scope="module")
def voices():
    stream = voice_halves()[0]
    return stream.X[::3, :96], stream.y[::3]


@pytest.fixture
def folder(tmp_path, voices):
    X, y = voices
    np.savez(tmp_path / "voices.npz", X=X, y=y, speaker=[f"speaker {who}" for who in y])
    np.save(tmp_path / "voices.npy", X)
    np.save(tmp_path / "who.npy", y)
    return tmp_path


@pytest.fixture
def refused(folder, monkeypatch, capsys):
    """Return the error of a refused command; check that it is one line."""

    def run_in_process(*words):
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["linkstream", *map(str, words)])
        code = run_command()
        out, err = capsys.readouterr()
        assert (code, out) == (2, "")
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        return err

    return run_in_process


def test_a_pipe_gets_one_line_of_json(folder, voices):
    done = run("tune", "voices.npz", *QUICK, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    [record] = json_lines(done.stdout)
    assert record == tune(*voices, trials=12, orders=2).to_dict()


def test_the_objective_and_the_mode_are_passed_on(folder, voices):
    words = ("--mode", "best", "--objective", "settled", "--stability-weight", 0.2, "--rebuild")
    done = run("tune", "voices.npz", "--trials", 8, "--orders", 1, *words, cwd=folder)
    [record] = json_lines(done.stdout)
    options = {"mode": "best", "objective": "settled", "stability_weight": 0.2, "rebuild": True}
    assert record == tune(*voices, trials=8, orders=1, **options).to_dict()
    assert record["options"] == {"mode": "best"}


def test_a_terminal_shows_the_mode_to_use(folder):
    few = ("tune", "voices.npz", "--trials", 8, "--orders", 1, "--mode", "best")
    _, shown = run_on_a_terminal(*few, cwd=folder)
    assert "--mode best" in shown
    assert "mode='best'" in shown


def test_labels_can_be_another_array_or_a_file(folder):
    by_name = run("tune", "voices.npz", "--labels", "speaker", *QUICK, cwd=folder)
    by_file = run("tune", "voices.npy", "--labels", "who.npy", *QUICK, cwd=folder)
    assert (by_name.returncode, by_name.stderr) == (0, "")
    assert by_name.stdout == by_file.stdout


def test_a_terminal_shows_how_to_use_the_thresholds(folder, voices):
    code, shown = run_on_a_terminal("tune", "voices.npz", *QUICK, cwd=folder)
    tuned = tune(*voices, trials=12, orders=2)
    assert code == 0
    assert tuned.python in shown
    assert f"{tuned.score:.4f}" in shown
    assert "held out" in shown


def test_a_study_is_continued_and_a_picture_drawn(folder):
    few = ("tune", "voices.npz", "--orders", 1, "--study", "voices.study")
    run(*few, "--trials", 8, cwd=folder)
    done = run(*few, "--trials", 10, "--picture", "landscape.png", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert json_lines(done.stdout)[0]["n_trials"] == 10
    assert (folder / "landscape.png").read_bytes().startswith(b"\x89PNG")


def test_weights_change_the_objective(folder):
    done = run("tune", "voices.npz", "--conflation-weight", 3, *QUICK, cwd=folder)
    assert json_lines(done.stdout)[0]["objective"].startswith("weighted score, conflation 3")


def test_the_mean_of_a_centred_space_is_written(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(40), 5)
    X = (rng.normal(size=(40, 24))[y] + 0.5 * rng.normal(size=(200, 24))) / 5.0
    X[:, 0] += 2.0
    np.savez(tmp_path / "cone.npz", X=X, y=y)
    words = ("tune", "cone.npz", "--trials", 32, "--orders", 1, "--mean", "mean.npy")
    code, shown = run_on_a_terminal(*words, cwd=tmp_path)
    assert code == 0
    assert "numpy.load('mean.npy')" in shown
    assert np.load(tmp_path / "mean.npy", allow_pickle=False).shape == (24,)


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (("voices.npz", "--labels", "nobody"), "no labels 'nobody'"),
        (("voices.npy",), "no labels 'y'"),
        (("voices.npz", "--labels", "X"), "has shape"),
        (("voices.npz", "--trials", "0"), "--trials 0"),
        (("voices.npz", "--conflation-weight", "-1"), "--conflation-weight is -1"),
        (("voices.npz", "--picture", "landscape.gif"), "ends in .png"),
        (("voices.npz", "--picture", "nowhere/landscape.png"), "cannot be written"),
        (("voices.npz", "--mean", "mean.txt"), "ends in .npy"),
        (("voices.npz", "--study", "who.npy"), "not a study"),
        (("missing.npz",), "does not exist"),
    ],
)
def test_impossible_requests_are_refused_in_one_line(refused, words, match):
    assert match in refused("tune", *words)


def test_pickled_labels_are_never_read(tmp_path):
    path = tmp_path / "who.npy"
    np.save(path, np.array([{"a": 1}, None]), allow_pickle=True)
    with pytest.raises(InputFileError, match="cannot be read"):
        read_labels(str(path), vectors=tmp_path / "voices.npy", n=2)


def test_labels_that_exceed_memory_are_refused_before_reading(tmp_path):
    path = tmp_path / "voices.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("y.npy", bytes(2**22))
    with pytest.raises(InputFileError, match="would take 4194304 bytes"):
        read_labels(None, vectors=path, n=10)


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"PK\x03\x04 cut short"])
def test_damaged_labels_are_refused(tmp_path, content):
    path = tmp_path / "who.npy"
    path.write_bytes(content)
    with pytest.raises(InputFileError):
        read_labels(str(path), vectors=tmp_path / "voices.npy", n=2)
