"""Unsure vectors over HTTP: accept, held, assign, judge, and what can be asked of held vectors."""

from __future__ import annotations

import numpy as np
import pytest

from confidence.sure import model_for
from linkstream import Thresholds
from streams import lobes

STREAM = lobes(np.random.default_rng(0), 700)
X = np.float32(STREAM.vectors)
SURE = 0.8


@pytest.fixture
def client(service, talk, name):
    """Return a client of a namespace that holds unsure vectors."""
    with talk(None, url=service, namespace=name) as opened:
        opened.create(Thresholds(*STREAM.thresholds), confidence=model_for(STREAM.thresholds))
        opened.add_many(X[:1])
        yield opened


def test_accept_and_assign_of_a_client_return_what_those_of_a_store_do(client):
    policy = client.accept(SURE)
    assert (policy.unsure, policy.probability) == ("hold", SURE)
    assert policy == client.policy()
    client.add_many(X[1:200], ids=[f"k{i}" for i in range(1, 200)])
    one, two, three, *others = client.held(limit=20)
    assert one.id == f"k{one.vector}"
    assert client.assign(one.vector, 0).cluster == 0
    assert client.assign(two.id, -1).kind == "new"
    client.remove(three.id)
    assert [each.vector for each in client.held(limit=17)] == [each.vector for each in others]
    client.judge(0 if client.labels()[1] < 0 else 1, True)
    assert client.accept().unsure == "take"
    assert client.held() == []


def test_a_client_lists_more_held_vectors_than_a_page_has(client):
    client.accept(0.97)
    client.add_many(X[1:])
    waiting = np.flatnonzero(client.labels() < 0)[::-1].tolist()
    assert len(waiting) > 220
    assert [each.vector for each in client.held(limit=1000)] == waiting
    assert [each.vector for each in client.held(limit=210)] == waiting[:210]
    assert [each.vector for each in client.held(before=waiting[3], limit=205)] == waiting[4:209]


def test_a_held_vector_is_looked_at_over_http(client):
    client.accept(SURE)
    ids = [f"k{i}" for i in range(1, 200)]
    client.add_many(X[1:200], ids=ids, payloads=[{"file": each} for each in ids])
    waiting = client.held()[0]
    assert (waiting.id, waiting.payload) == (f"k{waiting.vector}", {"file": waiting.id})
    for found in (client.vector(waiting.vector), client.vector(waiting.id)):
        assert (found.cluster, found.subcluster) == (-1, -1)
        assert (found.vector, found.id) == (waiting.vector, waiting.id)
        assert found.payload == waiting.payload
    assert client.number(waiting.id) == waiting.vector
    assert client.to_frame("numpy")["held"].sum() > 3
