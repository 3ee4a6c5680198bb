"""Translation: a linear map from the vectors of one encoder to those of another.

The map W minimises Σ |x·W − y|² + λ·|W|² over pairs (x, y) of one item, both of length 1. λ is the
one of a few for which held-out pairs come out best. W maps directions that no pair has to 0, so
that strangers would look alike after normalisation. What W leaves of x is therefore carried over
by an embedding E, with the gain γ of what it explains. With A = Σ xᵀx + λ·I, the map is
W + γ·(I − A⁻¹·Σ xᵀx)·E = A⁻¹·(Σ xᵀy + γ·λ·E). E keeps the similarities of translated vectors.

The map commutes with sums: the image of a sum is the sum of the images. The same pairs give the
same bits on every machine: products are sums of whole numbers below 2⁵³, which a float64 holds
exactly in any order, and the equations are solved step by step without a library.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.engine.fixed_point import norms, row_sums, squared_norms
from linkstream.engine.state import Fixed, Integers

FOLDS = 5
LEAST = 2 * FOLDS  # pairs
SAMPLE = 4096  # held-out pairs that are looked at

_RIDGES = (1e-4, 1e-2, 1e-1, 1.0)  # λ over the mean of the diagonal of Σ x·xᵀ
_BITS = 20  # of a coordinate
_SHIFT = 30 - _BITS  # from fixed point
_ROWS = 4096  # 2¹² rows of products below 2⁴⁰ stay below 2⁵³

Floats = npt.NDArray[np.float64]
Units = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class LinearMap:
    """A map for directions: its scale has no meaning.

    Attributes:
        weights: whole numbers, so small that products with coordinates of 20 bits are exact.
    """

    weights: Floats

    def __call__(self, fixed: Fixed) -> Units:
        """Return the images of vectors, of length 1; 0 where there is none."""
        found = np.empty((len(fixed), self.weights.shape[1]), dtype=np.float32)
        for start in range(0, len(fixed), _ROWS):
            images = _coordinates(fixed[start : start + _ROWS]) @ self.weights
            lengths = norms(images)[:, np.newaxis]
            found[start : start + _ROWS] = images / np.where(lengths > 0, lengths, 1.0)
        return found


@dataclass(frozen=True, slots=True)
class Fitted:
    """A map, and what it makes of pairs that it was not fitted on.

    Attributes:
        map: the map, fitted on all pairs.
        n_pairs: number of pairs.
        held_out: the images of some vectors, each by a map that was fitted without it.
        expected: what these vectors are in the other encoder, in fixed point.
        cosine: the mean cosine of the two.
    """

    map: LinearMap
    n_pairs: int
    held_out: Units
    expected: Fixed
    cosine: float


@dataclass(slots=True)
class _Moments:
    """Exact sums over pairs: Σ xᵀx and Σ xᵀy."""

    squares: Integers
    products: Integers

    @classmethod
    def of(cls, dimension: int, other: int) -> _Moments:
        """Return the moments of no pairs."""
        return cls(
            np.zeros((dimension, dimension), np.int64), np.zeros((dimension, other), np.int64)
        )

    def add(self, ones: Floats, others: Floats) -> None:
        """Add some pairs; at most 4,096 at a time are exact."""
        self.squares += (ones.T @ ones).astype(np.int64)
        self.products += (ones.T @ others).astype(np.int64)

    def without(self, some: _Moments) -> _Moments:
        """Return the moments of the other pairs."""
        return _Moments(self.squares - some.squares, self.products - some.products)

    def fitted(self, ridge: float, gain: float = 0.0) -> LinearMap:
        """Return the map with a λ, relative to the mean of the diagonal, and with a gain γ."""
        squares, strength = self._with_ridge(ridge)
        carried = gain * strength * _embedding(*self.products.shape)
        return _as_whole(_solved(squares, self.products + carried))

    def gain(self, ridge: float, ones: Fixed) -> float:
        """Return how long images of vectors are over what of these vectors is explained."""
        squares, strength = self._with_ridge(ridge)
        size = self.products.shape[1]
        both = np.hstack([self.products, strength * np.eye(len(squares))])
        solved = _solved(squares, both)
        solved[:, size:] = np.eye(len(squares)) - solved[:, size:]
        images = _coordinates(ones) @ _as_whole(solved).weights
        (image, explained) = (
            float(row_sums(squared_norms(part)[np.newaxis])[0])
            for part in (images[:, :size], images[:, size:])
        )
        return math.sqrt(image / explained) if explained else 1.0

    def _with_ridge(self, ridge: float) -> tuple[Floats, float]:
        """Return A and λ."""
        squares = self.squares.astype(np.float64)
        diagonal = np.arange(len(squares))
        mean = float(row_sums(squares[diagonal, diagonal][np.newaxis])[0]) / len(squares)
        strength = ridge * max(mean, 1.0)
        squares[diagonal, diagonal] += strength
        return squares, strength


def fitted(pairs: Iterable[tuple[Fixed, Fixed]], n_pairs: int) -> Fitted:
    """Return the map of pairs, which come in blocks of rows in fixed point; `n_pairs` in all."""
    folds, (ones, others, places) = _read(pairs, n_pairs)
    whole = _Moments.of(*folds[0].products.shape)
    for fold in folds:
        whole.squares += fold.squares
        whole.products += fold.products
    first = places % FOLDS == 0
    rest = whole.without(folds[0])
    ridge = _best_ridge(rest, ones[first], others[first])
    gain = rest.gain(ridge, ones[first])
    held_out = np.empty(others.shape, dtype=np.float32)
    for place, fold in enumerate(folds):
        mine = places % FOLDS == place
        held_out[mine] = whole.without(fold).fitted(ridge, gain)(ones[mine])
    cosine = _mean_cosine(held_out, others)
    return Fitted(whole.fitted(ridge, gain), n_pairs, held_out, others, cosine)


def _read(
    pairs: Iterable[tuple[Fixed, Fixed]], n_pairs: int
) -> tuple[list[_Moments], tuple[Fixed, Fixed, Integers]]:
    """Return the moments of each fold, and some of the pairs with their places."""
    wanted = np.unique(np.arange(min(n_pairs, SAMPLE)) * n_pairs // min(n_pairs, SAMPLE))
    folds: list[_Moments] = []
    kept: list[tuple[Fixed, Fixed]] = []
    first = 0
    for ones, others in pairs:
        folds = folds or [_Moments.of(ones.shape[1], others.shape[1]) for _ in range(FOLDS)]
        for start in range(0, len(ones), _ROWS):
            part = slice(start, start + _ROWS)
            _add(folds, ones[part], others[part], first + start)
        mine = wanted[(wanted >= first) & (wanted < first + len(ones))] - first
        kept.append((ones[mine], others[mine]))
        first += len(ones)
    left, right = (np.concatenate(side) for side in zip(*kept, strict=True))
    return folds, (left, right, wanted)


def _add(folds: list[_Moments], ones: Fixed, others: Fixed, first: int) -> None:
    left, right = _coordinates(ones), _coordinates(others)
    for place, fold in enumerate(folds):
        mine = slice((place - first) % FOLDS, None, FOLDS)
        fold.add(left[mine], right[mine])


def _best_ridge(moments: _Moments, ones: Fixed, others: Fixed) -> float:
    """Return the λ whose map comes nearest to the pairs (tie: the greatest)."""
    scores = [(_mean_cosine(moments.fitted(ridge)(ones), others), ridge) for ridge in _RIDGES]
    return max(scores)[1]


def _mean_cosine(images: Units, expected: Fixed) -> float:
    """Return the mean cosine of unit vectors and vectors in fixed point."""
    cosines = row_sums(images.astype(np.float64) * expected) / 2.0**30
    return float(row_sums(cosines[np.newaxis])[0]) / len(cosines)


def _embedding(dimension: int, other: int) -> Floats:
    """Return a map that keeps similarities; if there are fewer dimensions, nearly."""
    places = np.arange(dimension)
    signs = np.where((places // other) * ((places * 2654435761) >> 16 & 1) > 0, -1.0, 1.0)
    found = np.zeros((dimension, other))
    found[places, places % other] = signs
    return found


def _coordinates(fixed: Fixed) -> Floats:
    """Return coordinates as whole numbers of 20 bits."""
    return np.rint(fixed / 2.0**_SHIFT)


def _as_whole(weights: Floats) -> LinearMap:
    """Return weights as whole numbers of which sums of products stay below 2⁵³."""
    bits = 52 - _BITS - (len(weights) - 1).bit_length()
    greatest = float(np.abs(weights).max(initial=0.0)) or 1.0
    return LinearMap(np.rint(weights * (2.0**bits / greatest)))


def _solved(matrix: Floats, right: Floats) -> Floats:
    """Return X with matrix·X = right, for a positive definite matrix.

    Elimination without pivots; each step is one product and one difference an entry, so the order
    of operations is the same on every machine. Both arguments are overwritten.
    """
    n, work = len(matrix), np.empty(max(matrix.size, right.size))
    for k in range(n - 1):
        factors = (matrix[k + 1 :, k] / matrix[k, k])[:, np.newaxis]
        for target, row in (
            (matrix[k + 1 :, k + 1 :], matrix[k, k + 1 :]),
            (right[k + 1 :], right[k]),
        ):
            target -= np.multiply(factors, row, out=work[: target.size].reshape(target.shape))
    for k in range(n - 1, -1, -1):
        right[k] /= matrix[k, k]
        above = right[:k]
        factors = matrix[:k, k][:, np.newaxis]
        above -= np.multiply(factors, right[k], out=work[: above.size].reshape(above.shape))
    return right
