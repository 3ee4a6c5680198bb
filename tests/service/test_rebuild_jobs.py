"""Rebuilds as jobs: progress, cancelling, one at a time, applied only if nothing came between."""

from __future__ import annotations

import contextlib
import itertools
import threading

import numpy as np
import pytest

from linkstream.clusterer import rebuilding
from linkstream.service import rebuild_jobs, rebuild_work
from linkstream.store import Store
from service.internals import session_of, slow_reads_of
from service.server import MADE_WITH, ThreadService, until
from store.operations import THRESHOLDS

DIMENSION = 12
NUMBERS = itertools.count()


def sample(n, seed=3):
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(1).standard_normal((9, DIMENSION))
    rows = centres[rng.integers(9, size=n)] + 0.7 * rng.standard_normal((n, DIMENSION))
    return rows.astype(np.float32)


def new_name():
    return f"n{next(NUMBERS)}"


@pytest.fixture
def path(service):
    found = service.namespace(new_name())
    assert service.post(f"{found}/vectors", sample(80)).status == 200
    return found


def hash_of(service, path):
    return service.get(f"{path}?hash=true").json["state_hash"]


def start(service, path, **body):
    answer = service.post(f"{path}/rebuilds", body)
    assert answer.status == 202, answer.body
    assert answer.headers["location"] == f"{path}/rebuilds/{answer.json['job']}"
    return answer.headers["location"]


def ended(service, address):
    """Return a job after its end."""
    answer = service.get(f"{address}?wait=30")
    assert answer.status == 200, answer.body
    assert answer.json["state"] in ("done", "failed", "cancelled")
    return answer.json


@pytest.fixture
def gate(monkeypatch):
    """Hold up every computation before it begins, until `open` is set."""
    made = Gate()
    prepare = rebuild_work.prepare

    def held_up(store, request, progress):
        made.begun += 1
        found = prepare(store, request, progress)
        while not made.open.wait(0.002):
            progress(0.5)
        made.after(store)
        return found

    monkeypatch.setattr(rebuild_work, "prepare", held_up)
    yield made
    made.open.set()


class Gate:
    def __init__(self):
        self.begun = 0
        self.open = threading.Event()
        self.after = lambda store: None


def test_a_job_computes_what_would_change_and_changes_nothing(service, path):
    before = hash_of(service, path)
    address = start(service, path)
    job = ended(service, address)
    assert job["report"] == service.get(f"{path}/rebuild").json
    assert (job["state"], job["apply"], job["share"], job["tries"]) == ("done", False, 1.0, 1)
    assert (job["before"], job["event"], job["error"]) == (None, None, None)
    assert job["seconds"] >= 0.0
    assert hash_of(service, path) == before


def test_a_job_that_is_applied_ends_as_a_rebuild_does(service, path):
    proposed = service.get(f"{path}/rebuild").json
    assert proposed["flows"]
    before = hash_of(service, path)
    job = ended(service, start(service, path, apply=True))
    assert job["report"] == {**proposed, "applied": True}
    assert service.get(f"{path}/rebuild").json["flows"] == []
    undo = {"to": job["before"], "after": job["event"]}
    assert service.post(f"{path}/undo", undo).status == 200
    assert hash_of(service, path) == before


def test_thresholds_space_and_vectors_are_those_of_a_rebuild(service, path):
    thresholds = {k: v - 0.05 for k, v in MADE_WITH["thresholds"].items()}
    job = ended(service, start(service, path, apply=True, thresholds=thresholds))
    assert job["state"] == "done"
    told = service.get(f"{path}/thresholds").json
    assert {name: told[name] for name in thresholds} == thresholds
    rows = np.random.default_rng(2).standard_normal((80, 5)).tolist()
    space = {"model": "encoder-2"}
    job = ended(service, start(service, path, apply=True, vectors=rows, space=space))
    assert (job["state"], job["error"]) == ("done", None)
    assert service.get(f"{path}/space").json["dimension"] == 5


