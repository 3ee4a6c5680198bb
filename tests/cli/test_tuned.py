"""From a tuning to decisions with probabilities, on the command line alone: `--tuned`."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from cli.command import json_lines, run, run_on_a_terminal
from confidence.sure import MODEL, STREAM, THRESHOLDS, links
from linkstream import Space, Thresholds
from linkstream.data import voice_halves
from linkstream.errors import InputFileError
from linkstream.identity.settling import Healing
from linkstream.store import Store
from linkstream.tuning import Tuned, tune

VOICES = voice_halves()[0]
ARRIVALS = ("created", "joined", "linked")


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "some.npy", STREAM.vectors[:60])
    np.savez(tmp_path / "voices.npz", X=VOICES.X, y=VOICES.y)
    Tuned(THRESHOLDS, confidence=MODEL).save(tmp_path / "tuned.json")
    return tmp_path


def test_what_tune_saves_is_what_it_found(folder):
    words = ("--trials", 6, "--orders", 1, "--mode", "best", "--rebuild")
    done = run("tune", "voices.npz", *words, "--save", "found.json", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    options = {"trials": 6, "orders": 1, "mode": "best", "rebuild": True}
    found = tune(VOICES.X, VOICES.y, **options)
    saved = Tuned.load(folder / "found.json")
    assert saved.to_dict() == found.tuned.to_dict()
    assert saved.links().state_hash() == found.links().state_hash()
    assert saved.confidence == found.confidence
    (folder / "told.json").write_text(done.stdout)
    assert Tuned.load(folder / "told.json").to_dict() == saved.to_dict()


def test_decisions_in_a_pipe_have_the_probabilities_of_links(folder):
    done = run("cluster", "some.npy", "--tuned", "tuned.json", cwd=folder)
    expected = [links_of.to_dict() for links_of in map(links().add, STREAM.vectors[:60])]
    rows = json_lines(done.stdout)
    for name in ("cluster_margin", "probability", "kind", "cluster"):
        assert [row[name] for row in rows] == [each[name] for each in expected]
    assert sum(row["probability"] is not None for row in rows) > 40


def test_a_store_made_with_it_has_the_model(folder):
    for _ in range(2):
        words = ("some.npy", "--store", "people.links", "--tuned", "tuned.json")
        done = run("cluster", *words, cwd=folder)
        assert (done.returncode, done.stderr) == (0, "")
    with Store.open(folder / "people.links") as store:
        assert store.confidence.model == MODEL
        assert store.thresholds == THRESHOLDS
        assert store.n_vectors == 60
    [record] = json_lines(run("inspect", "people.links", cwd=folder).stdout)
    expected = {"why": "", "identities": 40, "answers": 0, "check": None, "drifted": False}
    assert record["store"]["confidence"] == expected


def test_inspect_says_in_one_line_what_probabilities_rest_on_or_why_they_are_unknown(folder):
    run("cluster", "some.npy", "--store", "a.links", "--tuned", "tuned.json", cwd=folder)
    _, shown = run_on_a_terminal("inspect", "a.links", cwd=folder)
    assert "from 40 identities, 0 answers" in shown
    few = ("--cluster-similarity", 0.8, "--subcluster-similarity", 0.8)
    few += ("--pair-similarity-max", 0.9)
    run("cluster", "some.npy", "--store", "b.links", *few, cwd=folder)
    _, shown = run_on_a_terminal("inspect", "b.links", cwd=folder)
    assert "unknown: no model; linkstream cluster --tuned FILE makes a store with one" in shown


def test_an_option_beside_it_overrides_that_of_the_file_and_voids_the_model(folder):
    words = ("--store", "c.links", "--tuned", "tuned.json", "--evidence", "cluster")
    assert run("cluster", "some.npy", *words, cwd=folder).returncode == 0
    [record] = json_lines(run("inspect", "c.links", cwd=folder).stdout)
    assert record["store"]["confidence"]["why"].startswith("fitted with other evidence")


@pytest.mark.parametrize(
    "words", [("--preset", "ge2e"), ("--cluster-similarity", 0.7), ("--granularity", "voices")]
)
def test_thresholds_beside_it_are_refused(folder, words):
    done = run("cluster", "some.npy", "--tuned", "tuned.json", *words, cwd=folder)
    assert done.returncode == 2
    assert "--tuned tuned.json and" in done.stderr
    assert "leave the others out" in done.stderr


def test_a_space_with_a_mean_and_healing_survive_the_file(tmp_path):
    mean = np.linspace(-0.2, 0.3, 8)
    options = {"evidence": "cluster", "heal": Healing("settle", growth=1.7)}
    tuned = Tuned(Thresholds(0.7, 0.6, 0.9), Space(mean, "encoder"), options)
    tuned.save(tmp_path / "tuned.json")
    again = Tuned.load(tmp_path / "tuned.json")
    assert again.to_dict() == tuned.to_dict()
    assert again.links().healing == tuned.links().healing
    again.space.check_same(tuned.space)
    assert "confidence" not in again.arguments()


GOOD = Tuned(THRESHOLDS, confidence=MODEL).to_dict()


@pytest.mark.parametrize(
    "change",
    [
        {"thresholds": {"cluster_similarity": 2.0}},
        {"thresholds": None},
        {"options": {"threads": 3}},
        {"options": {"heal": "always"}},
        {"options": {"heal": {"mode": "settle", "growth": -1}}},
        {"space": {"mean": [float("nan")] * 3, "model": None}},
        {"space": {"mean": "x", "model": 3}},
        {"confidence": {"held": []}},
        {"rebuild_thresholds": [0.7, 0.6, 0.9]},
    ],
)
def test_a_file_that_holds_something_else_is_refused(tmp_path, change):
    (tmp_path / "tuned.json").write_text(json.dumps(GOOD | change))
    with pytest.raises(InputFileError, match=r"tuned\.json: no settings of a tuning \(."):
        Tuned.load(tmp_path / "tuned.json")


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"[]", b"null", b"{}", b'{"thresholds": 1}'])
def test_a_file_that_is_no_object_of_settings_is_refused(folder, data):
    (folder / "other.json").write_bytes(data)
    done = run("cluster", "some.npy", "--tuned", "other.json", cwd=folder)
    assert done.returncode == 2
    assert "expected a file that linkstream tune --save wrote" in done.stderr
    missing = run("cluster", "some.npy", "--tuned", "none.json", cwd=folder)
    assert "No such file" in missing.stderr


def test_rows_events_and_tables_of_a_store_say_how_sure_each_decision_was(folder):
    words = ("some.npy", "--store", "people.links", "--output")
    run("cluster", *words, "first.jsonl", "--tuned", "tuned.json", cwd=folder)
    run("cluster", *words, "again.jsonl", cwd=folder)
    expected = links().decide_many(STREAM.vectors[:60])
    assert (folder / "first.jsonl").read_text() == (folder / "again.jsonl").read_text()
    rows = json_lines((folder / "first.jsonl").read_text())
    run("export", "people.links", "people.jsonl", cwd=folder)
    run("export", "people.links", "people.parquet", cwd=folder)
    table = json_lines((folder / "people.jsonl").read_text())
    parquet = pq.read_table(folder / "people.parquet").to_pylist()
    for found in (rows, table, parquet):
        for name in ("cluster_margin", "probability"):
            column = np.array([row[name] for row in found], dtype=float)
            np.testing.assert_allclose(column, getattr(expected, name), atol=1e-6)
    events = json_lines(run("events", "people.links", cwd=folder).stdout)
    told = {e["vector"]: e.get("probability") for e in events if e["kind"] in ARRIVALS}
    assert [told[row["vector"]] for row in rows] == [row["probability"] for row in rows]
    known = next(row["probability"] for row in rows if row["probability"] is not None)
    _, shown = run_on_a_terminal("events", "people.links", cwd=folder)
    assert f"probability {known:.3f}" in shown
    plain = ("--cluster-similarity", 0.8, "--subcluster-similarity", 0.8)
    plain += ("--pair-similarity-max", 0.9)
    run("cluster", "some.npy", "--store", "b.links", *plain, "--output", "b.jsonl", cwd=folder)
    assert set(json_lines((folder / "b.jsonl").read_text())[0]) == {"row", "vector", "cluster"}


def test_explain_says_how_probably_the_answer_is_right(folder):
    run("cluster", "some.npy", "--store", "people.links", "--tuned", "tuned.json", cwd=folder)
    words = ("explain", "people.links", "some.npy", "--row", 20)
    [record] = json_lines(run(*words, cwd=folder).stdout)
    assert record["probability"] is not None
    _, shown = run_on_a_terminal(*words, cwd=folder)
    assert f"right with probability {record['probability']:.3f}" in shown
