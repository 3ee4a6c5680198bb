"""Runs the measures of one name: `python -m benchmarks.measures tight`.

Records go to the standard output, a line of JSON each. Each name runs in a process of its own
(report.py sees to it), so that the memory of one, or the threads of its peers, cannot weigh on
another. A wrong result is an AssertionError, a missed target is not.
"""

from __future__ import annotations

import sys

from benchmarks.bench_reference import reference
from benchmarks.bench_streams import hub, lobes, scatter, tight
from benchmarks.bench_tables import bandwidth, long, vast, wide
from benchmarks.records import Book

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
    MEASURES[name](Book(name))
