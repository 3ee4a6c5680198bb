"""Views of a clusterer: labels, clusters, events and histories. Nothing here changes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from linkstream.clusterer.change import UNUSABLE
from linkstream.clusterer.checks import check_ids, check_name, whole_number
from linkstream.clusterer.core import Core
from linkstream.engine.event_values import from_rows
from linkstream.engine.events import UNDONE, Decided, Event
from linkstream.engine.state import State
from linkstream.errors import ArgumentError, NotTrackedError
from linkstream.identity import timeline
from linkstream.identity.changes import Changes, changes_between
from linkstream.identity.event_index import EventIndex, from_numbered
from linkstream.identity.following import Follower
from linkstream.identity.ledger import GONE, Ledger, Rows
from linkstream.identity.timeline import History

_ALL = 2**62  # above every number of a vector


@dataclass(frozen=True, slots=True)
class Cluster:
    """A view of one cluster.

    Attributes:
        id: the cluster's ID.
        size: how many vectors it holds.
        subclusters: the numbers of its subclusters.
        name: its name; None if it has none.
        first_seen: sequence number of its first vector.
        last_seen: sequence number of its newest vector.
        pending: whether it has fewer vectors than `min_size`, and no name.
        ignored: whether it was marked by `ignore`.
    """

    id: int
    size: int
    subclusters: tuple[int, ...]
    name: str | None
    first_seen: int
    last_seen: int
    pending: bool = False
    ignored: bool = False


def predict(core: Core, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the cluster that each vector would get; −1 for a new one."""
    fixed = core.quantised(core.check_rows(X))
    if core.engine is None:
        return np.full(len(fixed), -1, dtype=np.int64)
    return core.engine.ask(fixed).cluster


def labels(core: Core) -> npt.NDArray[np.int64]:
    """Return the current cluster of every vector, in order of arrival; −1 if it was removed."""
    core.check_usable()
    if not core.track_vectors:
        raise NotTrackedError(
            "labels() of a clusterer that does not track vectors",
            expected="track_vectors=True",
            remedy="Keep the IDs that add_many() returns, or track vectors.",
        )
    return core.engine.labels() if core.engine else np.empty(0, dtype=np.int64)


def members(
    core: Core, cluster_id: int, limit: int | None = None, before: int | None = None
) -> npt.NDArray[np.int64]:
    """Return the vectors of a cluster, newest first."""
    limit = _ALL if limit is None else whole_number("limit", limit, "how many vectors to return")
    if before is not None:
        before = whole_number("before", before, "which vectors are too new to return", least=0)
    live = core.live(cluster_id)
    core.check_tracked("members()")
    return core.running().members(live, limit, _ALL if before is None else before)


