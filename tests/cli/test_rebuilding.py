"""`linkstream rebuild`: thresholds, space and vectors that a store continues with."""

from __future__ import annotations

import json
import re
import resource

import numpy as np
import pytest

from cli.command import STORE, opened, refused, run, run_apart, run_on_a_terminal, said, shown
from linkstream import Space, Thresholds

THREE = (0.6, 0.6, 0.7)


def plain(report):
    return json.loads(json.dumps(report.to_dict()))


@pytest.fixture
def rotated(folder):
    """Return the vectors of the store in another basis and dimension, written as other.npy."""
    with opened(folder) as store:
        X = store.vectors(range(store.n_vectors))
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((300, X.shape[1])))[0]
    np.save(folder / "other.npy", X @ basis.T.astype(np.float32))
    return np.load(folder / "other.npy")


def test_thresholds_are_those_to_cluster_and_to_continue_with(folder):
    with opened(folder) as store:
        before, expected = store.thresholds, plain(store.rebuild(thresholds=Thresholds(*THREE)))
    assert said(folder, "rebuild", STORE, "--thresholds", *THREE) == expected
    done = said(folder, "rebuild", STORE, "--thresholds", *THREE, "--apply")
    assert done == {**expected, "applied": True}
    with opened(folder) as store:
        assert store.thresholds == Thresholds(*THREE) != before
    said(folder, "undo", STORE)
    with opened(folder) as store:
        assert store.thresholds == before


def test_thresholds_may_come_from_the_present_clusters(folder):
    with opened(folder) as store:
        expected = plain(store.rebuild(thresholds="from clusters"))
    assert said(folder, "rebuild", STORE, "--thresholds-from-clusters") == expected
    assert expected["evidence"]["n_clusters"] >= 10
    told = shown("rebuild", STORE, "--thresholds-from-clusters", cwd=folder)
    assert "on clusters held out" in told
    both = run("rebuild", STORE, "--thresholds-from-clusters", "--thresholds", *THREE, cwd=folder)
    assert "expected one of the two" in refused(both)


def test_a_mean_vector_is_subtracted_from_then_on_and_none_ends_that(folder):
    mean = np.linspace(-0.03, 0.05, 256)
    np.save(folder / "mean.npy", mean)
    with opened(folder) as store:
        model = store.space.model
        expected = plain(store.rebuild(space=Space(mean, model)))
    assert said(folder, "rebuild", STORE, "--space", "mean.npy") == expected
    said(folder, "rebuild", STORE, "--space", "mean.npy", "--apply")
    with opened(folder) as store:
        np.testing.assert_allclose(store.space.mean, mean, atol=1e-8)
        assert store.space.model == model
    said(folder, "rebuild", STORE, "--space", "none", "--model", "voices-2", "--apply")
    with opened(folder) as store:
        assert (store.space.mean, store.space.model) == (None, "voices-2")


def test_vectors_of_another_encoder_take_the_place_of_the_first(folder, rotated):
    with opened(folder) as store:
        expected = plain(store.rebuild(vectors=rotated, space=Space(model="encoder-2")))
    given = ("--vectors", "other.npy", "--model", "encoder-2")
    assert said(folder, "rebuild", STORE, *given) == expected
    assert said(folder, "rebuild", STORE, *given, "--apply")["applied"]
    with opened(folder) as store:
        assert (store.dimension, store.space.model) == (300, "encoder-2")
        np.testing.assert_allclose(store.vectors([7])[0], rotated[7], atol=1e-6)


def test_the_vectors_may_be_a_column_or_an_array_of_a_file(folder, rotated):
    np.savez(folder / "both.npz", one=rotated[:5], two=rotated)
    told = said(folder, "rebuild", STORE, "--vectors", "both.npz", "--key", "two")
    assert told == said(folder, "rebuild", STORE, "--vectors", "other.npy")


def test_what_cannot_be_done_is_refused_and_nothing_changes(folder, rotated):
    with opened(folder) as store:
        before = store.state_hash()
    np.save(folder / "few.npy", rotated[:5])
    np.save(folder / "long.npy", np.full(256, 0.5))
    (folder / "words.npy").write_text("no array")
    for given, words in (
        (("--vectors", "few.npy"), "5 vectors for a rebuild of 300"),
        (("--space", "long.npy"), "a length below 1"),
        (("--space", "words.npy"), "--space words.npy, which is no .npy"),
        (("--space", "other.npy"), "an array of shape 300 × 300; expected one vector"),
        (("--space", "nowhere.npy"), "nowhere.npy"),
        (("--model", "encoder-2"), "--vectors FILE"),
        (("--thresholds", 0.6, 0.6, 0.1), "--thresholds: T_p is 0.1"),
        (("--thresholds", 1.5, 0.6, 0.9), "--thresholds: T_c is 1.5"),
        (
            ("--vectors", "other.npy", "--dimension", 100),
            "of dimension 300; expected dimension 100",
        ),
    ):
        assert words in refused(run("rebuild", STORE, *given, "--apply", cwd=folder)), given
    with opened(folder) as store:
        assert store.state_hash() == before


def test_a_write_that_fails_ends_with_2_if_nothing_was_changed(folder, rotated):
    with opened(folder) as store:
        before = store.state_hash()
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 17, 1 << 17))  # noqa: E731
    given = ("--vectors", "other.npy", "--apply")
    done = run_apart("rebuild", STORE, *given, cwd=folder, preexec_fn=limit)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "Kept" not in done.stderr
    with opened(folder) as store:
        assert store.state_hash() == before


def test_a_terminal_gets_sentences_and_a_bar(folder):
    told = shown("rebuild", STORE, cwd=folder)
    assert re.match(r"proposed: \d+ clusters → \d+", told)
    assert told.endswith("To do it, add --apply.")
    code, seen = run_on_a_terminal("rebuild", STORE, "--apply", cwd=folder)
    assert code == 0
    assert "rebuilding" in seen
    assert "100%" in seen
    assert re.search(r"rebuilt: \d+ clusters → \d+", seen)
