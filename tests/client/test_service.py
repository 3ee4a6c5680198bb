"""Clients of a running service give the answers of a plain `Links`."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import threading
from dataclasses import asdict

import httpx
import numpy as np
import pytest

from client.fakes import BOTH
from linkstream import Links, Space, Thresholds
from linkstream.client import AsyncClient, Batch, Client, last_write, writes
from linkstream.client.errors import ExistsError, NotFoundError, ScopeError, TokenError
from linkstream.clusterer.confidence import setting
from linkstream.clusterer.verbs import VERBS
from linkstream.confidence import Curve, Model
from linkstream.data import voice_halves
from linkstream.engine.events import Decided
from linkstream.errors import (
    ArgumentError,
    DimensionError,
    IdempotencyError,
    LinkstreamError,
    RemovedError,
    UndoError,
)
from linkstream.identity.rebuild_report import RebuildReport
from linkstream.identity.settling import Settlement
from linkstream.service import tokens
from linkstream.service.running import background
from linkstream.service.settings import Settings

ARRIVALS = ("created", "joined", "linked")
TIMEOUT = 120.0  # seconds; an idle machine needs less than one
THRESHOLDS = Thresholds(0.766, 0.645, 0.738)
X = voice_halves()[1].X
BAD = np.vstack([X[:2], np.full((1, X.shape[1]), np.nan, dtype=np.float32)])

# Calls in order; calls that are refused change nothing.
CALLS = [
    ("add", (X[0],), {}),
    ("add_many", (X[1:200],), {}),
    ("add_many", (X[200:230],), {"weight": 0.5}),
    ("add_many", (X[230:240],), {"weight": np.linspace(0.1, 1.0, 10), "group": "one photo"}),
    ("add", (X[240],), {"weight": 0.0}),
    ("add", (X[241],), {"group": "one photo"}),
    ("add_group", (X[242:246],), {"group": "photo"}),
    ("add_group", (X[246:248],), {"group": "photo", "weight": [1.0, 0.5]}),
    ("add_many", (BAD,), {}),
    ("add_many", (X[:3, :7],), {}),
    ("predict", (X[300:320],), {}),
    ("enrol", ("Ann", X[400:403]), {}),
    ("enrol", ("Ann", X[403:404]), {"locked": False}),
    ("named", ("Ann",), {}),
    ("named", ("nobody",), {}),
    ("explain", (X[500],), {"limit": 3}),
    ("explain_pair", (0, 30), {}),
    ("explain_pair", (0, 1), {"of": "clusters"}),
    ("suggest_merges", (5,), {}),
    ("suggest_splits", (5,), {}),
    ("review_queue", (5,), {}),
    ("same", (0, 1), {"of": "clusters"}),
    ("different", (0, 1), {"of": "clusters"}),
    ("resolve", (1,), {}),
    ("different", (0, 2), {"of": "clusters"}),
    ("same", (0, 2), {"of": "clusters"}),
    ("explain_pair", (0, 2), {"of": "clusters"}),
    ("same", (10, 11), {}),
    ("different", (10, 11), {}),
    ("corrections", (), {}),
    ("retract", (0,), {}),
    ("name", (0, "Ben <b> \u2028"), {"claim": True}),
    ("name", (2, "Ann"), {}),
    ("name", (2, " "), {}),
    ("rename", (0, "Bob"), {}),
    ("ignore", (2,), {}),
    ("ignore", (2, False), {}),
    ("remove", (5,), {}),
    ("remove", (5,), {}),
    ("remove", (10**6,), {}),
    ("move", (7, 3), {}),
    ("move", (7, 3), {}),
    ("add_many", (X[500:600],), {}),
    ("exemplars", (0,), {}),
    ("history", (1,), {}),
    ("history", (0,), {}),
    ("forget", (3,), {}),
    ("resolve", (3,), {}),
    ("resolve", (10**6,), {}),
    ("resolve_many", ([3, 0, 1, -1, 1],), {}),
    ("resolve_many", ([0, 10**6],), {}),
    ("resolve_many", ([[0]],), {}),
    ("redo", (), {}),
    ("undo", (), {}),
    ("undo", (), {}),
    ("redo", (), {}),
    ("redo", (), {}),
    ("redo", (), {}),
    ("labels", (), {}),
    ("undo", (), {}),
    ("undo", (), {"to": 10**9}),
    ("add_many", (X[600:650],), {}),
    ("events", (), {}),
    ("events", (100,), {}),
    ("labels", (), {}),
    ("state_hash", (), {}),
]


def outcome(target, verb, args, kwargs):
    """Return the answer of a verb, or its error in comparable form."""
    try:
        answer = getattr(target, verb)(*args, **kwargs)
    except LinkstreamError as error:
        more = [getattr(error, name, None) for name in ("row", "chain", "correction")]
        words = None if verb == "named" else str(error)  # the client raises this one itself
        return type(error), words, *more
    return answer.tolist() if isinstance(answer, np.ndarray) else answer


def test_the_same_verbs_give_the_same_answers_on_both_clients_and_on_links(service, name):
    links = Links.from_thresholds(THRESHOLDS)
    refused = 0
    with contextlib.ExitStack() as held:
        clients = [
            held.enter_context(kind(None, service, f"{name}-{place}"))
            for place, kind in enumerate(BOTH)
        ]
        for client in clients:
            assert client.create(THRESHOLDS)
        for call in CALLS:
            expected = outcome(links, *call)
            refused += isinstance(expected, tuple)
            for client in clients:
                assert outcome(client, *call) == expected, call[0]
    assert refused >= 10


def test_settle_proposes_and_applies_as_links_does(service, name, talk):
    links = Links.from_thresholds(THRESHOLDS)
    links.add_many(X[:400])
    with talk(None, service, name) as client:
        client.create(THRESHOLDS)
        client.add_many(X[:400])
        before = client.state_hash()
        assert client.settle() == links.settle()
        assert client.state_hash() == before
        assert client.settle(apply=True) == links.settle(apply=True)
        assert client.state_hash() == links.state_hash()


def test_rebuild_proposes_and_applies_as_links_does(service, name, talk):
    links = Links.from_thresholds(THRESHOLDS)
    links.add_many(X[:400])
    with talk(None, service, name) as client:
        client.create(THRESHOLDS)
        client.add_many(X[:400])
        assert client.partition_hash() == links.partition_hash()
        assert client.rebuild() == links.rebuild()
        assert client.partition_hash() == links.partition_hash()
        assert client.rebuild(apply=True) == links.rebuild(apply=True)
        assert client.state_hash() == links.state_hash()
        assert client.partition_hash() == links.partition_hash()


def test_a_rebuild_takes_thresholds_from_the_present_clusters(service, name, talk):
    links = Links(0.9, 0.95, 0.97)
    links.add_many(X[:200])
    with talk(None, service, name) as client:
        client.create(links.thresholds)
        client.add_many(X[:200])
        expected = links.rebuild(thresholds="from clusters")
        assert client.rebuild(thresholds="from clusters") == expected
        assert expected.evidence.n_clusters >= 10
        with pytest.raises(ArgumentError, match="of clusters"):
            client.rebuild(thresholds="of clusters")
        done = client.rebuild(True, thresholds="from clusters")
        assert done == links.rebuild(True, thresholds="from clusters")
        assert client.info().thresholds == expected.thresholds


def test_a_namespace_may_have_thresholds_of_its_own_for_rebuilds(service, name, talk):
    own = Thresholds(0.7, 0.95, 0.75)
    links = Links(0.9, 0.95, 0.97, rebuild_thresholds=own)
    links.add_many(X[:200])
    with talk(None, service, name) as client:
        client.create(links.thresholds, rebuild_thresholds=own)
        client.add_many(X[:200])
        assert client.rebuild() == links.rebuild()
        assert client.rebuild().thresholds == own
        assert client.info().thresholds == links.thresholds


def lines_with_data(lines, n):
    """Return the first n messages of a stream."""
    return list(itertools.islice((line for line in lines if line.startswith("data: ")), n))


def confidence_of(client):
    """Read the confidence: a property of one client, a method of the other."""
    return client.confidence() if callable(client.confidence) else client.confidence


def test_a_namespace_may_have_a_model_of_confidence(service, name, talk):
    links, curve = Links(0.8, 0.75, 0.9), Curve(1.0, 8.0, -0.9, 0.9, 0.99, 900, 90)
    model = Model(setting(links.core), curve, curve, curve, 40)
    links.confidence.use(model)
    expected = [links.add(x) for x in X[:30]]
    with talk(None, service, name) as client:
        client.create(links.thresholds, confidence=model)
        assert [client.add(x) for x in X[:30]] == expected
        told = confidence_of(client)
        assert (told.model, told.why) == (model, "")
        asked = np.concatenate([X[:20], -X[:2]])
        assert client.predict_proba(asked, limit=2) == links.predict_proba(asked, limit=2)
        assert max(map(len, client.predict_proba(asked))) > 1
        assert client.predict_proba(X[:0]) == []
        client.judge(7, False)
        with pytest.raises(ArgumentError, match="without a cluster margin"):
            client.judge(0)
        judged = confidence_of(client).answered
        assert judged == ((pytest.approx(expected[7].probability, abs=1e-6), False),)
        with pytest.raises(ArgumentError, match="limit"):
            client.predict_proba(asked, limit=0)
        told = [e.probability for e in client.events() if isinstance(e, Decided)]
        decided = [each.probability for each in expected]
        assert told == pytest.approx(decided, abs=1e-6)
        column = client.to_frame("numpy", columns=["vector", "probability"])["probability"]
        np.testing.assert_allclose(column, np.array(decided, dtype=float), atol=1e-6)
    text = httpx.get(f"{service}v1/namespaces/{name}/tables/vectors?format=csv", trust_env=False)
    assert (
        text.text.splitlines()[0] == "vector,cluster,name,cluster_margin,probability,held,id,time"
    )
    assert text.text.splitlines()[1] == "0,0,,,,false,,"
    stream = f"{service}v1/namespaces/{name}/events/stream"
    with httpx.stream("GET", stream, trust_env=False) as followed:
        lines = followed.iter_lines()
        frames = [json.loads(line[6:]) for line in lines_with_data(lines, 30)]
    seen = [each.get("probability") for each in frames if each["kind"] in ARRIVALS]
    assert seen == told[: len(seen)]
    assert sum(each.probability is not None for each in expected) > 20
    wrong = {"thresholds": asdict(links.thresholds), "confidence": {"held": []}}
    answer = httpx.put(f"{service}v1/namespaces/{name}-2", json=wrong, trust_env=False)
    assert answer.status_code in (400, 422)
    assert "confidence" in answer.text


def test_probabilities_are_unknown_without_a_model(service, name, talk):
    with talk(None, service, name) as client:
        client.create(Thresholds(0.8, 0.75, 0.9))
        client.add_many(X[:30])
        assert client.predict_proba(X[:3]) == [{}, {}, {}]
        assert confidence_of(client).model is None
        assert "no model" in confidence_of(client).why
    url = f"{service}v1/namespaces/{name}"
    told = httpx.get(f"{url}/confidence", trust_env=False).json()
    assert told["why"]
    for nothing in ("identities", "answers", "check", "model"):
        assert told[nothing] is None
    sent = {"vectors": X[:2].tolist(), "payloads": [1, 2]}
    refused = httpx.post(f"{url}/predict_proba", json=sent, trust_env=False)
    assert (refused.status_code, refused.json()["error"]["expected"]) == (400, "vectors alone")
    many = httpx.post(f"{url}/predict_proba?limit=0", json={"vectors": sent["vectors"]})
    assert many.status_code == 400


def test_every_write_of_the_client_is_a_route_of_the_service(service):
    paths = httpx.get(f"{service}openapi.json", trust_env=False).json()["paths"]
    below = "/v1/namespaces/{namespace}"
    scopes = {
        (method.upper(), path.removeprefix(below).removeprefix("/")): route["x-scope"]
        for path, routes in paths.items()
        for method, route in routes.items()
        if path.startswith(below) and route["x-scope"] in ("write", "admin")
    }
    paths = {("POST", writes.PATHS.get(verb, verb)) for verb in VERBS}
    migration = ("migration", *(f"migration/{each}" for each in ("vectors", "finish", "abandon")))
    turns = ("turns/{recording}", "turns/{recording}/finish")
    posted = ("compact", "rebuilds", *migration, *turns)
    others = {("PUT", ""), *(("POST", each) for each in posted)}
    of_page = {(method, path) for method, path in scopes if path.startswith(("uploads", "demo"))}
    assert len(of_page) == 10
    assert {*paths, *others, *of_page, ("DELETE", "rebuilds/{job}")} == set(scopes)


def test_views_agree_with_links(service, name, talk):
    links = Links.from_thresholds(THRESHOLDS)
    links.add_many(X[:300])
    with talk(None, service, name) as client:
        client.create(THRESHOLDS)
        client.add_many(X[:300], payloads=[{"window": n} for n in range(300)])
        for view, cluster in zip(client.clusters(), links.clusters(), strict=True):
            assert (view.id, view.size, view.name) == (cluster.id, cluster.size, cluster.name)
            assert view.n_subclusters == len(cluster.subclusters)
        sizes = [each.size for each in client.clusters(order="size", limit=3)]
        assert sizes == sorted((c.size for c in links.clusters()), reverse=True)[:3]
        info = client.info()
        assert (info.n_vectors, info.n_clusters) == (links.n_vectors, links.n_clusters)
        assert (info.dimension, info.thresholds) == (links.dimension, THRESHOLDS)
        detail = client.cluster(0)
        assert detail.cluster == client.clusters()[0]
        assert {node.subcluster for node in detail.nodes} == set(links.clusters()[0].subclusters)
        assert detail.history == links.history(0)
        mine = np.flatnonzero(links.labels() == 0)[::-1].tolist()
        page = client.members(0, limit=4)
        more = client.members(0, limit=4, before=page.next)
        assert [each.vector for each in (*page.vectors, *more.vectors)] == mine[:8]
        assert page.vectors[0].payload == {"window": mine[0]}
        assert client.payload(7) == {"window": 7}
        assert client.vector(7).cluster == links.labels()[7]
        assert name in [each.name for each in client.namespaces()]
        assert client.health()["status"] == "ok"
        assert client.stats()["vectors"] == 300


def test_members_of_an_id_are_those_of_the_cluster_it_stands_for(service, name):
    with Client(service, name) as client:
        client.create(THRESHOLDS)
        client.add_many(X[:100])
        client.same(0, 1, of="clusters")
        mine = np.flatnonzero(client.labels() == client.resolve(1))[::-1].tolist()
        for cluster in (0, 1):
            found = client.members(cluster, limit=len(mine))
            assert [each.vector for each in found.vectors] == mine
            assert found.next is None
            assert client.members(cluster, limit=len(mine) - 1).next == mine[-2]
        client.forget(0)
        assert client.members(0).vectors == ()


def test_the_thresholds_are_those_of_the_namespace(service, name):
    with Client(service, name) as client:
        client.create(THRESHOLDS)
        assert client.thresholds == THRESHOLDS

    async def asked():
        async with AsyncClient(service, name) as client:
            return await client.thresholds()

    assert asyncio.run(asked()) == THRESHOLDS


def test_feed_gives_the_ids_of_one_stream(service, name, talk):
    links = Links.from_thresholds(THRESHOLDS)
    batches = [X[:50], Batch(X[50:60], payloads=range(10)), [], X[60:61], Batch(X[61:200])]
    with talk(None, service, name) as client:
        client.create(THRESHOLDS)
        fed = client.every("feed", batches)
        assert np.concatenate(fed).tolist() == links.add_many(X[:200]).tolist()
        assert client.payload(53) == 3


class Lossy(httpx.HTTPTransport):
    """A transport that loses the answer to every other request."""

    sent = 0

    def handle_request(self, request):
        response = super().handle_request(request)
        self.sent += 1
        if self.sent % 2:
            response.read()
            response.close()
            raise httpx.ReadError("the answer was lost", request=request)
        return response


def test_a_repeated_call_counts_once(service, name, waits):
    links = Links.from_thresholds(THRESHOLDS)
    with Client(service, name, transport=Lossy()) as client:
        client.create(THRESHOLDS)
        for start in range(0, 100, 20):
            rows = X[start : start + 20]
            assert client.add_many(rows).tolist() == links.add_many(rows).tolist()
        assert client.add(X[100]) == links.add(X[100])
        client.same(0, 1, of="clusters")
        links.same(0, 1, of="clusters")
        client.undo()
        links.undo()
        assert client.state_hash() == links.state_hash()
        assert client.info().n_vectors == 101
    assert len(waits) >= 10


def test_a_key_that_was_used_for_another_call_is_refused(service, name, talk):
    with talk(None, service, name) as client:
        client.create(THRESHOLDS)
        first = client.add_many(X[:5], idempotency_key="batch-1")
        assert np.array_equal(client.add_many(X[:5], idempotency_key="batch-1"), first)
        with pytest.raises(IdempotencyError, match="batch-1"):
            client.add_many(X[5:9], idempotency_key="batch-1")
        assert client.info().n_vectors == 5


def test_a_correction_is_taken_back_only_if_nothing_came_after_it(service, name):
    with Client(service, name) as client:
        client.create(THRESHOLDS)
        client.add_many(X[:60])
        before = client.state_hash()
        assert client.name(0, "Ann") is None
        client.undo(after=last_write().event)
        assert client.state_hash() == before
        client.name(0, "Ann")
        done = last_write()
        client.add(X[60])
        assert last_write() is None
        with pytest.raises(UndoError):
            client.undo(after=done.event)
        client.undo(to=done.before)
        assert client.state_hash() == before


def test_each_task_has_a_last_write_of_its_own(service, name):
    async def named(client, cluster):
        await client.name(cluster, f"name {cluster}")
        done = last_write()
        return [event.cluster for event in await client.events(done.before, limit=1)]

    async def both():
        async with AsyncClient(service, name) as client:
            await client.create(THRESHOLDS)
            await client.add_many(X[:60])
            return await asyncio.gather(named(client, 0), named(client, 1))

    assert asyncio.run(both()) == [[0], [1]]


def test_a_repeated_settle_returns_a_settlement_without_joins_and_cuts(service, name, talk):
    with talk(None, service, name) as client:
        client.create(THRESHOLDS)
        client.add_many(X[:400])
        changes = client.settle(True, idempotency_key="once")
        assert changes.joins
        again = client.settle(True, idempotency_key="once")
        after = changes.n_clusters_after
        assert again == Settlement((), (), after, after, applied=True)


def test_a_repeated_rebuild_says_that_its_report_is_not_kept(service, name, talk):
    with talk(None, service, name) as client:
        client.create(THRESHOLDS)
        client.add_many(X[:400])
        first = client.rebuild(True, idempotency_key="once")
        assert (first.n_vectors, first.repeated) == (400, False)
        again = client.rebuild(True, idempotency_key="once")
        assert again == RebuildReport(applied=True, repeated=True)
        assert str(again) == (
            "rebuilt by the first call with this idempotency key; its report is not kept"
        )


def test_settle_takes_thresholds_of_its_own(service, name, talk):
    links = Links.from_thresholds(THRESHOLDS)
    links.add_many(X[:400])
    strict = Thresholds(0.9, 0.85, 0.95)
    with talk(None, service, name) as client:
        client.create(THRESHOLDS)
        client.add_many(X[:400])
        assert client.settle(thresholds=strict) == links.settle(thresholds=strict)
        assert client.settle(True, thresholds=strict) == links.settle(True, thresholds=strict)
        assert client.state_hash() == links.state_hash()


def test_a_vector_is_removed_by_its_coordinates(service, name, talk):
    links = Links.from_thresholds(THRESHOLDS, track_vectors=False)
    links.add_many(X[:50])
    with talk(None, service, name) as client:
        client.create(THRESHOLDS, track_vectors=False)
        client.add_many(X[:50])
        for target in (client, links):
            assert target.remove(X[7], weight=1.0) is None
        assert client.state_hash() == links.state_hash()


def test_each_call_is_a_step_that_is_undone_and_redone_as_a_whole(service, name, talk):
    with talk(None, service, name) as client:
        client.create(THRESHOLDS)
        client.add_many(X[:40])
        client.name(0, "Ann")
        client.add_many(X[40:60])
        after = client.state_hash()
        assert [(step.command, step.vectors) for step in client.steps()] == [
            ("add_many", 20),
            ("name", 0),
            ("add_many", 40),
        ]
        for left in (40, 40, 0):
            client.undo(step=True)
            assert client.info().n_vectors == left
        assert [step.undone for step in client.steps(limit=1)] == [True] * 3
        for _ in range(3):
            client.redo()
        assert client.state_hash() == after
        with pytest.raises(UndoError, match="nothing to redo"):
            client.redo()


def test_a_forgotten_cluster_is_reported_as_forgotten(service, name, talk):
    with talk(None, service, name) as client:
        client.create(THRESHOLDS)
        client.add_many(X[:60])
        client.forget(1)
        assert client.resolve(1) == -1
        assert client.cluster(1).cluster is None
        vector = int(np.flatnonzero(client.labels() == -1)[0])
        with pytest.raises(RemovedError):
            client.vector(vector)
        client.compact()
        assert client.resolve(1) == -1


def test_a_missing_or_different_namespace_is_refused(service, name, talk):
    with talk(None, service, name) as client:
        with pytest.raises(NotFoundError):
            client.add_many(X[:3])
        assert client.create(THRESHOLDS) is True
        assert client.create(THRESHOLDS) is False
        with pytest.raises(ExistsError):
            client.create(Thresholds(0.7, 0.6, 0.9))


def test_create_sends_the_dimension_of_the_space(service, name, talk):
    with talk(None, service, name) as client:
        client.create(THRESHOLDS, space=Space(model="encoder", dimension=3))
        with pytest.raises(DimensionError, match="dimension 3: model 'encoder' makes them"):
            client.add_many(np.ones((2, 4)))


class Follower(threading.Thread):
    """A thread that follows events with a client of its own until it has seen n events."""

    def __init__(self, kind, url, name, since, n):
        super().__init__(daemon=True)
        self._how, self._what = (kind, url, name), (n, since)
        self.seen = []
        self.start()

    def run(self):
        kind, url, name = self._how
        with kind(None, url, name) as client:
            self.seen = client.first("follow", *self._what)

    def result(self):
        self.join(TIMEOUT)
        assert not self.is_alive()
        return self.seen


def test_followers_see_events_of_other_clients(service, name, talk):
    with Client(service, name) as writer:
        writer.create(THRESHOLDS)
        writer.add_many(X[:10])
        follower = Follower(talk, service, name, 5, 40)
        for row in X[10:60]:
            writer.add(row)
        writer.name(0, "a\u2028b")
        assert follower.result() == writer.events(5, limit=40)


def test_a_follower_resumes_after_a_restart_of_the_service(tmp_path, talk):
    data = tmp_path / "data"
    with background(Settings(data=data, port=0)) as url, Client(url, "people") as client:
        client.create(THRESHOLDS)
        client.add_many(X[:10])
        before = client.events()
        follower = Follower(talk, url, "people", 0, len(before) + 15)
    port = int(url.rstrip("/").rsplit(":", 1)[1])
    with background(Settings(data=data, port=port)), Client(url, "people") as client:
        client.name(0, "Ann")
        client.add_many(X[10:40])
        assert follower.result() == client.events(limit=len(before) + 15)


def test_a_token_allows_only_its_scope(tmp_path, talk):
    data = tmp_path / "data"
    data.mkdir()
    secret = {
        scope: tokens.create(data / "tokens.json", {"people": scope})[1]
        for scope in ("read", "admin")
    }
    with background(Settings(data=data, port=0)) as url:
        with talk(None, url, token=secret["admin"]) as client:
            client.create(THRESHOLDS)
            client.add_many(X[:5])
        with talk(None, url, token=secret["read"]) as client:
            assert len(client.labels()) == 5
            with pytest.raises(ScopeError):
                client.add_many(X[5:9])
        for token in (None, "lsk_unknown_secret"):
            with talk(None, url, token=token) as client, pytest.raises(TokenError):
                client.labels()
