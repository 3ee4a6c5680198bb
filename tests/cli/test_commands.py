"""`move`, `calibrate`, `levels`, `settle`, `review`, `enrol`, `presets`; shared options."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cli.command import STORE, json_lines, opened, refused, run, run_before_people, said
from linkstream.cli.app import COMMANDS
from linkstream.presets import preset, presets
from linkstream.store import Store
from linkstream.tuning import levels
from linkstream.tuning.labels import read_pairs


def test_move_puts_a_vector_into_another_cluster_and_undo_brings_it_back(folder):
    with opened(folder) as store:
        before, home = store.state_hash(), store.labels()[7]
    other = 6 if home != 6 else 0
    assert said(folder, "move", STORE, 7, other)["cluster"] == other
    with opened(folder) as store:
        assert store.labels()[7] == other
    assert "It is there already" in refused(run("move", STORE, 7, other, cwd=folder))
    said(folder, "undo", STORE)
    with opened(folder) as store:
        assert store.state_hash() == before


def test_settle_changes_nothing_without_its_option(folder):
    with opened(folder) as store:
        before, expected = store.state_hash(), store.settle().to_dict()
    assert said(folder, "settle", STORE) == json.loads(json.dumps(expected))
    with opened(folder) as store:
        assert store.state_hash() == before
    done = said(folder, "settle", STORE, "--apply")
    assert (done["applied"], done["n_clusters_after"]) == (True, expected["n_clusters_after"])
    with opened(folder) as store:
        assert store.n_clusters == expected["n_clusters_after"] < expected["n_clusters_before"]


def test_rebuild_changes_nothing_without_its_option(folder):
    with opened(folder) as store:
        before, expected = store.partition_hash(), store.rebuild().to_dict()
    assert said(folder, "rebuild", STORE) == json.loads(json.dumps(expected))
    with opened(folder) as store:
        assert store.partition_hash() == before
    done = said(folder, "rebuild", STORE, "--apply")
    assert (done["applied"], done["n_clusters"][1]) == (True, expected["n_clusters"][1])
    with opened(folder) as store:
        assert store.n_clusters == expected["n_clusters"][1]
        assert store.rebuild().flows == ()


def test_the_commands_that_a_review_prints_work(folder):
    lines = json_lines(run("review", STORE, "--limit", 3, cwd=folder).stdout)
    with opened(folder) as store:
        expected = [question.to_dict() for question in store.review_queue(limit=3)]
    assert lines == json.loads(json.dumps(expected))
    shown = run_before_people("review", STORE, "--limit", 3, cwd=folder).stdout.splitlines()
    lead = ("  yes: linkstream ", "  no:  linkstream ")
    answers = [line[len(lead[0]) :].split() for line in shown if line.startswith(lead)]
    assert len(answers) == 2 * len(lines)
    for words in answers[::2]:
        assert len({*said(folder, *words)["merged"]}) == 2


def test_enrol_makes_a_cluster_with_a_name_that_later_vectors_join(folder):
    record = said(folder, "enrol", STORE, "Bea", "arrivals/monday.npy")
    assert (record["name"], record["vectors"]) == ("Bea", 40)
    with opened(folder) as store:
        assert store.named("Bea") == record["cluster"]
        again = store.predict(np.load(folder / "arrivals" / "monday.npy"))
        assert record["cluster"] in again


def test_presets_are_listed_with_their_levels_and_thresholds(tmp_path):
    lines = json_lines(run("presets", cwd=tmp_path).stdout)
    assert [line["name"] for line in lines] == list(presets())
    assert all(len(line["thresholds"]) == 3 for line in lines)
    for line in lines:
        chosen = presets()[line["name"]]
        assert list(line["levels"]) == list(chosen.levels)
        assert line["default"] == chosen.default
    shown = run_before_people("presets", cwd=tmp_path).stdout
    assert all(level in shown for each in presets().values() for level in each.levels)


def test_a_granularity_chooses_a_level_of_the_preset(folder):
    words = ("cluster", "voices.npy", "--preset", "ge2e", "--granularity")
    for level in ("sessions", "0.25"):
        said(folder, *words, level, "--store", f"{level}.links")
        with Store.open(folder / f"{level}.links", read_only=True) as store:
            assert store.thresholds == preset("ge2e", level).thresholds


def test_levels_are_those_of_the_library_with_texts_of_the_example_rows(folder):
    words = ("levels", "voices.jsonl", "--column", "embedding", "--preset", "ge2e")
    record = said(folder, *words, "--show", "text", "--examples", 2)
    expected = levels(np.load(folder / "voices.npy"), "ge2e", examples=2)
    counts = [each["n_clusters"] for each in record["levels"]]
    assert counts == [each.n_clusters for each in expected.levels]
    assert (record["n_vectors"], record["suggested"]) == (300, expected.suggested)
    for example in record["levels"][0]["examples"]:
        assert example["shown"] == [f"window {row}" for row in example["rows"]]
    shown = run_before_people(*words, "--show", "text", cwd=folder).stdout
    assert f"--preset ge2e --granularity {expected.suggested}" in shown
    assert "The cluster of 'window " in shown


def test_levels_without_a_preset_end_with_a_command_of_thresholds(folder):
    shown = run_before_people("levels", "arrivals/monday.npy", cwd=folder).stdout
    assert "coarsest" in shown
    assert "--cluster-similarity" in shown


def test_calibrate_with_a_preset_ends_with_a_command_of_a_granularity(folder):
    pairs = ("--same", "same.csv", "--different", "different.csv", "--preset", "ge2e")
    record = said(folder, "calibrate", "voices.npy", *pairs)
    assert (record["preset"], record["decided"]) == ("ge2e", True)
    shown = run_before_people("calibrate", "voices.npy", *pairs, cwd=folder).stdout
    assert f"--preset ge2e --granularity {record['granularity']:g}" in shown


def test_calibrate_without_evidence_reports_that_it_cannot_decide(folder):
    noise = np.random.default_rng(0).standard_normal((60, 16))
    np.save(folder / "noise.npy", noise)
    done = run("calibrate", "noise.npy", cwd=folder)
    assert (done.returncode, done.stderr) == (1, "")
    record = json.loads(done.stdout)
    assert record["thresholds"] is None
    assert "Cannot decide" in record["advice"]
    assert "--same and --different" in record["advice"]


def test_calibrate_reads_pairs_as_text_and_as_arrays(folder):
    rows = read_pairs(str(folder / "same.csv"), vectors=folder / "voices.npy")
    assert rows.shape == (40, 2)
    np.save(folder / "same.npy", rows)
    np.savez(folder / "all.npz", X=np.load(folder / "voices.npy"), same=rows)
    for source, vectors in ((str(folder / "same.npy"), "voices.npy"), ("same", "all.npz")):
        again = read_pairs(source, vectors=folder / vectors)
        np.testing.assert_array_equal(again, rows)
    (folder / "bad.csv").write_text("a,b\n1,2\n3,x\n")
    told = refused(run("calibrate", "voices.npy", "--same", "bad.csv", cwd=folder))
    assert "bad.csv, line 3: '3,x'" in told
    told = refused(run("calibrate", "voices.npy", "--same", "same.csv", cwd=folder))
    assert "--different" in told


# What all commands have


def test_every_command_has_a_short_help_and_a_format(tmp_path):
    for name in COMMANDS:
        words = [name, "create"] if name == "token" else [name]
        done = run(*words, "-h", cwd=tmp_path)
        assert done.returncode == 0
        assert "--format" in done.stdout, name


def test_the_format_option_overrides_the_default_of_pipe_and_terminal(folder):
    for words in (("inspect", STORE), ("presets",), ("verify", STORE), ("review", STORE)):
        text = run(*words, "--format", "text", cwd=folder).stdout
        assert not text.startswith("{"), words
        shown = run_before_people(*words, "--format", "json", cwd=folder).stdout
        assert json_lines(shown)
        assert shown == run(*words, cwd=folder).stdout
    three = ("--cluster-similarity", 0.6, "--subcluster-similarity", 0.6)
    words = ("cluster", "voices.npy", *three, "--pair-similarity-max", 0.7)
    assert "The biggest clusters" in run(*words, "--format", "text", cwd=folder).stdout
    assert len(json_lines(run_before_people(*words, "--format", "json", cwd=folder).stdout)) == 300
    assert "text or json" in refused(run("presets", "--format", "xml", cwd=folder))
    assert "one of them" in refused(run("presets", "--json", "--format", "text", cwd=folder))


@pytest.mark.parametrize(
    ("typed", "meant"), [("culster", "cluster"), ("inspct", "inspect"), ("delete", "forget")]
)
def test_the_error_for_a_mistyped_command_names_the_nearest_one(tmp_path, typed, meant):
    assert f"Did you mean {meant}" in refused(run(typed, cwd=tmp_path))


def test_the_error_for_a_mistyped_option_names_the_nearest_one(folder):
    assert "Did you mean --cluster?" in refused(run("inspect", STORE, "--cluste", 0, cwd=folder))


@pytest.mark.parametrize("words", [("forget", STORE, 0), ("compact", STORE)])
def test_without_a_terminal_destructive_commands_need_yes(folder, words):
    run("forget", STORE, "--vector", 5, "--yes", cwd=folder)
    before = {path.name: path.read_bytes() for path in folder.glob("people.links")}
    told = refused(run(*words, cwd=folder))
    assert "--yes" in told
    assert before == {path.name: path.read_bytes() for path in folder.glob("people.links")}
    assert run(*words, "--yes", cwd=folder).returncode == 0


def test_an_export_replaces_a_file_only_with_force(folder):
    said(folder, "export", STORE, "table.csv")
    (folder / "table.csv").write_text("mine")
    assert "--force" in refused(run("export", STORE, "table.csv", cwd=folder))
    assert (folder / "table.csv").read_text() == "mine"
    said(folder, "export", STORE, "table.csv", "--force")
    assert len((folder / "table.csv").read_text()) > 1000


def test_an_export_to_stdout_is_json_lines_and_creates_no_folder(folder):
    lines = json_lines(run("export", STORE, "-", cwd=folder).stdout)
    assert [line["vector"] for line in lines] == list(range(300))
    said(folder, "export", STORE, "table.jsonl")
    assert lines == json_lines((folder / "table.jsonl").read_text())
    assert not (folder / "-").exists()


def test_an_unknown_file_extension_creates_no_folder(folder):
    assert "e.csv" in refused(run("export", STORE, "e.xlsx", cwd=folder))
    assert not (folder / "e.xlsx").exists()
    said(folder, "export", STORE, "people.v2/")
    assert (folder / "people.v2").is_dir()


def test_a_new_store_is_removed_if_its_rows_are_refused(folder):
    bad = np.load(folder / "voices.npy")
    bad[3] = np.nan
    np.save(folder / "bad.npy", bad)
    words = ("cluster", "bad.npy", "--store", "new.links", "--preset", "ge2e-windows")
    assert "row 3" in refused(run(*words, cwd=folder))
    assert not list(folder.glob("new.links*"))
