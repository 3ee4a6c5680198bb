"""Measure how far one vector reaches in a rebuild: `python -m benchmarks.reach FOLDER`.

The first `SIZE` vectors of the held-out half of each set (protocol.py) are rebuilt, with the
thresholds of the row "links, healed" in quality.json; then again without one of them, `TRIALS`
times. Printed for each set, as means over the vectors left out:

- changed: share of trials in which clusters change that do not hold the vector;
- vectors: how many vectors are then in a cluster that changes, of those that are not in its own;
- far: share of trials in which a cluster changes that is not near the vector: neither its sum nor
  any vector in it passes the test with the vector alone;
- closure: share of the set that a rebuild of all that is near would have to see, with what is near
  to that, and so on: the mean over all vectors of the connected component by this test.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.protocol import Half
from benchmarks.rebuilding import sets
from linkstream import Links, Thresholds

SIZE, TRIALS = 1_000, 100
KEYS = ("changed", "vectors", "far", "closure")

Integers = npt.NDArray[np.int64]
Clusters = set[frozenset[int]]


@dataclass(frozen=True, slots=True)
class Reach:
    """The vectors of a set, and which of them pass the test with which alone."""

    X: npt.NDArray[np.float32]
    thresholds: Thresholds

    def clusters(self, rows: Integers) -> Clusters:
        """Return the rebuilt clusters of some vectors."""
        links = Links.from_thresholds(self.thresholds)
        links.add_many(self.X[rows])
        links.rebuild(apply=True)
        labels = links.labels()
        return {frozenset(rows[labels == each].tolist()) for each in np.unique(labels)}

    def near(self, vector: int, cluster: frozenset[int]) -> bool:
        """Return whether the vector alone passes the test with a vector of it or with its sum."""
        members = self.X[sorted(cluster)]
        total = members.sum(axis=0)
        sizes = np.append(np.ones(len(members)), len(members))
        found = np.append(members @ self.X[vector], total @ self.X[vector] / np.linalg.norm(total))
        return bool(np.any(found >= self.thresholds.edges(np.ones(len(sizes)), sizes)))

    def closure(self) -> float:
        """Return the mean share of the set in the component of a vector."""
        similarity = self.X @ self.X.T
        passed = similarity >= float(self.thresholds.edges(np.ones(1), np.ones(1))[0])
        root = np.arange(len(self.X))
        while True:
            lowest = np.array([root[row].min() for row in passed])
            if np.array_equal(lowest, root):
                break
            root = lowest
        shares = np.bincount(root) / len(root)
        return float((shares**2).sum())


def figures(half: Half, thresholds: Thresholds) -> dict[str, float]:
    """Return the figures of a set."""
    reach = Reach(half.X[:SIZE], thresholds)
    rows = np.arange(len(reach.X))
    whole = reach.clusters(rows)
    trials = np.random.default_rng(0).permutation(rows)[:TRIALS].tolist()
    changed, vectors, far = [], [], []
    for vector in trials:
        others = {cluster - {vector} for cluster in whole if vector not in cluster}
        gone = others - reach.clusters(np.delete(rows, vector))
        changed.append(bool(gone))
        vectors.append(sum(map(len, gone)))
        far.append(any(not reach.near(vector, cluster) for cluster in gone))
    values = np.mean(changed), np.sum(vectors) / max(1, np.sum(changed)), np.mean(far)
    return dict(zip(KEYS, (*map(float, values), reach.closure()), strict=True))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each set, and the means."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.reach")
    parser.add_argument("folder", type=Path, help="folder of .npz sets with X and y")
    print("set", *KEYS, sep="\t")
    rows = []
    for name, half, thresholds in sets(parser.parse_args(arguments).folder):
        found = figures(half, thresholds)
        rows.append(list(found.values()))
        print(name, *(f"{value:.3f}" for value in rows[-1]), sep="\t", flush=True)
    print("mean", *(f"{value:.3f}" for value in np.mean(rows, axis=0)), sep="\t")
    return 0


if __name__ == "__main__":
    sys.exit(main())
