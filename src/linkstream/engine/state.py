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

from linkstream.engine import events
from linkstream.engine.fixed_point import DIMENSION_MAX, VECTORS_MAX
from linkstream.engine.forest import CLAIM, FULL, LAW, LOCKED
from linkstream.errors import SnapshotError, ThresholdError
from linkstream.paper.thresholds import Thresholds

Integers = npt.NDArray[np.int64]

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
        and state.next_subcluster <= state.free_subcluster <= 2**32 - 2
        and state.next_cluster <= state.free_cluster <= state.free_subcluster + 2 * state.n_events
        and bool(np.all(np.diff(state.numbers) > 0))
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
    there = state.vectors[state.vectors != -1]
    numbers, counts = np.unique(there, return_counts=True)
    return np.array_equal(numbers, state.numbers) and np.array_equal(counts, state.counts)


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
    if not len(state.events):
        return True
    codes, vectors, numbers = state.events[:, 0], state.events[:, 1], state.events[:, 2:]
    if len(state.events) > state.n_events or not _within(codes, 0, len(events.CLASSES)):
        return False
    # What was undone had vectors of its own; before the first undo they only rise.
    undone = codes == events.UNDONE
    latest = VECTORS_MAX if undone.any() else max(state.n_vectors, 1)
    before = vectors[: int(np.argmax(undone))] if undone.any() else vectors
    ends = {
        events.SUBCLUSTER: state.free_subcluster,
        events.CLUSTER: state.free_cluster,
        events.VECTOR: latest,
        events.NUMBER: 2**32,
        events.NOTHING: 0,
    }
    limits = np.array([[ends[kind] for kind in row] for row in events.KINDS_OF_NUMBERS])[codes]
    return (
        _within(vectors, 0, latest)
        and bool(np.all(np.diff(before) >= 0))
        and bool(np.all((numbers >= -1) & (numbers < limits)))
    )


_RULES = (
    ("the arrays agree in size", _sizes_agree),
    ("numbers and IDs lie below their counters", _counters_bound_numbers),
    ("counts are positive and add up to no more than the number of vectors", _counts_add_up),
    ("weights and flags are possible", _weights_fit_counts),
    ("first and last sequence are in order", _times_are_in_order),
    ("sums are possible for their counts", _sums_fit_counts),
    ("each vector belongs to a subcluster that counts it", _vectors_are_counted),
    ("the edges form one tree for each cluster", _edges_make_the_clusters),
    ("the events are of known kinds, in order, of numbers given", _events_can_be_read),
)
