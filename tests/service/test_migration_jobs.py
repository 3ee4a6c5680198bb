"""The end of a migration as a job: progress, cancelling, holding writes back, stops and kills."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest

from linkstream import Space, Thresholds
from linkstream.service import rebuild_jobs, rebuild_work
from linkstream.store import Store
from service.internals import session_of, slow_reads_of
from service.server import ProcessService, ThreadService, until
from store.operations import THRESHOLDS

OTHER = {"cluster_similarity": 0.6, "subcluster_similarity": 0.5, "pair_similarity_max": 0.85}
SPACE = {"model": "two"}
HEADERS = {"Idempotency-Key": "end-1"}
N, SEEN = 120, 90  # vectors, and how many of them the other encoder has seen
NUMBERS = itertools.count()


def views():
    """Return vectors of one encoder, and of another one of fewer dimensions."""
    rng = np.random.default_rng(3)
    ones = np.repeat(rng.standard_normal((9, 12)), -(-N // 9), axis=0)[:N]
    ones = (ones + 0.7 * rng.standard_normal(ones.shape)).astype("f4")
    return ones, (ones @ rng.standard_normal((12, 9))).astype("f4")


def begin(service, path, seen=SEEN):
    """Add the vectors, and begin a migration that has seen some of them."""
    ones, others = views()
    assert service.post(f"{path}/vectors", {"vectors": ones.tolist()}).status == 200
    body = {"space": SPACE, "thresholds": OTHER}
    assert service.post(f"{path}/migration", body).status == 200
    body = {"vectors": others[:seen].tolist(), "numbers": list(range(seen))}
    assert service.post(f"{path}/migration/vectors", body).json == {"taken": seen}
    return path


@pytest.fixture
def path(service):
    return begin(service, service.namespace(f"n{next(NUMBERS)}"))


@pytest.fixture
def expected(tmp_path):
    """Return the state hashes before and after the end, as a store has them."""
    ones, others = views()
    with Store.open(tmp_path / "other.links", thresholds=THRESHOLDS) as store:
        store.add_many(ones)
        before = store.state_hash()
        migration = store.migrate(space=Space(model="two"), thresholds=Thresholds(**OTHER))
        migration.add(others[:SEEN], range(SEEN))
        report = migration.finish()
        return before, store.state_hash(), report


def hash_of(service, path):
    return service.get(f"{path}?hash=true").json["state_hash"]


def start(service, path, headers=None, **body):
    answer = service.post(f"{path}/migration/finish", body, headers=headers)
    assert answer.status == 202, answer.body
    return answer.headers["location"]


def ended(service, address):
    job = service.get(f"{address}?wait=30").json
    assert job["state"] in ("done", "failed", "cancelled")
    return job


@pytest.fixture
def gate(monkeypatch):
    """Hold up every computation before its end, until `open` is set."""
    made = Gate()
    prepare = rebuild_work.prepare_end

    def held_up(handle, progress, **given):
        made.begun += 1
        found = prepare(handle, progress, **given)
        while not made.open.wait(0.002):
            progress(0.5)
        made.after()
        return found

    monkeypatch.setattr(rebuild_work, "prepare_end", held_up)
    yield made
    made.open.set()


class Gate:
    def __init__(self):
        self.begun = 0
        self.open = threading.Event()
        self.after = lambda: None


def test_a_job_without_apply_tells_what_the_end_would_change_and_changes_nothing(
    service, path, expected
):
    job = ended(service, start(service, path, apply=False))
    assert (job["state"], job["apply"], job["share"], job["before"]) == ("done", False, 1.0, None)
    told = service.get(f"{path}/migration/report").json
    assert {**job["migration"], "rebuild": job["report"]} == told
    assert job["migration"]["loss"]["n_pairs"] == SEEN
    assert hash_of(service, path) == expected[0]
    assert service.get(f"{path}/migration").json["migration"]["reencoded"] == SEEN
    (listed,) = service.get(f"{path}/rebuilds").json["rebuilds"]
    assert listed["report"] is None
    assert listed["migration"]["disagreements"] == []
    assert listed["migration"]["status"] == told["status"]


def test_the_end_is_that_of_a_store_and_one_undo_takes_it_back(service, path, expected):
    job = ended(service, start(service, path))
    assert (job["state"], job["tries"], job["error"]) == ("done", 1, None)
    assert job["report"]["applied"] is True
    assert len(job["migration"]["disagreements"]) == len(expected[2].disagreements)
    assert hash_of(service, path) == expected[1]
    questions = service.get(f"{path}/review").json["questions"]
    assert any(question["before"] is not None for question in questions)
    undo = {"to": job["before"], "after": job["event"]}
    assert service.post(f"{path}/undo", undo).status == 200
    assert hash_of(service, path) == expected[0]


def test_reads_and_writes_go_on_and_the_end_is_computed_again(service, path, gate):
    _, others = views()
    address = start(service, path)
    until(lambda: service.get(address).json["share"] == 0.5)
    body = {"vectors": others[SEEN:].tolist(), "numbers": list(range(SEEN, N))}
    assert service.post(f"{path}/migration/vectors", body).json == {"taken": N - SEEN}
    assert service.get(f"{path}/clusters/0?brief=true").status == 200
    gate.open.set()
    job = ended(service, address)
    assert (job["state"], job["tries"]) == ("done", 2)
    assert job["migration"]["status"]["missing"] == 0
    assert job["migration"]["loss"] is None


def test_a_cancelled_job_changes_nothing_and_the_migration_goes_on(service, path, gate, expected):
    address = start(service, path)
    until(lambda: gate.begun == 1)
    assert service.call("DELETE", address).json["state"] == "cancelled"
    until(lambda: not slow_reads_of(service).running)  # its thread has ended
    assert hash_of(service, path) == expected[0]
    assert service.get(f"{path}/migration").json["migration"]["reencoded"] == SEEN
    gate.open.set()
    assert ended(service, start(service, path))["state"] == "done"
    assert hash_of(service, path) == expected[1]


def test_what_keeps_coming_is_held_back_on_request(service, path, gate):
    ones, others = views()
    after = itertools.count()

    def come():
        number = next(after)
        body = {"vectors": others[number : number + 1].tolist(), "numbers": [number]}
        if gate.begun < rebuild_jobs.TRIES:
            service.post(f"{path}/migration/vectors", body)
            return
        for route, given in (
            ("migration/vectors", body),
            ("vectors", {"vector": ones[0].tolist()}),
        ):
            late.append(threading.Thread(target=service.post, args=(f"{path}/{route}", given)))
            late[-1].start()
        until(lambda: session_of(service, path).load.calls == 1)
        assert service.get(f"{path}/migration").json["migration"]["n_vectors"] == N

    late = []
    gate.after = come
    gate.open.set()
    job = ended(service, start(service, path, hold=True))
    for each in late:
        each.join()
    assert (job["state"], job["tries"]) == ("done", rebuild_jobs.TRIES)
    assert service.get(path).json["dimension"] == 9


def test_without_hold_it_is_refused_after_three_tries_and_the_migration_goes_on(
    service, path, gate
):
    _, others = views()

    def come():
        number = gate.begun
        body = {"vectors": others[number : number + 1].tolist(), "numbers": [number]}
        service.post(f"{path}/migration/vectors", body)

    gate.after = come
    gate.open.set()
    job = ended(service, start(service, path))
    assert (job["state"], job["tries"]) == ("failed", rebuild_jobs.TRIES)
    assert job["error"]["kind"] == "changed"
    assert "`hold`" in job["error"]["remedy"]
    assert service.get(f"{path}/migration").json["migration"]["reencoded"] == SEEN


def test_a_migration_that_is_abandoned_meanwhile_ends_its_job(service, path, gate, expected):
    address = start(service, path)
    until(lambda: gate.begun == 1)
    assert service.post(f"{path}/migration/abandon", {}).status == 200
    gate.open.set()
    job = ended(service, address)
    assert job["state"] == "failed"
    assert hash_of(service, path) == expected[0]


def test_a_namespace_has_one_job_of_either_kind(service, path, gate):
    address = start(service, path)
    for route in ("rebuilds", "migration/finish"):
        answer = service.post(f"{path}/{route}", {})
        assert (answer.status, answer.kind) == (409, "running")
    gate.open.set()
    assert ended(service, address)["state"] == "done"


def test_a_request_repeated_with_its_key_ends_the_migration_once(tmp_path, expected):
    with ThreadService(tmp_path / "data") as service:
        path = begin(service, service.namespace("people"))
        address = start(service, path, HEADERS)
        assert start(service, path, HEADERS) == address
        answer = service.post(f"{path}/migration/finish", {"apply": False}, headers=HEADERS)
        assert (answer.status, answer.kind) == (409, "idempotency")
        job = ended(service, address)
        assert start(service, path, HEADERS) == address
    with ThreadService(tmp_path / "data") as service:
        again = ended(service, start(service, path, HEADERS))
        assert (again["state"], again["tries"]) == ("done", 0)
        assert (again["before"], again["event"]) == (job["before"], job["event"])
        assert again["report"]["repeated"] is True
        assert hash_of(service, path) == expected[1]
        other = {"Idempotency-Key": "name-1"}
        cluster = service.get(f"{path}/clusters").json["clusters"][0]["id"]
        service.post(f"{path}/name", {"cluster": cluster, "name": "Ann"}, headers=other)
        refused = ended(service, start(service, path, other))
        assert refused["error"]["kind"] == "idempotency"


def test_a_service_that_stops_ends_the_job_and_keeps_the_migration(tmp_path, gate, expected):
    with ThreadService(tmp_path / "data") as service:
        path = begin(service, service.namespace("people"))
        start(service, path)
        until(lambda: gate.begun == 1)
    gate.open.set()
    with ThreadService(tmp_path / "data") as service:
        assert hash_of(service, path) == expected[0]
        assert service.get(f"{path}/migration").json["migration"]["reencoded"] == SEEN
        assert ended(service, start(service, path))["state"] == "done"
        assert hash_of(service, path) == expected[1]


def settled(service, expected, applied):
    """Check the state after a restart, and that the repeated request ends the migration once."""
    path = "/v1/namespaces/people"
    assert service.get(f"{path}/rebuilds").json == {"rebuilds": []}
    found = hash_of(service, path)
    assert found in expected[:2]
    if applied is not None:
        assert found == expected[applied]
    under_way = service.get(f"{path}/migration").json["migration"]
    assert (under_way is None) == (found == expected[1])
    done = ended(service, start(service, path, HEADERS))
    assert (done["state"], done["tries"]) == ("done", 0 if found == expected[1] else 1)
    assert hash_of(service, path) == expected[1]
    assert service.get(f"{path}/migration").json == {"migration": None}
    steps = service.get(f"{path}/steps").json["steps"]
    assert [step["command"] for step in steps] == ["rebuild", "add_many"]


@pytest.mark.parametrize(("when", "applied"), [("before", False), ("after", True)])
def test_a_kill_at_the_commit_ends_the_migration_or_keeps_it(
    nest, tmp_path, expected, when, applied
):
    with ProcessService(nest, tmp_path / "data", fault={"when": when, "commit": 2}) as service:
        path = begin(service, service.namespace("people"))
        start(service, path, HEADERS)
        assert service.wait().status == -9
        service.fault = None
        service.start()
        settled(service, expected, applied)
        service.stop()


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 0.9])
def test_a_kill_while_it_is_computed_loses_nothing(nest, tmp_path, expected, share):
    with ProcessService(nest, tmp_path / "data") as service:
        path = begin(service, service.namespace("people"))
        address = start(service, path, HEADERS)
        until(lambda: service.get(address).json["share"] >= share, pause=0.0)
        service.kill()
        service.start()
        settled(service, expected, None)
        service.stop()
