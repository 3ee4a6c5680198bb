"""`merge`, `split`, `name`, `retract`, `forget`, `undo`: corrections on the command line."""

from __future__ import annotations

import numpy as np
import pytest

from cli.command import STORE, json_lines, opened, refused, run, run_on_a_terminal, said


def hash_of(folder):
    with opened(folder) as store:
        return store.state_hash()


def biggest(folder):
    """Return the biggest cluster of several subclusters."""
    with opened(folder) as store:
        several = [c for c in store.clusters() if len(c.subclusters) > 1]
    return max(several, key=lambda c: c.size).id


def test_merge_joins_two_clusters(folder):
    assert said(folder, "merge", STORE, 0, 1) == {"merged": [0, 1], "cluster": 0}
    with opened(folder) as store:
        assert store.resolve(1) == 0


def test_merge_of_a_cluster_with_itself_says_that_there_is_nothing_to_do(folder):
    before = hash_of(folder)
    assert said(folder, "merge", STORE, 0, 0) == {"merged": [], "cluster": 0}
    shown = run("merge", STORE, 0, 0, "--format", "text", cwd=folder).stdout
    assert "Nothing to do: 0 and 0 are one already" in " ".join(shown.split())
    assert hash_of(folder) == before


def test_merge_of_an_undone_cluster_advises_nothing_that_does_harm(folder):
    with opened(folder) as store:
        vectors, one = store.n_vectors, int(store.labels()[0])
        alike = np.flatnonzero(store.labels() == one)
    undone = max(said(folder, "split", STORE, alike[0], alike[-1])["clusters"])
    assert undone != one
    assert run("undo", STORE, cwd=folder).returncode == 0
    told = refused(run("merge", STORE, 0, undone, cwd=folder))
    assert "undone" in told
    assert f"linkstream inspect {STORE} lists those that are there" in told
    assert "linkstream undo" not in told
    with opened(folder) as store:
        assert store.n_vectors == vectors


def test_merge_without_clusters_shows_suggestions(folder):
    before = hash_of(folder)
    lines = json_lines(run("merge", STORE, "--limit", 3, cwd=folder).stdout)
    with opened(folder) as store:
        expected = [list(pair.clusters) for pair in store.suggest_merges(limit=3)]
    assert [line["clusters"] for line in lines] == expected
    assert hash_of(folder) == before
    assert "two, or none" in refused(run("merge", STORE, 0, cwd=folder))
    _, seen = run_on_a_terminal("merge", STORE, cwd=folder)
    assert f"linkstream merge {STORE} {expected[0][0]} {expected[0][1]}" in seen


def test_clusters_can_be_given_by_name(folder):
    said(folder, "name", STORE, 1, "Ann")
    assert said(folder, "merge", STORE, 0, "Ann")["cluster"] == 1
    assert "'Bob'" in refused(run("merge", STORE, 0, "Bob", cwd=folder))


def test_an_earlier_correction_forbids_its_opposite(folder):
    said(folder, "split", STORE, 0, 1, "--of", "clusters")
    told = refused(run("merge", STORE, 0, 1, cwd=folder))
    assert "clusters 0 and 1 being different" in told


def test_split_separates_two_vectors(folder):
    with opened(folder) as store:
        one, other = np.flatnonzero(store.labels() == 0)[:2].tolist()
    record = said(folder, "split", STORE, one, other)
    assert len(set(record["clusters"])) == 2
    with opened(folder) as store:
        assert store.labels()[[one, other]].tolist() == record["clusters"]


def test_split_of_a_cluster_shows_its_weakest_edges_and_changes_nothing(folder):
    before, cluster = hash_of(folder), biggest(folder)
    lines = json_lines(run("split", STORE, cluster, cwd=folder).stdout)
    margins = [line["margin"] for line in lines]
    assert {line["cluster"] for line in lines} == {cluster}
    assert margins == sorted(margins)
    assert hash_of(folder) == before
    _, shown = run_on_a_terminal("split", STORE, cluster, cwd=folder)
    assert f"linkstream split people.links {cluster} --apply" in shown


def test_split_of_a_cluster_cuts_the_weakest_edge_if_requested(folder):
    cluster = biggest(folder)
    weakest = json_lines(run("split", STORE, cluster, cwd=folder).stdout)[0]
    record = said(folder, "split", STORE, cluster, "--apply")
    assert record["different"] == weakest["subclusters"]
    assert len(set(record["clusters"])) == 2


