"""A store of an older format is brought up to date, step by step, wholly or not at all."""

from __future__ import annotations

import contextlib
import sqlite3

import numpy as np
import pytest

from linkstream.errors import StoreError
from linkstream.store import Store, file
from store.operations import THRESHOLDS, vectors

X = vectors(np.random.default_rng(4), 20)


def version(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA user_version").fetchone()[0]


@pytest.fixture
def old(tmp_path, monkeypatch):
    """A store of today, as a later version sees it; and the steps that later version has."""
    path = tmp_path / "people.links"
    with Store.open(path, thresholds=THRESHOLDS) as store:
        store.add_many(X)
    done = []
    steps = {1: lambda connection: done.append(1), 2: lambda connection: done.append(2)}
    monkeypatch.setattr(file, "FORMAT", 3)
    monkeypatch.setattr(file, "MIGRATIONS", steps)
    return path, done, steps


def test_an_older_format_is_updated_step_by_step(old):
    path, done, _ = old
    with Store.open(path) as store:
        assert store.n_vectors == len(X)
        assert store.info()["format"] == 3
    assert (done, version(path)) == ([1, 2], 3)
    with Store.open(path):
        assert done == [1, 2]


def test_a_failed_update_leaves_the_store_in_the_format_before(old):
    path, done, steps = old

    def broken(connection):
        connection.execute("DELETE FROM operations")
        raise sqlite3.OperationalError("disk I/O error")

    steps[2] = broken
    with pytest.raises(StoreError, match="disk I/O"):
        Store.open(path)
    assert (done, version(path)) == ([1], 2)
    steps[2] = lambda connection: done.append(2)
    with Store.open(path) as store:
        assert store.n_vectors == len(X)


def test_a_reader_of_an_older_format_gets_a_remedy(old):
    path, done, _ = old
    with pytest.raises(StoreError, match=r"format 1.*Open it once for writing"):
        Store.open(path, read_only=True)
    assert (done, version(path)) == ([], 1)
