"""An index of the event log: the events that name a cluster, or edges and merges of subclusters.

Histories and explanations read a few events of a long log. An `EventIndex` reads each event once,
without a loop over events, keeps the rows that such questions need, and finds them by number.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from linkstream.engine import events
from linkstream.engine.event_values import from_rows
from linkstream.engine.events import WIDTH, Event
from linkstream.engine.logrules import CLUSTER, KINDS_OF_NUMBERS, SUBCLUSTER
from linkstream.identity.ledger import Rows

_HISTORY = (
    *(events.CREATED, events.MOVED, events.SPLIT, events.UNITED, events.TIED),
    *(events.FORGOTTEN, events.VANISHED, events.NAMED, events.PARTED, events.REPLACED),
)
_MERGES = (events.MERGED, events.VANISHED)
_EDGES = (
    *(events.LINKED, events.REJOINED, events.UNITED, events.TIED, events.RETIED, events.MOVED),
    *_MERGES,
)
_TURNS = (events.UNDONE, events.REDONE)

Numbered = tuple[Rows, Rows]  # sequence numbers, and the event rows that have them


def _naming(codes: tuple[int, ...], kind: int) -> npt.NDArray[np.bool_]:
    """Return which numbers of a row, by its code, name a subcluster or cluster of interest."""
    fields: npt.NDArray[np.bool_] = np.array(KINDS_OF_NUMBERS) == kind
    fields[~np.isin(np.arange(len(fields)), codes)] = False
    return fields


_CLUSTERS = _naming(_HISTORY, CLUSTER)
_SUBCLUSTERS = _naming(_EDGES, SUBCLUSTER)
_KEPT: npt.NDArray[np.bool_] = np.asarray(np.hstack([_CLUSTERS, _SUBCLUSTERS]).any(1))
_KEPT[list(_TURNS)] = True


def from_numbered(sequences: Rows, rows: Rows, texts: Sequence[str] = ()) -> list[Event]:
    """Return events from their sequence numbers and rows."""
    numbered = zip(sequences.tolist(), rows[:, None], strict=True)
    return [event for about in numbered for event in from_rows(*about, texts)]


class _Places:
    """Places by key, in sorted runs; a run is merged into the one before it unless that is larger.

    A search looks into each run, of which there are at most about log2 of the number of places.
    """

    def __init__(self) -> None:
        self._runs: list[Numbered] = []

    def add(self, keys: Rows, places: Rows) -> None:
        """Add places; keys below 0 stand for nothing."""
        named = keys >= 0
        keys, places = keys[named], places[named]
        while self._runs and len(self._runs[-1][0]) <= 2 * len(keys):
            before = self._runs.pop()
            keys = np.concatenate([before[0], keys])
            places = np.concatenate([before[1], places])
        if len(keys):
            order = np.argsort(keys, kind="stable")
            self._runs.append((keys[order], places[order]))

    def find(self, keys: Rows) -> Rows:
        """Return the places of some keys, without order; one place may come twice."""
        found = [np.empty(0, dtype=np.int64)]
        for known, places in self._runs:
            first, end = (np.searchsorted(known, keys, side) for side in ("left", "right"))
            lengths = end - first
            steps = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            found.append(places[np.repeat(first, lengths) + steps])
        return np.concatenate(found)


class EventIndex:
    """The events of a log that histories and explanations need, by cluster and by subcluster.

    It takes 56 bytes for each such event, and 16 for each number that it is found by.

    Args:
        first_event: the sequence number of the first event to read.

    Attributes:
        first_event: as given.
        n_events: the sequence number of the next event to read.
    """

    def __init__(self, first_event: int = 0) -> None:
        self.first_event = self.n_events = first_event
        self._flat = array("q")  # sequence number and row of each event that is kept
        self._turns = array("q")  # places of undone and redone
        self._clusters, self._subclusters = _Places(), _Places()

    def read(self, rows: Rows) -> None:
        """Read the next events of the log."""
        wanted = np.flatnonzero(_KEPT[rows[:, 0]])
        kept, first = rows[wanted], len(self._flat) // (WIDTH + 1)
        places = np.arange(first, first + len(kept))
        self._flat.frombytes(np.column_stack([self.n_events + wanted, kept]).tobytes())
        self._turns.frombytes(places[np.isin(kept[:, 0], _TURNS)].tobytes())
        for index, naming in ((self._clusters, _CLUSTERS), (self._subclusters, _SUBCLUSTERS)):
            row, number = np.nonzero(naming[kept[:, 0]])
            index.add(kept[row, number + 2], places[row])
        self.n_events += len(rows)

    def of_cluster(self, cluster: int) -> Numbered:
        """Return the events that may be a part of a cluster's history, and all undos and redos."""
        return self._with_turns(self._clusters.find(np.array([cluster], dtype=np.int64)))

    def of_edges(self, subclusters: list[int]) -> Numbered:
        """Return the events that made edges between some subclusters, and all undos and redos.

        An edge moves with its ends through merges, so that these are events about the given
        subclusters, or about others that were merged into them, and the merges.
        """
        new = known = np.unique(np.array(subclusters, dtype=np.int64))
        found = [np.empty(0, dtype=np.int64)]
        while len(new):
            found.append(self._subclusters.find(new))
            new = np.setdiff1d(_absorbed(self._at(found[-1])[1]), known)
            known = np.union1d(known, new)
        places = np.unique(np.concatenate(found))
        ends = _ends(self._at(places)[1])
        return self._with_turns(places[np.isin(ends, known).all(axis=1)])

    def _with_turns(self, places: Rows) -> Numbered:
        return self._at(np.union1d(places, np.array(self._turns, dtype=np.int64)))

    def _at(self, places: Rows) -> Numbered:
        """Return copies, so that no view keeps the array from growing."""
        kept = np.frombuffer(self._flat, dtype=np.int64).reshape(-1, WIDTH + 1)[places]
        return kept[:, 0], kept[:, 1:]


def _absorbed(rows: Rows) -> Rows:
    """Return the subclusters that were merged into others."""
    merged, vanished = (rows[rows[:, 0] == code] for code in _MERGES)
    return np.concatenate([merged[:, 3], vanished[:, 2]])


def _ends(rows: Rows) -> Rows:
    """Return the two subclusters of each edge or merge."""
    moved = rows[:, :1] == events.MOVED  # its first number is a vector
    return np.where(moved, rows[:, 3:5], rows[:, 2:4])
