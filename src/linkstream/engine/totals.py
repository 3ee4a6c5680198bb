"""Sums of groups of subclusters, without a copy of all sums; settling reads a state by them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkstream.engine.linkage import Blocs, Progress, Restrictions, Unions, Unite
from linkstream.engine.state import Integers, State
from linkstream.paper.thresholds import Thresholds

_BLOCK = 16_384  # rows of sums copied at a time


def totals(sums: Integers, rows: Integers, places: Integers, n: int) -> Integers:
    """Return n sums: row i is the sum of those `rows` of `sums` whose place is i."""
    found = np.zeros((n, sums.shape[1]), dtype=np.int64)
    order = np.argsort(places, kind="stable")
    for start in range(0, len(order), _BLOCK):
        part = order[start : start + _BLOCK]
        firsts = np.flatnonzero(np.diff(places[part], prepend=-1))
        found[places[part[firsts]]] += np.add.reduceat(sums[rows[part]], firsts, axis=0)
    return found


@dataclass(frozen=True, slots=True)
class StateSubclusters:
    """The subclusters of a state, see `contract.Subclusters`; `unite` is that of a factory."""

    state: State
    unite: Unite

    def outline(self) -> State:
        """Return the whole state."""
        return self.state

    def unions(
        self,
        blocs: Blocs,
        thresholds: Thresholds,
        restrictions: Restrictions,
        progress: Progress | None,
    ) -> Unions:
        """Unite rows of subclusters by margin; sums are not copied if each row has one."""
        sums, n = self.state.sums, len(blocs.masses)
        if not np.array_equal(blocs.numbers, self.state.numbers) or n < len(blocs.numbers):
            sums = self.totals(blocs.numbers, blocs.places, n)
        return self.unite(sums, blocs.masses, thresholds, restrictions, progress)

    def totals(self, numbers: Integers, places: Integers, n: int) -> Integers:
        """Return the sum of the subclusters of each place."""
        rows = np.searchsorted(self.state.numbers, numbers)
        return totals(self.state.sums, rows, places, n)
