"""The report of a rebuild: which vectors change their cluster, and why."""

from __future__ import annotations

from dataclasses import asdict, astuple, dataclass
from typing import Any

import numpy as np

from linkstream.engine.comparison import similarities
from linkstream.engine.graph import column
from linkstream.engine.linkage import Floats, centroids
from linkstream.engine.state import Integers, State
from linkstream.identity.cluster_labels import ClusterEvidence
from linkstream.identity.rebuild_ids import Numbering
from linkstream.identity.rebuilding import Partition
from linkstream.paper.thresholds import Thresholds

JOINED, SPLIT, MOVED = "joined", "split", "moved"
_BLOCK = 16_384  # flows compared at a time


@dataclass(frozen=True, slots=True)
class Flow:
    """Vectors of one cluster that are in another after a rebuild.

    Attributes:
        kind: "joined": the cluster is gone, and its ID stands for the other; "split": the other is
            new, and most of it came from here; "moved": any other vectors.
        cluster: the cluster before.
        to: the cluster after.
        vectors: how many.
        margin: how far the similarity of their sum to the rest of `to` lies above s~. If `to` has
            no other vectors, to what is left of `cluster`: then mostly below 0.
    """

    kind: str
    cluster: int
    to: int
    vectors: int
    margin: float

    def __str__(self) -> str:
        counted = f"{self.vectors:,} vector{'s' if self.vectors > 1 else ''}"
        words = {
            JOINED: f"join  {self.cluster} into {self.to}: {counted}",
            SPLIT: f"split {self.to} from {self.cluster}: {counted}",
            MOVED: f"move  {counted} from {self.cluster} to {self.to}",
        }
        return f"{words[self.kind]} ({self.margin:+.3f})"


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """What a rebuild would change, or has changed.

    Attributes:
        flows: vectors that change their cluster, the most first.
        n_vectors: number of vectors that were clustered.
        n_clusters: numbers of clusters before and after.
        n_subclusters: numbers of subclusters before and after.
        n_transferred: number of vectors that change their subcluster.
        applied: whether the change was made.
        thresholds: what the vectors were clustered with; None if there are no vectors.
        evidence: what the thresholds rest on, if they come from the present clusters.
        repeated: whether the call was repeated under its idempotency key, and is applied since the
            first time. The journal holds no report: then all counts are 0.
    """

    flows: tuple[Flow, ...] = ()
    n_vectors: int = 0
    n_clusters: tuple[int, int] = (0, 0)
    n_subclusters: tuple[int, int] = (0, 0)
    n_transferred: int = 0
    applied: bool = False
    thresholds: Thresholds | None = None
    evidence: ClusterEvidence | None = None
    repeated: bool = False

    def of(self, kind: str) -> tuple[Flow, ...]:
        """Return the flows of a kind.

        Args:
            kind: "joined", "split" or "moved".
        """
        return tuple(flow for flow in self.flows if flow.kind == kind)

    @property
    def n_moved(self) -> int:
        """Number of vectors that another cluster than before holds; joins do not count."""
        return sum(flow.vectors for flow in self.flows if flow.kind != JOINED)

    def text(self) -> str:
        """Return the counts, then the flows, one a line."""
        if self.repeated:
            return "rebuilt by the first call with this idempotency key; its report is not kept"
        done = "rebuilt" if self.applied else "proposed"
        first = (
            f"{done}: {self.n_clusters[0]:,} clusters → {self.n_clusters[1]:,}, "
            f"{self.n_subclusters[0]:,} subclusters → {self.n_subclusters[1]:,}; "
            f"{self.n_moved:,} of {self.n_vectors:,} vectors move"
        )
        return "\n".join([first, *self._found(), *map(str, self.flows)])

    def _found(self) -> list[str]:
        """Return a line on thresholds that come from the present clusters."""
        if self.evidence is None or self.thresholds is None:
            return []
        figures = " ".join(f"{value:.4g}" for value in astuple(self.thresholds))
        return [f"thresholds {figures} {self.evidence}"]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return self.text()


REPEATED = RebuildReport(applied=True, repeated=True)


