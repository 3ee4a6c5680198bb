"""Both clients send and read the vectors' own keys and times as a store takes them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import numpy as np
import pytest

from linkstream.client import Client, last_write, sending
from linkstream.errors import ArgumentError, KeyTakenError, UnknownIdError
from linkstream.store import Batch
from store.operations import THRESHOLDS, vectors

X = vectors(np.random.default_rng(6), 40)
NOON = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
ODD = "a/b?c=1&d#é 🙂 %2F"


@pytest.fixture
def client(service, name):
    with Client(service, name) as client:
        client.create(THRESHOLDS)
        yield client


@pytest.mark.parametrize("arrow", [True, False], ids=["arrow", "json"])
def test_keys_and_times_arrive_as_they_were_given(client, monkeypatch, arrow):
    if not arrow:
        monkeypatch.setattr(sending, "pa", None)
    at = [NOON, None, "2026-01-31T12:00:00.25+01:00", 5.000001]
    client.add_many(X[:4], ids=[ODD, None, "17", "x"], at=at, payloads=[1, None, 3, 4])
    client.add_group(X[4:6], ids=["left", "right"], at=NOON)
    client.enrol("Ann", X[6:8], ids=["ann", None], at=[NOON, None])
    client.add(X[8], id="one", at=NOON, payload="p")
    list(client.feed([Batch(X[9:11], ids=["f", None], at=NOON)]))
    right = [ODD, None, "17", "x", "left", "right", "ann", None, "one", "f", None]
    assert client.keys(range(11)) == right
    assert client.numbers([key for key in right if key]).tolist() == [0, 2, 3, 4, 5, 6, 8, 9]
    moments = [NOON, None, NOON - timedelta(minutes=59, seconds=59, milliseconds=750)]
    assert [client.time(n) for n in range(3)] == moments
    assert client.times([3, 1]).astype(int)[0] == 5_000_001
    assert np.isnat(client.times([3, 1])[1])
    assert (client.number(ODD), client.key(4), client.payload("17")) == (0, "left", 3)
    view = client.vector(ODD)
    assert (view.vector, view.id, view.time, view.payload) == (0, ODD, NOON, 1)
    assert client.vector(1).id is client.vector(1).time is None
    (shown,) = [each for each in client.members(view.cluster).vectors if each.vector == 0]
    assert (shown.id, shown.time, shown.payload) == (ODD, NOON, 1)


def test_corrections_take_keys(client):
    client.add_many(X[:30], ids=[f"k{i}" for i in range(30)])
    labels = client.labels()
    other = int(np.flatnonzero(labels != labels[0])[0])
    client.same("k0", f"k{other}")
    assert last_write() is not None
    assert len({*client.explain_pair("k0", f"k{other}").clusters}) == 1
    client.undo()
    client.different("k0", other)
    client.undo()
    assert client.move(f"k{other}", int(labels[0])).cluster == labels[0]
    for _ in range(2):
        client.remove("k7", idempotency_key="once")
    assert client.labels()[7] == -1
    for call in (
        lambda: client.number("k7"),
        lambda: client.vector("k7"),
        lambda: client.move("k7", 0),
        lambda: client.explain_pair("k7", 1),
    ):
        with pytest.raises(UnknownIdError, match="no vector has"):
            call()
    for call in (
        lambda: client.same("k0", "k1", of="clusters"),
        lambda: client.explain_pair("k0", 1, of="subclusters"),
        lambda: client.vector(""),
        lambda: client.add(X[0], id="x" * 513),
        lambda: client.add(X[0], at=datetime(2026, 1, 31)),
    ):
        with pytest.raises(ArgumentError):
            call()


def test_a_key_that_is_there_is_refused_with_row_and_vector(client):
    client.add_many(X[:3], ids=["a", "b", "c"])
    with pytest.raises(KeyTakenError, match="of vector 1") as caught:
        client.add_many(X[3:6], ids=["d", None, "b"])
    assert (caught.value.row, caught.value.vector) == (2, 1)
    with pytest.raises(KeyTakenError):
        client.add(X[3], id="a")
    assert len(client.labels()) == 3
