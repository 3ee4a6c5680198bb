"""Compare the speed of the best mode with the paper's: `python -m benchmarks.healing [FOLDER]`.

The same streams with `evidence="cluster", heal="settle"` and in the paper's mode, in turn, best of
several tries. FOLDER may hold .npz files with an array X; each is repeated to 100,000 vectors with
a little noise. `--slowest` adds 100,000 vectors one by one to 100,000 subclusters, and compares the
slowest `add` with the median, by wall time and by the CPU time of all threads: on a shared machine
the slowest by wall time is often one that had to wait for a core. Results are stored in
benchmarks/healing.json; with `--only`, those of other streams are kept. `--docs` writes the table
of docs/performance.md from them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import workloads
from benchmarks.machine import describe
from benchmarks.quality_tables import put
from benchmarks.timing import measure_in_turn
from linkstream import Links
from linkstream.engine import native

RESULTS = Path(__file__).with_name("healing.json")
PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
QUALITY = Path(__file__).with_name("quality.json")
MODES: dict[str, dict[str, Any]] = {
    "paper": {},
    "healed": {"evidence": "cluster", "heal": "settle"},
}
REPEATED = 100_000
NOISE = 0.02  # of each coordinate, over the root of the dimension


def main(arguments: list[str] | None = None) -> int:
    """Run the streams and store the figures, or write the table of the docs."""
    options = parser().parse_args(arguments)
    if not options.docs:
        run(options)
    else:
        results = json.loads(RESULTS.read_text("utf-8"))
        lines = [*table(results["streams"]), "", *notes(results)]
        put("healing", "\n".join(lines), page=PAGE)
    return 0


def run(options: argparse.Namespace) -> None:
    """Run the streams, print each result, and store all."""
    results: dict[str, Any] = {"machine": describe(native.kernel_name() or "best"), "streams": {}}
    if options.only is not None:
        results = earlier(results)
    for name, (X, thresholds) in streams(options.folder).items():
        if options.only is not None and name not in options.only:
            continue
        results["streams"][name] = row = compare(X, thresholds, options.tries)
        print(f"{name:24} {row['paper']:>10,.0f} {row['healed']:>10,.0f} {row['ratio']:6.2f}")
        sys.stdout.flush()
    if options.slowest:
        results["slowest"] = row = slowest(options.slowest)
        print(" ".join(f"{key} {value:.4g}" for key, value in row.items()))
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")


def earlier(results: dict[str, Any]) -> dict[str, Any]:
    """Return the stored results of the same processor, or the given ones."""
    stored = json.loads(RESULTS.read_text("utf-8"))
    same = stored["machine"]["processor"] == results["machine"]["processor"]
    return dict(stored) if same else results


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.healing")
    made.add_argument("folder", nargs="?", type=Path, help=".npz files with X; thresholds as tuned")
    made.add_argument("--only", nargs="*", metavar="STREAM", help="streams to run; all without it")
    made.add_argument("--tries", type=int, default=3)
    made.add_argument("--slowest", type=int, metavar="N", help="subclusters before N single adds")
    made.add_argument("--docs", action="store_true", help="write the table; run nothing")
    return made


def table(rows: dict[str, dict[str, float]]) -> list[str]:
    """Return a table in Markdown: vectors per second of both modes, and their ratio."""
    head = ["| stream | paper, vectors/s | best, vectors/s | ratio |", "| --- | --: | --: | --: |"]
    return head + [
        f"| {name.replace('_', ' ')} | {row['paper']:,.0f} | {row['healed']:,.0f} |"
        f" {row['ratio']:.2f} |"
        for name, row in rows.items()
    ]


def notes(results: dict[str, Any]) -> list[str]:
    """Return what is to be said of the slowest add, and where it was measured."""
    lines = []
    if slow := results.get("slowest"):
        lines = [
            f"Single adds to {slow['subclusters']:,.0f} subclusters and more: median"
            f" {slow['median ms']:.2f} ms, 99.9 % within {slow['99.9 % ms']:.2f} ms, the slowest of"
            f" {slow['subclusters']:,.0f} took {slow['slowest ms']:.1f} ms. By CPU time of both"
            f" threads: median {slow['median CPU ms']:.2f} ms, 99.9 % within"
            f" {slow['99.9 % CPU ms']:.2f} ms, the slowest {slow['slowest CPU ms']:.1f} ms.",
            "",
        ]
    machine = results["machine"]
    made = "Made by `python -m benchmarks.healing FOLDER --slowest 100000`, best of three;"
    return [*lines, f"{made} {machine['processor']}, {machine['cores']} cores."]


def streams(folder: Path | None) -> dict[str, tuple[workloads.Vectors, workloads.Thresholds]]:
    """Return the frozen workloads, `wide`, and the sets of a folder with tuned thresholds."""
    found = {
        name: (workload.make(), workload.thresholds)
        for name, workload in workloads.SMALL.items()
        if name in ("tight", "scatter", "hub", "lobes")
    }
    wide = workloads.ScatterStream(workloads.WIDE_BASE, seed=workloads.WIDE_SEED)
    found["wide"] = np.concatenate(list(wide.blocks())), workloads.SCATTER
    tuned = json.loads(QUALITY.read_text("utf-8"))["methods"]["links, healed"]["sets"]
    for path in sorted(folder.glob("*.npz")) if folder else ():
        if path.stem in tuned:
            with np.load(path) as arrays:
                parameters = tuned[path.stem]["parameters"].values()
                found[path.stem] = repeated(arrays["X"]), tuple(parameters)  # type: ignore[assignment]
    return found


def repeated(X: np.ndarray[Any, Any]) -> workloads.Vectors:
    """Return the vectors again and again, each time with other noise."""
    rng = np.random.default_rng(0)
    X = X.astype(np.float32) / np.linalg.norm(X, axis=1, keepdims=True)
    rows = X[np.arange(REPEATED) % len(X)]
    noise = rng.standard_normal(rows.shape, dtype=np.float32) * (NOISE / rows.shape[1] ** 0.5)
    return np.ascontiguousarray(rows + noise, dtype=np.float32)


def compare(X: workloads.Vectors, thresholds: workloads.Thresholds, tries: int) -> dict[str, float]:
    """Return vectors per second of each mode, their ratio, and the spread of the tries."""

    def work(options: dict[str, Any]) -> None:
        Links(*thresholds, threads=workloads.THREADS, keep_vectors=False, **options).add_many(X)

    works = {name: lambda options=options: work(options) for name, options in MODES.items()}
    timings = measure_in_turn(works, tries=tries)
    rates = {name: len(X) / timing.best for name, timing in timings.items()}
    spread = {f"spread of {name}": timing.spread for name, timing in timings.items()}
    return rates | {"ratio": rates["healed"] / rates["paper"]} | spread


def slowest(n: int) -> dict[str, float]:
    """Return milliseconds of single adds to n subclusters: median, 99.9 per cent, slowest."""
    stream = workloads.ScatterStream(n, seed=workloads.WIDE_SEED)
    links = Links(
        *workloads.SCATTER, threads=workloads.THREADS, keep_vectors=False, **MODES["healed"]
    )
    for block in stream.blocks():
        links.add_many(block)
    seconds = []
    for vector in stream.more(n):
        begin = time.perf_counter(), time.process_time()
        links.add(vector)
        seconds.append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
    figures = np.quantile(np.array(seconds) * 1e3, [0.5, 0.999, 1.0], axis=0)
    names = ("median", "99.9 %", "slowest")
    return {"subclusters": n} | {
        f"{name}{clock} ms": float(value)
        for name, row in zip(names, figures, strict=True)
        for clock, value in zip(("", " CPU"), row, strict=True)
    }


if __name__ == "__main__":
    sys.exit(main())
