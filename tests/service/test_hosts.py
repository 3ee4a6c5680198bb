"""Requests for unknown host names are refused, against DNS rebinding."""

from __future__ import annotations

import json

import numpy as np
import pytest

from service.calling import head, raw_answers
from service.server import ThreadService
from store.operations import vectors

X = vectors(np.random.default_rng(1), 12)

HOSTS = {
    "another": "evil.example",
    "another, with our port": "evil.example:{port}",
    "ours in front": "127.0.0.1.evil.example",
    "ours as a user": "127.0.0.1@evil.example",
    "localhost in front": "localhost.evil.example",
    "none": "",
    "a space": "127.0.0.1 evil.example",
    "two": "127.0.0.1, evil.example",
    "all": "0.0.0.0",
    "noise": "\xff",
}


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
def test_a_request_for_another_host_is_refused(service, host):
    service.namespace("hosted")
    host = host.replace("{port}", str(service.port))
    for path in ("/v1/whoami", "/v1/namespaces/hosted", "/", "/metrics", "/openapi.json"):
        (answer,) = raw_answers(service.port, head("GET", path, host=host))
        assert answer.status in (400, 403, 421), (path, answer)
    body = json.dumps({"vectors": X[:1].tolist()}).encode()
    (answer,) = raw_answers(
        service.port, head("POST", "/v1/namespaces/hosted/vectors", host=host, body=body)
    )
    assert answer.status in (400, 403, 421)
    assert service.get("/v1/namespaces/hosted").json["vectors"] == 0


TWO = ("127.0.0.1", "evil.example")


@pytest.mark.parametrize("hosts", [(), TWO, TWO[::-1]], ids=["none", "two", "two, turned round"])
def test_a_request_without_host_or_with_two_is_refused(service, hosts):
    lines = ["GET /v1/whoami HTTP/1.1", *(f"host: {host}" for host in hosts), "connection: close"]
    (answer,) = raw_answers(service.port, "\r\n".join([*lines, "", ""]).encode())
    assert answer.status in (400, 403, 421)


def test_an_absolute_url_does_not_bypass_the_host_check(service):
    request = head("GET", "http://127.0.0.1/v1/whoami", host="evil.example")
    (answer,) = raw_answers(service.port, request)
    assert answer.status in (400, 403, 404, 421)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:{port}", "localhost", "LOCALHOST:{port}", "[::1]:{port}"]
)
def test_a_request_for_this_machine_is_answered(service, host):
    host = host.replace("{port}", str(service.port))
    (answer,) = raw_answers(service.port, head("GET", "/v1/whoami", host=host))
    assert answer.status == 200


def test_a_request_for_an_allowed_host_is_answered(tmp_path):
    with ThreadService(tmp_path / "data", allowed_hosts=("people.example",)) as service:
        for host, wanted in (("people.example", 200), ("evil.example", 403)):
            (answer,) = raw_answers(service.port, head("GET", "/v1/whoami", host=host))
            assert answer.status == wanted
