"""`inspect`, `explain`, `events`: they change nothing and need no lock."""

from __future__ import annotations

import json
import signal

import numpy as np
import pytest

from cli.command import begin, json_lines, refused, run, run_on_a_terminal
from linkstream.engine.event_values import from_dict
from linkstream.store import Store

STORE = "people.links"


def told(folder, *words):
    done = run(*words, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.fixture
def store(folder):
    with Store.open(folder / STORE, read_only=True) as opened:
        yield opened


def test_inspect_shows_figures_clusters_and_operations(folder, store):
    run("name", STORE, 0, "Ann", cwd=folder)
    store.refresh()
    record = told(folder, "inspect", STORE)
    assert record["store"]["vectors"] == 300
    assert [c["size"] for c in record["clusters"]] == sorted(
        (c.size for c in store.clusters()), reverse=True
    )[:10]
    assert next(c["name"] for c in record["clusters"] if c["id"] == 0) == "Ann"
    assert [o["verb"] for o in record["operations"]] == ["add_many", "name"]
    assert record["operations"][1]["arguments"]["name"] == "Ann"


def test_inspect_shows_the_last_operations_only(folder):
    for number in range(3):
        run("name", STORE, 0, f"Ann {number}", "--rename", cwd=folder)
    record = told(folder, "inspect", STORE, "--limit", 2)
    assert [o["number"] for o in record["operations"]] == [3, 4]
    assert len(record["clusters"]) == 2


def test_inspect_of_a_cluster_shows_its_parts_and_history(folder, store):
    record = told(folder, "inspect", STORE, "--cluster", 0, "--limit", 3)
    members = np.flatnonzero(store.labels() == 0)
    assert [m["vector"] for m in record["members"]] == members[::-1][:3].tolist()
    assert record["members"][0]["payload"] == {
        "text": f"window {members[-1]}",
        "file": "five.wav",
    }
    assert record["cluster"]["size"] == len(members)
    assert record["history"]["chapters"][0]["kind"] == "created"
    assert record["subclusters"][0]["vectors"] <= len(members)


def test_inspect_of_a_former_id_shows_its_successor(folder):
    run("merge", STORE, 0, 1, cwd=folder)
    assert told(folder, "inspect", STORE, "--cluster", 1)["cluster"]["id"] == 0
    run("forget", STORE, 0, "--yes", cwd=folder)
    record = told(folder, "inspect", STORE, "--cluster", 0)
    assert record["cluster"] == {"id": 0, "gone": True}
    assert record["story"][-1].endswith("forgotten")


def test_inspect_shows_tables_on_a_terminal(folder):
    code, shown = run_on_a_terminal("inspect", STORE, cwd=folder)
    assert code == 0
    for words in ("The biggest clusters", "The last operations", "subclusters", "300"):
        assert words in shown
    code, shown = run_on_a_terminal("inspect", STORE, "--cluster", "0", cwd=folder)
    assert code == 0
    for words in ("Cluster 0", "Its newest vectors", "window", "Its history", "born"):
        assert words in shown
    assert "{" not in shown.partition("Its newest")[0]


def test_explain_accepts_a_row_of_a_file_numbers_and_a_vector(folder, store):
    x = np.load(folder / "voices.npy")[7]
    expected = json.loads(json.dumps(store.explain(x).to_dict()))
    assert told(folder, "explain", STORE, "voices.npy", "--row", 7) == expected
    assert told(folder, "explain", STORE, json.dumps(x.tolist())) == expected
    assert told(folder, "explain", STORE, "--vector", 7)["cluster"] == expected["cluster"]
    assert told(folder, "explain", STORE, "voices.jsonl", "--row", 299, "--limit", 2)["nearest"]


def test_explain_compares_two_clusters_or_vectors(folder, store):
    record = told(folder, "explain", STORE, "--pair", 3, 210)
    assert record == json.loads(json.dumps(store.explain_pair(3, 210).to_dict()))
    assert told(folder, "explain", STORE, "--pair", 0, 1, "--of", "clusters")["together"] is False


def test_explain_writes_sentences_on_a_terminal(folder):
    code, shown = run_on_a_terminal("explain", STORE, "voices.npy", cwd=folder)
    assert code == 0
    assert "joins subcluster" in shown


@pytest.mark.parametrize(
    "words", [(), ("voices.npy", "--vector", "3"), ("voices.npy", "--row", "300"), ("[1, 2",)]
)
def test_explain_refuses_an_incomplete_question(folder, words):
    refused(run("explain", STORE, *words, cwd=folder))


def test_events_are_those_of_the_store(folder, store):
    lines = json_lines(run("events", STORE, cwd=folder).stdout)
    assert [from_dict(line) for line in lines] == store.events()
    some = json_lines(run("events", STORE, "--since", 100, "--limit", 7, cwd=folder).stdout)
    assert some == lines[100:107]


def test_events_are_readable_lines_on_a_terminal(folder):
    code, shown = run_on_a_terminal("events", STORE, "--limit", 2, cwd=folder)
    assert code == 0
    first, second = shown.splitlines()
    assert first.split() == ["0", "vector", "0", "created", "subcluster", "0,", "cluster", "0"]
    assert "joined" in second


def test_events_are_followed_while_another_process_writes(folder):
    with Store.open(folder / STORE) as writer:
        last = writer.events()[-1].sequence
        words = ("events", STORE, "--since", last, "--follow", "--every", "0.02")
        process = begin(*words, cwd=folder)
        assert json.loads(process.stdout.readline())["sequence"] == last
        writer.name(0, "Ann")
        assert json.loads(process.stdout.readline())["name"] == "Ann"
        writer.add_many(np.load(folder / "voices.npy")[:1])
        assert json.loads(process.stdout.readline())["kind"] == "joined"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "Interrupted. Nothing was changed.\n")
