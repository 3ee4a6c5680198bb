"""Thresholds for a rebuild from the present clusters, which serve as labels.

Nobody has to label anything for it, but it is circular: the clusters are what earlier thresholds
made of the vectors, and without corrections the search finds how fine they are, not whether they
are right. Three things keep it honest:

- Clusters that a person named or corrected count four times as much as others, and vectors that are
  alone a quarter.
- Thresholds are judged on clusters that they were not chosen on. The clusters are halved; the best
  thresholds of one half are judged on the other.
- The present thresholds stay if those found are hardly better there.

In another space, or with the vectors of another encoder, it is not circular: the clusters come from
the vectors before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkstream.engine.linkage import Progress, Unite
from linkstream.engine.state import Integers, State
from linkstream.errors import ArgumentError
from linkstream.identity.content import Content
from linkstream.identity.ledger import GONE, Ledger
from linkstream.identity.rebuild_search import Examples, Grid, agreement, grouped, part_of
from linkstream.paper.thresholds import Thresholds

FROM_CLUSTERS = "from clusters"  # as thresholds=
CLUSTERS_MIN = 10  # of two vectors or more
VECTORS_MAX = 1_000  # of the sample
_VECTORS_EACH = 10  # of a cluster, if there are many clusters
_NAMED, _UNNAMED, _ALONE = 4.0, 1.0, 0.25  # how much a vector counts in the score
_LEAST_GAIN = 0.005  # of agreement on clusters held out


@dataclass(frozen=True, slots=True)
class ClusterEvidence:
    """What thresholds from the present clusters rest on.

    Attributes:
        n_clusters: number of clusters of two vectors or more that served as labels.
        n_confirmed: how many of these a person named or corrected.
        n_vectors: number of vectors that were tried, at most 1,000.
        agreement: how well rebuilt clusters agree with those that were held out, from 0 to 1.
        agreement_before: the same with the thresholds of the clusterer.
        changed: whether thresholds were found that agree better than those of the clusterer.
    """

    n_clusters: int
    n_confirmed: int
    n_vectors: int
    agreement: float
    agreement_before: float
    changed: bool

    def __str__(self) -> str:
        told = f"from {self.n_clusters:,} clusters, {self.n_confirmed:,} named or corrected"
        agreed = f"agreement {self.agreement:.3f} on clusters held out"
        if self.changed:
            return f"{told}; {agreed}, {self.agreement_before:.3f} before"
        return f"{told}; none agree better than those of the clusterer ({agreed})"


@dataclass(frozen=True, slots=True, eq=False)
class LabelledClusters:
    """A sample of the vectors with their clusters as labels.

    Attributes:
        examples: the vectors, in canonical order.
        halves: 0 or 1 for each vector; a cluster is in one half as a whole.
        confirmed: the labels that a person named or corrected.
    """

    examples: Examples
    halves: Integers
    confirmed: Integers

    @classmethod
    def of(cls, content: Content, state: State, ledger: Ledger) -> LabelledClusters:
        """Return the sample; raise ArgumentError if there are too few clusters.

        Named and corrected clusters come first, then those in the order of the digests.
        """
        held = np.searchsorted(state.numbers, state.vectors[content.numbers])
        clusters, sizes = state.clusters[held], np.bincount(state.clusters[held], minlength=1)
        check_enough(int(np.count_nonzero(sizes > 1)))
        confirmed = confirmed_clusters(state, ledger)
        places = _sample(content, clusters, confirmed)
        part = content.part(places)
        shares = np.where(sizes[clusters[places]] > 1, _UNNAMED, _ALONE)
        shares[np.isin(clusters[places], confirmed)] = _NAMED
        examples = Examples.of(part, clusters[places], shares)
        return cls(examples, _halves(examples.labels, confirmed), confirmed)

    def found(
        self, before: Thresholds, unite: Unite, *, keep_join: bool, progress: Progress | None = None
    ) -> tuple[Thresholds, ClusterEvidence]:
        """Return the thresholds to rebuild with, and what they rest on.

        Args:
            before: the thresholds of the clusterer.
            unite: margin linkage.
            keep_join: whether T_s stays; else it is the similarity of the closest of one cluster.
            progress: called with the share of the work that is done.
        """
        join = before.subcluster_similarity if keep_join else None
        grid = Grid.over(*self.examples.similarity_range(), join)
        parts = [self.examples.part(np.flatnonzero(self.halves == half)) for half in (0, 1)]
        scores = [
            grid.scores(examples, unite, agreement, part_of(progress, start, end))
            for examples, start, end in zip(
                [self.examples, *parts], (0.0, 0.6, 0.8), (0.6, 0.8, 1.0), strict=True
            )
        ]
        chosen = [grid.best([each]) for each in scores]
        held_out = [float(scores[1][chosen[2]]), float(scores[2][chosen[1]])]
        present = [agreement(part, grouped(part, before, unite)) for part in parts]
        evidence = self._evidence(_mean(held_out, parts), _mean(present, parts))
        return (grid.at(chosen[0]) if evidence.changed else before), evidence

    def _evidence(self, agreed: float, before: float) -> ClusterEvidence:
        labels, counts = np.unique(self.examples.labels, return_counts=True)
        several = labels[counts > 1]
        changed = agreed >= before + _LEAST_GAIN
        return ClusterEvidence(
            n_clusters=len(several),
            n_confirmed=int(np.count_nonzero(np.isin(several, self.confirmed))),
            n_vectors=len(self.examples),
            agreement=agreed if changed else before,
            agreement_before=before,
            changed=changed,
        )


def check_enough(n_clusters: int) -> None:
    """Raise ArgumentError if there are too few clusters of two vectors or more."""
    if n_clusters < CLUSTERS_MIN:
        raise ArgumentError(
            f"thresholds {FROM_CLUSTERS} and {n_clusters} clusters of two vectors or more",
            expected=f"at least {CLUSTERS_MIN} of them",
            remedy="Pass thresholds of your own, or leave thresholds= out.",
        )


def confirmed_clusters(state: State, ledger: Ledger) -> Integers:
    """Return the clusters that have a name, or of which a correction speaks."""
    pins = {pin for law in ledger.laws for side in law.sides for pin in side}
    nodes = np.array(sorted({ledger.pins[pin].node for pin in pins} - {GONE}), dtype=np.int64)
    corrected = state.clusters[np.searchsorted(state.numbers, nodes)]
    return np.unique(np.concatenate([corrected, np.array(sorted(ledger.names), dtype=np.int64)]))


def _sample(content: Content, clusters: Integers, confirmed: Integers) -> Integers:
    """Return places of whole clusters, or of the same number of vectors of each large one."""
    order = np.lexsort(content.digests().T[::-1])
    known, firsts, inverse, sizes = np.unique(
        clusters[order], return_index=True, return_inverse=True, return_counts=True
    )
    most = max(VECTORS_MAX // len(known), _VECTORS_EACH)
    by_cluster = np.argsort(inverse, kind="stable")
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[by_cluster] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    turn = np.argsort(np.lexsort((firsts, ~np.isin(known, confirmed))))
    chosen = order[np.lexsort((ranks, turn[inverse]))]
    rank_of = np.empty(len(order), dtype=np.int64)
    rank_of[order] = ranks
    return chosen[rank_of[chosen] < most][:VECTORS_MAX]


def _halves(labels: Integers, confirmed: Integers) -> Integers:
    """Return the half of each vector; the halves have alike many clusters of each kind."""
    known, firsts, inverse, sizes = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort((firsts, -sizes, np.isin(known, confirmed)))
    half = np.empty(len(known), dtype=np.int64)
    half[order] = np.arange(len(known)) % 2
    return half[inverse]


def _mean(figures: list[float], parts: list[Examples]) -> float:
    """Return the mean of figures of the two halves, each with its share."""
    weights = [float(part.shares.sum()) for part in parts]
    return sum(w * f for w, f in zip(weights, figures, strict=True)) / sum(weights)