def test_a_namespace_whose_vectors_are_removed_is_rebuilt_and_keeps_its_settings(service, path):
    assert service.post(f"{path}/undo", {"to": 0}).status == 200
    done = ended(service, start(service, path, apply=True))
    assert (done["state"], done["report"]["n_vectors"]) == ("done", 0)
    for apply in (False, True):
        failed = ended(
            service, start(service, path, apply=apply, thresholds=MADE_WITH["thresholds"])
        )
        assert failed["state"] == "failed"
        assert "without vectors" in failed["error"]["seen"]


def test_thresholds_that_cannot_be_are_refused_in_words_of_the_request(service, path):
    for given in ("x", 5, [0.5, 0.5, 0.5]):
        for route in ("rebuild", "rebuilds"):
            answer = service.post(f"{path}/{route}", {"thresholds": given})
            assert answer.status == 400, answer.body
            assert answer.json["error"]["seen"].startswith("thresholds: ")
            assert '"from clusters"' in answer.json["error"]["expected"]
    answer = service.post(f"{path}/rebuild", {"thresholds": {"cluster_similarity": "a"}})
    assert answer.json["error"]["seen"].startswith("thresholds.cluster_similarity: ")


def test_thresholds_may_come_from_the_clusters(service, path, monkeypatch):
    pairs = np.repeat(np.random.default_rng(4).standard_normal((40, DIMENSION)), 2, axis=0)
    service.post(f"{path}/vectors", pairs + 0.05 * sample(80, seed=6))
    proposed = service.post(f"{path}/rebuild", {"thresholds": "from clusters"}).json
    assert proposed["evidence"]
    with monkeypatch.context() as patched:
        tell_if_computed_twice(patched)
        job = ended(service, start(service, path, apply=True, thresholds="from clusters"))
    assert (job["state"], job["error"]) == ("done", None)
    assert job["report"] == {**proposed, "applied": True}


def tell_if_computed_twice(monkeypatch):
    """Let only one rebuild be computed."""
    compute, runs = rebuilding.prepare, itertools.count()

    def once(*given):
        assert next(runs) == 0
        return compute(*given)

    monkeypatch.setattr(rebuilding, "prepare", once)


def test_reads_and_writes_go_on_while_a_job_is_computed(service, path, gate):
    address = start(service, path)
    until(lambda: service.get(address).json["share"] == 0.5)
    assert service.post(f"{path}/vectors", sample(1, seed=5)).status == 200
    assert service.get(f"{path}/clusters/0?brief=true").status == 200
    assert service.get(f"{path}/review").status == 200  # a slow read
    assert service.get(address).json["state"] == "computing"
    gate.open.set()
    assert ended(service, address)["state"] == "done"


def test_a_namespace_has_one_job_at_a_time(service, path, gate):
    address = start(service, path)
    answer = service.post(f"{path}/rebuilds", {"apply": True})
    assert (answer.status, answer.kind) == (409, "running")
    job = address.rpartition("/")[2]
    assert job in answer.json["error"]["seen"]
    assert [each["job"] for each in service.get(f"{path}/rebuilds").json["rebuilds"]] == [job]
    other = service.namespace(new_name())
    service.post(f"{other}/vectors", sample(20))
    second = start(service, other)  # another namespace may have one, too
    gate.open.set()
    assert ended(service, address)["state"] == ended(service, second)["state"] == "done"
    assert service.post(f"{path}/rebuilds", {}).status == 202


def test_a_cancelled_job_ends_its_computation_and_changes_nothing(service, path, gate):
    before = hash_of(service, path)
    address = start(service, path, apply=True)
    until(lambda: gate.begun == 1)
    assert service.call("DELETE", address).json["state"] == "cancelled"
    until(lambda: not slow_reads_of(service).running)  # the thread has ended as well
    assert ended(service, address)["state"] == "cancelled"
    assert hash_of(service, path) == before
    assert service.call("DELETE", address).status == 200  # forgets it
    answer = service.get(address)
    assert (answer.status, answer.kind) == (404, "not-found")
    assert service.get(f"{path}/rebuilds").json == {"rebuilds": []}


