"""Tables, changes and searches of a client are those of the store."""

from __future__ import annotations

import asyncio
import inspect

import numpy as np
import pytest

from linkstream.client import AsyncClient, Client
from linkstream.errors import ArgumentError, NotTrackedError, UnknownIdError
from linkstream.store import Store
from service.server import ThreadService
from store.operations import THRESHOLDS, vectors

X = vectors(np.random.default_rng(3), 60)
PAYLOADS = [
    {"file": f"{i}.jpg", "n": i, "share": i / 2, "on": i % 2 == 0} if i % 3 else None
    for i in range(60)
]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with ThreadService(tmp_path_factory.mktemp("tables") / "data") as held:
        yield held


@pytest.fixture(scope="module")
def client(service):
    with Client(f"http://127.0.0.1:{service.port}", "cars") as held:
        assert held.create(thresholds=THRESHOLDS, search=True)
        held.add_many(X[:40], payloads=PAYLOADS[:40])
        held.name(0, "Ann")
        held.add_many(X[40:], payloads=PAYLOADS[40:])
        yield held


@pytest.fixture
def store(service, client):
    with Store.open(service.data / "cars.links", read_only=True) as opened:
        yield opened


@pytest.mark.parametrize("options", [{}, {"cluster": 0}, {"since": 50, "columns": ["n", "name"]}])
def test_frames_are_those_of_the_store(client, store, options):
    mine, theirs = client.to_frame(**options), store.to_frame(**options)
    assert mine.equals(theirs)
    assert mine.dtypes.equals(theirs.dtypes)
    assert client.to_frame("arrow", **options).equals(store.to_frame("arrow", **options))
    plain = client.to_frame("numpy", **options)
    for name, column in store.to_frame("numpy", **options).items():
        np.testing.assert_array_equal(plain[name], column)
        np.testing.assert_array_equal(np.ma.getmask(plain[name]), np.ma.getmask(column))


def test_frames_of_clusters_are_those_of_the_store(client, store):
    options = {"order": "size", "limit": 2, "exemplars": 2}
    mine, theirs = client.clusters_frame(**options), store.clusters_frame(**options)
    assert mine.to_dict("list").keys() == theirs.to_dict("list").keys()
    assert client.clusters_frame("arrow").equals(store.clusters_frame("arrow"))
    assert [list(each) for each in mine["exemplars"]] == [list(e) for e in theirs["exemplars"]]


def test_changes_are_those_of_the_store_and_lead_from_labels_to_labels(client, store):
    found = client.changes(10, 50)
    expected = store.changes(10, 50)
    assert found.to_dict() == expected.to_dict()
    assert str(found) == str(expected)
    assert client.changes().apply([]).tolist() == client.labels().tolist()


def test_a_search_is_that_of_the_store(client, store):
    for words, options in (("jpg", {"limit": 3}), (None, {"where": {"n": 7, "on": False}})):
        assert client.search(words, **options) == store.search(words, **options)
    page = client.search("jpg", limit=30)
    more = client.search("jpg", limit=30, before=page.next)
    assert len({hit.vector for hit in (*page.hits, *more.hits)}) == 40


def test_wrong_arguments_are_refused_as_in_the_store(client):
    for wrong in (
        lambda: client.search('"'),
        lambda: client.search("jpg", limit=0),
        lambda: client.search("jpg", limit=201),
        lambda: client.to_frame("excel"),
        lambda: client.to_frame(columns="vector"),
        lambda: client.to_frame(columns=["vector", "a,b"]),
        lambda: client.changes(10**6),
        lambda: client.clusters_frame(order="name"),
    ):
        with pytest.raises(ArgumentError):
            wrong()
    with pytest.raises(UnknownIdError):
        client.search("jpg", cluster=999)
    other = client.namespace("plain")
    other.create(thresholds=THRESHOLDS)
    with pytest.raises(NotTrackedError, match="search index"):
        other.search("jpg")


def test_the_asynchronous_client_has_the_same(service, client):
    async def ask():
        async with AsyncClient(f"http://127.0.0.1:{service.port}", "cars") as other:
            assert await other.search("jpg") == client.search("jpg")
            assert (await other.to_frame()).equals(client.to_frame())
            assert str(await other.changes()) == str(client.changes())

    asyncio.run(ask())


@pytest.mark.parametrize("name", ["search", "changes", "to_frame", "clusters_frame"])
def test_the_parameters_are_those_of_the_store(name):
    def parameters(kind):
        found = inspect.signature(getattr(kind, name)).parameters.values()
        return [(each.name, each.default, each.kind) for each in found]

    assert parameters(Client) == parameters(Store)
