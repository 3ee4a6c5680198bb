"""The engine's whole state as plain arrays: the only thing engines, files and workers exchange.

The arrays are in one canonical order, so equal states have equal bytes and equal digests:
subclusters by number, edges by their ends (the older end first), vectors by arrival.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.engine import events, logrules
from linkstream.engine.fixed_point import DIMENSION_MAX, VECTORS_MAX
from linkstream.engine.forest import CLAIM, FULL, LAW, LOCKED
from linkstream.engine.log import UNTRACKED_LIMIT
from linkstream.errors import SnapshotError, ThresholdError
from linkstream.paper.thresholds import Thresholds

Integers = npt.NDArray[np.int64]

# Numbers of 32 bits name subclusters in the compiled engine; one of them stands for none. A state
# with so few left is refused: no stream of VECTORS_MAX vectors comes near.
SUBCLUSTERS_MAX = 2**32 - 2
NUMBERS_LEFT = 2**24
EVENTS_MAX = 2**62 - 2**40  # the compiled engine can number those below 2**62

# Name → dimensions of each array; all are int64. The order is the order of the digest.
ARRAYS = {
    "numbers": 1,
    "clusters": 1,
    "counts": 1,
    "first_seen": 1,
    "last_seen": 1,
    "light": 1,
    "flags": 1,
    "sums": 2,
    "edges": 2,
    "firm": 1,
    "vectors": 1,
    "events": 2,
}

COUNTERS = (
    "dimension",
    "track_vectors",
    "cluster_evidence",
    "n_vectors",
    "n_events",
    "next_subcluster",
    "next_cluster",
    "free_subcluster",
    "free_cluster",
)
THRESHOLD_NAMES = tuple(field.name for field in fields(Thresholds))


def _empty(*shape: int) -> Integers:
    return np.empty(shape, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class State:
    """A Links graph and its counters.

    Attributes:
        numbers, clusters, counts, first_seen, last_seen, sums: one entry a subcluster: its
            number, its cluster's ID, how many vectors, the first's and the last's sequence, Σq.
        light: of each subcluster, how much less than their count its vectors weigh, in 256ths.
        flags: of each subcluster, forest.LOCKED and forest.CLAIM.
        cluster_evidence: whether vectors are judged by whole clusters, not by J alone.
        edges: pairs of subcluster numbers, the older first.
        firm: of each edge: 0 judged by equation 22; 1 tied by a settlement; 2 by a person, law.
        vectors: subcluster of each vector, in order of arrival, −1 for one that was removed; empty
            when not tracked.
        events: the event rows kept, the newest last; `n_events` counts all there ever were.
        next_subcluster, next_cluster: how many were ever born.
        free_subcluster, free_cluster: the next numbers to be given; higher where an undo left
            numbers that are not to be used again. History, not in the digest.
    """

    thresholds: Thresholds
    dimension: int
    track_vectors: bool = True
    cluster_evidence: bool = False
    n_vectors: int = 0
    n_events: int = 0
    next_subcluster: int = 0
    next_cluster: int = 0
    free_subcluster: int = 0
    free_cluster: int = 0
    numbers: Integers = field(default_factory=lambda: _empty(0))
    clusters: Integers = field(default_factory=lambda: _empty(0))
    counts: Integers = field(default_factory=lambda: _empty(0))
    first_seen: Integers = field(default_factory=lambda: _empty(0))
    last_seen: Integers = field(default_factory=lambda: _empty(0))
    light: Integers = field(default_factory=lambda: _empty(0))
    flags: Integers = field(default_factory=lambda: _empty(0))
    sums: Integers = field(default_factory=lambda: _empty(0, 0))
    edges: Integers = field(default_factory=lambda: _empty(0, 2))
    firm: Integers = field(default_factory=lambda: _empty(0))
    vectors: Integers = field(default_factory=lambda: _empty(0))
    events: Integers = field(default_factory=lambda: _empty(0, events.WIDTH))

    def scalars(self) -> dict[str, float | int]:
        """Thresholds and counters by name, in the order of the digest."""
        return {
            **asdict(self.thresholds),
            **{name: int(getattr(self, name)) for name in COUNTERS},
        }

    def arrays(self) -> dict[str, Integers]:
        """The arrays by name, in the order of the digest."""
        return {name: getattr(self, name) for name in ARRAYS}

    @classmethod
    def from_parts(cls, scalars: object, arrays: Mapping[str, npt.NDArray[Any]]) -> State:
        """A state from what `scalars` and `arrays` gave, checked (SnapshotError)."""
        if not isinstance(scalars, dict) or set(scalars) != {*THRESHOLD_NAMES, *COUNTERS}:
            raise _impossible("the header names each threshold and counter")
        for name, dimensions in ARRAYS.items():
            array = arrays.get(name)
            if array is None or array.ndim != dimensions or array.dtype != np.int64:
                raise _impossible(f"{name!r} is an array of integers of {dimensions} dimension(s)")
        values: dict[str, Any] = dict(scalars)
        try:
            thresholds = Thresholds(**{name: values.pop(name) for name in THRESHOLD_NAMES})
            _ = thresholds.lowest  # fails where T_c² is too small for a double to hold
        except (ThresholdError, ArithmeticError) as error:
            raise _impossible(f"thresholds are in range ({error})") from None
        if not all(type(value) is int and 0 <= value < 2**62 for value in values.values()):
            raise _impossible("counters are whole numbers within 62 bits")
        for name in ("track_vectors", "cluster_evidence"):
            if values[name] > 1:
                raise _impossible(f"{name} is so or not, 1 or 0")
            values[name] = bool(values[name])
        values.update((name, arrays[name]) for name in ARRAYS)
        state = cls(thresholds=thresholds, **values)
        state.check()
        return state

    def digest(self) -> str:
        """Hex digest of all that decides answers now and later; the log of events is history.

        What only exists beyond the paper counts where it is used, so that a digest written down
        stays true when more of it is added.
        """
        unused = {"n_events", "events", "free_subcluster", "free_cluster"}
        unused |= set() if self.cluster_evidence else {"cluster_evidence"}
        unused |= {name for name in ("light", "flags", "firm") if not getattr(self, name).any()}
        sha = hashlib.sha256()
        scalars = self.scalars()
        if not self.n_vectors and not self.next_subcluster:  # as if nothing had ever come
            scalars["dimension"] = 0
        for name, value in scalars.items():
            if name not in unused:
                sha.update(f"{name}={value!r};".encode())
        for name, array in self.arrays().items():
            if name not in unused:
                shape = array.shape if len(array) or name != "sums" else (0, 0)
                sha.update(f"{name}{shape};".encode())
                sha.update(np.ascontiguousarray(array, dtype="<i8").tobytes())
        return sha.hexdigest()

    def masses(self) -> npt.NDArray[np.float64]:
        """What each subcluster weighs: k, as the formulas of the paper take it."""
        k: npt.NDArray[np.float64] = np.maximum(self.counts - self.light / FULL, 1.0)
        return k

    def check(self) -> None:
        """Refuse a state that no stream could have led to (SnapshotError names the rule)."""
        for rule, holds in _RULES:
            if not holds(self):
                raise _impossible(rule)


def _impossible(rule: str) -> SnapshotError:
    return SnapshotError(
        f"a state where it does not hold that {rule}",
        expected="a state written by linkstream",
        remedy="The file is damaged or was made by another program; use a backup.",
    )


def _sizes_agree(state: State) -> bool:
    n = len(state.numbers)
    per_node = [state.clusters, state.counts, state.first_seen, state.last_seen]
    per_node += [state.light, state.flags]
    vectors = state.n_vectors if state.track_vectors else 0
    return (
        all(len(column) == n for column in per_node)
        and (state.sums.shape == (n, state.dimension) if n else state.sums.size == 0)
        and state.edges.shape[1] == 2
        and len(state.firm) == len(state.edges)
        and state.events.shape[1] == events.WIDTH
        and len(state.vectors) == vectors
    )


def _within(values: Integers, low: int, high: int) -> bool:
    """Whether low ≤ value < high for each."""
    return bool(np.all((values >= low) & (values < high)))


def _counters_bound_numbers(state: State) -> bool:
    return (
        (2 <= state.dimension <= DIMENSION_MAX or state.dimension == state.n_vectors == 0)
        and _within(state.numbers, 0, state.next_subcluster)
        and _within(state.clusters, 0, state.next_cluster)
        and state.next_subcluster <= state.free_subcluster
        and state.next_cluster <= state.free_cluster
        and bool(np.all(np.diff(state.numbers) > 0))
    )


def _numbers_were_given(state: State) -> bool:
    # A subcluster is born by an event of its own; so is a cluster, by a birth or a split.
    return (
        max(state.free_subcluster, state.free_cluster) <= state.n_events
        and state.free_subcluster <= SUBCLUSTERS_MAX - NUMBERS_LEFT
        and state.n_events <= EVENTS_MAX
    )


def _counts_add_up(state: State) -> bool:
    # All together stay within the bound of one: any two may come to merge.
    fits = _within(state.counts, 1, VECTORS_MAX + 1) and state.n_vectors <= VECTORS_MAX
    return fits and int(state.counts.sum()) <= state.n_vectors


def _weights_fit_counts(state: State) -> bool:
    return _within(state.flags, 0, (LOCKED | CLAIM) + 1) and bool(
        np.all((state.light >= 0) & (state.light <= FULL * state.counts))
    )


def _times_are_in_order(state: State) -> bool:
    return _within(state.first_seen, 0, max(state.n_vectors, 1)) and bool(
        np.all(state.first_seen <= state.last_seen)
        and np.all(state.last_seen < max(state.n_vectors, 1))
    )


def _sums_fit_counts(state: State) -> bool:
    if not len(state.numbers):
        return True
    limit = state.counts * 2**30
    within = np.all((state.sums <= limit[:, np.newaxis]) & (state.sums >= -limit[:, np.newaxis]))
    # k vectors of length 2³⁰, each coordinate rounded, sum to at most this long, and to something.
    squares = np.square(state.sums.astype(np.float64)).sum(axis=1)
    longest = state.counts * (2.0**30 + math.sqrt(state.dimension))
    return bool(within and np.all((squares > 0) & (squares <= np.square(longest))))


def _vectors_are_counted(state: State) -> bool:
    if not state.track_vectors:
        return True
    places = places_of(state, state.vectors)
    if places is None:
        return False
    counts = np.bincount(places + 1, minlength=len(state.numbers) + 1)[1:]
    return np.array_equal(counts, state.counts)


def places_of(state: State, numbers: Integers) -> Integers | None:
    """The place of each number among the subclusters, −1 for −1; None where one is not there."""
    last = int(state.numbers[-1]) if len(state.numbers) else -1
    if not _within(numbers, -1, last + 1):
        return None
    if last < 8 * (len(numbers) + len(state.numbers)):  # by a table, where that is small
        table = np.full(last + 2, len(state.numbers), dtype=np.int64)
        table[state.numbers] = np.arange(len(state.numbers))
        table[-1] = -1
        places: Integers = table[numbers]
        return None if np.any(places == len(state.numbers)) else places
    places = np.where(numbers < 0, -1, np.searchsorted(state.numbers, numbers))
    return (
        places if np.array_equal(state.numbers[places][places >= 0], numbers[places >= 0]) else None
    )


def _edges_make_the_clusters(state: State) -> bool:
    """Edges join live nodes, the older first, in order, and their trees are the clusters."""
    a, b = state.edges[:, 0], state.edges[:, 1]
    if not _within(state.firm, 0, LAW + 1):
        return False
    order = np.lexsort((b, a))
    if not (np.all(a < b) and np.array_equal(order, np.arange(len(order)))):
        return False
    if not np.all(np.isin(state.edges, state.numbers)):
        return False
    root = list(range(len(state.numbers)))

    def find(node: int) -> int:
        while root[node] != node:
            root[node] = root[root[node]]
            node = root[node]
        return node

    for left, right in np.searchsorted(state.numbers, state.edges).tolist():
        one, other = find(left), find(right)
        if one == other or state.clusters[left] != state.clusters[right]:
            return False
        root[one] = other
    trees = sum(parent == node for node, parent in enumerate(root))
    return trees == len(np.unique(state.clusters))


def _events_can_be_read(state: State) -> bool:
    return logrules.numbers_fit(
        state.events,
        n_vectors=state.n_vectors,
        n_events=state.n_events,
        free_subcluster=state.free_subcluster,
        free_cluster=state.free_cluster,
    )


def _log_fits_its_bound(state: State) -> bool:
    return state.track_vectors or len(state.events) <= UNTRACKED_LIMIT


_RULES = (
    ("the arrays agree in size", _sizes_agree),
    ("numbers and IDs lie below their counters", _counters_bound_numbers),
    ("each number was given by an event, and numbers are left", _numbers_were_given),
    ("counts are positive and add up to no more than the number of vectors", _counts_add_up),
    ("weights and flags are possible", _weights_fit_counts),
    ("first and last sequence are in order", _times_are_in_order),
    ("sums are possible for their counts", _sums_fit_counts),
    ("each vector belongs to a subcluster that counts it", _vectors_are_counted),
    ("the edges form one tree for each cluster", _edges_make_the_clusters),
    ("the events are of known kinds, in order, of numbers given", _events_can_be_read),
    ("a log that is not kept whole is bounded", _log_fits_its_bound),
)
