"""A small search for one parameter, along a line.

It maximises a score on labelled vectors, uses no other knowledge, and gives the same answer each
time. The peers of the quality table are tuned with it or over a grid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

TOLERANCE = 0.002  # scores this close to the best belong to its plateau
BETWEEN = 3  # new points in each of the two gaps beside the best


def along_a_line(
    score: Callable[[float], float], grid: Sequence[float], *, rounds: int = 1
) -> float:
    """The middle of the best plateau: the whole grid is tried, then finer beside the best.

    The first best of several equal values lies at the edge of what works. The middle is the
    choice that is most likely to work elsewhere.
    """
    tried = {float(value): score(float(value)) for value in grid}
    for _ in range(rounds):
        values = sorted(tried)
        best = values.index(max(values, key=tried.__getitem__))
        ends = values[max(best - 1, 0) : best + 2]
        for low, high in pairwise(ends):
            for value in np.linspace(low, high, BETWEEN + 2)[1:-1]:
                tried[float(value)] = score(float(value))
    values = sorted(tried)
    return middle_of_plateau(values, [tried[value] for value in values])


def middle_of_plateau(values: Sequence[float], scores: Sequence[float]) -> float:
    """The value nearest the middle of the run of good values around the best one."""
    good = np.asarray(scores) >= max(scores) - TOLERANCE
    first = last = int(np.argmax(scores))
    while first > 0 and good[first - 1]:
        first -= 1
    while last + 1 < len(values) and good[last + 1]:
        last += 1
    run = np.asarray(values[first : last + 1])
    return float(run[np.argmin(np.abs(run - (run[0] + run[-1]) / 2))])
