"""Measure `rebuild`: one partition in any order, accuracy, IDs kept, cost.

`python -m benchmarks.rebuilding FOLDER` reads .npz files with arrays X and y. Accuracy is on
held-out identities (protocol.py), with the thresholds of the row "links, healed" in quality.json.
`--permutations 100` rebuilds that many orders of each set; `--cost 100000` adds and rebuilds a
synthetic stream of that many vectors, 50 for each identity, with one or more `--looks`. With
`--groups` they come in groups of 2 to 5, as the faces of a photo do, of different identities.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import describe
from benchmarks.protocol import Half, load, orders
from benchmarks.quality import RESULTS
from linkstream import Links, Thresholds
from linkstream.clusterer.rebuilding import Wanted, complete, prepare, source_for_read
from linkstream.engine import native
from linkstream.metrics import accuracy, stability

GROWTH = 1.3  # of the stream between two rebuilds


def main() -> None:
    """Print a line of JSON for each set, or for the cost."""
    options = parser().parse_args()
    print(json.dumps({"machine": describe(native.kernel_name() or "best")}))
    if options.cost:
        print(json.dumps(cost(options.cost, options.looks, groups=options.groups)))
    for name, half, thresholds in sets(options.folder):
        found = {
            "set": name,
            **scores(half, thresholds),
            **order_free(half, thresholds, options.permutations),
            **kept(half, thresholds),
        }
        print(json.dumps(found), flush=True)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.rebuilding")
    made.add_argument("folder", nargs="?", type=Path, help=".npz files, X and y")
    made.add_argument("--permutations", type=int, default=5, help="orders of each set")
    made.add_argument("--cost", type=int, default=0, help="vectors of a synthetic stream")
    made.add_argument("--looks", type=int, default=1, help="looks of an identity in that stream")
    made.add_argument("--groups", action="store_true", help="in groups of 2 to 5 vectors")
    return made


def sets(folder: Path | None) -> Iterator[tuple[str, Half, Thresholds]]:
    """Yield the scored half of each set, with its thresholds."""
    known = json.loads(RESULTS.read_text())["methods"]["links, healed"]["sets"]
    for path in sorted(folder.glob("*.npz")) if folder else ():
        if path.stem in known:
            yield path.stem, load(path)[1], Thresholds(**known[path.stem]["parameters"])


def added(X: np.ndarray[Any, Any], thresholds: Thresholds) -> Links:
    """Return a clusterer of these vectors."""
    links = Links.from_thresholds(thresholds, mode="best")
    links.add_many(X)
    return links


def group(links: Links) -> None:
    """Tell the ledger of groups of 2 to 5 vectors, in order; in another way that takes hours."""
    ledger, sizes = links.core.up_to_date_ledger(), np.random.default_rng(3)
    holders, first = links.core.state().vectors.tolist(), 0
    while first < links.n_vectors:
        members = range(first, min(first + int(sizes.integers(2, 6)), links.n_vectors))
        number = len(ledger.groups)
        ledger.groups.append([ledger.add_pin(holders[v], v, number) for v in members])
        first = members.stop


def scores(half: Half, thresholds: Thresholds) -> dict[str, float]:
    """Return the accuracy of the stream, after settling, and after a rebuild."""
    links = added(half.X, thresholds)
    found = {"vectors": len(half.y), "current": accuracy(half.y, links.labels())}
    links.settle(apply=True)
    found["settled"] = accuracy(half.y, links.labels())
    links.rebuild(apply=True)
    return found | {"rebuilt": accuracy(half.y, links.labels())}


def order_free(half: Half, thresholds: Thresholds, count: int) -> dict[str, int]:
    """Return how many partitions several orders have after the stream, and after a rebuild."""
    before, after = set(), set()
    for order in orders(len(half.y), count):
        links = added(half.X[order], thresholds)
        before.add(links.partition_hash())
        links.rebuild(apply=True)
        after.add(links.partition_hash())
    return {"orders": count, "partitions": len(before), "partitions_rebuilt": len(after)}


def kept(half: Half, thresholds: Thresholds) -> dict[str, float]:
    """Return the mean share of vectors that keep their ID at a rebuild after 30 % of growth."""
    links, shares, end = Links.from_thresholds(thresholds, mode="best"), [], 100
    while end <= len(half.y):
        links.add_many(half.X[links.n_vectors : end])
        labels = links.labels()
        links.rebuild(apply=True)
        shares.append(stability(links.resolve_many(labels), links.labels()))
        end = int(end * GROWTH)
    return {"rebuilds": len(shares), "kept": float(np.mean(shares[1:] or shares))}


def cost(n: int, n_looks: int, dimension: int = 256, *, groups: bool = False) -> dict[str, float]:
    """Return seconds to add and to compute a rebuild of n vectors, 50 for each identity."""
    X, who = synthetic(n, n_looks, dimension)
    start = time.perf_counter()
    links = added(X, Thresholds(0.7, 0.6, 0.65))
    middle = time.perf_counter()
    if groups:
        group(links)
    source = source_for_read(links.core, "rebuild")
    assert source is not None, "there are vectors"
    before = time.perf_counter()
    made = complete(prepare(source, links.core.kept, Wanted()))
    end = time.perf_counter()
    partition = made.plan.partition
    return {
        "n": n,
        "looks": n_looks,
        "groups": groups,
        "add_many": round(middle - start, 2),
        "rebuild": round(end - before, 2),
        "ratio": round((end - before) / (middle - start), 2),
        "subclusters": len(partition.groups),
        "clusters": links.n_clusters,
        "clusters_rebuilt": len(np.unique(partition.groups)),
        "accuracy": accuracy(who, partition.vector_groups()),
    }


def synthetic(
    n: int, n_looks: int, dimension: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return vectors at a cosine of .8 to their look, which has .85 to its identity if several."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((n // 50, dimension))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    looks = np.repeat(centres, n_looks, axis=0)
    if n_looks > 1:
        aside = rng.standard_normal(looks.shape) / np.sqrt(dimension)
        looks = 0.85 * looks + np.sqrt(1 - 0.85**2) * aside
    which = rng.integers(len(looks), size=n)
    X = np.float32(0.8 * looks[which])
    X += np.float32(0.6 / np.sqrt(dimension)) * rng.standard_normal(X.shape, dtype=np.float32)
    return X, which // n_looks


if __name__ == "__main__":
    main()
