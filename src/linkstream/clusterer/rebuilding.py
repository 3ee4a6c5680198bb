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
from linkstream.clusterer.checks import check_thresholds, check_yes_no
from linkstream.clusterer.core import Core
from linkstream.clusterer.maintenance import enforce
from linkstream.clusterer.spaces import Fetch, NewSpace
from linkstream.engine.choice import Factory
from linkstream.engine.contract import Engine
from linkstream.engine.linkage import Progress
from linkstream.engine.state import Fixed, Integers, State
from linkstream.errors import NotTrackedError
from linkstream.identity import folding, rebuilding
from linkstream.identity.content import Content
from linkstream.identity.folding import Base
from linkstream.identity.ledger import Ledger
from linkstream.identity.rebuild_ids import Numbering
from linkstream.identity.rebuild_report import RebuildReport, report_of
from linkstream.identity.rebuild_rows import LIMIT
from linkstream.identity.rebuilding import Partition, Tools
from linkstream.identity.timeline import Timeline
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space

_BLOCK = 65_536  # vectors read, or replayed, at a time


@dataclass(frozen=True, slots=True)
class Plan:
    """A rebuild that was computed."""

    partition: Partition
    numbering: Numbering
    report: RebuildReport

    @property
    def dimension(self) -> int:
        """Dimension of the vectors that were clustered."""
        return int(self.partition.content.fixed.shape[1])


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
class RebuildSource:
    """All that a rebuild needs, except the vectors; `fetch` returns those by number."""

    state: State
    ledger: Ledger
    factory: Factory
    space: Space

    def content(self, fetch: Fetch) -> Content:
        """Return the vectors that were not removed."""
        numbers = np.flatnonzero(self.state.vectors >= 0)
        fixed = np.empty((0, 0), dtype=np.int32)
        for start in range(0, len(numbers), _BLOCK):
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
        thresholds: Thresholds | None = None,
        progress: Progress | None = None,
        *,
        new: NewSpace | None = None,
        limit: int = LIMIT,
    ) -> Plan:
        """Return the rebuild with these thresholds; None takes those of the state.

        `fetch` reads vectors in the present space, which changes to a `new` one.
        """
        state, test = self.state, thresholds or self.state.thresholds
        replay = functools.partial(self._replayed, test)
        tools = Tools(self.factory.unions, replay, limit, progress)
        content = self.content(fetch if new is None else new.fetch(fetch))
        partition = rebuilding.clustered(content, state, self.ledger, test, tools)
        numbering = Numbering.of(partition, state, self.ledger.names)
        return Plan(partition, numbering, report_of(partition, numbering, state, test))

    def _replayed(self, test: Thresholds, fixed: Fixed, missing_weights: Integers) -> Integers:
        """Return the subcluster of each vector after all were added to an empty engine.

        It tests clusters as wholes, whatever the mode of this clusterer: the set alone decides.
        """
        empty = State(test, fixed.shape[1], cluster_evidence=True)
        engine = self.factory.make(empty, None)
        starts = np.flatnonzero(np.diff(missing_weights, prepend=-1)).tolist()
        for start, end in pairwise([*starts, len(fixed)]):
            _add(engine, fixed[start:end], int(missing_weights[start]))
        return engine.state().vectors


def _add(engine: Engine, rows: Fixed, missing_weight: int) -> None:
    """Add vectors of one weight."""
    if missing_weight:
        for row in rows:
            engine.place(row, missing_weight=missing_weight)
        return
    for start in range(0, len(rows), _BLOCK):
        engine.add(rows[start : start + _BLOCK])


@one_change
def rebuild(
    core: Core,
    apply: bool = False,
    *,
    thresholds: Thresholds | None = None,
    space: Space | None = None,
    vectors: npt.ArrayLike | None = None,
    progress: Progress | None = None,
    limit: int = LIMIT,
) -> RebuildReport:
    """Cluster all kept vectors again; propose what changes, or apply it."""
    check_thresholds(thresholds)
    check_yes_no("apply", apply)
    source = _source(core, "rebuild")
    if source is None:
        return RebuildReport(applied=bool(apply))
    report = progress or core.progress
    with core.interruptible():
        new = source.new_space(space, vectors)
        plan = source.plan(core.kept, thresholds, report, new=new, limit=limit)
    if not apply:
        return plan.report
    first = source.state.n_events
    if new is not None:
        spaces.enter(core, new, first)
    with core.interruptible():
        after = _after(core, source, plan, Settings(thresholds or core.origin.thresholds, new))
    core.origin = replace(core.origin, thresholds=after.thresholds)
    core.replace_state(after)
    enforce(core, first)
    return replace(plan.report, applied=True)


def partition_hash(core: Core) -> str:
    """Return a digest of the partition of the kept vectors."""
    return hash_of(_source(core, "partition_hash"), core.kept)


def hash_of(source: RebuildSource | None, fetch: Fetch) -> str:
    """Return the digest of a partition; None is that of no vectors."""
    if source is None:
        return Content.empty().partition_hash(np.empty(0, dtype=np.int64))
    return source.partition_hash(fetch)


def source_for_read(core: Core, verb: str) -> RebuildSource | None:
    """Return a source that any thread may use later; None if there are no vectors."""
    source = _source(core, verb)
    return source and replace(source, ledger=copy.deepcopy(source.ledger))


def _source(core: Core, verb: str) -> RebuildSource | None:
    """Return the source; None if there are no vectors; NotTrackedError if they are not kept."""
    if not (core.track_vectors and core.keep_vectors):
        raise NotTrackedError(
            f"{verb} in a clusterer that does not keep its vectors",
            expected="track_vectors=True and keep_vectors=True",
            remedy="settle() compares subclusters, which every clusterer has.",
        )
    core.check_usable()
    if core.engine is None or not core.engine.n_subclusters:
        return None
    return RebuildSource(core.state(), core.up_to_date_ledger(), core.factory, core.space)


def _after(core: Core, source: RebuildSource, plan: Plan, wanted: Settings) -> State:
    """Return the state that the events of a rebuild lead to."""
    assert core.vectors is not None, "vectors are kept"
    state, numbering, test = source.state, plan.numbering, wanted.thresholds
    rows = numbering.rows(plan.partition, state, wanted.told(source))
    timeline = Timeline(rows, state.n_events + np.arange(len(rows)))
    known = state if wanted.new is None else folding.without_sums(state, plan.dimension)
    present = replace(
        known,
        thresholds=test,
        free_subcluster=max(state.free_subcluster, int(numbering.numbers.max()) + 1),
        free_cluster=max(state.free_cluster, max(numbering.ids.values()) + 1),
        events=np.concatenate([state.events, rows]),
        n_events=state.n_events + len(rows),
    )
    return folding.state_after(present, timeline, core.vectors, Base(state, source.ledger))
