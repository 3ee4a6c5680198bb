"""A service that answers without clustering: what is left is HTTP, checks and hand-over.

Everything else is the real thing: the same protocol, guard, tokens, bodies read and judged, bounds,
answers. Only the store's writer is another: it gives every vector the cluster 0, and keeps the
vectors in a file of SQLite's with group commit, or keeps nothing.
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

MOST = 64  # requests of one commit, as the store's


def answer(ticket: WriteRequest) -> None:
    """Say 0 of all vectors."""
    rows = 0 if ticket.rows is None else len(ticket.rows)
    ticket.answer, ticket.first = np.zeros(rows, dtype=np.int64), 0
    ticket.finish()


class AtOnce(Sessions):
    """Answers on the event loop, before anything else happens."""

    async def open_namespace(self, *words: Any, **options: Any) -> Session:
        """Open a namespace, and replace the writer of its store."""
        session = await super().open_namespace(*words, **options)
        self.replace_writer(session)
        return session

    def replace_writer(self, session: Session) -> None:
        """Let something else answer for the store."""
        session.store.handle.submit = answer  # type: ignore[method-assign]


class ByThread(AtOnce):
    """Hands over to a thread, as to the store's, and back."""

    def replace_writer(self, session: Session) -> None:
        """One thread for a namespace."""
        queue: SimpleQueue[WriteRequest] = SimpleQueue()

        def work() -> None:
            while True:
                answer(queue.get())

        threading.Thread(target=work, daemon=True).start()
        session.store.handle.submit = queue.put  # type: ignore[method-assign]


class Stored(AtOnce):
    """Hands over to a thread that makes vectors safe, those that wait together in one commit."""

    def replace_writer(self, session: Session) -> None:
        """One thread and one file for a namespace."""
        queue: SimpleQueue[WriteRequest] = SimpleQueue()
        path = session.store.path.with_suffix(".dry")
        threading.Thread(target=_store, args=(queue, path), daemon=True).start()
        session.store.handle.submit = queue.put  # type: ignore[method-assign]


def _store(queue: SimpleQueue[WriteRequest], path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA page_size = {file.PAGE}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")  # as the store's
    connection.execute("CREATE TABLE vectors (number INTEGER PRIMARY KEY, body BLOB)")
    while True:
        group = [queue.get()]
        while len(group) < MOST and not queue.empty():
            group.append(queue.get())
        connection.execute("BEGIN IMMEDIATE")
        bodies = [(ticket.rows,) for ticket in group]
        connection.executemany("INSERT INTO vectors (body) VALUES (?)", bodies)
        connection.execute("COMMIT")
        for ticket in group:
            answer(ticket)


WAYS = {"thread": ByThread, "at once": AtOnce, "stored": Stored}
