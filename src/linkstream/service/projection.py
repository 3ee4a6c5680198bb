"""A map of the subclusters in the plane that stays as it is while vectors arrive.

The plane is laid out in cells, like a honeycomb, one apart; a subcluster takes one cell when it is
first seen and keeps it for as long as it lives. So nothing moves.

* A **cluster is an island**. Its oldest subcluster comes first; each other one takes the free cell
  nearest to the subcluster it is tied to and, of those, nearest to the island's first, so that
  islands are round. An island that is shut in grows between its own cells. Between two islands
  there is always a strip of empty ones.
* A **new island** begins with open sea around it, to have room to grow. It comes to lie beside the
  subcluster that it is most similar to, if that similarity could matter (Thresholds.lowest), so
  that a fragment lies beside the cluster it may belong to. What is similar to nothing lies as near
  to the middle as there is room, in a direction that follows from its number.
* What is gone leaves its cell; it goes back there if an undo brings it back and nobody took it.
* Islands keep their ground where clusters split or join: the colours say which is which.

Everything follows from the states seen, in their order. A new map of the same state (after a
restart) has the same islands, laid out whole in order of their oldest subcluster, by the same
rules. Directions that follow from numbers are the same again; an island beside a similar one may
get another neighbour than in a map that grew with the stream, since a subcluster is now compared
as it is, not as it was at its first vector.

This is layout only: whether two subclusters belong together is never decided here.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from linkstream.engine.state import State
from linkstream.service.honeycomb import Honeycomb

LIMIT = 60_000  # subclusters on a map
COMPARED = 24_000  # subclusters that a new island is compared with, the biggest ones
_SKETCH = 256  # dimensions that are enough to find a neighbour
_BLOCK = 256
_SEA = 2.5  # cells around a new island, beside those that it may be expected to need
_STRAIT, _CROWD = 1.4, 3_000  # and where so many come at once
_GROWTH = 4.0  # times the usual size of an island: what a new one may come to

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Layout:
    """The map: one entry a subcluster, by number; edges `a`, `b` as places in these arrays.

    `left_out`: subclusters for which there was no room on it.
    """

    subcluster: Integers
    cluster: Integers
    count: Integers
    x: Floats
    y: Floats
    a: Integers
    b: Integers
    left_out: int = 0


class Projection:
    """A map that follows one clusterer; give it the state now and then.

    >>> from linkstream import Links
    >>> links, projection = Links(0.7, 0.6, 0.9), Projection()
    >>> _ = links.add_many([[1.0, 0.0], [0.0, 1.0]])
    >>> before = projection.update(links.state())
    >>> _ = links.add_many([[0.9, 0.1], [-1.0, 0.0]])
    >>> after = projection.update(links.state())
    >>> bool((after.x[:2] == before.x).all()), len(after.x)
    (True, 3)
    """

    def __init__(self, *, limit: int = LIMIT) -> None:
        self._limit = limit
        self._comb = Honeycomb()

    def update(self, state: State) -> Layout:
        """The map of a state: what was there stays, what is gone goes, what is new finds a place.

        Costs n·d steps for each new cluster, and little else.
        """
        numbers = state.numbers.tolist()
        self._comb.keep(set(numbers))
        placed = np.fromiter(
            (n in self._comb.cells for n in numbers), dtype=bool, count=len(numbers)
        )
        shown = self._shown(state, placed)
        if shown.sum() > placed.sum():
            self._place(state, _Arrivals.of(state, placed, shown))
        return self._layout(state, shown)

    def _shown(self, state: State, placed: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Those on the map, and as many new ones as there is room for, the biggest first."""
        shown, new = placed.copy(), np.flatnonzero(~placed)
        room = max(0, self._limit - int(placed.sum()))
        shown[new[np.argsort(-state.counts[new], kind="stable")[:room]]] = True
        return shown

    def _place(self, state: State, arrivals: _Arrivals) -> None:
        comb, numbers = self._comb, state.numbers.tolist()
        beside, rooms = _most_similar(state, arrivals), arrivals.rooms(comb.usual)
        for row, above in zip(arrivals.rows, arrivals.above, strict=True):
            if above >= 0:
                comb.put(numbers[row], numbers[above])
            else:
                akin = beside.get(row)
                comb.found(numbers[row], None if akin is None else numbers[akin], room=rooms[row])

    def _layout(self, state: State, shown: npt.NDArray[np.bool_]) -> Layout:
        numbers = state.numbers[shown]
        x, y = self._comb.points(numbers.tolist())
        ends = np.searchsorted(state.numbers, state.edges)
        ends = ends[shown[ends].all(axis=1)]
        place = np.cumsum(shown, dtype=np.int64) - 1
        return Layout(
            subcluster=numbers,
            cluster=state.clusters[shown],
            count=state.counts[shown],
            x=x,
            y=y,
            a=place[ends[:, 0]],
            b=place[ends[:, 1]],
            left_out=len(shown) - len(numbers),
        )


