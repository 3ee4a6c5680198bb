"""Frozen workloads: seeded streams, their thresholds, and the expected answers.

A changed workload needs a new name, since figures are compared over years. The answers are the
same on every machine, for every kernel and every number of threads. Vectors are made in float64
with sums in a fixed order and rounded to multiples of 2^-16, so that they do not depend on the last
bit of the arithmetic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from linkstream import Links

Vectors = npt.NDArray[np.float32]
Thresholds = tuple[float, float, float]  # T_c, T_s, T_p

THREADS = 2
GRID = 2.0**16
BLOCK = 5_000  # rows made at a time by the workloads too big to be made at once

TIGHT: Thresholds = (0.85, 0.7, 0.95)
SCATTER: Thresholds = (0.7, 0.9, 0.9)
HUB: Thresholds = (0.55, 0.8, 0.8)
LOBES: Thresholds = (0.7, 0.68, 0.8)


@dataclass(frozen=True)
class Answer:
    """The expected result of a workload; None for parts that are too big to check."""

    n_subclusters: int
    n_clusters: int
    events: dict[str, int] | None = None
    state_hash: str | None = None

    def check(self, links: Links) -> None:
        """Raise AssertionError unless a clusterer gives this answer."""
        seen = seen_answer(links, like=self)
        assert seen == self, f"seen {seen}, expected {self}"


def seen_answer(links: Links, *, like: Answer) -> Answer:
    """Return the answer of a clusterer, with the same parts as `like`."""
    events = None
    if like.events is not None:
        events = dict(sorted(Counter(event.kind for event in links.events()).items()))
    return Answer(
        links.n_subclusters,
        links.n_clusters,
        events,
        links.state_hash() if like.state_hash is not None else None,
    )


@dataclass(frozen=True)
class Workload:
    """A stream that fits in memory, with its thresholds and its answer."""

    name: str
    make: Callable[[], Vectors]
    thresholds: Thresholds
    answer: Answer

    def links(self) -> Links:
        """Return a new clusterer for this stream."""
        return Links(*self.thresholds, threads=THREADS, keep_vectors=False)


# Vectors at a given cosine to a centre


def unit(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Scale rows to length 1; the sum along a row has the same order on every machine."""
    return rows / np.sqrt(np.square(rows).sum(axis=1, keepdims=True))