def report_of(
    partition: Partition, numbering: Numbering, state: State, thresholds: Thresholds
) -> RebuildReport:
    """Return what a partition with these IDs changes."""
    groups, ids = partition.vector_groups(), numbering.ids
    flows = [
        (n, cluster, group)
        for cluster, group, n in partition.votes(partition.clusters, groups)
        if ids[group] != cluster
    ]
    flows.sort(key=lambda flow: (-flow[0], flow[1], ids[flow[2]]))
    margins = _margins(partition, numbering, flows, thresholds)
    told = [
        Flow(_kind(cluster, group, numbering, partition), cluster, ids[group], n, margin)
        for (n, cluster, group), margin in zip(flows, margins, strict=True)
    ]
    return RebuildReport(
        tuple(told),
        n_vectors=partition.n_vectors,
        n_clusters=(len(np.unique(state.clusters)), len(ids)),
        n_subclusters=(len(state.numbers), len(numbering.numbers)),
        n_transferred=_n_transferred(partition, numbering, state),
        thresholds=thresholds,
    )


def _n_transferred(partition: Partition, numbering: Numbering, state: State) -> int:
    """Return how many vectors change their subcluster."""
    if partition.counts is not None:
        return 0
    held = state.vectors[partition.content.numbers]
    return int(np.count_nonzero(held != numbering.numbers[partition.owners]))


def _kind(cluster: int, group: int, numbering: Numbering, partition: Partition) -> str:
    if cluster in numbering.gone and partition.homes[cluster] == group:
        return JOINED
    return SPLIT if numbering.fresh.get(group) == cluster else MOVED


def _margins(
    partition: Partition,
    numbering: Numbering,
    flows: list[tuple[int, int, int]],
    thresholds: Thresholds,
) -> list[float]:
    """Return the margin of each flow; see `Flow.margin`."""
    if not flows:
        return []
    groups, found = partition.vector_groups(), np.empty(len(flows))
    size = {group: n for group, _, n in partition.votes(groups, np.zeros_like(groups))}
    rest = [g if size[g] > n else partition.homes[cluster] for n, cluster, g in flows]
    for start in range(0, len(flows), _BLOCK):
        part = slice(start, start + _BLOCK)
        ones = _Sums.of(partition, groups, flows[part])
        others = _Sums.of_groups(partition, groups, rest[part])
        within = np.array([g == r for (_, _, g), r in zip(flows[part], rest[part], strict=True)])
        found[part] = ones.margins(others.without(ones, within), thresholds)
    return list(found.tolist())


class _Sums:
    """Exact sums of vectors, and their weights."""

    def __init__(self, sums: Integers, weights: Floats) -> None:
        self.sums, self.weights = sums, weights

    @classmethod
    def of(cls, partition: Partition, groups: Integers, flows: list[tuple[int, int, int]]) -> _Sums:
        """Return the sums of flows."""
        place = {(cluster, group): i for i, (_, cluster, group) in enumerate(flows)}
        pairs = zip(partition.clusters.tolist(), groups.tolist(), strict=True)
        return cls._gathered(partition, column(place.get(pair, -1) for pair in pairs), len(flows))

    @classmethod
    def of_groups(cls, partition: Partition, groups: Integers, wanted: list[int]) -> _Sums:
        """Return the sums of whole groups."""
        some, places = np.unique(wanted, return_inverse=True)
        at = np.searchsorted(some, groups).clip(max=len(some) - 1)
        owners = np.where(some[at] == groups, at, -1)
        whole = cls._gathered(partition, owners, len(some))
        return cls(whole.sums[places], whole.weights[places])

    @classmethod
    def _gathered(cls, partition: Partition, owners: Integers, n: int) -> _Sums:
        content, inside = partition.content, owners >= 0
        weights = np.bincount(owners[inside], content.weights()[inside], minlength=n)
        return cls(content.sums(owners, n), weights.astype(np.float64))

    def without(self, others: _Sums, within: np.ndarray[Any, Any]) -> _Sums:
        """Return these sums less others where those are a part of them."""
        sums = self.sums - np.where(within[:, np.newaxis], others.sums, 0)
        return _Sums(sums, self.weights - np.where(within, others.weights, 0.0))

    def margins(self, others: _Sums, thresholds: Thresholds) -> Floats:
        """Return how far each similarity lies above s~."""
        cosines = similarities(centroids(self.sums), centroids(others.sums))
        required = thresholds.edges(self.weights, np.maximum(others.weights, 1.0))
        margins: Floats = cosines - required
        return margins
