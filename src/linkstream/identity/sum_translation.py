"""Sums of subclusters in another encoder, where the vectors of the present one are not kept.

A subcluster of which all vectors were re-embedded gets their exact sum. Otherwise its sum is that
of the re-embedded vectors, and a translation of the rest: the present sum without those vectors of
which the old vector is known, less the share of re-embedded vectors of which it is not. A
translation is turned by a map (translation.py) and keeps its length.

The map is fitted on directions. A pair is a re-embedded vector whose old vector is known, or a
subcluster of which others were re-embedded: what is left of its present sum, and the sum of these.
The pair of a subcluster is exact if all of it was re-embedded, and a sample of it otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from linkstream.engine.fixed_point import norms, quantise
from linkstream.engine.forest import FULL
from linkstream.engine.linkage import SUM_SCALE, Floats
from linkstream.engine.state import Fixed, Integers, State
from linkstream.errors import ArgumentError, VectorError
from linkstream.identity.content import Content
from linkstream.identity.ledger import Ledger
from linkstream.identity.translation import LinearMap

_BLOCK = 65_536  # vectors at a time

Read = Callable[[Integers], Fixed]  # vectors by number


@dataclass(frozen=True, slots=True)
class Gathered:
    """Sums of some vectors, one for each subcluster.

    Attributes:
        sums: the sum of the vectors of each subcluster.
        weights: their weight, in 256ths.
    """

    sums: Integers
    weights: Integers

    @classmethod
    def of(
        cls, state: State, missing: Integers, numbers: Integers, read: Read, dimension: int
    ) -> Gathered:
        """Return the sums of vectors; `missing` is what each of all vectors lacks."""
        n = len(state.numbers)
        sums, weights = np.zeros((n, dimension), dtype=np.int64), np.zeros(n, dtype=np.int64)
        for start in range(0, len(numbers), _BLOCK):
            some = numbers[start : start + _BLOCK]
            owners = np.searchsorted(state.numbers, state.vectors[some])
            sums += Content(some, read(some), missing[some]).sums(owners, n)
            np.add.at(weights, owners, FULL - missing[some])
        return cls(sums, weights)


def missing_weights(state: State, ledger: Ledger) -> Integers:
    """Return what each vector lacks to its full weight in its subcluster, in 256ths."""
    found = np.zeros(len(state.vectors), dtype=np.int64)
    for vector, weight in ledger.missing_weights.items():
        found[vector] = weight
    return found


@dataclass(frozen=True, slots=True)
class SumPairs:
    """What is known of the sums of subclusters in two encoders.

    Attributes:
        numbers: the numbers of the subclusters.
        these: the sums, in the other encoder, of the vectors of which both vectors are known.
        others: the sums, in the other encoder, of re-embedded vectors whose old one is not known.
        left: the present sums without `known`.
        left_weights: the weight of the vectors in `left`, in 256ths.
    """

    numbers: Integers
    these: Gathered
    others: Gathered
    left: Integers
    left_weights: Integers

    @classmethod
    def of(cls, state: State, known: Gathered, these: Gathered, others: Gathered) -> SumPairs:
        """Return the pairs of a state; raise ArgumentError if `known` is no part of its sums."""
        weights = FULL * state.counts - state.missing_weight - known.weights
        left = state.sums - known.sums
        longest = weights / FULL * (SUM_SCALE + math.sqrt(state.dimension)) + 1.0
        wrong = np.flatnonzero(norms(left.astype(np.float64)) > longest * (1.0 + 1e-9))
        if len(wrong):
            raise ArgumentError(
                f"old vectors that are not those of subcluster {state.numbers[wrong[0]]}",
                expected="the vectors of the present encoder that were added",
                remedy="Add these vectors of the migration again, each with its own old vector.",
            )
        return cls(state.numbers, these, others, left, weights)

    @property
    def shares(self) -> Integers:
        """The weight of the vectors of each subcluster that were not re-embedded, in 256ths."""
        return self.left_weights - self.others.weights

    def directions(self) -> tuple[Fixed, Fixed]:
        """Return a pair of directions for each subcluster that has `others`."""
        there = np.any(self.others.sums != 0, axis=1) & np.any(self.left != 0, axis=1)
        left, right = (_directions(each[there]) for each in (self.left, self.others.sums))
        return left, right

    def rest(self) -> tuple[Integers, Fixed, Floats]:
        """Return the subclusters with a rest to translate, its directions and its lengths."""
        places = np.flatnonzero((self.shares > 0) & np.any(self.left != 0, axis=1))
        part = self.shares[places] / self.left_weights[places]
        lengths = norms(self.left[places].astype(np.float64)) * part
        longest = self.shares[places] / FULL * SUM_SCALE
        return places, _directions(self.left[places]), np.minimum(lengths, longest)

    def sums(self, turned: LinearMap | None) -> Integers:
        """Return the sums in the other encoder; a map is needed unless all were re-embedded."""
        found = self.these.sums + self.others.sums
        if turned is None:
            return found
        places, directions, lengths = self.rest()
        for some in blocks(np.arange(len(places))):
            images = turned(directions[some]).astype(np.float64)
            size = norms(images)
            if not size.all():
                raise VectorError(
                    f"the sum of subcluster {self.numbers[places[some][size == 0][0]]}, whose "
                    "translation is zero",
                    expected="a sum that is not at right angles to all that were re-embedded",
                    remedy="Re-embed one of its vectors.",
                )
            scale = (lengths[some] / size)[:, np.newaxis]
            found[places[some]] += np.rint(images * scale).astype(np.int64)
        return found


def blocks(numbers: Integers) -> Iterator[Integers]:
    """Yield numbers in blocks."""
    for start in range(0, len(numbers), _BLOCK):
        yield numbers[start : start + _BLOCK]


def _directions(sums: Integers) -> Fixed:
    return quantise(sums.astype(np.float64))[0]
