"""Measure writes beside slow questions: `python -m benchmarks.questions [FOLDER] [--vectors N]`.

A service in a process of its own serves a store of N vectors (benchmarks/million.py makes it).
Eight clients write vectors one by one, first alone, then while 32 clients ask for reviews all the
time, in turn. Each pair of tries compares how long a write waits. Then the service is started again
and again, and ended by SIGTERM while the same clients ask and write; the seconds until the process
has ended are compared with `stop_seconds`. The system tells the peak of the memory of the service.
Results are stored in benchmarks/questions.json; `--docs` writes the table of docs/performance.md.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.http_clients import Connection, request
from benchmarks.machine import MIB, describe
from benchmarks.million import DIMENSION, Bed, Stream
from benchmarks.quality_tables import put
from benchmarks.service import RAW
from linkstream.engine import native

RESULTS = Path(__file__).with_name("questions.json")
PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
NAMESPACE = "questions"
PATH = f"/v1/namespaces/{NAMESPACE}"
READERS, WRITERS = 32, 8
WRITES = 100  # of each writer in a try
TRIES = 5
STOPS, STOP_SECONDS = 50, 20.0
SERVE = """
import sys
from linkstream.service.running import serve
from linkstream.service.settings import Settings
serve(Settings(data=sys.argv[1], port=int(sys.argv[2]), stop_seconds=float(sys.argv[3])))
"""


@dataclass
class Waits:
    """Seconds of each write, and the statuses of the questions that were answered."""

    writes: list[float] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)

    def quantile(self, share: float) -> float:
        """Return the milliseconds within which this share of writes was answered."""
        ordered = sorted(self.writes)
        return 1e3 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Service:
    """A service in a process of its own."""

    def __init__(self, data: Path, port: int) -> None:
        self.port = port
        words = [sys.executable, "-c", SERVE, str(data), str(port), str(STOP_SECONDS)]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        asyncio.run(_opened(port))

    def peak(self) -> float:
        """Return the peak of its memory in MiB."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / MIB

    def stop(self) -> tuple[float, int, str]:
        """End it with SIGTERM; return the seconds, the exit code and what it wrote as errors."""
        begin = time.perf_counter()
        self.process.send_signal(signal.SIGTERM)
        _, errors = self.process.communicate(timeout=10 * STOP_SECONDS)
        return time.perf_counter() - begin, self.process.returncode, errors.decode()


async def _opened(port: int) -> None:
    """Wait until the namespace answers; its first request opens the store."""
    while True:
        with contextlib.suppress(OSError):
            connection = await Connection.to(port)
            status, _ = await connection.call(request("GET", PATH, b"", RAW))
            connection.close()
            if status == 200:
                return
        await asyncio.sleep(0.05)


async def _writer(port: int, bodies: Iterator[bytes], waits: Waits) -> None:
    connection = await Connection.to(port)
    path = f"{PATH}/vectors?dimension={DIMENSION}&one=1"
    for body in bodies:
        begin = time.perf_counter()
        status, answer = await connection.call(request("POST", path, body, RAW))
        if status != 200:
            raise AssertionError(f"{status} {answer[:300]!r}")
        waits.writes.append(time.perf_counter() - begin)
    connection.close()


async def _reader(port: int, number: int, waits: Waits) -> None:
    """Ask for reviews until cancelled; each reader asks for another number of questions."""
    connection = await Connection.to(port)
    question = request("GET", f"{PATH}/review?limit={number + 1}", b"", RAW)
    while True:
        status, _ = await connection.call(question)
        waits.statuses.append(status)
        if status != 200:
            await asyncio.sleep(1.0)


async def _load(port: int, bodies: list[Iterator[bytes]], readers: int) -> Waits:
    """Write everything while readers ask."""
    waits = Waits()
    asking = [asyncio.ensure_future(_reader(port, n, waits)) for n in range(readers)]
    if readers:
        await asyncio.sleep(1.0)  # until the questions are being computed
    await asyncio.gather(*(_writer(port, each, waits) for each in bodies))
    for each in asking:
        each.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    return waits


def _bodies(stream: Stream) -> list[Iterator[bytes]]:
    return [iter([x.tobytes() for x in stream.more(WRITES)]) for _ in range(WRITERS)]


