"""Disagreements of two encoders about subclusters, where their vectors are not kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkstream.engine.comparison import similarities
from linkstream.engine.linkage import CENTROID_SCALE, centroids
from linkstream.engine.state import Integers, State
from linkstream.identity.disagreements import MOST, Disagreement, sets_of
from linkstream.identity.rebuild_report import Flow
from linkstream.identity.rebuild_sums import Subclusters
from linkstream.paper.thresholds import Thresholds


@dataclass(frozen=True, slots=True)
class SumSides:
    """The subclusters before and after a change of the encoder.

    Attributes:
        state: the state before, with the sums of the old encoder.
        new: the subclusters with their sums in the new one.
        after: the cluster of each afterwards.
        thresholds: those of the old encoder and of the new one.
    """

    state: State
    new: Subclusters
    after: Integers
    thresholds: tuple[Thresholds, Thresholds]

    def disagreements(self, flows: tuple[Flow, ...]) -> tuple[Disagreement, ...]:
        """Return the disagreement of each flow; none if vectors are not tracked."""
        if not self.state.track_vectors:
            return ()
        pairs = [(flow, *sets_of(flow, self.state.clusters, self.after)) for flow in flows[:MOST]]
        return tuple(self._of(flow, ours, theirs) for flow, ours, theirs in pairs if len(theirs))

    def _of(self, flow: Flow, ours: Integers, theirs: Integers) -> Disagreement:
        sets, counts = (ours, theirs), self.state.counts
        then, needed = self._figures(self.state.sums, sets, self.thresholds[0])
        cosine, required = self._figures(self.new.fixed, sets, self.thresholds[1])
        return Disagreement(
            kind=flow.kind,
            clusters=(flow.cluster, flow.to),
            vectors=(self._central(ours), self._central(theirs)),
            sizes=(int(counts[ours].sum()), int(counts[theirs].sum())),
            before=then - needed,
            similarity=cosine,
            threshold=required,
        )

    def _figures(
        self, sums: Integers, sets: tuple[Integers, Integers], thresholds: Thresholds
    ) -> tuple[float, float]:
        """Return the similarity of two sets of subclusters, and s~ for their weights."""
        one, other = (centroids(sums[places].sum(axis=0)[np.newaxis]) for places in sets)
        masses = [self.new.masses[places].sum(keepdims=True) for places in sets]
        required = thresholds.edges(masses[0], masses[1])
        return float(similarities(one, other)[0]), float(required[0])

    def _central(self, places: Integers) -> int:
        """Return the first vector of the subcluster that is nearest to the sum of all."""
        sums = self.new.fixed[places]
        units = centroids(sums) @ centroids(sums.sum(axis=0)[np.newaxis])[0] / CENTROID_SCALE**2
        number = self.new.numbers[places[int(np.argmax(units))]]
        return int(np.flatnonzero(self.state.vectors == number)[0])