def test_a_job_that_waits_for_its_turn_can_be_cancelled(tmp_path, gate):
    with ThreadService(tmp_path / "data", slow_threads=2) as service:
        paths = [service.namespace(name) for name in ("one", "two")]
        for path in paths:
            service.post(f"{path}/vectors", sample(20))
        first, second = (start(service, path) for path in paths)
        until(lambda: gate.begun == 1)
        assert service.get(second).json["state"] == "waiting"
        assert service.get(f"{paths[1]}/review").status == 200  # a thread stays free
        assert service.call("DELETE", second).json["state"] == "cancelled"
        gate.open.set()
        assert ended(service, first)["state"] == "done"
        assert gate.begun == 1


def test_a_job_is_computed_again_for_what_came_meanwhile(service, path, gate, tmp_path):
    def add_once(store):
        if gate.begun == 1:
            service.post(f"{path}/vectors", sample(7, seed=9))

    gate.after = add_once
    gate.open.set()
    job = ended(service, start(service, path, apply=True))
    assert (job["state"], job["tries"], job["report"]["n_vectors"]) == ("done", 2, 87)
    with Store.open(tmp_path / "y.links", thresholds=THRESHOLDS) as store:
        store.add_many(sample(80))
        store.add_many(sample(7, seed=9))
        store.rebuild(True)
        assert store.state_hash() == hash_of(service, path)


def keep_adding(service, path, gate):
    def add(store):
        service.post(f"{path}/vectors", sample(1, seed=gate.begun))

    gate.after = add
    gate.open.set()


def test_a_job_that_changes_overtake_is_refused_after_three_tries(service, path, gate):
    keep_adding(service, path, gate)
    job = ended(service, start(service, path, apply=True))
    assert (job["state"], job["tries"]) == ("failed", rebuild_jobs.TRIES)
    assert job["error"]["kind"] == "changed"
    assert service.get(path).json["vectors"] == 80 + rebuild_jobs.TRIES
    assert service.get(f"{path}/rebuild").json["flows"]  # nothing was applied


def test_with_hold_the_last_try_holds_writes_back_while_reads_go_on(service, path, gate):
    late = threading.Thread(target=lambda: service.post(f"{path}/vectors", sample(1, seed=9)))

    def add(store):
        if gate.begun < rebuild_jobs.TRIES:
            service.post(f"{path}/vectors", sample(1, seed=gate.begun))
            return
        late.start()
        until(lambda: session_of(service, path).load.calls == 1)  # it waits
        assert service.get(f"{path}/clusters/0?brief=true").status == 200
        assert service.get(path).json["vectors"] == 80 + rebuild_jobs.TRIES - 1

    gate.after = add
    gate.open.set()
    job = ended(service, start(service, path, apply=True, hold=True))
    assert (job["state"], job["tries"]) == ("done", rebuild_jobs.TRIES)
    assert job["report"]["n_vectors"] == 80 + rebuild_jobs.TRIES - 1
    late.join()
    assert service.get(path).json["vectors"] == 80 + rebuild_jobs.TRIES  # it was taken then
    steps = [step["command"] for step in service.get(f"{path}/steps").json["steps"]]
    assert steps[:2] == ["add_many", "rebuild"]


def test_a_cancelled_job_lets_the_writes_go_on_that_it_held_back(service, path, gate, monkeypatch):
    before = hash_of(service, path)
    monkeypatch.setattr(rebuild_jobs, "TRIES", 1)
    address = start(service, path, apply=True, hold=True)
    until(lambda: gate.begun == 1)
    late = threading.Thread(target=lambda: service.post(f"{path}/vectors", sample(1, seed=9)))
    late.start()
    until(lambda: session_of(service, path).load.calls == 1)
    assert hash_of(service, path) == before
    assert service.call("DELETE", address).json["state"] == "cancelled"
    late.join()
    assert service.get(path).json["vectors"] == 81


