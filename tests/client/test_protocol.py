"""Requests that the clients send, and how they read answers and errors."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
import traceback

import httpx
import numpy as np
import pyarrow as pa
import pytest

from client.fakes import DECISION, TOKEN, URL, Awaited, Service, good, ids, never, refusal
from linkstream import Decision, Links, Space, Thresholds, errors
from linkstream.client import (
    AsyncClient,
    Client,
    migrations,
    reads,
    rebuilds,
    sending,
    speech,
    tables,
    writes,
)
from linkstream.client import errors as service_errors
from linkstream.client.errors import AnswerError, NotFoundError, ServiceError, TokenError
from linkstream.clusterer.verbs import VERBS as TABLE
from linkstream.errors import ArgumentError, ContradictionError, LinkstreamError, VectorError
from linkstream.store import JsonLines

X = np.eye(3, dtype=np.float32)


def everything_below(root):
    return [root, *(each for child in root.__subclasses__() for each in everything_below(child))]


# Requests


def test_vectors_of_any_dtype_are_sent_as_raw_float32(talk):
    service = Service(ids(0, 1, 2))
    with talk(service) as client:
        for given in (X, X.astype(">f8"), np.asfortranarray(X), X.astype(int).tolist()):
            client.add_many(given, group="photo ü")
    for request in service.asked:
        assert (request.method, request.url.path) == ("POST", "/v1/namespaces/people/vectors")
        assert dict(request.url.params) == {"dimension": "3", "group": "photo ü"}
        assert request.headers["content-type"] == "application/octet-stream"
        assert request.headers["accept"] == "application/octet-stream"
        assert request.content == X.astype("<f4").tobytes()


def columns_of(request):
    """Return the columns of a body of Arrow, payloads as values."""
    assert request.headers["content-type"] == "application/vnd.apache.arrow.stream"
    table = pa.ipc.open_stream(request.content).read_all()
    marks = {f.name: f.metadata[b"linkstream"].decode() for f in table.schema if f.metadata}
    assert marks == {name: name for name in table.schema.names if name != "vector"}
    found = table.to_pydict()
    if "payload" in found:
        found["payload"] = [json.loads(text) if text else None for text in found["payload"]]
    return found


def test_payloads_and_weights_are_sent_as_arrow(talk):
    service = Service(ids(0, 1, 2))
    with talk(service) as client:
        client.add_many(X, payloads=[{"t": 1}, None, "ü"], weight=0.5)
        client.add_group(X, group="photo", weight=[1, 0.5, np.float32(0.25)])
    many, group = map(columns_of, service.asked)
    rows = X.tolist()
    assert many == {"vector": rows, "payload": [{"t": 1}, None, "ü"], "weight": [0.5] * 3}
    assert group == {"vector": rows, "weight": [1.0, 0.5, 0.25]}
    assert dict(service.asked[1].url.params) == {"group": "photo"}


def test_payloads_that_are_json_or_arrow_are_sent_as_they_are(talk):
    service = Service(ids(0, 1, 2))
    with talk(service) as client:
        client.add_many(X, payloads=JsonLines('{"a": 1}\n\n"b"'))
        client.add_many(X, payloads=pa.table({"file": ["a.jpg", None, 'b"'], "n": [1, 2, 3]}))
    lines, table = map(columns_of, service.asked)
    assert lines["payload"] == [{"a": 1}, None, "b"]
    names = ("a.jpg", None, 'b"')
    assert table["payload"] == [{"file": f, "n": n} for n, f in enumerate(names, 1)]


def test_payloads_and_weights_are_sent_as_json_without_pyarrow(talk, monkeypatch):
    monkeypatch.setattr(sending, "pa", None)
    service = Service(ids(0, 1, 2))
    with talk(service) as client:
        client.add_many(X, payloads=[{"t": 1}, None, "ü"], weight=0.5)
    rows = X.tolist()
    said = {"vectors": rows, "payloads": [{"t": 1}, None, "ü"], "weights": [0.5] * 3}
    assert json.loads(service.asked[0].content) == said


@pytest.mark.parametrize("package", [pa, None])
def test_every_bit_of_float32_is_sent_with_payloads(talk, monkeypatch, package):
    monkeypatch.setattr(sending, "pa", package)
    rows = np.random.default_rng(0).standard_normal((20, 8)).astype(np.float32)
    service = Service(ids(*range(20)))
    with talk(service) as client:
        client.add_many(rows, payloads=range(20))
    (request,) = service.asked
    sent = columns_of(request)["vector"] if package else json.loads(request.content)["vectors"]
    assert np.array_equal(np.array(sent).astype(np.float32), rows)


def test_a_batch_that_is_too_large_is_sent_in_parts(talk):
    def answer():
        sent = columns_of(service.asked[-1])["payload"]
        return refusal(413, "too-large")() if len(sent) > 3 else ids(*sent)()

    rows = np.random.default_rng(0).standard_normal((10, 8)).astype(np.float32)
    service = Service(answer)
    with talk(service) as client:
        found = client.add_many(rows, payloads=range(10), idempotency_key="batch")
    assert found.tolist() == list(range(10))
    keys = [request.headers["idempotency-key"] for request in service.asked]
    assert keys[0] == "batch"
    taken = [each for each in service.asked if len(columns_of(each)["payload"]) <= 3]
    assert [each.headers["idempotency-key"] for each in taken] == [
        "batch:0-2",
        "batch:2-5",
        "batch:5-7",
        "batch:7-10",
    ]


def test_a_large_batch_begins_with_parts_that_a_service_takes(monkeypatch):
    monkeypatch.setattr(sending, "ROWS_MAX", 40)
    given = sending.vectors_to_send(np.ones((100, 4), dtype=np.float32), 1.0, ["x"] * 100)
    assert given.pieces() == [(0, 34), (34, 68), (68, 100)]
    monkeypatch.setattr(sending, "BYTES_MAX", given.n_bytes() // 10)
    assert len(given.pieces()) >= 10
    assert sum(end - start for start, end in given.pieces()) == 100


def test_a_part_that_fails_tells_the_key_of_the_call(talk, monkeypatch):
    monkeypatch.setattr(sending, "ROWS_MAX", 2)
    service = Service(ids(0, 1), refusal(500, "internal"))
    with talk(service) as client, pytest.raises(ServiceError) as raised:
        client.add_many(X, idempotency_key="batch")
    assert raised.value.idempotency_key == "batch"
    assert [each.headers["idempotency-key"] for each in service.asked] == ["batch:0-2", "batch:2-3"]


def test_adding_one_vector_returns_a_decision(talk):
    service = Service(good(DECISION))
    with talk(service) as client:
        decision = client.add([1.0, 2.0])
        client.add([1.0, 2.0], payload={"t": 1}, group="photo")
    assert decision == Decision(3, 5, "joined", 0.75, 0.625, 17)
    assert decision.margin == 0.125
    assert dict(service.asked[0].url.params) == {"dimension": "2", "one": "1"}
    said = {"vectors": [[1.0, 2.0]], "weights": [1.0], "payloads": [{"t": 1}]}
    assert json.loads(service.asked[1].content) == said
    assert dict(service.asked[1].url.params) == {"group": "photo", "one": "1"}


def test_empty_batches_send_no_request(talk):
    service = Service(ids())
    with talk(service) as client:
        for given in (client.add_many([]), client.add_group([]), client.predict([])):
            assert (given.dtype, given.shape) == (np.int64, (0,))
    assert service.asked == []


def test_invalid_arguments_are_refused_before_a_request_is_sent(talk):
    service = Service(ids(0))
    with talk(service) as client:
        for wrong in ([1.0, 2.0], [["a", "b"]], [[1.0], [1.0, 2.0]], [[1.0]]):
            with pytest.raises(VectorError):
                client.add_many(wrong)
        with pytest.raises(VectorError, match="not finite"):
            client.add([np.nan, 1.0], payload=1)
        with pytest.raises(ArgumentError, match="weight"):
            client.add_many(X, weight=[1.0, 2.0])
        with pytest.raises(ArgumentError, match="payloads"):
            client.add_many(X, payloads="abc")
        with pytest.raises(ArgumentError, match="not JSON"):
            client.add([1.0, 0.0], payload={"when": object()})
        with pytest.raises(ArgumentError, match="group"):
            client.add_many(X, group=7)
        with pytest.raises(ArgumentError, match="whole number"):
            client.cluster("../people")
    assert service.asked == []


def test_numpy_integers_are_sent_as_numbers(talk):
    service = Service(good({"before": 1, "event": 2}))
    with talk(service) as client:
        client.same(np.int64(3), np.int32(4), of="clusters")
    assert json.loads(service.asked[0].content) == {"a": 3, "b": 4, "of": "clusters"}


def test_create_sends_the_options_of_a_store(talk):
    service = Service(lambda: httpx.Response(201, json={}), good({}))
    thresholds = Thresholds(0.7, 0.6, 0.9)
    space = Space(mean=[0.5, 0.0], model="encoder")
    with talk(service) as client:
        assert client.create(thresholds, space=space, heal="settle", min_size=2) is True
        assert client.create(preset="ge2e") is False
        with pytest.raises(ArgumentError, match="one of them"):
            client.create()
    names = ("cluster_similarity", "subcluster_similarity", "pair_similarity_max")
    assert json.loads(service.asked[0].content) == {
        "thresholds": dict(zip(names, (0.7, 0.6, 0.9), strict=True)),
        "space": {"model": "encoder", "mean": [0.5, 0.0]},
        "heal": "settle",
        "min_size": 2,
    }
    assert json.loads(service.asked[1].content) == {"preset": "ge2e"}
    assert {request.method for request in service.asked} == {"PUT"}


def test_namespace_shares_the_connections():
    service = Service(ids(0, 1, 2))
    with Client(URL + "/prefix/", transport=httpx.MockTransport(service)) as client:
        client.namespace("people").labels()
        client.namespace("faces").labels()
        with pytest.raises(ArgumentError, match="no namespace"):
            client.labels()
    paths = [request.url.path for request in service.asked]
    assert paths == [f"/prefix/v1/namespaces/{name}/labels" for name in ("people", "faces")]


def test_closing_a_shared_client_keeps_the_connections_and_closing_the_owner_ends_them():
    with Client(URL, transport=httpx.MockTransport(Service(ids(0)))) as client:
        with client.namespace("people") as people:
            people.labels()
        assert client.namespace("faces").labels().tolist() == [0]
    for verb in (people.labels, lambda: next(people.follow())):
        with pytest.raises(ServiceError, match="closed"):
            verb()


@pytest.mark.parametrize("name", ["", "People", "../x", "a/b", "x" * 64, "a\n", 7])
def test_invalid_namespace_names_are_refused(name):
    with pytest.raises(ArgumentError, match="namespace"):
        Client(URL, name)


@pytest.mark.parametrize("url", ["", "service.test:7777", "ftp://x", "http://", "http://x?y=1", 7])
def test_invalid_urls_are_refused(url):
    with pytest.raises(ArgumentError, match="url="):
        Client(url)


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), "60", None])
def test_invalid_timeouts_are_refused(seconds):
    with pytest.raises(ArgumentError, match="timeout"):
        Client(URL, timeout=seconds)


def test_default_timeouts_are_ten_seconds_to_connect_and_sixty_for_an_answer(talk):
    service = Service(
        good({"joins": [], "cuts": [], "n_clusters_before": 0, "n_clusters_after": 0})
    )
    with talk(service) as client:
        client.health()
        client.settle()
    quick, slow = (request.extensions["timeout"] for request in service.asked)
    assert quick == {"connect": 10.0, "read": 60.0, "write": 60.0, "pool": 60.0}
    assert slow == quick | {"read": 600.0}


# The token


def test_the_token_is_sent_and_never_shown(talk):
    service = Service(refusal(401, "token"))
    with talk(service, token=TOKEN, retries=never()) as client:
        with pytest.raises(TokenError) as told:
            client.add_many(X)
        shown = [repr(client._client), str(client._client), repr(vars(client._client))]
    shown += traceback.format_exception(told.value)
    assert service.asked[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert TOKEN not in "".join(shown)


def test_a_failed_connection_does_not_show_the_token(talk):
    service = Service(httpx.ConnectError("refused"))
    client = talk(service, token=TOKEN, retries=never())
    with client, pytest.raises(ServiceError) as told:
        client.add_many(X)
    assert TOKEN not in "".join(traceback.format_exception(told.value))


@pytest.mark.parametrize("token", [f"{TOKEN}\n", f"{TOKEN} ", "", f"{TOKEN}é", TOKEN.encode()])
def test_an_invalid_token_is_refused_without_being_shown(token):
    with pytest.raises(ArgumentError, match="token") as told:
        Client(URL, token=token)
    assert TOKEN not in str(told.value)


def test_a_password_in_the_url_is_refused_without_being_shown():
    with pytest.raises(ArgumentError, match="password") as told:
        Client("http://ann:secret@service.test")
    assert "secret" not in str(told.value)


def test_loopback_addresses_use_no_proxy(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.test:3128")
    for url in ("http://127.0.0.1:7777", "http://localhost:7777", "http://[::1]:7777"):
        with Client(url) as client:
            assert client._http._mounts == {}
    with Client(URL) as client:
        assert client._http._mounts


# Answers


def every_error():
    """Return all classes of errors that a service may send."""
    modules = (errors.__name__, service_errors.__name__)
    return [each for each in everything_below(LinkstreamError) if each.__module__ in modules]


@pytest.mark.parametrize("kind", every_error(), ids=lambda kind: kind.__name__)
def test_each_error_is_raised_as_its_own_class(talk, kind):
    word = "".join(f"-{c.lower()}" if c.isupper() else c for c in kind.__name__)
    more = {"row": 4, "chain": ["x"], "correction": 7}
    service = Service(refusal(400, word.removeprefix("-").removesuffix("-error"), **more))
    with talk(service) as client, pytest.raises(kind) as told:
        client.add_many(X)
    assert type(told.value) is kind
    assert (told.value.seen, told.value.expected, told.value.remedy) == ("this", "that", "Mend it.")
    assert str(told.value) == "this; expected that. Mend it."
    if issubclass(kind, VectorError):
        assert told.value.row == 4
    if kind is ContradictionError:
        assert told.value.chain == ("x",)
        assert told.value.correction == 7


def test_errors_of_the_client_module_are_service_errors_and_are_documented():
    for kind in every_error():
        assert issubclass(kind, ServiceError) == (kind.__module__ == service_errors.__name__)
        assert kind.__name__ in (service_errors.__doc__ + errors.__doc__), kind


def test_an_unknown_kind_of_error_is_a_service_error(talk):
    service = Service(refusal(404, "moon"), refusal(418, "teapot"))
    with talk(service) as client:
        with pytest.raises(NotFoundError):
            client.labels()
        with pytest.raises(ServiceError) as told:
            client.labels()
    assert (told.value.kind, told.value.status) == ("teapot", 418)


@pytest.mark.parametrize(
    "body",
    [b"", b"<h1>no</h1>", b"[]", b"null", b'{"error": {}}', b'{"error": 7}', b"[" * 10**5, b"\xff"],
)
def test_an_error_of_a_proxy_raises_answer_error(talk, body):
    service = Service(lambda: httpx.Response(400, content=body))
    with talk(service) as client, pytest.raises(AnswerError, match="status 400"):
        client.labels()


@pytest.mark.parametrize("body", [b"", b"<h1>hello</h1>", b"[]", b"null", b"{}", b"[" * 10**5])
def test_an_unreadable_answer_raises_answer_error(talk, body):
    service = Service(lambda: httpx.Response(200, content=body))
    with talk(service) as client:
        for ask in (client.add, client.explain):
            with pytest.raises(AnswerError, match="cannot be read"):
                ask([1.0, 0.0])
        for ask in (client.clusters, client.events, client.review_queue, client.info):
            with pytest.raises(AnswerError, match="cannot be read"):
                ask()


@pytest.mark.parametrize("wrong", [{"kind": "maybe"}, {"cluster": 1.5}, {"similarity": "high"}])
def test_a_decision_with_values_of_the_wrong_type_raises_answer_error(talk, wrong):
    service = Service(good(DECISION | wrong))
    with talk(service) as client, pytest.raises(AnswerError):
        client.add([1.0, 0.0])


@pytest.mark.parametrize("answer", [ids(1), ids(1, 2, 3, 4), good({"ids": [1]}), good({"ids": 3})])
def test_a_wrong_number_of_ids_raises_answer_error(talk, answer):
    with talk(Service(answer)) as client, pytest.raises(AnswerError):
        client.add_many(X)


def test_ids_are_a_writable_int64_array(talk):
    for answer in (ids(1, -1, 2), good({"first": 0, "ids": [1, -1, 2]})):
        with talk(Service(answer)) as client:
            given = client.add_many(X)
        assert given.dtype == np.int64
        given += 1
        assert given.tolist() == [2, 0, 3]


def test_clusters_reads_all_pages(talk):
    def cluster(number):
        rest = {"size": 1, "subclusters": 1, "name": None, "first_seen": 0, "last_seen": 0}
        return {"id": number, **rest, "pending": False, "ignored": False}

    def page(request):
        first = int(request.url.params["offset"])
        size = min(int(request.url.params["limit"]), 400)  # less than was asked for
        shown = [cluster(n) for n in range(first, min(first + size, 1000))]
        return httpx.Response(200, json={"total": 1000, "clusters": shown})

    with talk(page) as client:
        assert [each.id for each in client.clusters()] == list(range(1000))
        assert [each.id for each in client.clusters(limit=7)] == list(range(7))


# The two clients


VERBS = (
    *("add", "add_many", "add_group", "enrol", "predict", "labels", "clusters", "resolve"),
    *("resolve_many", "named"),
    *("explain", "explain_pair", "history", "exemplars", "events", "state_hash"),
    *("suggest_merges", "suggest_splits", "review_queue", "settle"),
    *("same", "different", "move", "name", "rename", "ignore", "remove", "forget", "undo", "redo"),
    *("retract", "corrections", "judge"),
)


def test_both_clients_have_the_verbs_of_links_and_of_a_store():
    for name in VERBS:
        assert callable(getattr(Links, name))
    for name in (
        *VERBS,
        "feed",
        "iter_events",
        "payload",
        "compact",
        "info",
        "close",
        "steps",
    ):
        assert callable(getattr(Client, name)), name
        assert callable(getattr(AsyncClient, name)), name


def test_help_shows_the_signature_of_a_verb():
    with Client(URL) as client:
        signature = inspect.signature(client.add)
        assert next(iter(signature.parameters)) == "x"
        assert signature.return_annotation == "Decision"
        assert client.add.__doc__.startswith("Add one vector")
        assert inspect.signature(Client.add) == inspect.signature(AsyncClient.add)


def test_both_clients_have_the_same_methods():
    own = {name for name in dir(Client) if not name.startswith("_")}
    assert own == {name for name in dir(AsyncClient) if not name.startswith("_")}
    verbs = {
        name
        for module in (migrations, reads, rebuilds, speech, tables, writes)
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__
    }
    hidden = {"add_batch", "last_write", "read", "sending"}
    described = {name for name in verbs - hidden if not name.startswith("_")} | set(TABLE)
    assert own - described == {
        *("namespace", "feed", "iter_events", "follow", "follow_turns", "close")
    }
    assert described <= own


def test_thresholds_is_a_property_of_the_blocking_client_as_in_links():
    assert isinstance(Links.thresholds, property)
    assert isinstance(Client.thresholds, property)


def test_an_async_feed_takes_an_async_iterable():
    async def batches():
        yield X
        yield X

    with Awaited(Service(ids(0, 1, 2))) as client:
        assert [each.tolist() for each in client.every("feed", batches())] == [[0, 1, 2]] * 2


def test_the_import_without_httpx_names_the_extra_to_install():
    code = (
        "import sys; sys.modules['httpx'] = None\n"
        "from linkstream.errors import MissingExtraError\n"
        "try:\n    import linkstream.client\n"
        "except MissingExtraError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "linkstream[client]"' in done.stdout
