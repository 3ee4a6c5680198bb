"""Rebuild a clusterer: cluster the kept vectors again, whatever their order was."""

from __future__ import annotations

import copy
import functools
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import spaces
from linkstream.clusterer.change import one_change
from linkstream.clusterer.checks import check_rebuild_thresholds, check_space, check_yes_no
from linkstream.clusterer.core import Core
from linkstream.clusterer.former import former_of
from linkstream.clusterer.maintenance import enforce
from linkstream.clusterer.spaces import Fetch, NewSpace
from linkstream.engine.choice import Factory
from linkstream.engine.contract import Engine
from linkstream.engine.linkage import Progress
from linkstream.engine.state import Fixed, Integers, State
from linkstream.epochs import FIRST
from linkstream.errors import ArgumentError, NotTrackedError
from linkstream.identity import folding, rebuilding
from linkstream.identity.cluster_labels import ClusterEvidence, LabelledClusters, check_enough
from linkstream.identity.content import Content
from linkstream.identity.folding import Base
from linkstream.identity.ledger import Ledger
from linkstream.identity.rebuild_ids import Numbering
from linkstream.identity.rebuild_report import RebuildReport, report_of
from linkstream.identity.rebuild_rows import LIMIT
from linkstream.identity.rebuild_search import part_of
from linkstream.identity.rebuild_sums import (
    Subclusters,
    SubclusterSums,
    clustered_subclusters,
    exact_sums,
)
from linkstream.identity.rebuilding import Partition, Tools
from linkstream.identity.timeline import Timeline
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space

_BLOCK = 1_024  # vectors read at a time; other calls of a store run in between
_REPLAYED = 4_096  # vectors replayed at a time
_READ = 0.1  # share of the work that reading the vectors counts for


@dataclass(frozen=True, slots=True)
class Plan:
    """A rebuild that was computed."""

    partition: Partition
    numbering: Numbering
    report: RebuildReport
    thresholds: Thresholds
    content: Content | Subclusters

    @classmethod
    def of(
        cls,
        partition: Partition,
        content: Content | Subclusters,
        source: RebuildSource,
        thresholds: Thresholds,
        evidence: ClusterEvidence | None,
    ) -> Plan:
        """Return the plan of a partition of a content."""
        numbering = Numbering.of(partition, source.state, source.ledger.names)
        report = report_of(partition, numbering, source.state, thresholds)
        return cls(partition, numbering, replace(report, evidence=evidence), thresholds, content)

    @property
    def dimension(self) -> int:
        """Dimension of the vectors that were clustered."""
        return int(self.content.fixed.shape[1])


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings after a rebuild."""

    thresholds: Thresholds
    new: NewSpace | None = None

    def told(self, source: RebuildSource) -> int:
        """Return the number of the text on settings that change; −1: none do."""
        before = source.state.thresholds
        if self.new is None and self.thresholds == before:
            return -1
        space = None if self.new is None else self.new.space.text()
        return source.ledger.number(folding.change_of_settings(before, self.thresholds, space))


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a rebuild was called with."""

    thresholds: Thresholds | str | None = None
    space: Space | None = None
    vectors: npt.ArrayLike | SubclusterSums | None = None

    def equals(self, other: Wanted) -> bool:
        """Return whether the other call is the same; vectors have to be the same object."""
        if (self.thresholds, self.space) != (other.thresholds, other.space):
            return False
        if isinstance(self.vectors, SubclusterSums):
            return self.vectors.equals(other.vectors)
        return self.vectors is other.vectors


