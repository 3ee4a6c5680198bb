"""Absorb another clusterer, as devices that synchronise and shards need it.

The subclusters of the other clusterer arrive as groups of vectors, the largest first (tie: the
oldest), under the same tests as any vector (docs/choices.md, "Absorbing is arriving together").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import corrections, views
from linkstream.clusterer.absent import refuse_held
from linkstream.clusterer.change import Stopped, one_change
from linkstream.clusterer.core import Core
from linkstream.clusterer.maintenance import run_maintenance
from linkstream.engine import events
from linkstream.engine.contract import Engine
from linkstream.engine.fixed_point import quantise
from linkstream.engine.forest import FULL, GIVEN_FLAGS, PINNED, find_root
from linkstream.engine.linkage import Floats
from linkstream.engine.state import Integers, State
from linkstream.errors import ArgumentError, DimensionError, NotTrackedError, SpaceError
from linkstream.identity.laws import Laws, corrections_of
from linkstream.identity.ledger import GONE, VECTORS, Ledger

_BATCH = 20_000  # vectors after which the event log is read


@one_change
def absorb(core: Core, other: object) -> Absorbed:
    """Add all that another clusterer has; `other` is a `Links`, or its core."""
    source = getattr(other, "core", other)
    if not isinstance(source, Core) or source is core:
        raise ArgumentError(
            "itself" if source is core else f"something of type {type(other).__name__}",
            expected="another Links",
            remedy="Pass the clusterer to be taken in.",
        )
    _check_same_space(core, source)
    _check_same_tracking(core, source)
    refuse_held(source, "absorb of a clusterer")
    core.check_room(source.n_vectors)
    start = core.up_to_date_ledger().n_events
    if source.engine is None or not source.n_vectors:
        return Absorbed({}, np.empty(0, dtype=np.int64) if core.track_vectors else None, start)
    return _Absorption(core, source, Renumbering(start)).run(start)


@dataclass(slots=True)
class _Absorption:
    """One call of `absorb`."""

    core: Core
    source: Core
    places: Renumbering
    state: State = field(init=False)  # of the source
    laws: Laws = field(init=False)  # of the source

    def __post_init__(self) -> None:
        self.state, self.laws = self.source.state(), self.source.laws()

    def run(self, start: int) -> Absorbed:
        """Add the groups of vectors, then the corrections; return where everything went."""
        core, state, first = self.core, self.state, self.core.n_vectors
        engine = core.start_engine(state.dimension)
        engine.note([(events.ABSORBED, len(state.numbers), int(state.counts.sum()))])
        core.confidence.margins_of.skip(first)
        corrected = is_corrected(state, self.laws)
        numbers = self._add_groups(plain=core.vectors is None and not corrected)
        if corrected:
            self._carry_graph_corrections()
            self._carry_vector_corrections(numbers)
        self.places.read(core.running())
        clusters = self._new_clusters()
        self.places.read(run_maintenance(core, first, since=first))
        return Absorbed(
            clusters,
            numbers if core.track_vectors else None,
            start,
            subclusters={number: self.places[number] for number in self.places.numbers},
            merged=self.places.merged(),
        )

    def _add_groups(self, *, plain: bool) -> npt.NDArray[np.int64]:
        """Add all subclusters of the source; return the new number of each of its vectors."""
        core = self.core
        numbers = np.full(self.source.n_vectors, -1, dtype=np.int64)
        groups = vector_groups(self.state, self.laws.ledger.missing_weights)
        for batch in batches(groups, _BATCH):
            if core.stop is not None and core.stop():
                raise Stopped
            arrived = core.n_vectors
            for group in batch:
                if group.members is not None:
                    numbers[group.members] = arrived + np.arange(len(group.members))
                    arrived += len(group.members)
            if plain:
                self._receive_all(batch)
            else:
                for group in batch:
                    self._receive(group)
        return numbers

    def _receive_all(self, groups: list[VectorGroup]) -> None:
        """Add groups that no correction mentions, in one call of the engine."""
        engine = self.core.running()
        totals = np.stack([group.total for group in groups])
        sizes = np.array([len(group.missing_weights) for group in groups], dtype=np.int64)
        missing_weights = np.concatenate([group.missing_weights for group in groups])
        answer = engine.absorb(totals, missing_weights, sizes)
        there = [group.number for group in groups]
        self.places.numbers.update(zip(there, answer.subcluster.tolist(), strict=True))
        self._read_log()

    def _receive(self, group: VectorGroup) -> None:
        """Add one group."""
        rows = None
        if self.core.vectors is not None and group.members is not None:
            rows = np.ascontiguousarray(self.source.kept(group.members))
        missing, flags, apart = group.missing_weights, group.flags, self._is_barred(group)
        engine = self.core.running()
        answer = engine.absorb(group.total, missing, rows=rows, flags=flags, apart=apart)
        self.places.numbers[group.number] = int(answer.subcluster[0])
        self._read_log()

    def _read_log(self) -> None:
        self.places.read(self.core.running())
        if not self.core.track_vectors:
            self.core.up_to_date_ledger()  # the event log drops old events

    def _is_barred(self, group: VectorGroup) -> bool:
        """Return whether a correction or a name keeps a group out of its nearest cluster."""
        barred = self.laws.barred(group.number)
        name = self.laws.names.get(group.cluster)
        if name is None and not barred:
            return False
        engine = self.core.running()
        near = engine.ranked(group.direction(), 1)
        if not near:
            return False
        cluster = near[0].cluster
        there = self.core.up_to_date_ledger().names.get(cluster)
        if name is not None and there is not None and name != there:
            return True
        held = (self.places[number] for number in barred if number in self.places.numbers)
        return any(engine.cluster_of(number) == cluster for number in held)

    def _carry_graph_corrections(self) -> None:
        """Repeat the source's corrections of subclusters and clusters, its names and ignores."""
        core, places, state = self.core, self.places, self.state
        ledger = self.laws.ledger if core.track_vectors else None
        for a, b in ties(state, ledger):
            if places[a] != places[b]:
                corrections.same(core, places[a], places[b], of="subclusters")
        for a, b in bars(state, self.laws) if ledger is None else pairs_apart(ledger):
            corrections.different(core, places[a], places[b], of="subclusters")
        new_clusters = self._new_clusters()
        for cluster, name in sorted(self.laws.names.items()):
            self._carry_name(core.live(new_clusters[cluster]), name)
        sizes = Counter({cluster.id: cluster.size for cluster in views.clusters(core)})
        for cluster in sorted(self.laws.ledger.ignored):
            live = new_clusters[cluster]
            if sizes[live] == int(state.counts[state.clusters == cluster].sum()):
                corrections.ignore(core, live)

    def _carry_name(self, cluster: int, name: str) -> None:
        core = self.core
        named = {text: number for number, text in core.up_to_date_ledger().names.items()}
        if name in named and named[name] != cluster:
            corrections.same(core, named[name], cluster, of="clusters")
        elif cluster not in named.values():
            corrections.name(core, cluster, name)

    def _carry_vector_corrections(self, numbers: npt.NDArray[np.int64]) -> None:
        """Repeat the source's corrections of single vectors, and its groups as such."""
        if not self.core.track_vectors:
            return
        verbs = {"same": corrections.same, "different": corrections.different}
        for correction in corrections_of(self.laws.ledger):
            pair = [int(numbers[vector]) for vector in correction.vectors]
            if len(pair) == 2 and min(pair) >= 0:
                verbs[correction.verb](self.core, *pair)
        pins = self.laws.ledger.pins
        for group in self.laws.ledger.groups:
            there = [int(numbers[pins[pin].vector]) for pin in group if pins[pin].node != GONE]
            for a, b in combinations(there, 2):
                corrections.different(self.core, a, b)

    def _new_clusters(self) -> dict[int, int]:
        """Return the cluster that holds most of each ID of the source (tie: the oldest)."""
        state, here = self.state, self.core.state()
        clusters = dict(zip(here.numbers.tolist(), here.clusters.tolist(), strict=True))
        held: dict[int, Counter[int]] = {}
        columns = (state.numbers, state.clusters, state.counts)
        for number, cluster, count in zip(*(c.tolist() for c in columns), strict=True):
            held.setdefault(cluster, Counter())[clusters.get(self.places[number], -1)] += count
        best = {c: min(where, key=lambda id_: (-where[id_], id_)) for c, where in held.items()}
        given, ledger = self.source.running().n_cluster_ids, self.source.up_to_date_ledger()
        return {cluster: best.get(ledger.resolve(cluster), -1) for cluster in range(given)}


