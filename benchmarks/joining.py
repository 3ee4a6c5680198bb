"""Measure the accuracy of `absorb`: `python -m benchmarks.joining FOLDER`.

The held-out half of each set (protocol.py) is divided into two parts, which are clustered
separately and joined by `absorb`: the first half with the second, and every other vector with the
rest. The thresholds were tuned for `links` on the other half (quality.json). Then eight shards are
joined along random trees: the differences in accuracy show how far joining is from associative.
The table is written to docs/identity.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.progress import track

from benchmarks.protocol import Half, load
from benchmarks.quality_tables import put
from linkstream import Links
from linkstream.metrics import accuracy

ROOT = Path(__file__).parent
SHARDS, TREES = 8, 10
NAMES = ("cluster_similarity", "subcluster_similarity", "pair_similarity_max")

Rows = npt.NDArray[np.int64]
Shard = tuple[Links, Rows]  # a clusterer, and which vector of the set each of its vectors is


def clustered(half: Half, thresholds: Sequence[float], rows_of_set: Rows) -> Shard:
    """Cluster a part of a set."""
    links = Links(*thresholds, threads=1)
    links.add_many(half.X[rows_of_set])
    return links, rows_of_set


def joined(one: Shard, other: Shard) -> Shard:
    """Join two shards."""
    moved = one[0].absorb(other[0])
    rows_of_set = np.empty(one[0].n_vectors, dtype=np.int64)
    rows_of_set[: len(one[1])] = one[1]
    assert moved.vectors is not None
    rows_of_set[moved.vectors] = other[1]
    return one[0], rows_of_set


def score(half: Half, shard: Shard) -> float:
    """Return the accuracy of the current labels."""
    links, rows_of_set = shard
    assert len({cluster.id for cluster in links.clusters()}) == links.n_clusters
    return accuracy(half.y[rows_of_set], links.labels())


def tree(half: Half, thresholds: Sequence[float], seed: int) -> float:
    """Join random pairs of shards until one is left."""
    rng = np.random.default_rng(seed)
    rows_of_set = np.arange(len(half.y))
    shards = [clustered(half, thresholds, rows_of_set[k::SHARDS]) for k in range(SHARDS)]
    while len(shards) > 1:
        a, b = sorted(rng.choice(len(shards), 2, replace=False).tolist())
        other = shards.pop(b)
        shards.append(joined(shards.pop(a), other))
    return score(half, shards[0])


def figures(path: Path, thresholds: Sequence[float]) -> dict[str, float]:
    """Return the scores of a set: one run, two halves joined in two ways, and random trees."""
    _, half = load(path)
    rows_of_set = np.arange(len(half.y))
    cuts = np.array_split(rows_of_set, 2), (rows_of_set[::2], rows_of_set[1::2])
    two = [
        score(half, joined(*(clustered(half, thresholds, part) for part in cut))) for cut in cuts
    ]
    trees = [tree(half, thresholds, seed) for seed in range(TREES)]
    one = score(half, clustered(half, thresholds, rows_of_set))
    found = {"one": one, "halves": two[0], "alternate": two[1], "trees": float(np.mean(trees))}
    return {**found, "least": min(trees), "most": max(trees)}


def table(rows: dict[str, dict[str, float]]) -> str:
    """Return the scores of all sets as a Markdown table."""
    heads = "| set | one run | first + second half | odd + even | 8 shards, 10 trees | spread |"
    lines = [heads, "| --- | --: | --: | --: | --: | --: |"]
    for name, row in rows.items():
        spread = f"{row['most'] - row['least']:.3f}"
        cells = [f"{row[key]:.3f}" for key in ("one", "halves", "alternate", "trees")]
        lines.append(f"| {name.replace('_', ' ')} | {' | '.join([*cells, spread])} |")
    means = {key: np.mean([row[key] for row in rows.values()]) for key in next(iter(rows.values()))}
    spread = np.mean([row["most"] - row["least"] for row in rows.values()])
    cells = [f"{means[key]:.3f}" for key in ("one", "halves", "alternate", "trees")]
    return "\n".join([*lines, f"| **mean** | {' | '.join([*cells, f'{spread:.3f}'])} |"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all sets of a folder, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.joining")
    parser.add_argument("folder", type=Path, help="folder of .npz sets with X and y")
    folder = parser.parse_args(arguments).folder
    tuned = json.loads((ROOT / "quality.json").read_text("utf-8"))["methods"]["links"]["sets"]
    rows = {}
    for name in track(sorted(tuned), "joining", disable=not sys.stderr.isatty()):
        thresholds = [tuned[name]["parameters"][key] for key in NAMES]
        rows[name] = figures(folder / f"{name}.npz", thresholds)
    print(table(rows))
    put("joining", table(rows), page=ROOT.parent / "docs" / "identity.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
