"""Measure what payloads cost: `python -m benchmarks.payloads [FOLDER] [--only PART ...]`.

Calls of 1,000 × 256-d with a payload of 200 bytes for each vector are compared with the same calls
without: in a store, where payloads come as dicts, as lines of JSON or as a table of Arrow, with and
without a search index; and through the service, from a `Client` in this process. The ways take
turns. The best of several tries counts; the ratios of tries that followed each other are shown as
well: the least, the median and the greatest. `cpu` is the processor time of this process for a
vector, in microseconds, which other programs disturb less. The command prints JSON lines.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.timing import Timing
from benchmarks.workloads import TIGHT, Vectors, tight
from linkstream import Links, Thresholds
from linkstream.store import JsonLines, Store

BATCH, BATCHES, TRIES = 1_000, 60, 7
WORDS = "the quick brown fox jumps over the lazy dog while the sun sets behind mountains far away"

Part = tuple[Vectors, Any]  # vectors of a call, and what comes with them
Run = Callable[[Path], tuple[float, float]]  # seconds, and those of the processor


def payload(number: int) -> dict[str, Any]:
    """Return a payload of about 200 bytes of JSON."""
    return {
        "file": f"library/2024/{number % 97}/IMG_{number:08d}.jpg",
        "text": WORDS[number % 30 :],
        "page": number % 1_000,
        "lang": "en",
        "source": "upload",
    }


def _lines(payloads: list[Any]) -> JsonLines:
    return JsonLines([json.dumps(each) for each in payloads])


def _arrow(payloads: list[Any]) -> Any:
    import pyarrow as pa

    return pa.Table.from_pylist(payloads)


def parts(make: Callable[[list[Any]], Any] | None) -> list[Part]:
    """Return the calls with what comes with their vectors."""
    X = tight(BATCH * BATCHES)
    found: list[Part] = []
    for first in range(0, len(X), BATCH):
        some = [payload(number) for number in range(first, first + BATCH)]
        found.append((X[first : first + BATCH], None if make is None else make(some)))
    return found


def in_store(make: Callable[[list[Any]], Any] | None, *, search: bool = False) -> Run:
    """Return a function that adds all calls to a new store."""
    calls = parts(make)

    def run(folder: Path) -> tuple[float, float]:
        path = folder / f"{time.monotonic_ns()}.links"
        with Store.open(path, thresholds=Thresholds(*TIGHT), search=search) as store:
            begin = time.perf_counter(), time.process_time()
            for X, payloads in calls:
                store.add_many(X, payloads=payloads)
            seconds = _since(begin)
        path.unlink()
        return seconds

    return run


def through_service(make: Callable[[list[Any]], Any] | None, *, search: bool = False) -> Run:
    """Return a function that sends all calls to a new service."""
    from linkstream.client import Client

    calls = parts(make)

    def run(folder: Path) -> tuple[float, float]:
        with running(folder) as port, Client(f"http://127.0.0.1:{port}", "load") as client:
            client.create(thresholds=Thresholds(*TIGHT), **({"search": True} if search else {}))
            begin = time.perf_counter(), time.process_time()
            for X, payloads in calls:
                client.add_many(X, payloads=payloads)
            return _since(begin)

    return run


def _since(begin: tuple[float, float]) -> tuple[float, float]:
    return time.perf_counter() - begin[0], time.process_time() - begin[1]


@contextlib.contextmanager
def running(folder: Path) -> Iterator[int]:
    """Start a service in a process of its own, and yield its port."""
    data = Path(tempfile.mkdtemp(prefix="service-", dir=folder))
    words = [sys.executable, "-m", "benchmarks.payloads", "--serve", str(data)]
    child = subprocess.Popen(words, stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        yield int(child.stdout.readline())
    finally:
        child.terminate()
        child.wait()
        shutil.rmtree(data)


def serve(data: Path) -> None:
    """Run the service; print its port first."""
    from linkstream.service.running import server
    from linkstream.service.settings import Settings

    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        server(Settings(data=data, port=0)).run([listening])


def compare(what: str, ways: dict[str, Run], folder: Path) -> None:
    """Run the ways in turn; print the rate of each, and its ratio to the first."""
    seconds: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for _ in range(TRIES):
        for way, run in ways.items():
            seconds[way].append(run(folder))
    n, plain = BATCH * BATCHES, [tried[0] for tried in next(iter(seconds.values()))]
    for way, tries in seconds.items():
        timing = Timing(tuple(tried[0] for tried in tries))
        pairs = sorted(one / other for one, other in zip(plain, timing.seconds, strict=True))
        figures = {
            "per_second": round(n / timing.best),
            "ratio": round(min(plain) / timing.best, 2),
            "ratio_of_pairs": [round(pairs[at], 2) for at in (0, TRIES // 2, -1)],
            "spread": round(timing.spread, 2),
            "cpu": round(min(tried[1] for tried in tries) / n * 1e6, 2),
        }
        print(json.dumps({"what": what, "way": way, **figures}), flush=True)


def store(folder: Path) -> None:
    """Compare the ways to add payloads to a store."""
    ways = {
        "no payloads": in_store(None),
        "dicts": in_store(list),
        "lines of JSON": in_store(_lines),
        "Arrow": in_store(_arrow),
        "dicts, search": in_store(list, search=True),
        "Arrow, search": in_store(_arrow, search=True),
    }
    compare("store", ways, folder)


def service(folder: Path) -> None:
    """Compare the ways to send payloads to a service."""
    ways = {
        "no payloads": through_service(None),
        "dicts": through_service(list),
        "dicts, search": through_service(list, search=True),
    }
    compare("service", ways, folder)


PARTS = {"store": store, "service": service}


def main() -> int:
    """Run the chosen parts in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("."))
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--serve", type=Path)
    given = parser.parse_args()
    if given.serve is not None:
        serve(given.serve)
        return 0
    print(json.dumps({"what": "machine", **machine.describe(Links(*TIGHT).engine)}), flush=True)
    folder = Path(tempfile.mkdtemp(prefix="payloads-", dir=given.folder))
    try:
        for name in given.only:
            PARTS[name](folder)
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
