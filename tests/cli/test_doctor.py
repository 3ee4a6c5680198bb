"""`linkstream doctor`: available engines and extras, and the self-check."""

from __future__ import annotations

import json
from importlib import metadata

import numpy as np
import pytest
import typer

from cli.command import run, run_on_a_terminal
from linkstream import Links, __version__
from linkstream.cli import doctor


@pytest.fixture(scope="module")
def found():
    return doctor.diagnosis()


def test_a_pipe_gets_the_diagnosis_as_one_json_object(tmp_path):
    done = run("doctor", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert found["versions"]["linkstream"] == __version__
    assert found["versions"]["numpy"] == np.__version__
    assert set(found["engines"]) == {"native", "reference"}


def test_a_terminal_gets_the_diagnosis_as_a_table(tmp_path):
    code, shown = run_on_a_terminal("doctor", cwd=tmp_path)
    assert code == 0
    for words in ("linkstream doctor", "engine native", "extra cli", "self-check reference"):
        assert words in shown


def test_the_diagnosis_says_what_spark_lacks(found, monkeypatch, tmp_path):
    assert found["spark"]["ready"]
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    without = doctor.diagnosis()["spark"]
    assert (without["ready"], without["java"]) == (False, None)
    assert "JAVA_HOME" in without["why"]


def test_the_diagnosis_says_why_an_engine_is_unavailable(found):
    assert found["engines"]["reference"]["available"]
    native = found["engines"]["native"]
    assert native["available"] or native["why"]


def test_every_available_engine_gives_the_recorded_answer(found):
    checked = {name for name, engine in found["engines"].items() if engine["available"]}
    assert set(found["self_check"]) == checked
    assert all(check["passed"] for check in found["self_check"].values())


def test_the_self_check_covers_every_kind_of_event():
    links = Links(*doctor.SELF_CHECK_THRESHOLDS)
    links.add_many(doctor.self_check_vectors())
    kinds = {event.kind for event in links.events()}
    assert kinds >= {"created", "joined", "linked", "merged", "severed", "rejoined", "split"}


def test_the_vectors_of_the_self_check_are_whole_numbers():
    vectors = doctor.self_check_vectors()
    assert vectors.shape == (100, 16)
    assert np.all(vectors == np.rint(vectors))
    assert vectors[0, :3].tolist() == doctor.self_check_vectors()[0, :3].tolist()


def test_a_wrong_answer_fails_the_command(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "SELF_CHECK_HASH", "0" * 64)
    with pytest.raises(typer.Exit) as stopped:
        doctor.doctor()
    assert stopped.value.exit_code == 1
    check = json.loads(capsys.readouterr().out)["self_check"]["reference"]
    assert not check["passed"]
    assert check["expected"] == "0" * 64


def test_a_missing_extra_is_listed_with_its_install_command(monkeypatch):
    def version(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", version)
    extras = doctor.diagnosis()["extras"]
    assert extras["plots"]["installed"] is False
    assert extras["plots"]["install"] == 'pip install "linkstream[plots]"'
