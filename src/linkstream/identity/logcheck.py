"""Checks of a log that is whole: it tells of the births, ends and vectors that the state has.

What the engines decided is not decided again here, and edges are not followed: that takes a fold
(folding.py), which `undo` does, and which is checked there. These checks are vectorised and run on
each snapshot that is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.engine import events, logrules
from linkstream.engine.state import Integers, State
from linkstream.errors import SnapshotError
from linkstream.identity.ledger import Ledger
from linkstream.identity.timeline import Timeline


def check(state: State, ledger: Ledger) -> None:
    """Refuse a log that did not lead to the state it came with (SnapshotError names the rule)."""
    log = state.events
    if not len(log):
        return
    if not _texts_are_there(log, len(ledger.texts)):
        raise _impossible("each text it names is there")
    if not state.track_vectors or len(log) != state.n_events:
        return  # nothing before the state can be undone
    standing = Timeline.of(log, 0).rows
    if not _vectors_came(standing, state.n_vectors):
        raise _impossible("each vector came once, in order")
    lives = _Lives.of(standing, state.free_subcluster)
    if lives is None or not lives.fit(standing, state):
        raise _impossible("subclusters are spoken of between birth and end, and these are left")
    if not np.array_equal(lives.holders(standing, state.n_vectors), state.vectors):
        raise _impossible("each vector is where the events put it")


def _texts_are_there(log: Integers, n: int) -> bool:
    telling = log[np.isin(log[:, 0], np.flatnonzero(logrules.TEXTS.any(axis=1)))]
    numbers = telling[:, 2:][logrules.TEXTS[telling[:, 0]]]
    return bool(np.all(numbers < n))


def _vectors_came(rows: Integers, n: int) -> bool:
    arrivals = rows[rows[:, 0] <= events.LINKED, 1]
    return np.array_equal(arrivals, np.arange(n))


@dataclass(frozen=True, slots=True)
class _Lives:
    """The rows by which each subcluster was born and ended, by number; `never` is beyond all."""

    born: Integers
    ended: Integers
    never: int

    @classmethod
    def of(cls, rows: Integers, n: int) -> _Lives | None:
        """What rows tell of the subclusters numbered below n; None where one is born twice."""
        never, codes = len(rows), rows[:, 0]
        born, ended = np.full(n, never), np.full(n, never)
        begun = np.flatnonzero((codes == events.CREATED) | (codes == events.LINKED))
        born[rows[begun, 2]] = begun
        moved = np.flatnonzero(codes == events.MOVED)
        for place in moved[::-1][born[rows[moved[::-1], 3]] == never].tolist():
            born[rows[place, 3]] = place  # the first time a vector was put there
        merged = np.flatnonzero(codes == events.MERGED)
        vanished = np.flatnonzero(codes == events.VANISHED)
        ended[rows[merged, 3]] = merged
        ended[rows[vanished, 2]] = vanished
        unique = (
            np.array_equal(born[rows[begun, 2]], begun)
            and np.array_equal(ended[rows[merged, 3]], merged)
            and np.array_equal(ended[rows[vanished, 2]], vanished)
            and bool(np.all(rows[merged, 2] != rows[merged, 3]))
            and bool(np.all(rows[vanished, 2] != rows[vanished, 3]))
        )
        return cls(born, ended, never) if unique else None

    def fit(self, rows: Integers, state: State) -> bool:
        """Whether numbers rose with births, nobody is spoken of before or after, and some live."""
        births = self.born[self.born < self.never]
        known = np.flatnonzero(self.born < self.never)
        there = np.flatnonzero((self.born < self.never) & (self.ended == self.never))
        return (
            bool(np.all(births[1:] > births[:-1]))
            and state.next_subcluster == (int(known[-1]) + 1 if len(known) else 0)
            and np.array_equal(there, state.numbers)
            and all(self._in_life(rows, place) for place in range(2, events.WIDTH))
        )

    def _in_life(self, rows: Integers, column: int) -> bool:
        """Whether the subclusters in one column are there when they are spoken of."""
        named = logrules.KINDS[:, column - 2] == events.SUBCLUSTER
        places = np.flatnonzero(named[rows[:, 0]] & (rows[:, column] >= 0))
        numbers = rows[places, column]
        return bool(np.all((self.born[numbers] <= places) & (places <= self.ended[numbers])))

    def holders(self, rows: Integers, n: int) -> Integers:
        """The subcluster of each vector, −1 for one that was removed."""
        codes = rows[:, 0]
        holder: Integers = rows[codes <= events.LINKED, 2]
        changed = rows[(codes == events.MOVED) | (codes == events.REMOVED)]
        for code, _, member, number, *_ in changed.tolist():
            if 0 <= member < n:
                holder[member] = number if code == events.MOVED else -1
        heirs = np.arange(len(self.born) + 1)
        merged = codes == events.MERGED
        heirs[rows[merged, 3]] = rows[merged, 2]
        heirs = _settled(heirs)
        gone: npt.NDArray[np.bool_] = np.append(self.ended[heirs[:-1]] < self.never, True)
        heirs[-1] = -1
        return np.where(gone[holder], -1, heirs[holder])


def _settled(heirs: Integers) -> Integers:
    """Follow each to the last of its heirs; a chain of n takes log n rounds."""
    while True:
        further = heirs[heirs]
        if np.array_equal(further, heirs):
            return heirs
        heirs = further


def _impossible(rule: str) -> SnapshotError:
    return SnapshotError(
        f"a log of events where it does not hold that {rule}",
        expected="the log that led to this state",
        remedy="The file is damaged or was made by another program; use a backup.",
    )
