"""Write sets with very unequal sizes or few identities: `python -m benchmarks.uneven FOLDER`.

`python -m benchmarks.quality FOLDER` then compares the methods on them. Every identity has a few
lobes around its centre; vectors arrive in random order.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.workloads import around, on_grid, random_units

DIMENSION = 64


def make(sizes: Sequence[int], seed: int) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    """Return vectors of identities of these sizes, in random order, and their identities."""
    rng = np.random.default_rng(seed)
    centres = random_units(len(sizes), DIMENSION, rng)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    lobes = around(np.repeat(centres, 3, axis=0), 0.8, rng)
    X = on_grid(around(lobes[3 * y + rng.integers(3, size=len(y))], 0.5, rng))
    return {"X": X, "y": y}


SETS = {
    "one_to_a_thousand": np.rint(np.geomspace(1, 1000, 24)).astype(int).repeat(2).tolist(),
    "one_giant": [2000, 2000, *[4] * 120],
    "four_identities": [400] * 4,
    "two_large_two_small": [900, 900, 9, 9],
    "mostly_singles": [*[1] * 1200, *[60] * 20],
}


def main(arguments: list[str] | None = None) -> int:
    """Write each set as an .npz file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.uneven", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, sizes) in enumerate(SETS.items()):
        np.savez(folder / f"{name}.npz", **make(sizes, seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
