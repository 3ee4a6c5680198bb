"""Run one workload: `python -m benchmarks.measures tight`.

Records are written to the standard output, one line of JSON each. report.py runs each workload in
a process of its own, so that memory and threads of one do not affect another. A wrong result
raises AssertionError; a missed target does not.
"""

from __future__ import annotations

import sys

from benchmarks.bench_reference import reference
from benchmarks.bench_streams import hub, lobes, scatter, tight
from benchmarks.bench_tables import bandwidth, long, vast, wide
from benchmarks.records import Recorder

MEASURES = {
    "reference": reference,
    "bandwidth": bandwidth,
    "tight": tight,
    "scatter": scatter,
    "hub": hub,
    "lobes": lobes,
    "wide": wide,
    "vast": vast,
    "long": long,
}
ON_DEMAND = ("long",)

if __name__ == "__main__":
    name = sys.argv[1]
    MEASURES[name](Recorder(name))
