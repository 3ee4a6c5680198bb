"""Measure migrations to another encoder: IDs and names kept, accuracy after.

`python -m benchmarks.migration FOLDER` reads .npz files with arrays X and y. The second encoder is
made from the first: a rotation into 64 more dimensions; the same with noise of half the length of
a vector; a random network of two layers whose units saturate. Thresholds of each encoder are tuned
on one half of the identities (protocol.py); the figures are of the other half.

Clusterers that keep no vectors are measured as well (`--kinds`): "sums" get vectors of the other
encoder alone, "sums, old vectors" get the old vectors of the same items with them. They are
settled before, since they cannot be rebuilt.

Names are given in a second run, since they keep clusters apart: of each identity the largest
cluster. A name is kept if its cluster holds most of the vectors that it held before.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import describe
from benchmarks.protocol import Half, load
from linkstream import Links, Thresholds
from linkstream.engine import native
from linkstream.metrics import accuracy, stability
from linkstream.tuning import tune

SHARES = (1.0, 0.5, 0.1)
MOST = 1500  # vectors of a set
KINDS = ("kept", "sums", "sums, old vectors")

Rows = np.ndarray[Any, Any]
Encoder = Callable[[Rows], Rows]


def main() -> None:
    """Print a line of JSON for each set, encoder and share."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.migration")
    made.add_argument("folder", type=Path, help=".npz files, X and y")
    made.add_argument("--sets", nargs="*", help="names of files without .npz; default: all")
    made.add_argument("--kinds", nargs="*", choices=KINDS, default=KINDS, help="default: all")
    options = made.parse_args()
    print(json.dumps({"machine": describe(native.kernel_name() or "best")}))
    found = []
    for line in measured(options.folder, options.sets, options.kinds):
        print(json.dumps(line), flush=True)
        found.append(line)
    for line in means(found):
        print(json.dumps(line))


def measured(
    folder: Path, names: list[str] | None, kinds: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield the figures of each set, encoder, kind and share."""
    for path in sorted(folder.glob("*.npz")):
        if names and path.stem not in names:
            continue
        other, half = (each.first(MOST) for each in load(path))
        before = tuned(other)
        for name, encoder in encoders(half.X.shape[1]).items():
            thresholds = before, tuned(other, encoder)
            for kind in kinds:
                for figures in migrated(half, encoder, thresholds, kind):
                    yield {"set": path.stem, "encoder": name, "kind": kind, **figures}


def unit(X: Rows) -> Rows:
    """Return rows of length 1."""
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def encoders(dimension: int) -> dict[str, Encoder]:
    """Return the second encoders, as functions of unit vectors of the first."""
    rng = np.random.default_rng(0)
    wide = dimension + 64
    turned = np.linalg.qr(rng.standard_normal((wide, wide)))[0][:dimension]
    first = 3.0 * rng.standard_normal((dimension, 128))
    second = 3.0 * rng.standard_normal((128, 96)) / np.sqrt(128)

    def noisy(X: Rows) -> Rows:
        noise = np.random.default_rng(1).standard_normal((len(X), wide))
        return X @ turned + 0.5 * unit(noise)

    return {
        "rotation": lambda X: X @ turned,
        "rotation and noise": noisy,
        "network": lambda X: np.tanh(np.tanh(X @ first) @ second),
    }


def tuned(half: Half, encoder: Encoder | None = None) -> Thresholds:
    """Return thresholds for an encoder, from labelled vectors."""
    rows = unit(half.X) if encoder is None else unit(encoder(unit(half.X)))
    return tune(rows, half.y, mode="best", objective="settled", workers=1).thresholds


def added(X: Rows, thresholds: Thresholds, *, kept: bool = True) -> Links:
    """Return a clusterer of these vectors, rebuilt, or settled if it keeps none."""
    links = Links.from_thresholds(thresholds, mode="best", keep_vectors=kept)
    links.add_many(X)
    (links.rebuild if kept else links.settle)(apply=True)
    return links


def named(links: Links, y: Rows) -> dict[str, Rows]:
    """Name the largest cluster of each identity; return the vectors of each name."""
    labels, found = links.labels(), {}
    for identity in np.unique(y).tolist():
        clusters, counts = np.unique(labels[y == identity], return_counts=True)
        cluster = int(clusters[counts.argmax()])
        members = np.flatnonzero(labels == cluster)
        theirs = np.unique(y[members], return_counts=True)
        if theirs[0][theirs[1].argmax()] == identity:
            links.name(cluster, str(identity))
            found[str(identity)] = members
    return found


def migrated(
    half: Half, encoder: Encoder, thresholds: tuple[Thresholds, Thresholds], kind: str
) -> Iterator[dict[str, Any]]:
    """Yield the figures of one encoder, for each share of items that it has seen.

    `thresholds` are those of the first encoder and of the second one.
    """
    rows, (before, after) = unit(encoder(unit(half.X))), thresholds
    fresh = accuracy(half.y, added(rows, after).labels())
    kept = kind == "kept"
    links, with_names = (added(half.X, before, kept=kept) for _ in range(2))
    names, labels = named(with_names, half.y), links.labels()
    order = np.random.default_rng(2).permutation(len(rows))
    for share in SHARES:
        seen = order[: round(share * len(order))]
        found = []
        for each in (links, with_names):
            migration = each.migrate(thresholds=after)
            migration.add(rows[seen], seen, old=half.X[seen] if "old" in kind else None)
            found.append(migration.finish().loss)
        loss, now, then = found[0], links.labels(), with_names.labels()
        same = [np.mean(then[some] == with_names.named(name)) > 0.5 for name, some in names.items()]
        yield {
            "share": share,
            "vectors": len(rows),
            "cosine": None if loss is None else loss.cosine,
            "changed": None if loss is None else loss.changed,
            "ids": stability(links.resolve_many(labels), now),
            "named": len(same),
            "names": float(np.mean(same)),
            "before": accuracy(half.y, labels),
            "fresh": fresh,
            "after": accuracy(half.y, now),
        }
        links.undo()
        with_names.undo()


def means(lines: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the means over sets of each encoder, kind and share, and the worst share of IDs."""
    columns = ("encoder", "kind", "share")
    for key in sorted({tuple(line[column] for column in columns) for line in lines})[::-1]:
        mine = [line for line in lines if tuple(line[column] for column in columns) == key]
        names = ("cosine", "changed", "ids", "names", "before", "fresh", "after")
        figures = {
            name: round(float(np.mean([line[name] for line in mine])), 3)
            for name in names
            if mine[0][name] is not None
        }
        worst = round(min(line["ids"] for line in mine), 3)
        known = dict(zip(columns, key, strict=True))
        yield {"mean of": len(mine), **known, "worst": worst, **figures}


if __name__ == "__main__":
    main()
