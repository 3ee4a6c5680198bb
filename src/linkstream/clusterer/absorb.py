"""Absorb another clusterer, as devices that synchronise and shards need it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import corrections, views
from linkstream.clusterer.change import Stopped, one_change
from linkstream.clusterer.core import Core
from linkstream.clusterer.maintenance import run_maintenance
from linkstream.engine import events
from linkstream.engine.linkage import Floats
from linkstream.engine.state import State
from linkstream.errors import ArgumentError, DimensionError, NotTrackedError, SpaceError
from linkstream.identity import absorbing
from linkstream.identity.absorbing import Absorbed, Renumbering, VectorGroup
from linkstream.identity.corrections import listed
from linkstream.identity.laws import Laws

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
        corrected = absorbing.is_corrected(state, self.laws)
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
        groups = absorbing.vector_groups(self.state, self.laws.ledger.lights)
        for batch in absorbing.batches(groups, _BATCH):
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
        sizes = np.array([len(group.lights) for group in groups], dtype=np.int64)
        lights = np.concatenate([group.lights for group in groups])
        answer = engine.receive_all(totals, sizes, lights)
        there = [group.number for group in groups]
        self.places.numbers.update(zip(there, answer.subcluster.tolist(), strict=True))
        self._read_log()

    def _receive(self, group: VectorGroup) -> None:
        """Add one group."""
        rows = None
        if self.core.vectors is not None and group.members is not None:
            rows = np.ascontiguousarray(self.source.kept(group.members))
        answer = self.core.running().receive(
            group.total,
            group.lights,
            rows=rows,
            flags=group.flags,
            apart=self._is_barred(group),
        )
        self.places.numbers[group.number] = answer.subcluster
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
        for a, b in absorbing.ties(state).tolist():
            if places[a] != places[b]:
                corrections.same(core, places[a], places[b], of="subclusters")
        for a, b in absorbing.bars(state, self.laws):
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
        """Repeat the source's corrections of single vectors."""
        verbs = {"same": corrections.same, "different": corrections.different}
        for correction in listed(self.laws.ledger) if self.core.track_vectors else ():
            pair = [int(numbers[vector]) for vector in correction.vectors]
            if len(pair) == 2 and min(pair) >= 0:
                verbs[correction.verb](self.core, *pair)

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
            remedy="Vectors of another encoder need a Links of their own.",
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
