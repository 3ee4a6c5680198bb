"""`linkstream cluster`: IDs for the vectors of a file."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

from cli.command import COMMAND, json_lines, run, run_on_a_terminal
from linkstream import Links
from linkstream.data import voice_halves

T_C, T_S, T_P = 0.766, 0.645, 0.738
THRESHOLDS = (
    *("--cluster-similarity", T_C),
    *("--subcluster-similarity", T_S),
    *("--pair-similarity-max", T_P),
)


@pytest.fixture(scope="module")
def voices():
    return voice_halves()[1].X[:200]


@pytest.fixture
def folder(tmp_path, voices):
    np.save(tmp_path / "voices.npy", voices)
    return tmp_path


def failed(done):
    """Return the error of a refused command; check that it is one line."""
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_a_pipe_gets_one_line_for_each_decision(folder, voices):
    done = run("cluster", "voices.npy", *THRESHOLDS, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    links = Links(T_C, T_S, T_P)
    for line, vector in zip(json_lines(done.stdout), voices, strict=True):
        decision = links.add(vector)
        assert line == {
            "vector": decision.sequence,
            "cluster": decision.cluster,
            "subcluster": decision.subcluster,
            "kind": decision.kind,
            "similarity": decision.similarity,
            "threshold": decision.threshold,
            "cluster_margin": None,
            "probability": None,
        }


def test_the_ids_of_a_npy_are_those_of_the_lines(folder, voices):
    run("cluster", "voices.npy", *THRESHOLDS, "--output", "ids.npy", cwd=folder)
    run("cluster", "voices.npy", *THRESHOLDS, "--output", "ids.jsonl", cwd=folder)
    ids = np.load(folder / "ids.npy", allow_pickle=False)
    lines = json_lines((folder / "ids.jsonl").read_text())
    assert ids.dtype == np.int64
    assert ids.tolist() == [line["cluster"] for line in lines]
    np.testing.assert_array_equal(ids, Links(T_C, T_S, T_P).add_many(voices))


def test_a_saved_clusterer_continues(folder, voices):
    options = ("--output", "ids.npy", "--save", "model.links")
    assert run("cluster", "voices.npy", *THRESHOLDS, *options, cwd=folder).returncode == 0
    links = Links(T_C, T_S, T_P)
    links.add_many(voices)
    assert Links.load(folder / "model.links").state_hash() == links.state_hash()


def test_an_array_of_an_archive_is_chosen_by_key(folder, voices):
    np.savez(folder / "two.npz", first=voices[:3], second=voices[:5])
    done = run("cluster", "two.npz", *THRESHOLDS, "--key", "second", cwd=folder)
    assert len(json_lines(done.stdout)) == 5
    assert "'first', 'second'" in failed(run("cluster", "two.npz", *THRESHOLDS, cwd=folder))


def test_a_terminal_gets_a_table(folder):
    code, shown = run_on_a_terminal("cluster", "voices.npy", *THRESHOLDS, cwd=folder)
    assert code == 0
    for words in ("200/200", "200 vectors", "The biggest clusters", "--output ids.npy"):
        assert words in shown
    assert '{"vector"' not in shown


def test_a_terminal_gets_lines_if_requested(folder):
    code, shown = run_on_a_terminal(
        "cluster", "voices.npy", *THRESHOLDS, "--output", "-", cwd=folder
    )
    assert code == 0
    assert '{"vector": 0, "cluster": 0' in shown


def test_a_file_that_is_missing_or_holds_objects_is_refused(folder):
    np.save(folder / "objects.npy", np.array([[{}], [{}]]), allow_pickle=True)
    assert "does not exist" in failed(run("cluster", "none.npy", *THRESHOLDS, cwd=folder))
    assert "never read" in failed(run("cluster", "objects.npy", *THRESHOLDS, cwd=folder))


@pytest.mark.parametrize("output", ["ids.npy", "ids.jsonl"])
def test_a_bad_row_is_named_by_its_index_and_no_output_is_left(folder, voices, output):
    rows = np.concatenate([voices] * 6)
    rows[1100] = np.nan
    np.save(folder / "bad.npy", rows)
    done = run("cluster", "bad.npy", *THRESHOLDS, "--output", output, cwd=folder)
    assert "bad.npy, row 1100 is not finite" in failed(done)
    assert sorted(path.name for path in folder.iterdir()) == ["bad.npy", "voices.npy"]


def test_thresholds_out_of_range_are_refused(folder):
    wrong = ("--cluster-similarity", 2, *THRESHOLDS[2:])
    assert "--cluster-similarity is 2.0" in failed(run("cluster", "voices.npy", *wrong, cwd=folder))


@pytest.mark.parametrize(
    "options", [("--output", "ids.csv"), ("--output", "no/ids.npy"), ("--save", "no/model.links")]
)
def test_an_output_that_cannot_be_written_is_refused_at_the_start(folder, options):
    failed(run("cluster", "voices.npy", *THRESHOLDS, *options, cwd=folder))


def test_a_file_without_rows_gives_no_ids(folder):
    np.save(folder / "empty.npy", np.empty((0, 256), dtype=np.float32))
    done = run("cluster", "empty.npy", *THRESHOLDS, cwd=folder)
    assert (done.returncode, done.stdout) == (0, "")


def test_closing_the_pipe_early_prints_no_error(folder):
    words = [*COMMAND, "cluster", "voices.npy", *map(str, THRESHOLDS)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, cwd=folder, stdout=pipe, stderr=pipe, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == ""


def test_a_preset_sets_the_thresholds(folder):
    done = run("cluster", "voices.npy", "--preset", "ge2e-windows", cwd=folder)
    assert (done.returncode, len(json_lines(done.stdout))) == (0, 200)


@pytest.mark.parametrize("file", ["voices.npy", "voices.jsonl"])
@pytest.mark.parametrize("store", [(), ("--store", "faces.links")])
def test_a_preset_for_another_dimension_is_refused_and_creates_no_store(folder, file, store):
    (folder / "voices.jsonl").write_text(f"{[1.0] * 256}\n", "utf-8")
    done = run("cluster", file, "--preset", "arcface", *store, cwd=folder)
    assert (
        f"{file}: vectors of dimension 256; expected dimension 512: preset 'arcface' is for "
        "ArcFace MobileFaceNet. Embed with that encoder"
    ) in failed(done)
    assert {path.name for path in folder.iterdir()} == {"voices.npy", "voices.jsonl"}


def test_the_error_for_another_dimension_names_the_encoder(folder):
    store = ("--store", "faces.links", "--preset", "arcface")
    np.save(folder / "faces.npy", np.ones((2, 512)))
    assert run("cluster", "faces.npy", *store, cwd=folder).returncode == 0
    told = failed(run("cluster", "voices.npy", *store[:2], cwd=folder))
    assert "voices.npy, row 0: vectors of dimension 256; expected dimension 512: preset" in told
    assert "choose a preset or thresholds for your encoder" in told


def test_evidence_and_healing_can_be_set(folder, voices):
    options = (*THRESHOLDS, "--heal", "settle", "--evidence", "cluster")
    done = run("cluster", "voices.npy", *options, cwd=folder)
    ids = [line["cluster"] for line in json_lines(done.stdout)]
    links = Links(T_C, T_S, T_P, heal="settle", evidence="cluster")
    assert ids == links.add_many(voices).tolist()
    named = run("cluster", "voices.npy", *THRESHOLDS, "--mode", "best", cwd=folder)
    assert named.stdout == done.stdout
    wrong = failed(run("cluster", "voices.npy", *THRESHOLDS, "--mode", "fast", cwd=folder))
    assert "expected 'paper' or 'best'" in wrong


@pytest.mark.parametrize("options", [[], ["--preset", "arcface", *THRESHOLDS]])
def test_neither_and_both_of_thresholds_and_preset_are_refused(folder, options):
    done = run("cluster", "voices.npy", *options, cwd=folder)
    assert "--preset NAME, or all of --cluster-similarity" in failed(done)
