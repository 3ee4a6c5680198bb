"""Tables of a clusterer: one row for each vector, and one for each cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import absent, views
from linkstream.clusterer.checks import whole_number
from linkstream.clusterer.core import Core
from linkstream.errors import ArgumentError
from linkstream.tables import Column, RowTable, check_kind, make_frame, names_of
from linkstream.tables.columns import objects
from linkstream.tables.rows import BLOCK

OWN = ("vector", "cluster", "name")  # columns of the table of vectors
TOLD = ("cluster_margin", "probability")  # and of its decisions, if margins are computed
HELD = "held"  # and whether it waits for a decision, there as well
ORDERS = ("id", "size", "recent")

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


# Vectors


@dataclass(frozen=True, eq=False, slots=True)
class Selection:
    """Vectors that are there, rising, with the cluster of each, and the names of clusters.

    Vectors that are held are there, in cluster −1. `told` has further columns: how sure the
    decision on each vector was, and whether it is held.
    """

    vectors: Integers
    clusters: Integers
    names: Mapping[int, str]
    told: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    @property
    def own(self) -> tuple[str, ...]:
        """The names of the columns of `blocks`."""
        return (*OWN, *self.told)

    def blocks(self, size: int = BLOCK) -> Iterator[dict[str, Any]]:
        """Yield the columns, `size` rows at a time."""
        for start in range(0, len(self.vectors), size):
            clusters = self.clusters[start : start + size]
            yield {
                "vector": self.vectors[start : start + size],
                "cluster": clusters,
                "name": names_of(self.names, clusters),
                **{name: column[start : start + size] for name, column in self.told.items()},
            }


def select(
    core: Core,
    cluster: int | None = None,
    since: int | None = None,
    columns: Sequence[str] | None = None,
) -> Selection:
    """Return the vectors of one cluster, or of all, from a number on.

    With a cluster, only that cluster is read. The columns TOLD and HELD are there if they are asked
    for; if no columns are named, where margins are computed.
    """
    found = _selected(core, cluster, since)
    wanted = core.confidence.margins if columns is None else bool({*TOLD, HELD} & set(columns))
    return replace(found, told=told_of(core, found)) if wanted else found


def told_of(core: Core, found: Selection) -> dict[str, npt.NDArray[Any]]:
    """Return how sure the decisions on vectors were, and whether they are held, by column."""
    told = core.confidence.told_at(found.vectors)
    return {**dict(zip(TOLD, told, strict=True)), HELD: found.clusters < 0}


def _selected(core: Core, cluster: int | None, since: int | None) -> Selection:
    first = 0 if since is None else whole_number("since", since, "the first vector", least=0)
    names = dict(core.up_to_date_ledger().names)
    if cluster is None:
        labels = views.labels(core)
        vectors = np.flatnonzero(absent.all_there(core)[first:]).astype(np.int64) + first
        return Selection(vectors, labels[vectors], names)
    members = np.sort(views.members(core, cluster))
    vectors = members[members >= first]
    return Selection(vectors, np.full(len(vectors), core.live(cluster), dtype=np.int64), names)


def to_frame(
    core: Core,
    kind: str,
    cluster: int | None,
    since: int | None,
    columns: Sequence[str] | None,
) -> Any:
    """Return what `Links.to_frame` returns."""
    check_kind(kind)
    chosen = select(core, cluster, since, columns)
    table = RowTable(chosen.own, columns)
    for block in chosen.blocks():
        table.add(block)
    return table.frame(kind)


# Clusters


def clusters_frame(core: Core, kind: str, *, order: str, limit: int | None, exemplars: int) -> Any:
    """Return what `Links.clusters_frame` returns."""
    check_kind(kind)
    found = cluster_columns(core, order=order, limit=limit, exemplars=exemplars)
    return make_frame(found, kind)


def cluster_columns(
    core: Core, *, order: str = "id", limit: int | None = None, exemplars: int = 3
) -> dict[str, Column]:
    """Return the table of clusters: ID, name, size, first and last vector, flags, exemplars.

    Reads the labels of all vectors once; the sums of clusters are not looked at.
    """
    check_order(order)
    most = None if limit is None else whole_number("limit", limit, "how many clusters to return")
    shown = whole_number("exemplars", exemplars, "how many vectors to show of each", least=0)
    members = Members.of(core) if core.track_vectors else Members.untracked(core)
    rows = members.order(order)[:most]
    ids, ledger = members.ids[rows], core.up_to_date_ledger()
    names = names_of(ledger.names, ids)
    sizes, named = members.sizes[rows], names != np.array(None)
    return {
        "cluster": Column(ids),
        "name": Column(names),
        "size": Column(sizes),
        "first_seen": Column(members.first[rows]),
        "last_seen": Column(members.last[rows]),
        "pending": Column((sizes < core.min_size) & ~named),
        "ignored": Column(np.isin(ids, list(ledger.ignored))),
        "exemplars": Column(members.newest(rows, shown), lists=True),
    }


def check_order(order: str) -> None:
    """Raise ArgumentError for an unknown order of clusters."""
    if order not in ORDERS:
        raise ArgumentError(
            f"order {order!r:.80}",
            expected=" or ".join(map(repr, ORDERS)),
            remedy="'size' has the largest first, 'recent' the one that was seen last.",
        )


@dataclass(frozen=True, eq=False, slots=True)
class Members:
    """The clusters that are there, by ID, with sizes, first and last vectors.

    `vectors` has the vectors of all clusters, cluster by cluster and rising; those of a cluster
    end at `ends`. It is empty if vectors are not tracked.
    """

    ids: Integers
    sizes: Integers
    first: Integers
    last: Integers
    vectors: Integers
    ends: Integers

    @classmethod
    def of(cls, core: Core) -> Members:
        """Return the clusters by the labels of all vectors."""
        labels = views.labels(core)
        order = np.argsort(labels, kind="stable").astype(np.int64)
        vectors = order[np.count_nonzero(labels < 0) :]
        ids, starts, sizes = np.unique(labels[vectors], return_index=True, return_counts=True)
        ends = starts + sizes
        return cls(ids, sizes, vectors[starts], vectors[ends - 1], vectors, ends)

    @classmethod
    def untracked(cls, core: Core) -> Members:
        """Return the clusters of a clusterer that does not track vectors."""
        found = views.clusters(core)
        names = ("id", "size", "first_seen", "last_seen")
        columns = [np.array([getattr(each, n) for each in found], dtype=np.int64) for n in names]
        ids, sizes, first, last = columns
        nothing = np.empty(0, dtype=np.int64)
        return cls(ids, sizes, first, last, nothing, np.zeros(len(found), dtype=np.int64))

    def order(self, order: str) -> Integers:
        """Return the rows of the clusters in an order; ties go to the older."""
        keys = {"id": self.ids, "size": -self.sizes, "recent": -self.last}
        return np.argsort(keys[order], kind="stable").astype(np.int64)

    def newest(self, rows: Integers, limit: int) -> npt.NDArray[Any]:
        """Return the newest vectors of some clusters, the newest of each first."""
        starts = np.maximum(self.ends - np.minimum(self.sizes, limit), 0)
        spans = zip(starts[rows].tolist(), self.ends[rows].tolist(), strict=True)
        return objects([self.vectors[start:end][::-1] for start, end in spans])
