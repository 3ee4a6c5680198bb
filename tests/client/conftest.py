"""Waiting that takes no time, and a service that runs."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from client.talking import BOTH
from linkstream.service.running import background
from linkstream.service.settings import Settings

_numbers = itertools.count()


@pytest.fixture
def waits(monkeypatch):
    """The seconds that clients wait between tries; a clock of its own goes on by as much."""
    told = []
    clock = SimpleNamespace(now=1000.0)

    def sleep(seconds):
        told.append(seconds)
        clock.now += seconds

    async def asleep(seconds):
        sleep(seconds)

    monkeypatch.setattr("linkstream.client.blocking.time", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr("linkstream.client.awaiting.anyio", SimpleNamespace(sleep=asleep))
    clock_of = SimpleNamespace(monotonic=lambda: clock.now)
    monkeypatch.setattr("linkstream.client.retrying.time", clock_of)
    return told


@pytest.fixture(params=BOTH, ids=lambda kind: kind.__name__.lower())
def talk(request):
    """How to make either client."""
    return request.param


@pytest.fixture(scope="session")
def service(tmp_path_factory):
    """The address of a service in a thread, without tokens."""
    with background(Settings(data=tmp_path_factory.mktemp("service") / "data", port=0)) as url:
        yield url


@pytest.fixture
def name():
    """The name of a namespace that nobody else uses."""
    return f"n{next(_numbers)}"
