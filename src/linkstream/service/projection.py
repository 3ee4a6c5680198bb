"""A map of the subclusters in the plane whose points do not move as vectors are added.

The plane is a hexagonal grid of cells. A subcluster gets one cell when it is first seen and keeps
the cell as long as it exists.

* A **cluster is a region** of cells. Its oldest subcluster comes first. Each other one gets the
  free cell nearest to the subcluster it is linked to and, among those, nearest to the region's
  first cell, so that regions are round. A region without room around it grows between its own
  cells. There is always a strip of empty cells between two regions.
* A **new region** starts with free cells around it, to have room to grow. It lies beside the
  subcluster to which it is most similar, if that similarity is at least Thresholds.lowest, so that
  a fragment lies beside the cluster it may belong to. Otherwise it lies as near to the centre as
  there is room, in a direction that follows from its number.
* If **very many regions** start at once, as after a restart, those with the fewest vectors are
  gathered in belts around the others, the widest regions inside. Finding a neighbour for each would
  take most of the time of the map.
* A removed subcluster leaves its cell. If an undo brings it back it gets the cell again if free.
* Regions do not change when clusters split or join: the colours show the clusters.

The map depends only on the sequence of states. A new map of the same state (after a restart) has
the same regions, laid out in order of their oldest subcluster. A region beside a similar one may
get another neighbour than in a map that grew with the stream, because a subcluster is now compared
as it is, not as it was at its first vector.

This is layout only: it decides nothing about clusters.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from linkstream.engine.state import State
from linkstream.service.hexgrid import HexGrid

LIMIT = 60_000  # subclusters on a map
COMPARED = 24_000  # largest subclusters with which a new region is compared
_SKETCH = 256  # dimensions after a random projection, enough to find a neighbour
_BLOCK = 256
_GAP = 2.5  # free cells around a new region, besides those that it may grow into
_NARROW_GAP, _SEVERAL = 1.4, 300  # the gap if this many regions start at once
_CROWD = 3_000  # so many that most of them are gathered
_CAREFUL = 1_500  # regions with most vectors, which then get a place of their own
_GROWTH = 4.0  # size to which a new region may grow, in mean sizes

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Check = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Layout:
    """The map: arrays with one entry per subcluster, and edges from `a` to `b` as indices.

    `left_out` is the number of subclusters beyond the limit.
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
    """A map of at most `limit` subclusters: pass it the state of a clusterer from time to time.

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
        self.grid = HexGrid()

    def update(self, state: State, *, check: Check | None = None) -> Layout:
        """Return the map of a state; subclusters seen before keep their cells.

        Costs n·d steps for each new cluster.

        Args:
            state: the state of a clusterer.
            check: called now and then before anything gets a cell; it may raise to end the work.
        """
        numbers = state.numbers.tolist()
        self.grid.retain(set(numbers))
        placed = np.fromiter(
            (n in self.grid.cells for n in numbers), dtype=bool, count=len(numbers)
        )
        shown = self._shown(state, placed)
        if shown.sum() > placed.sum():
            arrivals = _Arrivals.of(state, placed, shown)
            arrivals.choose(state.counts)
            self._place(state, arrivals, _most_similar(state, arrivals, check or _no_check))
        return self._layout(state, shown)

    def _shown(self, state: State, placed: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Select the subclusters on the map, and the largest new ones up to the limit."""
        shown, new = placed.copy(), np.flatnonzero(~placed)
        room = max(0, self._limit - int(placed.sum()))
        shown[new[np.argsort(-state.counts[new], kind="stable")[:room]]] = True
        return shown

    def _place(self, state: State, arrivals: _Arrivals, beside: dict[int, int]) -> None:
        """Give arrivals their cells; `beside` has the rows that new regions lie beside."""
        grid, numbers = self.grid, state.numbers.tolist()
        rooms, gathered = arrivals.rooms(grid.mean_size), arrivals.gathered
        own = [*zip(arrivals.rows, arrivals.above, strict=True)]
        for place, (row, above) in enumerate(own):
            if gathered[place]:
                continue
            if above >= 0:
                grid.extend_region(numbers[row], numbers[above])
            else:
                near = beside.get(row)
                similar = None if near is None else numbers[near]
                grid.start_region(numbers[row], similar, room=rooms[row])
        late = [own[place] for place in np.flatnonzero(gathered).tolist()]
        spacing = arrivals.spacing()
        grid.gather_regions([(numbers[row], spacing[row]) for row, above in late if above < 0])
        for row, above in late:
            if above >= 0:
                grid.extend_region(numbers[row], numbers[above])

    def _layout(self, state: State, shown: npt.NDArray[np.bool_]) -> Layout:
        numbers = state.numbers[shown]
        x, y = self.grid.points(numbers.tolist())
        ends = np.searchsorted(state.numbers, state.edges)
        ends = ends[shown[ends].all(axis=1)]
        index = np.cumsum(shown, dtype=np.int64) - 1
        return Layout(
            subcluster=numbers,
            cluster=state.clusters[shown],
            count=state.counts[shown],
            x=x,
            y=y,
            a=index[ends[:, 0]],
            b=index[ends[:, 1]],
            left_out=len(shown) - len(numbers),
        )


