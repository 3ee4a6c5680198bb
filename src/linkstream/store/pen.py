"""The pen: writes what was decided, in one transaction, and begins before the deciding ends.

Vectors are what takes time to write, and what they are is known before what they mean: a thread
of the pen's own writes them while they are being decided.
"""

from __future__ import annotations

import contextlib
import sqlite3
from concurrent.futures import Future, ThreadPoolExecutor

from linkstream.store import journal
from linkstream.store.clerk import Ticket
from linkstream.store.file import PAGE

_WORTH_IT = 1 << 16  # bytes: less is written sooner than a thread is woken


class Pen:
    """The only hand that writes; whoever uses it has the right to commit."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._hand: ThreadPoolExecutor | None = None
        self._ahead: list[tuple[Ticket, Future[None]]] = []

    def ahead(self, ticket: Ticket, first_piece: int) -> None:
        """Begin to write vectors that are about to be decided."""
        if ticket.rows is None or ticket.rows.nbytes < _WORTH_IT:
            return
        if self._hand is None:
            self._hand = ThreadPoolExecutor(1, thread_name_prefix="linkstream-pen")
        self._ahead.append((ticket, self._hand.submit(self._begin, ticket, first_piece)))

    def _begin(self, ticket: Ticket, first_piece: int) -> None:
        assert ticket.rows is not None
        if not self.connection.in_transaction:
            self.connection.execute("BEGIN IMMEDIATE")
        journal.write_vectors(self.connection, first_piece, ticket.rows)

    def commit(self, tickets: list[Ticket]) -> int:
        """Write what was decided, all of it or nothing; how many bytes, about."""
        try:
            self._catch_up()
            if not self.connection.in_transaction:
                self.connection.execute("BEGIN IMMEDIATE")
            size = sum(self._write(ticket) for ticket in tickets)
            self._erase_refused(tickets)
            self.connection.execute("COMMIT")
        except BaseException:
            self.drop()
            raise
        self._ahead.clear()
        return size

    def drop(self) -> None:
        """Leave the file as it was."""
        with contextlib.suppress(BaseException):  # the first error is the one to tell
            self._catch_up()
        self._ahead.clear()
        if self.connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")

    def close(self) -> None:
        """No more is written."""
        if self._hand is not None:
            self._hand.shutdown()

    def _catch_up(self) -> None:
        for _, written in self._ahead:
            written.result()

    def _erase_refused(self, tickets: list[Ticket]) -> None:
        """What was written ahead and then refused lies after all that was not."""
        last = tickets[-1].operation
        if last is not None and any(ticket.operation is None for ticket, _ in self._ahead):
            end = last.first_piece + last.n_pieces
            self.connection.execute("DELETE FROM vectors WHERE piece >= ?", (end,))

    def _write(self, ticket: Ticket) -> int:
        operation, size = ticket.operation, 2 * PAGE
        assert operation is not None
        if ticket.rows is not None:
            if all(other is not ticket for other, _ in self._ahead):
                journal.write_vectors(self.connection, operation.first_piece, ticket.rows)
            size += ticket.rows.nbytes
        if ticket.payloads is not None:
            journal.write_payloads(self.connection, operation.number, ticket.payloads)
        journal.write(self.connection, operation)
        return size + operation.events.nbytes
