"""Measure the cost of durability: `python -m benchmarks.durable [FOLDER] [--only PART ...]`.

The command measures in the given folder (on a disk, not in memory): the fsync of the disk; batches
of 1,000 × 256-d with and without a store, in turn; single durable adds, by one caller and by
sixteen; opening a store of 1,000,000 vectors and 100,000 subclusters after a clean close, and after
kill −9 during an ingest; ten million vectors through the command line. It prints JSON lines.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from rich.progress import track

from benchmarks import machine
from benchmarks.timing import Timing, measure
from benchmarks.workloads import TIGHT, Vectors, around, long_stream, on_grid, random_units, tight
from linkstream import Links, Thresholds
from linkstream.store import Store

THRESHOLDS = Thresholds(*TIGHT)
BATCH = 1_000
VECTORS, SUBCLUSTERS = 1_000_000, 100_000
LONG = 10_000_000
CALLERS, SINGLE = 16, 2_000
KILLS = 3


def say(what: str, **figures: object) -> None:
    """Print one line of JSON."""
    print(json.dumps({"what": what, **figures}), flush=True)


def spread(timing: Timing, n: int) -> dict[str, object]:
    """Return the best rate of several tries, and the spread."""
    return {"per_second": round(n / timing.best), "spread": round(timing.spread, 2)}


def disk(folder: Path) -> None:
    """Measure a durable overwrite on this disk."""
    with open(folder / "disk", "w+b", buffering=0) as file:
        for size in (4096, BATCH * 1024):
            data = np.random.default_rng(0).bytes(size)

            def write(data: bytes = data) -> None:
                file.seek(0)
                file.write(data)
                os.fdatasync(file.fileno())

            timing = measure(write, tries=200)
            middle = sorted(timing.seconds)[100]
            say("fsync", bytes=size, best_ms=timing.best * 1e3, median_ms=middle * 1e3)


def batches(folder: Path) -> None:
    """Compare `add_many` and `feed` of a store with `add_many` of `Links`, on `tight`, in turn.

    From the first batch to the last answer; and with the closing, which moves the log into the
    file and writes a snapshot.
    """
    for n in (20_000, 400_000):
        X = tight(n)
        parts = [X[first : first + BATCH] for first in range(0, n, BATCH)]
        plain, closed = [], {"add_many": [], "feed": []}  # type: ignore[var-annotated]
        seconds = {"add_many": [], "feed": []}  # type: ignore[var-annotated]
        for _ in range(7):
            plain.append(_plain(parts))
            for way, work in (("add_many", _one_by_one), ("feed", _fed)):
                acknowledged, whole = _stored(folder, parts, work)
                seconds[way].append(acknowledged)
                closed[way].append(whole)
        alone = Timing(tuple(plain))
        say("batches", vectors=n, way="no store", **spread(alone, n))
        for way in seconds:
            timing, whole = Timing(tuple(seconds[way])), Timing(tuple(closed[way]))
            ratios = sorted(a / b for a, b in zip(plain, seconds[way], strict=True))
            say(
                "batches",
                vectors=n,
                way=way,
                ratio=round(alone.best / timing.best, 2),
                ratio_of_pairs=[round(ratios[0], 2), round(ratios[3], 2), round(ratios[-1], 2)],
                ratio_with_closing=round(alone.best / whole.best, 2),
                **spread(timing, n),
            )


def _plain(parts: list[Vectors]) -> float:
    links, begin = Links(*TIGHT), time.perf_counter()
    for part in parts:
        links.add_many(part)
    return time.perf_counter() - begin


def _one_by_one(store: Store, parts: list[Vectors]) -> None:
    for part in parts:
        store.add_many(part)


def _fed(store: Store, parts: list[Vectors]) -> None:
    for _ in store.feed(parts):
        pass


def _stored(
    folder: Path, parts: list[Vectors], work: Callable[[Store, list[Vectors]], None]
) -> tuple[float, float]:
    """Return the seconds until the last answer of a new store, and until its close."""
    path = folder / f"{time.monotonic_ns()}.links"
    store = Store.open(path, thresholds=THRESHOLDS)
    begin = time.perf_counter()
    work(store, parts)
    acknowledged = time.perf_counter() - begin
    store.close()
    whole = time.perf_counter() - begin
    path.unlink()
    return acknowledged, whole


def singles(folder: Path) -> None:
    """Measure durable adds of one vector per call."""
    X = tight(SINGLE)

    def one(store: Store, first: int, callers: int) -> None:
        for x in X[first::callers]:
            store.add(x)

    def all_of_them(store: Store, callers: int) -> float:
        threads = [threading.Thread(target=one, args=(store, n, callers)) for n in range(callers)]
        begin = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - begin

    for callers in (1, CALLERS):
        seconds = []
        for turn in range(5):
            with Store.open(folder / f"{callers}-{turn}.links", thresholds=THRESHOLDS) as store:
                seconds.append(all_of_them(store, callers))
        say("single adds", callers=callers, **spread(Timing(tuple(seconds)), SINGLE))


def large_stream(size: int = 5_000) -> Iterator[Vectors]:
    """Yield a million vectors of 100,000 subclusters; the first tenth starts them all."""
    rng = np.random.default_rng(108)
    centres = random_units(SUBCLUSTERS, 256, rng)
    order = np.concatenate(
        [np.arange(SUBCLUSTERS), rng.integers(0, SUBCLUSTERS, VECTORS - SUBCLUSTERS)]
    )
    for first in range(0, VECTORS, size):
        yield on_grid(around(centres[order[first : first + size]], 0.9, rng))


def opening(folder: Path) -> None:
    """Measure opening a large store after a clean close and after a kill."""
    path = folder / "large.links"
    begin = time.perf_counter()
    with Store.open(path, thresholds=THRESHOLDS) as store:
        stream = track(large_stream(), total=VECTORS // 5_000, description="a large store")
        for _ in store.feed(stream):
            pass
        say("large store", seconds=round(time.perf_counter() - begin), **_figures(store))
    tries = measure(lambda: Store.open(path).close(), tries=5)
    say("opening", after="a clean close", best_s=tries.best, worst_s=max(tries.seconds))
    for _ in range(KILLS):
        child = subprocess.Popen([sys.executable, "-m", "benchmarks.durable", "--ingest", path])
        time.sleep(float(np.random.default_rng().uniform(8.0, 20.0)))
        child.kill()
        child.wait()
        begin = time.perf_counter()
        store = Store.open(path)
        seconds = time.perf_counter() - begin
        say("opening", after="kill -9", s=round(seconds, 2), **_figures(store))
        store.close()


def _figures(store: Store) -> dict[str, object]:
    info = store.info()
    names = ("vectors", "subclusters", "clusters", "operations", "bytes", "log_bytes", "snapshots")
    return {name: info[name] for name in names}


def ingest(path: Path) -> None:
    """Add to a large store until this process is killed."""
    rng = np.random.default_rng(109)
    with Store.open(path) as store:
        while True:
            known = store.vectors(rng.integers(0, VECTORS, 200).tolist())
            parts = np.concatenate([known] * 5)
            store.add_many(on_grid(around(parts.astype(np.float64), 0.97, rng)))


def pipeline(folder: Path) -> None:
    """Measure ten million vectors piped through the command line into a store."""
    words = [sys.executable, "-c", "from linkstream.cli import main; main()", "cluster", "-"]
    names = ("cluster-similarity", "subcluster-similarity", "pair-similarity-max")
    for name, value in zip(names, TIGHT, strict=True):
        words += [f"--{name}", str(value)]
    words += ["--dimension", "256", "--store", str(folder / "long.links"), "--no-track"]
    begin = time.perf_counter()
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert child.stdin is not None
    blocks = long_stream(LONG)
    memory = []
    for number, block in enumerate(track(blocks, total=LONG // 20_000, description="ten million")):
        child.stdin.write(block.tobytes())
        if number % 50 == 49:
            memory.append(round(_resident(child.pid) / machine.MIB))
    child.stdin.close()
    code = child.wait()
    seconds = time.perf_counter() - begin
    size = (folder / "long.links").stat().st_size
    say("pipeline", vectors=LONG, code=code, seconds=round(seconds), mib=memory, bytes=size)


def _resident(pid: int) -> float:
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return float(fields[1]) * os.sysconf("SC_PAGE_SIZE")


PARTS = {
    "disk": disk,
    "batches": batches,
    "singles": singles,
    "opening": opening,
    "pipeline": pipeline,
}


def main() -> int:
    """Run the chosen parts in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("."))
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--ingest", type=Path)
    given = parser.parse_args()
    if given.ingest is not None:
        ingest(given.ingest)
        return 0
    say("machine", **machine.describe(Links(*TIGHT).engine))
    folder = Path(tempfile.mkdtemp(prefix="durable-", dir=given.folder))
    try:
        for name in given.only:
            PARTS[name](folder)
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
