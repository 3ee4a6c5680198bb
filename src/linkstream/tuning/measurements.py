"""What a diagnosis measures on vectors: lengths, copies, neighbours, groups, the three lemmas.

Everything that compares pairs looks at a sample; what is linear in the number of vectors looks at
all of them, block by block. Results are plain numbers and tuples of them.
"""

from __future__ import annotations

import hashlib
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

NEAR_COPY = 0.999  # a similarity that two takes of one thing hardly reach

_BLOCK = 8192
_POOL = 100_000  # neighbours are looked for among this many vectors at most
_BINS = 80
_SHOWN = 64  # eigenvalues kept for the picture


@dataclass(frozen=True, slots=True)
class Lengths:
    """Lengths of the vectors before they are normalised; the zero ones apart."""

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
        """How many times longer a long vector is than a short one: 95th over 5th percentile."""
        return self.high / self.low


@dataclass(frozen=True, slots=True)
class Copies:
    """Vectors that are there more than once.

    Attributes:
        exact: rows that repeat an earlier row, number for number.
        near: share of the sample with a neighbour of similarity 0.999 or more that is no such copy.
    """

    exact: int
    near: float


@dataclass(frozen=True, slots=True)
class Similarities:
    """Histograms of similarities in the sample, over the same bins.

    Attributes:
        edges: ends of the bins.
        neighbours: each sampled vector with the nearest of all the others.
        pairs: two vectors drawn at random.
        neighbour: the median of the first; typical of two takes of one identity, or above it.
        random_pair: the mean of the second.
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
        shares: of the variance, along the main directions, the greatest first.
        effective_dimension: (Σλ)² / Σλ²; as many equal directions would vary alike.
    """

    shares: tuple[float, ...]
    effective_dimension: float


def lengths(rows: Rows) -> Lengths:
    """Lengths of all rows; VectorError for rows that are not finite or far too long."""
    found = np.concatenate([norms(block.astype(np.float64)) for _, block in blocks(rows)])
    zero = found < door.NORM_MIN
    door.check_norms(rows, np.where(zero, 1.0, found))
    usable = found[~zero]
    if not len(usable):
        door.check_norms(rows, found)
    least, low, median, high, most = np.quantile(usable, [0.0, 0.05, 0.5, 0.95, 1.0]).tolist()
    counts, edges = np.histogram(usable, bins=_BINS)
    return Lengths(
        least,
        low,
        median,
        high,
        most,
        int(zero.sum()),
        tuple(counts.tolist()),
        tuple(edges.tolist()),
    )


def usable_rows(rows: Rows) -> Rows:
    """The rows that have a direction."""
    keep = np.concatenate([np.any(block != 0.0, axis=1) for _, block in blocks(rows)])
    return rows if keep.all() else rows[keep]


def digests(rows: Rows) -> list[bytes]:
    """A digest of each row, alike where the numbers are."""
    found = []
    for _, block in blocks(rows):
        plain = block + np.float32(0.0)  # no −0
        found += [hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in plain]
    return found


def brought(rows: Rows, space: Space) -> Rows:
    """Unit vectors of the space, as Links clusters them."""
    made = np.empty(rows.shape, dtype=np.float32)
    for start, block in blocks(rows):
        centred = space.centre(block)
        long = norms(centred)
        door.check_norms(centred, long)
        made[start : start + len(block)] = centred / long[:, np.newaxis]
    return made


def neighbours(rows: Rows, drawn: Indices, rng: np.random.Generator) -> tuple[Indices, Floats]:
    """The nearest other row of each drawn row, and their similarity.

    Among 100,000 rows drawn at random where there are more.
    """
    best = np.full(len(drawn), -2.0, dtype=np.float32)
    who = np.zeros(len(drawn), dtype=np.intp)
    among = np.arange(len(rows))
    if len(rows) > _POOL:
        among = np.sort(rng.choice(len(rows), _POOL, replace=False))
    place = np.full(len(rows), -1, dtype=np.intp)
    place[drawn] = np.arange(len(drawn))
    for start in range(0, len(among), _BLOCK):
        others = among[start : start + _BLOCK]
        products = rows[drawn] @ rows[others].T
        itself = np.flatnonzero(place[others] >= 0)
        products[place[others[itself]], itself] = -2.0
        found = products.argmax(axis=1)
        similarity = products[np.arange(len(drawn)), found]
        better = similarity > best
        best[better], who[better] = similarity[better], others[found[better]]
    return who, np.clip(best.astype(np.float64), -1.0, 1.0)


def copies(seen: list[bytes], drawn: Indices, nearest: Floats) -> Copies:
    """Exact copies among all rows, near copies among the drawn ones."""
    often: dict[bytes, int] = {}
    for digest in seen:
        often[digest] = often.get(digest, 0) + 1
    alone = np.array([often[seen[row]] == 1 for row in drawn])
    near = float(np.mean((nearest >= NEAR_COPY) & alone))
    return Copies(exact=len(seen) - len(often), near=near)


def similarities(sample: Rows, nearest: Floats) -> Similarities:
    """Histograms of the sample's similarities to neighbours and to each other."""
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
    """Variances along the main directions of the sample, about its mean."""
    left = sample.astype(np.float64)
    left -= left.mean(axis=0)
    gram = left.T @ left if left.shape[1] <= len(left) else left @ left.T
    values = np.clip(np.linalg.eigvalsh(gram)[::-1], 0.0, None)
    total = float(values.sum())
    if total <= 1e-12 * len(sample):  # one point
        return Spectrum((), 0.0)
    shares = values / total
    return Spectrum(tuple(shares[:_SHOWN].tolist()), 1.0 / float(np.sum(shares * shares)))


def blocks(rows: Rows) -> Iterator[tuple[int, Rows]]:
    """The rows a few thousand at a time, each block with the place of its first row."""
    for start in range(0, len(rows), _BLOCK):
        yield start, rows[start : start + _BLOCK]
