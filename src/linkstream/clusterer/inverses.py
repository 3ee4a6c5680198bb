"""What takes back the newest changes, so that undo costs what they changed.

The engine keeps records of its newest changes within a bound of memory (cpp: `kKeptBytes`), and an
`Inverse` is the rest of one such record. A change that is not kept, such as vectors that were
added, ends the records before it. Without a record, undo folds the event log (folding.py).
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import numpy as np

from linkstream.engine.contract import Engine
from linkstream.identity.ledger import Inverted, Ledger, Mark, Rows
from linkstream.identity.timeline import Timeline


@dataclass(slots=True)
class Inverse:
    """One change that can be taken back.

    Attributes:
        first: its first event.
        end: the event after its last one.
        n_vectors: vectors before it.
        ledger: what restores the ledger; None if the ledger has not read the change yet, or memory
            did not suffice.
    """

    first: int
    end: int
    n_vectors: int
    ledger: Inverted | None

    def __len__(self) -> int:
        """Return its number of events."""
        return self.end - self.first

    def is_undone_by(self, engine: Engine, to: int | None) -> bool:
        """Return whether undoing from event `to` on, or its newest step, undoes all of it."""
        rows = engine.event_rows(self.first)[1][: len(self)]
        timeline = Timeline(rows, np.arange(self.first, self.end))
        return timeline.is_whole() and timeline.before(to) == 0


class Inverses:
    """The inverses of the newest changes, oldest first."""

    def __init__(self) -> None:
        self._all: list[Inverse] = []
        self._engine: weakref.ref[Engine] | None = None  # whose changes they are
        self._n_events = 0  # of the engine, after the newest of them or an undo of later ones

    def __len__(self) -> int:
        return len(self._all)

    def add(self, inverse: Inverse) -> None:
        """Add the inverse of a change that is about to be committed; see `confirm`."""
        self._all.append(inverse)

    def cut(self, n: int) -> None:
        """Drop the inverses of changes that were rolled back, or taken back."""
        del self._all[n:]

    def confirm(self, engine: Engine, n_events: int) -> None:
        """Drop the inverses that the engine has dropped: those of old changes, or all.

        This never fails: without memory all are dropped.
        """
        self._n_events = n_events
        try:
            self._engine = weakref.ref(engine)
            del self._all[: max(len(self._all) - engine.n_kept, 0)]
        except MemoryError:
            self._all.clear()

    def read(self, ledger: Ledger, rows: Rows, *, alone: bool) -> None:
        """Let a ledger read the next events, and keep what takes each kept change back.

        Args:
            ledger: the ledger.
            rows: the events.
            alone: whether no change is open.
        """
        start = ledger.n_events
        for inverse in self._all:
            if ledger.n_events <= inverse.first and inverse.end <= start + len(rows):
                _read(ledger, rows[ledger.n_events - start : inverse.first - start])
                mark = ledger.begin()
                _read(ledger, rows[inverse.first - start : inverse.end - start])
                inverse.ledger = _inverse(ledger, mark)
                if alone:
                    ledger.commit()
        _read(ledger, rows[ledger.n_events - start :])

    def _kept(self, engine: Engine) -> list[Inverse]:
        """Return the inverses that the engine can still take back, oldest first."""
        ours = None if self._engine is None else self._engine()
        if engine is not ours or engine.n_events != self._n_events:
            return []
        return self._all[max(len(self._all) - engine.n_kept, 0) :]

    def undone(self, engine: Engine, to: int | None) -> list[Inverse]:
        """Return what takes back all from event `to` on, or the newest step; empty if not kept.

        The ledger must have read all events.
        """
        kept = self._kept(engine)
        for place in range(len(kept) - 1, -1, -1):
            if to is None or kept[place].first <= to:
                known = all(each.ledger is not None for each in kept[place:])
                whole = known and (to is None or to < kept[place].end)
                return kept[place:] if whole and kept[place].is_undone_by(engine, to) else []
        return []

    def beginning_at(self, engine: Engine, first: int) -> bool:
        """Return whether a change that began with an event, and all later ones, can be undone."""
        return any(inverse.first == first for inverse in self._kept(engine))

    def newest_event(self, engine: Engine) -> int:
        """Return the newest event that was not undone; −1 if that is not known."""
        kept = self._kept(engine)
        return kept[-1].end - 1 if kept else -1


def _read(ledger: Ledger, rows: Rows) -> None:
    if len(rows):
        ledger.read(rows)


def _inverse(ledger: Ledger, mark: Mark) -> Inverted | None:
    """Return what takes back what a ledger has read since a mark; None without memory."""
    try:
        return ledger.inverse(mark)
    except MemoryError:
        return None
