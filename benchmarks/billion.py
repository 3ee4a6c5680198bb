"""Estimate the cost of a billion vectors: `python -m benchmarks.billion`.

The cost of `cluster_corpus` on a cluster is computed from unit costs measured on two cores: the
rate of one core by the number of subclusters (docs/performance.md, half of the rate of two
threads), and the cost of sending a row through Spark and a snapshot from worker to worker
(`python -m benchmarks.spark FOLDER --only units`). Nothing was run at this size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

VECTORS, DIMENSION = 10**9, 256
# Number of subclusters, and vectors per second of one core.
RATES = ((1_000, 354_000), (20_000, 63_000), (100_000, 20_950), (1_000_000, 990))
ROW = 12e-6  # core-seconds of a row: read, shuffled, sorted, to a worker
BYTES = 2_730  # memory of a subcluster
SENT = 2_100  # bytes of a subcluster in a snapshot
SPEED = (
    55e6  # bytes per second of a snapshot from worker to worker: packed, shuffled, read, checked
)


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus and the cluster of machines that processes it."""

    people: int
    looks: int  # subclusters per person
    shards: int
    cores: int

    @property
    def subclusters(self) -> int:
        """Number of subclusters of the corpus."""
        return self.people * self.looks


PEOPLE = ((10_000, 256), (100_000, 256), (2_000_000, 64))  # with the number of shards
CORPORA = tuple(Corpus(people, looks, shards, 64) for people, shards in PEOPLE for looks in (1, 3))
HEADS = (
    *("people", "looks", "shards", "cores"),
    *("rows", "shards", "tree", "in all", "memory", "alone"),
)


def rate(subclusters: float) -> float:
    """Return vectors per second of one core; extrapolated as one over the number of subclusters."""
    known, seen = zip(*RATES, strict=True)
    if subclusters > known[-1]:
        return float(seen[-1] * known[-1] / subclusters)
    return float(np.exp(np.interp(math.log(subclusters), np.log(known), np.log(seen))))


def found(subclusters: int, vectors: float) -> float:
    """Return how many subclusters a random part of the corpus contains."""
    return subclusters * -math.expm1(-vectors / subclusters)


def hours(corpus: Corpus) -> dict[str, float]:
    """Return hours of the cluster for rows, shards and tree, and hours of one two-core machine."""
    each = VECTORS / corpus.shards
    in_shard = found(corpus.subclusters, each)
    shard = each / rate(max(in_shard / 2, 1_000))
    waves = math.ceil(corpus.shards / corpus.cores)
    tree, parts = 0.0, corpus.shards
    while parts > 1:
        one = found(corpus.subclusters, VECTORS / parts)
        join = one / rate(found(corpus.subclusters, 2 * VECTORS / parts)) + 2 * one * SENT / SPEED
        parts = math.ceil(parts / 2)
        tree += join * math.ceil(parts / corpus.cores)
    spark = ROW * VECTORS / corpus.cores
    alone = VECTORS / (2 * rate(corpus.subclusters))
    return {
        "rows": spark / 3600,
        "shards": waves * shard / 3600,
        "tree": tree / 3600,
        "alone": alone / 3600,
    }


def duration(number: float) -> str:
    """Return hours as text, or minutes below two hours."""
    return f"{number:.1f} h" if number >= 2 else f"{max(round(60 * number), 1)} min"


def cells(corpus: Corpus) -> list[str]:
    """Return a row of the table."""
    took = hours(corpus)
    parts = [took[name] for name in ("rows", "shards", "tree")]
    memory = f"{2 * corpus.subclusters * BYTES / 1e9:.1f} GB"
    asked = [f"{number:,}" for number in (corpus.people, corpus.looks, corpus.shards, corpus.cores)]
    return [*asked, *map(duration, parts), duration(sum(parts)), memory, duration(took["alone"])]


def table() -> str:
    """Return the table for docs/scale-out.md."""
    head, *rows = (f"| {' | '.join(row)} |" for row in (HEADS, *map(cells, CORPORA)))
    return "\n".join([head, "|" + "--:|" * len(HEADS), *rows])


if __name__ == "__main__":
    print(table())