@dataclass(frozen=True, slots=True)
class RebuildSource:
    """All that a rebuild needs, except the vectors; `fetch` returns those by number.

    `own` are thresholds that rebuilds in the present space take instead of those of the state.
    `kept` says whether the vectors are kept; otherwise subclusters are clustered, by their sums.
    """

    state: State
    ledger: Ledger
    factory: Factory
    space: Space
    own: Thresholds | None = None
    kept: bool = True

    def content(self, fetch: Fetch, progress: Progress | None = None) -> Content:
        """Return the vectors that were not removed."""
        numbers = np.flatnonzero(self.state.vectors >= 0)
        fixed = np.empty((0, 0), dtype=np.int32)
        for start in range(0, len(numbers), _BLOCK):
            if progress is not None:
                progress(start / len(numbers))
            rows = fetch(numbers[start : start + _BLOCK])
            if not start:
                fixed = np.empty((len(numbers), rows.shape[1]), dtype=np.int32)
            fixed[start : start + len(rows)] = rows
        return Content.of(self.state, self.ledger, fixed)

    def new_space(self, space: Space | None, vectors: npt.ArrayLike | None) -> NewSpace | None:
        """Return the space that a rebuild changes to; None if it does not change."""
        return spaces.new_space(self.space, self.state, space, vectors)

    def partition_hash(self, fetch: Fetch) -> str:
        """Return what `Links.partition_hash` returns."""
        content, state = self.content(fetch), self.state
        held = np.searchsorted(state.numbers, state.vectors[content.numbers])
        return content.partition_hash(state.clusters[held])

    def plan(
        self,
        fetch: Fetch,
        thresholds: Thresholds | str | None = None,
        progress: Progress | None = None,
        *,
        new: NewSpace | None = None,
        limit: int = LIMIT,
    ) -> Plan:
        """Return the rebuild with these thresholds; None takes its own, or those of the state.

        "from clusters" finds them from the present clusters. `fetch` reads vectors in the present
        space, which changes to a `new` one.
        """
        state, evidence = self.state, None
        reading, linking = part_of(progress, 0.0, _READ), part_of(progress, _READ, 1.0)
        content = self.content(fetch if new is None else new.fetch(fetch), reading)
        if isinstance(thresholds, str):
            trying, linking = part_of(linking, 0.0, 0.5), part_of(linking, 0.5, 1.0)
            test, evidence = self.from_clusters(content, keep_join=new is None, progress=trying)
        else:
            test = thresholds or (self.own if new is None else None) or state.thresholds
        replay = functools.partial(self._replayed, test, linking)
        tools = Tools(self.factory.unions, replay, limit, linking)
        partition = rebuilding.clustered(content, state, self.ledger, test, tools)
        return Plan.of(partition, content, self, test, evidence)

    def from_clusters(
        self, content: Content, *, keep_join: bool, progress: Progress | None = None
    ) -> tuple[Thresholds, ClusterEvidence]:
        """Return thresholds that the present clusters ask for, and what they rest on."""
        labelled = LabelledClusters.of(content, self.state, self.ledger)
        return labelled.found(
            self.state.thresholds, self.factory.unions, keep_join=keep_join, progress=progress
        )

    def _replayed(
        self, test: Thresholds, progress: Progress | None, content: Content, places: Integers
    ) -> Integers:
        """Return the subcluster of each vector after all were added to an empty engine.

        It tests clusters as wholes, whatever the mode of this clusterer: the set alone decides.
        """
        empty = State(test, content.fixed.shape[1], cluster_evidence=True)
        engine, missing = self.factory.make(empty, None), content.missing_weights[places]
        starts = np.flatnonzero(np.diff(missing, prepend=-1)).tolist()
        for start, end in pairwise([*starts, len(places)]):
            for first in range(start, end, _REPLAYED):
                if progress is not None:
                    progress(0.0)  # it may raise to end the work
                rows = content.fixed[places[first : min(first + _REPLAYED, end)]]
                _add(engine, rows, int(missing[start]))
        return engine.state().vectors


