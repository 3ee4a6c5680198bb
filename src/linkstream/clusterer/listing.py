"""Lists of clusters: the table of all clusters as arrays, a page of it, and vectors to show.

The table is kept. After a change only the clusters that new events name are read again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from linkstream.clusterer.checks import whole_number
from linkstream.clusterer.core import Core
from linkstream.clusterer.views import Cluster
from linkstream.engine import events
from linkstream.engine.logrules import CLUSTER, KINDS, SUBCLUSTER
from linkstream.engine.state import Integers, State
from linkstream.errors import ArgumentError, LinkstreamError
from linkstream.identity import review

ORDERS = ("size", "id", "recent", "name")
FILTERS = ("unnamed", "named", "single", "ignored")
LOOKED = 64  # vectors of a cluster from which those to show are chosen
_ALL = 2**62  # above every number of a vector
_MOST = 8  # vectors to show that are kept of each cluster
_KEPT = 4_096  # clusters whose vectors to show are kept
_ROWS = 4_096  # events after which the table is made again
# Events after which the table is made again: they change clusters that they do not name.
_WHOLE = (events.UNDONE, events.REDONE, events.REBUILT, events.ABSORBED, events.FORGOTTEN)

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, slots=True)
class ClusterTable:
    """All clusters, by ID, as columns."""

    ids: Integers
    sizes: Integers
    subclusters: Integers
    first_seen: Integers
    last_seen: Integers

    @classmethod
    def of(cls, state: State) -> ClusterTable:
        """Return the table of the clusters of a state; its sums are not read."""
        if not len(state.clusters):
            return cls(*(np.empty(0, dtype=np.int64) for _ in range(5)))
        order = np.argsort(state.clusters, kind="stable")
        ids, starts = np.unique(state.clusters[order], return_index=True)
        return cls(
            ids,
            np.add.reduceat(state.counts[order], starts),
            np.diff(np.append(starts, len(order))),
            np.minimum.reduceat(state.first_seen[order], starts),
            np.maximum.reduceat(state.last_seen[order], starts),
        )

    @property
    def columns(self) -> tuple[Integers, ...]:
        """The columns in order."""
        return self.ids, self.sizes, self.subclusters, self.first_seen, self.last_seen

    def replaced(self, touched: Integers, now: ClusterTable) -> ClusterTable:
        """Return the table in which some clusters, rising, are as another table has them."""
        stays = ~np.isin(self.ids, touched)
        places = np.searchsorted(self.ids[stays], now.ids)
        pairs = zip(self.columns, now.columns, strict=True)
        return ClusterTable(*(np.insert(old[stays], places, new) for old, new in pairs))


@dataclass(slots=True)
class Listing:
    """What lists have read of a clusterer; kept in its core.

    Attributes:
        table: the clusters after the first `n_events` events.
        shown: vectors to show of clusters, with what they were chosen from.
    """

    table: ClusterTable
    n_events: int
    shown: dict[int, tuple[bytes, tuple[int, ...]]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, slots=True)
class Clusters:
    """All clusters at one moment, with what people said about them; any thread may read it."""

    table: ClusterTable
    names: Mapping[int, str]
    ignored: frozenset[int]
    min_size: int

    def chosen(self, only: str | None, text: str = "", found: Collection[int] = ()) -> Flags:
        """Return which rows pass a filter and a search.

        Args:
            only: one of FILTERS; None for all.
            text: a part of the name, or an ID; empty for all.
            found: clusters in which the text was found elsewhere.
        """
        ids, keep = self.table.ids, np.ones(len(self.table.ids), dtype=np.bool_)
        if only in ("named", "unnamed"):
            keep = np.isin(ids, list(self.names)) == (only == "named")
        elif only == "single":
            keep = self.table.sizes == 1
        elif only == "ignored":
            keep = np.isin(ids, list(self.ignored))
        if text:
            part = text.casefold()
            named = [cluster for cluster, name in self.names.items() if part in name.casefold()]
            own = [int(text)] if text.isascii() and text.isdigit() and len(text) < 18 else []
            keep = keep & np.isin(ids, [*named, *own, *found])
        return keep

    def page(
        self, rows: Flags, order: str, first: int, limit: int
    ) -> tuple[int, list[tuple[Cluster, int]]]:
        """Return how many clusters are chosen, and a page of them with their subclusters' number.

        The numbers of subclusters are not listed: `Cluster.subclusters` is empty.
        """
        chosen = np.flatnonzero(rows)
        if order == "name":
            names = [(self.names.get(each), each) for each in self.table.ids[chosen].tolist()]
            keys = [(name is None, (name or "").casefold(), each) for name, each in names]
            places = sorted(range(len(keys)), key=keys.__getitem__)[first : first + limit]
        else:
            table = self.table
            values = {"size": -table.sizes, "id": table.ids, "recent": -table.last_seen}[order]
            places = np.argsort(values[chosen], kind="stable")[first : first + limit].tolist()
        return len(chosen), [self._row(int(chosen[place])) for place in places]

    def _row(self, row: int) -> tuple[Cluster, int]:
        number, size, subclusters, first, last = (int(c[row]) for c in self.table.columns)
        name = self.names.get(number)
        pending = size < self.min_size and name is None
        ignored = number in self.ignored
        return Cluster(number, size, (), name, first, last, pending, ignored), subclusters


def check_wanted(order: str, only: str | None) -> None:
    """Raise ArgumentError for an unknown order or filter."""
    if order not in ORDERS or only not in (None, *FILTERS):
        raise ArgumentError(
            f"order {order!r:.80}, filter {only!r:.80}",
            expected=f"an order of {ORDERS}, and a filter of {FILTERS} or none",
            remedy="'size' has the largest first, 'recent' the one that was seen last.",
        )


def clusters_now(core: Core) -> Clusters:
    """Return all clusters at this moment; costs what has changed since the last call."""
    core.check_usable()
    ledger = core.up_to_date_ledger()
    table = ClusterTable.of(core.state()) if core.engine is None else _listing(core).table
    return Clusters(table, dict(ledger.names), frozenset(ledger.ignored), core.min_size)


def _listing(core: Core) -> Listing:
    """Return what lists have read, after it has read the new events."""
    engine, before = core.running(), core.listing
    n_events = engine.n_events
    with core.lock:
        core.listing = None  # until all has been read
        now = Listing(ClusterTable.of(engine.outline()), n_events) if before is None else before
        if now.n_events != n_events:
            table = _caught_up(core, now)
            now.table = ClusterTable.of(engine.outline()) if table is None else table
            now.n_events = n_events
        core.listing = now
    return now


def _caught_up(core: Core, before: Listing) -> ClusterTable | None:
    """Return the table with the clusters that new events name; None if it has to be made again."""
    engine = core.running()
    if not engine.oldest_event() <= before.n_events <= engine.n_events <= before.n_events + _ROWS:
        return None
    try:
        rows = engine.event_rows(before.n_events)[1]
    except LinkstreamError:  # these events are no longer kept
        return None
    if np.isin(rows[:, 0], _WHOLE).any():
        return None
    meanings, numbers = KINDS[rows[:, 0]], rows[:, 2:]
    nodes = np.unique(numbers[meanings == SUBCLUSTER]).tolist()
    named = np.unique(numbers[meanings == CLUSTER]).tolist()
    touched = sorted({*(engine.cluster_of(node) for node in nodes if node >= 0), *named} - {-1})
    now = ClusterTable.of(engine.parts(*[each for each in touched if engine.has_cluster(each)]))
    return before.table.replaced(np.array(touched, dtype=np.int64), now)


def exemplars(core: Core, cluster_id: int, limit: int) -> tuple[int, ...]:
    """Return vectors of a cluster to show, the most central first; reads this cluster only.

    They are chosen from at most LOOKED vectors, spread evenly over the cluster. Without kept
    vectors the oldest are returned; without tracking there are none.
    """
    limit = whole_number("limit", limit, "how many vectors to show")
    live, engine = core.live(cluster_id), core.running()
    if not core.track_vectors:
        return ()
    total = engine.parts(live).sums.sum(axis=0)
    listing, told = _listing(core), total.tobytes()
    known = listing.shown.pop(live, (b"", ()))
    if known[0] != told or len(known[1]) < limit:
        members = engine.members(live, _ALL, _ALL)[::-1].copy()
        if len(members) > LOOKED:
            members = members[np.arange(LOOKED) * len(members) // LOOKED]
        fetch = None if core.vectors is None else core.kept
        known = told, review.central(members, total, fetch, limit=max(limit, _MOST))
    listing.shown[live] = known
    if len(listing.shown) > _KEPT:
        del listing.shown[next(iter(listing.shown))]
    return known[1][:limit]
