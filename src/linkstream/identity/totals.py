"""Totals: the sum, the count and the weight of all vectors of each cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from linkstream.engine.forest import FULL
from linkstream.engine.state import Integers, State

Rows = TypeVar("Rows", npt.NDArray[np.int64], npt.NDArray[np.float64])


@dataclass(frozen=True, slots=True)
class Totals:
    """Clusters by ID; `place` says which of them each subcluster belongs to."""

    ids: Integers
    sums: Integers
    counts: Integers
    masses: npt.NDArray[np.float64]
    oldest: Integers  # subcluster of each
    place: Integers

    @classmethod
    def of(cls, state: State) -> Totals:
        """The totals of a state."""
        ids, first, place = np.unique(state.clusters, return_index=True, return_inverse=True)
        sums = gathered(state.sums, place, len(ids))
        counts = gathered(state.counts, place, len(ids))
        light = gathered(state.light, place, len(ids))
        masses = np.maximum(counts - light / FULL, 1.0)
        return cls(ids, sums, counts, masses, state.numbers[first], place)


def gathered(rows: Rows, place: Integers, n: int) -> Rows:
    """The sum of the rows that belong to each of n places."""
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    sums = np.zeros((n, *rows.shape[1:]), dtype=rows.dtype)
    if len(order):
        sums[place[order[starts]]] = np.add.reduceat(rows[order], starts, axis=0)
    return sums
