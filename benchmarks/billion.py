"""A billion vectors, on paper: `python -m benchmarks.billion`.

What `cluster_corpus` would cost on a cluster, from unit costs that were measured on two cores:
rates of one core by the number of subclusters (docs/performance.md, half of what two threads did);
what a row costs on its way through Spark, and a snapshot on its way from worker to worker
(`python -m benchmarks.spark FOLDER --only units`). Nothing here was run at this size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

VECTORS, DIMENSION = 10**9, 256
# Subclusters, and vectors a second of one core before so many.
RATES = ((1_000, 354_000), (20_000, 63_000), (100_000, 20_950), (1_000_000, 990))
ROW = 12e-6  # core-seconds of a row: read, shuffled, sorted, to a worker
BYTES = 2_730  # of a subcluster in memory
SENT = 2_100  # of one in a snapshot
SPEED = 55e6  # bytes a second of a snapshot from worker to worker: packed, shuffled, read, checked


@dataclass(frozen=True, slots=True)
class Corpus:
    """So many people, each with so many looks, in so many shards, on so many cores."""

    people: int
    looks: int  # subclusters a person
    shards: int
    cores: int

    @property
    def subclusters(self) -> int:
        """What vectors are compared with."""
        return self.people * self.looks


PEOPLE = ((10_000, 256), (100_000, 256), (2_000_000, 64))  # and in how many shards
CORPORA = tuple(Corpus(people, looks, shards, 64) for people, shards in PEOPLE for looks in (1, 3))
HEADS = (
    *("people", "looks", "shards", "cores"),
    *("rows", "shards", "tree", "in all", "memory", "alone"),
)


def rate(subclusters: float) -> float:
    """Vectors a second of one core; beyond what was measured, one over the number."""
    known, seen = zip(*RATES, strict=True)
    if subclusters > known[-1]:
        return float(seen[-1] * known[-1] / subclusters)
    return float(np.exp(np.interp(math.log(subclusters), np.log(known), np.log(seen))))


def met(subclusters: int, vectors: float) -> float:
    """How many of them a random part of the corpus shows."""
    return subclusters * -math.expm1(-vectors / subclusters)


def hours(corpus: Corpus) -> dict[str, float]:
    """Rows, shards and tree: hours of the cluster; and of one machine of two cores."""
    each = VECTORS / corpus.shards
    in_shard = met(corpus.subclusters, each)
    shard = each / rate(max(in_shard / 2, 1_000))
    waves = math.ceil(corpus.shards / corpus.cores)
    tree, parts = 0.0, corpus.shards
    while parts > 1:
        one = met(corpus.subclusters, VECTORS / parts)
        join = one / rate(met(corpus.subclusters, 2 * VECTORS / parts)) + 2 * one * SENT / SPEED
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


def told(number: float) -> str:
    """Hours, or minutes where they are few."""
    return f"{number:.1f} h" if number >= 2 else f"{max(round(60 * number), 1)} min"


def cells(corpus: Corpus) -> list[str]:
    """A row of the table."""
    took = hours(corpus)
    parts = [took[name] for name in ("rows", "shards", "tree")]
    memory = f"{2 * corpus.subclusters * BYTES / 1e9:.1f} GB"
    asked = [f"{number:,}" for number in (corpus.people, corpus.looks, corpus.shards, corpus.cores)]
    return [*asked, *map(told, parts), told(sum(parts)), memory, told(took["alone"])]


def table() -> str:
    """The table, for the page (docs/scale-out.md)."""
    head, *rows = (f"| {' | '.join(row)} |" for row in (HEADS, *map(cells, CORPORA)))
    return "\n".join([head, "|" + "--:|" * len(HEADS), *rows])


if __name__ == "__main__":
    print(table())
