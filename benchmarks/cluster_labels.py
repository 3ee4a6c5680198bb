"""Measure `rebuild(thresholds="from clusters")`: accuracy after a change of the encoder.

`python -m benchmarks.cluster_labels FOLDER` reads .npz files with arrays X and y. A clusterer of
the held-out identities (protocol.py, at most 1,000 vectors) is rebuilt with thresholds for rebuilds
that were tuned on the others. Then:

- each encoder of benchmarks/migration.py takes the place of the first: with the old thresholds,
  with those from the clusters, and with those tuned by the labels of the other half;
- in the same space, the clusterer is rebuilt with thresholds that are far too fine, which shows
  how circular clusters are as labels; then 30 pairs of one identity that are apart are declared the
  same, and thresholds from the clusters are taken again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import describe
from benchmarks.migration import Encoder, Rows, encoders, unit
from benchmarks.protocol import Half, load
from linkstream import Links, Space, Thresholds
from linkstream.engine import native
from linkstream.metrics import accuracy
from linkstream.tuning.inputs import LabelledVectors
from linkstream.tuning.objective import Objective
from linkstream.tuning.rebuilds import tuned_for_rebuilds

MOST = 1_000  # vectors of a set
CORRECTIONS = 30
FROM_CLUSTERS = "from clusters"


def main() -> None:
    """Print a line of JSON for each set and change, then the means."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.cluster_labels")
    made.add_argument("folder", type=Path, help=".npz files, X and y")
    made.add_argument("--sets", nargs="*", help="names of files without .npz; default: all")
    options = made.parse_args()
    print(json.dumps({"machine": describe(native.kernel_name() or "best")}))
    lines = []
    for path in sorted(options.folder.glob("*.npz")):
        if options.sets and path.stem not in options.sets:
            continue
        for line in measured(*(half.first(MOST) for half in load(path))):
            lines.append({"set": path.stem, **line})
            print(json.dumps(lines[-1]), flush=True)
    for change in dict.fromkeys(line["change"] for line in lines):
        print(json.dumps(mean([line for line in lines if line["change"] == change])))


def measured(other: Half, half: Half) -> Iterator[dict[str, Any]]:
    """Yield the figures of each change; `other` is the half to tune on."""
    links = Links.from_thresholds(tuned(other), threads=1)
    links.add_many(half.X)
    links.rebuild(apply=True)
    for name, encoder in encoders(half.X.shape[1]).items():
        yield {"change": name, **moved(links, other, half, encoder)}
    yield from same_space(links, half.y)


def tuned(half: Half, encoder: Encoder | None = None) -> Thresholds:
    """Return thresholds for rebuilds, from labelled vectors."""
    rows = unit(half.X if encoder is None else encoder(unit(half.X)))
    examples = LabelledVectors.of(rows, half.y)
    options: dict[str, Any] = {"join": 0.9, "seed": 0, "engine": "auto", "threads": 1}
    return tuned_for_rebuilds(examples, Space(), Objective(), **options).thresholds


def moved(links: Links, other: Half, half: Half, encoder: Encoder) -> dict[str, Any]:
    """Return accuracy with the vectors of another encoder, by the source of the thresholds."""
    rows = unit(encoder(unit(half.X)))
    found: dict[str, Any] = {"before": accuracy(half.y, links.labels())}
    sources = {"old": None, FROM_CLUSTERS: FROM_CLUSTERS, "labels": tuned(other, encoder)}
    for name, thresholds in sources.items():
        found |= rebuilt(links, half.y, name, thresholds=thresholds, vectors=rows)
    return found


def same_space(links: Links, y: Rows) -> Iterator[dict[str, Any]]:
    """Yield accuracy with thresholds that are too fine, and with those from the clusters then."""
    good = links.thresholds
    t_c = 0.5 + 0.5 * good.cluster_similarity
    fine = replace(
        good, cluster_similarity=t_c, pair_similarity_max=0.5 + 0.5 * good.pair_similarity_max
    )
    links.rebuild(thresholds=fine, apply=True)
    before = accuracy(y, links.labels())
    found = rebuilt(links, y, FROM_CLUSTERS, thresholds=FROM_CLUSTERS)
    yield {"change": "too fine", "before": before, **found}
    correct(links, y)
    before = accuracy(y, links.labels())
    found = rebuilt(links, y, "old") | rebuilt(links, y, FROM_CLUSTERS, thresholds=FROM_CLUSTERS)
    yield {"change": "too fine, 30 corrections", "before": before, **found}


def rebuilt(links: Links, y: Rows, name: str, **options: Any) -> dict[str, Any]:
    """Return the accuracy after a rebuild, which is then undone."""
    try:
        report = links.rebuild(apply=True, **options)
    except ValueError:  # too few clusters
        return {name: None}
    found = {name: accuracy(y, links.labels())}
    links.undo()
    evidence = report.evidence
    return found if evidence is None else {**found, "agreement": evidence.agreement}


def correct(links: Links, y: Rows) -> None:
    """Declare vectors of one identity that are apart the same."""
    rng, done = np.random.default_rng(0), 0
    for vector in rng.permutation(len(y)).tolist():
        labels = links.labels()
        apart = np.flatnonzero((y == y[vector]) & (labels != labels[vector]))
        if len(apart) and done < CORRECTIONS:
            links.same(vector, int(rng.choice(apart)))
            done += 1


def mean(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the means over the sets for which all sources gave thresholds."""
    whole = [line for line in lines if None not in line.values()]
    names = [name for name in whole[0] if name not in ("set", "change")]
    figures = {name: round(float(np.mean([line[name] for line in whole])), 3) for name in names}
    return {"mean of": len(whole), "change": lines[0]["change"], **figures}


if __name__ == "__main__":
    main()
