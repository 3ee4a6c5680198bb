"""Measurements of a diagnosis on vectors: lengths, copies, similarities, main directions.

Measurements over pairs use a sample. Measurements of linear cost use all vectors, block by block.
Results are plain numbers and tuples.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.engine import door
from linkstream.engine.fixed_point import norms
from linkstream.space import Space

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.float32]
Indices = npt.NDArray[np.intp]

NEAR_COPY = 0.999  # two recordings of one identity hardly reach this similarity

_BLOCK = 8192
_POOL = 100_000  # neighbours are searched among this many vectors at most
_BINS = 80
_DIRECTIONS_SHOWN = 64  # in the picture


@dataclass(frozen=True, slots=True)
class Lengths:
    """Lengths of the vectors before they are normalised, without zero vectors.

    Attributes:
        least, low, median, high, most: quantiles 0, 0.05, 0.5, 0.95 and 1.
        zeros: number of zero vectors.
        counts, edges: a histogram.
    """

    least: float
    low: float
    median: float
    high: float
    most: float
    zeros: int
    counts: tuple[int, ...]
    edges: tuple[float, ...]

    @property
    def spread(self) -> float:
        """The ratio of the 95th to the 5th percentile."""
        return self.high / self.low


@dataclass(frozen=True, slots=True)
class Copies:
    """Duplicate vectors.

    Attributes:
        exact: number of rows that are equal to an earlier row.
        near: share of the sample with a neighbour of similarity 0.999 or more, without rows that
            have exact copies.
    """

    exact: int
    near: float


@dataclass(frozen=True, slots=True)
class Similarities:
    """Histograms of similarities in the sample, over the same bins.

    Attributes:
        edges: edges of the bins.
        neighbours: counts for each sampled vector and its nearest neighbour.
        pairs: counts for two vectors drawn at random.
        neighbour: the median similarity of nearest neighbours. Two vectors of one identity are
            about as similar, or less.
        random_pair: the mean similarity of two vectors drawn at random.
    """

    edges: tuple[float, ...]
    neighbours: tuple[int, ...]
    pairs: tuple[int, ...]
    neighbour: float
    random_pair: float


@dataclass(frozen=True, slots=True)
class Spectrum:
    """How many directions the vectors use.

    Attributes:
        shares: shares of the variance along the main directions, in descending order.
        effective_dimension: (Σλ)² / Σλ², the number of equal directions with the same ratio.
    """

    shares: tuple[float, ...]
    effective_dimension: float


def lengths(rows: Rows) -> Lengths:
    """Measure the lengths of all rows; raise VectorError if one is not finite or too long."""
    found = np.concatenate([norms(block.astype(np.float64)) for _, block in blocks(rows)])
    zero = found < door.NORM_MIN
    door.check_norms(rows, np.where(zero, 1.0, found))
    usable = found[~zero]
    if not len(usable):
        door.check_norms(rows, found)
    least, low, median, high, most = np.quantile(usable, [0.0, 0.05, 0.5, 0.95, 1.0]).tolist()
    counts, edges = np.histogram(usable, bins=_BINS)
    bins = tuple(counts.tolist()), tuple(edges.tolist())
    return Lengths(least, low, median, high, most, int(zero.sum()), *bins)


def usable_rows(rows: Rows) -> Rows:
    """Return the rows that are not zero."""
    keep = np.concatenate([np.any(block != 0.0, axis=1) for _, block in blocks(rows)])
    return rows if keep.all() else rows[keep]


def digests(rows: Rows) -> list[bytes]:
    """Return a digest of each row; equal rows have equal digests."""
    found = []
    for _, block in blocks(rows):
        plain = block + np.float32(0.0)  # turns −0 into 0
        found += [hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in plain]
    return found


def unit_vectors(rows: Rows, space: Space) -> Rows:
    """Return the unit vectors of the space that Links would cluster."""
    made = np.empty(rows.shape, dtype=np.float32)
    for start, block in blocks(rows):
        centred = space.centre(block)
        long = norms(centred)
        door.check_norms(centred, long)
        made[start : start + len(block)] = centred / long[:, np.newaxis]
    return made


def neighbours(rows: Rows, drawn: Indices, rng: np.random.Generator) -> tuple[Indices, Floats]:
    """Return the nearest other row of each drawn row, and their similarity.

    If there are more than 100,000 rows, only 100,000 random ones are searched.
    """
    best = np.full(len(drawn), -2.0, dtype=np.float32)
    who = np.zeros(len(drawn), dtype=np.intp)
    among = np.arange(len(rows))
    if len(rows) > _POOL:
        among = np.sort(rng.choice(len(rows), _POOL, replace=False))
    position = np.full(len(rows), -1, dtype=np.intp)
    position[drawn] = np.arange(len(drawn))
    for start in range(0, len(among), _BLOCK):
        others = among[start : start + _BLOCK]
        products = rows[drawn] @ rows[others].T
        itself = np.flatnonzero(position[others] >= 0)
        products[position[others[itself]], itself] = -2.0
        found = products.argmax(axis=1)
        similarity = products[np.arange(len(drawn)), found]
        better = similarity > best
        best[better], who[better] = similarity[better], others[found[better]]
    return who, np.clip(best.astype(np.float64), -1.0, 1.0)


def copies(seen: list[bytes], drawn: Indices, nearest: Floats) -> Copies:
    """Count exact copies among all rows, and near copies among the drawn rows."""
    counts = Counter(seen)
    unique = np.array([counts[seen[row]] == 1 for row in drawn])
    near = float(np.mean((nearest >= NEAR_COPY) & unique))
    return Copies(exact=len(seen) - len(counts), near=near)


def similarities(sample: Rows, nearest: Floats) -> Similarities:
    """Return histograms of the similarities to nearest neighbours and of random pairs."""
    pairs = (sample @ sample.T)[np.triu_indices(len(sample), 1)]
    low = min(float(pairs.min()), float(nearest.min()))
    edges = np.linspace(np.floor(low * 20.0) / 20.0, 1.0 + 1e-6, _BINS + 1)
    return Similarities(
        edges=tuple(edges.tolist()),
        neighbours=tuple(np.histogram(nearest, edges)[0].tolist()),
        pairs=tuple(np.histogram(pairs, edges)[0].tolist()),
        neighbour=float(np.median(nearest)),
        random_pair=float(pairs.mean()),
    )


def spectrum(sample: Rows) -> Spectrum:
    """Return the variances of the sample about its mean, along the main directions."""
    left = sample.astype(np.float64)
    left -= left.mean(axis=0)
    gram = left.T @ left if left.shape[1] <= len(left) else left @ left.T
    values = np.clip(np.linalg.eigvalsh(gram)[::-1], 0.0, None)
    total = float(values.sum())
    if total <= 1e-12 * len(sample):  # all vectors are equal
        return Spectrum((), 0.0)
    shares = values / total
    shown = tuple(shares[:_DIRECTIONS_SHOWN].tolist())
    return Spectrum(shown, 1.0 / float(np.sum(shares * shares)))


def blocks(rows: Rows) -> Iterator[tuple[int, Rows]]:
    """Yield blocks of 8,192 rows, each with the number of its first row."""
    for start in range(0, len(rows), _BLOCK):
        yield start, rows[start : start + _BLOCK]
