"""`linkstream migrate`: another encoder, a file at a time."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cli.command import STORE, json_lines, opened, refused, run, run_before_people, said, shown
from linkstream import Space, Thresholds
from linkstream.store import Store

THREE = (0.6, 0.6, 0.7)


@pytest.fixture
def rows(folder):
    """Return the vectors of the store by another encoder, written as other.npy."""
    with opened(folder) as store:
        X = store.vectors(range(store.n_vectors))
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((300, X.shape[1])))[0]
    np.save(folder / "other.npy", X @ basis.T.astype(np.float32))
    return np.load(folder / "other.npy")


def test_a_migration_goes_from_begin_to_finish_and_undo(folder, rows):
    begun = said(folder, "migrate", STORE, "begin", "--model", "two", "--thresholds", *THREE)
    assert (begun["missing"], begun["model"]) == (300, "two")
    np.save(folder / "first.npy", rows[:100])
    np.save(folder / "others.npy", rows[250:120:-1])
    np.save(folder / "numbers.npy", np.arange(250, 120, -1))
    added = said(folder, "migrate", STORE, "add", "first.npy")
    assert (added["rows"], added["taken"], added["reencoded"]) == (100, 100, 100)
    said(folder, "migrate", STORE, "add", "others.npy", "--numbers", "numbers.npy")
    np.save(folder / "last.npy", rows[100:110])
    said(folder, "migrate", STORE, "add", "last.npy", "--first", 100)
    assert said(folder, "migrate", STORE)["reencoded"] == 240
    missing = json_lines(run("migrate", STORE, "missing", cwd=folder).stdout)
    assert [each["vector"] for each in missing] == [*range(110, 121), *range(251, 300)]
    with opened(folder) as store:
        expected = json.loads(json.dumps(store.migration().report().to_dict()))
        before = store.labels()
    assert said(folder, "migrate", STORE, "report") == expected
    done = said(folder, "migrate", STORE, "finish")
    assert done["rebuild"]["applied"]
    assert done["loss"]["n_pairs"] == 240
    with opened(folder) as store:
        assert (store.dimension, store.space) == (300, Space(model="two"))
        assert store.thresholds == Thresholds(*THREE)
    assert said(folder, "migrate", STORE) == {"migration": None}
    said(folder, "undo", STORE)
    with opened(folder) as store:
        assert np.array_equal(store.labels(), before)
        assert store.dimension == 256


def test_items_may_be_named_by_their_own_keys(folder, rows):
    with Store.open(folder / STORE) as store:
        store.add_many(store.vectors([0, 1, 2]), ids=["a", "b", "c"])
    records = [
        {"who": key, "embedding": row.tolist()} for key, row in zip("cab", rows, strict=False)
    ]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "keyed.jsonl").write_text(lines)
    said(folder, "migrate", STORE, "begin")
    given = ("add", "keyed.jsonl", "--column", "embedding", "--id-column", "who")
    assert said(folder, "migrate", STORE, *given)["reencoded"] == 3
    with opened(folder) as store:
        assert not {300, 301, 302} & set(store.migration().missing().tolist())


def test_an_abandoned_migration_asks_first_and_changes_nothing(folder, rows):
    with opened(folder) as store:
        before = store.state_hash()
    said(folder, "migrate", STORE, "begin")
    said(folder, "migrate", STORE, "add", "other.npy")
    assert "Add --yes" in refused(run("migrate", STORE, "abandon", cwd=folder))
    assert said(folder, "migrate", STORE, "abandon", "--yes")["reencoded"] == 300
    with opened(folder) as store:
        assert store.migration() is None
        assert store.state_hash() == before


def test_thresholds_may_come_from_the_present_clusters(folder, rows):
    flag = "--thresholds-from-clusters"
    both = run("migrate", STORE, "begin", flag, "--thresholds", *THREE, cwd=folder)
    assert "expected one of the two" in refused(both)
    assert f"{flag} with status" in refused(run("migrate", STORE, "status", flag, cwd=folder))
    said(folder, "migrate", STORE, "begin", flag)
    said(folder, "migrate", STORE, "add", "other.npy")
    with opened(folder) as store:
        expected = store.rebuild(vectors=rows, thresholds="from clusters").thresholds
    found = said(folder, "migrate", STORE, "finish")["rebuild"]["thresholds"]
    assert Thresholds(**found) == expected


def test_a_terminal_gets_sentences(folder, rows):
    assert shown("migrate", STORE, cwd=folder) == "No migration is under way."
    told = shown("migrate", STORE, "begin", "--model", "two", cwd=folder)
    assert told == "Begun: 0 of 300 vectors re-embedded by two (0.0%), 300 missing."
    told = shown("migrate", STORE, "begin", cwd=folder)
    assert told.startswith("Continued: 0 of 300 vectors re-embedded by two")
    told = shown("migrate", STORE, "add", "other.npy", cwd=folder)
    assert told.startswith("other.npy: 300 rows, 300 of vectors that are there. 300 of 300")
    told = shown("migrate", STORE, "report", cwd=folder)
    assert "proposed: " in told
    assert told.endswith("To do it: linkstream migrate people.links finish")
    told = shown("migrate", STORE, "finish", cwd=folder)
    assert "rebuilt: " in told
    assert told.endswith("linkstream undo people.links. What was added is then lost.")


def test_what_cannot_be_done_is_refused_and_nothing_changes(folder, rows):
    np.save(folder / "numbers.npy", np.arange(5))
    (folder / "words.npy").write_text("no array")
    (folder / "keyed.jsonl").write_text(json.dumps({"who": "a", "vector": rows[0].tolist()}))
    none = "no migration is under way"
    for given, words in (
        (("add", "other.npy"), none),
        (("missing",), none),
        (("finish",), none),
        (("abandon", "--yes"), none),
        (("begun",), "migrate begun; expected begin or add or status"),
        (("add",), "add without a file"),
        (("finish", "other.npy"), "finish with a file"),
        (("begin", "--first", 3), "--first with begin"),
        (("add", "other.npy", "--model", "two"), "--model with add"),
        (("add", "other.npy", "--first", 3, "--numbers", "numbers.npy"), "two ways to number"),
        (("add", "other.npy", "--first", 0, "--id-column", "who"), "two ways to number"),
        (("begin", "--space", "words.npy"), "--space words.npy, which is no .npy"),
    ):
        assert words in refused(run("migrate", STORE, *given, cwd=folder)), given
    said(folder, "migrate", STORE, "begin")
    for given, words in (
        (("add", "other.npy", "--first", 3), "vector 300"),
        (("add", "other.npy", "--numbers", "numbers.npy"), "300 vectors and 5 numbers"),
        (("add", "other.npy", "--numbers", "words.npy"), "which is no list of numbers"),
        (("add", "other.npy", "--id-column", "who"), "other.npy without columns"),
        (("add", "keyed.jsonl", "--id-column", "nope"), "row 0 without a key in the column nope"),
        (("finish",), "0 of 300 vectors re-embedded"),
        (("begin", "--model", "three"), "than those of the migration under way"),
    ):
        assert words in refused(run("migrate", STORE, *given, cwd=folder)), given
    assert said(folder, "migrate", STORE)["reencoded"] == 0
    assert run_before_people("migrate", STORE, "missing", "--limit", 2, cwd=folder).returncode == 0


def test_a_bad_row_is_named_by_its_place_in_the_file(folder, rows):
    with Store.open(folder / STORE) as store:
        store.add_many(np.concatenate([store.vectors(range(300))] * 3))
    many = np.concatenate([rows] * 4)
    many[1100] = np.nan
    np.save(folder / "many.npy", many)
    said(folder, "migrate", STORE, "begin")
    done = run("migrate", STORE, "add", "many.npy", cwd=folder)
    assert done.returncode != 0
    assert "many.npy, row 1100" in done.stderr
    assert "1,024 rows of many.npy are in people.links" in done.stderr
    assert said(folder, "migrate", STORE)["reencoded"] == 1024


def test_a_migration_without_vectors_tells_its_status_and_is_abandoned(folder, rows):
    said(folder, "migrate", STORE, "begin", "--model", "two")
    said(folder, "migrate", STORE, "add", "other.npy")
    with Store.open(folder / STORE) as store:
        for number in range(300):
            store.remove(number)
    assert said(folder, "migrate", STORE)["n_vectors"] == 0
    assert not run("migrate", STORE, "missing", cwd=folder).stdout
    assert "Abandon the migration" in refused(run("migrate", STORE, "finish", cwd=folder))
    assert said(folder, "migrate", STORE, "abandon", "--yes")["n_vectors"] == 0
    assert said(folder, "migrate", STORE) == {"migration": None}


@pytest.mark.parametrize("numbered", [False, True])
def test_a_store_that_keeps_no_vectors_takes_old_ones(folder, rows, numbered):
    """Stores of the command line keep none if they do not track vectors; others may."""
    with opened(folder) as store:
        X = store.vectors(range(store.n_vectors))
        test = store.thresholds
    options = {"keep_vectors": False} if numbered else {"track_vectors": False}
    with Store.open(folder / "sums.links", thresholds=test, mode="best", **options) as store:
        store.add_many(X)
        before = store.state_hash()
    np.save(folder / "old.npy", X[50:290])
    np.save(folder / "part.npy", rows[50:290])
    said(folder, "migrate", "sums.links", "begin", "--model", "two")
    first = ("--first", 50) if numbered else ()
    added = said(folder, "migrate", "sums.links", "add", "part.npy", "--old", "old.npy", *first)
    assert (added["taken"], added["pairs"]) == (240, 240)
    assert added["reencoded"] == (240 if numbered else 0)
    done = said(folder, "migrate", "sums.links", "finish")
    assert done["loss"]["cosine"] > 0.9
    with Store.open(folder / "sums.links") as store:
        assert store.dimension == 300
    said(folder, "undo", "sums.links")
    with Store.open(folder / "sums.links") as store:
        assert store.state_hash() == before


def test_old_vectors_that_do_not_fit_are_refused(folder, rows):
    np.save(folder / "few.npy", rows[:5])
    (folder / "words.npy").write_text("no array")
    said(folder, "migrate", STORE, "begin")
    for given, words in (
        (("add", "other.npy", "--old", "few.npy"), "300 vectors and 5 old vectors"),
        (("add", "other.npy", "--old", "words.npy"), "holds no rows of vectors"),
        (("add", "other.npy", "--old", "other.npy"), "where vectors are kept"),
        (("finish", "--old", "other.npy"), "--old with finish"),
    ):
        assert words in refused(run("migrate", STORE, *given, cwd=folder))
