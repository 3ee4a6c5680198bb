"""A fake clock for the waits of clients, and a running service."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from client.fakes import BOTH
from linkstream.service.running import background
from linkstream.service.settings import Settings

_numbers = itertools.count()


@pytest.fixture
def waits(monkeypatch):
    """Collect the seconds that clients wait between attempts; a fake clock advances by them."""
    told = []
    clock = SimpleNamespace(now=1000.0)

    def sleep(seconds):
        told.append(seconds)
        clock.now += seconds

    async def asleep(seconds):
        sleep(seconds)

    monkeypatch.setattr("linkstream.client.clients.time", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr("linkstream.client.clients.anyio", SimpleNamespace(sleep=asleep))
    clock_of = SimpleNamespace(monotonic=lambda: clock.now)
    monkeypatch.setattr("linkstream.client.endpoint.time", clock_of)
    return told


@pytest.fixture(params=BOTH, ids=lambda kind: kind.__name__.lower())
def talk(request):
    """Return each of the two kinds of client."""
    return request.param


@pytest.fixture(scope="session")
def service(tmp_path_factory):
    """Return the address of a service in a thread, without tokens."""
    with background(Settings(data=tmp_path_factory.mktemp("service") / "data", port=0)) as url:
        yield url


@pytest.fixture
def name():
    """Return the name of an unused namespace."""
    return f"n{next(_numbers)}"