def _check_same_space(core: Core, source: Core) -> None:
    mine, theirs = core.space, source.space
    if mine.model != theirs.model or not _same_mean(mine.mean, theirs.mean):
        raise SpaceError(
            f"a clusterer of the space {theirs.model!r}, with another mean or model",
            expected=f"the space of this one, {mine.model!r}",
            remedy="Vectors of different encoders, or centred otherwise, cannot be compared.",
        )
    if None not in (core.dimension, source.dimension) and core.dimension != source.dimension:
        raise DimensionError(
            f"a clusterer of dimension {source.dimension}",
            expected=f"dimension {core.dimension}",
            remedy="Use a separate Links for the vectors of each encoder.",
        )


def _check_same_tracking(core: Core, source: Core) -> None:
    for kept, there, name in (
        (core.track_vectors, source.track_vectors, "track_vectors"),
        (core.keep_vectors, source.keep_vectors, "keep_vectors"),
    ):
        if kept and not there:
            raise NotTrackedError(
                f"a clusterer made with {name}=False, to be taken in by one that does so",
                expected=f"{name}=True there, or {name}=False here",
                remedy=f"Make both clusterers with the same {name}.",
            )


def _same_mean(one: Floats | None, other: Floats | None) -> bool:
    if one is None or other is None:
        return one is other
    return bool(np.array_equal(one, other))


