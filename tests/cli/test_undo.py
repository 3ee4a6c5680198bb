"""`linkstream undo` and `redo`: each command is one step, and undone rows are added again."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

from cli.command import begin, json_lines, refused, run, shown
from linkstream.data import voice_halves
from linkstream.store import Store

STORE = "people.links"
PRESET = ("--preset", "ge2e-windows")


@pytest.fixture(scope="module")
def voices():
    """Return 1,581 vectors, which are two batches."""
    return np.concatenate([half.X for half in voice_halves()])[:1581]


@pytest.fixture
def place(tmp_path, voices):
    np.save(tmp_path / "voices.npy", voices)
    return tmp_path


def said(place, *words):
    done = run(*words, cwd=place)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def clustered(place, *options, file="voices.npy"):
    record = said(place, "cluster", file, "--store", STORE, *options)
    return record["taken"], record["there_before"], record["vectors"]


def state(place):
    with Store.open(place / STORE, read_only=True) as store:
        return store.state_hash(), store.labels().tolist()


def steps(place):
    lines = json_lines(run("undo", STORE, "--list", cwd=place).stdout)
    return [(line["command"], line["vectors"], line["undone"]) for line in lines]


def test_clustering_again_after_undo_loses_no_row(place):
    assert clustered(place, *PRESET) == (1581, 0, 1581)
    labels = state(place)[1]
    assert said(place, "undo", STORE)["vectors"] == 0
    assert clustered(place) == (1581, 0, 1581)
    assert clustered(place) == (0, 1581, 1581)
    groups = [np.unique(each, return_inverse=True)[1] for each in (labels, state(place)[1])]
    assert len(set(zip(*groups, strict=True))) == max(groups[0]) + 1  # one to one


def test_clustering_again_after_undo_of_a_vector_adds_its_row_again(place):
    clustered(place, *PRESET)
    before = state(place)
    for vectors in (1580, 1579):
        assert said(place, "undo", STORE, "--vector")["vectors"] == vectors
    assert clustered(place) == (2, 1579, 1581)
    assert clustered(place) == (0, 1581, 1581)
    assert state(place)[1] == before[1]
    assert said(place, "undo", STORE)["vectors"] == 1579
    assert clustered(place) == (2, 1579, 1581)


def test_rows_undone_in_the_middle_of_a_file_are_added_again_in_order(place, voices):
    clustered(place, *PRESET)
    said(place, "undo", STORE, "--to", 600)
    left = len(state(place)[1])
    assert 0 < left < 1024
    np.save(place / "more.npy", np.concatenate([voices, -voices[:100]]))
    assert clustered(place, file="more.npy") == (1681 - left, left, 1681)
    with Store.open(place / STORE, read_only=True) as store:
        np.testing.assert_array_equal(
            store.vectors([left - 1, left, 1580]), voices[[left - 1, left, 1580]]
        )
    assert clustered(place, file="more.npy") == (0, 1681, 1681)


def test_redo_reverts_undo_until_another_change(place):
    clustered(place, *PRESET)
    said(place, "name", STORE, 0, "Ann")
    after = state(place)
    assert said(place, "undo", STORE)["command"] == "name"
    assert said(place, "undo", STORE)["command"] == "cluster"
    record, clusters = said(place, "redo", STORE), len(set(after[1]))
    assert record == {"vectors": 1581, "clusters": clusters, "moved": 1581, "command": "cluster"}
    assert said(place, "redo", STORE)["command"] == "name"
    assert state(place) == after
    assert "nothing to redo" in refused(run("redo", STORE, cwd=place))
    said(place, "undo", STORE)
    said(place, "name", STORE, 0, "Bea")
    assert "any other change ends" in refused(run("redo", STORE, cwd=place))


def test_the_changes_of_a_killed_command_are_one_step(place, voices):
    said(place, "cluster", "voices.npy", "--store", STORE, *PRESET)
    before = state(place)
    words = ("cluster", "-", "--dimension", 256, "--store", STORE, "--live")
    process = begin(*words, cwd=place, stdin=-1, text=False)
    for block in np.split(voices[:1500], 15):
        process.stdin.write(block.tobytes())
        process.stdin.flush()
        time.sleep(0.01)
    while len(state(place)[1]) < 1581 + 1200:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert said(place, "undo", STORE)["vectors"] == 1581
    assert state(place) == before


def test_undo_of_a_resumed_command_removes_only_its_own_rows(place, voices):
    np.save(place / "part.npy", voices[:1024])
    clustered(place, *PRESET, file="part.npy")
    assert clustered(place) == (557, 1024, 1581)
    assert said(place, "undo", STORE)["vectors"] == 1024
    assert clustered(place) == (557, 1024, 1581)


def test_each_file_of_a_watched_folder_is_a_step(place, voices):
    (place / "in").mkdir()
    for name, rows in (("a.npy", voices[:50]), ("b.npy", voices[50:120])):
        np.save(place / "in" / name, rows)
    words = ("watch", "in", "--store", STORE, *PRESET, "--once", "--every", "0.02")
    assert run(*words, cwd=place).returncode == 0
    assert sorted(steps(place)) == [("watch", 50, False), ("watch", 70, False)]
    said(place, "undo", STORE)
    taken = [line["taken"] for line in json_lines(run(*words, cwd=place).stdout)]
    assert sum(taken) in (50, 70)
    assert len(state(place)[1]) == 120


def test_the_steps_are_listed_as_json_and_as_text(place):
    clustered(place, *PRESET)
    said(place, "name", STORE, 0, "Ann")
    said(place, "undo", STORE)
    before = state(place)
    assert steps(place) == [("name", 0, True), ("cluster", 1581, False)]
    told = [line.split() for line in shown("undo", STORE, "--list", cwd=place).splitlines()]
    assert told[0] == ["Steps,", "the", "newest", "first"]
    assert told[1] == ["command", "vectors", "calls", "event"]
    assert told[2][:3] == ["name", "0", "1"]
    assert told[2][-4:] == ["undone;", "next", "to", "redo"]
    assert told[3] == ["cluster", "1,581", "2", "0", "next", "to", "undo"]
    assert state(place) == before


def test_an_empty_store_has_no_steps(place):
    clustered(place, *PRESET)
    said(place, "compact", STORE, "--yes")
    assert steps(place) == []
    assert "There is nothing to undo" in shown("undo", STORE, "--list", cwd=place)


def test_undo_of_a_vector_keeps_names(place):
    clustered(place, *PRESET)
    said(place, "name", STORE, 0, "Ann")
    assert "the last step is name" in refused(run("undo", STORE, "--vector", cwd=place))
    assert steps(place)[0] == ("name", 0, False)


@pytest.mark.parametrize(
    "options", [("--vector", "--list"), ("--to", 3, "--vector"), ("--to", 3, "--list")]
)
def test_undo_options_that_exclude_each_other_are_refused(place, options):
    clustered(place, *PRESET)
    assert "one of them, or none" in refused(run("undo", STORE, *options, cwd=place))
    assert len(state(place)[1]) == 1581


def test_undo_prints_what_was_undone_and_how_to_redo_it(place):
    clustered(place, *PRESET)
    words = shown("undo", STORE, cwd=place)
    assert words.startswith("Undone: cluster. 1,581 vectors in ")
    assert "linkstream redo brings it back" in " ".join(words.split())
    assert shown("redo", STORE, cwd=place).startswith("Redone: cluster. 0 vectors in 0 clusters")
