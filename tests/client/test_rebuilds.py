"""Both clients start, watch and cancel rebuilds that the service runs as jobs."""

from __future__ import annotations

import httpx
import numpy as np
import pytest

from client.fakes import URL
from linkstream import Links, Space, Thresholds
from linkstream.client.errors import ExistsError, NotFoundError, ServiceError
from linkstream.errors import ArgumentError, ChangedError, IdempotencyError

T = Thresholds(0.6, 0.5, 0.85)
OTHER = Thresholds(0.5, 0.45, 0.8)
REPORT = {
    "flows": [{"kind": "joined", "cluster": 3, "to": 1, "vectors": 4, "margin": 0.25}],
    "n_vectors": 9,
    "n_clusters": [3, 2],
    "n_subclusters": [4, 4],
    "n_transferred": 0,
    "applied": True,
}
JOB = {
    "job": "4f00",
    "state": "computing",
    "apply": True,
    "thresholds": None,
    "changes_space": False,
    "share": 0.25,
    "tries": 1,
    "seconds": 1.5,
    "before": None,
    "event": None,
    "report": None,
    "error": None,
}


def sample(n=90):
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((9, 12))
    return (centres[rng.integers(9, size=n)] + 0.6 * rng.standard_normal((n, 12))).astype("f4")


def test_a_job_has_the_result_of_links(talk, service, name):
    links = Links(*vars_of(T))
    links.add_many(sample())
    with talk(None, service, name) as people:
        people.create(T)
        people.add_many(sample())
        assert people.rebuild_jobs() == []
        for given in ({}, {"thresholds": OTHER}, {"space": Space(np.full(12, 0.01))}):
            job = people.wait_for_rebuild(people.start_rebuild(**given).job)
            assert job.result() == links.rebuild(**given)
        rows = np.random.default_rng(5).standard_normal((90, 7))
        job = people.start_rebuild(True, thresholds=OTHER, vectors=rows)
        done = people.wait_for_rebuild(job.job)
        assert (done.thresholds["cluster_similarity"], done.changes_space) == (0.5, True)
        assert done.result() == links.rebuild(True, thresholds=OTHER, vectors=rows)
        assert (done.state, done.apply, done.share, done.tries) == ("done", True, 1.0, 1)
        assert people.state_hash() == links.state_hash()
        assert [each.job for each in people.rebuild_jobs()] == [job.job]
        people.undo(to=done.before)
        assert people.info().dimension == 12


def vars_of(thresholds):
    return (
        thresholds.cluster_similarity,
        thresholds.subcluster_similarity,
        thresholds.pair_similarity_max,
    )


def test_a_job_that_ended_is_forgotten_when_it_is_cancelled(talk, service, name):
    with talk(None, service, name) as people:
        people.create(T)
        people.add_many(sample())
        job = people.wait_for_rebuild(people.start_rebuild().job)
        assert people.cancel_rebuild(job.job).state == "done"
        with pytest.raises(NotFoundError, match=job.job):
            people.rebuild_job(job.job)


def test_a_call_repeated_with_its_key_is_one_job(talk, service, name):
    with talk(None, service, name) as people:
        people.create(T)
        people.add_many(sample())
        first = people.start_rebuild(True, idempotency_key="r-1")
        done = people.wait_for_rebuild(first.job)
        assert people.start_rebuild(True, idempotency_key="r-1") == done
        with pytest.raises(IdempotencyError):
            people.start_rebuild(False, idempotency_key="r-1")


def test_errors_are_those_of_links(talk, service, name):
    with talk(None, service, name) as people:
        people.create(T)
        people.add_many(sample())
        failed = people.wait_for_rebuild(people.start_rebuild(vectors=sample(5)).job)
        assert failed.state == "failed"
        with pytest.raises(ArgumentError, match="5 vectors for a rebuild of 90"):
            failed.result()


@pytest.mark.parametrize("job", ["", "../undo", "4f00?x=1", None, 7])
def test_only_ids_of_jobs_are_sent(talk, job):
    with talk(lambda request: pytest.fail(f"{request} was sent")) as people:
        for verb in ("rebuild_job", "wait_for_rebuild", "cancel_rebuild"):
            with pytest.raises(ArgumentError, match="the job"):
                getattr(people, verb)(job)


def test_arguments_are_checked_before_anything_is_sent(talk):
    with talk(lambda request: pytest.fail(f"{request} was sent")) as people:
        for given in ({"apply": 1}, {"hold": "yes"}, {"thresholds": (0.5, 0.5, 0.5)}):
            with pytest.raises(ArgumentError):
                people.start_rebuild(**given)


def test_waiting_asks_again_until_the_job_has_ended(talk):
    asked = []
    states = iter(["waiting", "computing", "applying", "done"])

    def handler(request):
        asked.append(str(request.url))
        told = {**JOB, "state": next(states)}
        return httpx.Response(200, json=told | ({"report": REPORT} if len(asked) == 4 else {}))

    with talk(handler) as people:
        job = people.wait_for_rebuild("4f00")
    assert asked == [f"{URL}/v1/namespaces/people/rebuilds/4f00?wait=20"] * 4
    assert job.ended
    assert job.result().flows[0].vectors == 4


def test_a_job_that_has_not_ended_has_no_result(talk):
    with talk(lambda _: httpx.Response(200, json=JOB)) as people:
        job = people.rebuild_job("4f00")
    assert (job.share, job.ended) == (0.25, False)
    with pytest.raises(ArgumentError, match="a rebuild that is computing"):
        job.result()


@pytest.mark.parametrize(
    ("kind", "expected"), [("changed", ChangedError), ("exists", ExistsError), ("x", ServiceError)]
)
def test_the_error_of_a_job_is_of_the_class_that_its_kind_names(talk, kind, expected):
    told = {"kind": kind, "seen": "a", "expected": "b", "remedy": "C."}
    failed = {**JOB, "state": "failed", "error": told}
    with talk(lambda _: httpx.Response(200, json=failed)) as people:
        job = people.rebuild_job("4f00")
    with pytest.raises(expected, match="a; expected b"):
        job.result()
