"""Add vectors: one by one, in batches, in groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import checks
from linkstream.clusterer.change import Stopped, one_addition, one_change
from linkstream.clusterer.checks import check_group
from linkstream.clusterer.core import Core, Fixed, Float32s
from linkstream.clusterer.maintenance import run_maintenance
from linkstream.clusterer.policies import at_point
from linkstream.engine import events
from linkstream.engine.contract import HELD, JOINED, KINDS, NEW, Decision, Decisions, Engine
from linkstream.engine.forest import FULL
from linkstream.errors import ArgumentError
from linkstream.identity import grouping
from linkstream.identity.held import POINT

_KEPT_ROWS = 500  # keeping the inverse of fewer costs a part of adding them; a store keeps all
_PIECE = 10_000  # vectors after which the event log is read, if it drops old events


def add(core: Core, x: npt.ArrayLike, weight: float = 1.0, group: str | None = None) -> Decision:
    """Add one vector; return what was decided."""
    full = type(weight) is float and weight == 1.0
    if full and group is None and core.fast_path and core.engine is not None:
        decision = core.engine.add_one(x)
        if decision is not None:
            return core.confidence.take_one(decision) if core.confidence.margins else decision
    return _add_alone(core, core.check_row(x), weight, group)


@one_addition
def _add_alone(core: Core, rows: Float32s, weight: float, group: str | None) -> Decision:
    return core.confidence.take(_add_rows(core, rows, weight, group)).at(0)


def decide_many(
    core: Core, X: npt.ArrayLike, weight: npt.ArrayLike = 1.0, group: str | None = None
) -> Decisions:
    """Add vectors in order; return what was decided, as columns."""
    rows = core.check_rows(X)
    if not len(rows):
        return Decisions.of(core.n_vectors, [])
    return core.confidence.tell(_add_batch(core, rows, weight, group)[0])


def add_many(
    core: Core, X: npt.ArrayLike, weight: npt.ArrayLike = 1.0, group: str | None = None
) -> npt.NDArray[np.int64]:
    """Add vectors in order; return their IDs."""
    rows = core.check_rows(X)
    if not len(rows):
        return np.empty(0, dtype=np.int64)
    return _add_batch(core, rows, weight, group)[1]


@one_addition
def _add_batch(
    core: Core, rows: Float32s, weight: npt.ArrayLike, group: str | None
) -> tuple[Decisions, npt.NDArray[np.int64]]:
    """Add vectors; return decisions and IDs. After this change no memory is needed any more."""
    core.last_decisions = decisions = _add_rows(core, rows, weight, group)
    core.confidence.keep(decisions)
    return decisions, decisions.cluster.copy()


@one_change
def add_group(
    core: Core, X: npt.ArrayLike, group: str | None = None, weight: npt.ArrayLike = 1.0
) -> npt.NDArray[np.int64]:
    """Add vectors that were seen together; return a different cluster for each."""
    check_group(group)
    rows = core.check_rows(X)
    if not len(rows):
        return np.empty(0, dtype=np.int64)
    missing_weights = checks.missing_weights(weight, len(rows))
    if FULL in missing_weights:
        raise ArgumentError(
            "a group with a vector of weight 0",
            expected="weights above 0",
            remedy="Leave such vectors out, or ask about them with predict().",
        )
    fixed = core.quantised(rows)
    core.check_room(len(rows))
    core.start_engine(rows.shape[1])
    core.last_decisions = decisions = _add_together(core, fixed, missing_weights, group)
    return decisions.cluster.copy()


def _add_rows(core: Core, rows: Float32s, weight: npt.ArrayLike, group: str | None) -> Decisions:
    """Add rows, or raise an error before anything has changed."""
    if group is not None:
        check_group(group)
    if group is not None or type(weight) not in (int, float) or weight != 1:
        missing_weights = checks.missing_weights(weight, len(rows))
        assert core.change is not None, "vectors are added within a change"
        core.change.keep_now()
        return _add_each(core, rows, missing_weights, group)
    core.check_room(len(rows))
    if len(rows) < _KEPT_ROWS and not core.external_vectors and core.change is not None:
        core.change.keep_nothing()
    if core.engine is None:
        fixed = core.quantised(rows)
        return _add_fixed(core, core.start_engine(rows.shape[1]), fixed)
    engine = core.engine if core.is_ready else core.ready()
    decisions = engine.add(rows, core.stop) if core.fast_path else None
    return decisions or _add_fixed(core, engine, core.quantised(rows))


def _add_fixed(core: Core, engine: Engine, fixed: Fixed) -> Decisions:
    if core.maintained:
        return _add_maintained(core, engine, fixed)
    return engine.add(fixed, core.stop)


def _add_maintained(core: Core, engine: Engine, fixed: Fixed) -> Decisions:
    """Add vectors up to each point where maintenance is due, and run it there."""
    taken, pieces = 0, _Pieces(engine.n_vectors)
    stop, held = core.stop, dict[int, Fixed]()
    while taken < len(fixed) and not (taken and stop is not None and stop()):
        engine = core.running() if core.is_ready else core.ready()
        before = engine.n_vectors
        room = core.limits.room(before, engine.n_subclusters)
        if core.healing is not None and not core.heals_alone:
            room = min(room, core.healing.after(before) - before)
        if core.policy is not None and core.policy.unsure == "hold":
            room = min(room, POINT - before % POINT)
        if not core.track_vectors:
            room = min(room, _PIECE)
        pieces.add(engine.add(fixed[taken : taken + room], stop))
        held |= _held_now(pieces.newest, before, fixed[taken:])
        taken += len(pieces.newest.cluster)
        if not _maintained(core, before, pieces, held, healed=core.heals_alone):
            break
    return pieces.joined()


def _held_now(decided: Decisions, first: int, fixed: Fixed) -> dict[int, Fixed]:
    """Return the vectors of a piece that are held, by number; `first` is that of the first."""
    places = np.flatnonzero(decided.kind == HELD).tolist()
    return {first + place: fixed[place] for place in places}


def _maintained(
    core: Core, before: int, pieces: _Pieces, held: dict[int, Fixed], *, healed: bool = False
) -> bool:
    """Run maintenance after vectors; on Ctrl-C go back to the last complete piece, return False."""
    assert core.change is not None, "vectors are added within a change"
    engine = core.engine
    try:
        run_maintenance(core, before, healed=healed)
        at_point(core, before, held)
    except Stopped:
        core.change.back_to_mark()
        pieces.drop_unmarked()
        return False
    if core.engine is not engine:
        core.change.mark()
        pieces.mark()
    return True


def _add_each(core: Core, rows: Float32s, missing: list[int], group: str | None) -> Decisions:
    """Add vectors one by one: each in its group, or with its weight."""
    fixed = core.quantised(rows)
    core.check_room(len(rows))
    pieces, stop, held = _Pieces(core.n_vectors), core.stop, dict[int, Fixed]()
    for q, missing_weight in zip(fixed, missing, strict=True):
        if pieces and stop is not None and stop():
            break
        if missing_weight == FULL:
            pieces.add(_asked(core, q, group))
            continue
        engine = core.start_engine(rows.shape[1])
        if not core.is_ready:
            engine = core.ready()
        before = engine.n_vectors
        if group is not None:
            pieces.add(_add_together(core, q[np.newaxis], [missing_weight], group))
        else:
            pieces.add(engine.place(q, missing_weight=missing_weight).as_batch())
            held |= _held_now(pieces.newest, before, q[np.newaxis])
            if not _maintained(core, before, pieces, held):
                break
    return pieces.joined()


def _asked(core: Core, q: Fixed, group: str | None) -> Decisions:
    """Return what would be decided on a vector; change nothing."""
    nowhere = Decision(-1, -1, "new", None, None, core.n_vectors).as_batch()
    if core.engine is None:
        return nowhere
    if group is None:
        return core.engine.ask(q[np.newaxis])
    (place,) = grouping.assign(core.engine, q[np.newaxis], barred=_mates(core, group))
    if place.outcome == NEW:
        return nowhere
    kind, node = KINDS[place.outcome], place.target if place.outcome == JOINED else -1
    figures = place.similarity, place.threshold, core.n_vectors
    return Decision(place.cluster, node, kind, *figures).as_batch()


def _mates(core: Core, group: str | None) -> set[int]:
    """Return the clusters that hold vectors of a group."""
    ledger, engine = core.up_to_date_ledger(), core.running()
    pins = ledger.groups[ledger.keys[group]] if group in ledger.keys else []
    return {engine.cluster_of(node) for node in ledger.nodes(pins)}


def _add_together(
    core: Core, fixed: Fixed, missing_weights: list[int], group: str | None
) -> Decisions:
    """Add vectors of one group, each to a cluster of its own."""
    engine, ledger = core.running(), core.up_to_date_ledger()
    before = engine.n_vectors
    places = grouping.assign(engine, fixed, barred=_mates(core, group))
    text = -1 if group is None else ledger.number(group)
    engine.note([(events.GROUPED, text, len(fixed))])
    core.confidence.margins_of.skip(before)
    pieces = []
    for q, missing, place in zip(fixed, missing_weights, places, strict=True):
        taken = engine.place(
            q, missing_weight=missing, outcome=place.outcome, target=place.target, rule=place.rule
        )
        figures = (None, None) if place.outcome == NEW else (place.similarity, place.threshold)
        taken = replace(taken, similarity=figures[0], threshold=figures[1])
        pieces.append(taken.as_batch())
    core.up_to_date_ledger()
    run_maintenance(core, before, since=before)
    at_point(core, before)
    return Decisions.joined(pieces)


class _Pieces:
    """Decisions of a batch that is added in pieces; the newest pieces can be dropped again."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._all: list[Decisions] = []
        self._marked = 0

    def __len__(self) -> int:
        return len(self._all)

    @property
    def newest(self) -> Decisions:
        """The last piece."""
        return self._all[-1]

    def add(self, piece: Decisions) -> None:
        """Append one piece."""
        self._all.append(piece)

    def mark(self) -> None:
        """Keep all pieces so far."""
        self._marked = len(self._all)

    def drop_unmarked(self) -> None:
        """Drop the pieces after the mark."""
        del self._all[self._marked :]

    def joined(self) -> Decisions:
        """Return all pieces as one batch."""
        return Decisions.joined(self._all) if self._all else Decisions.of(self._first, [])
