"""Measure a full settlement: `python -m benchmarks.settling [N ...]`.

The rows are subclusters of one vector each in clusters of 20, 256 dimensions (`scatter` of
workloads.py). Each size runs in a process of its own. Shown are the best wall time of a few runs,
the processor time of that run, the memory above that of the clusterer, the memory of the whole
process, and the load of the machine. `--whole` measures `Links.settle` with the clusterer, and
`--apply` one that is applied, once; otherwise linkage is measured alone.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from pathlib import Path

import numpy as np

from benchmarks.workloads import SCATTER, THREADS, ScatterStream
from linkstream import Links, Thresholds
from linkstream.engine.choice import choose
from linkstream.engine.fixed_point import quantise
from linkstream.engine.linkage import UNRESTRICTED, Integers

DIMENSION = 256
SIZES = (20_000, 100_000)
STATUS = Path("/proc/self/status")


def sums_of(n: int) -> Integers:
    """Return the sums of n subclusters of one vector each."""
    sums = np.empty((n, DIMENSION), dtype=np.int64)
    first = 0
    for block in ScatterStream(n, DIMENSION, seed=102).blocks():
        sums[first : first + len(block)] = quantise(block)[0]
        first += len(block)
    return sums


def peak() -> int:
    """Return the most memory that the process has used so far, in KiB."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1])


def now() -> int:
    """Return the memory that the process uses, in KiB, and forget the peak."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def measure(n: int, repeat: int, whole: bool, apply: bool) -> None:
    """Print the figures of one size."""
    runs = []
    if whole:
        links = Links(*SCATTER, threads=THREADS, keep_vectors=False)
        for block in ScatterStream(n, DIMENSION, seed=102).blocks():
            links.add_many(block)
        rows, work = links.n_subclusters, lambda: links.settle(apply).n_clusters_after
    else:
        sums, masses = sums_of(n), np.ones(n)
        factory, test = choose("native", THREADS), Thresholds(*SCATTER)
        rows, work = n, lambda: n - len(factory.unions(sums, masses, test, UNRESTRICTED, None).kept)
    for _ in range(repeat):
        before, wall, cpu = now(), time.perf_counter(), time.process_time()
        groups = work()
        runs.append((time.perf_counter() - wall, time.process_time() - cpu, peak(), before))
    best, memory, most = min(runs), max(run[2] - run[3] for run in runs), max(r[2] for r in runs)
    load = os.getloadavg()[0]
    print(
        f"{rows:>9,} subclusters: {best[0]:7.1f} s, {best[1]:7.1f} s of processor, "
        f"{memory / 2**20:5.2f} GiB of {most / 2**20:5.2f}, {groups:,} groups, load {load:.1f}",
        flush=True,
    )


def main() -> None:
    """Measure the sizes that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--apply", action="store_true")
    given = parser.parse_args()
    for n in given.sizes:
        repeat = 1 if given.apply else given.repeat
        options = (n, repeat, given.whole or given.apply, given.apply)
        child = multiprocessing.Process(target=measure, args=options)
        child.start()
        child.join()


if __name__ == "__main__":
    main()
