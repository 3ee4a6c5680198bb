"""Checks of a log that is whole: it tells of the births, ends and vectors that the state has.

What the engines decided is not decided again here, and edges are not followed: that takes a fold
(folding.py), which `undo` does, and which is checked there. These checks are vectorised and run on
each snapshot that is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkstream.engine import events, logrules
from linkstream.engine.state import Integers, State
from linkstream.errors import SnapshotError
from linkstream.identity.ledger import Ledger
from linkstream.identity.timeline import Timeline

_ENDS = (events.MERGED, events.VANISHED)


def check(state: State, ledger: Ledger) -> None:
    """Refuse a log that did not lead to the state it came with (SnapshotError names the rule)."""
    log = state.events
    if not len(log):
        return
    if not _texts_are_there(log, len(ledger.texts)):
        raise _impossible("each text it names is there")
    if not state.track_vectors or len(log) != state.n_events:
        return  # nothing before the state can be undone
    undone = bool(np.isin(log[:, 0], (events.UNDONE, events.REDONE)).any())
    standing = Timeline.of(log, 0).rows if undone else log
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
    """The rows by which each subcluster was born and ended, by number; `never` is beyond all.

    `rare` are all rows but those of vectors that joined a subcluster, which are by far the most.
    """

    born: Integers
    ended: Integers
    never: int
    rare: Integers
    places: Integers  # of the rare rows, in the log

    @classmethod
    def of(cls, log: Integers, n: int) -> _Lives | None:
        """What a log tells of the subclusters numbered below n; None where one is born twice."""
        places = np.flatnonzero(log[:, 0] != events.JOINED)
        rows, never = log[places], len(log)
        codes = rows[:, 0]
        born, ended = np.full(n, never), np.full(n, never)
        begun = np.flatnonzero((codes == events.CREATED) | (codes == events.LINKED))
        born[rows[begun, 2]] = places[begun]
        moved = np.flatnonzero(codes == events.MOVED)[::-1]
        for row in moved[born[rows[moved, 3]] == never].tolist():
            born[rows[row, 3]] = places[row]  # the first time a vector was put there
        merged, vanished = (np.flatnonzero(codes == code) for code in _ENDS)
        gone = np.concatenate([rows[merged, 3], rows[vanished, 2]])
        heirs = np.concatenate([rows[merged, 2], rows[vanished, 3]])
        ended[gone] = places[np.concatenate([merged, vanished])]
        unique = len(np.unique(gone)) == len(gone) and not np.any(gone == heirs)
        unique = unique and np.array_equal(born[rows[begun, 2]], places[begun])
        return cls(born, ended, never, rows, places) if unique else None

    def fit(self, log: Integers, state: State) -> bool:
        """Whether numbers rose with births, nobody is spoken of before or after, and some live."""
        known = np.flatnonzero(self.born < self.never)
        births = self.born[known]
        there = known[self.ended[known] == self.never]
        joined = np.flatnonzero(log[:, 0] == events.JOINED)
        return (
            bool(np.all(births[1:] > births[:-1]))
            and state.next_subcluster == (int(known[-1]) + 1 if len(known) else 0)
            and np.array_equal(there, state.numbers)
            and self._alive(log[joined, 2], joined)
            and all(self._column_fits(column) for column in range(2, events.WIDTH))
        )

    def _column_fits(self, column: int) -> bool:
        """Whether the subclusters in a column of the rare rows are there when spoken of."""
        named = logrules.KINDS[:, column - 2] == events.SUBCLUSTER
        told = named[self.rare[:, 0]] & (self.rare[:, column] >= 0)
        return self._alive(self.rare[told, column], self.places[told])

    def _alive(self, numbers: Integers, places: Integers) -> bool:
        return bool(np.all((self.born[numbers] <= places) & (places <= self.ended[numbers])))

    def holders(self, log: Integers, n: int) -> Integers:
        """The subcluster of each vector, −1 for one that was removed."""
        holder: Integers = log[log[:, 0] <= events.LINKED, 2]
        codes = self.rare[:, 0]
        changed = self.rare[(codes == events.MOVED) | (codes == events.REMOVED)]
        for code, _, member, number, *_ in changed.tolist():
            if 0 <= member < n:
                holder[member] = number if code == events.MOVED else -1
        heirs = np.arange(len(self.born) + 1)
        merged = codes == events.MERGED
        heirs[self.rare[merged, 3]] = self.rare[merged, 2]
        heirs = _settled(heirs)
        gone = np.append(self.ended[heirs[:-1]] < self.never, True)
        heirs[gone] = -1
        return heirs[holder]


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
