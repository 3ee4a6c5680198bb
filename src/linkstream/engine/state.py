"""The whole state of an engine as plain arrays: what engines, files and workers exchange.

C++ twin: state.hpp. The arrays are in one canonical order, so that equal states have equal bytes
and equal digests: subclusters by number, edges by their ends (the older end first), vectors by
arrival.
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
from linkstream.engine.forest import DUE, FULL, GIVEN_FLAGS, PINNED, find_root
from linkstream.engine.log import GIVEN, UNTRACKED_LIMIT
from linkstream.errors import SnapshotError, ThresholdError
from linkstream.paper.thresholds import Thresholds

Fixed = npt.NDArray[np.int32]
Integers = npt.NDArray[np.int64]

# The compiled engine numbers subclusters with 32 bits; one number means "none". A state with fewer
# than NUMBERS_LEFT free numbers is refused: no stream of VECTORS_MAX vectors leads to one.
SUBCLUSTERS_MAX = 2**32 - 2
NUMBERS_LEFT = 2**24
EVENTS_MAX = 2**62 - 2**40  # the compiled engine can number events below 2**62

# Name in files → dimensions of each array, in the order of the digest; all are int64.
_COLUMNS = ("numbers", "clusters", "counts", "first_seen", "last_seen", "light", "flags")
ARRAYS = {**dict.fromkeys(_COLUMNS, 1), "sums": 2, "edges": 2, "firm": 1, "vectors": 1, "events": 2}
FIELDS = dict(zip(ARRAYS, ARRAYS, strict=True)) | {"light": "missing_weight", "firm": "edge_rules"}
PER_NODE = tuple(FIELDS[name] for name in _COLUMNS)
COUNTERS = ("dimension", "track_vectors", "cluster_evidence", "n_vectors", "n_events", *GIVEN)
THRESHOLD_NAMES = tuple(field.name for field in fields(Thresholds))


def _empty(*shape: int) -> Integers:
    return np.empty(shape, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class State:
    """A Links graph and its counters.

    Attributes:
        numbers, clusters, counts, first_seen, last_seen, sums: one entry a subcluster: its
            number, its cluster's ID, its number of vectors, the sequence of the first and the
            last of them, Σq.
        missing_weight: of each subcluster, what its vectors lack to their full weight, in 256ths.
        flags: of each subcluster, forest.LOCKED and forest.CLAIM.
        cluster_evidence: whether vectors are tested against clusters, not against J alone.
        edges: pairs of subcluster numbers, the older first.
        edge_rules: the rule of each edge (forest.TESTED, SETTLED or PINNED).
        vectors: subcluster of each vector, in order of arrival, −1 for a removed vector; empty if
            vectors are not tracked.
        events: the event rows kept, the newest last; `n_events` counts all there ever were.
        next_subcluster, next_cluster: subclusters and clusters created so far.
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
    missing_weight: Integers = field(default_factory=lambda: _empty(0))
    flags: Integers = field(default_factory=lambda: _empty(0))
    sums: Integers = field(default_factory=lambda: _empty(0, 0))
    edges: Integers = field(default_factory=lambda: _empty(0, 2))
    edge_rules: Integers = field(default_factory=lambda: _empty(0))
    vectors: Integers = field(default_factory=lambda: _empty(0))
    events: Integers = field(default_factory=lambda: _empty(0, events.WIDTH))

    def scalars(self) -> dict[str, float | int]:
        """Return thresholds and counters by name, in the order of the digest."""
        return {**asdict(self.thresholds), **{name: int(getattr(self, name)) for name in COUNTERS}}

    def arrays(self) -> dict[str, Integers]:
        """Return the arrays by their names in files, in the order of the digest."""
        return {name: getattr(self, FIELDS[name]) for name in ARRAYS}

    @classmethod
    def from_parts(cls, scalars: object, arrays: Mapping[str, npt.NDArray[Any]]) -> State:
        """Make a state from the results of `scalars` and `arrays`; SnapshotError if it is wrong."""
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
                raise _impossible(f"{name} is 1 or 0")
            values[name] = bool(values[name])
        values.update((FIELDS[name], arrays[name]) for name in ARRAYS)
        state = cls(thresholds=thresholds, **values)
        state.check()
        return state

    def digest(self) -> str:
        """Return a hex digest of everything that decides present and later answers.

        The event log is left out. So are the arrays of features beyond the paper while they are
        not used, so that old digests stay valid when features are added.
        """
        unused = {"n_events", "events", "free_subcluster", "free_cluster"}
        unused |= set() if self.cluster_evidence else {"cluster_evidence"}
        sha, scalars, arrays = hashlib.sha256(), self.scalars(), self.arrays()
        arrays["flags"] = self.flags & GIVEN_FLAGS  # an undo does not bring back the others
        unused |= {name for name in ("light", "flags", "firm") if not arrays[name].any()}
        if not self.n_vectors and not self.next_subcluster:  # nothing was ever added
            scalars["dimension"] = 0
        for name, value in scalars.items():
            if name not in unused:
                sha.update(f"{name}={value!r};".encode())
        for name, array in arrays.items():
            if name not in unused:
                shape = array.shape if len(array) or name != "sums" else (0, 0)
                sha.update(f"{name}{shape};".encode())
                sha.update(np.ascontiguousarray(array, dtype="<i8").tobytes())
        return sha.hexdigest()

    def masses(self) -> npt.NDArray[np.float64]:
        """Return the weight of each subcluster as the k of the paper's formulas."""
        return np.maximum(self.counts - self.missing_weight / FULL, 1.0)

    def check(self) -> None:
        """Raise SnapshotError, naming the rule, if no stream can lead to this state."""
        for rule, holds in _RULES:
            if not holds(self):
                raise _impossible(rule)


