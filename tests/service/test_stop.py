"""A stopping service answers running requests, loses nothing and closes its stores."""

from __future__ import annotations

import contextlib
import http.client
import signal
import socket
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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
def test_a_second_signal_stops_at_once_and_loses_nothing(nest, tmp_path, number):
    data = tmp_path / "data"
    with ProcessService(nest, data, fault={"stuck": "writer"}, stop_seconds=3_600) as service:
        service.namespace("people")
        feeders = Feeders(service, 4, [0] * 6)
        until(lambda: len(feeders.answers) >= 12)
        with asked(service, 1):
            service.signal(signal.SIGTERM)
            until(lambda: not accepts(service))  # it stops, and waits for the writes
            service.signal(number)
            assert_ended(service.wait())
        answers = feeders.join().answers
    found = replayed(data / "people.links", 4, feeders)
    assert {key: found.get(key) for key in answers} == answers


@pytest.mark.parametrize("stuck", ["reader", "writer"])
def test_a_signal_ends_the_process_whatever_runs(nest, tmp_path, stuck):
    data = tmp_path / "data"
    with ProcessService(nest, data, fault={"stuck": stuck}, stop_seconds=1.0) as service:
        service.namespace("people")
        feeders = Feeders(service, 5, [0] * 4)
        until(lambda: len(feeders.answers) >= 8)
        with asked(service, 4):
            service.signal(signal.SIGTERM)
            assert_ended(service.wait())
        answers = feeders.join().answers
    found = replayed(data / "people.links", 5, feeders)
    assert {key: found.get(key) for key in answers} == answers


@pytest.mark.parametrize("tries", [3, pytest.param(50, marks=pytest.mark.long)])
def test_a_signal_ends_the_process_while_slow_questions_and_writes_run(nest, tmp_path, tries):
    data = tmp_path / "data"
    rng = np.random.default_rng(8)
    with ProcessService(nest, data, stop_seconds=10.0) as service:
        path = service.namespace("questions")
        for _ in range(4):
            rows = rng.standard_normal((1_500, 128)).astype(np.float32)
            assert service.post(f"{path}/vectors", rows).status == 200
        service.stop()
    taken = [_stopped_amid_questions(nest, data, path, rng) for _ in range(tries)]
    print(f"{tries} stops; seconds: {np.round(np.quantile(taken, [0, 0.5, 1]), 2)}")  # noqa: T201


def _stopped_amid_questions(nest, data, path, rng):
    """Stop a service while questions and writes run; return the seconds that it took."""
    rows = rng.standard_normal((9, 128)).astype(np.float32)
    with (
        ThreadPoolExecutor(2) as pool,
        ProcessService(nest, data, stop_seconds=10.0) as service,
        asked(service, 8, path=path),
    ):
        before = service.get(path).json["vectors"]
        writes = [pool.submit(_write_until_it_ends, service, path, rows) for _ in range(2)]
        until(lambda: service.get(path).json["vectors"] > before)
        begin = time.monotonic()
        service.signal(signal.SIGTERM)
        assert_ended(service.wait())
        taken = time.monotonic() - begin
        acknowledged = sum(write.result() for write in writes)
    with Store.open(data / "questions.links", read_only=True) as store:
        assert store.n_vectors >= before + acknowledged
    return taken


def _write_until_it_ends(service, path, rows):
    """Add vectors until the service ends; return how many were acknowledged."""
    acknowledged = 0
    with contextlib.suppress(OSError, http.client.HTTPException), service.caller() as caller:
        while caller.post(f"{path}/vectors", rows).status == 200:
            acknowledged += len(rows)
    return acknowledged


@contextlib.contextmanager
def asked(service, n, *, path="/v1/namespaces/people"):
    """Ask n slow questions, of which some run, and leave the connections open."""
    with contextlib.ExitStack() as held:
        for limit in range(1, n + 1):
            line = held.enter_context(RawConnection(service.port))
            line.send(head("GET", f"{path}/review?limit={limit}"))
        gauge = "linkstream_slow_reads_running"
        until(lambda: _metric(service, gauge) > 0)
        yield


def _metric(service, name):
    text = service.get("/metrics").body.decode()
    return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(name))


def accepts(service):
    """Return whether a service accepts connections."""
    try:
        socket.create_connection(("127.0.0.1", service.port)).close()
    except OSError:
        return False
    return True


def assert_ended(ended):
    """Check that a process ended as documented."""
    assert ended.status == 0, ended
    assert "Traceback" not in ended.errors, ended.errors


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
