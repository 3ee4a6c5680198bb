"""The memory of a service is bounded and other clients are served, whatever is sent."""

from __future__ import annotations

import contextlib
import io
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

from linkstream.store import Store
from service.calling import BINARY, RawConnection, Stream, head
from service.server import ProcessService, until
from store.internals import told
from store.operations import vectors

X = vectors(np.random.default_rng(3), 64)
MIB = 1 << 20
RAW = {"content_type": BINARY}


@pytest.fixture
def outside(nest, tmp_path):
    # The bounds in all are small, so that a service without them is seen to have none.
    waits = {"receive_seconds": 30.0, "total_bytes": 48 * MIB, "queue_bytes": 32 * MIB}
    with ProcessService(nest, tmp_path / "data", **waits, body_max=8 * MIB) as service:
        service.namespace("big")
        service.post("/v1/namespaces/big/vectors", X)
        yield service
        service.stop()


@contextlib.contextmanager
def growth(service):
    """Return the largest growth of a service in bytes while work runs."""
    before, most, over = service.resident, [0], threading.Event()

    def look():
        while not over.wait(0.005):
            most[0] = max(most[0], service.resident - before)

    watching = threading.Thread(target=look)
    watching.start()
    try:
        yield most
    finally:
        over.set()
        watching.join()


def test_incomplete_bodies_do_not_fill_the_memory(outside):
    before = outside.resident
    request = head("POST", "/v1/namespaces/big/vectors?dimension=8", length=8 * MIB, **RAW)
    with contextlib.ExitStack() as held, ThreadPoolExecutor(4) as pool:
        lines = [held.enter_context(RawConnection(outside.port, timeout=5.0)) for _ in range(40)]
        taken = list(pool.map(lambda line: line.send(request + bytes(7 * MIB)), lines))
        time.sleep(0.2)
        assert outside.resident - before < 160 * MIB  # of 280 that were sent
        assert outside.get("/healthz").status == 200
        assert not all(taken) or any(line.answers() for line in lines)
    assert outside.post("/v1/namespaces/big/vectors", X).status == 200


def test_large_content_lengths_without_bodies_do_not_block_others(outside):
    request = head("POST", "/v1/namespaces/big/vectors?dimension=8", length=8 * MIB, **RAW)
    with contextlib.ExitStack() as held:
        for _ in range(20):  # 160 MiB; there is room for 48
            line = held.enter_context(RawConnection(outside.port))
            line.send(request + bytes(100))
        time.sleep(0.2)
        assert outside.post("/v1/namespaces/big/vectors", X).status == 200


def test_incomplete_bodies_for_one_namespace_do_not_block_others(outside):
    outside.namespace("other")
    request = head("POST", "/v1/namespaces/big/vectors?dimension=8", length=8 * MIB, **RAW)
    with contextlib.ExitStack() as held, ThreadPoolExecutor(4) as pool:
        lines = [held.enter_context(RawConnection(outside.port, timeout=5.0)) for _ in range(12)]
        list(pool.map(lambda line: line.send(request + bytes(7 * MIB)), lines))
        time.sleep(0.2)
        assert outside.post("/v1/namespaces/other/vectors", X).status == 200


def test_event_readers_that_do_not_read_do_not_hold_up_others(outside):
    with contextlib.ExitStack() as held:
        for path in ("events/stream", "live", "events/stream", "live"):
            line = held.enter_context(RawConnection(outside.port, receive_buffer=4_096))
            line.send(head("GET", f"/v1/namespaces/big/{path}?since=0"))
        time.sleep(0.1)
        rows = np.tile(X, (500, 1))
        outside.post("/v1/namespaces/big/vectors", rows)
        before = outside.resident
        for _ in range(5):
            assert outside.post("/v1/namespaces/big/vectors", rows).seconds < 20.0
        assert outside.resident - before < 120 * MIB
    with Stream(outside.port, "/v1/namespaces/big/events/stream?since=0") as stream:
        assert [message.id for message in stream.take(500)] == [str(i) for i in range(500)]


def test_clients_that_do_not_read_responses_do_not_fill_the_memory(outside):
    outside.post("/v1/namespaces/big/vectors", np.tile(X, (200, 1)))
    answer = outside.get("/v1/namespaces/big/events?since=0&limit=1000")
    before = outside.resident
    request = head("GET", "/v1/namespaces/big/events?limit=1000", connection="keep-alive")
    with contextlib.ExitStack() as held:
        for _ in range(30):
            line = held.enter_context(
                RawConnection(outside.port, receive_buffer=4_096, timeout=0.05)
            )
            with contextlib.suppress(OSError):
                line.socket.sendall(request * 200)
        time.sleep(1.0)
        assert outside.resident - before < 60 * MIB + 30 * 4 * len(answer.body)
        assert outside.get("/healthz").status == 200


def test_requests_for_missing_namespaces_leave_no_memory_behind(outside):
    def ask(worker):
        with outside.caller() as caller:
            for i in range(400):
                assert caller.get(f"/v1/namespaces/none-{worker}-{i}").status == 404

    ask(99)
    before = outside.resident
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))
    assert outside.resident - before < 4 * MIB


