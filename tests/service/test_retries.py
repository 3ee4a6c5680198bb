"""Requests repeated with a key count once."""

from __future__ import annotations

import http.client
import json
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from linkstream import Links
from linkstream.store import Store
from service.calling import BINARY, RawConnection, head, raw_answers
from service.internals import held_up
from service.server import ProcessService, until
from store.internals import told
from store.operations import THRESHOLDS, vectors

X = vectors(np.random.default_rng(6), 60)
KEY = {"Idempotency-Key": "batch-1"}

WRITES = {
    "vectors": {"vectors": X[:3].tolist(), "payloads": [1, None, {"a": "b"}]},
    "vectors, one": {"vector": X[0].tolist(), "payload": "a"},
    "groups": {"vectors": X[:3].tolist()},
    "enrol": {"name": "Ann", "vectors": X[:2].tolist()},
    "name": {"cluster": 0, "name": "Bob"},
    "rename": {"cluster": 0, "name": "Cid"},
    "ignore": {"cluster": 0},
    "same": {"a": 0, "b": 5},
    "different": {"a": 0, "b": 6},
    "move": {"vector": 3, "cluster": 0},
    "remove": {"vector": 4},
    "forget": {"cluster": 1},
    "undo": {"to": None},
    "settle": {"apply": True},
}


@pytest.mark.parametrize("verb", WRITES)
def test_a_repeated_request_gets_the_first_answer_and_counts_once(service, namespace, verb):
    service.post(f"{namespace}/vectors", X[10:])
    path, body = f"{namespace}/{verb.partition(',')[0]}", WRITES[verb]
    first = service.post(path, body, headers=KEY)
    assert first.status == 200, first.body
    before = service.get(f"{namespace}/events").json
    again = service.post(path, body, headers=KEY)
    assert again.status == 200
    if verb == "settle":  # a repeated settle changes nothing
        n = first.json["n_clusters_after"]
        counts = {"n_clusters_before": n, "n_clusters_after": n}
        assert again.json == {"joins": [], "cuts": [], **counts, "applied": True}
    else:
        assert again.json == first.json
    assert service.get(f"{namespace}/events").json == before
    other = {"vectors": X[30:35].tolist()}
    answer = service.post(f"{namespace}/vectors", other, headers=KEY)
    assert (answer.status, answer.kind) == (409, "idempotency")
    assert service.get(f"{namespace}/events").json == before


def test_a_repeated_request_gets_the_first_answer_after_other_requests(service, namespace):
    first = service.post(f"{namespace}/vectors", X[:5], headers=KEY)
    service.post(f"{namespace}/vectors", X[5:20])
    again = service.post(f"{namespace}/vectors", X[:5], headers=KEY)
    assert again.json == first.json
    assert again.json["first"] == 0


def test_the_same_vectors_in_another_kind_of_body_are_the_same_request(service, namespace):
    first = service.post(f"{namespace}/vectors", X[:5], headers=KEY)
    body = {"vectors": X[:5].astype(float).tolist()}
    assert service.post(f"{namespace}/vectors", body, headers=KEY).json == first.json
    raw = service.post(f"{namespace}/vectors", X[:5], headers=KEY | {"Accept": BINARY})
    assert raw.ids == first.ids


def test_a_refused_request_leaves_its_key_free(service, namespace):
    assert service.post(f"{namespace}/vectors", np.zeros((1, 8)), headers=KEY).status == 400
    assert service.post(f"{namespace}/vectors", X[:5], headers=KEY).status == 200


BAD = {
    "nothing": "",
    "space": " ",
    "too long": "k" * 256,
    "much too long": "k" * 20_000,
    "a tab": "a\tb",
    "a space within": "a b",
    "letters beyond": "\xff\xfe",
}


@pytest.mark.parametrize("key", BAD.values(), ids=BAD)
def test_an_unusual_key_is_refused_or_counts_once(service, namespace, key):
    body = json.dumps({"vectors": X[:2].tolist()}).encode()
    how = {"content_type": "application/json", "idempotency_key": key}
    request = head("POST", f"{namespace}/vectors", body=body, **how)
    answers = [raw_answers(service.port, request)[0] for _ in range(2)]
    assert answers[0].status == answers[1].status
    assert answers[0].status in (200, 400, 431)
    counted = 2 if answers[0].status == 200 else 0
    assert service.get(namespace).json["vectors"] == counted


def test_two_keys_in_one_request_are_refused(service, namespace):
    body = json.dumps({"vectors": X[:2].tolist()}).encode()
    how = {"content_type": "application/json", "idempotency_key": "a"}
    request = head("POST", f"{namespace}/vectors", body=body, **how)
    request = request.replace(b"idempotency-key: a", b"idempotency-key: a\r\nidempotency-key: b")
    (answer,) = raw_answers(service.port, request)
    assert answer.status == 400


