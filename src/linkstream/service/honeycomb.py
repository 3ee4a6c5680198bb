"""Cells in the plane, each for one subcluster: which are taken, which are free, and the nearest.

Cells are the points of a triangular lattice, one apart. A cell is one whole number, so that to go
a step in some direction is to add another. `claims` says which island each cell within one step of
a taken one belongs to; no island takes a cell that another claims, so there is always a strip of
empty cells between two.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

REACH = 16  # how far around a subcluster a place is looked for
_SECTORS = 64  # of the horizon
_FORMER = 10_000  # cells of subclusters that are gone, to be given back
_ROW = 1 << 24
_HALF = 1 << 23
_TURN = math.pi * (3.0 - math.sqrt(5.0))  # the golden angle: no two directions are near for long
_ASIDE = (0.0, 0.12, -0.12)  # how far from its direction one may go for a place nearer by
_ASTRAY = (0.0, 0.4, -0.4, 0.8, -0.8, 1.2, -1.2)
_HEIGHT = math.sqrt(3.0) / 2.0  # of a row
_SEVERAL = -1

Cell = int
Test = Callable[[Cell], bool]
Floats = npt.NDArray[np.float64]


def cell_at(q: int, r: int) -> Cell:
    """The cell of a column and a row; also the step that leads so far."""
    return r * _ROW + q


def where(cell: Cell) -> tuple[int, int]:
    """Column and row of a cell."""
    r = (cell + _HALF) // _ROW
    return cell - r * _ROW, r


AROUND = tuple(cell_at(*step) for step in ((1, 0), (0, 1), (-1, 1), (-1, 0), (0, -1), (1, -1)))
_SEVEN = (0, *AROUND)


@functools.cache
def shells() -> tuple[tuple[Cell, ...], ...]:
    """Steps by how far they lead, those of one distance together, up to REACH."""
    found: dict[int, list[Cell]] = {}
    span = range(-2 * REACH, 2 * REACH + 1)
    for q in span:
        for r in span:
            square = q * q + q * r + r * r
            if 0 < square <= REACH * REACH:
                found.setdefault(square, []).append(cell_at(q, r))
    return tuple(tuple(sorted(found[square])) for square in sorted(found))


@functools.cache
def _looked_at(room: int) -> int:
    """How many shells are looked at for a place; where islands are small and many, only a few."""
    reach = 4 * room if room else REACH
    return sum(_squared(shell[0], 0, 0) <= reach * reach for shell in shells())


@functools.cache
def clearing(room: int) -> tuple[Cell, ...]:
    """Steps to cells that nobody may claim where an island needs so much room around its first.

    Every second cell of every second row is enough: who lives between them claims one of them.
    """
    if room <= 2:
        return _SEVEN[: 1 if room < 2 else 7]
    span = range(-room - room % 2, room + 2, 2)
    wide = [(q, r) for q in span for r in span if q * q + q * r + r * r <= room * room]
    return tuple(cell_at(*step) for step in sorted(wide, key=lambda s: s[0] ** 2 + s[1] ** 2))


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
        self._ends: list[tuple[Cell, Cell]] = []  # of each island its first cell, and its newest
        self._former: dict[int, tuple[Cell, int]] = {}
        self._full: dict[tuple[Cell, int], int] = {}  # shells around a cell without such room
        self._rims: dict[tuple[int, int], float] = {}  # how far out there was room at last

    def keep(self, numbers: set[int]) -> None:
        """Let go of all subclusters but these."""
        gone = [number for number in self.cells if number not in numbers]
        for number in gone:
            cell = self.cells.pop(number)
            del self._taken[cell]
            self._former[number] = (cell, self.island.pop(number))
        for number in gone:
            for step in _SEVEN:
                self._claim_anew(self._former[number][0] + step)
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
            cell = self._near(self.cells[beside], 0, room, good)
        self._ends.append((cell, cell))
        self._take(number, cell, len(self._ends) - 1)

    def put(self, number: int, beside: int) -> None:
        """Another one of an island, as near as can be to one that lives there."""
        if self._gone_home(number):
            return
        island = self.island[beside]
        first, newest = self._ends[island]
        cell = self.cells[beside]
        if self._full.get((cell, 0), 0) == _looked_at(0):
            cell = newest
        cell = self._near(cell, first, 0, lambda there: self._free(there, island))
        self._ends[island] = (first, cell)
        self._take(number, cell, island)

    def points(self, numbers: list[int]) -> tuple[Floats, Floats]:
        """Where these live, in the plane."""
        cells = np.array([self.cells[number] for number in numbers], dtype=np.int64)
        r = (cells + _HALF) // _ROW
        q = cells - r * _ROW
        return (q + r / 2.0).astype(np.float64), (r * _HEIGHT).astype(np.float64)

    def _gone_home(self, number: int) -> bool:
        """Whether one that was here before has its old cell again."""
        cell, island = self._former.pop(number, (0, -1))
        if island < 0 or not self._free(cell, island):
            return False
        self._take(number, cell, island)
        return True

    def _near(self, cell: Cell, towards: Cell, room: int, good: Test) -> Cell:
        """The nearest good cell to one; of those as near, the nearest to another."""
        rings = shells()[: _looked_at(room)]
        q, r = where(towards)
        for place in range(self._full.get((cell, room), 0), len(rings)):
            free = [there for step in rings[place] if good(there := cell + step)]
            if free:
                self._full[cell, room] = place
                return min(free, key=lambda there: (_squared(there, q, r), there))
        self._full[cell, room] = len(rings)
        x, y = _point(cell)
        return self._outwards(cell, math.atan2(y, x), _ASTRAY, (room, good))

    def _outwards(
        self, cell: Cell, angle: float, turns: tuple[float, ...], wanted: tuple[int, Test]
    ) -> Cell:
        """The first good cell on the way from one into a direction, or into one like it.

        Begins a little before the place where the last one of that direction ended.
        """
        room, good = wanted
        sector = (int(angle / math.tau * _SECTORS) % _SECTORS, room)
        x, y = _point(cell)
        start = max(0, int(self._rims.get(sector, 0.0) - math.hypot(x, y)) - 3)
        ways = [(x, y, math.cos(angle + turn), math.sin(angle + turn)) for turn in turns]
        for far in range(start, _HALF):
            for x, y, dx, dy in ways:
                r = round((y + far * dy) / _HEIGHT)
                there = cell_at(round(x + far * dx - r / 2.0), r)
                if good(there):
                    self._rims[sector] = math.hypot(*_point(there))
                    return there
        raise AssertionError("the plane has no end")

    def _free(self, cell: Cell, island: int) -> bool:
        """Whether an island may grow into a cell."""
        return cell not in self._taken and self._claims.get(cell, island) == island

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
        claims = self._claims
        for step in _SEVEN:
            if claims.setdefault(cell + step, island) != island:
                claims[cell + step] = _SEVERAL

    def _claim_anew(self, cell: Cell) -> None:
        """Whose a cell is after somebody has left."""
        near = (self._taken.get(cell + step) for step in _SEVEN)
        owners = {self.island[number] for number in near if number is not None}
        if not owners:
            self._claims.pop(cell, None)
        else:
            self._claims[cell] = owners.pop() if len(owners) == 1 else _SEVERAL


def _point(cell: Cell) -> tuple[float, float]:
    q, r = where(cell)
    return q + r / 2.0, r * _HEIGHT


def _squared(cell: Cell, q: int, r: int) -> int:
    """The square of the distance from a cell to a column and row."""
    column, row = where(cell)
    dq, dr = column - q, row - r
    return dq * dq + dq * dr + dr * dr
