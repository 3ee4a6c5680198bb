"""Targets of the reference engine and of the import.

The reference engine adds at least 1,000 vectors/s at 1,000 subclusters of 256-d on one core, and
`import linkstream` takes less than 200 ms. Tests must not depend on time, so both are benchmarks.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from benchmarks.records import Recorder
from benchmarks.timing import Timing, measure
from linkstream import Links

SUBCLUSTERS, DIMENSION, VECTORS = 1_000, 256, 2_000
RATE_MIN = 1_000.0
IMPORT_MAX = 0.200


def full_table() -> tuple[Links, np.ndarray]:
    """Return a clusterer of 1,000 distant subclusters, and vectors that join them."""
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(SUBCLUSTERS, DIMENSION))
    links = Links(0.8, 0.6, 0.9, engine="reference")
    links.add_many(centres)
    members = centres[rng.integers(0, SUBCLUSTERS, VECTORS)]
    return links, members + 0.3 * rng.normal(size=members.shape)


def reference_timing() -> Timing:
    """Measure the reference engine, one vector per call."""
    links, vectors = full_table()
    timing = measure(lambda: [links.add(vector) for vector in vectors], tries=3)
    assert links.n_subclusters == SUBCLUSTERS
    return timing


def import_time() -> Timing:
    """Measure `import linkstream`, less the start of the interpreter."""
    start = measure(lambda: subprocess.run([sys.executable, "-c", ""], check=True))
    both = measure(lambda: subprocess.run([sys.executable, "-c", "import linkstream"], check=True))
    return Timing(tuple(seconds - start.best for seconds in both.seconds))


def reference(recorder: Recorder) -> None:
    """Measure the reference engine and the import."""
    timing = reference_timing()
    rate = recorder.rate(
        f"add at {SUBCLUSTERS:,} subclusters", "reference engine", timing.rates(VECTORS)
    )
    imported = import_time()
    recorder.at_least(RATE_MIN, "reference engine", rate.best, "vectors/s")
    recorder.at_most(IMPORT_MAX, "import linkstream", imported.best, "s")
