"""Compare the quality of methods: `python -m benchmarks.quality FOLDER`.

FOLDER holds .npz files with arrays X (vectors in order of arrival) and y (identities). The
protocol is that of `protocol.py`. Results are stored in benchmarks/quality.json; a later run of
some methods or sets replaces only their results. The result of the first split of a set has those
of the other splits under "splits".
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import quality_picture, quality_tables
from benchmarks.machine import describe, installed, usable_cores
from benchmarks.methods import METHODS, by_name
from benchmarks.protocol import CAP, SEED, judge, load
from linkstream.engine import native

RESULTS = Path(__file__).with_name("quality.json")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Job = tuple[str, str, int]  # method, path of the set, split


def main(arguments: list[str] | None = None) -> int:
    """Run the chosen methods, print the tables and store the figures; return 1 if one failed."""
    options = parser().parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 150, highlight=False)
    failed: list[str] = []
    if options.folder is not None:
        failed = run(console, options)
    elif not options.docs:
        parser().error("FOLDER is missing (only --docs works without one)")
    results = read(options.json)
    for table in quality_tables.tables(results):
        console.print(table)
    if options.docs:
        quality_tables.write(results)
        quality_picture.draw(results, quality_picture.IMAGE)
    for line in failed:
        console.print(line, style="bold red", markup=False)
    return 1 if failed else 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.quality",
        description="Held-out accuracy of Links and its peers. "
        "Example: python -m benchmarks.quality data --methods links 'one centroid'",
    )
    made.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help=".npz files, X and y")
    made.add_argument("--sets", nargs="+", metavar="SET", help="names of files; all if none")
    names = ", ".join(method.name for method in METHODS)
    made.add_argument("--methods", nargs="+", metavar="NAME", help=f"{names}; all if none")
    made.add_argument(
        "--orders", type=int, default=5, help="orders of arrival, the given one first"
    )
    made.add_argument(
        "--splits", type=int, default=1, help="splits of the identities, with seeds from 0 on"
    )
    made.add_argument("--jobs", type=int, default=usable_cores(), help="processes at a time")
    made.add_argument("--json", type=Path, default=RESULTS, help="file that keeps the figures")
    made.add_argument(
        "--docs", action="store_true", help="write table and picture; without FOLDER run nothing"
    )
    return made


# Running


def run(console: Console, options: argparse.Namespace) -> list[str]:
    """Judge every method on every set, store each result, and return a line per failure."""
    jobs = wanted(options)
    results = fresh(read(options.json), options.orders)
    began, failed = time.monotonic(), []
    with progress(console) as bar:
        task = bar.add_task("", total=len(jobs))
        for (name, path, split), outcome in outcomes(jobs, options):
            stem = Path(path).stem
            bar.update(task, advance=1, description=f"{name}, {stem}, split {split}")
            if isinstance(outcome, str):
                failed.append(f"{name} on {stem}, split {split}: {outcome}")
                continue
            kept = results["methods"].setdefault(name, {"sets": {}})
            kept |= {"note": by_name(name).note, "ordered": by_name(name).ordered}
            keep(kept["sets"].setdefault(stem, {}), split, outcome, splits=options.splits)
            write(options.json, results)
    console.print(f"{len(jobs)} runs in {time.monotonic() - began:.0f} s, {options.jobs} at a time")
    return failed


def wanted(options: argparse.Namespace) -> list[Job]:
    """Return every method with every set, the slow ones first so that no process idles."""
    paths = {path.stem: path for path in sorted(options.folder.glob("*.npz"))}
    names = [method.name for method in METHODS]
    for what, asked, known in (
        ("set", options.sets or [], list(paths)),
        ("method", options.methods or [], names),
    ):
        for unknown in sorted(set(asked) - set(known)):
            raise SystemExit(f"no {what} {unknown!r}; there are: {', '.join(known) or 'none'}")
    if not paths:
        raise SystemExit(f"no .npz files in {options.folder}")
    if min(options.orders, options.jobs, options.splits) < 1:
        raise SystemExit("--orders, --splits and --jobs are 1 or more")
    sets = [str(path) for stem, path in paths.items() if stem in (options.sets or paths)]
    found = itertools.product(options.methods or names, sets, range(options.splits))
    return list(found)


def outcomes(
    jobs: list[Job], options: argparse.Namespace
) -> Iterator[tuple[Job, dict[str, Any] | str]]:
    """Yield each job with its result or its error; each process has one thread."""
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))  # for the processes to come
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=context) as pool:
        running = {pool.submit(work, *job, options.orders): job for job in jobs}
        try:
            for done in as_completed(running):
                error = done.exception()
                outcome = f"{type(error).__name__}: {error}" if error else done.result()
                yield running[done], outcome
        finally:
            pool.shutdown(cancel_futures=True)  # an interrupted run does not finish the rest


def work(name: str, path: str, split: int, count: int) -> dict[str, Any]:
    """Judge one method on one split of a set."""
    return judge(by_name(name), *load(Path(path), split=split), count=count)


def progress(console: Console) -> Progress:
    """Return a progress bar that shows the last result."""
    return Progress(
        TextColumn("{task.description:40}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )


# Keeping


def read(path: Path) -> dict[str, Any]:
    """Return the results of earlier runs."""
    return json.loads(path.read_text("utf-8")) if path.exists() else {"methods": {}}


def keep(of_set: dict[str, Any], split: int, outcome: dict[str, Any], *, splits: int) -> None:
    """Store the result of one split beside those of the others; drop splits that are not run."""
    others = of_set.pop("splits", {})
    if split == 0:
        of_set.clear()
        of_set.update(outcome)
    else:
        others[str(split)] = outcome
    left = {number: others[number] for number in sorted(others, key=int) if int(number) < splits}
    if left:
        of_set["splits"] = left


def fresh(results: dict[str, Any], count: int) -> dict[str, Any]:
    """Return earlier results of the same protocol and processor."""
    machine = describe(native.kernel_name() or native._core.kernels()[-1])
    versions = dict(machine.pop("versions"))  # type: ignore[call-overload]
    versions |= {name: installed(name) for name in ("scipy", "hdbscan")}
    for searcher in ("faiss-cpu", "hnswlib", "usearch"):
        versions.pop(searcher, None)
    protocol = {"cap": CAP, "seed": SEED, "orders": count}
    head = {"machine": machine | {"versions": versions}, "protocol": protocol}
    earlier = results.get("machine", {}).get("processor") == machine["processor"]
    same = earlier and results.get("protocol") == protocol
    return head | {"methods": results["methods"] if same else {}}


def write(path: Path, results: dict[str, Any]) -> None:
    """Store the results, with methods in the order of the list."""
    ranks = {method.name: rank for rank, method in enumerate(METHODS)}
    names = sorted(results["methods"], key=lambda name: ranks.get(name, len(ranks)))
    results["methods"] = {name: results["methods"][name] for name in names}
    path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
