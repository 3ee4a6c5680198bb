"""A service that answers without clustering: what is left is HTTP, checks and hand-over.

Everything else is the real thing: the same protocol, guard, tokens, bodies read and judged, bounds,
answers. Only the store's writer is another: it gives every vector the cluster 0 and keeps nothing.
"""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import Any

import numpy as np

from linkstream.service.sessions import Session, Sessions
from linkstream.store.clerk import Ticket


def answer(ticket: Ticket) -> None:
    """Say 0 of all vectors."""
    rows = 0 if ticket.rows is None else len(ticket.rows)
    ticket.answer, ticket.first = np.zeros(rows, dtype=np.int64), 0
    ticket.finish()


class AtOnce(Sessions):
    """Answers on the event loop, before anything else happens."""

    async def _open(self, *words: Any, **options: Any) -> Session:
        session = await super()._open(*words, **options)
        self.replace_writer(session)
        return session

    def replace_writer(self, session: Session) -> None:
        """Let something else answer for the store."""
        session.store.send = answer  # type: ignore[method-assign]


class ByThread(AtOnce):
    """Hands over to a thread, as to the store's, and back."""

    def replace_writer(self, session: Session) -> None:
        """One thread for a namespace."""
        queue: SimpleQueue[Ticket] = SimpleQueue()

        def work() -> None:
            while True:
                answer(queue.get())

        threading.Thread(target=work, daemon=True).start()
        session.store.send = queue.put  # type: ignore[method-assign]


WAYS = {"thread": ByThread, "at once": AtOnce}
