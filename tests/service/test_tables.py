"""Tables, reports of changes and searches over HTTP are those of the store."""

from __future__ import annotations

import io
import json
import socket

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from linkstream.service.routes.tables import MEDIA
from linkstream.store import Store, tabular
from service.server import MADE_WITH, ThreadService, until
from store.operations import vectors
from store.test_words import HOSTILE

X = vectors(np.random.default_rng(3), 60)
PAYLOADS = [{"file": f"{i}.jpg", "n": i, "text": f"car {i}"} if i % 3 else None for i in range(60)]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with ThreadService(tmp_path_factory.mktemp("tables") / "data") as held:
        path = held.namespace("cars", search=True)
        held.post(f"{path}/vectors", {"vectors": X[:40].tolist(), "payloads": PAYLOADS[:40]})
        held.post(f"{path}/name", {"cluster": 0, "name": "Ann"})
        held.post(f"{path}/vectors", {"vectors": X[40:].tolist(), "payloads": PAYLOADS[40:]})
        yield held


@pytest.fixture
def store(service):
    with Store.open(service.data / "cars.links", read_only=True) as opened:
        yield opened


def told(service, route):
    answer = service.get(f"/v1/namespaces/cars/{route}")
    assert answer.status == 200, answer.body
    return answer


# Tables


def test_a_table_of_vectors_is_the_frame_of_the_store_in_each_format(service, store, monkeypatch):
    monkeypatch.setattr(tabular, "BLOCK", 7)
    frame = store.to_frame("arrow")
    arrow = told(service, "tables/vectors?format=arrow")
    assert pa.ipc.open_stream(arrow.body).read_all().equals(frame)
    parquet = told(service, "tables/vectors?format=parquet")
    assert pq.read_table(io.BytesIO(parquet.body)).equals(frame)
    lines = told(service, "tables/vectors?format=jsonl").body.splitlines()
    assert [json.loads(line) for line in lines] == frame.to_pylist()
    rows = told(service, "tables/vectors?format=csv").body.decode().splitlines()
    assert rows[0] == ",".join(frame.column_names)
    assert rows[2] == "1,{},{},,,1.jpg,1,car 1".format(  # no key, no time
        *(frame[c][1].as_py() or "" for c in ("cluster", "name"))
    )
    assert len(rows) == 61


def test_columns_rows_and_clusters_are_chosen(service, store):
    body = told(service, "tables/vectors?format=csv&columns=n,vector&since=57").body
    assert body == b"n,vector\n,57\n58,58\n59,59\n"
    only = told(service, "tables/vectors?format=jsonl&cluster=0&columns=vector").body.splitlines()
    assert [json.loads(line)["vector"] for line in only] == sorted(store.members(0).tolist())


def test_the_format_follows_from_accept_and_says_its_type(service):
    for route in ("tables/vectors", "tables/clusters"):
        for form, media in MEDIA.items():
            headers = {"Accept": f"text/html, {media}"}
            answer = service.get(f"/v1/namespaces/cars/{route}", headers=headers)
            assert answer.headers["content-type"] == media
            named = service.get(f"/v1/namespaces/cars/{route}?format={form}")
            assert named.body == answer.body
        plain = service.get(f"/v1/namespaces/cars/{route}")
        assert plain.headers["content-type"] == MEDIA["jsonl"]


def test_a_table_of_clusters_is_the_frame_of_the_store(service, store):
    frame = store.clusters_frame("arrow", order="size", limit=2, exemplars=1)
    body = told(service, "tables/clusters?format=arrow&order=size&limit=2&exemplars=1").body
    assert pa.ipc.open_stream(body).read_all().equals(frame)


@pytest.mark.parametrize(
    ("route", "status"),
    [
        ("tables/vectors?format=xls", 400),
        ("tables/vectors?columns=nothing", 400),
        ("tables/vectors?columns=vector,vector", 400),
        ("tables/vectors?cluster=999", 404),
        ("tables/clusters?order=name", 400),
        ("changes?since=9999", 400),
        ("search?q=%22", 400),
        ("search?q=car&field.n=1&field.n=2", 400),
        ("search?q=car&cluster=999", 404),
        ("search?q=car&limit=201", 400),
    ],
)
def test_what_cannot_be_answered_is_refused_before_the_answer_begins(service, route, status):
    answer = service.get(f"/v1/namespaces/cars/{route}")
    assert answer.status == status, answer.body
    assert answer.json["error"]["remedy"]


def test_a_client_that_goes_frees_its_place_and_one_too_many_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tabular, "BLOCK", 1)
    with ThreadService(tmp_path / "data", slow_calls=1) as service:
        path = service.namespace("many")
        for _ in range(4):
            text = ["x" * 60_000] * 60
            service.post(f"{path}/vectors", {"vectors": X.tolist(), "payloads": text})
        sessions = service.app.state.sessions
        with socket.create_connection(("127.0.0.1", service.port)) as reader:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            request = f"GET {path}/tables/vectors?format=jsonl HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
            reader.sendall(request.encode())
            assert reader.recv(100)
            assert sessions.tables == 1
            assert service.get(f"{path}/tables/vectors").status == 503
        until(lambda: sessions.tables == 0)
        assert len(service.get(f"{path}/tables/vectors").body) > 14_000_000


# Changes


def test_changes_are_those_of_the_store_with_vectors_if_asked_for(service, store):
    found = store.changes(10, 50)
    answer = told(service, "changes?since=10&until=50").json
    assert answer == {**found.to_dict(vectors=False), "words": str(found)} | {
        name: json.loads(json.dumps(answer[name])) for name in ("joined", "split")
    }
    listed = told(service, "changes?since=10&until=50&vectors=true").json
    for name in ("vectors", "before", "after"):
        assert listed[name] == getattr(found, name).tolist()


# Search


def test_a_search_is_that_of_the_store(service, store):
    for query, words, where, options in (
        ("q=car&limit=3", "car", None, {"limit": 3}),
        ("q=car&field.n=7", "car", {"n": 7}, {}),
        ("field.file=8.jpg", None, {"file": "8.jpg"}, {}),
        (
            "q=car&before=10&offset=2&order=best",
            "car",
            None,
            {"before": 10, "offset": 2, "order": "best"},
        ),
        ("q=car&cluster=0", "car", None, {"cluster": 0}),
    ):
        found = store.search(words, where=where, **options)
        assert told(service, f"search?{query}").json == found.to_dict()


@pytest.mark.parametrize("text", HOSTILE)
def test_no_query_is_a_fault(service, text):
    from urllib.parse import quote

    escaped = quote(text, errors="surrogatepass")
    answer = service.get(f"/v1/namespaces/cars/search?q={escaped}&field.%22={escaped}")
    assert answer.status in (200, 400), answer.body


def test_a_namespace_is_made_with_search_or_says_that_it_has_none(service):
    path = service.namespace("plain")
    service.post(f"{path}/vectors", {"vectors": X[:2].tolist(), "payloads": ["a", "b"]})
    answer = service.get(f"{path}/search?q=a")
    assert (answer.status, answer.json["error"]["kind"]) == (409, "not-tracked")
    assert service.put(path, MADE_WITH | {"search": True}).status == 409
    assert service.put(path, MADE_WITH | {"search": False}).status == 200
    assert service.get("/v1/namespaces/cars").json["search"] is True
