"""Measure reads during a rebuild: `python -m benchmarks.rebuild_jobs [FOLDER] [--n N]`.

A service in a process of its own has a namespace of N vectors of 256 dimensions, of identities with
three looks each. One client reads one cluster after the other over one connection, with a pause
between two requests; for some seconds without a rebuild, then while a job computes a rebuild and
applies it, eight times. A second connection asks for the state of the job and tells which reads ran
in which phase. Then the same is measured for one `POST …/rebuild`, which computes on the writer's
thread. The command prints JSON lines.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import machine
from benchmarks.workloads import around, random_units
from linkstream import Thresholds
from linkstream.store import Store

DIMENSION, EACH, BATCH = 256, 20, 5_000
THRESHOLDS = Thresholds(0.7, 0.6, 0.85)
LOOKS = 3  # of an identity; the vectors of one are near each other
COSINE = 0.85  # of a look to the centre of its identity, and of a vector to its look
JOBS = 8
QUIET = 4.0  # seconds without a rebuild before each
PAUSE = 0.004  # seconds between two reads
PATH = "/v1/namespaces/people"

Spans = list[tuple[float, float]]


def made(path: Path, n: int) -> int:
    """Make the store; return its number of clusters."""
    rng = np.random.default_rng(0)
    centres = random_units(n // EACH, DIMENSION, rng)
    looks = around(np.repeat(centres, LOOKS, axis=0), COSINE, rng)
    owners = rng.permutation(np.repeat(np.arange(len(centres)), EACH)) * LOOKS
    with Store.open(path, thresholds=THRESHOLDS) as store:
        for first in range(0, len(owners), BATCH):
            mine = owners[first : first + BATCH]
            some = looks[mine + rng.integers(LOOKS, size=len(mine))]
            store.add_many(np.float32(around(some, COSINE, rng)))
        return store.n_clusters


@contextlib.contextmanager
def serving(data: Path) -> Iterator[int]:
    """Run the service, and yield its port."""
    words = [sys.executable, "-m", "linkstream.cli", "serve", str(data), "--port", "0"]
    child = subprocess.Popen(words, stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        url = json.loads(child.stdout.readline())["url"]
        yield int(url.rstrip("/").rpartition(":")[2])
    finally:
        child.terminate()
        child.wait()


class Caller:
    """One connection."""

    def __init__(self, port: int) -> None:
        self._line = http.client.HTTPConnection("127.0.0.1", port, timeout=600)

    def call(self, method: str, path: str, body: object = None) -> dict[str, object]:
        """Send a request and return the answer."""
        data = None if body is None else json.dumps(body)
        self._line.request(method, PATH + path, data, {"Content-Type": "application/json"})
        answer = self._line.getresponse()
        found: dict[str, object] = json.loads(answer.read())
        assert answer.status < 300, found
        return found


class Reads:
    """Reads of one cluster after the other, until the end of the context."""

    def __init__(self, port: int, n_clusters: int) -> None:
        self._caller, self._n = Caller(port), n_clusters
        self._over = threading.Event()
        self.begun: list[float] = []
        self.seconds: list[float] = []

    def _run(self) -> None:
        rng = np.random.default_rng(1)
        while not self._over.is_set():
            begin = time.perf_counter()
            self._caller.call("GET", f"/clusters/{rng.integers(self._n)}?brief=true")
            self.begun.append(begin)
            self.seconds.append(time.perf_counter() - begin)
            time.sleep(PAUSE)

    def __enter__(self) -> Reads:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def during(self, spans: Spans) -> npt.NDArray[np.float64]:
        """Return the seconds of the reads that overlap with spans of time."""
        ends = np.array(self.begun) + self.seconds
        found = np.zeros(len(ends), dtype=bool)
        for start, end in spans:
            found |= (np.array(self.begun) < end) & (ends > start)
        return np.array(self.seconds)[found]


def figures(seconds: npt.NDArray[np.float64]) -> dict[str, object]:
    """Return how long reads took, in milliseconds."""
    p50, p99 = np.percentile(seconds * 1_000, (50, 99))
    longest = round(float(seconds.max() * 1_000), 1)
    return {
        "reads": len(seconds),
        "p50_ms": round(float(p50), 2),
        "p99_ms": round(float(p99), 2),
        "max_ms": longest,
    }


def say(what: str, **figures: object) -> None:
    """Print one line of JSON."""
    print(json.dumps({"what": what, **figures}), flush=True)


def job(port: int, n_clusters: int) -> None:
    """Measure reads without a rebuild, and during jobs that are applied and undone."""
    caller, spans = Caller(port), dict[str, Spans]()
    with Reads(port, n_clusters) as reads:
        for _ in range(JOBS):
            begin = time.perf_counter()
            time.sleep(QUIET)
            spans.setdefault("quiet", []).append((begin, time.perf_counter()))
            found = one_job(caller, spans)
            caller.call("POST", "/undo", {"to": found["before"], "after": found["event"]})
            time.sleep(0.5)
    for state, mine in spans.items():
        seconds = np.mean([end - start for start, end in mine])
        rest = [] if state == "applying" else spans["applying"]
        both = Counter(reads.during(mine).tolist()) - Counter(reads.during(rest).tolist())
        say(state, seconds=round(float(seconds), 2), **figures(np.array([*both.elements()])))
    report: Any = found["report"]
    moved = sum(flow["vectors"] for flow in report["flows"])
    say("report", clusters=report["n_clusters"], moved=moved, seconds=found["seconds"])


def one_job(caller: Caller, spans: dict[str, Spans]) -> dict[str, object]:
    """Run a job to its end; add the span of each of its phases."""
    found = caller.call("POST", "/rebuilds", {"apply": True})
    begin, state = time.perf_counter(), "computing"  # it hardly waits
    while found["state"] not in ("done", "failed", "cancelled"):
        time.sleep(0.002)
        found = caller.call("GET", f"/rebuilds/{found['job']}")
        now = time.perf_counter()
        if found["state"] not in ("waiting", state):
            spans.setdefault(state, []).append((begin, now))
            begin, state = now, str(found["state"])
    assert (found["state"], len(spans["computing"])) == ("done", len(spans["applying"])), found
    return found


def at_once(port: int, n_clusters: int) -> None:
    """Measure reads while the writer's thread computes a rebuild."""
    caller = Caller(port)
    with Reads(port, n_clusters) as reads:
        time.sleep(1.0)
        start = time.perf_counter()
        caller.call("POST", "/rebuild", {"apply": True})
        end = time.perf_counter()
        time.sleep(0.5)
    seconds = round(end - start, 2)
    say("POST rebuild", seconds=seconds, **figures(reads.during([(start, end)])))


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--n", type=int, default=100_000)
    given = parser.parse_args()
    data = Path(tempfile.mkdtemp(prefix="rebuild-", dir=given.folder))
    try:
        n_clusters = made(data / "people.links", given.n)
        say("machine", processor=machine.processor(), cores=machine.usable_cores(), n=given.n)
        with serving(data) as port:
            Caller(port).call("GET", "")
            job(port, n_clusters)
            at_once(port, n_clusters)
    finally:
        shutil.rmtree(data)


if __name__ == "__main__":
    main()
