"""Totals: the sum and the count of all vectors of each cluster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkstream.engine.state import Integers, State


@dataclass(frozen=True, slots=True)
class Totals:
    """Clusters by ID; `place` says which of them each subcluster belongs to."""

    ids: Integers
    sums: Integers
    counts: Integers
    place: Integers

    @classmethod
    def of(cls, state: State) -> Totals:
        """The totals of a state."""
        ids, place = np.unique(state.clusters, return_inverse=True)
        sums = np.zeros((len(ids), state.dimension), dtype=np.int64)
        counts = np.zeros(len(ids), dtype=np.int64)
        np.add.at(sums, place, state.sums)
        np.add.at(counts, place, state.counts)
        return cls(ids, sums, counts, place)