def test_a_request_sent_many_times_at_once_counts_once(service, namespace):
    gate = threading.Barrier(12)

    def send(number):
        gate.wait()
        return service.post(f"{namespace}/vectors", X[:7], headers=KEY)

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(send, range(12)))
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body for answer in answers}) == 1
    assert service.get(namespace).json["vectors"] == 7


def test_one_of_many_different_requests_with_one_key_is_accepted(service, namespace):
    gate = threading.Barrier(8)

    def send(number):
        gate.wait()
        return service.post(f"{namespace}/vectors", X[3 * number : 3 * number + 3], headers=KEY)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(send, range(8)))
    assert sorted(answer.status for answer in answers) == [200] + [409] * 7
    assert service.get(namespace).json["vectors"] == 3


def test_a_client_that_disconnects_can_repeat_the_request(service, namespace):
    name = namespace.rpartition("/")[2]
    body = X[:5].tobytes()
    how = {"content_type": BINARY, "idempotency_key": "batch-1"}
    with held_up(service, name), RawConnection(service.port) as line:
        line.send(head("POST", f"{namespace}/vectors?dimension=8", body=body, **how))
        time.sleep(0.2)  # it has come, and waits
    answer = service.post(f"{namespace}/vectors", X[:5], headers=KEY)
    assert answer.json["first"] == 0
    assert service.get(namespace).json["vectors"] == 5


# Killed between


def sent(service, number, batch):
    """Return the IDs of a batch; None if no answer came."""
    try:
        answer = service.post(
            "/v1/namespaces/people/vectors", batch, headers={"Idempotency-Key": f"b{number}"}
        )
    except (OSError, http.client.HTTPException):
        return None
    assert answer.status == 200
    return answer.ids


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_request_repeated_after_a_kill_at_a_commit_counts_once(nest, tmp_path, when):
    """The process kills itself just before or just after the commit of a batch."""
    links, commits = Links.from_thresholds(THRESHOLDS, threads=1), 3
    batches = [X[10 * i : 10 * i + 10] for i in range(6)]
    right = [links.add_many(rows).tolist() for rows in batches]
    data = tmp_path / "data"
    with ProcessService(nest, data) as service:
        service.namespace("people")
        service.stop()
    answered = 0
    with ProcessService(nest, data, fault={"when": when, "commit": commits}) as service:
        for number, rows in enumerate(batches):
            ids = sent(service, number, rows)
            if ids is None:
                break
            assert ids == right[number]
            answered += 1
        assert answered == commits - 1
        assert service.wait().status == -signal.SIGKILL
    with Store.open(data / "people.links", threads=1) as store:
        assert store.n_vectors == 10 * (answered + (when == "after"))
    with ProcessService(nest, data) as service:
        for number, rows in enumerate(batches):  # from the start: nobody knows how far it came
            assert sent(service, number, rows) == right[number]
        assert service.get("/v1/namespaces/people").json["vectors"] == len(X)
        service.stop()
    with Store.open(data / "people.links", threads=1) as store:
        assert store.state_hash() == links.state_hash()
        assert [operation.key for operation in told(store)] == [f"b{i}" for i in range(6)]


def test_everything_repeated_after_each_kill_counts_once(nest, tmp_path):
    """Several clients retry while the service is killed."""
    data, batches, clients = tmp_path / "data", 20, 3
    rng, done = np.random.default_rng(8), {}
    rows = {
        (number, i): vectors(np.random.default_rng([number, i]), 1 + i % 7)
        for number in range(clients)
        for i in range(batches)
    }

    with ProcessService(nest, data) as service:
        service.namespace("people")

        def client(number):
            for i in range(batches):
                key = f"{number}:{i}"
                while True:
                    try:
                        answer = service.post(
                            "/v1/namespaces/people/vectors",
                            rows[number, i],
                            headers={"Idempotency-Key": key},
                        )
                    except (OSError, http.client.HTTPException):
                        continue
                    if answer.status == 200:
                        done[key] = answer.ids
                        break

        with ThreadPoolExecutor(clients) as pool:
            calls = [pool.submit(client, number) for number in range(clients)]
            for _ in range(3):
                before = len(done)
                goal = before + int(rng.integers(1, 12))
                until(lambda goal=goal: len(done) >= goal or all(call.done() for call in calls))
                service.kill()
                service.start()
            for call in calls:
                call.result(timeout=60)
        service.stop()
    with Store.open(data / "people.links", threads=1) as store:
        found = {operation.key: operation.result.tolist() for operation in told(store)}
        assert store.journal.n_operations == batches * clients
        assert found == done
