"""The log of events an engine keeps: all of them, or the newest when vectors are not tracked."""

from __future__ import annotations

from collections import deque
from itertools import islice

import numpy as np
import numpy.typing as npt

from linkstream.engine.events import WIDTH
from linkstream.errors import NotTrackedError

UNTRACKED_LIMIT = 100_000


class EventLog:
    """Event rows in order; the sequence number of a row is its place since the beginning."""

    def __init__(self, limit: int | None, n_events: int = 0) -> None:
        self._rows: deque[tuple[int, ...]] = deque()
        self._limit = limit
        self._before: int | None = None  # events before the open change, if there is one
        self.n_events = n_events

    @classmethod
    def keeping(
        cls, track_vectors: bool, n_events: int = 0, rows: npt.NDArray[np.int64] | None = None
    ) -> EventLog:
        """The log an engine with this setting has, going on from rows already kept."""
        log = cls(None if track_vectors else UNTRACKED_LIMIT, n_events)
        if rows is not None:
            log._rows.extend(tuple(row) for row in rows.tolist())
            log._drop_old()
        return log

    @property
    def oldest(self) -> int:
        """The sequence number of the oldest row kept."""
        kept = len(self._rows) if self._limit is None else min(len(self._rows), self._limit)
        return self.n_events - kept

    def append(self, row: tuple[int, ...]) -> None:
        """Write one event."""
        self._rows.append(row + (-1,) * (WIDTH - len(row)))
        self.n_events += 1
        if self._before is None:
            self._drop_old()

    def begin(self) -> None:
        """Begin a change; until it ends no event is dropped."""
        self._before = self.n_events

    def commit(self) -> None:
        """Keep what was written since `begin`."""
        self._before = None
        self._drop_old()

    def rollback(self) -> None:
        """Take back what was written since `begin`."""
        assert self._before is not None, "a change was begun"
        first = self.n_events - len(self._rows)
        while len(self._rows) > self._before - first:
            self._rows.pop()
        self.n_events, self._before = self._before, None

    def _drop_old(self) -> None:
        while self._limit is not None and len(self._rows) > self._limit:
            self._rows.popleft()

    def since(self, sequence: int) -> tuple[int, npt.NDArray[np.int64]]:
        """Rows from a sequence number on, and the number of the first of them."""
        refuse_forgotten(sequence, self.oldest)
        kept = islice(self._rows, sequence - (self.n_events - len(self._rows)), None)
        return sequence, np.array(list(kept), dtype=np.int64).reshape(-1, WIDTH)

    def rows(self) -> npt.NDArray[np.int64]:
        """All rows kept."""
        return self.since(self.oldest)[1]


def refuse_forgotten(sequence: int, oldest: int) -> None:
    """An error where events are asked for that are no longer kept."""
    if sequence < oldest:
        raise NotTrackedError(
            f"events asked for from {sequence} on",
            expected=f"{oldest} or later: older ones are no longer kept",
            remedy="Read events more often, or use track_vectors=True to keep them all.",
        )
