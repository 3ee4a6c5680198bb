"""Writes the tables of docs/performance.md from what a run kept, between two markers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from benchmarks.records import Fact, Rate, Record, Target, from_dict, readable

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"


def write(results: dict[str, Any]) -> None:
    """Put machine, rates, facts and targets of the results into the page."""
    text = PAGE.read_text("utf-8")
    parts = {
        "machine": machine(results),
        "rates": rates(results),
        "facts": facts(results),
        "targets": targets(results),
        "limits": limits(results),
    }
    for name, body in parts.items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
        text, found = re.subn(pattern, lambda m, b=body: f"{m[1]}\n{b}\n\n{m[2]}", text, flags=re.S)
        assert found == 1, f"{found} places marked {name!r} in {PAGE.name}, expected 1"
    PAGE.write_text(text, "utf-8")


def kept(results: dict[str, Any]) -> list[Record]:
    """All records, in the order of the workloads."""
    groups = results["workloads"].values()
    return [from_dict(values) for group in groups for values in group["records"]]


def machine(results: dict[str, Any]) -> str:
    """The machine, the versions, and how much of the machine others were using."""
    about = results["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    rows = [
        f"| processor | {about['processor']} |",
        f"| cores, memory | {about['cores']}, {about['memory_gib']} GiB |",
        f"| system | {about['system']}, Python {about['python']} |",
        f"| scan | `{about['kernel']}` |",
        f"| threads | {results['threads']} for every contestant that has a setting |",
        f"| versions | {versions} |",
    ]
    head = ["| | |", "|---|---|", *rows, ""]
    runs = ["| workload | date | core | seconds | cores used by others |", "|---|---|---|---|---|"]
    for name, group in results["workloads"].items():
        core = group["core"] + ("" if group["core_steady"] else " (replaced meanwhile)")
        runs.append(
            f"| {name} | {group['date']} | `{core}` | {group['seconds']:.0f} "
            f"| {group['cores_used_by_others']:.2f} |"
        )
    return "\n".join(head + runs)


def rates(results: dict[str, Any]) -> str:
    """Every contestant at every task, with the ratio of the task's first to it."""
    lines = [
        "| workload | task | contestant | vectors/s | tries | spread | first ÷ this | note |",
        "|---|---|---|---|---|---|---|---|",
    ]
    first: dict[tuple[str, str], Rate] = {}
    for rate in (record for record in kept(results) if isinstance(record, Rate)):
        lead = first.setdefault((rate.workload, rate.task), rate)
        ratio = "" if rate is lead else readable(lead.best / rate.best)
        spread = f"{rate.spread:.0%}" if len(rate.rates) > 1 else ""
        lines.append(
            f"| {rate.workload} | {rate.task} | {rate.who} | {readable(rate.best)} "
            f"| {len(rate.rates)} | {spread} | {ratio} | {rate.note} |"
        )
    return "\n".join(lines)


def facts(results: dict[str, Any]) -> str:
    """Quantities that are not rates of vectors."""
    lines = ["| workload | what | value | note |", "|---|---|---|---|"]
    for fact in (record for record in kept(results) if isinstance(record, Fact)):
        value = f"{readable(fact.value)} {fact.unit}"
        lines.append(f"| {fact.workload} | {fact.what} | {value} | {fact.note} |")
    return "\n".join(lines)


def targets(results: dict[str, Any]) -> str:
    """What we want of a run, and what it gave."""
    lines = ["| workload | what | wanted | seen | |", "|---|---|---|---|---|"]
    for target in (record for record in kept(results) if isinstance(record, Target)):
        wanted = f"{target.sense} {readable(target.bound)} {target.unit}"
        verdict = "pass" if target.met else "**fail**"
        seen = readable(target.seen)
        lines.append(f"| {target.workload} | {target.what} | {wanted} | {seen} | {verdict} |")
    return "\n".join(lines)


def limits(results: dict[str, Any]) -> str:
    """What a vector costs at 100,000 rows of 256-d, against what the machine was seen to do."""
    rows, dimension = 100_000, 256
    codes, floats = rows * (dimension + 8) / 1e6, rows * dimension * 4 / 1e6
    products = rows * dimension / 1e6
    best = {
        (record.task, record.who): record.best
        for record in kept(results)
        if isinstance(record, Rate) and record.workload == "wide"
    }
    seen = {record.what: record.value for record in kept(results) if isinstance(record, Fact)}
    reading = f"{readable(seen['reading cache, 2 threads'])} GB/s read from the cache"
    alone = f"{readable(seen['scan alone'] * products / 1e3)} G/s by the scan alone"
    cases = [
        ("one vector alone", "linkstream add", codes, "MB", "GB/s", reading),
        ("one vector alone", "NumPy matrix–vector", floats, "MB", "GB/s", reading),
        ("1,000 more", "linkstream add_many", products, "M int8 products", "G/s", alone),
        ("1,000 more", "NumPy matrix–matrix", products, "M float32 products", "G/s", ""),
    ]
    lines = [
        "| task | contestant | a vector costs | at its rate | beside |",
        "|---|---|---|---|---|",
    ]
    for task, who, cost, what, unit, beside in cases:
        rate = readable(best[task, who] * cost / 1e3)
        lines.append(f"| {task} | {who} | {readable(cost)} {what} | {rate} {unit} | {beside} |")
    return "\n".join(lines)
