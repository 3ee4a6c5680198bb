"""The desk: where calls are decided in order, written, and answered; the clerk alone works here."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from linkstream.errors import LinkstreamError, StoreClosedError, StoreError
from linkstream.store import file, keys
from linkstream.store.clerk import Call, Errand, Queues, Ticket
from linkstream.store.model import Model
from linkstream.store.pen import LARGE, Pen

_IN_FLIGHT = 2  # commits under way, at most
_TOGETHER = 4096  # vectors that are decided at once, of several calls
_PER_OPERATION = 5e-5  # seconds that deciding an operation again takes besides

T = TypeVar("T")


class Desk:
    """The model, and the pen that writes down what becomes of it.

    Attributes:
        failure: why nothing is taken any more; None while all is well.
        worth: seconds that deciding again what came after the last snapshot would take.
        written: bytes written since the log was last moved into the file.
        unsaved: bytes written since the last snapshot.
    """

    def __init__(
        self,
        path: Path,
        load: Callable[[], Model],
        writer: sqlite3.Connection | None,
        due: Callable[[], None],
    ) -> None:
        self._path, self._load, self._due = path, load, due
        self.model = load()
        self.failure: BaseException | None = None
        self.worth = self.written = self.unsaved = 0.0
        self._pen = None if writer is None else Pen(writer)
        self._flight: deque[Future[None]] = deque()
        self._identity = file.identity(path)
        self._stale = False  # the model holds what was not acknowledged
        self._pending: dict[str, Ticket] = {}  # keys of what is decided and not yet committed

    def serve(self, calls: list[Call], queues: Queues) -> None:
        """Answer calls in order; those that can be are committed together.

        While others wait, the pen commits large ones and the next are taken up.
        """
        group: list[Ticket] = []
        for some in runs(calls):
            call = some[0]
            group = self._let_pass(group, queues)
            if isinstance(call, Ticket) and not call.alone:
                self._take_all(some, group)
                continue
            self._commit(group)
            group = []
            if isinstance(call, Errand):
                call.run()
            elif isinstance(call, Ticket):
                self._commit(self._take(call, []))
        if self._pen is not None and queues.waiting() and self._pen.is_long(group):
            self._land(_IN_FLIGHT - 1)
            self._flight.append(self._pen.hand(lambda: self._make_safe(group)))
        else:
            self._commit(group)

    def _let_pass(self, group: list[Ticket], queues: Queues) -> list[Ticket]:
        """See to errands that come first; what is left of a group that has begun."""
        errand = queues.first()
        while errand is not None:
            self._commit(group)
            group = []
            errand.run()
            errand = queues.first()
        return group

    def _commit(self, group: list[Ticket]) -> None:
        """Make a group safe, and all before it."""
        self._land(0)
        self._make_safe(group)

    def _land(self, left: int) -> None:
        """Wait for commits under way, but for so many."""
        while len(self._flight) > left:
            self._flight.popleft().result()

    def ask(self, work: Callable[[Model], T]) -> T:
        """Ask the model something; it shows what was acknowledged, whatever has failed."""
        if self._stale:
            self.model = self._load()
            self._stale = False
        with file.guarded(self._path):
            return work(self.model)

    def fail(self, error: BaseException) -> None:
        """The model has gone on and the file has not: only opening it again mends that."""
        self.failure = self.failure or error
        self._stale = True

    def check_well(self) -> None:
        """StoreClosedError after a failure."""
        if self.failure is not None:
            raise StoreClosedError(
                f"{self._path}: a write failed ({self.failure!r:.200})",
                expected="a disk that takes what is written",
                remedy="It can only be read now. Open it again: what was acknowledged is there.",
            )

    def close(self) -> None:
        """Nothing more is written."""
        self._land(0)
        if self._pen is not None:
            self._pen.close()

    # How a call is done

    def _take_all(self, run: list[Ticket], group: list[Ticket]) -> None:
        """Decide calls, at once where that is the same."""
        if len(run) > 1 and self.failure is None and self._decided_together(run):
            group.extend(run)
            return
        for ticket in run:
            self._take(ticket, group)

    def _decided_together(self, run: list[Ticket]) -> bool:
        """Whether calls were decided at once; where one is refused, nothing has changed."""
        if any(self._is_known(ticket) for ticket in run):
            return False
        start = time.perf_counter()
        try:
            self.model.decide_together(run)
        except BaseException as error:
            if isinstance(error, (LinkstreamError, ValueError)) and not self.model.moved:
                return False  # each is to be told its own
            self.fail(error)
            for ticket in run:
                ticket.error = error
        self._pending |= {ticket.key: ticket for ticket in run if ticket.key is not None}
        self.worth += time.perf_counter() - start + _PER_OPERATION * len(run)
        return True

    def _is_known(self, ticket: Ticket) -> bool:
        key = ticket.key
        return key is not None and (key in self._pending or bool(self.model.index.under(key)))

    def _take(self, ticket: Ticket, group: list[Ticket]) -> list[Ticket]:
        """Decide a call: what there is to commit of it, or why it is refused."""
        group.append(ticket)
        start = time.perf_counter()
        try:
            self.check_well()
            before, ticket.after = ticket.after, None
            if before is not None and before.error is not None:
                raise before.error
            if not keys.answered(ticket, self.model, self._pending):
                self._decide(ticket)
        except StoreError as error:  # the journal could not be read: how far it came is not known
            self.fail(error)
            ticket.error = error
        except LinkstreamError as error:
            ticket.error = error
            if self.model.moved:  # a refusal comes before any change; this one did not
                self.fail(error)
        except BaseException as error:
            self.fail(error)
            ticket.error = error
        self.worth += time.perf_counter() - start + _PER_OPERATION
        return group

    def _decide(self, ticket: Ticket) -> None:
        assert self._pen is not None, "a reader takes no tickets"
        self._pen.ahead(ticket, self.model.next_piece)
        self.model.decide(ticket)
        if ticket.key is not None:
            self._pending[ticket.key] = ticket

    def _make_safe(self, group: list[Ticket]) -> None:
        """Write what was decided; only then is it answered."""
        try:
            self._write(group)
        except BaseException as error:
            self.fail(error)
            for ticket in group:
                ticket.error = ticket.error or error
        for ticket in group:
            if ticket.key is not None and self._pending.get(ticket.key) is ticket:
                del self._pending[ticket.key]
            ticket.rows = ticket.payloads = ticket.operation = ticket.ahead = None  # free them
            ticket.finish()

    def _write(self, group: list[Ticket]) -> None:
        if self._pen is None or not group:
            return
        if self._stale:  # something before failed: what was decided after it stands on nothing,
            self._pen.drop(group)  # and what was found under way may not have been written
            self.check_well()
        if all(ticket.operation is None for ticket in group):
            self._pen.drop(group)
            return
        try:
            file.check_same(self._path, self._identity)
            size = self._pen.commit(group)
        except (sqlite3.Error, StoreError) as error:
            self._pen.drop(group)
            self.fail(error)
            self.check_well()
        self.written += size
        self.unsaved += size
        with contextlib.suppress(Exception):  # what is due can be done later; this is safe
            self._due()


def runs(calls: list[Call]) -> Iterator[list[Any]]:
    """Calls in order; those that only bring vectors, one after the other, together."""
    run: list[Ticket] = []
    for call in calls:
        if not isinstance(call, Ticket) or not _is_plain(call):
            if run:
                yield run
            run = []
            yield [call]
            continue
        keys = {ticket.key for ticket in run} - {None}
        if call.key in keys or sum(map(_rows, run)) + _rows(call) > _TOGETHER:
            yield run
            run = []
        run.append(call)
    if run:
        yield run


def _is_plain(ticket: Ticket) -> bool:
    """Whether a call brings some vectors of full weight, says no more, and hangs on no other."""
    if ticket.verb not in ("add", "add_many") or ticket.rows is None or ticket.arguments:
        return False
    return ticket.check is None and ticket.after is None and ticket.rows.nbytes < LARGE


def _rows(ticket: Ticket) -> int:
    return 0 if ticket.rows is None else len(ticket.rows)