def test_a_request_repeated_with_its_key_is_the_same_job(service, path, gate):
    headers = {"Idempotency-Key": "rebuild-1", "Content-Type": "application/json"}
    call = lambda body: service.post(f"{path}/rebuilds", body, headers=headers)  # noqa: E731
    first = call({"apply": True})
    assert call({"apply": True}).json["job"] == first.json["job"]
    answer = call({"apply": False})
    assert (answer.status, answer.kind) == (409, "idempotency")
    gate.open.set()
    job = ended(service, first.headers["location"])
    again = call({"apply": True}).json
    assert (again["job"], again["state"]) == (job["job"], "done")
    assert gate.begun == 1


def test_a_key_that_a_rebuild_was_applied_under_counts_once_after_a_restart(tmp_path):
    headers = {"Idempotency-Key": "rebuild-1"}
    with ThreadService(tmp_path / "data") as service:
        path = service.namespace("people")
        service.post(f"{path}/vectors", sample(80))
        first = service.post(f"{path}/rebuilds", {"apply": True}, headers=headers)
        job = ended(service, first.headers["location"])
        told = hash_of(service, path)
    with ThreadService(tmp_path / "data") as service:
        assert service.get(first.headers["location"]).status == 404
        assert service.get(f"{path}/rebuilds").json == {"rebuilds": []}
        answer = service.post(f"{path}/rebuilds", {"apply": True}, headers=headers)
        again = ended(service, answer.headers["location"])
        assert (again["state"], again["tries"], again["before"]) == ("done", 0, job["before"])
        assert again["report"]["applied"] is True
        assert hash_of(service, path) == told


def test_a_namespace_too_large_for_the_memory_of_slow_reads_is_refused(tmp_path):
    with ThreadService(tmp_path / "data", slow_bytes=1 << 20) as service:
        path = service.namespace("people")
        service.post(f"{path}/vectors", sample(2_000))
        answer = service.post(f"{path}/rebuilds", {})
        assert (answer.status, answer.kind) == (503, "busy")
        error = answer.json["error"]
        assert "may need 1 MiB" in error["seen"]
        assert "slow_bytes" in error["remedy"]
        assert service.get(f"{path}/rebuilds").json == {"rebuilds": []}


def test_what_a_rebuild_refuses_ends_a_job_with_the_same_error(service, path):
    rows = sample(5).tolist()
    job = ended(service, start(service, path, vectors=rows))
    answer = service.post(f"{path}/rebuild", {"vectors": rows})
    assert job["state"] == "failed"
    assert job["error"] == answer.json["error"]
    untracked = service.namespace(new_name(), keep_vectors=False)
    service.post(f"{untracked}/vectors", sample(5))
    assert ended(service, start(service, untracked))["error"]["kind"] == "not-tracked"


def test_a_fault_ends_a_job_with_status_500_in_the_log(service, path, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(rebuild_work, "prepare", fail)
        job = ended(service, start(service, path, apply=True))
    assert (job["state"], job["error"]["kind"]) == ("failed", "fault")
    assert ended(service, start(service, path, apply=True))["state"] == "done"


def test_a_service_that_stops_ends_its_jobs(tmp_path, gate):
    with contextlib.ExitStack() as held:
        service = held.enter_context(ThreadService(tmp_path / "data"))
        path = service.namespace("people")
        service.post(f"{path}/vectors", sample(80))
        before = hash_of(service, path)
        start(service, path, apply=True)
        until(lambda: gate.begun == 1)
    with ThreadService(tmp_path / "data") as service:
        assert hash_of(service, path) == before
