"""Joining two clusterers: what devices that sync, and shards, need."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from linkstream.clusterer.adding import Adding
from linkstream.clusterer.change import Stopped, one_change
from linkstream.engine import events
from linkstream.engine.linkage import Floats
from linkstream.errors import ArgumentError, DimensionError, NotTrackedError, SpaceError
from linkstream.identity import absorbing, corrections
from linkstream.identity.absorbing import Absorbed, Lot, Places
from linkstream.identity.laws import Laws

_TOGETHER = 20_000  # vectors after which the log is read


class Joining(Adding):
    """The side of `Links` that takes another one in."""

    @one_change
    def absorb(self, other: Joining) -> Absorbed:
        """Take in all that another clusterer has; it stays as it is.

        Its subclusters come as vectors that arrive together, the largest first, under the same
        tests: they join, are linked, or begin clusters here. Sums are exact. What people said
        there holds here: constraints, names, prototypes; clusters of one name become one. IDs of
        the other mean nothing here: the answer says where each has gone. All or nothing.

        Raises:
            SpaceError, DimensionError: the two are of different spaces.
            NotTrackedError: vectors are tracked or kept here, and not there.
            ContradictionError: what was said there contradicts what was said here.
        """
        self._check_akin(other)
        start = self._synced().n_events
        if other._engine is None or not other.n_vectors:
            return Absorbed({}, np.empty(0, dtype=np.int64) if self.track_vectors else None, start)
        return self._absorb(other, start)

    def _absorb(self, other: Joining, start: int) -> Absorbed:
        state, laws, first = other.state(), other._laws(), self.n_vectors
        self._begun(state.dimension)
        numbers = np.full(other.n_vectors, -1, dtype=np.int64)
        places = Places(start)
        self._running().note([(events.ABSORBED, len(state.numbers), int(state.counts.sum()))])
        spoken = absorbing.spoken(state, laws)
        plain = self._keep is None and not spoken
        for some in absorbing.batches(absorbing.lots(state, laws.ledger.lights), _TOGETHER):
            if self._stop is not None and self._stop():
                raise Stopped
            come = self.n_vectors
            for lot in some:
                if lot.members is not None:
                    numbers[lot.members] = come + np.arange(len(lot.members))
                    come += len(lot.members)
            if plain:
                self._receive_all(some, places)
            else:
                for lot in some:
                    self._receive(lot, other, laws, places)
        if spoken:
            self._carry_over(other, laws, places)
            self._carry_words(laws, numbers)
        places.read(self._running())
        clusters = self._whereabouts(other, places)
        places.read(self._tend(first, since=first))
        return Absorbed(
            clusters,
            numbers if self.track_vectors else None,
            start,
            subclusters={number: places[number] for number in places.numbers},
            merged=places.merged(),
        )

    def _receive_all(self, lots: list[Lot], places: Places) -> None:
        """Take lots of which nobody said anything."""
        engine = self._running()
        totals = np.stack([lot.total for lot in lots])
        sizes = np.array([len(lot.lights) for lot in lots], dtype=np.int64)
        answer = engine.receive_all(totals, sizes, np.concatenate([lot.lights for lot in lots]))
        there = [lot.number for lot in lots]
        places.numbers.update(zip(there, answer.subcluster.tolist(), strict=True))
        places.read(engine)
        if not self.track_vectors:
            self._synced()  # the log is not kept whole

    def _receive(self, lot: Lot, other: Joining, laws: Laws, places: Places) -> None:
        engine = self._running()
        rows = None
        if self._keep is not None and lot.members is not None:
            rows = np.ascontiguousarray(other._kept_rows(lot.members))
        answer = engine.receive(
            lot.total,
            lot.lights,
            rows=rows,
            flags=lot.flags,
            apart=self._is_barred(lot, laws, places),
        )
        places.numbers[lot.number] = answer.subcluster
        places.read(engine)
        if not self.track_vectors:
            self._synced()  # the log is not kept whole

    def _is_barred(self, lot: Lot, laws: Laws, places: Places) -> bool:
        """Whether the nearest cluster is one where it may not be."""
        barred = laws.barred(lot.number)
        name = laws.names.get(lot.cluster)
        if name is None and not barred:
            return False
        engine = self._running()
        near = engine.ranked(lot.direction(), 1)
        if not near:
            return False
        cluster = near[0].cluster
        there = self._synced().names.get(cluster)
        if name is not None and there is not None and name != there:
            return True
        held = (places[number] for number in barred if number in places.numbers)
        return any(engine.cluster_of(number) == cluster for number in held)

    def _carry_over(self, other: Joining, laws: Laws, places: Places) -> None:
        """Say here what was said there."""
        state = other.state()
        for a, b in absorbing.ties(state).tolist():
            if places[a] != places[b]:
                self.same(places[a], places[b], of="subclusters")
        for a, b in absorbing.bars(state, laws):
            self.different(places[a], places[b], of="subclusters")
        whereabouts = self._whereabouts(other, places)
        for cluster, name in sorted(laws.names.items()):
            self._carry_name(self._live(whereabouts[cluster]), name)
        grown = Counter(self._cluster_sizes())
        for cluster in sorted(laws.ledger.ignored):
            live = whereabouts[cluster]
            if grown[live] == int(state.counts[state.clusters == cluster].sum()):
                self.ignore(live)

    def _carry_words(self, laws: Laws, numbers: npt.NDArray[np.int64]) -> None:
        """Say here of single vectors what was said of them there."""
        for correction in corrections.listed(laws.ledger) if self.track_vectors else ():
            pair = [int(numbers[vector]) for vector in correction.vectors]
            if len(pair) == 2 and min(pair) >= 0:
                getattr(self, correction.verb)(*pair)

    def _carry_name(self, cluster: int, name: str) -> None:
        named = {text: number for number, text in self._synced().names.items()}
        if name in named and named[name] != cluster:
            self.same(named[name], cluster, of="clusters")
        elif cluster not in named.values():
            self.name(cluster, name)

    def _cluster_sizes(self) -> dict[int, int]:
        return {cluster.id: cluster.size for cluster in self.clusters()}

    def _whereabouts(self, other: Joining, places: Places) -> dict[int, int]:
        """For each ID of the other, the cluster here that holds most of it (tie: the oldest)."""
        state, here_now = other.state(), self.state()
        clusters = dict(zip(here_now.numbers.tolist(), here_now.clusters.tolist(), strict=True))
        held: dict[int, Counter[int]] = {}
        columns = (state.numbers, state.clusters, state.counts)
        for number, cluster, count in zip(*(c.tolist() for c in columns), strict=True):
            here = clusters.get(places[number], -1)
            held.setdefault(cluster, Counter())[here] += count
        best = {c: min(where, key=lambda id_: (-where[id_], id_)) for c, where in held.items()}
        given = other._engine.n_cluster_ids if other._engine else 0
        ledger = other._synced()
        return {cluster: best.get(ledger.resolve(cluster), -1) for cluster in range(given)}

    def _check_akin(self, other: object) -> None:
        if not isinstance(other, Joining) or other is self:
            raise ArgumentError(
                "itself" if other is self else f"something of type {type(other).__name__}",
                expected="another Links",
                remedy="Pass the clusterer to be taken in.",
            )
        mine, theirs = self.space, other.space
        if mine.model != theirs.model or not _same_mean(mine.mean, theirs.mean):
            raise SpaceError(
                f"a clusterer of the space {theirs.model!r}, with another mean or model",
                expected=f"the space of this one, {mine.model!r}",
                remedy="Vectors of different encoders, or centred otherwise, cannot be compared.",
            )
        if None not in (self.dimension, other.dimension) and self.dimension != other.dimension:
            raise DimensionError(
                f"a clusterer of dimension {other.dimension}",
                expected=f"dimension {self.dimension}",
                remedy="Vectors of another encoder need a Links of their own.",
            )
        for kept, there, name in (
            (self.track_vectors, other.track_vectors, "track_vectors"),
            (self.keep_vectors, other.keep_vectors, "keep_vectors"),
        ):
            if kept and not there:
                raise NotTrackedError(
                    f"a clusterer made with {name}=False, to be taken in by one that does so",
                    expected=f"{name}=True there, or {name}=False here",
                    remedy="Make both alike.",
                )
        self._check_room(other.n_vectors)


def _same_mean(one: Floats | None, other: Floats | None) -> bool:
    if one is None or other is None:
        return one is other
    return bool(np.array_equal(one, other))
