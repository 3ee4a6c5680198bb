"""A service that answers without clustering, to measure HTTP, checks and threads alone.

Protocol, tokens, checks of bodies, limits and answers are those of the real service. Only the
writer of the store is replaced: it gives every vector cluster 0, and stores the vectors in a
SQLite file with group commit, or stores nothing.
"""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

from linkstream.service.sessions import Session, Sessions
from linkstream.store import file
from linkstream.store.write_requests import WriteRequest

REQUESTS_MAX = 64  # of one commit, as in the store


def answer(ticket: WriteRequest) -> None:
    """Answer 0 for all vectors."""
    rows = 0 if ticket.rows is None else len(ticket.rows)
    ticket.answer, ticket.first = np.zeros(rows, dtype=np.int64), 0
    ticket.finish()


class AtOnce(Sessions):
    """Answers at once on the event loop."""

    async def open_namespace(self, *words: Any, **options: Any) -> Session:
        """Open a namespace and replace its writer."""
        session = await super().open_namespace(*words, **options)
        self.replace_writer(session)
        return session

    def replace_writer(self, session: Session) -> None:
        """Replace the writer of the store."""
        session.store.handle.submit = answer  # type: ignore[method-assign]


class ByThread(AtOnce):
    """Hands requests to a thread and back, as the store does."""

    def replace_writer(self, session: Session) -> None:
        """Start one thread per namespace."""
        queue: SimpleQueue[WriteRequest] = SimpleQueue()

        def work() -> None:
            while True:
                answer(queue.get())

        threading.Thread(target=work, daemon=True).start()
        session.store.handle.submit = queue.put  # type: ignore[method-assign]


class Stored(AtOnce):
    """Hands requests to a thread that stores vectors durably, with group commit."""

    def replace_writer(self, session: Session) -> None:
        """Start one thread and one file per namespace."""
        queue: SimpleQueue[WriteRequest] = SimpleQueue()
        path = session.store.path.with_suffix(".dry")
        threading.Thread(target=_store, args=(queue, path), daemon=True).start()
        session.store.handle.submit = queue.put  # type: ignore[method-assign]


def _store(queue: SimpleQueue[WriteRequest], path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA page_size = {file.PAGE}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")  # as in the store
    connection.execute("CREATE TABLE vectors (number INTEGER PRIMARY KEY, body BLOB)")
    while True:
        group = [queue.get()]
        while len(group) < REQUESTS_MAX and not queue.empty():
            group.append(queue.get())
        connection.execute("BEGIN IMMEDIATE")
        bodies = [(ticket.rows,) for ticket in group]
        connection.executemany("INSERT INTO vectors (body) VALUES (?)", bodies)
        connection.execute("COMMIT")
        for ticket in group:
            answer(ticket)


WAYS = {"thread": ByThread, "at once": AtOnce, "stored": Stored}