def test_a_cluster_of_one_subcluster_cannot_be_cut(folder):
    with opened(folder) as store:
        single = next(c.id for c in store.clusters() if len(c.subclusters) == 1)
    assert "one subcluster" in refused(run("split", STORE, single, "--apply", cwd=folder))
    assert run("split", STORE, single, cwd=folder).stdout == ""


def test_a_name_is_set_changed_and_removed(folder):
    def name():
        with opened(folder) as store:
            return store.clusters()[0].name

    said(folder, "name", STORE, 0, "Ann", "--claim")
    assert name() == "Ann"
    assert "'Ann'" in refused(run("name", STORE, 0, "Bea", cwd=folder))
    said(folder, "name", STORE, "Ann", "Bea", "--rename")
    assert name() == "Bea"
    assert said(folder, "name", STORE, "Bea", "--clear") == {"cluster": 0, "name": None}
    assert name() is None


@pytest.mark.parametrize(
    "words", [("name", STORE, 0), ("name", STORE, 0, "Ann", "--clear"), ("forget", STORE)]
)
def test_an_incomplete_command_is_refused(folder, words):
    refused(run(*words, cwd=folder))


def test_retract_reverts_one_correction_and_no_later_one(folder):
    said(folder, "merge", STORE, 0, 1)
    said(folder, "split", STORE, 0, 1, "--of", "vectors")
    (one, other) = said(folder, "retract", STORE)["corrections"]
    assert (one["verb"], one["a"], one["b"], one["of"]) == ("same", 0, 1, "clusters")
    left = said(folder, "retract", STORE, one["number"])
    assert left == {"retracted": one["number"], "corrections": 1}
    with opened(folder) as store:
        assert [each.to_dict() for each in store.corrections()] == [other]
        assert store.labels()[0] != store.labels()[1]
    before = hash_of(folder)
    assert f"linkstream retract {STORE}" in refused(run("retract", STORE, 0, cwd=folder))
    refused(run("retract", STORE, one["number"], cwd=folder))
    assert hash_of(folder) == before
    _, seen = run_on_a_terminal("retract", STORE, cwd=folder)
    assert f"linkstream retract {STORE} {other['number']}" in seen


def test_forget_removes_a_cluster_and_undo_restores_it(folder):
    before = hash_of(folder)
    record = said(folder, "forget", STORE, 0, "--yes")
    assert record == {"cluster": 0, "vector": None, "erased": False}
    with opened(folder) as store:
        assert 0 not in store.labels()
    said(folder, "undo", STORE)
    assert hash_of(folder) == before


def test_forget_removes_a_vector(folder):
    said(folder, "forget", STORE, "--vector", 5, "--yes")
    with opened(folder) as store:
        assert store.labels()[5] == -1


def test_erased_vectors_are_removed_from_the_disk(folder):
    with opened(folder) as store:
        vector, payload = store.vectors([5]).astype("<f4").tobytes(), b'window 5"'
    files = list(folder.glob("people.links*"))
    assert any(vector in file.read_bytes() for file in files)
    said(folder, "forget", STORE, "--vector", 5, "--erase", "--yes")
    for file in folder.glob("people.links*"):
        assert vector not in file.read_bytes()
        assert payload not in file.read_bytes()


def test_on_a_terminal_forget_asks_first(folder):
    before = hash_of(folder)
    code, shown = run_on_a_terminal("forget", STORE, 0, cwd=folder, typed="n\n")
    assert (code, hash_of(folder)) == (1, before)
    assert "Forget cluster 0?" in shown
    code, shown = run_on_a_terminal("forget", STORE, 0, cwd=folder, typed="y\n")
    assert code == 0
    assert "linkstream undo brings it back" in shown


def test_undo_goes_back_to_an_event(folder):
    record = said(folder, "undo", STORE, "--to", 0)
    assert (record["vectors"], record["clusters"]) == (0, 0)
    refused(run("undo", STORE, cwd=folder))


def test_unknown_clusters_and_vectors_are_refused(folder):
    for words in (
        ("merge", STORE, 0, 10**6),
        ("forget", STORE, "--vector", 10**6),
        ("split", STORE, 0, "x"),
        ("undo", STORE, "--to", 10**6),
        ("split", STORE, 3, 210, "--of", "people"),
    ):
        refused(run(*words, cwd=folder))
