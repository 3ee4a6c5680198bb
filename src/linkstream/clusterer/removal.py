"""Remove vectors and clusters exactly; undo and redo changes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import checks, former, spaces
from linkstream.clusterer.absent import check_there
from linkstream.clusterer.change import one_change, one_return
from linkstream.clusterer.checks import whole_number
from linkstream.clusterer.core import Core, Fixed
from linkstream.clusterer.inverses import Inverse
from linkstream.clusterer.maintenance import enforce
from linkstream.engine import events
from linkstream.engine.contract import VectorStore
from linkstream.engine.corrections import share
from linkstream.engine.forest import FULL
from linkstream.engine.state import State
from linkstream.epochs import Epochs
from linkstream.errors import ArgumentError, NotTrackedError, RemovedError, UndoError
from linkstream.identity import folding, grouping, limits
from linkstream.identity.ledger import Ledger
from linkstream.identity.timeline import Timeline, n_arrivals


@one_change
def remove(
    core: Core,
    vector: npt.ArrayLike,
    *,
    x: npt.ArrayLike | None = None,
    cluster: int | None = None,
    weight: float | None = None,
) -> None:
    """Remove a vector from the sums, exactly."""
    if core.track_vectors:
        if not (cluster is None and weight is None):
            raise ArgumentError(
                "a cluster or a weight for a vector that is tracked",
                expected="its number alone",
                remedy="Leave the cluster and the weight out: both are stored.",
            )
        several = checks.several_vectors(vector)
        if several is not None:
            _remove_all(core, several)
            return
        core.check_tracked(f"vector {vector!r}")
        if check_there(core, vector) in core.up_to_date_ledger().held:  # type: ignore[arg-type]
            core.running().note([(events.DROPPED, int(vector))])  # type: ignore[arg-type]
            core.up_to_date_ledger()  # it is in no sum, so that this is all
            return
        node = core.holder(vector)  # type: ignore[arg-type]
        number = int(vector)  # type: ignore[arg-type]
        q = core.kept([number])[0] if x is None else _given(core, x)
        missing_weight = core.up_to_date_ledger().missing_weights.get(number, 0)
    else:
        number, q = -1, _given(core, vector)
        node = _likely_holder(core, q, cluster)
        missing_weight = checks.missing_weights(1.0 if weight is None else weight, 1)[0]
        missing_weight = FULL if node in core.up_to_date_ledger().locked else missing_weight
    refuse_hollow(core, node, q, missing_weight)
    engine = core.running()
    since = engine.n_events
    engine.note([(events.DROPPED, number)])
    engine.withdraw(q, missing_weight=missing_weight, target=node, member=number)
    enforce(core, since)


def _remove_all(core: Core, numbers: list[int]) -> None:
    """Remove several vectors; the event of −1 says that those after it are one change.

    It has their number if some are held: nothing else may come between them and the next removal.
    """
    for number in numbers:
        check_there(core, number)  # raises before any change
    held = core.up_to_date_ledger().held
    placed = [number for number in numbers if number not in held]
    rows = core.kept(placed)
    engine, since = core.running(), core.running().n_events
    size = len(numbers) if len(placed) < len(numbers) else -1
    engine.note([(events.DROPPED, -1, size), *((events.DROPPED, number) for number in numbers)])
    core.up_to_date_ledger()
    for number, q in zip(placed, rows, strict=True):
        missing_weight = core.up_to_date_ledger().missing_weights.get(number, 0)
        node = core.holder(number)
        refuse_hollow(core, node, q, missing_weight)
        engine.withdraw(q, missing_weight=missing_weight, target=node, member=number)
    enforce(core, since)


def _given(core: Core, x: npt.ArrayLike) -> Fixed:
    """Return a vector that the caller passes because none are kept."""
    if core.vectors is not None:
        raise ArgumentError(
            "a vector's coordinates, where vectors are kept",
            expected="its number alone",
            remedy="It is known: a vector's number is its place in order of arrival.",
        )
    only: Fixed = core.quantised(core.check_row(x))[0]
    return only


def _likely_holder(core: Core, q: Fixed, cluster: int | None) -> int:
    """Return the subcluster that a vector is most similar to, of one cluster or of all."""
    if cluster is not None:
        live = core.live(cluster)
        return grouping.nearest_in(core.running(), q, live).target
    ranked = core.engine.ranked(q, 1) if core.engine else []
    if not ranked:
        raise RemovedError(
            "a vector to remove where there is none",
            expected="one that was added",
            remedy="Nothing is left to remove it from.",
        )
    return ranked[0].subcluster


@one_change
def forget(core: Core, cluster: int) -> None:
    """Remove a cluster and all its vectors."""
    live = core.live(cluster)
    since = core.running().n_events
    core.replace_state(limits.forget(core.state(), [live], limits.ASKED))
    enforce(core, since)


def refuse_hollow(core: Core, node: int, q: Fixed, missing_weight: int) -> None:
    """Raise ArgumentError if a subcluster would be left with vectors but no direction."""
    count, total = core.running().total_of(node)
    if is_hollow(count - 1, total - share(q, missing_weight)):
        raise ArgumentError(
            f"a vector that subcluster {node} cannot do without",
            expected="one of the vectors that make it up, and not the only prototype of others",
            remedy="forget() its cluster, or pass the very vector that was added.",
        )


def is_hollow(count: int, rest: npt.NDArray[np.int64]) -> bool:
    """Return whether a sum is zero, or too long for this number of vectors."""
    length = float(np.sqrt(np.square(rest.astype(np.float64)).sum()))
    longest = count * (2.0**30 + np.sqrt(len(rest))) * (1.0 + 1e-9)
    return bool((count and not rest.any()) or length > longest)


@one_return
def undo(core: Core, *, to: int | None = None) -> None:
    """Undo the last change, or all changes from the event of sequence number `to` on."""
    if to is not None:
        to = whole_number("to", to, "the event from which on all is undone", least=-(2**40))
    if former.undoes(core, to):
        former.take_back(core)
        return
    _check_log(core, "undo")
    core.up_to_date_ledger()
    inverses = core.inverses.undone(core.running(), to)
    if inverses:
        _take_back(core, inverses)
        core.cuts.append(core.n_vectors)
        return
    log = timeline(core, "undo")
    stays = log.before(to)
    target = _folded(core, log.until(stays))
    undone = _undone_from(core, target.state.n_vectors, again=bool(log.taken))
    _continue_from(core, target, (events.UNDONE, int(log.sequences[stays])))
    if not target.elsewhere:
        core.undone = undone
    core.cuts.append(core.n_vectors)


@one_return
def redo(core: Core) -> None:
    """Redo what the last `undo` took."""
    log = timeline(core, "redo")
    after, last = log.redone(), log.taken[-1]
    before = core.running().n_vectors
    if not _leads_elsewhere(core, after):
        _restore_vectors(core, last.n_vectors)
    target = _folded(core, after)
    _continue_from(core, target, (events.REDONE, last.undone))
    if core.undone is not None and not target.elsewhere:
        core.undone = core.undone[target.state.n_vectors - before :]


def _take_back(core: Core, inverses: list[Inverse]) -> None:
    """Undo the newest changes by what was kept of them."""
    engine, n = core.running(), inverses[0].n_vectors
    last = engine.event_rows(engine.n_events - 1)[1]
    undone = _undone_from(core, n, again=int(last[0, 0]) == events.UNDONE)
    assert core.change is not None, "undo is a change"
    core.change.take_back(inverses, events.UNDONE)
    core.change.cut_vectors(n)
    core.undone = undone


def timeline(core: Core, verb: str) -> Timeline:
    """Return the events that stand, as far back as undo goes; raise if there are none."""
    _check_log(core, verb)
    start = core.base.ledger.n_events
    rows = core.running().event_rows(max(start, core.oldest_event()))[1]
    return Timeline.of(rows, start)


def _check_log(core: Core, verb: str) -> None:
    """Raise if nothing can be undone or redone."""
    if not (core.track_vectors and core.keep_vectors):
        raise NotTrackedError(
            f"{verb} in a clusterer that does not keep its vectors",
            expected="track_vectors=True and keep_vectors=True",
            remedy="Save snapshots, and go back to one of them.",
        )
    if core.engine is None or core.vectors is None:
        raise UndoError(
            f"{verb} where nothing was added",
            expected="a vector or a change",
            remedy="Undo goes back to the empty clusterer and no further.",
        )


@dataclass(frozen=True, slots=True)
class _Target:
    """What events lead to.

    Attributes:
        state: the state.
        ledger: the ledger.
        epochs: the epochs, as they stand then.
        vectors: the vectors in the space of then.
        elsewhere: whether that is another space than the present one.
    """

    state: State
    ledger: Ledger
    epochs: Epochs
    vectors: VectorStore
    elsewhere: bool


def _epochs_of(core: Core, log: Timeline) -> Epochs:
    """Return the epochs, as they stand after the events of a timeline."""
    rebuilt = log.sequences[log.rows[:, 0] == events.REBUILT].tolist()
    return core.epochs.with_rebuilds(frozenset(rebuilt), core.base.ledger.n_events)


def _leads_elsewhere(core: Core, log: Timeline) -> bool:
    """Return whether events lead to another space than the present one."""
    return _epochs_of(core, log).last.event != core.epochs.last.event


def _folded(core: Core, log: Timeline) -> _Target:
    """Return what events lead to; change nothing."""
    epochs, elsewhere = _epochs_of(core, log), _leads_elsewhere(core, log)
    n_vectors = len(core.base.state.vectors) + n_arrivals(log.rows)
    vectors = spaces.vectors_in(core, epochs, n_vectors)
    with core.interruptible():
        present = core.state()
        dimension = epochs.last.dimension
        known = folding.without_sums(present, dimension) if elsewhere else present
        state = folding.state_after(known, log, vectors, core.base)
    whole, ledger = present.events, core.up_to_date_ledger()
    thresholds = folding.thresholds_after(present.thresholds, whole, log, ledger.texts)
    state = replace(state, thresholds=thresholds)
    after = folding.ledger_after(ledger, log, core.base, state)
    return _Target(state, after, epochs, vectors, elsewhere)


def _undone_from(core: Core, n: int, *, again: bool) -> Fixed | None:
    """Return the vectors from number n on, then, `again`, those that could be redone already."""
    if core.external_vectors:
        return None
    gone = core.kept(np.arange(n, core.n_vectors, dtype=np.int64))
    if core.undone is None or not again:
        return gone
    return np.concatenate([gone, core.undone])


def _continue_from(core: Core, target: _Target, reason: tuple[int, ...]) -> None:
    """Continue from another state and ledger; write an event with the reason."""
    assert core.change is not None, "undo and redo are changes"
    core.origin = replace(core.origin, thresholds=target.state.thresholds)
    spaces.go_back(core, target.epochs, target.vectors, redo=reason[0] == events.REDONE)
    engine = core.make_engine(target.state)
    engine.note([reason])
    core.engine, core.ledger = engine, target.ledger
    core.change.cut_vectors(target.state.n_vectors)


def _restore_vectors(core: Core, n: int) -> None:
    """Append n vectors that an undo took to the kept vectors."""
    if core.external_vectors or core.vectors is None or not n:
        return
    if core.undone is None or len(core.undone) < n:
        raise UndoError(
            f"a redo of {n} vectors that were not kept",
            expected="a snapshot that was saved with its history, by this version or later",
            remedy="Add the vectors again.",
        )
    core.vectors.append(np.ascontiguousarray(core.undone[:n]))
