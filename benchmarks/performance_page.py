"""Write the tables of docs/performance.md between their markers, and draw its picture."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.records import Fact, Rate, Record, Target, from_dict, readable

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
IMAGE = Path(__file__).resolve().parent.parent / "docs" / "img" / "performance.png"
# Colours of Okabe and Ito, which colour-blind readers can distinguish.
OURS, THEIRS, INK, QUIET = "#0072B2", "#E69F00", "#222222", "#8a8a8a"

PANELS = {
    ("tight", "the whole stream"): "tight: 100 subclusters",
    ("lobes", "the whole stream"): "lobes: merges, cuts and splits",
    ("scatter", "the last 1,000"): "scatter: the last 1,000 of 20,000 subclusters",
    ("hub", "the last 1,000"): "hub: the last 1,000 of 12,000, on 6,000 edges",
    ("wide", "1,000 more"): "wide: 1,000 more at 100,000 subclusters",
    ("wide", "one vector alone"): "wide: one vector per call at 100,000 subclusters",
}


def write(results: dict[str, Any]) -> None:
    """Write machine, rates, facts, targets and limits of the results into the page."""
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


def all_records(results: dict[str, Any]) -> list[Record]:
    """Return all records, in the order of the workloads."""
    groups = results["workloads"].values()
    return [from_dict(values) for group in groups for values in group["records"]]


def machine(results: dict[str, Any]) -> str:
    """Return the machine, the versions, and the load by other processes."""
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
    """Return the rates of all tasks, with the ratio of the first contestant to each."""
    lines = [
        "| workload | task | contestant | vectors/s | tries | spread | first ÷ this | note |",
        "|---|---|---|---|---|---|---|---|",
    ]
    first: dict[tuple[str, str], Rate] = {}
    for rate in (record for record in all_records(results) if isinstance(record, Rate)):
        lead = first.setdefault((rate.workload, rate.task), rate)
        ratio = "" if rate is lead else readable(lead.best / rate.best)
        spread = f"{rate.spread:.0%}" if len(rate.rates) > 1 else ""
        lines.append(
            f"| {rate.workload} | {rate.task} | {rate.who} | {readable(rate.best)} "
            f"| {len(rate.rates)} | {spread} | {ratio} | {rate.note} |"
        )
    return "\n".join(lines)


def facts(results: dict[str, Any]) -> str:
    """Return the quantities that are not rates of vectors."""
    lines = ["| workload | what | value | note |", "|---|---|---|---|"]
    for fact in (record for record in all_records(results) if isinstance(record, Fact)):
        value = f"{readable(fact.value)} {fact.unit}"
        lines.append(f"| {fact.workload} | {fact.what} | {value} | {fact.note} |")
    return "\n".join(lines)


def targets(results: dict[str, Any]) -> str:
    """Return the targets and the measured values."""
    lines = ["| workload | what | wanted | seen | |", "|---|---|---|---|---|"]
    for target in (record for record in all_records(results) if isinstance(record, Target)):
        wanted = f"{target.sense} {readable(target.bound)} {target.unit}"
        verdict = "pass" if target.met else "**fail**"
        seen = readable(target.seen)
        lines.append(f"| {target.workload} | {target.what} | {wanted} | {seen} | {verdict} |")
    return "\n".join(lines)


def limits(results: dict[str, Any]) -> str:
    """Return the cost of a vector at 100,000 rows of 256-d, and the limits of the machine."""
    rows, dimension = 100_000, 256
    codes, floats = rows * (dimension + 8) / 1e6, rows * dimension * 4 / 1e6
    products = rows * dimension / 1e6
    best = {
        (record.task, record.who): record.best
        for record in all_records(results)
        if isinstance(record, Rate) and record.workload == "wide"
    }
    seen = {
        record.what: record.value for record in all_records(results) if isinstance(record, Fact)
    }
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


def draw(results: dict[str, Any]) -> None:
    """Draw a panel for each task that was run, with a bar for each contestant."""
    found = [record for record in all_records(results) if isinstance(record, Rate)]
    panels = {
        title: [rate for rate in found if (rate.workload, rate.task) == key]
        for key, title in PANELS.items()
    }
    panels = {title: rates for title, rates in panels.items() if rates}
    if not panels:
        return
    heights = [max(len(rates), 2) for rates in panels.values()]
    figure = Figure(figsize=(8.6, 0.3 * sum(heights) + 0.62 * len(panels) + 0.5))
    axes = figure.subplots(len(panels), 1, sharex=True, height_ratios=heights, squeeze=False)
    most = max(rate.best for rates in panels.values() for rate in rates)
    for axis, (title, rates) in zip(axes[:, 0], panels.items(), strict=True):
        bars(axis, title, rates, most)
    axes[-1, 0].set_xlabel("vectors per second, log scale", color=INK)
    figure.tight_layout(h_pad=1.0)
    figure.savefig(IMAGE, dpi=130, metadata={"Software": None})


def bars(axis: Axes, title: str, rates: list[Rate], most: float) -> None:
    """Draw one task, the fastest contestant on top."""
    rates = sorted(rates, key=lambda rate: rate.best)
    colours = [OURS if "linkstream" in rate.who else THEIRS for rate in rates]
    axis.barh([rate.who for rate in rates], [rate.best for rate in rates], color=colours)
    axis.set_xscale("log")
    axis.set_xlim(10, most * 4)
    for place, rate in enumerate(rates):
        axis.text(
            rate.best * 1.08, place, readable(rate.best), va="center", color=INK, fontsize=8.5
        )
    axis.set_title(title, loc="left", fontsize=10, color=INK)
    axis.tick_params(labelsize=9, colors=INK)
    axis.tick_params(axis="x", which="minor", bottom=False)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axis.spines[side].set_color(QUIET)
