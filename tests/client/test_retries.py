"""Failed calls are retried within bounds and count once."""

from __future__ import annotations

import email.utils
import time
import uuid

import httpx
import numpy as np
import pytest

from client.fakes import DECISION, Service, good, ids, never, refusal
from linkstream.client import Retries
from linkstream.client.errors import (
    AnswerError,
    BusyError,
    ServiceError,
    TooLargeError,
    TooManyError,
    UnreachableError,
)
from linkstream.errors import ArgumentError, DamagedStoreError, StoreClosedError, VectorError

BROKEN = (
    httpx.ConnectError("refused"),
    httpx.ConnectTimeout("late"),
    httpx.ReadTimeout("late"),
    httpx.ReadError("reset"),
    httpx.WriteError("reset"),
    httpx.RemoteProtocolError("it hung up"),
)
X = np.eye(3, dtype=np.float32)


@pytest.mark.parametrize("error", BROKEN, ids=lambda error: type(error).__name__)
def test_a_broken_connection_is_retried_with_the_same_key(talk, waits, error):
    service = Service(error, error, good(DECISION))
    with talk(service) as client:
        assert client.add([1.0, 0.0]).cluster == 3
    assert len(set(service.keys_sent())) == 1
    assert [request.content for request in service.asked] == [service.asked[0].content] * 3
    assert len(waits) == 2


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
def test_temporary_refusals_are_retried(talk, waits, status):
    page = httpx.Response(status, text="<h1>Bad gateway</h1>")
    service = Service(refusal(status, "busy"), lambda: page, ids(0, 1, 2))
    with talk(service) as client:
        assert client.add_many(X).tolist() == [0, 1, 2]
    assert len(service.asked) == 3
    assert len(set(service.keys_sent())) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 410, 415, 500])
def test_other_refusals_are_raised_at_once(talk, waits, status):
    service = Service(refusal(status, "other"))
    with talk(service) as client, pytest.raises(ServiceError) as told:
        client.add_many(X)
    assert (told.value.status, told.value.kind) == (status, "other")
    assert (len(service.asked), waits) == (1, [])


def test_one_vector_that_is_too_large_is_not_split(talk, waits):
    service = Service(refusal(413, "too-large"))
    with talk(service) as client, pytest.raises(TooLargeError):
        client.add_many(X[:1])
    assert (len(service.asked), waits) == (1, [])


def test_each_call_gets_a_new_key(talk, waits):
    service = Service(good(DECISION))
    with talk(service) as client:
        for _ in range(3):
            client.add([1.0, 0.0])
    assert len(set(service.keys_sent())) == 3
    assert all(uuid.UUID(key).version == 4 for key in service.keys_sent())


def test_writes_send_a_key_and_reads_send_none(talk, waits):
    settled = {"joins": [], "cuts": [], "n_clusters_before": 1, "n_clusters_after": 1}
    writes = Service(good({"before": 1, "event": 2, **settled, **DECISION}))
    with talk(writes) as client:
        client.same(0, 1)
        client.different(0, 1)
        client.move(0, 1)
        client.name(0, "Ann")
        client.rename(0, None)
        client.ignore(0)
        client.remove(0)
        client.forget(0)
        client.undo()
        client.settle(apply=True)
        client.enrol("Ann", X)
    assert len(set(writes.keys_sent())) == len(writes.asked) == 11
    reads = Service(ids(0, 1, 2))
    with talk(reads) as client:
        client.predict(X)
        client.labels()
    assert reads.keys_sent() == [None, None]


def test_the_key_of_the_caller_is_sent(talk, waits):
    service = Service(httpx.ReadError("reset"), ids(0, 1, 2))
    with talk(service) as client:
        client.add_many(X, idempotency_key="batch-17")
    assert service.keys_sent() == ["batch-17"] * 2


@pytest.mark.parametrize("key", ["", " a", "a b", "a\n", "é", "x" * 256, 7])
def test_an_invalid_key_is_refused_before_a_request_is_sent(talk, key):
    service = Service(ids(0, 1, 2))
    with talk(service) as client, pytest.raises(ArgumentError, match="idempotency_key"):
        client.add_many(X, idempotency_key=key)
    assert service.asked == []