@dataclass(frozen=True, slots=True)
class _Arrivals:
    """Rows of the state that need a place, in the order in which they get one.

    Attributes:
        there: rows that have one.
        above: for each of `rows`, the one it is tied to, which comes before; −1 begins an island.
    """

    there: list[int]
    rows: list[int] = field(default_factory=list)
    above: list[int] = field(default_factory=list)

    @classmethod
    def of(
        cls, state: State, placed: npt.NDArray[np.bool_], shown: npt.NDArray[np.bool_]
    ) -> _Arrivals:
        """First what is tied to something placed; then whole islands, by their oldest."""
        waiting = shown & ~placed
        ends = np.searchsorted(state.numbers, state.edges)
        ends = ends[waiting[ends].any(axis=1) & shown[ends].all(axis=1)]
        tied: dict[int, list[int]] = {}
        for one, other in ends.tolist():
            tied.setdefault(one, []).append(other)
            tied.setdefault(other, []).append(one)
        arrivals = cls(np.flatnonzero(placed).tolist())
        left = set(np.flatnonzero(waiting).tolist())
        arrivals._walk(sorted(row for row in tied if row not in left), tied, left)
        for row in np.flatnonzero(waiting).tolist():
            if row in left:
                left.remove(row)
                arrivals._add(row, -1)
                arrivals._walk([row], tied, left)
        return arrivals

    def rooms(self, usual: float) -> dict[int, int]:
        """How far from others each new island should begin, so that all of it fits and can grow.

        `usual`: subclusters of an island that is there.
        """
        starts = np.flatnonzero(np.array(self.above) < 0)
        sizes = np.diff(np.append(starts, len(self.above)))
        sea = _SEA + _radius(_GROWTH * usual) if len(starts) < _CROWD else _STRAIT
        rooms = np.rint(sea + _radius(sizes))
        rows = [self.rows[start] for start in starts.tolist()]
        return dict(zip(rows, rooms.astype(np.int64).tolist(), strict=True))

    def _walk(self, starts: list[int], tied: dict[int, list[int]], left: set[int]) -> None:
        """Add all that hangs on these, the nearest along the trees first."""
        queue = deque(starts)
        while queue:
            above = queue.popleft()
            for row in tied.get(above, ()):
                if row in left:
                    left.remove(row)
                    self._add(row, above)
                    queue.append(row)

    def _add(self, row: int, above: int) -> None:
        self.rows.append(row)
        self.above.append(above)


def _radius(cells: Floats | float) -> Floats | float:
    """Of a disc of so many cells."""
    return 0.55 * np.sqrt(cells)


def _most_similar(state: State, arrivals: _Arrivals) -> dict[int, int]:
    """For each row that begins an island, the most similar of those before it, if any is akin."""
    order = np.array(arrivals.there + arrivals.rows, dtype=np.int64)
    starts = len(arrivals.there) + np.flatnonzero(np.array(arrivals.above) < 0)
    if not len(starts):
        return {}
    known = np.arange(len(order))  # places in the order that are compared with
    if len(order) > COMPARED:
        known = np.sort(np.argsort(-state.counts[order], kind="stable")[:COMPARED])
    there, new = _units(state.sums, order[known]), _units(state.sums, order[starts])
    ends = np.searchsorted(known, starts)  # of those that came before
    found: dict[int, int] = {}
    for first in range(0, len(starts), _BLOCK):
        stop = ends[first : first + _BLOCK]
        if not stop[-1]:
            continue
        cosines = new[first : first + _BLOCK] @ there[: stop[-1]].T
        for row, end in enumerate(stop.tolist()):
            cosines[row, end:] = -2.0
        best = np.argmax(cosines, axis=1)
        akin = np.flatnonzero(cosines[np.arange(len(best)), best] >= state.thresholds.lowest)
        rows, others = order[starts[first + akin]], order[known[best[akin]]]
        found.update(zip(rows.tolist(), others.tolist(), strict=True))
    return found


def _units(sums: Integers, rows: Integers) -> Singles:
    """Directions of some rows, in single precision; of many dimensions a sketch."""
    found: Singles = sums[rows].astype(np.float32)
    if found.shape[1] > _SKETCH:
        mixed = np.random.default_rng(0).standard_normal(
            (found.shape[1], _SKETCH), dtype=np.float32
        )
        found = found @ mixed
    lengths: Singles = np.linalg.norm(found, axis=1, keepdims=True)
    found /= np.maximum(lengths, np.float32(1e-30))
    return found
