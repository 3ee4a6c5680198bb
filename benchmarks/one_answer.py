"""Show that one set has one answer: `python -m benchmarks.one_answer FOLDER`.

The held-out half of each set (protocol.py), thresholds of the row "links, healed" in quality.json.
Each run shuffles the vectors, cuts them into batches at random, deals them out to 1, 2 or 8 shards
that are joined along a random tree, and lets vectors of the other half come in between and removes
them again, or not. Then the union is rebuilt. All runs of a set must have one `partition_hash`, and
an adjusted Rand index of 1 with the first.

`SAMPLE` vectors of each half: 100 permutations in all six ways, by both engines. The whole half:
100 permutations, in each of these ways in turn, by the C++ engine.

IDs: the half arrives in order, with a rebuild after each 30 % of growth; the share of vectors that
keep their resolved ID at each. Half of the clusters of the first rebuild get names, and are counted
ever after. The tables are written to docs/identity.md, the figures to one_answer.json.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import adjusted_rand_score

from benchmarks.machine import describe
from benchmarks.protocol import Half, Vectors, load
from benchmarks.quality import RESULTS
from benchmarks.quality_tables import put
from linkstream import Links, Thresholds
from linkstream.engine import native
from linkstream.metrics import stability

ROOT = Path(__file__).parent
FIGURES = ROOT / "one_answer.json"
PERMUTATIONS, SAMPLE = 100, 120
WAYS = tuple(itertools.product((1, 2, 8), (0.0, 0.1)))  # shards, and strangers for each vector
FIRST, GROWTH = 100, 1.3  # vectors before the first rebuild; growth between two

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Source:
    """Vectors to cluster, others that come and go, and the thresholds."""

    X: Vectors
    strangers: Vectors
    thresholds: Thresholds

    def first(self, n: int) -> Source:
        """Return the first n vectors, and as many strangers."""
        return Source(self.X[:n], self.strangers[:n], self.thresholds)


@dataclass(frozen=True, slots=True)
class Run:
    """How the vectors come: in which order, to how many shards, with how many strangers."""

    permutation: int
    shards: int
    strangers: float
    engine: str


def one_run(source: Source, run: Run) -> tuple[str, str, Rows]:
    """Return the digests before and after a rebuild, and the labels in order of the set."""
    rng = np.random.default_rng(run.permutation)
    n_strangers = int(run.strangers * len(source.X))
    strangers = rng.permutation(len(source.strangers))[:n_strangers]
    whole = np.concatenate([source.X, source.strangers[strangers]])
    order, n = rng.permutation(len(whole)), len(source.X)
    shards = [
        shard_of(source, whole, rows, rng, run.engine) for rows in np.array_split(order, run.shards)
    ]
    links, rows = joined(shards, rng)
    for number in np.flatnonzero(rows >= n).tolist():
        links.remove(number)
    before = links.partition_hash()
    links.rebuild(apply=True)
    labels = np.empty(n, dtype=np.int64)
    labels[rows[rows < n]] = links.labels()[rows < n]
    return before, links.partition_hash(), labels


def shard_of(
    source: Source, whole: Vectors, rows: Rows, rng: np.random.Generator, engine: str
) -> tuple[Links, Rows]:
    """Cluster some rows in random batches."""
    links = Links.from_thresholds(source.thresholds, mode="best", engine=engine, threads=1)
    cuts = np.sort(rng.integers(len(rows) + 1, size=rng.integers(12)))
    for part in np.split(rows, cuts):
        links.add_many(whole[part].reshape(-1, whole.shape[1]))
    return links, rows


def joined(shards: list[tuple[Links, Rows]], rng: np.random.Generator) -> tuple[Links, Rows]:
    """Join shards along a random tree."""
    while len(shards) > 1:
        a, b = sorted(rng.choice(len(shards), 2, replace=False).tolist())
        (other, theirs), (links, ours) = shards.pop(b), shards[a]
        moved = links.absorb(other).vectors
        assert moved is not None
        rows = np.empty(links.n_vectors, dtype=np.int64)
        rows[: len(ours)], rows[moved] = ours, theirs
        shards[a] = links, rows
    return shards[0]


def in_turn(permutations: int) -> list[Run]:
    """Return a run of each permutation, in each of the ways in turn."""
    return [Run(p, *WAYS[p % len(WAYS)], "native") for p in range(permutations)]


def all_ways(permutations: int) -> list[Run]:
    """Return all runs: each permutation in each way by both engines."""
    engines = "native", "reference"
    each = itertools.product(range(permutations), WAYS, engines)
    return [Run(p, *way, engine) for p, way, engine in each]


def answers(source: Source, runs: Sequence[Run]) -> dict[str, float]:
    """Return how many partitions all runs have, before and after the rebuild, and the least ARI."""
    found = [one_run(source, run) for run in runs]
    first = found[0][2]
    return {
        "vectors": len(source.X),
        "runs": len(runs),
        "stream": len({before for before, _, _ in found}),
        "rebuilt": len({after for _, after, _ in found}),
        "ari": min(float(adjusted_rand_score(first, labels)) for _, _, labels in found),
    }


def kept(half: Half, thresholds: Thresholds) -> dict[str, Any]:
    """Return the share of vectors that keep their ID at each rebuild, and how many names were lost.

    Names are given after the first rebuild.
    """
    links, shares, end = Links.from_thresholds(thresholds, mode="best"), [], FIRST
    names: set[str] = set()
    while end <= len(half.y):
        links.add_many(half.X[links.n_vectors : end])
        labels = links.labels()
        links.rebuild(apply=True)
        shares.append(stability(links.resolve_many(labels), links.labels()))
        names = names or named(links)
        end = int(end * GROWTH)
    lost = names - {view.name for view in links.clusters()}
    return {"shares": shares, "names": len(names), "lost": len(lost)}


def named(links: Links) -> set[str]:
    """Give names to every other cluster, and return them."""
    chosen = {f"name {view.id}": view.id for view in links.clusters()[::2]}
    for name, cluster in chosen.items():
        links.name(cluster, name)
    return set(chosen)


def figures(name: str, folder: Path, permutations: int) -> dict[str, Any]:
    """Return all figures of a set."""
    known = json.loads(RESULTS.read_text("utf-8"))["methods"]["links, healed"]["sets"]
    thresholds = Thresholds(**known[name]["parameters"])
    other, half = load(folder / f"{name}.npz")
    source = Source(half.X, other.X, thresholds)
    return {
        "whole": answers(source, in_turn(permutations)),
        "sample": answers(source.first(SAMPLE), all_ways(permutations)),
        "kept": kept(half, thresholds),
    }


def answers_table(sets: dict[str, Any]) -> str:
    """Return the numbers of partitions as a Markdown table."""
    heads = (
        "| set | vectors | runs | stream | rebuilt | ARI | sample | runs | stream | rebuilt | ARI |"
    )
    lines = [heads, "| --- |" + " --: |" * 10]
    for name, found in sets.items():
        cells = [
            text
            for part in (found["whole"], found["sample"])
            for text in (
                *(f"{part[key]:,}" for key in ("vectors", "runs", "stream", "rebuilt")),
                f"{part['ari']:.3f}",
            )
        ]
        lines.append(f"| {name.replace('_', ' ')} | {' | '.join(cells)} |")
    return "\n".join(lines)


def kept_table(sets: dict[str, Any]) -> str:
    """Return the shares of vectors that keep their ID as a Markdown table."""
    ends = [FIRST]
    while len(ends) < max(len(found["kept"]["shares"]) for found in sets.values()):
        ends.append(int(ends[-1] * GROWTH))
    heads = ["set", *(f"{end:,}" for end in ends), "mean", "names lost"]
    lines = [f"| {' | '.join(heads)} |", "| --- |" + " --: |" * (len(ends) + 2)]
    for name, found in sets.items():
        shares = found["kept"]["shares"]
        cells = [f"{share:.3f}" for share in shares] + [""] * (len(ends) - len(shares))
        cells += [f"{np.mean(shares):.3f}", f"{found['kept']['lost']} of {found['kept']['names']}"]
        lines.append(f"| {name.replace('_', ' ')} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sets of a folder one by one, then write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.one_answer")
    parser.add_argument("folder", type=Path, help="folder of .npz sets with X and y")
    parser.add_argument("--permutations", type=int, default=PERMUTATIONS)
    parser.add_argument("--only", help="one set; the figures of others stay as they are")
    options = parser.parse_args(arguments)
    known = json.loads(RESULTS.read_text("utf-8"))["methods"]["links, healed"]["sets"]
    old = json.loads(FIGURES.read_text("utf-8"))["sets"] if FIGURES.exists() else {}
    for name in [options.only] if options.only else sorted(known):
        old[name] = figures(name, options.folder, options.permutations)
        sets = dict(sorted(old.items()))
        machine = describe(native.kernel_name() or "best")
        text = json.dumps({"machine": machine, "sets": sets}, indent=1)
        FIGURES.write_text(f"{text}\n", "utf-8")
        page = ROOT.parent / "docs" / "identity.md"
        put("one answer", answers_table(sets), page=page)
        put("IDs kept", kept_table(sets), page=page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
