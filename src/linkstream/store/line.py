"""The line: calls of many threads, decided in order, committed together, answered after that.

One thread decides while another commits: what has come in the meantime goes into the next commit
as a whole. No call is answered before the commit that holds it has returned.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from linkstream.store.journal import Operation, Payloads, Rows


@dataclass(eq=False, slots=True)
class Ticket:
    """A call that waits for its answer.

    `alone`: it needs all that came before to be in the journal.
    """

    verb: str
    arguments: dict[str, Any]
    rows: Rows | None = None
    payloads: Payloads | None = None
    key: str | None = None
    digest: bytes | None = None
    alone: bool = False
    after: Ticket | None = None  # where that one was refused, so is this
    operation: Operation | None = None  # what there is to commit
    answer: Any = None
    error: BaseException | None = None
    taken: bool = False
    done: threading.Event = field(default_factory=threading.Event)


class Line:
    """Who comes first is decided first.

    `begin` may start to write a call, where nobody else does; `decide` says what there is to
    commit, or notes an error; `commit` makes a group durable; `fail` is told of what broke off in
    the middle.
    """

    def __init__(
        self,
        begin: Callable[[Ticket], None],
        decide: Callable[[Ticket], None],
        commit: Callable[[list[Ticket]], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._begin, self._decide = begin, decide
        self._commit, self._fail = commit, fail
        self._waiting: deque[Ticket] = deque()
        self._deciding = threading.Lock()
        self.committing = threading.Lock()

    def enter(self, ticket: Ticket) -> Ticket:
        """Take a place in the line."""
        self._waiting.append(ticket)
        return ticket

    def answer(self, ticket: Ticket) -> Any:
        """The answer to a call, once it is safe; whoever waits does the work."""
        while not ticket.taken:
            with self._deciding:
                group = [] if ticket.taken else self._next_group()
            if group:
                self._finish(group)
        ticket.done.wait()
        if ticket.error is not None:
            raise ticket.error
        return ticket.answer

    @contextmanager
    def standstill(self) -> Iterator[None]:
        """Nothing is being decided or committed, and all that was decided is committed."""
        with self._deciding, self.committing:
            yield

    def _next_group(self) -> list[Ticket]:
        """Decide those who wait; returns with the right to commit, which `_finish` gives back."""
        group: list[Ticket] = []
        held = False
        try:
            if self._waiting[0].alone:
                held = self.committing.acquire()
                self._take_one(group)
            else:
                held = self.committing.acquire(blocking=False)
                self._take_some(group, early=held)
                held = held or self.committing.acquire()
                self._take_some(group)  # who came while the last commit went on
        except BaseException as error:
            self._abandon(group, error)
            if held:
                self.committing.release()
            raise
        return group

    def _take_some(self, group: list[Ticket], *, early: bool = False) -> None:
        """All who wait, up to one who must be alone."""
        while self._waiting and not self._waiting[0].alone:
            self._take_one(group, early=early)

    def _take_one(self, group: list[Ticket], *, early: bool = False) -> None:
        ticket = self._waiting.popleft()
        group.append(ticket)
        ticket.taken = True
        if early:
            self._begin(ticket)
        self._decide(ticket)

    def _finish(self, group: list[Ticket]) -> None:
        try:
            self._commit(group)
        except BaseException as error:
            self._abandon(group, error)
            if not isinstance(error, Exception):
                raise
        finally:
            self.committing.release()
            for ticket in group:
                ticket.done.set()

    def _abandon(self, group: list[Ticket], error: BaseException) -> None:
        self._fail(error)
        for ticket in group:
            ticket.error = ticket.error or error
            ticket.done.set()
