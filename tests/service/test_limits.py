"""Limits: large, slow and many requests are refused; other clients are not affected."""

from __future__ import annotations

import contextlib
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from service.calling import BINARY, RawConnection, Stream, check_answer, head, raw_answers
from service.internals import held_up
from service.server import MADE_WITH, ThreadService, until
from store.operations import vectors

X = vectors(np.random.default_rng(3), 64)
KIB, MIB = 1 << 10, 1 << 20
SECONDS = 1.0  # to receive a request, here


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Run a service with small limits."""
    folder = tmp_path_factory.mktemp("small") / "data"
    caps = {"body_max": 64 * KIB, "rows_max": 100, "dimension_max": 64, "namespaces_max": 6}
    waits = {"receive_seconds": SECONDS, "idle_seconds": SECONDS, "event_readers_max": 3}
    with ThreadService(folder, **caps, **waits, queue_calls=8, queue_bytes=32 * KIB) as service:
        for name in ("small", "other", "heavy"):
            service.namespace(name)
        yield service


VECTORS = "/v1/namespaces/small/vectors?dimension=8"
RAW = {"content_type": BINARY}


@pytest.fixture
def unharmed(small):
    """Check that nothing was added and the service works."""
    before = small.get("/v1/namespaces/small").json["vectors"]
    yield
    assert small.get("/v1/namespaces/small").json["vectors"] == before
    assert small.post("/v1/namespaces/small/ask", X[:1]).status == 200


# Too large


@pytest.mark.usefixtures("unharmed")
@pytest.mark.parametrize("length", [64 * KIB + 1, MIB, 2**40, 2**62])
def test_a_body_with_a_too_large_content_length_is_refused_unread(small, length):
    answer = raw_answers(small.port, head("POST", VECTORS, length=length, **RAW))[0]
    assert (answer.status, answer.kind) == (413, "too-large")


@pytest.mark.usefixtures("unharmed")
def test_a_too_large_chunked_body_is_refused_while_it_arrives(small):
    with RawConnection(small.port) as line:
        line.send(head("POST", VECTORS, transfer_encoding="chunked", **RAW))
        sent = 0
        while sent < 100 * MIB and line.send(b"8000\r\n" + bytes(0x8000) + b"\r\n"):
            sent += 0x8000
        assert sent < 50 * MIB, "all of it was taken"
        with contextlib.suppress(ConnectionError):
            for answer in line.answers():
                assert (answer.status, answer.kind) == (413, "too-large")


@pytest.mark.usefixtures("unharmed")
def test_too_many_rows_or_dimensions_are_refused(small):
    assert small.post("/v1/namespaces/small/vectors", np.ones((101, 8))).status == 413
    for verb in ("vectors", "ask", "groups"):
        answer = small.post(f"/v1/namespaces/small/{verb}", np.ones((2, 65)))
        assert (answer.status, answer.kind) in ((413, "too-large"), (400, "dimension"))
        rows = {"vectors": np.ones((101, 8)).tolist()}
        assert small.post(f"/v1/namespaces/small/{verb}", rows).status == 413
    fresh = "/v1/namespaces/heavy"
    assert small.post(f"{fresh}/vectors", np.ones((1, 65))).status == 413
    assert small.post(f"{fresh}/enrol", {"name": "a", "vectors": [[1.0] * 65]}).status == 413
    assert small.get(fresh).json["vectors"] == 0


def test_too_many_namespaces_are_refused_even_all_at_once(small):
    with ThreadPoolExecutor(16) as pool:
        paths = [f"/v1/namespaces/many{i}" for i in range(16)]
        answers = list(pool.map(lambda path: small.put(path, MADE_WITH), paths))
    assert {answer.status for answer in answers} <= {201, 400, 409, 429}
    assert len(list(small.data.glob("*.links"))) == 6
    assert small.put("/v1/namespaces/small", MADE_WITH).status == 200


HEADS = {
    "a long path": b"GET /" + b"a" * MIB + b" HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    "a long header": b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\na: " + b"a" * MIB + b"\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n" + b"a: b\r\n" * 100_000 + b"\r\n",
    "a header without end": b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\na: " + b"a" * 4 * MIB,
    "no line at all": b"a" * 4 * MIB,
}


@pytest.mark.usefixtures("unharmed")
@pytest.mark.parametrize("data", HEADS.values(), ids=HEADS)
def test_a_head_that_is_too_large_is_refused(small, data):
    for answer in raw_answers(small.port, data):
        assert answer.status in (400, 413, 414, 431)


STRANGE = {
    "a length below zero": {"content_length": "-1"},
    "a length that is none": {"content_length": "many"},
    "a length of 5,000 digits": {"content_length": "9" * 5_000},
    "a length and chunks": {"content_length": "5", "transfer_encoding": "chunked"},
    "chunks of chunks": {"transfer_encoding": "chunked, chunked"},
    "a coding that nobody has": {"transfer_encoding": "gzip"},
    "chunks that are none": {"transfer_encoding": "chunked"},
}


@pytest.mark.usefixtures("unharmed")
@pytest.mark.parametrize("headers", STRANGE.values(), ids=STRANGE)
def test_an_invalid_content_length_is_refused(small, headers):
    data = head("POST", VECTORS, **RAW, **headers) + b"zz\r\nGET / HTTP/1.1\r\n\r\n"
    answers = raw_answers(small.port, data)
    assert len(answers) <= 1, "what was a body was taken for a request"
    for answer in answers:
        assert answer.status in (400, 408, 411, 413, 415, 501)


@pytest.mark.usefixtures("unharmed")
def test_two_content_lengths_are_refused(small):
    data = head("POST", VECTORS, **RAW, content_length="4").replace(
        b"content-length: 4", b"content-length: 4\r\ncontent-length: 5"
    )
    for answer in raw_answers(small.port, data + b"abcde"):
        assert answer.status == 400


# Too slow


def trickle(line, data, *, seconds):
    """Send byte by byte; return the seconds until the service closed the connection."""
    begin = time.monotonic()
    for place in range(len(data)):
        if not line.send(data[place : place + 1]):
            break
        line.socket.settimeout(0.02)
        try:
            line.socket.recv(1, socket.MSG_PEEK)
            break  # an answer, or the end
        except TimeoutError:
            pass
        except ConnectionError:
            break
        if time.monotonic() - begin > seconds:
            break
    line.socket.settimeout(10.0)
    return time.monotonic() - begin


LONG = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx: " + b"a" * 10_000


@pytest.mark.usefixtures("unharmed")
def test_a_slow_head_is_cut_off(small):
    with RawConnection(small.port) as line:
        assert trickle(line, LONG, seconds=30.0) < 15 * SECONDS
        for answer in line.answers():
            assert (answer.status, answer.kind) == (408, "too-slow")


@pytest.mark.usefixtures("unharmed")
def test_a_slow_head_of_a_second_request_is_cut_off(small):
    with RawConnection(small.port) as line:
        line.send(head("GET", "/healthz", connection="keep-alive"))
        assert line.socket.recv(1 << 16).startswith(b"HTTP/1.1 200")
        assert trickle(line, LONG, seconds=30.0) < 15 * SECONDS
        for answer in line.answers():
            assert answer.status == 408


@pytest.mark.usefixtures("unharmed")
@pytest.mark.parametrize("chunked", [False, True])
def test_a_slow_body_is_cut_off(small, chunked):
    how = {"transfer_encoding": "chunked"} if chunked else {"length": 32 * KIB}
    with RawConnection(small.port) as line:
        line.send(head("POST", VECTORS, **RAW, **how))
        body = b"1\r\na\r\n" * 10_000 if chunked else bytes(32 * KIB)
        assert trickle(line, body, seconds=30.0) < 15 * SECONDS
        for answer in line.answers():
            assert (answer.status, answer.kind) == (408, "too-slow")


@pytest.mark.parametrize("data", [b"", b"G", head("GET", "/healthz", connection="keep-alive")])
def test_an_idle_connection_is_closed(small, data):
    with RawConnection(small.port) as line:
        line.send(data)
        begin = time.monotonic()
        line.rest()
        assert time.monotonic() - begin < 15 * SECONDS


def test_a_slow_response_is_not_cut_off(small):
    with ThreadPoolExecutor(1) as pool, held_up(small, "small"):
        slow = pool.submit(small.post, "/v1/namespaces/small/vectors", X[:1])
        time.sleep(2 * SECONDS)
        assert not slow.done()
    assert slow.result().status == 200


def test_pipelined_requests_are_answered_in_order(small):
    one, last = head("GET", "/healthz", connection="keep-alive"), head("GET", "/v1/nothing")
    answers = raw_answers(small.port, one * 50 + last)
    assert [answer.status for answer in answers] == [200] * 50 + [404]
    for answer in answers:
        check_answer(answer)


# What HTTP has besides


def test_expect_100_continue_is_answered(small):
    with RawConnection(small.port) as line:
        body = X[:2].tobytes()
        line.send(head("POST", VECTORS, length=len(body), **RAW, expect="100-continue"))
        assert line.socket.recv(1 << 12).startswith(b"HTTP/1.1 100")
        line.send(body)
        (answer,) = line.answers()
        assert answer.status == 200


def test_expect_100_continue_is_refused_before_the_body_is_sent(small):
    with RawConnection(small.port) as line:
        line.send(head("POST", VECTORS, length=MIB, **RAW, expect="100-continue"))
        (answer,) = line.answers()
        assert answer.status == 413


UPGRADES = {
    "a websocket": {
        "connection": "upgrade",
        "upgrade": "websocket",
        "sec_websocket_version": "13",
        "sec_websocket_key": "dGhlIHNhbXBsZSBub25jZQ==",
    },
    "HTTP/2": {"connection": "upgrade, http2-settings", "upgrade": "h2c", "http2_settings": "AA"},
    "noise": {"connection": "upgrade", "upgrade": "\xff"},
}


@pytest.mark.parametrize("headers", UPGRADES.values(), ids=UPGRADES)
def test_upgrades_are_ignored(small, headers):
    with RawConnection(small.port, timeout=15.0) as line:
        line.send(head("GET", "/v1/namespaces/small", **headers))
        for answer in line.answers():
            assert answer.status in (200, 400, 403, 404, 426)


def test_an_http_1_0_client_is_answered(small):
    (answer,) = raw_answers(small.port, b"GET /healthz HTTP/1.0\r\nhost: 127.0.0.1\r\n\r\n")
    assert answer.status == 200


# Too many


def test_requests_beyond_the_queue_get_429_and_the_others_are_answered(small):
    other = "/v1/namespaces/other"
    before = small.get("/v1/namespaces/small").json["vectors"]
    with ThreadPoolExecutor(24) as pool:
        with held_up(small, "small"):
            calls = [pool.submit(small.post, "/v1/namespaces/small/vectors", X[:2])]
            calls += [
                pool.submit(small.post, "/v1/namespaces/small/vectors", X[:2]) for _ in range(23)
            ]
            until(lambda: sum(call.done() for call in calls) >= 16)
            # Another namespace does not notice.
            for _ in range(3):
                answer = small.post(f"{other}/vectors", X[:2])
                assert answer.status == 200
                assert answer.seconds < 5.0
            assert small.get("/healthz").status == 200
        answers = [call.result() for call in calls]
    statuses = [answer.status for answer in answers]
    assert statuses.count(200) == 8
    assert statuses.count(429) == 16
    assert {answer.kind for answer in answers if answer.status == 429} == {"too-many"}
    assert small.get("/v1/namespaces/small").json["vectors"] == before + 2 * 8


def test_bytes_beyond_the_queue_get_429(small):
    with ThreadPoolExecutor(8) as pool:
        with held_up(small, "heavy"):
            rows = np.ones((60, 64), dtype=np.float32)  # 15 KiB: two may wait
            calls = [
                pool.submit(small.post, "/v1/namespaces/heavy/vectors", rows) for _ in range(8)
            ]
            until(lambda: any(call.done() for call in calls))
            time.sleep(0.1)
        statuses = {call.result().status for call in calls}
    assert statuses == {200, 429}


def test_event_readers_beyond_the_limit_get_503(small):
    with contextlib.ExitStack() as held:
        streams = [
            held.enter_context(Stream(small.port, "/v1/namespaces/small/events/stream"))
            for _ in range(3)
        ]
        assert [stream.status for stream in streams] == [200] * 3
        for path in ("events/stream", "live"):
            answer = small.get(f"/v1/namespaces/small/{path}")
            assert answer.status in (429, 503)

    def again():
        with Stream(small.port, "/v1/namespaces/small/events/stream") as stream:
            return stream.status == 200

    until(again)


def test_connections_beyond_the_limit_are_refused_until_others_close(tmp_path):
    with ThreadService(tmp_path / "data", connections_max=10, receive_seconds=30.0) as service:
        lines = [RawConnection(service.port) for _ in range(10)]
        until(lambda: _refused(service))
        for line in lines:
            line.close()
        until(lambda: not _refused(service))


def _refused(service):
    try:
        answer = service.get("/healthz")
    except (ConnectionError, OSError):
        return True
    return answer.status == 503


def test_unknown_paths_do_not_add_metrics(service):
    """Methods and paths of callers must not become labels of metrics."""
    service.namespace("figures")
    before = len(service.get("/metrics").body)
    for i in range(100):
        raw_answers(service.port, head(f"METHOD{i}", "/"))
        raw_answers(service.port, head("GET", f"/v1/none/{i}"))
        raw_answers(service.port, head("GET", f"/v1/namespaces/none{i}/clusters"))
        raw_answers(service.port, head("GET", f"/page/{i}.js"))
    assert len(service.get("/metrics").body) < before + 8 * KIB
