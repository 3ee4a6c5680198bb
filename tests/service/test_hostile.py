"""Hostile JSON, vectors and files over HTTP are refused quickly and change nothing."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

from service.calling import JSON, head, raw_answers, refused
from store.operations import DIMENSION, vectors

X = vectors(np.random.default_rng(0), 20)
ROW = json.dumps(X[0].tolist()).encode()
DIGITS = b"9" * 5_000
DEEP = 100_000

# What is not JSON, whatever it is sent for.
NOT_JSON = {
    "nothing": b"",
    "space": b"  \n",
    "NaN": b'{"vector": [NaN, 1, 2, 3, 4, 5, 6, 7]}',
    "Infinity": b'{"vector": [Infinity, 1, 2, 3, 4, 5, 6, 7]}',
    "-Infinity": b'{"vector": [-Infinity, 1, 2, 3, 4, 5, 6, 7]}',
    "NaN in what is not looked at": b'{"vector": %b, "payload": {"a": [NaN]}}' % ROW,
    "a key twice": b'{"vector": %b, "vector": %b}' % (ROW, ROW),
    "a key twice, deeper": b'{"vector": %b, "payload": {"a": 1, "a": 2}}' % ROW,
    "a key twice, once escaped": b'{"vector": %b, "vecto\\u0072": %b}' % (ROW, ROW),
    "lists in lists": b"[" * DEEP + b"]" * DEEP,
    "lists in lists, not closed": b"[" * DEEP,
    "objects in objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "a deep vector": b'{"vector": ' + b"[" * DEEP + b"1" + b"]" * DEEP + b"}",
    "a deep payload": b'{"vector": %b, "payload": ' % ROW + b"[" * DEEP + b"]" * DEEP + b"}",
    "bad UTF-8": b'{"vector": %b, "group": "\xff\xfe"}' % ROW,
    "UTF-8 that is longer than it should be": b'{"vector": %b, "group": "\xc0\xaf"}' % ROW,
    "a surrogate as UTF-8": b'{"vector": %b, "group": "\xed\xa0\x80"}' % ROW,
    "UTF-8 that ends too soon": b'{"vector": %b, "group": "\xe2\x82' % ROW,
    "UTF-16": '{"vector": [1, 0, 0, 0, 0, 0, 0, 0]}'.encode("utf-16"),
    "two values": b'{"vector": %b} {"vector": %b}' % (ROW, ROW),
    "a comment": b'{"vector": %b} // fine' % ROW,
    "single quotes": b"{'vector': [1]}",
    "not closed": b'{"vector": [1, 2',
    "a comma too many": b'{"vector": [1, 2,]}',
    "NUL": b"\0",
    "a raw newline in text": b'{"vector": %b, "group": "a\nb"}' % ROW,
    "HTML": b"<html><script>alert(1)</script></html>",
}

# JSON that is no good as vectors.
NO_VECTORS = {
    "1e999": b'{"vector": [1e999, 1, 2, 3, 4, 5, 6, 7]}',
    "-1e999": b'{"vectors": [[-1e999, 1, 2, 3, 4, 5, 6, 7]]}',
    "1e39": b'{"vector": [1e39, 1, 2, 3, 4, 5, 6, 7]}',
    "5,000 digits": b'{"vector": [%b, 1, 2, 3, 4, 5, 6, 7]}' % DIGITS,
    "400 digits": b'{"vector": [1%b, 1, 2, 3, 4, 5, 6, 7]}' % (b"0" * 400),
    "5,000 digits as a weight": b'{"vector": %b, "weight": %b}' % (ROW, DIGITS),
    "5,000 digits of a fraction as a weight": b'{"vector": %b, "weight": -0.%b}' % (ROW, DIGITS),
    "a weight of 1e999": b'{"vector": %b, "weight": 1e999}' % ROW,
    "a weight below zero": b'{"vector": %b, "weight": -1}' % ROW,
    "a weight that is text": b'{"vector": %b, "weight": "1"}' % ROW,
    "a weight that is true": b'{"vector": %b, "weight": true}' % ROW,
    "weights for others": b'{"vectors": [%b], "weights": [1, 1]}' % ROW,
    "payloads for others": b'{"vectors": [%b], "payloads": [1, 2]}' % ROW,
    "payloads that are no list": b'{"vectors": [%b], "payloads": "a"}' % ROW,
    "a group that is a number": b'{"vectors": [%b], "group": 5}' % ROW,
    "a group that is a list": b'{"vectors": [%b], "group": ["a"]}' % ROW,
    "a lone surrogate as a group": b'{"vectors": [%b], "group": "\\ud800"}' % ROW,
    "null": b"null",
    "a number": b"1",
    "text": b'"vector"',
    "a list": b"[]",
    "an empty object": b"{}",
    "a vector that is null": b'{"vector": null}',
    "vectors that are null": b'{"vectors": null}',
    "no numbers": b'{"vector": []}',
    "a zero vector": b'{"vector": [0, 0, 0, 0, 0, 0, 0, 0]}',
    "too few numbers": b'{"vector": [1, 0]}',
    "numbers as text": b'{"vector": ["1", "0", "0", "0", "0", "0", "0", "0"]}',
    "null among numbers": b'{"vector": [null, 1, 2, 3, 4, 5, 6, 7]}',
    "true among numbers": b'{"vectors": [[true, 1, 2, 3, 4, 5, 6, 7]]}',
    "an object": b'{"vector": {"0": 1}}',
    "text for a vector": b'{"vector": "\\u0000\\u0000"}',
    "ragged rows": b'{"vectors": [%b, [1, 2]]}' % ROW,
    "a row that is a number": b'{"vectors": [%b, 1]}' % ROW,
    "rows of rows": b'{"vectors": [[%b]]}' % ROW,
    "one vector as many": b'{"vectors": %b}' % ROW,
    "many vectors as one": b'{"vector": [%b]}' % ROW,
    "vector and vectors": b'{"vector": %b, "vectors": [%b]}' % (ROW, ROW),
    "a field that nobody knows": b'{"vector": %b, "payloadd": 1}' % ROW,
    "a hundred thousand fields": b'{"vector": %b, ' % ROW
    + b", ".join(b'"f%d": 0' % i for i in range(100_000))
    + b"}",
}


@pytest.fixture(scope="module")
def started(service):
    """Return a namespace with vectors; no test here may add one."""
    path = service.namespace("hostile")
    assert service.post(f"{path}/vectors", X).status == 200
    yield path
    assert service.get(path).json["vectors"] == len(X)


@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON)
def test_invalid_json_is_refused_by_every_route(service, started, body):
    for verb in ("vectors", "ask", "groups", "name", "same", "explain", "enrol", "undo", "settle"):
        if verb in ("undo", "settle") and not body.strip():
            continue  # nothing to say may be said with nothing
        refused(service, "POST", f"{started}/{verb}", body)
    refused(service, "PUT", "/v1/namespaces/hostile-put", body)


@pytest.mark.parametrize("body", NO_VECTORS.values(), ids=NO_VECTORS)
def test_invalid_vectors_are_refused(service, started, body):
    for verb in ("vectors", "ask", "groups"):
        answer = refused(service, "POST", f"{started}/{verb}", body)
        assert answer.kind in ("argument", "vector", "dimension"), answer.body


@pytest.mark.long
def test_large_invalid_bodies_are_refused_quickly(service, started):
    slow = {}
    for name, body in (NOT_JSON | NO_VECTORS).items():
        best = 9.0
        for _ in range(10):
            best = min(best, service.post(f"{started}/vectors", body, headers=JSON).seconds)
        if best > 0.1:
            slow[name] = best
    assert slow == {}


def test_an_error_in_a_batch_names_its_row_and_nothing_is_added(service, started):
    rows = X[:5].tolist()
    rows[3] = [0.0] * DIMENSION
    answer = service.post(f"{started}/vectors", {"vectors": rows})
    assert (answer.status, answer.kind) == (400, "vector")
    assert answer.json["error"]["row"] == 3


VERBS = {
    "a name that is a number": ("name", {"cluster": 0, "name": 5}),
    "a name that is too long": ("name", {"cluster": 0, "name": "a" * 201}),
    "a name of a million characters": ("name", {"cluster": 0, "name": "a" * 10**6}),
    "a name with a lone surrogate": ("name", {"cluster": 0, "name": "\ud800"}),
    "an empty name": ("name", {"cluster": 0, "name": ""}),
    "a cluster that is text": ("name", {"cluster": "0", "name": "Ann"}),
    "a cluster that is a fraction": ("name", {"cluster": 0.5, "name": "Ann"}),
    "a cluster that is true": ("name", {"cluster": True, "name": "Ann"}),
    "a cluster that is null": ("forget", {"cluster": None}),
    "a cluster that is a list": ("forget", {"cluster": [0]}),
    "a cluster below zero": ("forget", {"cluster": -1}),
    "a cluster beyond 64 bits": ("forget", {"cluster": 2**64}),
    "a vector beyond 64 bits": ("remove", {"vector": 2**63}),
    "a vector below zero": ("remove", {"vector": -1}),
    "a vector that was never there": ("move", {"vector": 10**9, "cluster": 0}),
    "pairs of what is not": ("same", {"a": 0, "b": 1, "of": "people"}),
    "pairs of 400 digits": ("same", {"a": 10**400, "b": 1, "of": "vectors"}),
    "a pair with one of them": ("different", {"a": 0}),
    "the same as itself, different": ("different", {"a": 0, "b": 0}),
    "undo to before all": ("undo", {"to": -1}),
    "undo to what is yet to come": ("undo", {"to": 10**9}),
    "undo to text": ("undo", {"to": "0"}),
    "ignore by text": ("ignore", {"cluster": 0, "on": "yes"}),
    "claim by text": ("name", {"cluster": 0, "name": "Ann", "claim": "yes"}),
    "enrol nobody": ("enrol", {"name": "", "vectors": X[:1].tolist()}),
    "enrol without vectors": ("enrol", {"name": "Ann", "vectors": []}),
    "enrol with NaN's kin": ("enrol", {"name": "Ann", "vectors": [[0.0] * DIMENSION]}),
    "explain with a limit below zero": ("explain", {"vector": X[0].tolist(), "limit": -1}),
    "explain with a limit of 400 digits": ("explain", {"vector": X[0].tolist(), "limit": 10**400}),
    "a field that nobody knows": ("forget", {"cluster": 10**6, "really": True}),
}


@pytest.mark.parametrize(("verb", "body"), VERBS.values(), ids=VERBS)
def test_invalid_corrections_are_refused_and_change_nothing(service, started, verb, body):
    before = service.get(f"{started}/events").json
    refused(service, "POST", f"{started}/{verb}", body, statuses=(400, 404, 409), headers={})
    assert service.get(f"{started}/events").json == before


QUERIES = {
    "clusters": ("limit", "offset"),
    "clusters/0/vectors": ("limit", "before"),
    "suggestions": ("limit",),
    "review": ("limit",),
    "events": ("since", "limit"),
    "explain?b=1&of=vectors": ("a",),
}
VALUES = ("-1", "1.5", "NaN", "abc", "", "1e3", "9" * 5_000, "9" * 30, "0x10", "%00", "٣")


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_invalid_numbers_in_a_query_are_refused(service, started, value):
    for path, names in QUERIES.items():
        for name in names:
            joint = "&" if "?" in path else "?"
            target = f"{started}/{path}{joint}{name}={value}".encode().decode("latin-1")
            (answer,) = raw_answers(service.port, head("GET", target))
            allowed = (400, 404) if value == "9" * 30 else (400,)
            assert answer.status in allowed, (path, name, answer)


@pytest.mark.parametrize(
    "value", ["-1", "abc", "9" * 30, "9" * 5_000, "1.5", "%00", "0%2f..", "%20"]
)
def test_invalid_ids_in_a_path_are_refused(service, started, value):
    for path in ("clusters/{}", "clusters/{}/vectors", "vectors/{}", "subclusters/{}"):
        answer = service.get(f"{started}/{path.format(value)}")
        assert answer.status in (400, 404), (path, answer)


def test_random_bytes_do_not_harm_the_service(service, started):
    rng = np.random.default_rng(5)
    good = json.dumps({"vectors": X[:3].tolist(), "payloads": [1, {"a": None}, "x"]}).encode()
    before, end = service.get(started).json["vectors"], time.monotonic() + 2.0
    with service.caller() as caller:
        while time.monotonic() < end:
            body = bytearray(good)
            for _ in range(int(rng.integers(1, 6))):
                body[rng.integers(len(body))] = rng.integers(256)
            answer = caller.post(f"{started}/ask", bytes(body), headers=JSON)
            assert answer.status in (200, 400)
    assert service.get(started).json["vectors"] == before
