"""Failures below the service: full disks, kills while stores are made, kills amid all verbs."""

from __future__ import annotations

import http.client
import threading
import time

import numpy as np
import pytest

from linkstream.store import Store
from service.calling import Caller
from service.server import MADE_WITH, ProcessService, until
from store.operations import VERBS, Shadow, make_operation, vectors

X = vectors(np.random.default_rng(13), 60)


def test_a_failed_commit_is_not_acknowledged_and_the_next_request_succeeds(nest, tmp_path):
    data = tmp_path / "data"
    with ProcessService(nest, data) as service:
        paths = [service.namespace(name) for name in ("people", "other")]
        service.stop()
    with ProcessService(nest, data, fault={"when": "fail", "commit": 3}) as service:
        taken = 0
        for first in range(0, 40, 10):
            answer = service.post(f"{paths[0]}/vectors", X[first : first + 10])
            if first == 20:
                assert answer.status == 503, answer
                assert answer.kind.startswith("store"), answer.body
                assert service.post(f"{paths[1]}/vectors", X[:3]).status == 200
                again = until(lambda: well(service, paths[0], X[20:30]))
                assert again["first"] == 20
            else:
                assert answer.status == 200
            taken += 10
        assert service.get("/healthz").json["status"] == "ok"
        ended = service.stop()
        assert "full" in ended.errors, "nobody was told why"
    with Store.open(data / "people.links", threads=1) as store:
        assert store.n_vectors == taken
        assert np.array_equal(store.vectors(range(taken)), X[:taken])


def well(service, path, rows):
    answer = service.post(f"{path}/vectors", rows)
    assert answer.status in (200, 503)
    return answer.json if answer.status == 200 else None


@pytest.mark.parametrize("kills", [3, pytest.param(30, marks=pytest.mark.long)])
def test_after_a_kill_each_namespace_is_complete_or_can_be_made_again(nest, tmp_path, kills):
    rng, made, number = np.random.default_rng(2), set(), 0
    with ProcessService(nest, tmp_path / "data") as service:
        for _ in range(kills):
            end = threading.Timer(rng.uniform(0.0, 0.15), service.kill)
            end.start()
            try:
                with Caller(service.port) as caller:
                    while True:
                        number += 1
                        answer = caller.put(f"/v1/namespaces/n{number}", MADE_WITH)
                        if answer.status == 201:
                            made.add(f"n{number}")
            except (OSError, http.client.HTTPException):
                pass
            end.join()
            service.start()
            listed = service.get("/v1/namespaces").json["namespaces"]
            assert made <= {one["name"] for one in listed}
            for one in listed[-3:]:
                path = f"/v1/namespaces/{one['name']}"
                assert service.post(f"{path}/vectors", X[:2]).status == 200
            assert service.put(f"/v1/namespaces/n{number}", MADE_WITH).status in (200, 201)
            made.add(f"n{number}")
        service.stop()


# All verbs


def body_of(what):
    """Return the path and the body of the request for an operation."""
    values = dict(what.arguments)
    if what.verb in ("settle", "rebuild"):
        return what.verb, {"apply": True}
    if what.rows is None:
        return what.verb, values
    if what.verb == "add":
        body = {"vector": what.rows[0].tolist()}
        if what.payloads is not None:
            body["payload"] = what.payloads[0]
        return "vectors", body | values
    body = {"vectors": what.rows.tolist()}
    if what.payloads is not None:
        body["payloads"] = what.payloads
    if "weight" in values:
        values["weights"] = values.pop("weight")
    path = {"add_many": "vectors", "add_group": "groups", "enrol": "enrol"}[what.verb]
    return path, body | values


KINDS = {"unknown-id": "UnknownIdError", "removed": "RemovedError", "undo": "UndoError"}
KINDS |= {"argument": "ArgumentError", "contradiction": "ContradictionError"}


def plain(verb, answer):
    """Return an answer in the form of the reference run."""
    if answer.status != 200:
        return KINDS[answer.kind]
    told = answer.json
    if verb == "add" or verb == "move":
        return told["cluster"], told["subcluster"], told["kind"], told["sequence"]
    if verb in ("add_many", "add_group"):
        return told["ids"]
    return told["cluster"] if verb == "enrol" else None


def expected(verb, answer):
    if verb in ("add", "move") and isinstance(answer, list):
        cluster, subcluster, kind, *_ = answer
        return cluster, subcluster, kind, answer[5]
    return answer


def sent(service, number, what):
    """Send a request until there is an answer."""
    path, body = body_of(what)
    end = time.monotonic() + 60.0
    while time.monotonic() < end:
        try:
            answer = service.post(
                f"/v1/namespaces/people/{path}", body, headers={"Idempotency-Key": f"d{number}"}
            )
        except (OSError, http.client.HTTPException):
            time.sleep(0.005)
            continue
        if answer.status not in (429, 503):
            return answer
    raise AssertionError("no answer")


@pytest.mark.parametrize("operations", [80, pytest.param(400, marks=pytest.mark.long)])
def test_all_verbs_retried_over_kills_give_the_state_of_an_uninterrupted_run(
    nest, tmp_path, operations
):
    shadow, over, due, kills = Shadow(5, verbs=VERBS), threading.Event(), threading.Event(), []
    rng = np.random.default_rng(5)
    with ProcessService(nest, tmp_path / "data") as service:
        service.namespace("people")

        def killing():
            while due.wait() and not over.is_set():
                due.clear()
                time.sleep(rng.uniform(0.0, 0.02))  # in the middle of some request
                service.kill()
                service.start()
                kills.append(due)

        killer = threading.Thread(target=killing)
        killer.start()
        try:
            for number in range(operations):
                what = make_operation(5, number, shadow.links, verbs=VERBS)
                if number % 16 == 8:
                    until(lambda past=number // 16: len(kills) == past)
                    due.set()
                answer = sent(service, number, what)
                shadow.until(number + 1)
                right = expected(what.verb, shadow.answers[number])
                assert plain(what.verb, answer) == right, (number, what, answer)
            until(lambda: not due.is_set())
        finally:
            over.set()
            due.set()
            killer.join()
        assert len(kills) == operations // 16
        told = service.get("/v1/namespaces/people?hash=true").json
        assert told["state_hash"] == shadow.links.state_hash()
        assert told["vectors"] == shadow.links.n_vectors
        assert service.get("/v1/namespaces/people/labels").json["labels"] == (
            shadow.links.labels().tolist()
        )
        service.stop()
