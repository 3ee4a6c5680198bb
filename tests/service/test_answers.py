"""Answers to HEAD, files of the page, Swagger UI, and errors that tell neither paths nor jargon."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import re

import numpy as np
import pytest

from linkstream.service import assets
from linkstream.service.responses import without_folder
from linkstream.service.routes import vectors as vector_routes
from page.served import THRESHOLDS
from service.calling import head, raw_answers
from service.routes import ROUTES, STREAMS
from service.server import ThreadService
from store.operations import vectors

X = vectors(np.random.default_rng(3), 6)
MIB = 1 << 20
JARGON = re.compile(r"pydantic|Input should|valid (integer|dictionary|string)|Field required")


@pytest.fixture
def filled(service, namespace):
    """A namespace with vectors."""
    service.post(f"{namespace}/vectors", X)
    return namespace


# HEAD


def test_head_has_the_headers_of_get_and_no_body(service, filled):
    name = filled.rpartition("/")[2]
    for route in ROUTES:
        if route.method != "GET" or route in STREAMS:
            continue
        path = route.target(name)
        got, (told,) = service.get(path), raw_answers(service.port, head("HEAD", path))
        assert told.status == got.status, path
        assert told.body == b"", path
        assert told.headers["content-type"] == got.headers["content-type"], path


def test_head_of_a_stream_ends(service, filled):
    for path in (f"{filled}/live", f"{filled}/events/stream"):
        (told,) = raw_answers(service.port, head("HEAD", path))
        assert told.status == 200
        assert told.headers["content-type"].startswith("text/event-stream")
        assert told.body == b""


def test_head_of_a_route_that_only_writes_is_refused(service, filled):
    (told,) = raw_answers(service.port, head("HEAD", f"{filled}/name"))
    assert told.status == 405


# Files of the page


def test_files_of_the_page_are_compressed_and_revalidated(service):
    plain = service.get("/page/app.js")
    packed = service.get("/page/app.js", headers={"Accept-Encoding": "br, gzip;q=0.5"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body) / 2
    assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"
    assert plain.headers["etag"] != packed.headers["etag"]
    for answer in (plain, packed):
        known = {"If-None-Match": f'"other", W/{answer.headers["etag"]}'}
        again = service.get("/page/app.js", headers=known)
        assert (again.status, again.body) == (304, b"")
    other = service.get("/page/app.js", headers={"If-None-Match": '"other"'})
    assert other.status == 200


@pytest.mark.parametrize("refused", ["gzip;q=0", "gzip; q=0.000", "identity", "", "br"])
def test_a_client_that_refuses_gzip_gets_plain_files(service, refused):
    answer = service.get("/page/app.js", headers={"Accept-Encoding": refused})
    assert "content-encoding" not in answer.headers
    assert answer.body.startswith(b"/**")


def test_the_whole_page_weighs_less_than_a_photo():
    parts = assets.assets("linkstream.service", "dashboard").values()
    plain, packed = sum(len(part.body) for part in parts), sum(len(part.packed) for part in parts)
    print(f"the page: {plain:,} bytes, {packed:,} compressed")  # noqa: T201
    assert packed < 300_000


# Swagger UI


def test_swagger_ui_is_served_from_the_service_alone(service):
    page = service.get("/docs")
    policy = page.headers["content-security-policy"]
    assert page.status == 200
    assert "script-src 'self';" in policy
    assert "style-src 'self' 'unsafe-inline'" in policy
    links = re.findall(rb'(?:src|href)="([^"]+)"', page.body)
    assert len(links) == 4
    for link in links:
        part = service.get(link.decode())
        assert part.status == 200, link
        assert "unsafe-inline" not in part.headers["content-security-policy"]
    assert service.get("/docs/other.js").status == 404


# Errors


WRONG = {
    "clusters/abc": ("cluster: 'abc'", "a whole number"),
    "clusters?limit=0": ("limit: '0'", "1 or more"),
    "clusters?order=x": ("order: 'x'", "one of 'size', 'id', 'recent' or 'name'"),
    "clusters/0?brief=x": ("brief: 'x'", "true or false"),
    "vectors": ("no id", "a value of id"),
    "name": ("cluster: 'x'", "a whole number"),
    "settle": ("apply: 3", "true or false"),
}
BODIES = {"name": {"cluster": "x", "name": "Ann"}, "settle": {"apply": 3}}


@pytest.mark.parametrize(("route", "words"), WRONG.items(), ids=WRONG)
def test_an_invalid_request_is_explained_in_plain_words(service, filled, route, words):
    body = BODIES.get(route)
    answer = service.call("POST" if body else "GET", f"{filled}/{route}", body)
    error = answer.json["error"]
    assert answer.status == 400
    assert (error["seen"], error["expected"]) == words


def test_no_route_answers_in_the_words_of_the_validator(service, filled):
    name = filled.rpartition("/")[2]
    for route in ROUTES:
        for body in ([], {"a": [], "cluster": {}, "to": "x", "thresholds": 5}, {}):
            path = route.target(name)
            if route in STREAMS or route.method == "GET":
                break
            answer = service.call(route.method, path, body)
            assert not JARGON.search(answer.body.decode(errors="replace")), (route.name, body)


def test_an_error_about_a_store_does_not_tell_where_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "broken.links").write_bytes(b"nonsense" * 100)
    for folder in (os.path.relpath(tmp_path / "data"), tmp_path / "data"):
        with ThreadService(folder) as service:
            answer = service.get("/v1/namespaces/broken/stats")
            assert answer.status == 503
            assert answer.json["error"]["seen"].startswith("broken.links: ")
            assert str(tmp_path).encode() not in answer.body


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("/srv/data/a.links: damaged", "a.links: damaged"),
        ("'/srv/data/sub/a.links' and /srv/data/b", "'sub/a.links' and b"),
        ("the folder /srv/data is full", "the folder the data folder is full"),
        ("/srv/database/a.links", "/srv/database/a.links"),
        ("/backup/srv/data/a.links", "/backup/srv/data/a.links"),
        ("nothing", "nothing"),
    ],
)
def test_paths_in_the_data_folder_are_removed_from_texts(words, told):
    assert without_folder(words, "/srv/data/") == told


def test_blanks_around_a_key_do_not_count_and_blanks_within_are_refused(service, namespace):
    body = json.dumps({"vectors": X[:2].tolist()}).encode()
    how = {"content_type": "application/json"}
    for key in ("batch-1", " batch-1", "batch-1  "):
        request = head("POST", f"{namespace}/vectors", body=body, idempotency_key=key, **how)
        assert raw_answers(service.port, request)[0].status == 200
    assert service.get(namespace).json["vectors"] == 2
    request = head("POST", f"{namespace}/vectors", body=body, idempotency_key="batch 1", **how)
    (answer,) = raw_answers(service.port, request)
    assert answer.status == 400
    assert answer.json["error"]["expected"] == "1 to 255 printable ASCII characters without blanks"


@pytest.mark.parametrize("size", [MIB // 4, 4 * MIB])
def test_a_client_that_sends_a_long_head_sees_why_it_is_refused(service, size):
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    connection.request("GET", "/healthz", headers={"X-Long": "a" * size})
    answer = connection.getresponse()
    assert answer.status == 431
    assert json.load(answer)["error"]["kind"] == "too-large"
    connection.close()


# Faults


def test_a_fault_is_told_as_json_and_logged_once(tmp_path, monkeypatch, caplog):
    def broken(*_):
        raise KeyError("no such thing")

    with ThreadService(tmp_path / "data") as service:
        service.put("/v1/namespaces/people", {"thresholds": THRESHOLDS})
        monkeypatch.setattr(vector_routes, "_vector", broken)
        told = service.call("GET", "/v1/namespaces/people/vectors/0", sound=False)
    assert (told.status, told.kind) == (500, "fault")
    assert [each.exc_info[0] for each in caplog.records if each.exc_info] == [KeyError]


def test_a_mean_beyond_single_precision_is_refused_without_a_fault(service, filled):
    body = {"space": {"mean": [1e300, 0.0], "model": "two"}}
    assert service.post(f"{filled}/migration", body).status == 400
