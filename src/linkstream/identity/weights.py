"""Weights: how much a vector of low quality teaches; whole 256ths."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from linkstream.engine.forest import FULL
from linkstream.errors import ArgumentError


def lights(weight: npt.ArrayLike, n: int) -> list[int]:
    """How many 256ths each of n vectors weighs less than a full one; FULL: it is only asked about.

    >>> lights(0.5, 2), lights([1.0, 0.0, 0.001], 3)
    ([128, 128], [0, 256, 255])
    """
    try:
        given = np.broadcast_to(np.asarray(weight, dtype=np.float64), (n,)).tolist()
    except (TypeError, ValueError):
        given = [math.nan]
    if not all(0.0 <= value <= 1.0 for value in given):
        raise ArgumentError(
            f"weight={weight!r:.80}",
            expected="a number from 0 to 1, or one for each vector",
            remedy="1 is a vector of full quality; 0 asks without learning.",
        )
    return [FULL - max(round(value * FULL), 1) if value else FULL for value in given]