def damaged(seen: str, expected: str) -> SnapshotError:
    """Return the error for a snapshot that linkstream cannot have written."""
    remedy = "The file is damaged or was made by another program; use a backup."
    return SnapshotError(seen, expected=expected, remedy=remedy)


def _impossible(rule: str) -> SnapshotError:
    return damaged(f"a state that breaks the rule that {rule}", "a state written by linkstream")


def _sizes_agree(state: State) -> bool:
    n = len(state.numbers)
    vectors = state.n_vectors if state.track_vectors else 0
    return (
        all(len(getattr(state, name)) == n for name in PER_NODE)
        and (state.sums.shape == (n, state.dimension) if n else state.sums.size == 0)
        and state.edges.shape[1] == 2
        and len(state.edge_rules) == len(state.edges)
        and state.events.shape[1] == events.WIDTH
        and len(state.vectors) == vectors
    )


def _within(values: Integers, low: int, high: int) -> bool:
    """Return whether low ≤ value < high for each value."""
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
    # Each subcluster has an event that created it; so has each cluster, or a split.
    return (
        max(state.free_subcluster, state.free_cluster) <= state.n_events
        and state.free_subcluster <= SUBCLUSTERS_MAX - NUMBERS_LEFT
        and state.n_events <= EVENTS_MAX
    )


def _counts_add_up(state: State) -> bool:
    # All counts together must fit one subcluster, because any two may merge.
    fits = _within(state.counts, 1, VECTORS_MAX + 1) and state.n_vectors <= VECTORS_MAX
    return fits and int(state.counts.sum()) <= state.n_vectors


def _weights_fit_counts(state: State) -> bool:
    return _within(state.flags, 0, (GIVEN_FLAGS | DUE) + 1) and bool(
        np.all((state.missing_weight >= 0) & (state.missing_weight <= FULL * state.counts))
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
    # The length of a sum of k vectors of length 2³⁰, each coordinate rounded; it must not be 0.
    squares = np.square(state.sums.astype(np.float64)).sum(axis=1)
    longest = state.counts * (2.0**30 + math.sqrt(state.dimension))
    return bool(within and np.all((squares > 0) & (squares <= np.square(longest))))


def _vectors_are_counted(state: State) -> bool:
    if not state.track_vectors:
        return True
    indices = indices_of(state, state.vectors)
    if indices is None:
        return False
    counts = np.bincount(indices + 1, minlength=len(state.numbers) + 1)[1:]
    return np.array_equal(counts, state.counts)


def indices_of(state: State, numbers: Integers) -> Integers | None:
    """Return the index of each subcluster in the arrays, −1 for −1; None if one does not exist."""
    last = int(state.numbers[-1]) if len(state.numbers) else -1
    if not _within(numbers, -1, last + 1):
        return None
    if last < 8 * (len(numbers) + len(state.numbers)):  # a table is small enough
        table = np.full(last + 2, len(state.numbers), dtype=np.int64)
        table[state.numbers] = np.arange(len(state.numbers))
        table[-1] = -1
        indices: Integers = table[numbers]
        return None if np.any(indices == len(state.numbers)) else indices
    indices = np.where(numbers < 0, -1, np.searchsorted(state.numbers, numbers))
    live = indices >= 0
    return indices if np.array_equal(state.numbers[indices][live], numbers[live]) else None


def _edges_make_the_clusters(state: State) -> bool:
    """Return whether edges join live nodes, are in order, and form one tree for each cluster."""
    a, b = state.edges[:, 0], state.edges[:, 1]
    if not _within(state.edge_rules, 0, PINNED + 1):
        return False
    order = np.lexsort((b, a))
    if not (np.all(a < b) and np.array_equal(order, np.arange(len(order)))):
        return False
    if not np.all(np.isin(state.edges, state.numbers)):
        return False
    root = list(range(len(state.numbers)))
    for left, right in np.searchsorted(state.numbers, state.edges).tolist():
        one, other = find_root(root, left), find_root(root, right)
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
    ("the events have known codes, are in order and name given numbers", _events_can_be_read),
    ("the log of untracked vectors is bounded", _log_fits_its_bound),
)
