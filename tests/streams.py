"""Seeded streams that bring every step of the algorithm about; shared by several suites.

Each maker takes a random generator and a length, and returns a stream: float32 rows and the three
thresholds to cluster them by. `make(kind, seed)` is the door; `KINDS` names them all.
"""

from __future__ import annotations

import math
import os
from typing import NamedTuple

import numpy as np

from linkstream.paper.algorithm import cosine, fixed_point

# Engines that every agreement and law is tested on. An installation made without the compiled core
# on purpose says so by the variable that made it.
ENGINES = ["reference"] if os.environ.get("LINKSTREAM_PURE_PYTHON") else ["reference", "native"]


class Stream(NamedTuple):
    vectors: np.ndarray
    thresholds: tuple[float, float, float]


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def around(rng, centres, cosines):
    """Vectors at a stated cosine from their centres, in random directions (section 2.1)."""
    noise = rng.standard_normal(centres.shape)
    noise = unit(noise - (noise * centres).sum(axis=-1, keepdims=True) * centres)
    cosines = np.broadcast_to(cosines, centres.shape[:-1])[..., np.newaxis]
    return cosines * centres + np.sqrt(1.0 - cosines**2) * noise


def generative(rng, n, d=32):
    """The paper's model: each cluster's vectors lie at one angle from its centre."""
    cos = rng.uniform(0.5, 0.95)
    centres = unit(rng.standard_normal((rng.integers(2, 8), d)))
    vectors = around(rng, centres[rng.integers(len(centres), size=n)], cos)
    return Stream(vectors, pick(rng, t_c=cos - 0.05, t_s=cos * cos + 0.04, t_p=0.9))


def lobes(rng, n, d=12):
    """Identities of several lobes, tight within; lobes of one identity are fairly similar."""
    between, within = rng.uniform(0.8, 0.93), rng.uniform(0.93, 0.99)
    identities = unit(rng.standard_normal((3, d)))
    centres = around(rng, np.repeat(identities, 4, axis=0), between)
    vectors = around(rng, centres[rng.integers(len(centres), size=n)], within)
    return Stream(vectors, pick(rng, t_c=between - 0.08, t_s=within**2, t_p=between**2 + 0.1))


def drifting(rng, n, d=8):
    """Lobes that turn as the stream goes on, so that edges made early fail later."""
    centre = unit(rng.standard_normal(d))
    start, end = (around(rng, np.tile(centre, (6, 1)), rng.uniform(0.75, 0.9)) for _ in range(2))
    lobe, time = rng.integers(6, size=n), np.linspace(0.0, 1.0, n)[:, np.newaxis]
    centres = unit((1.0 - time) * start[lobe] + time * end[lobe])
    return Stream(around(rng, centres, 0.97), pick(rng, t_c=0.75, t_s=0.93, t_p=0.85))


def chains(rng, n, d=8):
    """Arcs travelled to and fro: neighbours on the arc tie, merge, and part as they grow."""
    start, side = unit(rng.standard_normal((2, d)))
    place = np.abs((np.arange(n) * rng.uniform(0.02, 0.3) + rng.uniform(0, 1, n)) % 4.0 - 2.0)
    arc = unit(np.cos(place)[:, np.newaxis] * start + np.sin(place)[:, np.newaxis] * side)
    vectors = around(rng, arc, rng.uniform(0.93, 0.99))
    return Stream(vectors, pick(rng, t_c=0.8, t_s=0.93, t_p=0.88))


def hub(rng, n, d=24):
    """One dense lobe, satellites tied to it while it is small; as it grows the edges fail."""
    centre = unit(rng.standard_normal(d))
    dense = rng.random(n) < np.linspace(0.3, 0.9, n)
    cosines = np.where(dense, 0.99, rng.uniform(0.62, 0.85, n))
    vectors = around(rng, np.tile(centre, (n, 1)), cosines)
    return Stream(vectors, pick(rng, t_c=0.8, t_s=0.9, t_p=0.95))


def duplicates(rng, n, d=16):
    """A few vectors again and again, at several lengths."""
    few = unit(rng.standard_normal((7, d))) + unit(rng.standard_normal(d))
    scale = 2.0 ** rng.integers(-20, 20, size=(n, 1))
    return Stream(few[rng.integers(7, size=n)] * scale, whole_range(rng))


def near_duplicates(rng, n, d=8):
    """Vectors that differ by one unit of the fixed point, or a few hundred; T_s is all but 1."""
    bases = unit(rng.standard_normal((4, d)) + rng.standard_normal(d))
    bases[:, 2:] *= 2.0**-9  # where float32 is finer than the fixed point
    rows = np.float32(unit(bases))[rng.integers(4, size=n)].astype(np.float64)
    units = rng.integers(-1, 2, size=(n, d - 2)) * 2.0 ** rng.integers(0, 10, size=(n, 1))
    rows[:, 2:] += units * 2.0**-30
    return Stream(rows, (0.6, 1.0 - 2.0 ** -float(rng.integers(38, 54)), rng.uniform(0.4, 1.0)))


def grid(rng, n, d=6):
    """Vectors of coordinates −1, 0, 1: similarities tie exactly, and hit T_s and T_c² exactly."""
    rows = rng.integers(-1, 2, size=(n, d)).astype(np.float64)
    rows[~rows.any(axis=1), 0] = 1.0
    return Stream(rows, hit(rng, rows))


