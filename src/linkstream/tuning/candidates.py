"""Candidates of a search: which thresholds to try, and which one to take.

Two vectors of one cluster have similarity about T_c². So T_c² is searched between the median
similarity of strangers (vectors of different identities) and the highest similarities of pairs of
one identity. T_s is searched over the same range: above its top no vector would join a subcluster,
and every vector would start one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Links
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space

Vectors = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_PAIRS = 4000
_DIGITS = 4  # of a threshold; the last bits of a similarity differ between machines
_LOWEST, _HIGHEST = 0.01, 0.98
_NARROWEST = 0.1
HIGHEST_JOIN = 1.0  # `Point.join` for evidence="cluster": T_s at the top of the range

# Choice of a candidate, measured on eleven labelled sets with three ways to halve their
# identities: rules that look at the neighbourhood gain about 0.003 accuracy on the other half over
# taking the best trial, and hardly differ among themselves. This rule came first of about a hundred
# variants, by less than a thousandth, on the same sets.
_WIDTH = 0.05  # of the neighbourhood, in the unit cube of the search
_PRIOR_TRIALS = 0.5  # trials with the median score that are added to every neighbourhood
_SPACE_DISTANCE = 10.0  # so that trials in different spaces are not neighbours


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """Settings of a clusterer: thresholds, space, and further options of `Links`."""

    thresholds: Thresholds
    space: Space = field(default_factory=Space)
    options: Mapping[str, Any] = field(default_factory=dict)

    def links(self, **options: Any) -> Links:
        """Return a clusterer without vectors; `options` override those of the candidate."""
        chosen = {"space": self.space, **self.options, **options}
        return Links.from_thresholds(self.thresholds, **chosen)


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the search: three coordinates in [0, 1].

    Attributes:
        pair: position of T_c² between strangers and the closest pairs of one identity.
        join: position of T_s in the same range.
        pull: position of T_p between T_c² and 1.
    """

    pair: float
    join: float
    pull: float

    def with_join(self, join: float | None) -> Point:
        """Return the point with this `join`, or the point itself for None."""
        return self if join is None else replace(self, join=join)


def rounded_thresholds(squared: float, joined: float, pull: float) -> Thresholds:
    """Return T_c from its square, T_s, and T_p this part of the way from T_c² to 1, rounded."""
    t_c = round(math.sqrt(squared), _DIGITS)
    t_p = t_c * t_c + pull * (1.0 - t_c * t_c)
    # Rounded up, since T_p must not lie below T_c².
    t_p = min(math.ceil(t_p * 10**_DIGITS) / 10**_DIGITS, 1.0)
    return Thresholds(t_c, round(joined, _DIGITS), t_p)


@dataclass(frozen=True, slots=True)
class Range:
    """The range of similarities to search, and the similarities of pairs of one identity."""

    low: float
    high: float
    same: Floats

    def thresholds(self, point: Point) -> Thresholds:
        """Return the thresholds of a point, rounded to four digits."""
        squared, joined = self._similarity(point.pair), self._similarity(point.join)
        return rounded_thresholds(squared, joined, point.pull)

    def first_points(self) -> Iterator[Point]:
        """Yield points with T_c² at quantiles of the pairs of one identity, and T_s around it."""
        for quantile in (0.02, 0.1, 0.25, 0.5):
            similarity = float(np.quantile(self.same, quantile))
            for above in (-0.05, 0.1):
                pair, join = self._coordinate(similarity), self._coordinate(similarity + above)
                yield Point(pair, join, 0.4)

    def _similarity(self, coordinate: float) -> float:
        return self.low + coordinate * (self.high - self.low)

    def _coordinate(self, similarity: float) -> float:
        return min(max((similarity - self.low) / (self.high - self.low), 0.0), 1.0)


def design(found: Range, n: int, *, seed: int, join: float | None = None) -> list[Point]:
    """Return the first n points of a search: some from the data, the others evenly spread."""
    first = list(found.first_points())[:n]
    points = first + _evenly_spread(n - len(first), seed=seed)
    return [point.with_join(join) for point in points]