def test_a_large_json_body_does_not_hold_up_others(outside):
    """Send a large body while small ones go to another namespace."""
    outside.namespace("other")
    body = b'{"vectors": [' + b",".join([b"[1,2,3,4,5,6,7,0.123456789]"] * 60_000) + b"]}"
    waits, done = [], threading.Event()

    def look():
        with outside.caller() as caller:
            while not done.is_set():
                waits.append(caller.get("/healthz").seconds)

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        for _ in range(3):
            answer = outside.post(
                "/v1/namespaces/big/ask", body, headers={"Content-Type": "application/json"}
            )
            assert answer.status in (200, 413), answer.body
        done.set()
        looking.result()
    assert max(waits) < 2.0


SWELLING = {
    "lists": b'{"vectors": [' + b"[]," * 2_500_000 + b"[]]}",
    "objects": b'{"vectors": [' + b"{}," * 2_500_000 + b"[]]}",
    "rows": b'{"vectors": [' + b"[1,2]," * 1_200_000 + b"[1,2]]}",
    "names": b"{" + b",".join(b'"a%d":0' % i for i in range(600_000)) + b"}",
    "a payload": b'{"vector": [1,0], "payload": [' + b"[]," * 2_500_000 + b"[]]}",
}


@pytest.mark.parametrize("body", SWELLING.values(), ids=SWELLING)
def test_json_that_would_expand_in_memory_is_refused(outside, body):
    headers = {"Content-Type": "application/json"}
    with growth(outside) as most, ThreadPoolExecutor(4) as pool:
        calls = [
            pool.submit(outside.post, "/v1/namespaces/big/vectors", body, headers=headers)
            for _ in range(4)
        ]
        statuses = {call.result().status for call in calls}
    assert statuses <= {400, 413, 503}
    assert most[0] < 150 * MIB
    assert outside.post("/v1/namespaces/big/vectors", X[:1]).status == 200


def pointing(n=400):
    """Return columns that refer many times to one text of a mebibyte."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), pa.array(["x" * MIB]))
    return {
        "at the top": text,
        "in a structure": pa.StructArray.from_arrays([text], ["a"]),
        "in lists": pa.FixedSizeListArray.from_arrays(text, 1),
    }


@pytest.mark.parametrize("name", pointing(1))
def test_arrow_dictionaries_do_not_expand_in_memory(outside, name):
    column, file = pointing()[name], io.BytesIO()
    rows = pa.array(np.resize(X, (len(column), 8)).tolist(), pa.list_(pa.float32()))
    table = pa.table({"vector": rows, "t": column})
    with pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    headers = {"Content-Type": "application/vnd.apache.arrow.stream"}
    with growth(outside) as most:
        for verb in ("ask", "vectors"):
            answer = outside.post(f"/v1/namespaces/big/{verb}", file.getvalue(), headers=headers)
            assert answer.status in (200, 400, 413), answer
    assert most[0] < 100 * MIB


# A flood


def flooded(service, *, seconds, clients):
    """Impatient clients; return the keys and IDs of acknowledged and of other requests."""
    acknowledged, refused, end = {}, [], time.monotonic() + seconds

    def client(number):
        rng = np.random.default_rng([5, number])
        turn = 0
        while time.monotonic() < end:
            turn += 1
            rows, key = vectors(rng, 200), f"{number}:{turn}"
            try:
                answer = service.post(
                    "/v1/namespaces/big/vectors", rows, headers={"Idempotency-Key": key}
                )
            except OSError:
                refused.append("cut off")
                continue
            if answer.status == 200:
                acknowledged[key] = answer.ids
            else:
                assert answer.status in (429, 503), answer
                refused.append(answer.status)

    with ThreadPoolExecutor(clients) as pool:
        for one in [pool.submit(client, number) for number in range(clients)]:
            one.result()
    return acknowledged, refused


def test_a_flood_loses_nothing_acknowledged(nest, tmp_path):
    bounds = {"queue_calls": 4, "connections_max": 64}
    with ProcessService(nest, tmp_path / "data", **bounds) as service:
        service.namespace("big")
        service.namespace("other")
        before = service.resident
        acknowledged, refused = flooded(service, seconds=2.0, clients=24)
        assert acknowledged
        assert refused, "it was no flood"
        assert service.resident - before < 200 * MIB
        assert until(lambda: service.post("/v1/namespaces/big/vectors", X[:1]).status == 200)
        service.kill()
    with Store.open(tmp_path / "data" / "big.links", threads=1) as store:
        assert_there(store, acknowledged)


def assert_there(store, acknowledged):
    """Check that every acknowledged batch is stored once with the IDs of its answer."""
    found = {}
    for operation in told(store):
        assert operation.key not in found or operation.key is None, "twice"
        found[operation.key] = operation.result
    for key, ids in acknowledged.items():
        assert found[key].tolist() == ids
