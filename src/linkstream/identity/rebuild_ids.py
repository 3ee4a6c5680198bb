"""Numbers and IDs after a rebuild, by majority, and the events that lead there.

A subcluster keeps its number in the new one that has most of its vectors. A cluster's home is the
group that holds most of its vectors; of the clusters at home in a group, one with a name goes
before one without, then the one with more vectors there, then the older. Its ID is that of the
group; the others stand for it. A group that is nobody's home gets a new ID.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from linkstream.engine import events
from linkstream.engine.state import Integers, State
from linkstream.identity.ledger import Rows
from linkstream.identity.rebuilding import Partition, counted


@dataclass(frozen=True, slots=True)
class Numbering:
    """The IDs of groups and the numbers of subclusters.

    Attributes:
        ids: the ID of each group.
        fresh: of each group with a new ID, the cluster of most of its vectors.
        gone: IDs that no group has, each with the one that it stands for.
        numbers: the number of each new subcluster.
    """

    ids: dict[int, int]
    fresh: dict[int, int]
    gone: dict[int, int]
    numbers: Integers

    @classmethod
    def of(cls, partition: Partition, state: State, named: Collection[int]) -> Numbering:
        """Return the numbering of a partition; `named` are the clusters with a name."""
        votes = partition.votes(partition.vector_groups(), partition.clusters)
        ids = _kept_ids(partition, votes, named)
        fresh = _sources(votes, ids)
        oldest = _oldest(partition)
        order = sorted(fresh, key=oldest.__getitem__)
        ids |= {group: state.free_cluster + place for place, group in enumerate(order)}
        held = set(ids.values())
        gone = {c: ids[home] for c, home in partition.homes.items() if c not in held}
        return cls(ids, {group: fresh[group] for group in order}, gone, _numbers(partition, state))

    def rows(self, partition: Partition, state: State, thresholds: int = -1) -> Rows:
        """Return the events that lead from a state to the partition.

        `thresholds` is the number of the text on thresholds that change; −1: they do not.
        """
        clusters = np.array([self.ids[group] for group in partition.groups.tolist()], np.int64)
        moves, vanished = [], []
        if partition.counts is None:  # else all subclusters stay as they are
            moves = self._transfers(partition, state, clusters)
            vanished = self._vanished(partition, state)
        parted = [(events.PARTED, c, self.ids[group]) for group, c in self.fresh.items()]
        replaced = [(events.REPLACED, kept, gone) for gone, kept in sorted(self.gone.items())]
        ties = sorted(tuple(sorted(self.numbers[list(edge)].tolist())) for edge in partition.edges)
        counts = len(moves), len(self.numbers), len(self.ids)
        told: list[tuple[int, ...]] = [(events.REBUILT, thresholds, *counts), *parted]
        told += [*moves, *vanished, *self._relabelled(state, clusters), *replaced]
        told += [(events.BOUND, *tie) for tie in ties]
        newest = max(state.n_vectors - 1, 0)
        rows = [events.row(code, newest, *numbers) for code, *numbers in told]
        return np.array(rows, dtype=np.int64).reshape(-1, events.WIDTH)

    def _transfers(
        self, partition: Partition, state: State, clusters: Integers
    ) -> list[tuple[int, ...]]:
        """Return an event for each vector that another subcluster holds from now on."""
        vectors = partition.content.numbers
        origins, targets = state.vectors[vectors], self.numbers[partition.owners]
        moved = np.flatnonzero(origins != targets)
        moved = moved[np.lexsort((vectors[moved], targets[moved]))]
        columns = (vectors, origins, targets, clusters[partition.owners])
        rows = zip(*(each[moved].tolist() for each in columns), strict=True)
        return [(events.TRANSFERRED, *row) for row in rows]

    def _vanished(self, partition: Partition, state: State) -> list[tuple[int, ...]]:
        """Return an event for each subcluster that is empty; its heir has most of its vectors."""
        vectors = partition.content.numbers
        best: dict[int, tuple[int, int]] = {}
        for node, heir, n in counted(state.vectors[vectors], self.numbers[partition.owners]):
            best[node] = max(best.get(node, (0, 0)), (n, -heir))
        gone = np.flatnonzero(~np.isin(state.numbers, self.numbers))
        nodes = zip(state.numbers[gone].tolist(), state.clusters[gone].tolist(), strict=True)
        return [(events.VANISHED, node, -best[node][1], cluster) for node, cluster in nodes]

    def _relabelled(self, state: State, clusters: Integers) -> list[tuple[int, ...]]:
        """Return an event for each subcluster that another cluster holds from now on."""
        after = dict(zip(self.numbers.tolist(), clusters.tolist(), strict=True))
        before = zip(state.numbers.tolist(), state.clusters.tolist(), strict=True)
        return [
            (events.TRANSFERRED, -1, -1, node, after[node])
            for node, cluster in before
            if after.get(node, cluster) != cluster
        ]


def _kept_ids(
    partition: Partition, votes: list[tuple[int, int, int]], named: Collection[int]
) -> dict[int, int]:
    """Return the ID of each group that is the home of a cluster."""
    best: dict[int, tuple[bool, int, int]] = {}
    for group, cluster, n in votes:
        if partition.homes[cluster] == group:
            claim = cluster in named, n, -cluster
            best[group] = max(best.get(group, claim), claim)
    return {group: -claim[2] for group, claim in best.items()}


def _sources(votes: list[tuple[int, int, int]], ids: dict[int, int]) -> dict[int, int]:
    """Return the cluster of most of the vectors of each group without an ID."""
    best: dict[int, tuple[int, int]] = {}
    for group, cluster, n in votes:
        if group not in ids:
            best[group] = max(best.get(group, (0, 0)), (n, -cluster))
    return {group: -claim[1] for group, claim in best.items()}


def _oldest(partition: Partition) -> dict[int, int]:
    """Return the oldest vector of each group."""
    groups, firsts = np.unique(partition.vector_groups(), return_index=True)
    return dict(zip(groups.tolist(), firsts.tolist(), strict=True))


def _numbers(partition: Partition, state: State) -> Integers:
    """Return the number of each new subcluster; new numbers follow in order of it."""
    if partition.counts is not None:
        return partition.nodes
    numbers, taken = partition.nodes.copy(), set(partition.nodes.tolist())
    holders = state.vectors[partition.content.numbers]
    votes = counted(partition.owners, holders)
    for part, node, _ in sorted(votes, key=lambda vote: (-vote[2], vote[1], vote[0])):
        if numbers[part] < 0 and node not in taken:
            numbers[part] = node
            taken.add(node)
    fresh = np.flatnonzero(numbers < 0)
    numbers[fresh] = state.free_subcluster + np.arange(len(fresh))
    return numbers
