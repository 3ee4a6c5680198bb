"""Measure the cost of HTTP: `python -m benchmarks.service [FOLDER] [--only PART ...]`.

The service runs in a process of its own on loopback, with its stores in the given folder (on a
disk, not in memory); clients run in another process (benchmarks/http_clients.py). Bodies of
100 × 256-d as raw float32, each durable before it is answered, are compared in turn with the same
service without clustering (benchmarks/service_without_clustering.py): one that stores the vectors
and answers zeros, one that only hands them to another thread, and one that answers at once. Then
single vectors from one client and from sixteen are measured. Each try sends a fixed number of
requests. The command prints JSON lines, then a table.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks import machine
from benchmarks.http_clients import ClientResults, Requests, request, work
from benchmarks.workloads import TIGHT, tight
from linkstream import Links

BATCH, DIMENSION = 100, 256
BATCHES, CLIENTS = 600, 8  # of a try, all clients together
SINGLES, CALLERS = 3_000, 16
TRIES = 5
RAW = "application/octet-stream"
BEFORE = 2_000  # vectors added before the measurement
PATH = "/v1/namespaces/load"
NAMES = ("cluster_similarity", "subcluster_similarity", "pair_similarity_max")

ROWS: list[tuple[object, ...]] = []


def say(what: str, **figures: object) -> None:
    """Print one line of JSON."""
    print(json.dumps({"what": what, **figures}), flush=True)


@contextlib.contextmanager
def running(folder: Path, *, dry: str = "") -> Iterator[int]:
    """Start a service with a namespace of some vectors, and yield its port."""
    data = Path(tempfile.mkdtemp(prefix="service-", dir=folder))
    words = [sys.executable, "-m", "benchmarks.service", "--serve", data]
    words += ["--dry", dry] if dry else []
    child = subprocess.Popen(words, stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        port = int(child.stdout.readline())
        thresholds = dict(zip(NAMES, TIGHT, strict=True))
        _send(port, "PUT", PATH, json.dumps({"thresholds": thresholds}).encode())
        first = tight(BEFORE).tobytes()
        _send(port, "POST", f"{PATH}/vectors?dimension={DIMENSION}", first, RAW)
        yield port
    finally:
        child.terminate()
        child.wait()
        shutil.rmtree(data)


def _send(port: int, method: str, path: str, body: bytes, media: str = "application/json") -> None:
    target = f"http://127.0.0.1:{port}{path}"
    asked = urllib.request.Request(target, body, {"Content-Type": media}, method=method)
    with urllib.request.urlopen(asked) as answer:
        answer.read()


def serve(data: Path, *, dry: str) -> None:
    """Run the service; print its port first."""
    from benchmarks import service_without_clustering
    from linkstream.service.running import server
    from linkstream.service.settings import Settings

    settings = Settings(data=data, port=0, body_max="64MiB", rows_max=1_000_000)
    sessions = service_without_clustering.WAYS[dry](settings) if dry else None
    with socket.create_server(("127.0.0.1", 0), backlog=1_024) as listening:
        print(listening.getsockname()[1], flush=True)
        server(settings, sessions=sessions).run([listening])


# Clients, in a process of their own


def _batches(first: int) -> Requests:
    """Yield every eighth batch of a stream."""
    X = tight(BEFORE + BATCHES * BATCH)[BEFORE:]
    path = f"{PATH}/vectors?dimension={DIMENSION}"
    for number in range(first, BATCHES, CLIENTS):
        body = X[number * BATCH : (number + 1) * BATCH].tobytes()
        yield request("POST", path, body, RAW, f"accept: {RAW}")


def _singles(first: int, clients: int, count: int) -> Requests:
    X = tight(BEFORE + count)[BEFORE:]
    path = f"{PATH}/vectors?dimension={DIMENSION}&one=1"
    for number in range(first, count, clients):
        yield request("POST", path, X[number].tobytes(), RAW)


def _json_singles(first: int, clients: int, count: int) -> Requests:
    X = tight(BEFORE + count)[BEFORE:]
    for number in range(first, count, clients):
        body = json.dumps({"vector": X[number].tolist()}).encode()
        yield request("POST", f"{PATH}/vectors", body, "application/json")


def send_batches(port: int) -> ClientResults:
    """Send batches from eight clients."""
    return work(port, [iter(list(_batches(first))) for first in range(CLIENTS)])


def send_singles(port: int, clients: int, count: int, *, as_json: bool) -> ClientResults:
    """Send vectors one by one from several clients."""
    make = _json_singles if as_json else _singles
    return work(port, [iter(list(make(first, clients, count))) for first in range(clients)])


# Measurements


def batches(folder: Path, apart: ProcessPoolExecutor) -> None:
    """Compare durable batches with the same service without clustering, in turn."""
    found: dict[str, list[ClientResults]] = {"": [], "stored": [], "thread": [], "at once": []}
    for _ in range(TRIES):
        for way, tries in found.items():
            with running(folder, dry=way) as port:
                tries.append(apart.submit(send_batches, port).result())
    words = {
        "": "durable",
        "stored": "durable, no clustering",
        "thread": "no clustering, nothing kept",
        "at once": "no clustering, nothing kept, no thread",
    }
    rates = {
        way: [BATCHES * BATCH / results.wall for results in tries] for way, tries in found.items()
    }
    for way, tries in found.items():
        _report(f"batches of {BATCH}, {CLIENTS} clients", words[way], tries, BATCHES * BATCH)
    for way in ("stored", "thread", "at once"):
        _compare(f"durable / {words[way]}", rates[""], rates[way])


def singles(folder: Path, apart: ProcessPoolExecutor) -> None:
    """Measure durable requests of one vector, from one client and from sixteen, in turn."""
    for as_json in (False, True):
        found: dict[int, list[ClientResults]] = {1: [], CALLERS: []}
        counts = {1: SINGLES // 4, CALLERS: SINGLES}
        for _ in range(TRIES):
            for clients, tries in found.items():
                with running(folder) as port:
                    job = apart.submit(
                        send_singles, port, clients, counts[clients], as_json=as_json
                    )
                    tries.append(job.result())
        kind = "JSON" if as_json else "raw"
        for clients, tries in found.items():
            _report(f"single vectors, {kind}", f"{clients} clients", tries, counts[clients])
        rates = {
            clients: [counts[clients] / results.wall for results in tries]
            for clients, tries in found.items()
        }
        _compare(f"{CALLERS} clients / 1, {kind}", rates[CALLERS], rates[1])


def disk(folder: Path, apart: ProcessPoolExecutor) -> None:  # noqa: ARG001, RUF100
    """Measure a durable write on this disk."""
    from benchmarks.durable import disk as measured

    measured(folder)


def _compare(what: str, rates: list[float], others: list[float]) -> None:
    """Record the ratio of the best tries, and the least, median and greatest ratio of pairs."""
    ratio = max(rates) / max(others)
    pairs = sorted(a / b for a, b in zip(rates, others, strict=True))
    three = [round(pairs[rank], 2) for rank in (0, len(pairs) // 2, -1)]
    say(what, ratio=round(ratio, 2), ratio_of_pairs=three)
    ROWS.append((what, "", f"× {ratio:.2f}", "", "", " / ".join(map(str, three))))


def _report(what: str, way: str, tries: list[ClientResults], vectors: int) -> None:
    best = min(tries, key=lambda results: results.wall)
    spread = max(results.wall for results in tries) / best.wall - 1.0
    p50, p99 = 1e3 * best.percentile(0.5), 1e3 * best.percentile(0.99)
    rate = vectors / best.wall
    figures = {"vectors_per_second": round(rate), "spread": round(spread, 2)}
    say(what, way=way, **figures, p50_ms=round(p50, 2), p99_ms=round(p99, 2))
    ROWS.append((what, way, f"{rate:,.0f}", f"{p50:.2f}", f"{p99:.2f}", f"{spread:.0%}"))


PARTS = {"disk": disk, "batches": batches, "singles": singles}


def table() -> str:
    """Return all figures as a Markdown table."""
    lines = ["| what | way | vectors/s | p50 ms | p99 ms | spread |", "|---|---|---|---|---|---|"]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in ROWS)])


def main() -> int:
    """Run the chosen parts in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("."))
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--serve", type=Path)
    parser.add_argument("--dry", default="")
    given = parser.parse_args()
    if given.serve is not None:
        serve(given.serve, dry=given.dry)
        return 0
    say("machine", **machine.describe(Links(*TIGHT).engine))
    folder = Path(tempfile.mkdtemp(prefix="service-", dir=given.folder))
    begin = time.perf_counter()
    try:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context) as apart:
            for name in given.only:
                PARTS[name](folder, apart)
    finally:
        shutil.rmtree(folder)
    say("all of it", seconds=round(time.perf_counter() - begin))
    print("\n" + table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
