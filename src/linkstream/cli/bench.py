"""`linkstream bench`: measure the speed of this machine."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from typer import Option

from linkstream.cli import screen
from linkstream.cli.options import Seed
from linkstream.cli.outcome import usage_error
from linkstream.clusterer import Links
from linkstream.paper.thresholds import Thresholds

THRESHOLDS = Thresholds(0.7, 0.75, 0.9)  # each centre becomes a cluster of one subcluster
BATCH = 1000
SINGLES = 200  # durable adds; each waits for the disk

Vectors = npt.NDArray[np.float32]


def bench(
    vectors: Annotated[int, Option(min=BATCH, help="Vectors in each measurement.")] = 20_000,
    dimension: Annotated[int, Option(min=8, help="Numbers in a vector.")] = 256,
    sizes: Annotated[str, "Numbers of subclusters to measure with."] = "100,1000,10000",
    folder: Annotated[Path | None, "Folder for a temporary store; else this folder."] = None,
    seed: Seed = 0,
) -> None:
    """Measure how many vectors a second this machine adds.

    It measures add, add_many in batches of 1,000, and the same with a store, where each batch is on
    the disk before it is acknowledged, for several numbers of subclusters. The vectors are random,
    on one thread. docs/performance.md has real vectors, and other packages.

    Example: linkstream bench --vectors 2000 --dimension 64 --sizes 100
    """
    rows = screen.table("Vectors a second", "what", "subclusters", "vectors/s")
    to_json = screen.speaks_json()
    with tempfile.TemporaryDirectory(dir=folder or Path()) as place:
        for record in _measured(_sizes(sizes), vectors, dimension, seed, Path(place)):
            if to_json:
                screen.write_json(record)
            figures = (record["subclusters"], round(record["vectors_per_s"]))
            rows.add_row(record["what"], *(f"{figure:,}" for figure in figures))
    if not to_json:
        screen.console().print(rows)


def _sizes(words: str) -> list[int]:
    try:
        sizes = [int(word) for word in words.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1:
        raise usage_error(f"sizes {words!r}", "whole numbers as 100,1000", "Check --sizes.")
    return sizes


def _measured(
    sizes: list[int], n: int, dimension: int, seed: int, folder: Path
) -> Iterator[dict[str, Any]]:
    from linkstream.store import Store

    def store(name: str) -> Store:
        return opened.enter_context(Store.open(folder / name, thresholds=THRESHOLDS, threads=1))

    for size in sizes:
        X = _stream(size, n, dimension, seed)
        links = [Links.from_thresholds(THRESHOLDS, threads=1) for _ in range(2)]
        with ExitStack() as opened:
            for what, target, add, count in (
                ("add", links[0], _one_by_one, n),
                ("add_many", links[1], _in_batches, n),
                ("store", store(f"{size}.links"), _in_batches, n),
                ("store, one by one", store(f"{size}-singly.links"), _one_by_one, SINGLES),
            ):
                target.add_many(X[:size])
                rows = X[size:][:count]
                began = time.perf_counter()
                add(target, rows)
                took = time.perf_counter() - began
                counts = {"subclusters": target.n_subclusters, "vectors": len(rows)}
                speed = {"seconds": round(took, 4), "vectors_per_s": round(len(rows) / took, 1)}
                yield {"what": what, "dimension": dimension, **counts, **speed}


def _one_by_one(target: Any, X: Vectors) -> None:
    for x in X:
        target.add(x)


def _in_batches(target: Any, X: Vectors) -> None:
    for i in range(0, len(X), BATCH):
        target.add_many(X[i : i + BATCH])


def _stream(size: int, n: int, dimension: int, seed: int) -> Vectors:
    """Return each of `size` random centres once, then `n` vectors close to one of them."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((size, dimension), dtype=np.float32)
    noise = 0.3 * rng.standard_normal((n, dimension), dtype=np.float32)
    return np.concatenate([centres, centres[rng.integers(0, size, n)] + noise])
