"""A hexagonal grid of cells in the plane, each for one subcluster; finds the nearest free cell.

Cells are the points of a triangular lattice, at distance 1. If a region has no room left around it,
cells between its own are used too, at distances of a half and then a quarter. A cell is one
integer, so that a step in some direction is an addition. `claims` holds the owner of each whole
cell within one step of an occupied cell. No region uses a cell that another claims, so there is
always a strip of empty cells between two regions.

Distances from the centre are those of an ellipse that is STRETCH times as wide as high.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

REACH = 16  # distance around a subcluster that is searched
WHOLE = 4  # finest steps between two whole cells
_BETWEEN = (2, 1)  # steps of the cells between whole cells
_BETWEEN_REACH = 3
_FORMER = 10_000  # cells of removed subclusters that are remembered
_ROW = 1 << 24
_HALF = 1 << 23
_TURN = math.pi * (3.0 - math.sqrt(5.0))  # the golden angle spreads directions evenly
_NARROW = (0.0, 0.12, -0.12)  # deviations from a direction in a search, in radians
_WIDE = (0.0, 0.4, -0.4, 0.8, -0.8, 1.2, -1.2)
_SECTORS = 64  # of directions
STRETCH = 1.6  # width of the map over its height: screens are wider than high
_HEIGHT = math.sqrt(3.0) / 2.0  # of a row
_SEVERAL = -1

Cell = int
Test = Callable[[Cell], bool]
Floats = npt.NDArray[np.float64]


def cell_at(q: int, r: int) -> Cell:
    """Return the cell of a column and a row, in finest steps; also the step of that size."""
    return r * _ROW + q


def where(cell: Cell) -> tuple[int, int]:
    """Return the column and row of a cell."""
    r = (cell + _HALF) // _ROW
    return cell - r * _ROW, r


def whole_cell(cell: Cell) -> Cell:
    """Return the whole cell nearest to a cell."""
    q, r = where(cell)
    return cell_at(round(q / WHOLE) * WHOLE, round(r / WHOLE) * WHOLE)


_SIX = ((1, 0), (0, 1), (-1, 1), (-1, 0), (0, -1), (1, -1))
_SEVEN = tuple(cell_at(WHOLE * q, WHOLE * r) for q, r in ((0, 0), *_SIX))


@functools.cache
def shells(step: int = WHOLE) -> tuple[tuple[Cell, ...], ...]:
    """Return the steps of a search, grouped by distance."""
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
    """Return how many shells of whole cells lie within a distance."""
    return sum(_squared(shell[0], 0) <= (reach * WHOLE) ** 2 for shell in shells())


@functools.cache
def clearing(room: int) -> tuple[Cell, ...]:
    """Return steps to the cells that must be unclaimed around the first cell of a new region.

    Every second cell of every second row is enough: a cell between them would claim one of them.
    """
    if room <= 2:
        return _SEVEN[: 1 if room < 2 else 7]
    span = range(-room - room % 2, room + 2, 2)
    wide = [(q, r) for q in span for r in span if q * q + q * r + r * r <= room * room]
    wide.sort(key=lambda step: step[0] ** 2 + step[1] ** 2)
    return tuple(cell_at(WHOLE * q, WHOLE * r) for q, r in wide)


class HexGrid:
    """The cells of all subclusters."""

    def __init__(self) -> None:
        self.cells: dict[int, Cell] = {}  # by the number of the subcluster
        self.region: dict[int, int] = {}  # likewise; regions are numbered in order
        self._occupied: dict[Cell, int] = {}
        self._claims: dict[Cell, int] = {}
        self._firsts: list[Cell] = []  # the first cell of each region
        self._sizes: list[int] = []
        self._former: dict[int, tuple[Cell, int]] = {}
        self._full: dict[tuple[Cell, int], int] = {}  # shells around a cell that have no room
        self._rims: dict[tuple[int, int], float] = {}  # distance of the last cell, by direction

    @property
    def mean_size(self) -> float:
        """The mean number of subclusters of a region; 1 if there is none."""
        return len(self.cells) / sum(size > 0 for size in self._sizes) if self.cells else 1.0

    def retain(self, numbers: set[int]) -> None:
        """Remove all subclusters but these."""
        gone = [number for number in self.cells if number not in numbers]
        for number in gone:
            cell, region = self.cells.pop(number), self.region.pop(number)
            del self._occupied[cell]
            self._sizes[region] -= 1
            self._former[number] = (cell, region)
        for number in gone:
            for step in _SEVEN:
                self._update_claim(whole_cell(self._former[number][0]) + step)
        if gone:
            self._full.clear()
            self._rims.clear()
        while len(self._former) > _FORMER:
            del self._former[next(iter(self._former))]

    def start_region(self, number: int, beside: int | None, *, room: int) -> None:
        """Start a region near a subcluster, or at the rim in a direction set by the number."""
        if self._restore(number):
            return
        good = self._clear(room)
        if beside is None:
            cell = self._search_outwards(0, number * _TURN, _NARROW, (room, good))
        else:
            start, rings = whole_cell(self.cells[beside]), shells()[: _within(min(REACH, 4 * room))]
            near = self._nearest(start, 0, (room, good), rings)
            far = (start, _bearing(start), _WIDE, (room, good))
            cell = self._search_outwards(*far) if near is None else near
        self._firsts.append(cell)
        self._sizes.append(0)
        self._occupy(number, cell, len(self._firsts) - 1)

    def gather_regions(self, wanted: list[tuple[int, int]]) -> None:
        """Start many regions in belts around all others.

        Args:
            wanted: the subcluster that starts each region, and its distance to the next such one.
        """
        left = [each for each in wanted if not self._restore(each[0])]
        inner = max(map(_distance, self._claims), default=0.0)
        for spacing in sorted({spacing for _, spacing in left}, reverse=True):
            numbers = [number for number, each in left if each == spacing]
            inner += spacing
            for number, cell in zip(numbers, _belt(spacing, inner, len(numbers)), strict=True):
                self._firsts.append(cell)
                self._sizes.append(0)
                self._occupy(number, cell, len(self._firsts) - 1)
                inner = max(inner, _distance(cell))

    def extend_region(self, number: int, beside: int) -> None:
        """Add a subcluster to a region, as near as possible to one of its subclusters.

        The cell lies around the region if there is room, else between the region's cells.
        """
        if self._restore(number):
            return
        region, start = self.region[beside], self.cells[beside]
        first, whole = self._firsts[region], whole_cell(start)
        radius = int(2.5 + 0.75 * math.sqrt(self._sizes[region]))  # of a disc, and some more
        free = functools.partial(self._free, region=region)
        cell = self._nearest(whole, first, (0, free), shells()[: _within(min(REACH, radius))])
        own = functools.partial(self._own, region=region)
        for step in _BETWEEN:
            if cell is None:
                cell = self._nearest(start, start, (-step, own), shells(step))
        if cell is None:
            cell = self._search_outwards(whole, _bearing(whole), _WIDE, (0, free))
        self._occupy(number, cell, region)

    def points(self, numbers: list[int]) -> tuple[Floats, Floats]:
        """Return the coordinates of subclusters in the plane."""
        cells = np.array([self.cells[number] for number in numbers], dtype=np.int64)
        r = (cells + _HALF) // _ROW
        q = cells - r * _ROW
        return (q + r / 2.0).astype(np.float64) / WHOLE, (r * _HEIGHT).astype(np.float64) / WHOLE

    def _restore(self, number: int) -> bool:
        """Return a removed subcluster to its old cell if the cell is free; tell whether it was."""
        cell, region = self._former.pop(number, (0, -1))
        taken = cell in self._occupied or self._claims.get(whole_cell(cell), region) != region
        if region < 0 or taken:
            return False
        self._occupy(number, cell, region)
        return True

    def _nearest(
        self,
        cell: Cell,
        towards: Cell,
        wanted: tuple[int, Test],
        rings: tuple[tuple[Cell, ...], ...],
    ) -> Cell | None:
        """Return the nearest good cell; among equally near ones, the nearest to `towards`."""
        room, good = wanted
        for shell in range(self._full.get((cell, room), 0), len(rings)):
            free = [there for step in rings[shell] if good(there := cell + step)]
            if free:
                self._full[cell, room] = shell
                return min(free, key=lambda there: (_squared(there, towards), there))
        self._full[cell, room] = max(len(rings), self._full.get((cell, room), 0))
        return None

    def _search_outwards(
        self, cell: Cell, angle: float, turns: tuple[float, ...], wanted: tuple[int, Test]
    ) -> Cell:
        """Return the first good whole cell in a direction, or in one close to it.

        The search begins a little before the last cell found in that direction.
        """
        room, good = wanted
        sector = (int(angle / math.tau * _SECTORS) % _SECTORS, room)
        x, y = _point(cell)
        start = max(0, int(self._rims.get(sector, 0.0) - _distance(cell)) - 3)
        ways = [(STRETCH * math.cos(angle + turn), math.sin(angle + turn)) for turn in turns]
        for far in range(start, _HALF):
            for dx, dy in ways:
                r = round((y + far * dy) / _HEIGHT)
                there = cell_at(WHOLE * round(x + far * dx - r / 2.0), WHOLE * r)
                if good(there):
                    self._rims[sector] = _distance(there)
                    return there
        raise AssertionError("the plane has no end")

    def _free(self, cell: Cell, region: int) -> bool:
        """Return whether a region may use a whole cell."""
        return cell not in self._occupied and self._claims.get(cell, region) == region

    def _own(self, cell: Cell, region: int) -> bool:
        """Return whether a cell is free and lies next to a cell of the region."""
        there = self._occupied.get(whole_cell(cell))
        return cell not in self._occupied and there is not None and self.region[there] == region

    def _clear(self, room: int) -> Test:
        """Return a test whether a region that needs so much room may start at a cell."""
        claims, steps = self._claims, clearing(room)

        def good(cell: Cell) -> bool:
            # A plain loop: a generator here would take most of the time of a map.
            for step in steps:  # noqa: SIM110
                if cell + step in claims:
                    return False
            return True

        return good

    def _occupy(self, number: int, cell: Cell, region: int) -> None:
        self.cells[number], self.region[number], self._occupied[cell] = cell, region, number
        self._sizes[region] += 1
        claims, whole = self._claims, whole_cell(cell)
        for step in _SEVEN if cell == whole else ():
            if claims.setdefault(cell + step, region) != region:
                claims[cell + step] = _SEVERAL

    def _update_claim(self, cell: Cell) -> None:
        """Update the owner of a whole cell after a removal."""
        near = (self._occupied.get(cell + step) for step in _SEVEN)
        owners = {self.region[number] for number in near if number is not None}
        if not owners:
            self._claims.pop(cell, None)
        else:
            self._claims[cell] = owners.pop() if len(owners) == 1 else _SEVERAL


def _point(cell: Cell) -> tuple[float, float]:
    q, r = where(cell)
    return (q + r / 2.0) / WHOLE, r * _HEIGHT / WHOLE


def _distance(cell: Cell) -> float:
    """Return the distance of a cell from the centre, as half the height of its ellipse."""
    x, y = _point(cell)
    return math.hypot(x / STRETCH, y)


def _bearing(cell: Cell) -> float:
    """Return the direction of a cell from the centre of the map."""
    x, y = _point(cell)
    return math.atan2(y, x / STRETCH)


def _belt(spacing: int, inner: float, count: int) -> list[Cell]:
    """Return whole cells around an ellipse, `spacing` apart, the nearest first."""
    area = count * spacing * spacing * _HEIGHT / (math.pi * STRETCH)
    outer = math.sqrt(inner * inner + area) + 2 * spacing
    high = int(outer / (_HEIGHT * spacing)) + 1
    wide = int(STRETCH * outer / spacing) + high // 2 + 1
    r, q = np.mgrid[-high : high + 1, -wide : wide + 1]
    x, y = (q + r / 2.0) * spacing, r * _HEIGHT * spacing
    far = np.hypot(x / STRETCH, y)
    chosen = np.flatnonzero((far >= inner).ravel())
    chosen = chosen[np.argsort(far.ravel()[chosen], kind="stable")[:count]]
    step = WHOLE * spacing
    cells: list[Cell] = (r.ravel()[chosen] * step * _ROW + q.ravel()[chosen] * step).tolist()
    return cells


def _squared(cell: Cell, other: Cell) -> int:
    """Return the squared distance of two cells, in finest steps."""
    (q, r), (column, row) = where(cell), where(other)
    dq, dr = column - q, row - r
    return dq * dq + dq * dr + dr * dr
