"""Measure the value of photos and corrections: `python -m benchmarks.photos FOLDER`.

The protocol is that of `protocol.py` on sets of faces, with both halves of each set: each half is
clustered with thresholds tuned on the other, in the same configuration. Five seeded shuffles of the
scored half are divided into photos of 1 to 6 people; a photo ends early if the next face is of a
person who is already in it. The same vectors in the same order are added plainly (`add_many`) and
photo by photo (`add_group`). Photos of families show people who look alike.

Corrections follow after the last vector. A random 1 % of the vectors is checked by an oracle, which
knows their identities, the cluster of each, and the cluster that mostly belongs to its identity.
The 1 % is drawn ten times for each shuffle, and the mean of the draws is reported.

The command prints tables, stores all figures in benchmarks/photos.json and draws
docs/img/photos.png. Without FOLDER, it prints and draws the stored figures. It takes 15 minutes on
one core, most of it for `add_group`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.progress import track

from benchmarks.albums import Album, correct, families, strangers
from benchmarks.methods import HEALED, HealedLinks, PaperLinks
from benchmarks.performance_page import INK, OURS, QUIET, THEIRS
from benchmarks.protocol import Parameters, load
from benchmarks.quality_picture import FAINT
from linkstream import Links
from linkstream.metrics import accuracy, conflation_fracture

SETS = ("face_lfw_facenet", "face_lfw_arcface")
FAMILIES = ("face_lfw_facenet",)  # sets that are also divided into photos of families
CONFIGURATIONS: dict[str, tuple[PaperLinks | HealedLinks, dict[str, str]]] = {
    "paper": (PaperLinks(), {}),
    "healed": (HealedLinks(), HEALED),
}
SEEDS, DRAWS, SHARE = 5, 10, 0.01
WAYS = {
    "plain": "plain",
    "photos": "photos",
    "plain, corrected": "plain, 1 % corrected",
    "photos, corrected": "photos, 1 % corrected",
}
ERRORS = ("conflation", "fracture")
DEEDS = ("right", "moved", "taken out", "joined", "refused")
COURSE = ("rose", "same", "fell")
LOOKS = (("o", "#8a8a8a"), ("o", OURS), ("D", THEIRS), ("D", "#009E73"))
IMAGE = Path(__file__).resolve().parent.parent / "docs" / "img" / "photos.png"
RESULTS = Path(__file__).with_name("photos.json")

Figures = dict[str, float]


def judge(album: Album, parameters: Parameters, options: dict[str, Any], seed: int) -> Any:
    """Return the figures of the four ways to process one album."""
    plain = Links(**parameters, threads=1, **options)
    plain.add_many(album.stream.X)
    grouped = Links(**parameters, threads=1, **options)
    for photo in album.photos:
        grouped.add_group(album.stream.X[photo])
    found: dict[str, Any] = {}
    for way, links in (("plain", plain), ("photos", grouped)):
        before = figures(links, album)
        found[way] = before
        found[f"{way}, corrected"] = corrected(links, album, seed, before)
    return found


def corrected(links: Links, album: Album, seed: int, before: Figures) -> dict[str, Any]:
    """Return mean figures over draws of the 1 %, the corrections, and changes of accuracy."""
    start, n = links.to_bytes(), len(album.stream.y)
    drawn, deeds, course = [], Counter[str](), Counter[str]()
    for draw_number in range(DRAWS):
        rng = np.random.default_rng([seed, draw_number])
        looked_at = rng.choice(n, size=max(round(SHARE * n), 1), replace=False)
        again = Links.from_bytes(start, threads=1)
        deeds += correct(again, album.stream.y, looked_at)
        drawn.append(figures(again, album))
        rise = drawn[-1]["accuracy"] - before["accuracy"]
        course["rose" if rise > 0 else "fell" if rise < 0 else "same"] += 1
    means = {name: float(np.mean([each[name] for each in drawn])) for name in before}
    return {**means, "deeds": dict(deeds), "course": dict(course)}


def figures(links: Links, album: Album) -> Figures:
    """Return current accuracy, both kinds of error, and pairs of one photo in one cluster."""
    labels, y = links.labels(), album.stream.y
    errors = conflation_fracture(y, labels)
    pairs = [pair for photo in album.photos for pair in combinations(photo, 2)]
    together = sum(int(labels[a] == labels[b]) for a, b in pairs)
    return {
        "accuracy": accuracy(y, labels),
        "conflation": errors.conflation,
        "fracture": errors.fracture,
        "pairs": float(together),
    }


def jobs(folder: Path) -> Iterator[tuple[str, str, bool]]:
    """Yield existing sets, configurations, and whether the halves are swapped."""
    for name in SETS:
        if (folder / f"{name}.npz").exists():
            for configuration in CONFIGURATIONS:
                yield from ((name, configuration, swapped) for swapped in (False, True))


def run(folder: Path, name: str, configuration: str, *, swapped: bool) -> list[dict[str, Any]]:
    """Return the rows of one set in one configuration: photos of strangers, then of families."""
    tuning, scored = load(folder / f"{name}.npz")[:: -1 if swapped else 1]
    method, options = CONFIGURATIONS[configuration]
    parameters = method.tune(tuning.X, tuning.y)
    rows = []
    for kind in (strangers, families) if name in FAMILIES else (strangers,):
        albums = [kind(scored, np.random.default_rng(seed)) for seed in range(SEEDS)]
        found = [judge(album, parameters, options, seed) for seed, album in enumerate(albums)]
        rows.append(
            {
                "set": name,
                "swapped": swapped,
                "configuration": configuration,
                "photos of": kind.__name__,
                "parameters": parameters,
                "vectors": len(scored.y),
                "identities": len(np.unique(scored.y)),
                "photos": [len(album.photos) for album in albums],
                "ways": {way: [each[way] for each in found] for way in found[0]},
            }
        )
    return rows


# Tables and picture


def title(row: dict[str, Any]) -> str:
    """Return the title of a row."""
    kind = " families" if row["photos of"] == "families" else ""
    halves = ", swapped" if row["swapped"] else ""
    return f"{row['set'].split('_')[-1]}{kind}, {row['configuration']}{halves}"


def column(row: dict[str, Any], way: str, name: str) -> list[float]:
    """Return a figure for each seed."""
    return [each[name] for each in row["ways"][way]]


def tables(rows: Sequence[dict[str, Any]]) -> str:
    """Return three Markdown tables: accuracy, errors and pairs, corrections."""
    return "\n\n".join((accuracies(rows), errors(rows), deeds(rows)))


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    rule = ["---", *["--:"] * (len(heads) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, rule, *lines))


def accuracies(rows: Sequence[dict[str, Any]]) -> str:
    """Return mean and standard deviation over the seeds, and the mean gain over plain."""
    lines = []
    for row in rows:
        plain = np.array(column(row, "plain", "accuracy"))
        cells = [f"{plain.mean():.4f} ± {plain.std(ddof=1):.4f}"]
        for way in list(WAYS)[1:]:
            values = np.array(column(row, way, "accuracy"))
            rise = f"{(values - plain).mean().round(4) + 0.0:+.4f}".replace("-", "−")
            cells.append(f"{values.mean():.4f} ± {values.std(ddof=1):.4f} ({rise})")
        lines.append([title(row), f"{row['vectors']}, {row['identities']}", *cells])
    return table(["current accuracy", "vectors, identities", *WAYS.values()], lines)


def errors(rows: Sequence[dict[str, Any]]) -> str:
    """Return conflation and fracture of each way, and the pairs that contradict a photo."""
    lines = []
    for row in rows:
        cells = [
            " / ".join(f"{np.mean(column(row, way, name)):.4f}" for name in ERRORS) for way in WAYS
        ]
        pairs = [f"{np.mean(column(row, way, 'pairs')):.1f}" for way in ("plain", "photos")]
        lines.append([title(row), *cells, " → ".join(pairs)])
    heads = ["conflation / fracture", *WAYS.values(), "pairs of a photo in one cluster"]
    return table(heads, lines)


def deeds(rows: Sequence[dict[str, Any]]) -> str:
    """Return the corrections of an average draw, and how often accuracy rose."""
    lines = []
    for row in rows:
        for way in ("plain", "photos"):
            found = row["ways"][f"{way}, corrected"]
            draws = len(found) * DRAWS
            done = [sum(each["deeds"].get(deed, 0) for each in found) / draws for deed in DEEDS]
            course = [sum(each["course"].get(name, 0) for each in found) for name in COURSE]
            lines.append(
                [f"{title(row)}, {way}", *(f"{n:.2f}" for n in done), " / ".join(map(str, course))]
            )
    return table(["a draw of 1 %", *DEEDS, " / ".join(COURSE)], lines)


def draw(rows: Sequence[dict[str, Any]]) -> None:
    """Draw a panel per set and a row per run: markers for means, lines for ranges."""
    names = list(dict.fromkeys((row["set"], row["photos of"]) for row in rows))
    panels = [[row for row in rows if (row["set"], row["photos of"]) == name] for name in names]
    figure = Figure(figsize=(8.6, 0.56 * len(rows) + 0.62 * len(panels) + 0.7))
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=[len(p) for p in panels])
    for axis, name, panel in zip(axes[:, 0], names, panels, strict=True):
        dots(axis, panel)
        kind = "photos of people who look alike" if name[1] == "families" else "photos at random"
        axis.set_title(f"{name[0].replace('_', ' ')}, {kind}", loc="left", fontsize=10, color=INK)
    axes[-1, 0].set_xlabel(
        "current accuracy (marker: mean; line: range over five shuffles)", color=INK, fontsize=9.5
    )
    figure.tight_layout(h_pad=1.0, rect=(0, 0, 1, 1 - 0.36 / figure.get_figheight()))
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(),
        loc="upper center",
        ncols=4,
        frameon=False,
        fontsize=9.5,
        labelcolor=INK,
    )
    figure.savefig(IMAGE, dpi=130, metadata={"Software": None})


def dots(axis: Axes, rows: Sequence[dict[str, Any]]) -> None:
    """Draw the runs of one set."""
    for place, row in enumerate(rows):
        if place % 2 == 0:
            axis.axhspan(place - 0.5, place + 0.5, color=FAINT, lw=0, zorder=0)
        for lane, (way, (marker, colour)) in enumerate(zip(WAYS, LOOKS, strict=True)):
            values = column(row, way, "accuracy")
            height = place + (lane - 1.5) * 0.18
            axis.hlines(height, min(values), max(values), color=colour, lw=1.1, alpha=0.55)
            label = None if place else WAYS[way]
            looks = {"marker": marker, "color": colour, "ms": 6, "ls": ""}
            axis.plot(float(np.mean(values)), height, label=label, zorder=3, **looks)
    halves = [", halves swapped" if row["swapped"] else "" for row in rows]
    names = [row["configuration"] + half for row, half in zip(rows, halves, strict=True)]
    axis.set_yticks(range(len(rows)), names)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.tick_params(labelsize=9, colors=INK, left=False)
    axis.grid(axis="x", color="#d0d0d0", lw=0.6, zorder=1)
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)
    axis.spines["bottom"].set_color(QUIET)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all sets, print the tables, store the figures, and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.photos")
    parser.add_argument("folder", type=Path, nargs="?", help="folder of .npz sets with X and y")
    folder = parser.parse_args(arguments).folder
    if folder is not None:
        rows = []
        for job in track(list(jobs(folder)), "clustering", disable=not sys.stderr.isatty()):
            rows += run(folder, *job[:2], swapped=job[2])
        date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        RESULTS.write_text(json.dumps({"date": date, "rows": rows}, indent=1) + "\n", "utf-8")
    rows = json.loads(RESULTS.read_text("utf-8"))["rows"]
    print(tables(rows))
    draw(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
