"""Maintenance of the graph: healing and memory limits after vectors, settling, corrections kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from linkstream.clusterer.change import one_change
from linkstream.clusterer.checks import check_thresholds, check_yes_no
from linkstream.clusterer.core import Core
from linkstream.engine.contract import Engine
from linkstream.engine.forest import GIVEN_FLAGS
from linkstream.engine.linkage import Progress
from linkstream.engine.logrules import KINDS, SUBCLUSTER
from linkstream.engine.state import State
from linkstream.identity import enforcement, settling
from linkstream.identity.regrouping import Regrouping
from linkstream.identity.settling import Settlement
from linkstream.paper.thresholds import Thresholds


def run_maintenance(
    core: Core, before: int, *, since: int | None = None, healed: bool = False
) -> Engine:
    """Heal, and apply limits, if the stream has passed a point where that is due.

    There were `before` vectors at the last run. No limit drops a subcluster of the vectors from
    `since` on; None: of the newest vector. `healed`: the engine has healed already.
    """
    engine = core.running()
    due = core.healing is not None and core.healing.after(before) <= engine.n_vectors
    if due and core.settles and not healed:
        core.ready().heal()
        core.up_to_date_ledger()
    elif due and core.healing is not None and not core.settles:
        laws = core.laws()
        with core.interruptible():
            _, state = core.healing.run(engine.state(), core.factory.unions, laws)
        engine = core.replace_state(state)
    if core.limits and core.limits.exceeded(before, engine.n_vectors, engine.n_subclusters):
        state = engine.state()
        since = engine.n_vectors - 1 if since is None else since
        engine = core.replace_state(core.limits.apply(state, *_protected(core, state), since))
        core.ledger.tidy()
    if not core.track_vectors:
        core.up_to_date_ledger()
    return engine


def _protected(core: Core, state: State) -> tuple[npt.NDArray[np.bool_], set[int]]:
    """Return subclusters that no limit drops, and clusters of which one subcluster must stay."""
    ledger = core.up_to_date_ledger()
    pins = [pin for law in ledger.laws for side in law.sides for pin in side]
    pinned: npt.NDArray[np.bool_] = np.isin(state.numbers, ledger.nodes(pins))
    return pinned | (state.flags & GIVEN_FLAGS > 0), set(ledger.names)


@one_change
def settle(
    core: Core,
    apply: bool = False,
    *,
    thresholds: Thresholds | None = None,
    progress: Progress | None = None,
) -> Settlement:
    """Compare all subclusters with one another; propose joins and cuts, or apply them."""
    if core.engine is None:
        return Settlement((), (), 0, 0, applied=apply)
    check_thresholds(thresholds)
    check_yes_no("apply", apply)
    laws, test = core.laws(), thresholds or core.origin.thresholds
    with core.interruptible():
        changes, graph = settling.settle(
            core.engine, test, laws=laws, asked=True, progress=progress or core.progress
        )
        after = graph.result() if apply else None
    if after is not None:
        core.engine.regroup(after)
        core.up_to_date_ledger()
    return replace(changes, applied=bool(apply))


def enforce(core: Core, since: int, *, freed: Iterable[int] = (), judged: bool = False) -> None:
    """Make the graph obey all corrections, by as few changes as possible.

    It obeyed them before event `since`, so that only clusters that later events name, and those
    that corrections tie to them, are looked at. The first correction of all looks at the whole
    graph: until then, edges of prototypes that no correction holds stay as they are.

    Args:
        core: the clusterer.
        since: the first event after which a correction may be disobeyed.
        freed: subclusters of corrections that no longer hold.
        judged: whether to test the edges that no correction holds any more.
    """
    laws = core.laws()
    if not (laws.ledger.book or judged):
        return
    graph = Regrouping(_changed(core, since, freed), laws.names)
    released = enforcement.enforce(graph, laws)
    if judged:
        enforcement.judge(graph, released)
    if graph.rows:
        core.running().regroup(graph.result())
        core.up_to_date_ledger()


def _changed(core: Core, since: int, freed: Iterable[int]) -> State:
    """Return the clusters of all subclusters that events name, and those tied to them."""
    engine, laws = core.running(), core.laws()
    rows, book = engine.event_rows(since)[1], laws.ledger.book
    if sum(len(book.of_event(since + place)) for place in range(len(rows))) == len(book):
        return engine.state()
    named = rows[:, 2:][KINDS[rows[:, 0]] == SUBCLUSTER]
    clusters = {engine.cluster_of(node) for node in {*named.tolist(), *freed}} - {-1}
    state = engine.parts(*sorted(clusters))
    tied = {other for node in state.numbers.tolist() for other in laws.bonds(node)}
    more = {engine.cluster_of(node) for node in tied} - clusters - {-1}
    return engine.parts(*sorted(clusters | more)) if more else state
