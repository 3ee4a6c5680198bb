"""The timeline: which events of the log still stand, and where each change began.

The log only grows. An `undone` event says that all from a sequence number on no longer counts;
what stands is the log without such stretches.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from linkstream.engine import events
from linkstream.engine.events import Event, Undone
from linkstream.errors import UndoError
from linkstream.identity.ledger import Rows

# What a person does; all up to the next of these, or the next vector, is one change.
_DEEDS = (
    events.SAME,
    events.DIFFERENT,
    events.RELOCATED,
    events.DROPPED,
    events.NAMED,
    events.IGNORED,
    events.GROUPED,
    events.ENROLLED,
    events.ABSORBED,
)
_ARRIVALS = (events.CREATED, events.JOINED, events.LINKED)
_BLOCKS = (events.GROUPED, events.ENROLLED, events.ABSORBED)  # several vectors, one change


@dataclass(frozen=True, slots=True)
class Timeline:
    """The rows that stand, each with its sequence number."""

    rows: Rows
    sequences: Rows

    @classmethod
    def of(cls, log: Rows, first_sequence: int) -> Timeline:
        """What stands of a log, whose first row has the sequence number given."""
        standing: list[tuple[int, int]] = []  # stretches of sequence numbers, first and end
        start = 0
        for place in np.flatnonzero(log[:, 0] == events.UNDONE).tolist():
            standing.append((start, place))
            to, start = int(log[place, 2]) - first_sequence, place + 1
            standing = [(first, min(end, to)) for first, end in standing if first < to]
        standing.append((start, len(log)))
        sequences = np.concatenate([np.arange(first, end) for first, end in standing])
        return cls(log[sequences], sequences + first_sequence)

    def until(self, n: int) -> Timeline:
        """The first so many of what stands."""
        return Timeline(self.rows[:n], self.sequences[:n])

    def before(self, to: int | None) -> int:
        """How many of the rows are left when the last change, or all from `to` on, is undone."""
        if not len(self.rows):
            raise UndoError(
                "undo() where there is nothing to undo",
                expected="a vector or a change that still stands",
                remedy="Undo goes back to the empty clusterer and no further.",
            )
        if to is None:
            return self._start(len(self.rows) - 1)
        place = int(np.searchsorted(self.sequences, to))
        if place == len(self.rows) or self.sequences[place] != to:
            raise UndoError(
                f"undo(to={to})",
                expected=f"the sequence number of an event that stands, up to {self.sequences[-1]}",
                remedy="events() shows them; what an undo took back cannot be undone again.",
            )
        return self._start(place)

    def _start(self, place: int) -> int:
        """Where the change began that the event at a place is part of."""
        if self.rows[place, 0] == events.WEIGHED:  # its vector is the next event
            place += 1
        while not self._begins(place):
            place -= 1
        block = place - 1
        while block >= 0 and self.rows[block, 0] not in _BLOCKS:
            block -= 1
        if self.rows[place, 0] in _ARRIVALS:
            if block >= 0 and self._arrivals(block, place) <= self.rows[block, 3]:
                return block
            if place and self.rows[place - 1, 0] == events.WEIGHED:
                return place - 1
        return place

    def _begins(self, place: int) -> bool:
        code = int(self.rows[place, 0])
        if code == events.SETTLED:
            return bool(self.rows[place, 4])  # asked for
        if code == events.RETRACTED:
            return bool(self.rows[place, 4])  # asked for
        if code == events.FORGOTTEN:
            return not self.rows[place, 3]  # a person's word
        return code in _ARRIVALS or code in _DEEDS

    def _arrivals(self, block: int, place: int) -> int:
        """Vectors that came from one event to another."""
        return int(np.isin(self.rows[block : place + 1, 0], _ARRIVALS).sum())


def standing(log: Iterable[Event]) -> list[Event]:
    """Events that were not undone."""
    kept: list[Event] = []
    for event in log:
        if isinstance(event, Undone):
            while kept and kept[-1].sequence >= event.to:
                kept.pop()
        else:
            kept.append(event)
    return kept
