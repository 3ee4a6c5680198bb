"""Measure reports and searches in a large store: `python -m benchmarks.reports [FOLDER] [--n N]`.

A store of N vectors of 16 dimensions with payloads and a search index is made. Then, one after the
other: the first report of changes over all events and the second one, with the memory that they
keep; a table of all vectors as Arrow, with the most memory it took; searches for a word that all
payloads have, for a rare one, for two that never come together, and for a beginning. The command
prints JSON lines.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.workloads import TIGHT, around, random_units
from linkstream import Links, Thresholds
from linkstream.store import Store, tabular

DIMENSION, CENTRES, BATCH = 16, 5_000, 5_000


def made(path: Path, n: int) -> None:
    """Make the store."""
    rng = np.random.default_rng(0)
    centres = random_units(CENTRES, DIMENSION, rng)
    with Store.open(path, thresholds=Thresholds(*TIGHT), search=True) as store:
        for first in range(0, n, BATCH):
            numbers = range(first, min(first + BATCH, n))
            X = around(centres[rng.integers(0, CENTRES, len(numbers))], 0.95, rng)
            payloads = [
                {"file": f"{i}.jpg", "text": f"common {'odd' if i % 2 else 'even'} w{i % 997}"}
                for i in numbers
            ]
            store.add_many(np.float32(X), payloads=payloads)


def resident() -> float:
    """Return the memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def timed(what: str, work: Callable[[], Any], **figures: object) -> Any:
    """Print the seconds of some work, and the memory that is kept after it."""
    before, begin = resident(), time.perf_counter()
    answer = work()
    seconds = time.perf_counter() - begin
    kept = round(resident() - before)
    print(
        json.dumps({"what": what, "s": round(seconds, 4), "kept_mib": kept, **figures}), flush=True
    )
    return answer


def table(store: Store) -> int:
    """Return how many bytes the table of all vectors has as Arrow."""
    return sum(map(len, tabular.encoded_rows(store, "arrow")))


def main() -> int:
    """Run everything in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("."))
    parser.add_argument("--n", type=int, default=1_000_000)
    given = parser.parse_args()
    print(json.dumps({"what": "machine", **machine.describe(Links(*TIGHT).engine)}), flush=True)
    folder = Path(tempfile.mkdtemp(prefix="reports-", dir=given.folder))
    try:
        path = folder / "large.links"
        timed("make", lambda: made(path, given.n), vectors=given.n)
        with Store.open(path, read_only=True) as store:
            timed("first report", store.changes)
            timed("second report", store.changes)
            timed("report of the newest tenth", lambda: store.changes(store.n_events * 9 // 10))
            size = timed("table as Arrow", lambda: table(store))
            print(json.dumps({"what": "size of the table", "mib": round(size / 2**20)}))
            for words in ("common", "w17 odd", "w18 odd", "odd even", "comm*"):
                timed(f"search {words}", lambda words=words: store.search(words))  # type: ignore[misc]
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