def resolve_many(core: Core, ids: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the live cluster that each ID stands for; −1 if it is gone, and for −1."""
    wanted, places = np.unique(check_ids(ids), return_inverse=True)
    for outermost in wanted[wanted != GONE][[0, -1]] if np.any(wanted != GONE) else ():
        core.check_id(outermost)
    ledger = core.up_to_date_ledger()
    found = [ledger.resolve(number) for number in wanted.tolist()]
    live = [each if each != GONE and core.running().has_cluster(each) else GONE for each in found]
    return np.array(live, dtype=np.int64)[places]


def cluster(core: Core, cluster_id: int) -> Cluster:
    """Return one cluster."""
    part = cluster_state(core, cluster_id)
    rows = np.arange(len(part.numbers))
    return _view(core, core.up_to_date_ledger(), part, rows, int(part.counts.sum()))


def cluster_state(core: Core, cluster_id: int) -> State:
    """Return the subclusters of one cluster as plain arrays."""
    return core.running().parts(core.live(cluster_id))


def clusters(core: Core) -> list[Cluster]:
    """Return all clusters, by ID."""
    state, ledger = core.state(), core.up_to_date_ledger()
    order = np.argsort(state.clusters, kind="stable")
    starts = np.unique(state.clusters[order], return_index=True)[1]
    if not len(starts):
        return []
    sizes = np.add.reduceat(state.counts[order], starts).tolist()
    parts = zip(np.split(order, starts[1:]), sizes, strict=True)
    return [_view(core, ledger, state, rows, size) for rows, size in parts]


def _view(
    core: Core, ledger: Ledger, state: State, rows: npt.NDArray[np.intp], size: int
) -> Cluster:
    """Return the cluster whose subclusters are some rows of a state."""
    number = int(state.clusters[rows[0]])
    return Cluster(
        id=number,
        size=size,
        subclusters=tuple(state.numbers[rows].tolist()),
        name=ledger.names.get(number),
        first_seen=int(state.first_seen[rows].min()),
        last_seen=int(state.last_seen[rows].max()),
        pending=size < core.min_size and number not in ledger.names,
        ignored=number in ledger.ignored,
    )


def named(core: Core, name: str) -> int:
    """Return the cluster that has a name; raise ArgumentError if none has."""
    check_name(name)
    for cluster, text in core.up_to_date_ledger().names.items():
        if text == name:
            return cluster
    raise ArgumentError(
        f"the name {name!r}",
        expected="one that was given by name() or enrol()",
        remedy="clusters() shows the names there are.",
    )


def events(core: Core, since: int = 0) -> list[Event]:
    """Return typed events from sequence number `since` on, oldest first."""
    since = whole_number("since", since, "the first event to tell of", least=0)
    if core.engine is None:
        return []
    texts = core.up_to_date_ledger().texts
    first, rows = core.engine.event_rows(since)
    return with_probabilities(core, from_rows(first, rows, texts), _standing(core, rows))


def with_probabilities(
    core: Core, found: list[Event], stands: Callable[[Decided], bool]
) -> list[Event]:
    """Return events in which decisions have the probability that they are right, if it is known.

    Args:
        core: the core.
        found: events.
        stands: returns whether an event tells of the present vector of its number.
    """
    if core.confidence.holding() is None:
        return found
    decided = [(i, e) for i, e in enumerate(found) if isinstance(e, Decided) and stands(e)]
    numbers = np.array([event.vector for _, event in decided], dtype=np.int64)
    told = core.confidence.told_at(numbers)[1].tolist()
    for (place, event), probability in zip(decided, told, strict=True):
        if probability == probability:
            found[place] = replace(event, probability=probability)
    return found


def _standing(core: Core, rows: Rows) -> Callable[[Decided], bool]:
    """Return a function that says whether one of these events stands: numbers are used again.

    Args:
        core: the core.
        rows: the newest rows of the log.
    """
    if not (rows[:, 0] == UNDONE).any():
        return lambda event: True
    oldest = core.oldest_event()
    log = timeline.Timeline.of(core.running().event_rows(oldest)[1], oldest)
    sequences = set(log.sequences.tolist())
    return lambda event: event.sequence in sequences


def changes(core: Core, since: int = 0, until: int | None = None) -> Changes:
    """Return what changed between two moments."""
    core.check_tracked("changes()")
    since, until = check_moments(since, until, core.up_to_date_ledger().n_events)
    if core.engine is None:
        return changes_between(Follower(_no_log), since, until)
    with core.lock:
        follower = core.follower
        if follower is None or follower.n_events < core.oldest_event():
            follower = _following(core)
        if since < follower.first_event:
            core.engine.event_rows(since)  # raises: these events are no longer kept
        core.follower = None  # until all has been read
        follower.read(core.engine.event_rows(follower.n_events)[1])
        core.follower = follower
        return changes_between(follower, since, until)


def _following(core: Core) -> Follower:
    """Return a follower that has read nothing yet."""

    def fetch(first: int, end: int) -> Rows:
        return core.running().event_rows(first)[1][: end - first]

    first = core.oldest_event()
    if not first:
        return Follower(fetch)
    return Follower(fetch, core.base.state, first).hold(core.base.ledger.held)


def _no_log(first: int, end: int) -> Rows:
    raise AssertionError(f"events {first} to {end} of a clusterer without events")


def check_moments(since: int, until: int | None, n_events: int) -> tuple[int, int]:
    """Return two numbers of events in order; raise ArgumentError if they are no moments."""
    since = whole_number("since", since, "the first event to tell of", least=0)
    end = n_events
    if until is not None:
        end = whole_number("until", until, "the event before which to end", least=0)
    if not since <= end <= n_events:
        raise ArgumentError(
            f"changes from event {since} to {end}",
            expected=f"two numbers in order, up to {n_events}",
            remedy="n_events is the number of the next event; keep it to ask for changes since.",
        )
    return since, end


def history(core: Core, cluster_id: int) -> History:
    """Return birth, splits and joins of a cluster's ID."""
    core.check_id(cluster_id)
    cluster = int(cluster_id)
    texts = core.up_to_date_ledger().texts
    log = from_numbered(*event_index(core).of_cluster(cluster), texts)
    return timeline.history_of(cluster, timeline.standing(log))


def event_index(core: Core) -> EventIndex:
    """Return the index of the events that are kept, after it has read the new ones."""
    engine, oldest = core.running(), core.oldest_event()
    stored = core.external_vectors and core.track_vectors  # a store keeps older events, too
    with core.lock:
        index, core.event_index = core.event_index, None  # until all has been read
        if (
            index is None
            or not index.first_event <= oldest <= index.n_events
            or (index.first_event < oldest and not stored)
        ):
            index = EventIndex(oldest)
        index.read(engine.event_rows(index.n_events)[1])
        core.event_index = index
        return index


def summary(core: Core) -> str:
    """Return one line that describes the clusterer, for `repr`."""
    t = core.origin.thresholds
    engine = core.engine
    if engine is UNUSABLE:
        return f"Links({t.cluster_similarity}, …: unusable, a change failed)"
    nodes, found = (engine.n_subclusters, engine.n_clusters) if engine else (0, 0)
    return (
        f"Links({t.cluster_similarity}, {t.subcluster_similarity}, {t.pair_similarity_max}, "
        f"engine={core.factory.name!r}: {core.n_vectors} vectors, {nodes} subclusters, "
        f"{found} clusters)"
    )
