"""Run the workloads, print and store the results: `python -m benchmarks tight hub`.

All figures that are printed, drawn or written to docs/performance.md come from
benchmarks/results.json.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import performance_page
from benchmarks.machine import busy_seconds, describe
from benchmarks.measures import MEASURES, ON_DEMAND
from benchmarks.records import Record, Target, from_dict
from benchmarks.workloads import THREADS
from linkstream.engine import native

RESULTS = Path(__file__).with_name("results.json")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main(arguments: list[str] | None = None) -> int:
    """Run the chosen workloads; return 1 if a result was wrong, else 0."""
    options = parser().parse_args(arguments)
    if options.docs:
        refresh_documents(load())
        return 0
    names = options.names or [name for name in MEASURES if name not in ON_DEMAND]
    console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    wrong = [name for place, name in enumerate(names) if not run(console, name, place, len(names))]
    results = load()
    print_targets(console, results, names)
    performance_page.draw(results)
    for name in wrong:
        console.print(f"WRONG RESULT in {name}: see the error above", style="bold red")
    return 1 if wrong else 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Frozen workloads, peers in the same run. Example: python -m benchmarks tight",
    )
    names = ", ".join(MEASURES)
    made.add_argument("names", nargs="*", metavar="NAME", help=f"{names}; all but long if none")
    made.add_argument(
        "--docs", action="store_true", help="run nothing; write page and picture from results.json"
    )
    return made


# Running


def run(console: Console, name: str, place: int, total: int) -> bool:
    """Run one workload in a process of its own; return whether its results were right."""
    if name not in MEASURES:
        raise SystemExit(f"no workload {name!r}; there are: {', '.join(MEASURES)}")
    console.rule(f"{name} ({place + 1} of {total})", align="left")
    core, began, busy, own = core_digest(), time.monotonic(), busy_seconds(), children_seconds()
    records: list[dict[str, Any]] = []
    with console.status(f"{name} …"):
        process = start(name)
        for values in lines(process):
            records.append(values)
            console.print(from_dict(values).text(), markup=False)
        right = process.wait() == 0
    seconds = time.monotonic() - began
    others = max(0.0, busy_seconds() - busy - (children_seconds() - own)) / seconds
    steady = core == core_digest()
    console.print(f"{seconds:.0f} s; other processes used {others:.2f} cores meanwhile")
    if not steady:
        console.print("The compiled core was replaced meanwhile: run this again.", style="bold red")
    if right:
        keep(name, core, seconds, others, steady, records)
    return right


def start(name: str) -> subprocess.Popen[str]:
    """Start a process for one workload, with the thread count of all contestants."""
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(THREADS))
    command = [sys.executable, "-m", "benchmarks.measures", name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def lines(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    """Yield records as they are printed, without other output of the peers."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith('{"kind"'):
            yield json.loads(line)


def children_seconds() -> float:
    """Return the processor time of all ended child processes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def core_digest() -> str:
    """Return a digest of the compiled core, so that figures of two builds are not mixed."""
    return hashlib.sha256(Path(native._core.__file__).read_bytes()).hexdigest()[:12]


# Results


def load() -> dict[str, Any]:
    """Return the results of earlier runs."""
    return json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {"workloads": {}}


def keep(
    name: str, core: str, seconds: float, others: float, steady: bool, records: list[dict[str, Any]]
) -> None:
    """Store the records of one workload; drop those of another machine."""
    machine = describe(native.kernel_name() or native._core.kernels()[-1])
    results = load()
    if results.get("machine") != machine:
        results = {"machine": machine, "threads": THREADS, "workloads": {}}
    results["workloads"][name] = {
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "core": core,
        "core_steady": steady,
        "seconds": round(seconds, 1),
        "cores_used_by_others": round(others, 2),
        "records": records,
    }
    order = {known: results["workloads"].get(known) for known in MEASURES}
    results["workloads"] = {known: kept for known, kept in order.items() if kept}
    RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", "utf-8")


def records_of(results: dict[str, Any], name: str) -> list[Record]:
    """Return the stored records of one workload."""
    return [from_dict(values) for values in results["workloads"].get(name, {}).get("records", [])]


def print_targets(console: Console, results: dict[str, Any], names: list[str]) -> None:
    """Print whether each target passed."""
    console.rule("targets", align="left")
    for name in names:
        for record in records_of(results, name):
            if isinstance(record, Target):
                style = None if record.met else "bold red"
                console.print(f"{name:10} {record.text()}", style=style, markup=False)


def refresh_documents(results: dict[str, Any]) -> None:
    """Write the tables of docs/performance.md and draw its picture."""
    performance_page.write(results)
    performance_page.draw(results)
