"""The timeline: which events of the log still count, and where each change began.

The log only grows. An `undone` event says that all events from a sequence number on no longer
count. A `redone` event says that the events that an `undone` event took count again. Any other
event ends what can be redone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkstream.engine import events
from linkstream.engine.events import Event
from linkstream.errors import UndoError
from linkstream.identity.ledger import Rows

# What a person does, and arrivals of vectors; all up to the next of these is one change.
_BLOCKS = (events.GROUPED, events.ENROLLED, events.ABSORBED)  # several vectors, one change
_DEEDS = (
    *(events.SAME, events.DIFFERENT, events.RELOCATED, events.DROPPED, events.NAMED),
    *(events.IGNORED, events.REBUILT, events.JUDGED, events.ACCEPTED, events.ASSIGNED),
    *(*_BLOCKS, *events.ARRIVALS),
)
_JOINS = (events.United, events.Tied, events.Replaced)

Stretches = list[tuple[int, int]]  # of places in a log, first and end


@dataclass(frozen=True, slots=True)
class Taken:
    """Rows of the log that one undo took and redo can restore, with their sequence numbers.

    `undone` is the sequence number of the event that took them.
    """

    undone: int
    rows: Rows
    sequences: Rows

    @property
    def n_vectors(self) -> int:
        """Number of vectors that these rows added."""
        return n_arrivals(self.rows)


@dataclass(frozen=True, slots=True)
class Timeline:
    """The rows that count, each with its sequence number.

    `taken` is what can be redone; the last entry is redone first.
    """

    rows: Rows
    sequences: Rows
    taken: tuple[Taken, ...] = ()

    @classmethod
    def of(cls, log: Rows, first_sequence: int) -> Timeline:
        """Return the rows of a log that count; the first row has the sequence number given."""
        standing: Stretches = []
        taken: list[tuple[int, Stretches]] = []  # by each undo that can be redone
        start = 0
        for place in np.flatnonzero(np.isin(log[:, 0], (events.UNDONE, events.REDONE))).tolist():
            if place > start:
                standing.append((start, place))
                taken.clear()
            start, named = place + 1, int(log[place, 2]) - first_sequence
            if log[place, 0] == events.UNDONE:
                standing, gone = _cut(standing, named)
                taken.append((place, gone))
            elif taken and taken[-1][0] == named:
                standing += taken.pop()[1]
        if len(log) > start:
            standing.append((start, len(log)))
            taken.clear()
        places = _places(standing)
        again = [
            Taken(place + first_sequence, log[_places(gone)], _places(gone) + first_sequence)
            for place, gone in taken
        ]
        return cls(log[places], places + first_sequence, tuple(again))

    def until(self, n: int) -> Timeline:
        """Return the first n rows."""
        return Timeline(self.rows[:n], self.sequences[:n])

    def redone(self) -> Timeline:
        """Return the timeline after a redo; raise UndoError if there is nothing to redo."""
        if not self.taken:
            raise UndoError(
                "a redo where there is nothing to redo",
                expected="an undo as the last thing that was done",
                remedy="Redo right after the undo: any other change ends what can be redone.",
            )
        last = self.taken[-1]
        return Timeline(
            np.concatenate([self.rows, last.rows]),
            np.concatenate([self.sequences, last.sequences]),
            self.taken[:-1],
        )

    def before(self, to: int | None) -> int:
        """Return how many rows are left after undoing the last change, or all from `to` on."""
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

    def is_whole(self) -> bool:
        """Return whether the first row begins a change; if not, it is part of the one before."""
        return self.rows[0, 0] == events.WEIGHED or self._begins(0)

    def _start(self, place: int) -> int:
        """Return the first row of the change that a row is part of."""
        if self.rows[place, 0] == events.WEIGHED:  # its vector is the next event
            place += 1
        while place and not self._begins(place):  # the rest may be of before the log was kept
            place -= 1
        block = place - 1
        while block >= 0 and self.rows[block, 0] not in _BLOCKS:
            block -= 1
        if self.rows[place, 0] in events.ARRIVALS:
            if block >= 0 and n_arrivals(self.rows[block : place + 1]) <= self.rows[block, 3]:
                return block
            if place and self.rows[place - 1, 0] == events.WEIGHED:
                return place - 1
        return place

    def _begins(self, place: int) -> bool:
        code = int(self.rows[place, 0])
        if code in (events.SETTLED, events.RETRACTED):
            return bool(self.rows[place, 4])  # asked for
        if code == events.FORGOTTEN:
            return not self.rows[place, 3]  # a person's word
        if code == events.RELOCATED and place:  # the pins of the vector before it end with side 0
            return not (self.rows[place - 1, [0, 4]] == (events.PINNED, 0)).all()
        if code == events.DROPPED and self.rows[place, 2] >= 0:
            return not self._is_listed(place)
        return code in _DEEDS

    def _is_listed(self, place: int) -> bool:
        """Return whether a removed vector is one of several: a row of −1 is before the first."""
        listed = place
        while place and self.rows[place - 1, 0] == events.DROPPED:
            place -= 1
            if self.rows[place, 2] < 0:
                size = int(self.rows[place, 3])  # −1: a removal of a vector ends the list
                return size < 0 or listed - place <= size
        return False


def n_arrivals(rows: Rows) -> int:
    """Return how many vectors were added by rows of the log."""
    return int(np.isin(rows[:, 0], events.ARRIVALS).sum())


def _cut(standing: Stretches, to: int) -> tuple[Stretches, Stretches]:
    """Return the stretches before a row, and those from it on."""
    before = [(first, min(end, to)) for first, end in standing if first < to]
    after = [(max(first, to), end) for first, end in standing if end > to]
    return before, after


def _places(stretches: Stretches) -> Rows:
    """Return the rows that stretches cover, in order."""
    none = np.empty(0, dtype=np.int64)
    return np.concatenate([none, *(np.arange(first, end) for first, end in stretches)])


def standing(log: Iterable[Event]) -> list[Event]:
    """Return events that were not undone, or were redone."""
    kept: list[Event] = []
    taken: dict[int, list[Event]] = {}  # by each undo that can be redone
    for event in log:
        if isinstance(event, events.Undone):
            gone = []
            while kept and kept[-1].sequence >= event.to:
                gone.append(kept.pop())
            taken[event.sequence] = gone[::-1]
        elif isinstance(event, events.Redone):
            kept += taken.pop(event.undone, [])
        else:
            kept.append(event)
            taken.clear()
    return kept


@dataclass(frozen=True, slots=True)
class History:
    """What happened to an ID: birth, splits, joins and end.

    Attributes:
        cluster: the ID.
        chapters: its events, oldest first: born or split off, splits, joins, names, its end.
        survivor: the ID it was joined into, or None while it is live.
    """

    cluster: int
    chapters: tuple[Event, ...]
    survivor: int | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "cluster": self.cluster,
            "chapters": [event.to_dict() for event in self.chapters],
            "survivor": self.survivor,
        }

    def words(self) -> list[str]:
        """Return what each chapter says, without its number."""
        return [
            str(_line(self.cluster, event, born=place > 0))
            for place, event in enumerate(self.chapters)
        ]

    def __str__(self) -> str:
        lines = zip(self.chapters, self.words(), strict=True)
        return "\n".join(f"event {e.sequence}, vector {e.vector}: {words}" for e, words in lines)


def history_of(cluster: int, log: Iterable[Event]) -> History:
    """Return the history of an ID from events."""
    chapters: list[Event] = []
    survivor, over = None, False
    for event in log:
        if _line(cluster, event, born=bool(chapters), over=over) is None:
            continue
        chapters.append(event)
        over = over or isinstance(event, (events.Forgotten, events.Vanished))
        if isinstance(event, _JOINS) and event.gone == cluster:
            survivor = event.cluster
    return History(cluster, tuple(chapters), survivor)


def _line(cluster: int, event: Event, *, born: bool, over: bool = False) -> str | None:
    """Return what an event did to an ID; None if nothing."""
    match event:
        case events.Created(cluster=here) if here == cluster:
            return "born"
        case events.Moved(cluster=here, member=member) if here == cluster and not born:
            return f"born when vector {member} was taken out"
        case events.Split() | events.Parted() if event.new_cluster == cluster:
            return f"split off from cluster {event.cluster}"
        case events.Split() | events.Parted() if event.cluster == cluster:
            return f"cluster {event.new_cluster} split off"
        case events.United() | events.Tied() | events.Replaced() if event.gone == cluster:
            return f"joined into cluster {event.cluster}"
        case events.United() | events.Tied() | events.Replaced() if event.cluster == cluster:
            return f"cluster {event.gone} joined it"
        case events.Forgotten(cluster=here) if here == cluster:
            return "forgotten"
        case events.Vanished(cluster=here, heir=-1) if here == cluster and not over:
            return "its last subcluster vanished"
        case events.Named(cluster=here, name=name) if here == cluster:
            return f"named {name!r}" if name else "its name taken away"
    return None