@dataclass(frozen=True, slots=True, eq=False)
class Absorbed:
    """Where the contents of another clusterer are now.

    Attributes:
        clusters: for each ID of the other, the cluster here that holds most of it; −1 if nothing
            is left of it.
        vectors: for each vector of the other, its number here; −1 if it was removed. None if
            vectors are not tracked.
        subclusters: for each subcluster of the other, the one here that holds it.
        merged: for each subcluster that was merged away here, the one that holds it.
        event: sequence number of the first event; `undo(to=event)` undoes all of it.
    """

    clusters: dict[int, int]
    vectors: Integers | None
    event: int
    subclusters: dict[int, int] = field(default_factory=dict)
    merged: dict[int, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        vectors = None if self.vectors is None else self.vectors.tolist()
        return {
            "clusters": self.clusters,
            "vectors": vectors,
            "event": self.event,
            "subclusters": self.subclusters,
            "merged": self.merged,
        }


@dataclass(frozen=True, slots=True, eq=False)
class VectorGroup:
    """A subcluster of the other clusterer, with its vectors and their weights."""

    row: int
    number: int
    cluster: int
    total: Integers
    members: Integers | None
    missing_weights: Integers
    flags: int

    def direction(self) -> npt.NDArray[np.int32]:
        """Return the direction of the sum as a vector."""
        rows: npt.NDArray[np.int32] = quantise(self.total[np.newaxis].astype(np.float64))[0]
        return np.ascontiguousarray(rows[0])


def vector_groups(state: State, missing_weights: Mapping[int, int]) -> Iterator[VectorGroup]:
    """Yield the subclusters in the order in which they are added; `missing_weights` by vector."""
    order = np.lexsort((state.numbers, -state.masses()))
    members = _members(state) if state.track_vectors else None
    for row in order.tolist():
        mine = None if members is None else members[row]
        if mine is None:
            missing = _spread(int(state.counts[row]), int(state.missing_weight[row]))
        else:
            missing = np.array([missing_weights.get(n, 0) for n in mine.tolist()], dtype=np.int64)
        yield VectorGroup(
            row=row,
            number=int(state.numbers[row]),
            cluster=int(state.clusters[row]),
            total=np.ascontiguousarray(state.sums[row]),
            members=mine,
            missing_weights=missing,
            flags=int(state.flags[row]) & GIVEN_FLAGS,
        )


def _members(state: State) -> list[Integers]:
    """Return the vectors of each subcluster, in order of arrival."""
    order = np.argsort(state.vectors, kind="stable")
    held = state.vectors[order]
    starts = np.searchsorted(held, state.numbers)
    ends = np.searchsorted(held, state.numbers, side="right")
    return [order[start:end] for start, end in zip(starts, ends, strict=True)]


def _spread(count: int, missing_weight: int) -> Integers:
    """Return weights that add up to a total, if single weights are not known."""
    missing = np.zeros(count, dtype=np.int64)
    whole, rest = divmod(missing_weight, FULL)
    missing[:whole] = FULL
    if rest:
        missing[whole] = rest
    return missing


def is_corrected(state: State, laws: Laws) -> bool:
    """Return whether corrections, names or prototypes must be carried over."""
    ledger = laws.ledger
    said = ledger.pins or ledger.names or ledger.ignored or ledger.locked
    return bool(said or (state.flags & GIVEN_FLAGS).any() or (state.edge_rules == PINNED).any())


def bars(state: State, laws: Laws) -> list[tuple[int, int]]:
    """Return the pairs of subclusters that must stay apart."""
    return sorted(
        (number, other)
        for number in state.numbers.tolist()
        for other in laws.barred(number)
        if number < other
    )


def ties(state: State, ledger: Ledger | None) -> list[tuple[int, int]]:
    """Return pinned edges, those with a `ledger` left out that its corrections of vectors make."""
    pinned = [(int(a), int(b)) for a, b in state.edges[state.edge_rules == PINNED]]
    if ledger is None:
        return pinned
    root = {number: number for number in state.numbers.tolist()}
    for a, b in _pairs(ledger, together=True, of_vectors=True):
        root[find_root(root, a)] = find_root(root, b)
    whole = _pairs(ledger, together=True, of_vectors=False)
    return [
        (a, b) for a, b in pinned if (a, b) in whole or find_root(root, a) != find_root(root, b)
    ]


def pairs_apart(ledger: Ledger) -> list[tuple[int, int]]:
    """Return the pairs of subclusters that corrections, except those of vectors, keep apart."""
    return sorted(_pairs(ledger, together=False, of_vectors=False))


def _pairs(ledger: Ledger, *, together: bool, of_vectors: bool) -> set[tuple[int, int]]:
    """Return the subclusters of both sides of corrections, the lower first."""
    found = set()
    for law in ledger.laws:
        plain = law.level == VECTORS and law.mover < 0
        if (law.together, plain) == (together, of_vectors):
            one, other = ({ledger.pins[pin].node for pin in side} - {GONE} for side in law.sides)
            found |= {(min(a, b), max(a, b)) for a in one for b in other if a != b}
    return found


def batches(groups: Iterable[VectorGroup], vectors: int) -> Iterator[list[VectorGroup]]:
    """Yield groups in batches of about this many vectors, at least one group each."""
    some: list[VectorGroup] = []
    held = 0
    for group in groups:
        if some and held + len(group.missing_weights) > vectors:
            yield some
            some, held = [], 0
        some.append(group)
        held += len(group.missing_weights)
    if some:
        yield some


@dataclass(slots=True)
class Renumbering:
    """The new number of each subcluster of the other clusterer, through all merges."""

    seen: int  # events that were read
    numbers: dict[int, int] = field(default_factory=dict)  # of the other → here, when it came
    _survivors: dict[int, int] = field(default_factory=dict)

    def read(self, engine: Engine) -> None:
        """Read the merges since the last call."""
        # Events that were dropped told of added vectors only; merges follow those.
        first, rows = engine.event_rows(max(self.seen, engine.oldest_event()))
        self.seen = first + len(rows)
        for _, _, survivor, absorbed, *_ in rows[rows[:, 0] == events.MERGED].tolist():
            self._survivors[absorbed] = survivor

    def __getitem__(self, number: int) -> int:
        return self._living(self.numbers[number])

    def merged(self) -> dict[int, int]:
        """Return the subclusters that were merged away here, and those that hold them."""
        return {gone: self._living(gone) for gone in self._survivors}

    def _living(self, here: int) -> int:
        while here in self._survivors:
            here = self._survivors[here]
        return here
