"""`search`, `changes`, and tables of clusters."""

from __future__ import annotations

import csv
import json
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest

from cli.command import json_lines, refused, run, run_on_a_terminal
from linkstream.store import Store
from linkstream.store.blocks import NO_TIME, Attached
from linkstream.store.write_requests import WriteRequest
from store.operations import new, vectors

STORE = "people.links"


def told(folder, *words):
    done = run(*words, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return json_lines(done.stdout)


def test_search_needs_the_index_and_finds_words_and_fields(folder):
    assert "linkstream search people.links --on" in refused(
        run("search", STORE, "window", cwd=folder)
    )
    assert told(folder, "search", STORE, "--on") == [{"store": STORE, "search": True}]
    (hit,) = told(folder, "search", STORE, '"window 7"', "--field", "file=five.wav")
    assert (hit["vector"], hit["payload"]["text"]) == (7, "window 7")
    assert told(folder, "search", STORE, "window", "--field", "file=six.wav") == []
    found = told(folder, "search", STORE, "wind*", "--limit", 3, "--before", 100)
    assert [hit["vector"] for hit in found] == [99, 98, 97]
    with Store.open(folder / STORE, read_only=True) as store:
        assert all(hit["cluster"] == store.labels()[hit["vector"]] for hit in found)
    assert told(folder, "search", STORE, "--off") == [{"store": STORE, "search": False}]
    refused(run("search", STORE, "window", cwd=folder))


def test_search_in_a_named_cluster_and_the_best_first(folder):
    run("search", STORE, "--on", cwd=folder)
    run("name", STORE, 0, "Ann", cwd=folder)
    with Store.open(folder / STORE, read_only=True) as store:
        members = store.members(0).tolist()
    hits = told(folder, "search", STORE, "window", "--cluster", "Ann", "--limit", 500, "--best")
    assert [hit["vector"] for hit in hits] == members


def test_search_shows_a_table_on_a_terminal_and_how_to_go_on(folder):
    run("search", STORE, "--on", cwd=folder)
    _, shown = run_on_a_terminal("search", STORE, "window", "--limit", 2, cwd=folder)
    assert "window 299" in shown
    assert "--before 298" in shown
    _, nothing = run_on_a_terminal("search", STORE, "nothing", cwd=folder)
    assert "No payload has all of this." in nothing


@pytest.mark.parametrize(
    "words",
    [
        (),
        ('"',),
        ("window", "--field", "file"),
        ("window", "--field", "=a"),
        ("--on", "--off"),
        ("window", "--on"),
        ("window", "--cluster", "Zoe"),
        ("window", "--limit", 5000),
        ("r*",),
    ],
)
def test_search_refuses_in_words_of_the_command_line(folder, words):
    if "--on" not in words:
        run("search", STORE, "--on", cwd=folder)
    message = refused(run("search", STORE, *words, cwd=folder))
    for python in ("where=", "search(", "Store.", "before="):
        assert python not in message


def test_changes_are_told_as_text_and_as_json_with_each_vector(folder):
    with Store.open(folder / STORE) as store:
        before = store.n_events
        store.move(5, int(store.labels()[-1]))
        expected = store.changes(before).to_dict()
    assert told(folder, "changes", STORE, "--since", before) == [json.loads(json.dumps(expected))]
    _, shown = run_on_a_terminal("changes", STORE, "--since", before, "--until", before, cwd=folder)
    assert f"Events {before:,} to {before:,}: vectors: 0 added" in shown
    (whole,) = told(folder, "changes", STORE)
    assert whole["counts"]["added"] == 300


def test_a_date_stands_for_the_first_call_with_a_vector_of_that_time_or_later(tmp_path):
    monday = datetime(2026, 5, 4, tzinfo=timezone.utc)
    X = vectors(np.random.default_rng(3), 9)
    with new(tmp_path / STORE) as store:
        for day in range(3):
            stamp = int((monday + timedelta(days=day)).timestamp()) * 10**6
            times = np.array([NO_TIME, stamp, stamp - 5], dtype=np.int64)
            request = WriteRequest(verb="add_many", rows=X[3 * day : 3 * day + 3])
            request.attached = Attached(times=times)
            store.handle.submit(request).result()
        firsts = [operation.first_event for operation in store.journal.operations()]
        end = store.n_events

    def since(words):
        (record,) = told(tmp_path, "changes", STORE, "--since", words)
        return record["since"]

    assert since("2026-05-04") == since("2020-01-01") == firsts[0]
    assert since("2026-05-05") == since("2026-05-04T08:30") == firsts[1]
    assert since("2026-05-06T02:00+02:00") == firsts[2]
    assert since("2027-01-01") == end
    (record,) = told(tmp_path, "changes", STORE, "--since", "2026-05-05", "--until", "2026-05-06")
    assert (record["since"], record["until"]) == (firsts[1], firsts[2])


def test_a_date_for_vectors_without_times_and_words_that_are_no_moment_are_refused(folder):
    assert "have no times" in refused(run("changes", STORE, "--since", "2026-05-04", cwd=folder))
    assert "a time such as" in refused(run("changes", STORE, "--since", "monday", cwd=folder))
    refused(run("changes", STORE, "--since", "99999", cwd=folder))


def test_a_table_of_clusters_is_exported(folder):
    done = run("export", STORE, "clusters.csv", "--clusters", cwd=folder)
    assert done.returncode == 0
    with (folder / "clusters.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    with Store.open(folder / STORE, read_only=True) as store:
        clusters = store.clusters()
    assert [(int(r["cluster"]), int(r["size"])) for r in rows] == [(c.id, c.size) for c in clusters]
    for words in (
        ("x.npz", "--clusters"),
        ("-", "--clusters"),
        ("x.csv", "--clusters", "--vectors"),
    ):
        refused(run("export", STORE, *words, cwd=folder))
