"""Where to look: ranges for the thresholds and first trials, read from labelled pairs.

Two members of one cluster have similarity about T_c², so T_c² is sought where pairs of one
identity lie, down to the similarity of strangers. T_s is sought over the same range: above the
top of it nothing would join, and each vector would become its own subcluster (the cliff).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space
from linkstream.tuning.candidate import Labels, Vectors

_PAIRS = 4000
_DIGITS = 4  # of a threshold; the last bits of a similarity differ between machines
_LOWEST, _HIGHEST = 0.01, 0.98
_NARROWEST = 0.1
FINE = 1.0  # the place of T_s where whole clusters give the evidence: the top of the range


@dataclass(frozen=True, slots=True)
class Point:
    """A place in the search space, each coordinate in [0, 1].

    Attributes:
        pair: where T_c² lies between strangers and the closest pairs of one identity.
        join: where T_s lies in the same range.
        pull: how far T_p lies from T_c² towards 1.
    """

    pair: float
    join: float
    pull: float

    def with_join(self, join: float | None) -> Point:
        """The same place with this T_s, if there is one."""
        return self if join is None else replace(self, join=join)


@dataclass(frozen=True, slots=True)
class Range:
    """The similarities of a space that thresholds are sought in, and those of one identity."""

    low: float
    high: float
    same: npt.NDArray[np.float64]

    def thresholds(self, point: Point) -> Thresholds:
        """The thresholds of a point, rounded to what is worth writing down."""
        squared = self._at(point.pair)
        t_c = round(math.sqrt(squared), _DIGITS)
        t_p = t_c * t_c + point.pull * (1.0 - t_c * t_c)
        # Rounded up, since T_p may not lie below T_c².
        t_p = min(math.ceil(t_p * 10**_DIGITS) / 10**_DIGITS, 1.0)
        return Thresholds(t_c, round(self._at(point.join), _DIGITS), t_p)

    def starts(self) -> Iterator[Point]:
        """Points worth trying first: T_c² where pairs of one identity lie, T_s around it."""
        for quantile in (0.02, 0.1, 0.25, 0.5):
            similarity = float(np.quantile(self.same, quantile))
            for above in (-0.05, 0.1):
                yield Point(self._place(similarity), self._place(similarity + above), 0.4)

    def _at(self, place: float) -> float:
        return self.low + place * (self.high - self.low)

    def _place(self, similarity: float) -> float:
        return min(max((similarity - self.low) / (self.high - self.low), 0.0), 1.0)


def design(found: Range, n: int, *, seed: int, join: float | None = None) -> list[Point]:
    """The first n points: starts from the data, then points spread evenly."""
    starts = list(found.starts())[:n]
    points = starts + _even_spread(n - len(starts), seed=seed)
    return [point.with_join(join) for point in points]


def _even_spread(n: int, *, seed: int) -> list[Point]:
    """Points that fill the cube evenly however many there are: multiples of irrational steps."""
    root = 1.2207440846057596  # x⁴ = x + 1, the golden ratio of three dimensions
    steps = np.array([1.0 / root, 1.0 / root**2, 1.0 / root**3])
    offset = np.random.default_rng(seed).random(3)
    places = (offset + np.arange(1, n + 1)[:, np.newaxis] * steps) % 1.0
    return [Point(*map(float, place)) for place in places]


def similarity_range(X: Vectors, y: Labels, space: Space, *, seed: int) -> Range:
    """From strangers' median similarity to the top of that of one identity, in a space.

    Costs a seeded sample of pairs, however long the stream.
    """
    rng = np.random.default_rng(seed)
    ours, theirs = _pairs_of_one_identity(y, rng), _pairs_of_strangers(y, rng)
    rows, places = np.unique(np.concatenate([ours, theirs], axis=1), return_inverse=True)
    unit = _unit(space.centre(X[rows]))
    first, second = places.reshape(2, -1)
    similarity = np.einsum("ij,ij->i", unit[first], unit[second])
    same, strangers = np.split(similarity, [ours.shape[1]])
    high = min(max(float(np.quantile(same, 0.95)), _LOWEST + _NARROWEST), _HIGHEST)
    low = min(max(float(np.median(strangers)), _LOWEST), high - _NARROWEST)
    return Range(round(max(low, _LOWEST), 3), round(high, 3), same.round(3))


def _pairs_of_one_identity(y: Labels, rng: np.random.Generator) -> Labels:
    """Each vector as likely as any other, so that no big identity rules the quantiles."""
    order = np.argsort(y, kind="stable")
    starts, sizes = _runs(y[order])
    size = np.repeat(sizes, sizes)
    start = np.repeat(starts, sizes)
    place = np.flatnonzero(size > 1)
    first = rng.choice(place, _PAIRS)
    shift = 1 + rng.integers(0, size[first] - 1)
    second = start[first] + (first - start[first] + shift) % size[first]
    return np.stack([order[first], order[second]])


def _pairs_of_strangers(y: Labels, rng: np.random.Generator) -> Labels:
    first = rng.integers(0, len(y), 20 * _PAIRS)
    second = rng.integers(0, len(y), 20 * _PAIRS)
    strangers = np.flatnonzero(y[first] != y[second])[:_PAIRS]
    if len(strangers):
        return np.stack([first, second])[:, strangers]
    # Hardly any strangers: set one of the rarest identity against the others.
    rare = y == np.argmin(np.bincount(y))
    others = np.flatnonzero(~rare)
    return np.stack([np.full(len(others), np.flatnonzero(rare)[0]), others])


def _runs(y: Labels) -> tuple[Labels, Labels]:
    _, starts, sizes = np.unique(y, return_index=True, return_counts=True)
    return starts, sizes


def _unit(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, np.newaxis]
    unit: npt.NDArray[np.float64] = rows / np.maximum(lengths, 1e-12)
    return unit
