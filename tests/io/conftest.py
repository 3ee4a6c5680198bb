"""Fixtures: a PostgreSQL server, test vectors, and a Qdrant without disk syncs."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(scope="session")
def server():
    import psycopg
    from tests.io.postgres_server import postgres

    with postgres() as running, psycopg.connect(running.address(), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        yield running


@pytest.fixture
def db(server):
    """Return a connection to a database without tables."""
    import psycopg
    from psycopg import sql

    with psycopg.connect(server.address(), autocommit=True) as connection:
        tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        for (table,) in connection.execute(tables).fetchall():
            connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(table)))
        yield connection


@pytest.fixture(scope="session")
def faces():
    """Return 2,500 vectors of 40 people."""
    rng = np.random.default_rng(5)
    people = rng.standard_normal((40, 16))
    noise = rng.standard_normal((2500, 16)) * 0.25
    return (people[rng.integers(0, 40, 2500)] + noise).astype(np.float32)


@pytest.fixture
def quick_qdrant(monkeypatch):
    """Make Qdrant's local mode not wait for the disk at each point."""
    from qdrant_client.local.persistence import CollectionPersistence

    begin = CollectionPersistence.__init__

    def without_waiting(self, *arguments, **options):
        begin(self, *arguments, **options)
        self.storage.execute("PRAGMA synchronous = OFF")

    monkeypatch.setattr(CollectionPersistence, "__init__", without_waiting)
