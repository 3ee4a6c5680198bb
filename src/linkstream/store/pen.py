"""The pen: writes what was decided, in one transaction, and begins before the deciding ends.

Vectors are what takes time to write, and what they are is known before what they mean: the pen's
own thread writes them while they are being decided. It also commits, where others wait, while the
next are being decided.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from linkstream.store import file, journal
from linkstream.store.clerk import Ticket
from linkstream.store.file import PAGE

LARGE = 1 << 18  # bytes: less is written sooner than a thread is woken


class Pen:
    """The only hand that writes. What it is handed it does in that order."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._hand: ThreadPoolExecutor | None = None
        self._is_open = False  # a transaction that this writer began

    def hand(self, work: Callable[[], None]) -> Future[None]:
        """Have something done by the pen's own thread."""
        if self._hand is None:
            self._hand = ThreadPoolExecutor(1, thread_name_prefix="linkstream-pen")
        return self._hand.submit(work)

    def is_long(self, group: list[Ticket]) -> bool:
        """Whether writing a group takes long enough to go on meanwhile."""
        sizes = (0 if ticket.rows is None else ticket.rows.nbytes for ticket in group)
        return sum(sizes) >= LARGE

    def ahead(self, ticket: Ticket, first_piece: int) -> None:
        """Begin to write vectors that are about to be decided."""
        if ticket.rows is not None and ticket.rows.nbytes >= LARGE:
            ticket.ahead = self.hand(lambda: self._begin(ticket, first_piece))

    def _begin(self, ticket: Ticket, first_piece: int) -> None:
        assert ticket.rows is not None
        self._open()
        lot = journal.Lot(first_piece, ticket.rows, ticket.crcs)
        journal.write_vectors(self._connection, lot)

    def commit(self, group: list[Ticket]) -> int:
        """Write what was decided of a group, all of it or nothing; how many bytes, about."""
        decided = [ticket for ticket in group if ticket.operation is not None]
        try:
            _catch_up(group)
            self._open()
            size = self._write(decided)
            self._erase_refused(group, decided[-1])
            self._connection.execute("COMMIT")
            self._is_open = False
        except BaseException:
            self.drop(group)
            raise
        return size

    def drop(self, group: list[Ticket]) -> None:
        """Leave the file as it was before a group."""
        with contextlib.suppress(BaseException):  # the first error is the one to tell
            _catch_up(group)
        self._is_open = False
        if self._connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    def _open(self) -> None:
        """Begin a transaction of this writer's own, unless it has begun one."""
        if not (self._is_open and self._connection.in_transaction):
            file.begin(self._connection)
        self._is_open = True

    def close(self) -> None:
        """No more is written."""
        if self._hand is not None:
            self._hand.shutdown()

    def _erase_refused(self, group: list[Ticket], last: Ticket) -> None:
        """What was written ahead and then refused lies after all that was not."""
        if any(ticket.ahead is not None and ticket.operation is None for ticket in group):
            assert last.operation is not None
            end = last.operation.first_piece + last.operation.n_pieces
            self._connection.execute("DELETE FROM vectors WHERE piece >= ?", (end,))

    def _write(self, decided: list[Ticket]) -> int:
        """Write a group, table by table; how many bytes, about."""
        operations = [ticket.operation for ticket in decided if ticket.operation is not None]
        lots = [
            journal.Lot(operation.first_piece, ticket.rows, ticket.crcs)
            for ticket, operation in zip(decided, operations, strict=True)
            if ticket.rows is not None and ticket.ahead is None
        ]
        journal.write_vectors(self._connection, *lots)
        for ticket, operation in zip(decided, operations, strict=True):
            if ticket.payloads is not None:
                journal.write_payloads(self._connection, operation.number, ticket.payloads)
        journal.write(self._connection, *operations)
        vectors = sum(ticket.rows.nbytes for ticket in decided if ticket.rows is not None)
        events = sum(operation.events.nbytes for operation in operations)
        return 2 * PAGE * len(decided) + vectors + events


def _catch_up(group: list[Ticket]) -> None:
    for ticket in group:
        if ticket.ahead is not None:
            ticket.ahead.result()
