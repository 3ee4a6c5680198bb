"""The event log of an engine, and the counters that number vectors, subclusters and clusters.

C++ twins: log.hpp and journal.hpp. The log keeps all events, or only the newest if vectors are not
tracked.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from linkstream.engine.events import WIDTH
from linkstream.errors import NotTrackedError

if TYPE_CHECKING:
    from linkstream.engine.state import State

UNTRACKED_LIMIT = 100_000
GIVEN = "next_subcluster", "next_cluster", "free_subcluster", "free_cluster"
COUNTERS = "n_vectors", "newest", *GIVEN


class EventLog:
    """Event rows in order; the sequence number of an event is the number of events before it."""

    def __init__(self, limit: int | None, n_events: int = 0) -> None:
        self._rows: deque[tuple[int, ...]] = deque()
        self._limit = limit
        self._before: int | None = None  # number of events before the open change, if there is one
        self.n_events = n_events

    @classmethod
    def keeping(
        cls, track_vectors: bool, n_events: int = 0, rows: npt.NDArray[np.int64] | None = None
    ) -> EventLog:
        """Return the log of an engine with this setting that continues after the given rows."""
        log = cls(None if track_vectors else UNTRACKED_LIMIT, n_events)
        if rows is not None:
            log._rows.extend(tuple(row) for row in rows.tolist())
            log._drop_old()
        return log

    @property
    def oldest(self) -> int:
        """Return the sequence number of the oldest event that can be read.

        All events of an open change can be read.
        """
        if self._limit is None:
            return self.n_events - len(self._rows)
        ours = 0 if self._before is None else self.n_events - self._before
        return self.n_events - min(len(self._rows), max(self._limit, ours))

    @property
    def has_new(self) -> bool:
        """Whether the open change has appended an event."""
        return self._before is not None and self.n_events != self._before

    def append(self, row: tuple[int, ...]) -> None:
        """Append one event."""
        self._rows.append(row + (-1,) * (WIDTH - len(row)))
        self.n_events += 1
        if self._before is None:
            self._drop_old()

    def begin(self) -> None:
        """Begin a change; no event is dropped until it ends."""
        self._before = self.n_events

    def commit(self) -> None:
        """Keep the events since `begin`."""
        self._before = None
        self._drop_old()

    def rollback(self) -> None:
        """Remove the events since `begin`."""
        assert self._before is not None, "a change was begun"
        first = self.n_events - len(self._rows)
        while len(self._rows) > self._before - first:
            self._rows.pop()
        self.n_events, self._before = self._before, None

    def _drop_old(self) -> None:
        while self._limit is not None and len(self._rows) > self._limit:
            self._rows.popleft()

    def since(self, sequence: int) -> tuple[int, npt.NDArray[np.int64]]:
        """Return the rows from a sequence number on, and the number of the first of them."""
        refuse_forgotten(sequence, self.oldest)
        kept = islice(self._rows, sequence - (self.n_events - len(self._rows)), None)
        return sequence, np.array(list(kept), dtype=np.int64).reshape(-1, WIDTH)

    def rows(self) -> npt.NDArray[np.int64]:
        """Return all rows that are kept."""
        return self.since(self.oldest)[1]


@dataclass(slots=True)
class Journal:
    """The event log and the counters, which only rise."""

    log: EventLog
    n_vectors: int = 0
    newest: int = 0  # the vector being added, or the newest: the `vector` of events
    next_subcluster: int = 0  # subclusters created so far
    next_cluster: int = 0
    free_subcluster: int = 0  # the next numbers to give
    free_cluster: int = 0
    _before: list[int] = field(default_factory=list)  # the counters before the open change

    def read(self, state: State) -> None:
        """Take over the log and the counters of a state."""
        self.n_vectors, self.newest = state.n_vectors, max(state.n_vectors - 1, 0)
        for name in GIVEN:
            setattr(self, name, getattr(state, name))
        self.log = EventLog.keeping(state.track_vectors, state.n_events, state.events)

    def columns(self) -> dict[str, Any]:
        """Return the log and the counters as fields of a state."""
        given = {name: getattr(self, name) for name in GIVEN}
        return {"n_events": self.log.n_events, "events": self.log.rows(), **given}

    def begin(self) -> None:
        """Begin a change."""
        self._before = [getattr(self, name) for name in COUNTERS]
        self.log.begin()

    @property
    def has_events(self) -> bool:
        """Whether the open change has recorded an event."""
        return self.log.has_new

    @property
    def before(self) -> list[int]:
        """The counters before the open change, which `take_back` needs."""
        return self._before

    def commit(self) -> None:
        """Keep the change."""
        self.log.commit()

    def take_back(self, before: list[int]) -> None:
        """Restore the counters before a change, but not its events nor the numbers it gave."""
        for name, value in zip(COUNTERS, before, strict=True):
            if name not in ("free_subcluster", "free_cluster"):
                setattr(self, name, value)

    def rollback(self) -> None:
        """Restore the counters and the log as they were at `begin`."""
        for name, value in zip(COUNTERS, self._before, strict=True):
            setattr(self, name, value)
        self.log.rollback()

    def new_subcluster(self) -> int:
        """Return the number of the next subcluster and mark it as given."""
        number = self.free_subcluster
        self.next_subcluster = self.free_subcluster = number + 1
        return number

    def new_cluster(self) -> int:
        """Return the next cluster ID and mark it as given."""
        cluster = self.free_cluster
        self.next_cluster = self.free_cluster = cluster + 1
        return cluster

    def record(self, code: int, *numbers: int) -> None:
        """Append an event of the newest vector."""
        self.log.append((code, self.newest, *numbers))


def refuse_forgotten(sequence: int, oldest: int) -> None:
    """Raise NotTrackedError if events from `sequence` on are no longer kept."""
    if sequence < oldest:
        raise NotTrackedError(
            f"events asked for from {sequence} on",
            expected=f"{oldest} or later: older ones are no longer kept",
            remedy="Read events more often, or use track_vectors=True to keep them all.",
        )