def lattice(rng, n, d=16):
    """Vectors of 1, 4 or 16 coordinates ±1, exact in fixed point: ties and equalities abound."""
    places = int(rng.choice([6, 8, 16]))
    rows = np.zeros((n, d))
    for row in rows:
        size = rng.choice([1, 4, 16], p=[0.35, 0.6, 0.05])
        chosen = rng.choice(places if size < 16 else d, size=size, replace=False)
        row[chosen] = rng.choice([1.0, -1.0], p=[0.9, 0.1], size=size)
    t_p = rng.choice([0.25, 0.25, 0.5, 1.0])
    return Stream(rows, (0.5, float(rng.choice([0.5, 0.75, 0.8])), t_p))


def mirrored(rng, n, d=8):
    """Pairs of lobes that mirror each other, and vectors on the mirror: ties of grown centroids."""
    lobe = unit(np.abs(rng.standard_normal((3, d))) + 0.5)
    rows = np.round(around(rng, lobe[rng.integers(3, size=n)], 0.98) * 64.0)
    mirror = rows.copy()
    mirror[:, [0, 1]] = rows[:, [1, 0]]
    mirror[:, 2] *= -1.0
    both = np.stack([rows, mirror], axis=1).reshape(-1, d)[:n]
    middle = np.round(around(rng, lobe[rng.integers(3, size=n)], 0.9) * 64.0)
    middle[:, 1], middle[:, 2] = middle[:, 0], 0.0
    on_mirror = np.repeat(rng.random((n + 1) // 2) < 0.25, 2)[:n]
    return Stream(np.where(on_mirror[:, np.newaxis], middle, both), pick(rng, 0.8, 0.93, 0.85))


def opposite(rng, n, d=8):
    """Each vector is followed by its opposite."""
    rows = lobes(rng, (n + 1) // 2, d).vectors
    both = np.stack([rows, -rows], axis=1).reshape(-1, d)[:n]
    return Stream(both, pick(rng, t_c=0.8, t_s=0.9, t_p=0.85))


def hits(rng, n, d=10):
    """Lobes, with thresholds equal to similarities that occur."""
    rows = np.float32(lobes(rng, n, d).vectors)
    return Stream(rows, hit(rng, rows))


def anything(rng, n):
    """Any dimension, any thresholds: lobes of any width."""
    d = int(rng.integers(2, 40))
    centres = unit(rng.standard_normal((5, d)) + rng.uniform(0, 2) * rng.standard_normal(d))
    vectors = around(rng, centres[rng.integers(5, size=n)], rng.uniform(0.3, 0.999))
    return Stream(vectors, whole_range(rng))


def wide(rng, n, d=512):
    """The dimensions of real encoders."""
    d = int(rng.choice([128, 256, d]))
    between, within = rng.uniform(0.75, 0.9), rng.uniform(0.85, 0.95)
    centres = around(rng, np.repeat(unit(rng.standard_normal((2, d))), 3, axis=0), between)
    vectors = around(rng, centres[rng.integers(6, size=n)], within)
    return Stream(vectors, pick(rng, t_c=between - 0.05, t_s=within**2, t_p=0.8))


def pick(rng, t_c, t_s, t_p):
    """Thresholds near the ones stated, as a user would set them after a look at the data."""
    t_c, t_s, t_p = np.array([t_c, t_s, t_p]) + rng.normal(0.0, 0.02, size=3)
    t_c, t_s = np.clip([t_c, t_s], 0.05, 0.995)
    return float(t_c), float(t_s), float(np.clip(t_p, t_c * t_c, 1.0))


def whole_range(rng):
    """Thresholds anywhere in their ranges, their ends among them."""
    t_c, t_s = (float(np.clip(value, 1e-3, 1.0 - 1e-9)) for value in rng.uniform(0, 1, size=2))
    low = t_c * t_c
    t_p = rng.choice([low, 1.0, rng.uniform(low, 1.0), rng.uniform(low, 1.0)])
    return t_c, t_s, float(t_p)


def hit(rng, rows):
    """T_s and T_c² equal to similarities of the rows; in half the cases s~ is T_c² throughout."""
    pairs = rng.integers(len(rows), size=(200, 2))
    seen = {cosine(fixed_point(rows[i]), fixed_point(rows[j])) for i, j in pairs}
    seen = sorted(value for value in seen if 0.05 < value < 0.999)
    squares = [(t, t * t) for value in seen for t in roots(value) if t * t == value]
    if not squares:  # a stream too short for that
        return whole_range(rng)
    t_s = seen[int(len(seen) * rng.uniform(0.4, 1.0))]
    t_c, square = squares[rng.integers(len(squares))]
    return t_c, t_s, square if rng.random() < 0.5 else float(rng.uniform(square, 1.0))


def roots(square):
    root = math.sqrt(square)
    return math.nextafter(root, 0.0), root, math.nextafter(root, 1.0)


KINDS = {
    maker.__name__: maker
    for maker in (
        generative,
        lobes,
        drifting,
        chains,
        hub,
        duplicates,
        near_duplicates,
        grid,
        lattice,
        mirrored,
        opposite,
        hits,
        anything,
        wide,
    )
}


def make(kind, seed, n=150):
    """The stream of this kind and seed, n vectors long."""
    rng = np.random.default_rng([seed, *kind.encode()])  # new kinds do not disturb the others
    vectors, thresholds = KINDS[kind](rng, n)
    return Stream(np.float32(vectors), tuple(float(value) for value in thresholds))
