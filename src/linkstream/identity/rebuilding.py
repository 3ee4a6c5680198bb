"""Rebuilding: cluster all vectors again, as a function of the set of them alone.

1. Margin linkage (engine/linkage.py) groups the rows of rebuild_rows.py: vectors, not subclusters.
   More rows than `LIMIT` are first gathered into subclusters by a replay in canonical order.
2. Within each group, linkage by similarity alone, down to T_s, makes the subclusters.
3. An edge ties the largest subclusters of two groups where they were united.

IDs follow by majority (rebuild_ids.py) and decide nothing here, with one exception: clusters of
different names are kept apart if one group would hold most of the vectors of both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

from linkstream.engine.forest import CLAIM, find_root
from linkstream.engine.linkage import Progress, Restrictions, Unions, Unite
from linkstream.engine.state import Integers, State
from linkstream.identity.content import Content
from linkstream.identity.ledger import Ledger
from linkstream.identity.rebuild_rows import LIMIT, Labels, Replay, Units
from linkstream.paper.thresholds import Thresholds

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Tools:
    """What carries a rebuild out.

    Attributes:
        unite: margin linkage of sums.
        replay: adds vectors in order to an empty engine.
        limit: the greatest number of rows that are compared with one another.
        progress: called now and then with the share of the first linkage that is done.
    """

    unite: Unite
    replay: Replay
    limit: int = LIMIT
    progress: Progress | None = None


class Items(Protocol):
    """What is grouped: vectors, or subclusters in place of them."""

    @property
    def numbers(self) -> Integers:
        """The numbers of the items."""

    def __len__(self) -> int: ...

    def sums(self, owners: Integers, n: int) -> Integers:
        """Return n sums: row i is the sum of the items whose owner is i; owner −1 is none."""

    def weights(self) -> npt.NDArray[np.float64]:
        """Return the weight of each item as the k of the paper's formulas."""


@dataclass(frozen=True, slots=True)
class Partition:
    """Groups of vectors and their subclusters, in canonical order.

    Attributes:
        content: the vectors.
        clusters: the present cluster of each vector.
        owners: the new subcluster of each vector.
        groups: the group of each new subcluster.
        nodes: of each new subcluster, the present one that it is; −1: that goes by majority.
        edges: the pairs of new subclusters that are tied.
        homes: the group of each present cluster: that of most of its vectors.
        counts: if subclusters stand in place of vectors, the number of vectors of each; None: each
            counts one.
    """

    content: Items
    clusters: Integers
    owners: Integers
    groups: Integers
    nodes: Integers
    edges: list[Pair]
    homes: dict[int, int]
    counts: Integers | None = None

    def vector_groups(self) -> Integers:
        """Return the group of each vector."""
        return self.groups[self.owners]

    def votes(self, ones: Integers, others: Integers) -> list[tuple[int, int, int]]:
        """Return each pair that two columns of the vectors hold, in order, and how often."""
        return counted(ones, others, self.counts)

    @property
    def n_vectors(self) -> int:
        """Number of vectors."""
        return len(self.content) if self.counts is None else int(self.counts.sum())


def clustered(
    content: Content, state: State, ledger: Ledger, thresholds: Thresholds, tools: Tools
) -> Partition:
    """Return the groups and subclusters of a content."""
    alone = Units.of(content, state, ledger)
    labels = Labels({name: i for i, name in enumerate(sorted(ledger.names.values()))})
    while True:
        units = alone.gathered(tools.replay, labels, tools.limit)
        unions = _united(units, labels, thresholds, tools)
        groups = unions.groups(units.n_rows)
        homes = _homes(units, groups, state)
        colliding = colliding_names(homes, ledger.names)
        if not colliding:
            break
        labels = replace(labels, clusters=labels.clusters | colliding)
    return _with_subclusters(units, groups, homes, unions, _Cut(thresholds, tools.unite))


def _united(units: Units, labels: Labels, thresholds: Thresholds, tools: Tools) -> Unions:
    rows, n = units.vector_rows(), units.n_rows
    masses = np.bincount(rows, units.content.weights(), minlength=n).astype(np.float64)
    sums = units.content.sums(rows, n)
    return tools.unite(sums, masses, thresholds, units.restrictions(labels), tools.progress)