def waits(service: Service, stream: Stream) -> dict[str, Any]:
    """Compare how long writes wait alone and beside readers, in turn."""
    found: dict[str, list[Waits]] = {"alone": [], "beside readers": []}
    for _ in range(TRIES):
        for way, readers in (("alone", 0), ("beside readers", READERS)):
            found[way].append(asyncio.run(_load(service.port, _bodies(stream), readers)))
    figures: dict[str, Any] = {
        way: {
            name: [round(each.quantile(share), 2) for each in tries]
            for name, share in (("median", 0.5), ("p99", 0.99), ("longest", 1.0))
        }
        for way, tries in found.items()
    }
    statuses = [status for each in found["beside readers"] for status in each.statuses]
    figures["questions"] = {str(code): statuses.count(code) for code in sorted({*statuses})}
    return figures


async def _amid(service: Service, bodies: list[Iterator[bytes]]) -> tuple[float, int, str]:
    """Stop a service while clients ask and write; return what `Service.stop` returns."""
    waits = Waits()
    work = [asyncio.ensure_future(_reader(service.port, n, waits)) for n in range(READERS)]
    work += [asyncio.ensure_future(_writer(service.port, each, waits)) for each in bodies]
    await asyncio.sleep(0.5)
    ended = await asyncio.to_thread(service.stop)
    for each in work:
        each.cancel()
    await asyncio.gather(*work, return_exceptions=True)
    return ended


def run(folder: Path, vectors: int, stops: int) -> dict[str, Any]:
    """Make the store, and measure."""
    bed = Bed.make(folder, vectors)
    stream, clusters = bed.stream, bed.store.n_clusters
    bed.store.close()
    (folder / f"{vectors}.links").rename(folder / f"{NAMESPACE}.links")
    port = _free_port()
    service = Service(folder, port)
    results: dict[str, Any] = {"machine": describe(native.kernel_name() or "best")}
    results |= {"vectors": vectors, "clusters": clusters, "alone_mib": round(service.peak())}
    results |= waits(service, stream)
    results["peak_mib"] = round(service.peak())
    ends = [service.stop()]
    for _ in range(stops):
        service = Service(folder, port)
        ends.append(asyncio.run(_amid(service, _bodies(stream))))
    results["stops"] = {
        "tries": len(ends),
        "in_time": sum(seconds < STOP_SECONDS for seconds, _, _ in ends),
        "exit_codes": sorted({code for _, code, _ in ends}),
        "tracebacks": sum("Traceback" in errors for _, _, errors in ends),
        "seconds": [round(seconds, 2) for seconds, _, _ in ends],
    }
    return results


def _free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


def table(results: dict[str, Any]) -> str:
    """Return the table of the docs."""
    alone, beside = results["alone"], results["beside readers"]
    lines = [
        f"| a write waits, ms ({results['vectors']:,} vectors, {results['clusters']:,} clusters) "
        f"| alone | beside {READERS} readers | ratio, median of {TRIES} pairs |",
        "| --- | --: | --: | --: |",
    ]
    for name in ("median", "p99", "longest"):
        ratio = statistics.median(b / a for a, b in zip(alone[name], beside[name], strict=True))
        ours, theirs = statistics.median(alone[name]), statistics.median(beside[name])
        lines.append(f"| {name} | {ours:.1f} | {theirs:.1f} | {ratio:.1f} |")
    stops, asked = results["stops"], results["questions"]
    answered = asked.get("200", 0)
    refused = sum(asked.values()) - answered
    machine = results["machine"]
    return "\n".join([
        *lines,
        "",
        f"While the writes ran, {answered:,} questions were answered, {refused:,} were refused "
        f"with 503, and the others were being computed. The process took {results['peak_mib']:,} "
        f"MiB at most ({results['alone_mib']:,} MiB after opening). "
        f"{stops['in_time']} of {stops['tries']} stops by SIGTERM amid this load ended within "
        f"{STOP_SECONDS:.0f} s (the longest {max(stops['seconds']):.1f} s), exit codes "
        f"{stops['exit_codes']}, {stops['tracebacks']} tracebacks.",
        "",
        f"Made by `python -m benchmarks.questions --vectors {results['vectors']}`; "
        f"{machine['processor']}, {machine['cores']} cores.",
    ])  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Run the measurements, or write the table of the docs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.questions", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="folder on a disk; temporary if none")
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--stops", type=int, default=STOPS)
    parser.add_argument("--docs", action="store_true", help="write the table; run nothing")
    options = parser.parse_args(arguments)
    if options.docs:
        put("questions", table(json.loads(RESULTS.read_text("utf-8"))), page=PAGE)
        return 0
    folder = Path(tempfile.mkdtemp(prefix="questions-", dir=options.folder))
    try:
        results = run(folder, options.vectors, options.stops)
    finally:
        shutil.rmtree(folder)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    print(table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
