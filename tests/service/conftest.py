"""Services for the tests: one of each kind for a file, and a fresh namespace for each test."""

from __future__ import annotations

import itertools

import pytest

_numbers = itertools.count()


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service in a thread, without tokens; with a folder for images beside its data."""
    from service.server import ThreadService

    folder = tmp_path_factory.mktemp("service")
    (folder / "images").mkdir()
    with ThreadService(folder / "data", images=folder / "images") as held:
        yield held


@pytest.fixture
def namespace(service):
    """The path of a namespace that nobody else uses."""
    return service.namespace(f"n{next(_numbers)}")


@pytest.fixture(scope="session")
def nest():
    """Forks services that can be killed."""
    from service.server import Nest

    with Nest() as held:
        yield held
