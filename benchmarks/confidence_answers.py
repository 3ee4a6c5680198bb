"""Measure probabilities from answers alone: `python -m benchmarks.confidence_answers FOLDER`.

FOLDER holds .npz files with arrays X and y. Each set of `preset_points.py` is clustered with its
preset, which has no model. People answer 50, 200 or 500 decisions, drawn from the first half of the
stream; the probabilities of the second half are judged. The command prints a table for
docs/confidence.md: the mean over three splits of the identities and two orders of arrival.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from benchmarks.confidence import FIRST, calibration_error, floor
from benchmarks.preset_points import point_of
from benchmarks.protocol import Half, load, orders
from linkstream import Links
from linkstream.clusterer.confidence import setting
from linkstream.confidence import Model
from linkstream.engine.contract import NEW
from linkstream.tuning.confidence import judged

COUNTS = (50, 200, 500)
SPLITS, ORDERS = 3, 2


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.confidence_answers")
    parser.add_argument("folder", type=Path, help=".npz files, X and y")
    options = parser.parse_args(arguments)
    heads = [
        f"{what}, {count} answers" for count in COUNTS for what in ("answers", "ECE", "perfect")
    ]
    print("| set | preset |", " | ".join(heads), "|")
    print("| --- | --- |", " | ".join("--:" for _ in heads), "|")
    every = []
    for path in sorted(options.folder.glob("*.npz")):
        try:
            preset, _ = point_of(path.stem)
        except KeyError:
            continue
        runs = [
            run(preset, load(path, split=split)[1].first(FIRST), order)
            for split in range(SPLITS)
            for order in range(ORDERS)
        ]
        every.append(np.nanmean(runs, axis=0))
        print(f"| {path.stem.replace('_', ' ')} | {preset} |", line(every[-1]), "|", flush=True)
    print("| mean | |", line(np.nanmean(every, axis=0)), "|")
    return 0


def line(figures: np.ndarray) -> str:
    """Return the figures of a row."""
    return " | ".join("" if each != each else f"{each:.3f}" for each in figures)


def run(preset: str, half: Half, order: int) -> list[float]:
    """Return share with a probability, ECE and that of a perfect model, for each count."""
    rows = orders(len(half.y), ORDERS)[order]
    y = np.unique(half.y, return_inverse=True)[1].astype(np.int64)[rows]
    links = Links.preset(preset, threads=1)
    found = judged(links, half.X[rows], y)
    n = len(y) // 2
    usable = np.flatnonzero(np.isfinite(found.margin[:n]))
    drawn = np.random.default_rng(order).permutation(usable)
    figures: list[float] = []
    for count in COUNTS:
        model = Model.empty(setting(links.core)).answered(
            [
                (int(found.kind[i] == NEW), float(found.margin[i]), bool(found.right[i]), int(i))
                for i in drawn[:count]
            ]
        )
        p = model.probabilities(found.kind[n:], found.margin[n:], np.arange(n, len(y)))
        known = np.isfinite(p)
        if not known.any():
            figures += [0.0, np.nan, np.nan]
            continue
        error = calibration_error(p[known], found.right[n:][known])
        figures += [float(known.mean()), error, floor(p[known])]
    return figures


if __name__ == "__main__":
    sys.exit(main())