@dataclass(frozen=True, slots=True)
class _Arrivals:
    """Rows of the state that need a cell, in the order in which they get one."""

    there: list[int]  # rows that have a cell
    rows: list[int] = field(default_factory=list)  # rows that need one
    # For each of `rows`, the row it is linked to, which comes earlier; −1 starts a region.
    above: list[int] = field(default_factory=list)
    # For each of `rows`, whether its region is gathered in a belt; empty before `choose`.
    gathered: list[bool] = field(default_factory=list)

    @classmethod
    def of(
        cls, state: State, placed: npt.NDArray[np.bool_], shown: npt.NDArray[np.bool_]
    ) -> _Arrivals:
        """Order the rows: first those linked to placed rows, then whole new regions by age."""
        waiting = shown & ~placed
        ends = np.searchsorted(state.numbers, state.edges)
        ends = ends[waiting[ends].any(axis=1) & shown[ends].all(axis=1)]
        linked: dict[int, list[int]] = {}
        for one, other in ends.tolist():
            linked.setdefault(one, []).append(other)
            linked.setdefault(other, []).append(one)
        arrivals = cls(np.flatnonzero(placed).tolist())
        left = set(np.flatnonzero(waiting).tolist())
        arrivals.walk(sorted(row for row in linked if row not in left), linked, left)
        for row in np.flatnonzero(waiting).tolist():
            if row in left:
                left.remove(row)
                arrivals.add(row, -1)
                arrivals.walk([row], linked, left)
        return arrivals

    def regions(self) -> tuple[Integers, Integers]:
        """Return where in `rows` new regions start, and how many subclusters they have."""
        starts = np.flatnonzero(np.array(self.above, dtype=np.int64) < 0)
        return starts, np.diff(np.append(starts, len(self.above)))

    def choose(self, counts: Integers) -> None:
        """Choose the regions to gather: none, or of very many those with the fewest vectors."""
        starts, sizes = self.regions()
        late = np.zeros(len(starts), dtype=bool)
        if len(starts) >= _CROWD:
            vectors = np.add.reduceat(counts[np.array(self.rows)], starts)
            late[np.argsort(-vectors, kind="stable")[_CAREFUL:]] = True
        first = len(self.rows) - int(sizes.sum())  # rows of regions that have a place
        self.gathered.extend([False] * first + np.repeat(late, sizes).tolist())

    def spacing(self) -> dict[int, int]:
        """Return how far apart regions in a belt must start, so that there are cells between."""
        starts, sizes = self.regions()
        apart = (2 + np.ceil(1.24 * np.sqrt(sizes) - 1.0)).astype(np.int64)
        apart[sizes == 1] = 2
        rows = [self.rows[start] for start in starts.tolist()]
        return dict(zip(rows, apart.tolist(), strict=True))

    def rooms(self, mean_size: float) -> dict[int, int]:
        """Return the room that each new region needs, so that it fits and can grow.

        `mean_size` is the mean number of subclusters of the regions on the map.
        """
        starts, sizes = self.regions()
        gap = _GAP + _radius(_GROWTH * mean_size) if len(starts) < _SEVERAL else _NARROW_GAP
        rooms = np.rint(gap + _radius(sizes.astype(np.float64)))
        rows = [self.rows[start] for start in starts.tolist()]
        return dict(zip(rows, rooms.astype(np.int64).tolist(), strict=True))

    def walk(self, starts: list[int], linked: dict[int, list[int]], left: set[int]) -> None:
        """Add all rows connected to these, breadth first."""
        queue = deque(starts)
        while queue:
            above = queue.popleft()
            for row in linked.get(above, ()):
                if row in left:
                    left.remove(row)
                    self.add(row, above)
                    queue.append(row)

    def add(self, row: int, above: int) -> None:
        """Append a row and the row it is linked to."""
        self.rows.append(row)
        self.above.append(above)


def _radius(cells: Floats | float) -> Floats | float:
    """Return the radius of a disc of so many cells."""
    return 0.55 * np.sqrt(cells)


def _no_check() -> None:
    """Never end the work."""


def _most_similar(state: State, arrivals: _Arrivals, check: Check) -> dict[int, int]:
    """For each row that starts a region, find the most similar earlier row, if similar enough."""
    careful = ~np.array(arrivals.gathered, dtype=bool)
    new_rows = np.array(arrivals.rows, dtype=np.int64)[careful]
    order = np.concatenate([np.array(arrivals.there, dtype=np.int64), new_rows])
    begins = np.array(arrivals.above, dtype=np.int64)[careful] < 0
    starts = len(arrivals.there) + np.flatnonzero(begins)
    if not len(starts):
        return {}
    known = np.arange(len(order))  # indices of the rows to compare with
    if len(order) > COMPARED:
        known = np.sort(np.argsort(-state.counts[order], kind="stable")[:COMPARED])
    there, new = _units(state.sums, order[known]), _units(state.sums, order[starts])
    ends = np.searchsorted(known, starts)  # of the earlier rows
    found: dict[int, int] = {}
    for first in range(0, len(starts), _BLOCK):
        check()
        stop = ends[first : first + _BLOCK]
        if not stop[-1]:
            continue
        cosines = new[first : first + _BLOCK] @ there[: stop[-1]].T
        for row, end in enumerate(stop.tolist()):
            cosines[row, end:] = -2.0
        best = np.argmax(cosines, axis=1)
        similar = np.flatnonzero(cosines[np.arange(len(best)), best] >= state.thresholds.lowest)
        rows, others = order[starts[first + similar]], order[known[best[similar]]]
        found.update(zip(rows.tolist(), others.tolist(), strict=True))
    return found


def _units(sums: Integers, rows: Integers) -> Singles:
    """Return the unit vectors of rows, projected at random if they are long."""
    found: Singles = sums[rows].astype(np.float32)
    if found.shape[1] > _SKETCH:
        mixed = np.random.default_rng(0).standard_normal(
            (found.shape[1], _SKETCH), dtype=np.float32
        )
        found = found @ mixed
    lengths: Singles = np.linalg.norm(found, axis=1, keepdims=True)
    found /= np.maximum(lengths, np.float32(1e-30))
    return found
