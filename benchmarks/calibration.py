"""Measure the quality of `calibrate`: `python -m benchmarks.calibration FOLDER`.

The protocol is that of `protocol.py`. On the tuning half of each set, `calibrate` gets 100 pairs of
one identity and 100 of two, or no pairs. Its thresholds are scored on the other half: the mean of
instant and current accuracy. The table is written to docs/tuning.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.progress import track

from benchmarks.protocol import Half, load
from benchmarks.quality_tables import put
from linkstream.metrics import accuracy
from linkstream.tuning import Calibration, calibrate

PAIRS = 100  # of each kind
DRAWS = 3


def pairs(half: Half, *, seed: int) -> dict[str, npt.NDArray[Any]]:
    """Draw pairs of one identity and of two, uniformly from all such pairs."""
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(len(half.y), k=1)
    same = half.y[first] == half.y[second]
    drawn = {}
    for name, kind in (("same", same), ("different", ~same)):
        rows = rng.choice(np.flatnonzero(kind), PAIRS, replace=False)
        drawn[name] = np.stack([first[rows], second[rows]], axis=1)
    return drawn


def score(found: Calibration, half: Half) -> float:
    """Return the mean of instant and current accuracy; NaN if undecided."""
    if not found.decided:
        return float("nan")
    links = found.links(threads=1)
    instant = links.add_many(half.X)
    return (accuracy(half.y, instant) + accuracy(half.y, links.labels())) / 2


def figures(path: Path) -> tuple[list[float], float]:
    """Return the score of a set for each draw of pairs, and the score from vectors alone."""
    tuning, scored = load(path)
    drawn = [
        score(calibrate(tuning.X, **pairs(tuning, seed=seed)), scored) for seed in range(DRAWS)
    ]
    return drawn, score(calibrate(tuning.X), scored)


def table(rows: dict[str, tuple[list[float], float]]) -> str:
    """Return the scores of all sets as a Markdown table."""
    lines = ["| set | 100 + 100 pairs | vectors alone |", "| --- | --: | --: |"]
    for name, (drawn, alone) in rows.items():
        lines.append(f"| {name.replace('_', ' ')} | {cell(drawn)} | {cell([alone])} |")
    known = [np.nanmean(drawn) for drawn, _ in rows.values() if not np.all(np.isnan(drawn))]
    decided = [alone for _, alone in rows.values() if not np.isnan(alone)]
    lines.append(
        f"| **mean of those decided** | {np.mean(known):.3f} ({len(known)} sets) "
        f"| {np.mean(decided):.3f} ({len(decided)} sets) |"
    )
    return "\n".join(lines)


def cell(scores: Sequence[float]) -> str:
    """Return the mean of the decided draws, and the number of undecided ones."""
    decided = [value for value in scores if not np.isnan(value)]
    if not decided:
        return "cannot decide"
    undecided = len(scores) - len(decided)
    return f"{np.mean(decided):.3f}" + (f" ({undecided} undecided)" if undecided else "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all sets of a folder, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.calibration")
    parser.add_argument("folder", type=Path, help="folder of .npz sets with X and y")
    paths = sorted(parser.parse_args(arguments).folder.glob("*.npz"))
    shown = track(paths, "calibrating", disable=not sys.stderr.isatty())
    rows = {path.stem: figures(path) for path in shown}
    print(table(rows))
    put("calibration", table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
