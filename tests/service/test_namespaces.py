"""Namespaces are separate, even if many are used at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from linkstream import Links
from linkstream.presets import preset
from linkstream.store import Store
from service.calling import Stream
from service.routes import ROUTES, STREAMS, TABLES
from service.server import MADE_WITH, ThreadService
from store.child import batch
from store.operations import THRESHOLDS, vectors

X = vectors(np.random.default_rng(4), 60)


def everything(service, path):
    """Return all answers of a namespace that do not depend on time."""
    name, told = path.rpartition("/")[2], {}
    for route in ROUTES:
        if route.method != "GET" or route in STREAMS or "{namespace}" not in route.path:
            continue
        if route.path.endswith(("/stats", "/images/{path}", "/activity", "/timeline", "/moments")):
            continue
        answer = service.get(route.target(name))
        told[route.path] = answer.body if route in TABLES else answer.json
    return told


def without_place(told):
    """Return the same without the name of the namespace."""
    kept = dict(told)
    info = dict(kept["/v1/namespaces/{namespace}"])
    for name in ("name", "path", "bytes", "log_bytes", "made", "created"):
        info.pop(name, None)
    return kept | {"/v1/namespaces/{namespace}": info}


def test_two_namespaces_with_the_same_vectors_agree_and_are_independent(service):
    a, b = service.namespace("one"), service.namespace("two")
    for first in range(0, 60, 20):
        payloads = [f"picture {i}" for i in range(first, first + 20)]
        body = {"vectors": X[first : first + 20].tolist(), "payloads": payloads}
        ids = [service.post(f"{path}/vectors", body).json for path in (a, b)]
        assert ids[0] == ids[1]
        assert ids[0]["first"] == first
    assert without_place(everything(service, a)) == without_place(everything(service, b))
    before = everything(service, b)
    service.post(f"{a}/name", {"cluster": 0, "name": "Ann"})
    service.post(f"{a}/different", {"a": 0, "b": 1, "of": "vectors"})
    service.post(f"{a}/forget", {"cluster": 1})
    service.post(f"{a}/vectors", X[:5])
    service.post(f"{a}/compact", {})
    assert everything(service, b) == before
    service.post(f"{a}/undo", {"to": None})
    assert everything(service, b) == before


def test_idempotency_keys_are_per_namespace(service):
    a, b = service.namespace("key-a"), service.namespace("key-b")
    key = {"Idempotency-Key": "the-same"}
    first = service.post(f"{a}/vectors", X[:5], headers=key)
    other = service.post(f"{b}/vectors", X[5:12], headers=key)
    assert (first.status, other.status) == (200, 200)
    assert service.get(b).json["vectors"] == 7


def test_namespaces_have_their_own_dimension_and_thresholds(service):
    a = service.namespace("plain")
    thresholds = {
        "cluster_similarity": 0.6,
        "subcluster_similarity": 0.7,
        "pair_similarity_max": 0.95,
    }
    b = service.namespace("strange", thresholds=thresholds, min_size=2)
    service.post(f"{a}/vectors", X)
    rows = np.random.default_rng(0).standard_normal((30, 16)).astype(np.float32)
    links = Links(*thresholds.values(), min_size=2, threads=1)
    assert service.post(f"{b}/vectors", rows).ids == links.add_many(rows).tolist()
    assert service.get(f"{b}/thresholds").json["cluster_similarity"] == 0.6
    assert service.post(f"{b}/vectors", X[:1]).status == 400


def test_an_existing_namespace_is_not_replaced(service):
    path = service.namespace("made")
    service.post(f"{path}/vectors", X)
    assert service.put(path, MADE_WITH).status == 200
    thresholds = MADE_WITH["thresholds"] | {"cluster_similarity": 0.6}
    answer = service.put(path, {"thresholds": thresholds})
    assert answer.status == 409
    assert service.put(path, MADE_WITH | {"min_size": 3}).status == 409
    error = service.put(path, MADE_WITH | {"min_size": 3}).json["error"]
    assert f"for the namespace '{path.rpartition('/')[2]}', which has 1" in error["seen"]
    assert ".links" not in str(error)
    assert "make a namespace with another name" in error["remedy"]
    assert service.get(path).json["vectors"] == len(X)
    assert service.get(f"{path}/thresholds").json["cluster_similarity"] == 0.75


def test_one_of_many_different_makers_at_once_succeeds(service):
    gate = threading.Barrier(8)

    def make(number):
        thresholds = MADE_WITH["thresholds"] | {"cluster_similarity": 0.5 + number / 40}
        gate.wait()
        return service.put("/v1/namespaces/contested", {"thresholds": thresholds})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(make, range(8)))
    assert sorted(answer.status for answer in answers) == [201] + [409] * 7
    (winner,) = [number for number, answer in enumerate(answers) if answer.status == 201]
    kept = service.get("/v1/namespaces/contested/thresholds").json["cluster_similarity"]
    assert kept == 0.5 + winner / 40


def test_all_of_many_equal_makers_at_once_succeed(service):
    gate = threading.Barrier(8)

    def make(number):
        gate.wait()
        answer = service.put("/v1/namespaces/shared", MADE_WITH)
        added = service.post("/v1/namespaces/shared/vectors", X[number : number + 1])
        return answer.status, added.status

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(make, range(8)))
    assert sorted(answers) == [(200, 200)] * 7 + [(201, 200)]
    assert service.get("/v1/namespaces/shared").json["vectors"] == 8


def test_one_of_many_first_batches_fixes_the_dimension(service):
    path, gate = service.namespace("first"), threading.Barrier(8)

    def send(number):
        gate.wait()
        return service.post(f"{path}/vectors", np.eye(4 + number, dtype=np.float32)[:3]).status

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(send, range(8)))
    assert sorted(statuses) == [200] + [400] * 7
    assert service.get(path).json["dimension"] == 4 + statuses.index(200)


def test_a_namespace_being_made_is_found_or_not_found(service):
    for turn in range(8):
        path, gate = f"/v1/namespaces/early-{turn}", threading.Barrier(6)

        def ask(number, path=path, gate=gate):
            gate.wait()
            if number == 0:
                return service.put(path, MADE_WITH).status
            return {service.get(path).status for _ in range(5)}

        with ThreadPoolExecutor(6) as pool:
            made, *seen = pool.map(ask, range(6))
        assert made == 201
        assert set().union(*seen) <= {200, 404}


KINDS = {
    "empty": {},
    "plain": {},
    "not tracked": {"track_vectors": False, "keep_vectors": False},
    "not kept": {"keep_vectors": False},
    "bounded": {"track_vectors": False, "keep_vectors": False, "max_subclusters": 4, "max_idle": 9},
    "of whole clusters": {"evidence": "cluster", "heal": "settle", "min_size": 2},
    "best": {"mode": "best"},
    "with a mean": {"space": {"model": "encoder", "mean": [0.1] * 8}},
}


# A vector moved to its own cluster, a decision without a margin, and a migration in which too few
# vectors are re-embedded.
REFUSED = ("/move", "/judge", "/migration/ask", "/migration/report", "/migration/finish", "/demo")


@pytest.mark.parametrize("kind", KINDS)
def test_every_route_answers_with_all_options(service, kind):
    """A route may refuse what the options do not keep."""
    name = kind.replace(" ", "-")
    path = service.namespace(f"of-{name}", **KINDS[kind])
    if kind != "empty":
        assert service.post(f"{path}/vectors", X).status == 200
    for route in ROUTES:
        if route in STREAMS:
            with Stream(service.port, route.target(f"of-{name}")) as stream:
                assert stream.status == (404 if "{recording}" in route.path else 200)
            continue
        answer = service.call(route.method, route.target(f"of-{name}"), route.body)
        assert answer.status in (200, 201, 202, 400, 404, 409, 410), (route.name, answer)
        if answer.status == 400:
            assert kind != "plain" or route.path.endswith(REFUSED), (route.name, answer)
    assert service.get(path).status == 200


def test_a_mode_is_that_of_links_and_must_stay_the_same(service):
    path = service.namespace("by-mode", mode="best")
    made = service.get(f"{path}/thresholds").json
    assert (made["evidence"], made["heal"]["mode"]) == ("cluster", "settle")
    assert service.call("PUT", path, {**MADE_WITH, "mode": "best"}).status == 200
    assert service.call("PUT", path, {**MADE_WITH, "mode": "paper"}).status == 409
    assert service.call("PUT", path, {**MADE_WITH, "mode": "fast"}).status == 400


def test_a_preset_refuses_vectors_of_another_dimension_and_names_its_encoder(service):
    path = "/v1/namespaces/faces"
    assert service.put(path, {"preset": "arcface"}).status == 201
    answer = service.call("POST", f"{path}/vectors", {"vectors": [[1.0] * 256]})
    assert (answer.status, answer.kind) == (400, "dimension")
    assert "preset 'arcface' is for ArcFace MobileFaceNet" in str(answer.json)


def test_a_space_may_fix_the_dimension(service):
    path = "/v1/namespaces/narrow"
    made = MADE_WITH | {"space": {"model": "encoder", "dimension": 4}}
    assert [service.put(path, made).status for _ in range(2)] == [201, 200]
    assert service.get(f"{path}/space").json["dimension"] == 4
    other = MADE_WITH | {"space": {"model": "encoder", "dimension": 5}}
    assert service.put(path, other).status == 409
    for wrong in (1, 2**17, "4", True):
        made = MADE_WITH | {"space": {"dimension": wrong}}
        assert service.put("/v1/namespaces/wrong", made).status == 400


def test_a_granularity_chooses_a_level_of_the_preset(service):
    for name, granularity in (("topics", "topics"), ("between", 0.25)):
        path = f"/v1/namespaces/{name}"
        made = service.put(path, {"preset": "minilm", "granularity": granularity})
        assert made.status == 201
        told = service.get(f"{path}/thresholds").json
        expected = preset("minilm", granularity).thresholds
        assert told["cluster_similarity"] == expected.cluster_similarity
    answer = service.put("/v1/namespaces/wrong", {"preset": "minilm", "granularity": "topic"})
    assert answer.status == 400
    assert "did you mean 'topics'" in str(answer.json)


def test_a_preset_makes_a_namespace_and_an_unknown_one_is_refused(service):
    assert service.put("/v1/namespaces/voices", {"preset": "ge2e"}).status == 201
    assert service.put("/v1/namespaces/voices", {"preset": "ge2e"}).status == 200
    for body in ({}, {"preset": "none such"}, {"preset": "ge2e", **MADE_WITH}, {"preset": None}):
        answer = service.put("/v1/namespaces/nothing", body)
        assert answer.status in (400, 404), (body, answer)
    thresholds = MADE_WITH["thresholds"]
    for wrong in ({"cluster_similarity": 2.0}, {"pair_similarity_max": -1}, {"other": 1}):
        answer = service.put("/v1/namespaces/nothing", {"thresholds": thresholds | wrong})
        assert answer.status == 400
    for wrong in ({"space": {"mean": [1e400]}}, {"heal": "magic"}, {"max_subclusters": 0}):
        assert service.put("/v1/namespaces/nothing", MADE_WITH | wrong).status == 400
    assert service.get("/v1/namespaces/nothing").status == 404


# Many at once


def rows_of(number, turn):
    return batch(11, (number, turn), (1, 5, 40))


def fed(service, number, *, turns):
    """Feed a namespace; return all answers."""
    path, found = service.namespace(f"room-{number}"), []
    with service.caller() as caller:
        for turn in range(turns):
            found += caller.post(f"{path}/vectors", rows_of(number, turn)).ids
    return found


def test_24_namespaces_fed_at_once_have_the_ids_of_24_separate_runs(tmp_path):
    count, turns = 24, 8
    with ThreadService(tmp_path / "data") as service, ThreadPoolExecutor(count) as pool:
        answers = list(pool.map(lambda number: fed(service, number, turns=turns), range(count)))
        listed = service.get("/v1/namespaces").json["namespaces"]
        assert {one["name"]: one["vectors"] for one in listed} == {
            f"room-{number}": len(ids) for number, ids in enumerate(answers)
        }
    for number, ids in enumerate(answers):
        links = Links.from_thresholds(THRESHOLDS, threads=1)
        rows = [rows_of(number, turn) for turn in range(turns)]
        assert ids == [one for part in rows for one in links.add_many(part).tolist()]
        with Store.open(tmp_path / "data" / f"room-{number}.links", threads=1) as store:
            assert store.state_hash() == links.state_hash()
            kept = store.vectors(range(store.n_vectors))
            assert np.array_equal(kept, np.concatenate(rows))
