"""The reference engine and the import: two bounds that keep the plain road usable.

At least 1,000 vectors/s at 1,000 subclusters of 256-d on one core; `import linkstream` in under
200 ms. Both are targets here, in a benchmark, never in a test.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from benchmarks.records import Book
from benchmarks.timing import Timing, measure
from linkstream import Links

SUBCLUSTERS, DIMENSION, VECTORS = 1_000, 256, 2_000
RATE_MIN = 1_000.0
IMPORT_MAX = 0.200


def full_table() -> tuple[Links, np.ndarray]:
    """A clusterer of 1,000 far-apart subclusters, and vectors that join them."""
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(SUBCLUSTERS, DIMENSION))
    links = Links(0.8, 0.6, 0.9, engine="reference")
    links.add_many(centres)
    members = centres[rng.integers(0, SUBCLUSTERS, VECTORS)]
    return links, members + 0.3 * rng.normal(size=members.shape)


def reference_timing() -> Timing:
    """Seconds of the reference engine, adding one vector a call."""
    links, vectors = full_table()
    timing = measure(lambda: [links.add(vector) for vector in vectors], tries=3)
    assert links.n_subclusters == SUBCLUSTERS
    return timing


def import_time() -> Timing:
    """Seconds from a bare interpreter to `import linkstream`, less the interpreter's own start."""
    start = measure(lambda: subprocess.run([sys.executable, "-c", ""], check=True))
    both = measure(lambda: subprocess.run([sys.executable, "-c", "import linkstream"], check=True))
    return Timing(tuple(seconds - start.best for seconds in both.seconds))


def reference(book: Book) -> None:
    """The plain Python engine, and the time it takes to begin."""
    timing = reference_timing()
    rate = book.rate(
        f"add at {SUBCLUSTERS:,} subclusters", "reference engine", timing.rates(VECTORS)
    )
    imported = import_time()
    book.at_least(RATE_MIN, "reference engine", rate.best, "vectors/s")
    book.at_most(IMPORT_MAX, "import linkstream", imported.best, "s")
