"""A store of an older format is brought up to date, step by step, wholly or not at all."""

from __future__ import annotations

import contextlib
import gzip
import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from golden.make import vectors as golden_vectors
from linkstream.errors import IdempotencyError, StoreError
from linkstream.store import Store, file, repair
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
    steps = {2: lambda connection: done.append(2), 3: lambda connection: done.append(3)}
    monkeypatch.setattr(file, "FORMAT", 4)
    monkeypatch.setattr(file, "MIGRATIONS", steps)
    return path, done, steps


def test_an_older_format_is_updated_step_by_step(old):
    path, done, _ = old
    with Store.open(path) as store:
        assert store.n_vectors == len(X)
        assert store.info()["format"] == 4
    assert (done, version(path)) == ([2, 3], 4)
    with Store.open(path):
        assert done == [2, 3]


def test_a_failed_update_leaves_the_store_in_the_format_before(old):
    path, done, steps = old

    def broken(connection):
        connection.execute("DELETE FROM operations")
        raise sqlite3.OperationalError("disk I/O error")

    steps[3] = broken
    with pytest.raises(StoreError, match="disk I/O"):
        Store.open(path)
    assert (done, version(path)) == ([2], 3)
    steps[3] = lambda connection: done.append(3)
    with Store.open(path) as store:
        assert store.n_vectors == len(X)


def test_a_reader_of_an_older_format_gets_a_remedy(old):
    path, done, _ = old
    with pytest.raises(StoreError, match=r"format 2.*Open it once for writing"):
        Store.open(path, read_only=True)
    assert (done, version(path)) == ([], 2)


GOLDEN = Path(__file__).parent.parent / "golden" / "0.1"


def there(store):
    """Return the payloads of all vectors that were not removed."""
    return store.payloads(np.flatnonzero(store.labels() >= 0))


@pytest.fixture
def first(tmp_path):
    """A store of format 1 with payloads, and the payloads of its vectors."""
    path = tmp_path / "people.links"
    path.write_bytes(gzip.decompress((GOLDEN / "corrected.links.gz").read_bytes()))
    with Store.open(path, read_only=True) as store:
        payloads = there(store)
    assert any(each is not None for each in payloads)
    return path, payloads, golden_vectors(9, 6)


def test_a_store_of_format_1_goes_on_with_new_payloads_beside_the_old_ones(first):
    path, payloads, rows = first
    assert version(path) == 1
    with Store.open(path) as store:
        store.add_many(rows, payloads=list("uvwxyz"))
        assert version(path) == 2
    for read_only in (True, False):
        with Store.open(path, read_only=read_only) as store:
            assert there(store) == [*payloads, *"uvwxyz"]
            store.verify()


def test_compacting_erases_old_payloads_of_format_1(first):
    path, payloads, rows = first
    found = next(each for each in payloads if isinstance(each, dict))
    secret = json.dumps(found["file"])[1:-1].encode()
    assert secret in path.read_bytes()
    with Store.open(path) as store:
        store.add_many(rows, payloads=list("uvwxyz"))
        for number in np.flatnonzero(store.labels() >= 0).tolist():
            if store.payloads([number]) == [found]:
                store.remove(number)
        store.compact()
        assert there(store) == [each for each in [*payloads, *"uvwxyz"] if each != found]
        store.verify()
    assert secret not in path.read_bytes()


def test_a_repair_keeps_the_payloads_of_format_1(first):
    path, payloads, rows = first
    with Store.open(path) as store:
        store.add_many(rows, payloads=list("uvwxyz"))
    repair(path)
    with Store.open(path) as store:
        assert there(store) == [*payloads, *"uvwxyz"]


def test_a_key_of_format_1_still_stands_for_its_call(first):
    path, *_ = first
    with Store.open(path) as store:
        found = store.journal.find("batch-1")
        rows = store.journal.vectors(found)
        given = store.journal.payloads(found)
        n = store.n_vectors
        answer = store.add_many(rows, payloads=given, idempotency_key="batch-1")
        assert answer.tolist() == store.journal.answer(found).tolist()
        assert store.n_vectors == n
        with pytest.raises(IdempotencyError):
            store.add_many(rows, payloads=[0] * len(rows), idempotency_key="batch-1")
