"""Measure memory a vector and a subcluster: `python -m benchmarks.memory`.

Each figure comes from a process of its own that adds vectors of 256 dimensions and reads its
resident memory at two sizes; the difference counts. Options are left out one after the other, so
that the table shows what is kept for what. A store is closed at each size, and its memory is that
of a process that opens it again. Results are stored in benchmarks/memory.json; `--docs`
writes the table of docs/performance.md.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.machine import describe, resident
from benchmarks.quality_tables import put
from benchmarks.workloads import SCATTER, TIGHT, ScatterStream, Vectors, tight
from linkstream import Links, Thresholds
from linkstream.engine import native
from linkstream.store import Store

RESULTS = Path(__file__).with_name("memory.json")
PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
DIMENSION, BLOCK = 256, 10_000
SIZES = {
    "vector": (200_000, 600_000),  # in 100 subclusters: the cost of a vector
    "subcluster": (60_000, 180_000),  # one vector each: the cost of a subcluster
}
THRESHOLDS = {"vector": TIGHT, "subcluster": SCATTER}


WAYS: dict[str, dict[str, Any]] = {
    "Links": {},
    'Links, mode="best"': {"mode": "best"},
    "Links, keep_vectors=False": {"keep_vectors": False},
    "Links, track_vectors=False": {"track_vectors": False},
}
STORE = "Store"
KEPT = {
    "Links": "the vector (4 bytes a dimension), its event (a few bytes, packed), its subcluster "
    "and its place in the index of members (8)",
    'Links, mode="best"': "the same",
    "Links, keep_vectors=False": "all but the vector",
    "Links, track_vectors=False": "nothing a vector; the newest 100,000 events in all",
    "Store": "its subcluster, its place in the index of members (8) and in that of the file; "
    "vectors and events are in the file",
}


def blocks(kind: str, n: int) -> Iterator[Vectors]:
    """Yield the vectors of a stream in blocks."""
    if kind == "vector":
        again = tight(BLOCK, DIMENSION)
        yield from (again for _ in range(n // BLOCK))
    else:
        yield from ScatterStream(n, DIMENSION, seed=102).blocks(BLOCK)


def gained(way: str, kind: str, folder: Path) -> float:
    """Return the bytes gained for each vector between two sizes."""
    few, many = SIZES[kind]
    if way == STORE:
        sizes = [run_apart("--opened", kind, str(n), str(folder)) for n in (few, many)]
        return (sizes[1] - sizes[0]) / (many - few)
    links, before, n = Links(*THRESHOLDS[kind], **WAYS[way]), 0.0, 0
    for block in blocks(kind, many):
        links.add_many(block)
        n += len(block)
        if n == few:
            before = _settled()
    return (_settled() - before) / (many - few)


def opened(kind: str, n: int, folder: Path) -> float:
    """Make a store of n vectors unless it is there; return the memory of opening it."""
    path = folder / f"{n}.links"
    if not path.exists():
        with Store.open(path, thresholds=Thresholds(*THRESHOLDS[kind])) as store:
            for block in blocks(kind, n):
                store.add_many(block)
        return run_apart("--opened", kind, str(n), str(folder))
    with Store.open(path) as store:
        assert store.n_vectors == n
        return _settled()


def _settled() -> float:
    """Return the resident memory after what is free was given back to the system."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return resident()


def run_apart(*words: str) -> float:
    """Return the figure that another process of this program prints."""
    line = [sys.executable, "-m", "benchmarks.memory", *words]
    return float(subprocess.run(line, check=True, capture_output=True, text=True).stdout)


def measure(way: str, kind: str) -> float:
    """Return the figure of a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return run_apart("--gained", way, kind, folder)


def table(results: dict[str, Any]) -> str:
    """Return the table of the docs."""
    lines = [
        "| | bytes a vector | bytes a subcluster | kept for each vector |",
        "| --- | --: | --: | --- |",
    ]
    for way, figures in results["ways"].items():
        one, other = figures["vector"], figures["subcluster"]
        lines.append(f"| `{way}` | {max(one, 0):,.0f} | {other:,.0f} | {KEPT[way]} |")
    machine = results["machine"]
    made = f"Made by `python -m benchmarks.memory`; {machine['processor']}."
    return "\n".join([*lines, "", made])


def main(arguments: list[str] | None = None) -> int:
    """Run the measurements, or write the table of the docs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--gained", nargs=3, metavar=("WAY", "KIND", "FOLDER"))
    parser.add_argument("--opened", nargs=3, metavar=("KIND", "N", "FOLDER"))
    parser.add_argument("--docs", action="store_true", help="write the table; run nothing")
    options = parser.parse_args(arguments)
    if options.gained:
        way, kind, folder = options.gained
        print(gained(way, kind, Path(folder)))
        return 0
    if options.opened:
        kind, n, folder = options.opened
        print(opened(kind, int(n), Path(folder)))
        return 0
    if options.docs:
        put("memory", table(json.loads(RESULTS.read_text("utf-8"))), page=PAGE)
        return 0
    results: dict[str, Any] = {"machine": describe(native.kernel_name() or "best"), "ways": {}}
    for way in (*WAYS, STORE):
        one, whole = measure(way, "vector"), measure(way, "subcluster")
        results["ways"][way] = {"vector": one, "subcluster": whole - one}
        print(f"{way}: {one:,.0f} bytes a vector, {whole - one:,.0f} a subcluster", flush=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    print(table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
