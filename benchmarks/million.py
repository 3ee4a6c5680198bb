"""Measure what people do with a million vectors: `python -m benchmarks.million [FOLDER]`.

Two stores of one shape are made in the given folder (on a disk, not in memory): 10,000 vectors and
1,000,000 vectors of 256 dimensions, ten a cluster, ten clusters of similar centres, with one
correction for every thousand vectors and one name for every fifty. In turn, each call is measured
on both, so that ratios compare one run. Then the first review queue and the first suggestions after
opening are compared with one scan of all clusters against each other, and both are asked again
after 1,000 more vectors. Results are stored in benchmarks/million.json; `--docs` writes the tables
of docs/performance.md from them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from benchmarks.machine import describe
from benchmarks.quality_tables import put
from benchmarks.workloads import THREADS, TIGHT, Vectors, around, on_grid, random_units
from linkstream import Links, Thresholds
from linkstream.engine import native
from linkstream.store import Store

RESULTS = Path(__file__).with_name("million.json")
PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
SMALL, LARGE = 10_000, 1_000_000
DIMENSION, OF_CLUSTER, OF_FAMILY = 256, 10, 10
BATCH = 10_000
MORE = 1_000
TRIES = 25
SEED = 108


class Stream:
    """Vectors of families of clusters: centres of one family have a cosine of about .72."""

    def __init__(self, n: int) -> None:
        self.n, clusters = n, n // OF_CLUSTER
        self._rng = np.random.default_rng([SEED, n])
        families = random_units(clusters // OF_FAMILY, DIMENSION, self._rng)
        self._centres = around(np.repeat(families, OF_FAMILY, axis=0), 0.85, self._rng)
        self._order = self._rng.permutation(np.repeat(np.arange(clusters), OF_CLUSTER))

    def blocks(self) -> Iterator[Vectors]:
        """Yield all vectors, block by block."""
        for first in range(0, self.n, BATCH):
            members = self._centres[self._order[first : first + BATCH]]
            yield on_grid(around(members, 0.9, self._rng))

    def more(self, n: int) -> Vectors:
        """Return more vectors of the same clusters."""
        members = self._centres[self._rng.integers(0, len(self._centres), n)]
        return on_grid(around(members, 0.9, self._rng))


@dataclass
class Bed:
    """A store with its stream, and generators of clusters and vectors to ask about."""

    store: Store
    stream: Stream
    labels: Any = None
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(SEED))

    @classmethod
    def make(cls, folder: Path, n: int) -> Bed:
        """Make a store of n vectors with corrections and names."""
        stream = Stream(n)
        path = folder / f"{n}.links"
        store = Store.open(path, thresholds=Thresholds(*TIGHT), threads=THREADS)
        for block in track(stream.blocks(), f"{n:,} vectors", total=n // BATCH, transient=True):
            store.add_many(block)
        bed = cls(store, stream)
        bed.correct(n // 1_000)
        live = np.unique(bed.labels)
        for cluster in live[: n // 50].tolist():
            store.name(cluster, f"name {cluster}")
        return bed

    def correct(self, n: int) -> None:
        """Give n corrections: pairs that stay together, and pairs that stay apart, in turn."""
        self.labels = self.store.labels()
        for number in range(n):
            a, b, *_ = self.vectors_apart()
            if number % 2:
                self.store.different(a, b)
            else:
                self.store.same(a, self.mate(a))
        self.labels = self.store.labels()

    def vectors_apart(self) -> list[int]:
        """Return four vectors of four clusters."""
        live = np.flatnonzero(self.labels >= 0)
        while True:
            drawn = [int(number) for number in self.rng.choice(live, 4, replace=False)]
            if len({int(self.labels[number]) for number in drawn}) == len(drawn):
                return drawn

    def mate(self, vector: int) -> int:
        """Return the newest vector of the cluster of a vector."""
        return int(self.store.members(int(self.labels[vector]), limit=50)[-1])


def per_item(bed: Bed) -> dict[str, list[float]]:
    """Return milliseconds of each call, by name, several tries."""
    found: dict[str, list[float]] = {}
    for x in bed.stream.more(TRIES):
        for name, call in calls(bed, x).items():
            found.setdefault(name, []).append(seconds(call) * 1e3)
    return found


def calls(bed: Bed, x: Vectors) -> dict[str, Callable[[], object]]:
    """Return the calls to measure, in order, for a new vector and vectors drawn at random."""
    store = bed.store
    a, b, c, d = bed.vectors_apart()
    mine, other = store.resolve(int(bed.labels[a])), store.resolve(int(bed.labels[b]))
    return {
        "a cluster's page": lambda: page(store, mine),
        "members": lambda: store.members(mine, limit=50),
        "explain": lambda: store.explain(x),
        "explain_pair": lambda: store.explain_pair(a, b),
        "history": lambda: store.history(mine),
        "resolve": lambda: store.resolve(mine),
        "same": lambda: store.same(a, bed.mate(a)),
        "different": lambda: store.different(a, b),
        "move": lambda: store.move(c, other),
        "undo of a move": store.undo,
        "remove": lambda: store.remove(d),
        "undo of a removal": store.undo,
    }


def page(store: Store, cluster: int) -> None:
    """Read what the page of a cluster shows: its figures, members and exemplars."""
    store.cluster(cluster)
    store.members(cluster, limit=50)
    store.exemplars(cluster)


def one_scan(bed: Bed) -> float:
    """Return the seconds of one scan of all clusters against each other."""
    centres = bed.stream.more(bed.stream.n // OF_CLUSTER)
    links = Links(*TIGHT, threads=THREADS, track_vectors=False, keep_vectors=False)
    links.add_many(centres)
    begin = time.perf_counter()
    links.predict(centres)
    return time.perf_counter() - begin


def seconds(work: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def questions(bed: Bed) -> dict[str, float]:
    """Return seconds of reviews and suggestions: the first, and after 1,000 more vectors."""
    path = bed.store.path
    bed.store.close()
    bed.store = Store.open(path, threads=THREADS)
    bed.store.n_vectors  # noqa: B018 - opens the clusterer
    found = {"one scan": one_scan(bed)}
    asks = {"review queue": bed.store.review_queue, "suggest_merges": bed.store.suggest_merges}
    for name, ask in asks.items():
        found[f"first {name}"] = seconds(ask)
    bed.store.add_many(bed.stream.more(MORE))
    for name, ask in asks.items():
        found[f"{name} after {MORE:,} more vectors"] = seconds(ask)
    return found


def run(folder: Path, sizes: list[int]) -> None:
    """Measure, print and store all."""
    results: dict[str, Any] = {"machine": describe(native.kernel_name() or "best"), "sizes": sizes}
    beds = {}
    for n in sizes:
        begin = time.perf_counter()
        beds[n] = Bed.make(folder, n)
        print(f"{n:,} vectors, {beds[n].store.n_clusters:,} clusters made in", end=" ")
        print(f"{time.perf_counter() - begin:.0f} s", flush=True)
    rows = {n: per_item(bed) for n, bed in beds.items()}
    results["calls"] = {
        name: {str(n): summarised(rows[n][name]) for n in sizes} for name in rows[sizes[0]]
    }
    results["questions"] = {str(n): questions(bed) for n, bed in beds.items()}
    for bed in beds.values():
        bed.store.close()
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    print(tables(results))


def summarised(milliseconds: list[float]) -> list[float]:
    """Return the best, the median and the longest try."""
    return [min(milliseconds), statistics.median(milliseconds), max(milliseconds)]


def tables(results: dict[str, Any]) -> str:
    """Return the tables of the docs."""
    small, large = (str(n) for n in results["sizes"])
    lines = [
        f"| call, ms | {int(small):,} vectors | {int(large):,} vectors | longest | ratio |",
        "| --- | --: | --: | --: | --: |",
    ]
    for name, row in results["calls"].items():
        few, many = row[small][1], row[large][1]
        lines.append(
            f"| {name} | {few:.2f} | {many:.2f} | {row[large][2]:.1f} | {many / few:.1f} |"
        )
    lines += ["", f"| question, s | {int(small):,} vectors | {int(large):,} vectors |"]
    lines += ["| --- | --: | --: |"]
    for name in results["questions"][small]:
        few, many = (results["questions"][n][name] for n in (small, large))
        lines.append(f"| {name} | {few:.3f} | {many:.2f} |")
    machine = results["machine"]
    made = f"Medians of {TRIES} tries. Made by `python -m benchmarks.million`;"
    return "\n".join([*lines, "", f"{made} {machine['processor']}, {machine['cores']} cores."])


def main(arguments: list[str] | None = None) -> int:
    """Run the measurements, or write the tables of the docs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.million")
    parser.add_argument("folder", nargs="?", type=Path, help="folder on a disk; temporary if none")
    parser.add_argument("--sizes", nargs=2, type=int, default=[SMALL, LARGE], metavar="N")
    parser.add_argument("--docs", action="store_true", help="write the tables; run nothing")
    options = parser.parse_args(arguments)
    if options.docs:
        put("million", tables(json.loads(RESULTS.read_text("utf-8"))), page=PAGE)
        return 0
    folder = Path(tempfile.mkdtemp(prefix="million-", dir=options.folder))
    try:
        run(folder, options.sizes)
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
