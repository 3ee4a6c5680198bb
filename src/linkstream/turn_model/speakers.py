"""Speakers of a recording while it goes on: their sums of windows, and who of them is one.

Clusters at arrival are too many. Windows that mix two speakers form clusters of their own, and a
new turn of a known speaker often begins with one. So a cluster is a speaker only if its windows are
clearly not those of another: their evidence is how much score they lose if each run of them goes
to the best other speaker. Windows of a new person earn about as much evidence a second from the
first on, the others far less. A cluster is judged when windows join or leave it, and not again
before: the cost of a window does not depend on the number of clusters or of windows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from linkstream.turn_model.chain import Floats, Integers, TimeModel
from linkstream.turn_model.whole import Windows

_ESTABLISHED = 10  # a speaker with this many times the least evidence in seconds is not judged


@dataclass(frozen=True, slots=True)
class Window:
    """One window of speech.

    Attributes:
        place: number of the window in the recording, from 0.
        vector: rounded vector (`fixed_point`).
        milliseconds: speech that the window counts for.
        gap: seconds since the window before, from middle to middle.
        end: end in seconds.
    """

    place: int
    vector: Floats
    milliseconds: int
    gap: float
    end: float


class Speakers:
    """The clusters of a recording as the labels of its windows form them.

    Args:
        model: parameters of the chain.
        windows: returns the windows at some places, in order.
    """

    def __init__(self, model: TimeModel, windows: Callable[[Integers], Windows]) -> None:
        self._model = model
        self._windows = windows
        self._sums = np.empty((0, 0))
        self._heard: dict[int, int] = {}  # milliseconds of each cluster
        self._rows: dict[int, int] = {}  # row of each cluster in the sums
        self._places: dict[int, set[int]] = {}  # windows of each cluster
        self._proven: set[int] = set()  # clusters that are speakers by their evidence
        self._changed: set[int] = set()  # clusters to judge

    def move(self, window: Window, old: int | None, new: int | None) -> None:
        """Move a window from one cluster to another.

        Args:
            window: the window.
            old: its cluster so far, or None.
            new: its cluster from now on, or None if its vector was removed.
        """
        for cluster, sign in ((old, -1), (new, 1)):
            if cluster is not None:
                row = self._row(cluster, len(window.vector))
                self._sums[row] += sign * window.milliseconds * window.vector
                self._heard[cluster] += sign * window.milliseconds
                self._changed.add(cluster)
        if old is not None:
            self._places[old].remove(window.place)
        if new is not None:
            self._places[new].add(window.place)

    def judge(self, known: Collection[int]) -> None:
        """Decide which clusters are speakers, of those whose windows changed since the last call.

        Args:
            known: clusters that are speakers in any case, such as those with names.
        """
        self._proven = self._judged(known)
        self._changed.clear()

    def present(self, known: Collection[int]) -> list[int]:
        """Return the speakers, as `judge` would leave them, in order of their numbers.

        If no cluster is proven, that is the one with most speech. No windows, no speakers.

        Args:
            known: as for `judge`.
        """
        proven = self._judged(known) | self._heard_of(known)
        if not proven:
            heard = ((-time, cluster) for cluster, time in self._heard.items() if time > 0)
            proven = {cluster for _, cluster in sorted(heard)[:1]}
        return sorted(proven)

    def centres(self, speakers: Sequence[int]) -> Floats:
        """Return the centres of some speakers."""
        heard = np.array([self._heard[who] for who in speakers], dtype=np.float64)
        return self._model.centres(self._sums[[self._rows[who] for who in speakers]], heard)

    def _judged(self, known: Collection[int]) -> set[int]:
        """Return the clusters that are proven; those with most speech are judged first."""
        if not self._changed:
            return self._proven
        proven, heard = set(self._proven), self._heard
        for cluster in sorted(self._changed, key=lambda each: (-heard[each], each)):
            proven.discard(cluster)
            others = proven | self._heard_of(known)
            others.discard(cluster)
            if heard[cluster] > 0 and self._is_proven(cluster, sorted(others)):
                proven.add(cluster)
        return proven

    def _heard_of(self, clusters: Iterable[int]) -> set[int]:
        return {cluster for cluster in clusters if self._heard.get(cluster, 0) > 0}

    def _is_proven(self, cluster: int, others: list[int]) -> bool:
        """Return whether a cluster has enough evidence beside other speakers."""
        seconds, least = self._heard[cluster] / 1000.0, self._model.least
        if not others or seconds >= _ESTABLISHED * least:
            return True
        places = np.array(sorted(self._places[cluster]), dtype=np.int64)
        windows = self._windows(places)
        centres = self.centres([cluster, *others])
        scores = self._model.scores(windows.rows, windows.milliseconds, centres)
        begins = np.flatnonzero(np.diff(places, prepend=-2) != 1)
        runs = np.add.reduceat(scores, begins, axis=0)
        evidence = float((runs[:, 0] - runs[:, 1:].max(axis=1)).sum())
        wanted = min(least, self._model.clear * seconds)
        return evidence >= wanted * self._model.sharpness * self._model.grid

    def _row(self, cluster: int, dimension: int) -> int:
        """Return the row of a cluster in the sums; make one if there is none."""
        if cluster not in self._rows:
            if len(self._rows) == len(self._sums):
                more = np.zeros((max(8, len(self._sums)), dimension))
                self._sums = np.vstack([self._sums.reshape(-1, dimension), more])
            self._rows[cluster] = len(self._rows)
            self._heard[cluster], self._places[cluster] = 0, set()
        return self._rows[cluster]