def _add(engine: Engine, rows: Fixed, missing_weight: int) -> None:
    """Add vectors of one weight."""
    if not missing_weight:
        engine.add(rows)
        return
    for row in rows:
        engine.place(row, missing_weight=missing_weight)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A rebuild that was computed before it is applied.

    It may be computed by any thread, while the clusterer goes on; `rebuild` takes it from
    `Core.prepared` if the clusterer has not changed since, and computes anew otherwise.
    """

    source: RebuildSource
    wanted: Wanted
    new: NewSpace | None
    plan: Plan
    after: State | None = None  # the state that it leads to, if that was computed, too

    @property
    def settings(self) -> Settings:
        """The settings after it: thresholds of rebuilds alone do not change them."""
        given = self.wanted.thresholds is not None
        return Settings(self.plan.thresholds if given else self.source.state.thresholds, self.new)

    def fits(self, source: RebuildSource, wanted: Wanted) -> bool:
        """Return whether this is the rebuild of a state that is the same as before."""
        before, state = self.source.state, source.state
        return (
            before.n_events == state.n_events
            and self.source.own == source.own
            and np.array_equal(before.vectors, state.vectors)
            and self.wanted.equals(wanted)
        )


def prepare(
    source: RebuildSource,
    fetch: Fetch,
    wanted: Wanted,
    progress: Progress | None = None,
    limit: int = LIMIT,
) -> Prepared:
    """Compute a rebuild; nothing changes."""
    if not source.kept:
        return _of_sums(source, wanted, progress)
    new = source.new_space(wanted.space, wanted.vectors)
    plan = source.plan(fetch, wanted.thresholds, progress, new=new, limit=limit)
    return Prepared(source, wanted, new, plan)


def _of_sums(source: RebuildSource, wanted: Wanted, progress: Progress | None) -> Prepared:
    """Compute a rebuild of subclusters by their sums in another encoder."""
    given, test, evidence = wanted.vectors, wanted.thresholds, None
    if isinstance(given, SubclusterSums):
        new, sums = NewSpace(check_space(wanted.space), source.space), given.sums
    else:
        found = source.new_space(wanted.space, given)
        assert found is not None, "vectors of another encoder were given"
        new, content = found, source.content(found.fetch(_none_kept))
        sums = exact_sums(content, source.state, source.ledger)
        if isinstance(test, str):
            test, evidence = source.from_clusters(content, keep_join=False, progress=None)
    assert not isinstance(test, str), "thresholds for sums alone are found before"
    items = Subclusters.of(source.state, sums)
    after = test or source.state.thresholds
    unite = source.factory.unions
    partition = clustered_subclusters(items, source.state, source.ledger, after, unite, progress)
    return Prepared(source, wanted, new, Plan.of(partition, items, source, after, evidence))


def _none_kept(numbers: Integers) -> Fixed:
    raise AssertionError("vectors that are not kept are not read")


def complete(made: Prepared) -> Prepared:
    """Compute the state that a rebuild leads to, too; nothing changes."""
    return replace(made, after=_after(made.source, made.plan, made.settings))


@one_change
def rebuild(
    core: Core,
    apply: bool = False,
    *,
    thresholds: Thresholds | str | None = None,
    space: Space | None = None,
    vectors: npt.ArrayLike | SubclusterSums | None = None,
    progress: Progress | None = None,
    limit: int = LIMIT,
) -> RebuildReport:
    """Cluster all kept vectors again; propose what changes, or apply it."""
    check_rebuild_thresholds(thresholds)
    check_yes_no("apply", apply)
    source = _source(core, "rebuild", vectors)
    if source is None:
        if core.replayed is None:  # earlier versions took what is refused now
            check_nothing_given(thresholds, space, vectors)
        return RebuildReport(applied=bool(apply))
    wanted, made = Wanted(thresholds, space, vectors), core.prepared
    if made is None or not made.fits(source, wanted):
        with core.interruptible():
            made = prepare(source, core.kept, wanted, progress or core.progress, limit)
    if apply:
        _enter(core, source, made)
    return replace(made.plan.report, applied=bool(apply))


def _refuse_held(core: Core) -> None:
    """Raise ArgumentError if vectors are held: nobody knows them in another space."""
    held = core.up_to_date_ledger().held
    if held:
        raise ArgumentError(
            f"another space while {len(held)} vectors are held",
            expected="no vector that waits for a decision",
            remedy="Call accept() without a probability, which takes them, or decide on each.",
        )


def _enter(core: Core, source: RebuildSource, made: Prepared) -> None:
    """Go on in the state after a rebuild."""
    first, new, after = source.state.n_events, made.new, made.after
    former = None if source.kept else former_of(core)
    if after is None:
        with core.interruptible():
            after = _after(source, made.plan, made.settings)
    else:
        made.settings.told(source)  # the ledger has to know the text on the settings, too
    if new is not None:
        _refuse_held(core)
        spaces.enter(core, new, first, made.plan.dimension)
    other = new is not None or after.thresholds != core.origin.thresholds
    core.origin = replace(core.origin, thresholds=after.thresholds)
    core.replace_state(after)
    enforce(core, first)
    core.before = former and former.until(core.running().n_events)
    if other:
        core.confidence.margins_of.skip(0)  # margins to the thresholds and the space of before


def partition_hash(core: Core) -> str:
    """Return a digest of the partition of the kept vectors."""
    return hash_of(_source(core, "partition_hash"), core.kept)


def hash_of(source: RebuildSource | None, fetch: Fetch) -> str:
    """Return the digest of a partition; None is that of no vectors."""
    if source is None:
        return Content.empty().partition_hash(np.empty(0, dtype=np.int64))
    return source.partition_hash(fetch)


def source_for_read(
    core: Core, verb: str, vectors: npt.ArrayLike | SubclusterSums | None = None
) -> RebuildSource | None:
    """Return a source that any thread may use later; None if there are no vectors.

    `vectors` are those that a rebuild comes with: it needs no others.
    """
    source = _source(core, verb, vectors)
    return source and replace(source, ledger=copy.deepcopy(source.ledger))


def own_source(core: Core) -> RebuildSource | None:
    """Return the same, whether vectors are kept or not; another thread may use it later."""
    source = _source_of(core)
    return source and replace(source, ledger=copy.deepcopy(source.ledger))


def own_thresholds(core: Core) -> Thresholds | None:
    """Return the thresholds that rebuilds take instead of those of the clusterer, if any."""
    own = core.rebuild_thresholds
    if own is None or own.stream != core.origin.thresholds or core.epochs.last.event != FIRST:
        return None
    return own.rebuild


def check_nothing_given(
    thresholds: Thresholds | str | None, space: Space | None, vectors: npt.ArrayLike | None
) -> None:
    """Raise ArgumentError if a clusterer without vectors shall change its settings."""
    if isinstance(thresholds, str):
        check_enough(0)
    named = {"thresholds": thresholds, "space": space, "vectors": vectors}
    given = [name for name, value in named.items() if value is not None]
    if given:
        raise ArgumentError(
            f"a rebuild to other {' and '.join(given)} of a clusterer without vectors",
            expected="a clusterer with vectors",
            remedy="Begin a new one with these settings; there is nothing to rebuild.",
        )


def _source_of(core: Core) -> RebuildSource | None:
    """Return a source, whether vectors are kept or not; None if there are none."""
    core.check_usable()
    if core.engine is None or not core.engine.n_subclusters:
        return None
    ledger = core.up_to_date_ledger()
    kept = core.track_vectors and core.keep_vectors
    return RebuildSource(core.state(), ledger, core.factory, core.space, own_thresholds(core), kept)


def _source(
    core: Core, verb: str, vectors: npt.ArrayLike | SubclusterSums | None = None
) -> RebuildSource | None:
    """Return the source; None if there are no vectors; NotTrackedError if they are not kept."""
    kept = core.track_vectors and core.keep_vectors
    given = core.track_vectors and vectors is not None
    if not (kept or given or isinstance(vectors, SubclusterSums)):
        raise NotTrackedError(
            f"{verb} in a clusterer that does not keep its vectors",
            expected="track_vectors=True and keep_vectors=True",
            remedy="settle() compares subclusters, which every clusterer has.",
        )
    return _source_of(core)


def _after(source: RebuildSource, plan: Plan, wanted: Settings) -> State:
    """Return the state that the events of a rebuild lead to."""
    state, numbering, test = source.state, plan.numbering, wanted.thresholds
    rows = numbering.rows(plan.partition, state, wanted.told(source))
    known = state if wanted.new is None else folding.without_sums(state, plan.dimension)
    present = replace(
        known,
        thresholds=test,
        free_subcluster=max(state.free_subcluster, int(numbering.numbers.max()) + 1),
        free_cluster=max(state.free_cluster, max(numbering.ids.values()) + 1),
        events=np.concatenate([state.events, rows]),
        n_events=state.n_events + len(rows),
    )
    base = Base(state, source.ledger)
    if isinstance(plan.content, Subclusters):
        return folding.state_of_sums(present, rows, plan.content.fixed, base)
    timeline = Timeline(rows, state.n_events + np.arange(len(rows)))
    return folding.state_after(present, timeline, plan.content, base)
