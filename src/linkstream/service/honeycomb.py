"""Cells in the plane, each for one subcluster: which are taken, which are free, and the nearest.

Cells are the points of a triangular lattice, one apart. Where an island has no room left around it,
cells between its own are taken too, a half and then a quarter apart. A cell is one whole number, so
that to go a step in some direction is to add another. `claims` says whose each whole cell is that
lies within one step of a taken one; no island takes a cell that another claims, so there is always
a strip of empty cells between two.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

REACH = 16  # how far around a subcluster a place is looked for
WHOLE = 4  # of the finest steps in the distance of two whole cells
_BETWEEN = (2, 1)  # steps of the cells between them
_BETWEEN_REACH = 3
_FORMER = 10_000  # cells of subclusters that are gone, to be given back
_ROW = 1 << 24
_HALF = 1 << 23
_TURN = math.pi * (3.0 - math.sqrt(5.0))  # the golden angle: no two directions are near for long
_ASIDE = (0.0, 0.12, -0.12)  # how far from its direction one may go for a place nearer by
_ASTRAY = (0.0, 0.4, -0.4, 0.8, -0.8, 1.2, -1.2)
_SECTORS = 64  # of the horizon
_HEIGHT = math.sqrt(3.0) / 2.0  # of a row
_SEVERAL = -1

Cell = int
Test = Callable[[Cell], bool]
Floats = npt.NDArray[np.float64]


def cell_at(q: int, r: int) -> Cell:
    """The cell of a column and a row, in finest steps; also the step that leads so far."""
    return r * _ROW + q


def where(cell: Cell) -> tuple[int, int]:
    """Column and row of a cell."""
    r = (cell + _HALF) // _ROW
    return cell - r * _ROW, r


def home(cell: Cell) -> Cell:
    """The whole cell that a cell lies at, or next to."""
    q, r = where(cell)
    return cell_at(round(q / WHOLE) * WHOLE, round(r / WHOLE) * WHOLE)


_SIX = ((1, 0), (0, 1), (-1, 1), (-1, 0), (0, -1), (1, -1))
_SEVEN = tuple(cell_at(WHOLE * q, WHOLE * r) for q, r in ((0, 0), *_SIX))


@functools.cache
def shells(step: int = WHOLE) -> tuple[tuple[Cell, ...], ...]:
    """Steps by how far they lead, those of one distance together, up to the reach of a search."""
    reach = (REACH if step == WHOLE else _BETWEEN_REACH) * WHOLE // step
    found: dict[int, list[Cell]] = {}
    for q in range(-2 * reach, 2 * reach + 1):
        for r in range(-2 * reach, 2 * reach + 1):
            square = q * q + q * r + r * r
            if 0 < square <= reach * reach:
                found.setdefault(square, []).append(cell_at(step * q, step * r))
    return tuple(tuple(sorted(found[square])) for square in sorted(found))


@functools.cache
def _within(reach: int) -> int:
    """How many shells of whole cells lie within a distance."""
    return sum(_squared(shell[0], 0) <= (reach * WHOLE) ** 2 for shell in shells())


@functools.cache
def clearing(room: int) -> tuple[Cell, ...]:
    """Steps to cells that nobody may claim where an island needs so much room around its first.

    Every second cell of every second row is enough: who lives between them claims one of them.
    """
    if room <= 2:
        return _SEVEN[: 1 if room < 2 else 7]
    span = range(-room - room % 2, room + 2, 2)
    wide = [(q, r) for q in span for r in span if q * q + q * r + r * r <= room * room]
    wide.sort(key=lambda step: step[0] ** 2 + step[1] ** 2)
    return tuple(cell_at(WHOLE * q, WHOLE * r) for q, r in wide)


class Honeycomb:
    """Who lives where.

    Attributes:
        cells: the cell of each subcluster, by number.
        island: the island of each, by number; islands are numbered in order.
    """

    def __init__(self) -> None:
        self.cells: dict[int, Cell] = {}
        self.island: dict[int, int] = {}
        self._taken: dict[Cell, int] = {}
        self._claims: dict[Cell, int] = {}
        self._firsts: list[Cell] = []  # of each island, where it began
        self._sizes: list[int] = []
        self._former: dict[int, tuple[Cell, int]] = {}
        self._full: dict[tuple[Cell, int], int] = {}  # shells around a cell without such room
        self._rims: dict[tuple[int, int], float] = {}  # how far out there was room at last

    @property
    def usual(self) -> float:
        """How many subclusters an island has, on average; 1 where there is none."""
        return len(self.cells) / sum(size > 0 for size in self._sizes) if self.cells else 1.0

    def keep(self, numbers: set[int]) -> None:
        """Let go of all subclusters but these."""
        gone = [number for number in self.cells if number not in numbers]
        for number in gone:
            cell, island = self.cells.pop(number), self.island.pop(number)
            del self._taken[cell]
            self._sizes[island] -= 1
            self._former[number] = (cell, island)
        for number in gone:
            for step in _SEVEN:
                self._claim_anew(home(self._former[number][0]) + step)
        if gone:
            self._full.clear()
            self._rims.clear()
        while len(self._former) > _FORMER:
            del self._former[next(iter(self._former))]

    def found(self, number: int, beside: int | None, *, room: int) -> None:
        """A new island: near a subcluster, or at the shore in a direction of the number's own."""
        if self._gone_home(number):
            return
        good = self._clear(room)
        if beside is None:
            cell = self._outwards(0, number * _TURN, _ASIDE, (room, good))
        else:
            start, rings = home(self.cells[beside]), shells()[: _within(min(REACH, 4 * room))]
            near = self._near(start, 0, (room, good), rings)
            far = (start, _bearing(start), _ASTRAY, (room, good))
            cell = self._outwards(*far) if near is None else near
        self._firsts.append(cell)
        self._sizes.append(0)
        self._take(number, cell, len(self._firsts) - 1)

    def put(self, number: int, beside: int) -> None:
        """Another one of an island, as near as can be to one that lives there.

        Around the island, if there is room; or else between those of the island.
        """
        if self._gone_home(number):
            return
        island, start = self.island[beside], self.cells[beside]
        first, whole = self._firsts[island], home(start)
        wide = int(2.5 + 0.75 * math.sqrt(self._sizes[island]))  # of a disc, and some more
        free = functools.partial(self._free, island=island)
        cell = self._near(whole, first, (0, free), shells()[: _within(min(REACH, wide))])
        own = functools.partial(self._own, island=island)
        for step in _BETWEEN:
            if cell is None:
                cell = self._near(start, start, (-step, own), shells(step))
        if cell is None:
            cell = self._outwards(whole, _bearing(whole), _ASTRAY, (0, free))
        self._take(number, cell, island)

    def points(self, numbers: list[int]) -> tuple[Floats, Floats]:
        """Where these live, in the plane."""
        cells = np.array([self.cells[number] for number in numbers], dtype=np.int64)
        r = (cells + _HALF) // _ROW
        q = cells - r * _ROW
        return (q + r / 2.0).astype(np.float64) / WHOLE, (r * _HEIGHT).astype(np.float64) / WHOLE

    def _gone_home(self, number: int) -> bool:
        """Whether one that was here before has its old cell again."""
        cell, island = self._former.pop(number, (0, -1))
        if island < 0 or cell in self._taken or self._claims.get(home(cell), island) != island:
            return False
        self._take(number, cell, island)
        return True

    def _near(
        self,
        cell: Cell,
        towards: Cell,
        wanted: tuple[int, Test],
        rings: tuple[tuple[Cell, ...], ...],
    ) -> Cell | None:
        """The nearest good cell to one; of those as near, the nearest to another."""
        room, good = wanted
        for place in range(self._full.get((cell, room), 0), len(rings)):
            free = [there for step in rings[place] if good(there := cell + step)]
            if free:
                self._full[cell, room] = place
                return min(free, key=lambda there: (_squared(there, towards), there))
        self._full[cell, room] = max(len(rings), self._full.get((cell, room), 0))
        return None

    def _outwards(
        self, cell: Cell, angle: float, turns: tuple[float, ...], wanted: tuple[int, Test]
    ) -> Cell:
        """The first good whole cell on the way from one into a direction, or into one like it.

        Begins a little before the place where the last one of that direction ended.
        """
        room, good = wanted
        sector = (int(angle / math.tau * _SECTORS) % _SECTORS, room)
        x, y = _point(cell)
        start = max(0, int(self._rims.get(sector, 0.0) - math.hypot(x, y)) - 3)
        ways = [(math.cos(angle + turn), math.sin(angle + turn)) for turn in turns]
        for far in range(start, _HALF):
            for dx, dy in ways:
                r = round((y + far * dy) / _HEIGHT)
                there = cell_at(WHOLE * round(x + far * dx - r / 2.0), WHOLE * r)
                if good(there):
                    self._rims[sector] = math.hypot(*_point(there))
                    return there
        raise AssertionError("the plane has no end")

    def _free(self, cell: Cell, island: int) -> bool:
        """Whether an island may grow into a whole cell."""
        return cell not in self._taken and self._claims.get(cell, island) == island

    def _own(self, cell: Cell, island: int) -> bool:
        """Whether a cell is free and lies by one that the island has."""
        there = self._taken.get(home(cell))
        return cell not in self._taken and there is not None and self.island[there] == island

    def _clear(self, room: int) -> Test:
        """Whether an island that needs so much room may begin at a cell."""
        claims, steps = self._claims, clearing(room)

        def good(cell: Cell) -> bool:
            # A plain loop: with a generator this test takes most of the time of a map.
            for step in steps:  # noqa: SIM110
                if cell + step in claims:
                    return False
            return True

        return good

    def _take(self, number: int, cell: Cell, island: int) -> None:
        self.cells[number], self.island[number], self._taken[cell] = cell, island, number
        self._sizes[island] += 1
        claims, whole = self._claims, home(cell)
        for step in _SEVEN if cell == whole else ():
            if claims.setdefault(cell + step, island) != island:
                claims[cell + step] = _SEVERAL

    def _claim_anew(self, cell: Cell) -> None:
        """Whose a whole cell is after somebody has left."""
        near = (self._taken.get(cell + step) for step in _SEVEN)
        owners = {self.island[number] for number in near if number is not None}
        if not owners:
            self._claims.pop(cell, None)
        else:
            self._claims[cell] = owners.pop() if len(owners) == 1 else _SEVERAL


def _point(cell: Cell) -> tuple[float, float]:
    q, r = where(cell)
    return (q + r / 2.0) / WHOLE, r * _HEIGHT / WHOLE


def _bearing(cell: Cell) -> float:
    """The direction of a cell, seen from the middle of the map."""
    x, y = _point(cell)
    return math.atan2(y, x)


def _squared(cell: Cell, other: Cell) -> int:
    """The square of the distance of two cells, in finest steps."""
    (q, r), (column, row) = where(cell), where(other)
    dq, dr = column - q, row - r
    return dq * dq + dq * dr + dr * dr