def _homes(units: Units, groups: Integers, state: State) -> dict[int, int]:
    """Return the group that holds most of the vectors of each cluster (tie: the first).

    Subclusters that claim the ID of their cluster count before vectors.
    """
    claims: dict[Pair, int] = {}
    kept = np.flatnonzero(units.nodes >= 0)
    places = np.searchsorted(state.numbers, units.nodes[kept])
    claiming = np.flatnonzero(state.flags[places] & CLAIM)
    held = groups[units.rows[kept[claiming]]].tolist()
    for pair in zip(state.clusters[places[claiming]].tolist(), held, strict=True):
        claims[pair] = claims.get(pair, 0) + 1
    best: dict[int, tuple[int, int, int]] = {}
    for cluster, group, n in counted(units.clusters, groups[units.vector_rows()]):
        claim = claims.get((cluster, group), 0), n, -group
        best[cluster] = max(best.get(cluster, claim), claim)
    return {cluster: -claim[2] for cluster, claim in best.items()}


def counted(
    ones: Integers, others: Integers, counts: Integers | None = None
) -> list[tuple[int, int, int]]:
    """Return each pair that two columns hold, in order, and how often; rows may count several."""
    order = np.lexsort((others, ones))
    a, b = ones[order], others[order]
    changes = (np.diff(a, prepend=-1) != 0) | (np.diff(b, prepend=-1) != 0)
    starts = np.flatnonzero(changes)
    each = np.ones(len(a), dtype=np.int64) if counts is None else counts[order]
    found = np.add.reduceat(each, starts) if len(starts) else each
    return list(zip(a[starts].tolist(), b[starts].tolist(), found.tolist(), strict=True))


def colliding_names(homes: Mapping[int, int], names: Mapping[int, str]) -> dict[int, str]:
    """Return the named clusters that share their home with one of another name."""
    held: dict[int, list[int]] = {}
    for cluster in names:
        held.setdefault(homes[cluster], []).append(cluster)
    return {c: names[c] for some in held.values() if len(some) > 1 for c in some}


@dataclass(frozen=True, slots=True)
class _Cut:
    """Linkage of single vectors by similarity alone, down to T_s."""

    thresholds: Thresholds
    unite: Unite

    def __call__(self, content: Content) -> Integers:
        """Return the first vector of the subcluster of each vector."""
        limit = self.thresholds.subcluster_similarity
        root = min(math.sqrt(limit), math.nextafter(1.0, 0.0))
        test = Thresholds(root, limit, limit)  # s~ is T_s for any counts
        sums, masses = content.shares(np.arange(len(content))), content.weights()
        return self.unite(sums, masses, test, Restrictions(), None).groups(len(content))


def _with_subclusters(
    units: Units, groups: Integers, homes: dict[int, int], unions: Unions, cut: _Cut
) -> Partition:
    """Return the partition of groups, with subclusters and edges."""
    unit_groups = groups[units.rows]
    parts = _parts(units, unit_groups, cut)
    n = int(parts.max(initial=-1)) + 1
    nodes, part_groups = np.full(n, -1, dtype=np.int64), np.empty(n, dtype=np.int64)
    part_groups[parts] = unit_groups
    kept = units.nodes >= 0
    nodes[parts[kept]] = units.nodes[kept]
    owners = parts[units.owners]
    sizes = np.bincount(owners, minlength=n).tolist()
    edges = edges_of(parts.tolist(), units.rows.tolist(), unions, sizes)
    return Partition(units.content, units.clusters, owners, part_groups, nodes, edges, homes)


def _parts(units: Units, groups: Integers, cut: _Cut) -> Integers:
    """Return the subcluster of each unit; they are numbered by their first unit."""
    leader = np.arange(len(groups))
    loose = np.flatnonzero(~units.whole)
    order = loose[np.argsort(groups[loose], kind="stable")]
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1)).tolist()
    places = np.empty(len(groups), dtype=np.int64)
    places[units.owners] = np.arange(len(units.owners))  # loose units have one vector
    for start, end in pairwise([*starts, len(order)]):
        if end - start > 1:
            mine = order[start:end]
            leader[mine] = mine[cut(units.content.part(places[mine]))]
    return np.unique(leader, return_inverse=True)[1]


def edges_of(parts: list[int], rows: list[int], unions: Unions, sizes: list[int]) -> list[Pair]:
    """Return edges that make the subclusters of each group one tree."""
    tree = list(range(len(sizes)))
    edges: list[Pair] = []
    heads: dict[int, int] = {}

    def tie(a: int, b: int) -> int:
        one, other = sorted((find_root(tree, a), find_root(tree, b)))
        if one != other:
            tree[other] = one
            edges.append((a, b))
        return max(a, b, key=lambda part: (sizes[part], -part))

    for part, row in zip(parts, rows, strict=True):
        heads[row] = tie(heads.get(row, part), part)
    for kept, gone in zip(unions.kept.tolist(), unions.gone.tolist(), strict=True):
        heads[kept] = tie(heads[kept], heads[gone])
    return edges
