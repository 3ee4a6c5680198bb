"""Tables of the presets for docs/tuning.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.methods import Linkscluster
from benchmarks.preset_points import point_figures
from benchmarks.preset_runs import Runs, Stream
from benchmarks.quality_tables import put
from linkstream.metrics import accuracy
from linkstream.presets import Line

Made = Sequence[Mapping[str, Any]]
Row = dict[str, list[float]]  # instant, current and, of presets, still, by column

# The configurations of linkscluster 0.1.0 (linkscluster/configs.py): T_c, T_s, T_p.
SHIPPED = {
    "ge2e": (0.55, 0.8, 0.9),
    "facenet": (0.6, 0.85, 0.95),
    "default": (0.5, 0.8, 1.0),
}
POINTS = ("ge2e-windows", "ge2e-turns")  # presets of one point, which are not remade
COLUMNS = {
    "point": "as points",
    "default": "default level",
    "automatic": "automatic",
    "named": "level by name",
    "best": "best level †",
    "linkscluster": "linkscluster",
}


def write(made: Made, runs: Runs) -> None:
    """Write the tables of all presets into docs/tuning.md."""
    put("presets", level_table(made), section="## Presets")
    rows = {
        name: figures_of(preset, name, runs)
        for preset in made
        if preset["name"] not in POINTS
        for name in preset["figures"]
    }
    print(left_out_table(rows))
    put("left-out", left_out_table(rows), section="## Presets")


def level_table(made: Made) -> str:
    """Return the levels of all presets as a Markdown table."""
    lines = [
        "| preset | level | granularity | one cluster is | T_c | T_s | T_p |",
        "| --- | --- | --: | --- | --: | --: | --: |",
    ]
    for preset in made:
        head = f"`{preset['name']}`: {preset['encoder']}"
        for name, level in preset["levels"].items():
            at = Line(**preset["line"]).at(level["granularity"])
            values = (at.cluster_similarity, at.subcluster_similarity, at.pair_similarity_max)
            cells = " | ".join(f"{value:.4f}" for value in values)
            shown = f"**{name}** (default)" if name == preset["default"] else name
            place = f"{level['granularity']:.2f}"
            lines.append(f"| {head} | {shown} | {place} | {level['words']} | {cells} |")
            head = ""
    return "\n".join(lines)


def figures_of(preset: Mapping[str, Any], name: str, runs: Runs) -> Row:
    """Return the figures of one set, each made without it."""
    kept = preset["figures"][name]
    part = "first" if kept["made from"] == "other sets" else "scored"
    return {
        "point": point_figures(name, part, runs),
        **{column: kept[column] for column in ("default", "automatic", "named")},
        "best": max(kept["levels"].values(), key=lambda each: each[1]),
        "linkscluster": peer_figures(preset["name"], Stream(name, part), runs),
    }


def peer_figures(preset: str, stream: Stream, runs: Runs) -> list[float]:
    """Return instant and current accuracy of the configuration that linkscluster ships."""
    key = f"{stream.key} linkscluster"
    if key not in runs.kept:
        half = runs.half(stream)
        names = ("cluster_similarity", "subcluster_similarity", "pair_similarity_max")
        values = dict(zip(names, SHIPPED.get(preset, SHIPPED["default"]), strict=True))
        answer = Linkscluster().run(half.X, values)
        runs.kept[key] = {
            each: round(accuracy(half.y, answer[each]), 4) for each in ("instant", "current")
        }
        runs.save()
    return [runs.kept[key]["instant"], runs.kept[key]["current"]]


def left_out_table(rows: Mapping[str, Row]) -> str:
    """Return instant / current accuracy by set that is left out, stillness, and the means."""
    head = " | ".join((*COLUMNS.values(), "keep their ID ‡"))
    lines = [f"| set left out | {head} |", f"| --- |{' --: |' * (len(COLUMNS) + 1)}"]
    for name, row in rows.items():
        lines.append(f"| {name.replace('_', ' ')} | {_cells(row)} |")
    means = {column: np.mean([row[column] for row in rows.values()], axis=0) for column in COLUMNS}
    lines.append(f"| **mean of {len(rows)}** | {_cells(means)} |")
    return "\n".join(lines)


def _cells(row: Mapping[str, Any]) -> str:
    pairs = ["{:.3f} / {:.3f}".format(*row[column]) for column in COLUMNS]
    return " | ".join((*pairs, f"{row['named'][2]:.3f}"))
