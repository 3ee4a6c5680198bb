"""A process that carries out a migration step by step, and records each step that has returned.

    python migration_child.py STORE RECORD KEPT

KEPT is 1 if the store keeps its vectors, else 0; then some come with their old vectors.

It goes on after the steps that the record has, so that it may be killed at any moment.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from linkstream import Space, Thresholds
from linkstream.store import Store

THRESHOLDS = Thresholds(0.7, 0.6, 0.9)
BEGUN, BATCHES, LATER = 60, 40, 20  # vectors before, batches, vectors that arrive meanwhile


def vectors() -> tuple[np.ndarray, np.ndarray]:
    """Return the items as both encoders see them."""
    rng = np.random.default_rng(3)
    centres = np.repeat(rng.standard_normal((8, 16)), 10, axis=0)
    ones = (centres + 0.2 * rng.standard_normal(centres.shape)).astype(np.float32)
    ones = ones[rng.permutation(len(ones))]
    return ones, (ones @ rng.standard_normal((16, 12))).astype(np.float32)


def steps(store: Store, *, kept: bool) -> list[Callable[[], object]]:
    """Return the steps of the migration; each may be done again."""
    ones, others = vectors()
    space = Space(model="two")
    order = np.random.default_rng(4).permutation(BEGUN + LATER // 2)

    def old(number: int) -> Callable[[], object]:
        return lambda: store.add(ones[number], idempotency_key=str(number))

    def new(part: np.ndarray) -> Callable[[], object]:
        old = None if kept or part[0] % 2 else ones[part]
        return lambda: store.migrate(space=space).add(others[part], part, old=old)

    found: list[Callable[[], object]] = [
        lambda: store.add_many(ones[:BEGUN], idempotency_key="first"),
        lambda: store.migrate(space=space),
    ]
    found += [old(number) for number in range(BEGUN, BEGUN + LATER // 2)]
    parts = np.array_split(order, BATCHES)
    for place, part in enumerate(parts):
        found.append(new(part))
        if place % 4 == 3:
            found.append(old(BEGUN + LATER // 2 + place // 4))
    return [*found, lambda: store.migrate(space=space).finish()]


def received(n_steps: int) -> set[int]:
    """Return the items that were re-embedded after some steps."""
    order = np.random.default_rng(4).permutation(BEGUN + LATER // 2)
    found: set[int] = set()
    first = 2 + LATER // 2
    for place, part in enumerate(np.array_split(order, BATCHES)):
        if first + place + place // 4 < n_steps:
            found |= set(part.tolist())
    return found


def carry_out(path: Path, record: Path, *, kept: bool) -> None:
    """Do the steps that the record does not have."""
    done = len(record.read_bytes()) if record.exists() else 0
    out = os.open(record, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with Store.open(path, thresholds=THRESHOLDS, threads=1, keep_vectors=kept) as store:
        todo = steps(store, kept=kept)
        if store.dimension == 12:  # it was killed between the end and its record
            done = len(todo)
        for step in todo[done:]:
            step()
            os.write(out, b".")
        os.write(out, b"!")


if __name__ == "__main__":
    carry_out(Path(sys.argv[1]), Path(sys.argv[2]), kept=sys.argv[3] == "1")
