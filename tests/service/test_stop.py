"""A stopping service answers running requests, loses nothing and closes its stores."""

from __future__ import annotations

import contextlib
import http.client
import signal
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from linkstream.store import Store
from service.calling import RawConnection, Stream, head
from service.feeders import Feeders, replayed
from service.server import ProcessService, until
from store.internals import snapshots_of
from store.operations import vectors

X = vectors(np.random.default_rng(7), 40)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
def test_stopping_under_load_loses_nothing_and_closes_the_stores(nest, tmp_path, number):
    data = tmp_path / "data"
    with ProcessService(nest, data) as service:
        service.namespace("people")
        feeders = Feeders(service, 2, [0] * 6)
        until(lambda: len(feeders.answers) >= 12)
        service.signal(number)
        ended = service.wait()
        assert ended.status in (0, 128 + number), ended
        assert "Traceback" not in ended.errors, ended.errors
        answers = feeders.join().answers
    path = data / "people.links"
    # It was closed: a snapshot of all there is, nothing left in the log, nobody holds it.
    with Store.open(path, read_only=True) as store:
        operations = store.journal.n_operations
    assert max(snapshots_of(path)) == operations
    log = path.with_name(path.name + "-wal")
    assert not log.exists() or log.stat().st_size == 0
    found = replayed(path, 2, feeders)
    assert {key: found.get(key) for key in answers} == answers
    # Requests under way were answered: what is in was told, but for answers to those who left.
    assert len(found) == len(answers), "a batch went in and nobody was told"


def test_a_second_signal_stops_at_once_and_loses_nothing(nest, tmp_path):
    data = tmp_path / "data"
    with ProcessService(nest, data) as service:
        service.namespace("people")
        feeders = Feeders(service, 4, [0] * 6)
        until(lambda: len(feeders.answers) >= 12)
        service.signal(signal.SIGTERM)
        time.sleep(0.01)
        with contextlib.suppress(ProcessLookupError):  # it was quick
            service.signal(signal.SIGTERM)
        service.wait()
        answers = feeders.join().answers
    found = replayed(data / "people.links", 4, feeders)
    assert {key: found.get(key) for key in answers} == answers


def test_stopping_answers_running_requests_and_ends_streams(nest, tmp_path):
    rows = np.tile(X, (1_000, 1))
    with ProcessService(nest, tmp_path / "data") as service, ThreadPoolExecutor(1) as pool:
        path = service.namespace("people")
        service.post(f"{path}/vectors", X)
        with Stream(service.port, f"{path}/events/stream?since=0") as stream:
            assert len(stream.take(3)) == 3
            slow = pool.submit(service.post, f"{path}/vectors", rows)
            time.sleep(0.05)
            service.signal(signal.SIGTERM)
            list(stream)  # it ends
        try:
            told = slow.result().status
        except (OSError, http.client.HTTPException):
            told = None  # it had not come
        assert service.wait().status == 0
    with Store.open(tmp_path / "data" / "people.links", threads=1) as store:
        assert store.n_vectors == len(X) + (len(rows) if told == 200 else 0)
    assert told in (200, 503, None)


def test_idle_connections_do_not_delay_the_stop(nest, tmp_path):
    with ProcessService(nest, tmp_path / "data", stop_seconds=1.0) as service:
        path = service.namespace("people")
        lines = [RawConnection(service.port) for _ in range(5)]
        lines[0].send(b"GET / HT")
        lines[1].send(head("POST", f"{path}/vectors?dimension=8", length=320))
        lines[2].send(head("GET", f"{path}/live"))
        lines[3].send(head("GET", "/healthz", connection="keep-alive"))
        time.sleep(0.2)
        begin = time.monotonic()
        service.stop()
        assert time.monotonic() - begin < 15.0
        for line in lines:
            line.close()


def test_a_restarted_service_has_the_same_state(nest, tmp_path):
    with ProcessService(nest, tmp_path / "data") as service:
        path = service.namespace("people")
        first = service.post(f"{path}/vectors", X).ids
        service.post(f"{path}/name", {"cluster": first[0], "name": "Ann"})
        seen = {
            name: service.get(f"{path}{name}").json for name in ("/clusters", "/events", "/map")
        }
        for _ in range(2):
            service.stop()
            service.start()
            for name, told in seen.items():
                assert service.get(f"{path}{name}").json == told
        service.stop()


def test_two_services_do_not_write_to_one_folder(nest, tmp_path):
    data = tmp_path / "data"
    with ProcessService(nest, data) as first:
        path = first.namespace("people")
        first.post(f"{path}/vectors", X[:5])
        with ProcessService(nest, data) as second:
            answer = second.post(f"{path}/vectors", X[5:10])
            assert (answer.status, answer.kind) == (503, "store-locked")
        assert first.post(f"{path}/vectors", X[5:10]).status == 200
        first.stop()


def test_a_damaged_store_is_reported_and_the_others_work(nest, tmp_path):
    data = tmp_path / "data"
    with ProcessService(nest, data) as service:
        for name in ("well", "ill"):
            path = service.namespace(name)
            service.post(f"{path}/vectors", X)
        service.stop()
        with sqlite3.connect(data / "ill.links") as connection:
            connection.execute("UPDATE operations SET result = x'00'")
        connection.close()
        (data / "noise.links").write_bytes(b"noise" * 1_000)
        service.start()
        for name in ("ill", "noise"):
            answer = service.get(f"/v1/namespaces/{name}/clusters")
            assert answer.status in (200, 503), answer
        assert service.get("/v1/namespaces/noise").status == 503
        assert service.post("/v1/namespaces/well/vectors", X).status == 200
        assert service.get("/healthz").json["status"] in ("ok", "degraded")
        assert service.get("/metrics").status == 200
        assert service.get("/v1/namespaces").status == 200
        service.stop()