def test_waits_grow_at_random_within_bounds(talk, waits):
    service = Service(httpx.ConnectError("refused"))
    retries = Retries(attempts=12, seconds=1000.0, first=0.1, longest=2.0)
    with talk(service, retries=retries) as client, pytest.raises(UnreachableError):
        client.clusters()
    steps = [min(2.0, 0.1 * 2**n) for n in range(11)]
    assert len(service.asked) == 12
    assert all(step / 2 <= wait <= step for wait, step in zip(waits, steps, strict=True))
    assert len({wait / step for wait, step in zip(waits, steps, strict=True)}) > 1


def test_no_attempt_begins_after_the_time_limit(talk, waits):
    service = Service(httpx.ConnectError("refused"))
    retries = Retries(attempts=10_000, seconds=20.0, first=1.0, longest=3.0)
    with talk(service, retries=retries) as client, pytest.raises(UnreachableError):
        client.clusters()
    assert 20.0 - 3.0 <= sum(waits) <= 20.0


def test_retry_after_is_waited_in_full(talk, waits):
    date = email.utils.formatdate(time.time() + 30, usegmt=True)
    service = Service(
        refusal(429, "too-many", {"Retry-After": "7"}),
        refusal(503, "busy", {"Retry-After": date}),
        refusal(503, "busy", {"Retry-After": "soon"}),
        good(DECISION),
    )
    with talk(service) as client:
        client.add([1.0, 0.0])
    assert 7.0 <= waits[0] < 8.0
    assert 25.0 < waits[1] < 32.0
    assert waits[2] < 1.0


def test_a_retry_after_beyond_the_time_limit_raises_at_once(talk, waits):
    service = Service(refusal(429, "too-many", {"Retry-After": "86400"}))
    with talk(service) as client, pytest.raises(TooManyError) as told:
        client.add_many(X)
    assert told.value.retry_after == 86400.0
    assert (len(service.asked), waits) == (1, [])


def test_one_attempt_turns_retries_off(talk, waits):
    service = Service(refusal(503, "busy"))
    with talk(service, retries=never()) as client, pytest.raises(BusyError):
        client.add_many(X)
    assert len(service.asked) == 1


def test_a_failed_call_can_be_repeated_with_the_key_of_its_error(talk, waits):
    service = Service(httpx.ReadTimeout("late"), httpx.ReadTimeout("late"), ids(0, 1, 2))
    with talk(service, retries=Retries(attempts=2)) as client:
        with pytest.raises(UnreachableError, match=r"tried 2 times \(ReadTimeout: late\)") as told:
            client.add_many(X)
        client.add_many(X, idempotency_key=told.value.idempotency_key)
    assert len(set(service.keys_sent())) == 1
    assert isinstance(told.value.__cause__, httpx.ReadTimeout)


def test_a_closed_store_is_retried_and_a_damaged_store_is_not(talk, waits):
    closed = Service(refusal(503, "store-closed"))
    with talk(closed, retries=Retries(attempts=3)) as client, pytest.raises(StoreClosedError):
        client.add_many(X)
    assert len(closed.asked) == 3
    damaged = Service(refusal(503, "damaged-store"))
    with talk(damaged) as client, pytest.raises(DamagedStoreError):
        client.add_many(X)
    assert len(damaged.asked) == 1


def test_feed_sends_batches_in_order_and_stops_at_a_refused_one(talk, waits):
    service = Service(ids(0, 1, 2), httpx.ReadError("reset"), ids(3, 4, 5), refusal(400, "vector"))
    batches = [X, X * 2, X * 3, X * 4]
    with talk(service) as client:
        given = client.first("feed", 2, batches)
        assert [each.tolist() for each in given] == [[0, 1, 2], [3, 4, 5]]
        with pytest.raises(VectorError):
            client.every("feed", batches[2:])
    bodies = [np.frombuffer(request.content, np.float32)[0] for request in service.asked]
    assert bodies == [1.0, 2.0, 2.0, 3.0]
    keys = service.keys_sent()
    assert keys[1] == keys[2]
    assert len(set(keys)) == 3


def test_a_redirect_is_not_followed(talk, waits):
    service = Service(lambda: httpx.Response(307, headers={"Location": "http://elsewhere.test/"}))
    with talk(service) as client, pytest.raises(AnswerError):
        client.add_many(X)
    assert len(service.asked) == 1


@pytest.mark.parametrize(
    "wrong", [{"attempts": 0}, {"attempts": 1.5}, {"seconds": -1}, {"first": float("nan")}]
)
def test_invalid_retries_are_refused(wrong):
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        Retries(**wrong)