def similarity_range(X: Vectors, y: Labels, space: Space, *, seed: int) -> Range:
    """Return the range from the median of strangers to the 95 % quantile of one identity.

    The cost does not depend on the number of vectors: pairs are drawn at random.
    """
    rng = np.random.default_rng(seed)
    ours, theirs = _pairs_of_one_identity(y, rng), _pairs_of_strangers(y, rng)
    rows, positions = np.unique(np.concatenate([ours, theirs], axis=1), return_inverse=True)
    unit = _unit(space.centre(X[rows]))
    first, second = positions.reshape(2, -1)
    similarity = np.einsum("ij,ij->i", unit[first], unit[second])
    same, strangers = np.split(similarity, [ours.shape[1]])
    high = min(max(float(np.quantile(same, 0.95)), _LOWEST + _NARROWEST), _HIGHEST)
    low = min(max(float(np.median(strangers)), _LOWEST), high - _NARROWEST)
    return Range(round(max(low, _LOWEST), 3), round(high, 3), same.round(3))


def best_neighbourhood(points: Floats, scores: Floats, complete: npt.NDArray[np.bool_]) -> int:
    """Return the trial whose neighbourhood scores best, among those judged in every order.

    A point is the number of a space, then a point in it. The score of a neighbourhood is the mean
    of its trials, weighted by distance. The median of all trials is mixed in, so that a good trial
    without neighbours counts for less than one among others as good.
    """
    scaled = points * np.array([_SPACE_DISTANCE, 1.0, 1.0, 1.0])
    squared = np.sum((scaled[:, np.newaxis] - scaled[np.newaxis]) ** 2, axis=2)
    weights = np.exp(-squared / (2.0 * _WIDTH * _WIDTH))
    prior = float(np.median(scores))
    means = (weights @ scores + _PRIOR_TRIALS * prior) / (weights.sum(axis=1) + _PRIOR_TRIALS)
    return int(np.argmax(np.where(complete, means, -np.inf)))


def _evenly_spread(n: int, *, seed: int) -> list[Point]:
    """Return points that fill the cube evenly for any n: multiples of irrational steps."""
    root = 1.2207440846057596  # x⁴ = x + 1, the golden ratio of three dimensions
    steps = np.array([1.0 / root, 1.0 / root**2, 1.0 / root**3])
    offset = np.random.default_rng(seed).random(3)
    points = (offset + np.arange(1, n + 1)[:, np.newaxis] * steps) % 1.0
    return [Point(*map(float, point)) for point in points]


def _pairs_of_one_identity(y: Labels, rng: np.random.Generator) -> Labels:
    """Draw pairs of one identity; every vector is equally likely to be drawn first."""
    order = np.argsort(y, kind="stable")
    _, starts, sizes = np.unique(y[order], return_index=True, return_counts=True)
    size = np.repeat(sizes, sizes)
    start = np.repeat(starts, sizes)
    first = rng.choice(np.flatnonzero(size > 1), _PAIRS)
    shift = 1 + rng.integers(0, size[first] - 1)
    second = start[first] + (first - start[first] + shift) % size[first]
    return np.stack([order[first], order[second]])


def _pairs_of_strangers(y: Labels, rng: np.random.Generator) -> Labels:
    first = rng.integers(0, len(y), 20 * _PAIRS)
    second = rng.integers(0, len(y), 20 * _PAIRS)
    strangers = np.flatnonzero(y[first] != y[second])[:_PAIRS]
    if len(strangers):
        return np.stack([first, second])[:, strangers]
    # No pair of strangers was drawn: compare a vector of the rarest identity with all others.
    rare = y == np.argmin(np.bincount(y))
    others = np.flatnonzero(~rare)
    return np.stack([np.full(len(others), np.flatnonzero(rare)[0]), others])


def _unit(rows: Floats) -> Floats:
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, np.newaxis]
    return np.asarray(rows / np.maximum(lengths, 1e-12))