def random_units(n: int, dimension: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return random directions."""
    return unit(rng.standard_normal((n, dimension)))


def around(
    centres: npt.NDArray[np.float64], cosine: npt.ArrayLike, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Return a unit vector at this cosine to each centre, in a random direction."""
    side = rng.standard_normal(centres.shape)
    side -= (side * centres).sum(axis=1, keepdims=True) * centres
    cosine = np.asarray(cosine)
    return cosine * centres + np.sqrt(1.0 - cosine * cosine) * unit(side)


def on_grid(rows: npt.NDArray[np.float64]) -> Vectors:
    """Round rows to multiples of 2^-16, which float32 represents exactly."""
    return (np.rint(rows * GRID) / GRID).astype(np.float32)


# Streams


def tight(n: int = 20_000, dimension: int = 256, clusters: int = 100) -> Vectors:
    """Return a stream in which every cluster is one subcluster."""
    rng = np.random.default_rng(101)
    centres = random_units(clusters, dimension, rng)
    return on_grid(around(centres[rng.integers(0, clusters, n)], 0.9, rng))


def scatter(n: int, dimension: int) -> Vectors:
    """Return a stream of one subcluster per vector, in clusters of 20."""
    return np.concatenate(list(ScatterStream(n, dimension, seed=102).blocks(n)))


def hub(n: int = 12_000, dimension: int = 256) -> Vectors:
    """Return a stream with one big subcluster, to which half of the vectors are linked."""
    rng = np.random.default_rng(103)
    core = np.repeat(random_units(1, dimension, rng), n, axis=0)
    cosine = rng.permutation(np.repeat([0.95, 0.6], n // 2))
    return on_grid(around(core, cosine[:, np.newaxis], rng))


def lobes(n: int = 10_000, dimension: int = 256, identities: int = 200) -> Vectors:
    """Return identities of five lobes: subclusters merge, edges are cut, clusters split."""
    rng = np.random.default_rng(104)
    centres = np.repeat(random_units(identities, dimension, rng), 5, axis=0)
    lobe = around(centres, 0.85, rng)
    return on_grid(around(lobe[rng.integers(0, len(lobe), n)], 0.85, rng))


class ScatterStream:
    """A scatter stream too big for memory: 20 vectors of every cluster, then more."""

    def __init__(self, n: int, dimension: int = 256, *, seed: int) -> None:
        self.n = n
        self._rng = np.random.default_rng(seed)
        self._centres = random_units(n // 20, dimension, self._rng)
        self._order = self._rng.permutation(np.repeat(np.arange(n // 20), 20))

    def blocks(self, size: int = BLOCK) -> Iterator[Vectors]:
        """Yield the first vectors, block by block; callable once."""
        for first in range(0, self.n, size):
            members = self._centres[self._order[first : first + size]]
            yield on_grid(around(members, 0.75, self._rng))

    def more(self, n: int) -> Vectors:
        """Return more vectors of the same clusters."""
        members = self._centres[self._rng.integers(0, len(self._centres), n)]
        return on_grid(around(members, 0.75, self._rng))

    def strangers(self, n: int) -> Vectors:
        """Return vectors of no cluster."""
        return on_grid(random_units(n, self._centres.shape[1], self._rng))


def long_stream(
    n: int = 10_000_000, clusters: int = 1_000, size: int = 20_000
) -> Iterator[Vectors]:
    """Yield ten million vectors of tight clusters, in blocks."""
    rng = np.random.default_rng(107)
    centres = random_units(clusters, 256, rng)
    for _ in range(0, n, size):
        yield on_grid(around(centres[rng.integers(0, clusters, size)], 0.9, rng))


# The workloads, and their answers

SMALL = {
    workload.name: workload
    for workload in (
        Workload(
            "tight",
            tight,
            TIGHT,
            Answer(
                100,
                100,
                {"created": 100, "joined": 19_900},
                "46af42275e4d043fed5970a334efe091e462d57a5f28f396da5347f1074ddb6d",
            ),
        ),
        Workload(
            "scatter",
            partial(scatter, 20_000, 256),
            SCATTER,
            Answer(
                20_000,
                1_004,
                {"created": 1_004, "linked": 18_996},
                "77288ecb194bfd1f69b7afbd0d4b234d7901ce1dd8f1c89d3bba92fb7ad0cb6c",
            ),
        ),
        Workload(
            "scatter-512",
            partial(scatter, 10_000, 512),
            SCATTER,
            Answer(
                10_000,
                500,
                {"created": 500, "linked": 9_500},
                "0c6e3a71f2925aef35b5dc2cc12827f7eea643eea93b43d5570e0ce71172c960",
            ),
        ),
        Workload(
            "scatter-1024",
            partial(scatter, 10_000, 1_024),
            SCATTER,
            Answer(
                10_000,
                500,
                {"created": 500, "linked": 9_500},
                "de97e60745a9a837607e226b8fa2c9f5fa245f02d983d728a9878db6c8bceb33",
            ),
        ),
        Workload(
            "hub",
            hub,
            HUB,
            Answer(
                6_001,
                1,
                {"created": 1, "joined": 5_999, "linked": 6_000},
                "62c63e2db3d1f69260d94aaf198a9d4daa2b7cfa3970d98011b489ff1b004d32",
            ),
        ),
        Workload(
            "lobes",
            lobes,
            LOBES,
            Answer(
                572,
                568,
                {
                    "created": 266,
                    "joined": 8_961,
                    "linked": 773,
                    "merged": 467,
                    "rejoined": 109,
                    "severed": 411,
                    "split": 302,
                },
                "fc35464596f88129c787878910eb8b94e7bfa682eb9334eb5f66bcaf5f55e0b2",
            ),
        ),
    )
}

WIDE_BASE, WIDE_MORE, WIDE_SEED = 100_000, 5_000, 105
WIDE_BASE_ANSWER = Answer(100_000, 5_020)
WIDE_ANSWER = Answer(  # base, 5,000 more, 300 one by one
    105_300,
    5_020,
    {"created": 5_020, "linked": 100_280},
    "93697399c4defccd848ab3b4a44997d0369760e6d50f14fcef264a2639a0ce61",
)

VAST_BASE, VAST_MORE, VAST_SEED = 1_000_000, 5_000, 106
VAST_ANSWER = Answer(1_005_000, 50_198, {"created": 50_198, "linked": 954_802})

LONG_ANSWER = Answer(1_000, 1_000)
