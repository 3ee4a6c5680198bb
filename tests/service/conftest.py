"""Fixtures: a service for each file, and a new namespace for each test."""

from __future__ import annotations

import itertools

import pytest

_numbers = itertools.count()


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """Run a service in a thread, without tokens, with a folder for pictures."""
    from service.server import ThreadService

    folder = tmp_path_factory.mktemp("service")
    (folder / "images").mkdir()
    with ThreadService(folder / "data", images=folder / "images") as held:
        yield held


@pytest.fixture
def namespace(service):
    """Return the path of a new namespace."""
    return service.namespace(f"n{next(_numbers)}")


@pytest.fixture(scope="session")
def nest():
    """Return a process that forks services."""
    from service.server import ServiceForker

    with ServiceForker() as held:
        yield held
