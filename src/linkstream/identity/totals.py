"""Totals: the sum, the count and the weight of all vectors of each cluster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.engine.forest import FULL
from linkstream.engine.state import Integers, State


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
        sums = np.zeros((len(ids), state.dimension), dtype=np.int64)
        counts = np.zeros(len(ids), dtype=np.int64)
        light = np.zeros(len(ids), dtype=np.int64)
        np.add.at(sums, place, state.sums)
        np.add.at(counts, place, state.counts)
        np.add.at(light, place, state.light)
        masses = np.maximum(counts - light / FULL, 1.0)
        return cls(ids, sums, counts, masses, state.numbers[first], place)
