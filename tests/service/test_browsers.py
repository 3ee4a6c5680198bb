"""Pages of other sites can do nothing through a user's browser."""

from __future__ import annotations

import json

import numpy as np
import pytest

from service.calling import head, raw_answers
from service.routes import ROUTES, STREAMS
from store.operations import vectors

X = vectors(np.random.default_rng(2), 6)
BODY = json.dumps({"vectors": X[:1].tolist()}).encode()

FOREIGN = {
    "another origin": {"origin": "http://evil.example"},
    "no origin": {"origin": "null"},
    "an empty origin": {"origin": ""},
    "another port": {"origin": "http://127.0.0.1:1"},
    "another name for us": {"origin": "http://localhost:{port}"},
    "ours in front": {"origin": "http://127.0.0.1:{port}.evil.example"},
    "ours as a user": {"origin": "http://127.0.0.1:{port}@evil.example"},
    "cross-site": {"sec_fetch_site": "cross-site"},
    "same-site": {"sec_fetch_site": "same-site"},
    "a word that we do not know": {"sec_fetch_site": "galactic"},
    "cross-site, with our origin": {
        "origin": "http://127.0.0.1:{port}",
        "sec_fetch_site": "cross-site",
    },
}
OWN = {
    "no browser": {},
    "our page": {"origin": "http://127.0.0.1:{port}", "sec_fetch_site": "same-origin"},
    "typed by a reader": {"sec_fetch_site": "none"},
}


def sent(service, method, path, headers, body=None, **more):
    filled = {name: value.replace("{port}", str(service.port)) for name, value in headers.items()}
    request = head(method, path, body=body, host=f"127.0.0.1:{service.port}", **filled, **more)
    (answer,) = raw_answers(service.port, request)
    return answer


@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN)
def test_another_site_can_neither_write_nor_read(service, namespace, headers):
    for media in ("application/json", "text/plain"):
        answer = sent(service, "POST", f"{namespace}/vectors", headers, BODY, content_type=media)
        assert (answer.status, answer.kind) == (403, "origin")
    for path in (namespace, "/v1/namespaces", "/metrics", f"{namespace}/live"):
        answer = sent(service, "GET", path, headers)
        assert (answer.status, answer.kind) == (403, "origin"), path
    assert service.get(namespace).json["vectors"] == 0


@pytest.mark.parametrize("headers", OWN.values(), ids=OWN)
def test_the_dashboard_and_programs_may_call(service, namespace, headers):
    answer = sent(
        service, "POST", f"{namespace}/vectors", headers, BODY, content_type="application/json"
    )
    assert answer.status == 200


def test_a_link_from_another_site_opens_the_dashboard(service):
    leading = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
    assert sent(service, "GET", "/", leading, sec_fetch_dest="document").status == 200


def test_preflight_requests_get_no_cors_headers(service, namespace):
    headers = {"origin": "http://evil.example"}
    asks = {"access_control_request_method": "POST"}
    answer = sent(service, "OPTIONS", f"{namespace}/vectors", headers, **asks)
    assert answer.status >= 400
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_every_response_has_the_security_headers(service, namespace):
    # What `call` looks at, it looks at in every answer; here: of every route there is.
    name = namespace.rpartition("/")[2]
    for route in ROUTES:
        if route in STREAMS:
            continue
        answer = service.call(route.method, route.target(name), route.body)
        assert answer.headers["referrer-policy"] == "no-referrer", route.name
        if route.path.startswith("/v1"):
            assert "no-store" in answer.headers["cache-control"], route.name
    for path in ("/", "/nothing", "/v1/nothing", "/page/nothing.js"):
        service.get(path)


def test_responses_to_malformed_requests_have_the_security_headers(service):
    for data in (b"nonsense\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01"):
        for answer in raw_answers(service.port, data):
            assert answer.status == 400
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_the_dashboard_loads_only_its_own_files(service):
    answer = service.get("/")
    policy = dict(
        part.strip().partition(" ")[::2]
        for part in answer.headers["content-security-policy"].split(";")
    )
    assert answer.headers["content-type"].startswith("text/html")
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["connect-src"] == "'self'"
    assert policy["base-uri"] == policy["form-action"] == policy["frame-ancestors"] == "'none'"
    assert "unsafe-eval" not in answer.headers["content-security-policy"]
    assert b"<script>" not in answer.body
    assert b" onclick" not in answer.body
    assert b" style=" not in answer.body
    assert b"http://" not in answer.body.replace(b"http://www.w3.org/", b"")
    assert b"https://" not in answer.body


# Names are hostile text

NAMES = {
    "an image that is none": "<img src=x onerror=alert(1)>",
    "an end of a script": "</script><script>alert(1)</script>",
    "quotes": "\"'`&lt;",
    "from right to left": "\u202egnp.exe",
    "marks": "\u200f\u200e\u2066x\u2069",
    "a sign above": "a\u0301" * 50,
    "letters of three bytes": "名前" * 20,
    "letters beyond": "\U0001f600" * 20,
    "a line break": "a\nb",
    "two, as in headers": "a\r\nset-cookie: a=b\r\n\r\n<html>",
    "lines of other alphabets": "a\u2028b\u2029c\x85d",
    "a tab": "a\tb",
    "NUL": "a\0b",
    "an escape": "\x1b[31mred",
    "the first letter there is not": "\ufffe\uffff",
    "a template": "{{7*7}}${7*7}%s%n",
    "a query": "'; DROP TABLE operations; --",
    "no letter at all": " ",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_names_are_returned_unchanged_or_refused_and_never_as_html(service, namespace, name):
    service.post(f"{namespace}/vectors", X)
    answer = service.post(f"{namespace}/name", {"cluster": 0, "name": name})
    if answer.status == 400:
        assert not name.isprintable() or not name.strip()
        return
    assert answer.status == 200
    clusters = service.get(f"{namespace}/clusters")
    assert name in [one["name"] for one in clusters.json["clusters"]]
    for path in ("/clusters/0", "/clusters", "/map", "/review", "/events", "/subclusters/0"):
        answer = service.get(namespace + path)
        assert answer.status == 200
        assert answer.headers["content-type"].split(";")[0] == "application/json"
        answer.body.decode("ascii" if answer.body.isascii() else "utf-8")
    assert service.get("/metrics").status == 200


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_payloads_are_returned_unchanged(service, namespace, name):
    payload = {name: [name, {"deep": name}]}
    body = {"vector": X[0].tolist(), "payload": payload, "group": name}
    answer = service.post(f"{namespace}/vectors", body)
    if answer.status == 400:
        body.pop("group")
        answer = service.post(f"{namespace}/vectors", body)
    assert answer.status == 200
    assert service.get(f"{namespace}/vectors/0").json["payload"] == payload


def test_a_search_accepts_any_text(service, namespace):
    service.post(f"{namespace}/vectors", X)
    service.post(f"{namespace}/name", {"cluster": 0, "name": "Ann (50%)"})
    for text, found in (("ann", 1), ("%25", 1), ("(", 1), ("_", 0), (".*", 0), ("%5B", 0)):
        answer = service.get(f"{namespace}/clusters?q={text}")
        assert answer.status == 200
        assert answer.json["total"] == found, text
