"""Search the thresholds of a rebuild on labelled vectors: T_c and T_p, by trying a fixed grid.

A rebuild groups vectors by margin linkage, so its labels depend on T_c and T_p alone (T_s only cuts
the groups into subclusters). T_c² takes evenly spaced values from the similarity of strangers
(vectors of different labels) to that of the closest vectors of one label; T_p lies a part of the
way from T_c² to 1. Each pair of values groups the vectors once. The pair whose neighbourhood on the
grid scores best is taken, so that no single lucky pair is.

Numerics: similarities are products of 25-bit centroids, which are exact, and the rest is computed
in one order. So the result is the same on any machine and with either engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from linkstream.engine.linkage import (
    CENTROID_SCALE,
    UNRESTRICTED,
    Floats,
    Integers,
    Progress,
    Unite,
    centroids,
)
from linkstream.identity.content import Content
from linkstream.paper.thresholds import Thresholds

PAIRS = tuple(round(0.04 + 0.06 * step, 2) for step in range(17))  # T_c² from strangers to closest
PULLS = tuple(round(0.1 * step, 1) for step in range(11))  # T_p from T_c² to 1
_NEIGHBOURS = {-1: 1.0, 0: 2.0, 1: 1.0}  # weights of a neighbourhood along each axis, by step
_CLOSEST = 0.95  # quantile of the similarities of one label
_LOWEST, _HIGHEST = 0.01, 0.999  # similarities
_NARROWEST = 0.1  # least width of the range, as a part of what lies above its lower end
_DIGITS = 4  # of a threshold


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Labelled vectors.

    Attributes:
        sums: the vectors in fixed point, one a row.
        masses: the weight of each in the tests of linkage.
        labels: the label of each.
        shares: how much each counts in the score.
    """

    sums: Integers
    masses: Floats
    labels: Integers
    shares: Floats

    @classmethod
    def of(cls, content: Content, labels: Integers, shares: Floats | None = None) -> Examples:
        """Return the vectors of a content in canonical order; `shares` None counts all alike."""
        order = np.lexsort(content.digests().T[::-1])
        counts = np.ones(len(order)) if shares is None else shares
        masses = content.weights().astype(np.float64)
        return cls(content.shares(order), masses[order], labels[order], counts[order])

    def __len__(self) -> int:
        return len(self.labels)

    def part(self, rows: Integers) -> Examples:
        """Return some of the vectors."""
        return Examples(self.sums[rows], self.masses[rows], self.labels[rows], self.shares[rows])

    def similarity_range(self) -> tuple[float, float]:
        """Return the median similarity of strangers, and that of the closest of one label.

        Every vector with others of its label counts alike, however many they are.
        """
        units = centroids(self.sums)
        similarity = units @ units.T / CENTROID_SCALE**2
        alike = self.labels[:, np.newaxis] == self.labels
        sizes = alike.sum(axis=1, dtype=np.float64)
        np.fill_diagonal(alike, val=False)
        weights = np.broadcast_to((1.0 / np.maximum(sizes - 1.0, 1.0))[:, np.newaxis], alike.shape)
        same = _quantile(similarity[alike], weights[alike], _CLOSEST)
        apart = similarity[self.labels[:, np.newaxis] != self.labels]
        strangers = float(np.median(apart)) if len(apart) else _LOWEST
        low = min(max(strangers, _LOWEST), _HIGHEST - 0.001)
        return low, min(max(same, low + _NARROWEST * (1.0 - low)), _HIGHEST)


# Returns the score of the groups of examples, from 0 to 1.
Score = Callable[[Examples, Integers], float]


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The thresholds that are tried, by place on the grid."""

    pairs: Floats  # values of T_c²
    join: float  # T_s

    @classmethod
    def over(cls, low: float, high: float, join: float | None = None) -> Grid:
        """Return the grid over a range of similarities; `join` None takes its top as T_s."""
        values = [low + part * (high - low) for part in PAIRS]
        return cls(np.array(values), round(high, _DIGITS) if join is None else join)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of values of T_c² and T_p."""
        return len(self.pairs), len(PULLS)

    def at(self, place: int) -> Thresholds:
        """Return the thresholds at a place."""
        pair, pull = divmod(place, len(PULLS))
        t_c = round(math.sqrt(float(self.pairs[pair])), _DIGITS)
        t_p = t_c * t_c + PULLS[pull] * (1.0 - t_c * t_c)
        # Rounded up, since T_p must not lie below T_c².
        return Thresholds(t_c, self.join, min(math.ceil(t_p * 10**_DIGITS) / 10**_DIGITS, 1.0))

    def scores(
        self, examples: Examples, unite: Unite, score: Score, progress: Progress | None = None
    ) -> Floats:
        """Return the score at each place; `progress` is called with the share that is done."""
        n = len(self.pairs) * len(PULLS)
        found = np.empty(n)
        for place in range(n):
            found[place] = score(examples, grouped(examples, self.at(place), unite))
            if progress is not None:
                progress((place + 1) / n)
        return found

    def best(self, scores: Sequence[Floats]) -> int:
        """Return the place with the best neighbourhood, in the mean of several scores.

        T_p is above T_c², its lower limit, below which there are no neighbours. Of equals the first
        is taken: the lowest T_c, then the lowest T_p.
        """
        mean = np.mean(scores, axis=0).reshape(self.shape)
        found = _smoothed(_smoothed(mean).T).T.round(9)
        found[:, 0] = -1.0
        return int(np.argmax(found))


def part_of(progress: Progress | None, start: float, end: float) -> Progress | None:
    """Return what reports the progress of one part of the work, from `start` to `end`."""
    return progress and (lambda share: progress(start + share * (end - start)))


def grouped(examples: Examples, thresholds: Thresholds, unite: Unite) -> Integers:
    """Return the group of each vector: the lowest row in it."""
    found = unite(examples.sums, examples.masses, thresholds, UNRESTRICTED, None)
    return found.groups(len(examples))


def agreement(examples: Examples, groups: Integers) -> float:
    """Return how well groups agree with the labels: the F1 of B-cubed precision and recall.

    Precision is the share of a vector's group that has its label, recall the share of its label
    that is in its group: means over the vectors, in their shares. A vector counts for itself.
    """
    labels, groups = (np.unique(each, return_inverse=True)[1] for each in (examples.labels, groups))
    cells, cell = np.unique(groups * (labels.max() + 1) + labels, return_inverse=True)
    both = np.bincount(cell, examples.shares)
    ours = np.bincount(groups, examples.shares)[cells // (labels.max() + 1)]
    theirs = np.bincount(labels, examples.shares)[cells % (labels.max() + 1)]
    total = math.fsum(examples.shares.tolist())
    precision = math.fsum((both * both / ours).tolist()) / total
    recall = math.fsum((both * both / theirs).tolist()) / total
    return 2.0 * precision * recall / (precision + recall)


def _smoothed(values: Floats) -> Floats:
    """Return weighted means of neighbours along the first axis; those at its ends have one less."""
    found = []
    for place in range(len(values)):
        near = {
            place + step: weight
            for step, weight in _NEIGHBOURS.items()
            if 0 <= place + step < len(values)
        }
        total = sum(weight * values[other] for other, weight in near.items())
        found.append(total / sum(near.values()))
    return np.array(found)


def _quantile(values: Floats, weights: Floats, part: float) -> float:
    """Return the lowest value that at least this part of the weight does not exceed."""
    if not len(values):
        return 1.0
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order[np.searchsorted(reached, part * reached[-1])]])
