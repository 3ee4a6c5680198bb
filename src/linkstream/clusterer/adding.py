"""Adding: vectors in, decisions out; one by one, in batches, in groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from linkstream.clusterer.change import Stopped, one_change
from linkstream.clusterer.people import People
from linkstream.engine import events
from linkstream.engine.contract import JOINED, KINDS, NEW, Decision, Decisions, Engine, Stop
from linkstream.engine.forest import FULL
from linkstream.engine.state import State
from linkstream.errors import ArgumentError
from linkstream.identity import grouping, weights

_PIECE = 10_000  # vectors after which the log is read, where all of it is not kept


class Adding(People):
    """The side of `Links` that vectors come in by."""

    @property
    def last_decisions(self) -> Decisions | None:
        """What was decided of each vector of the last `add_many` or `add_group`, as columns."""
        return self._last

    def add(self, x: npt.ArrayLike, *, weight: float = 1.0, group: str | None = None) -> Decision:
        """Take one vector; say at once which cluster it belongs to, and why.

        A vector of low quality may weigh less than 1; with weight 0 it is asked about and nothing
        is learnt. Vectors of one `group` were seen together: they get different clusters.
        """
        full = type(weight) is float and weight == 1.0
        if full and group is None and self._direct and self._engine is not None:
            decision = self._engine.add_one(x)
            if decision is not None:
                return decision
        rows = self._vector(x)
        return self._add_alone(rows, weight, group)

    @one_change
    def _add_alone(
        self, rows: npt.NDArray[np.float32], weight: float, group: str | None
    ) -> Decision:
        return self._add_rows(rows, weight, group).at(0)

    def add_many(
        self, X: npt.ArrayLike, *, weight: npt.ArrayLike = 1.0, group: str | None = None
    ) -> npt.NDArray[np.int64]:
        """Take vectors in order; the same IDs as `add` one by one. All of them or, if one is
        not usable, none. `weight` is one for all, or one for each.

        Ctrl-C ends it between two vectors: those before were taken, with all that was due after
        them, and `last_decisions` has their IDs. Adding the others later gives the very IDs that
        all at once would have got.
        """  # noqa: D205
        rows = self._vectors(X)
        if not len(rows):
            return np.empty(0, dtype=np.int64)
        return self._add_batch(rows, weight, group)

    @one_change
    def _add_batch(
        self, rows: npt.NDArray[np.float32], weight: npt.ArrayLike, group: str | None
    ) -> npt.NDArray[np.int64]:
        decisions = self._add_rows(rows, weight, group)
        self._last = decisions
        return decisions.cluster.copy()

    @one_change
    def add_group(
        self, X: npt.ArrayLike, *, key: str | None = None, weight: npt.ArrayLike = 1.0
    ) -> npt.NDArray[np.int64]:
        """Take vectors seen together, as faces of one photo are: all get different clusters.

        Of all ways to give each its own, the one with the greatest total similarity is taken.
        Groups of one `key` are one group.
        """
        _check_key(key)
        rows = self._vectors(X)
        if not len(rows):
            return np.empty(0, dtype=np.int64)
        lights = weights.lights(weight, len(rows))
        self._last = decisions = self._add_together(rows, lights, key)
        return decisions.cluster.copy()

    def _add_rows(
        self, rows: npt.NDArray[np.float32], weight: npt.ArrayLike, group: str | None
    ) -> Decisions:
        """Take rows, or raise an error before anything has changed."""
        _check_key(group)
        if group is not None or type(weight) not in (int, float) or weight != 1:
            return self._add_each(rows, weights.lights(weight, len(rows)), group)
        self._check_room(len(rows))
        if self._engine is None:
            fixed = self._fixed(rows)
            return self._add_fixed(self._begun(rows.shape[1]), fixed)
        decisions = self._engine.add_floats(rows, self._stop) if self._direct else None
        return decisions or self._add_fixed(self._engine, self._fixed(rows))

    def _add_fixed(self, engine: Engine, fixed: npt.NDArray[np.int32]) -> Decisions:
        watched = self._healing is not None or self._limits or not self.track_vectors
        return self._add_tended(engine, fixed) if watched else engine.add(fixed, self._stop)

    @property
    def _stop(self) -> Stop | None:
        """What long work asks whether somebody has pressed Ctrl-C."""
        return None if self._change is None else self._change.interrupts.stop

    def _add_tended(self, engine: Engine, fixed: npt.NDArray[np.int32]) -> Decisions:
        """Take vectors up to each place where there is something to see to, and see to it there."""
        taken, pieces = 0, _Pieces(engine.n_vectors)
        stop = self._stop
        while taken < len(fixed) and not (taken and stop is not None and stop()):
            before = engine.n_vectors
            room = self._limits.room(before, engine.n_subclusters)
            if self._healing is not None:
                room = min(room, self._healing.after(before) - before)
            if not self.track_vectors:
                room = min(room, _PIECE)
            pieces.add(engine.add(fixed[taken : taken + room], stop))
            taken += len(pieces.newest.cluster)
            if not self._tended(before, pieces):
                break
            engine = self._running()
        return pieces.joined()

    def _tended(self, before: int, pieces: _Pieces) -> bool:
        """See to what is due after vectors; False where Ctrl-C came: only what was whole stays."""
        assert self._change is not None, "vectors come within a change"
        engine = self._engine
        try:
            self._tend(before)
        except Stopped:
            self._change.back_to_mark()
            pieces.drop_unmarked()
            return False
        if self._engine is not engine:
            self._change.mark()
            pieces.mark()
        return True

    def _add_each(
        self, rows: npt.NDArray[np.float32], lights: list[int], group: str | None
    ) -> Decisions:
        """Take vectors one by one: each in its group, or of its weight."""
        fixed = self._fixed(rows)
        self._check_room(len(rows))
        pieces, stop = _Pieces(self.n_vectors), self._stop
        for q, light in zip(fixed, lights, strict=True):
            if pieces and stop is not None and stop():
                break
            if light == FULL:
                pieces.add(self._asked(q, group))
                continue
            engine = self._begun(rows.shape[1])
            before = engine.n_vectors
            if group is not None:
                pieces.add(self._place_together(q[np.newaxis], [light], group))
            else:
                pieces.add(engine.take(q, light=light).as_batch())
                if not self._tended(before, pieces):
                    break
        return pieces.joined()

    def _asked(self, q: npt.NDArray[np.int32], group: str | None) -> Decisions:
        """What would be decided of a vector; nothing is learnt."""
        nowhere = Decision(-1, -1, "new", None, None, self.n_vectors).as_batch()
        if self._engine is None:
            return nowhere
        if group is None:
            return self._engine.ask(q[np.newaxis])
        (place,) = grouping.assign(self._engine, q[np.newaxis], barred=self._mates(group))
        if place.outcome == NEW:
            return nowhere
        kind, node = KINDS[place.outcome], place.target if place.outcome == JOINED else -1
        figures = place.similarity, place.threshold, self.n_vectors
        return Decision(place.cluster, node, kind, *figures).as_batch()

    def _mates(self, key: str | None) -> set[int]:
        """Clusters that hold vectors of a group."""
        ledger, engine = self._synced(), self._running()
        group = ledger.groups[ledger.keys[key]] if key in ledger.keys else []
        return {engine.cluster_of(node) for node in ledger.nodes(group)}

    def _add_together(
        self, rows: npt.NDArray[np.float32], lights: list[int], key: str | None
    ) -> Decisions:
        if FULL in lights:
            raise ArgumentError(
                "a group with a vector of weight 0",
                expected="weights above 0",
                remedy="Leave such vectors out, or ask about them with predict().",
            )
        fixed = self._fixed(rows)
        self._check_room(len(rows))
        self._begun(rows.shape[1])
        return self._place_together(fixed, lights, key)

    def _place_together(
        self, fixed: npt.NDArray[np.int32], lights: list[int], key: str | None
    ) -> Decisions:
        """Give each vector of a group its cluster."""
        engine, ledger = self._running(), self._synced()
        before = engine.n_vectors
        places = grouping.assign(engine, fixed, barred=self._mates(key))
        text = -1 if key is None else ledger.number(key)
        engine.note([(events.GROUPED, text, len(fixed))])
        pieces = []
        for q, light, place in zip(fixed, lights, places, strict=True):
            taken = engine.take(
                q, light=light, outcome=place.outcome, target=place.target, firm=place.firm
            )
            found = place.outcome != NEW
            taken = replace(
                taken,
                similarity=place.similarity if found else None,
                threshold=place.threshold if found else None,
            )
            pieces.append(taken.as_batch())
        self._synced()
        self._tend(before, since=before)
        return Decisions.joined(pieces)

    def _tend(self, before: int, *, since: int | None = None) -> Engine:
        """Heal and limit, where the stream has come to a place to do it; read the log.

        What vectors from `since` on came to is not forgotten; None: of the newest alone.
        """
        engine = self._running()
        if self._healing is not None and self._healing.after(before) <= engine.n_vectors:
            laws = self._laws()
            with self._interruptible():
                _, state = self._healing.run(engine.state(), self._factory.unions, laws)
            engine = self._replace(state)
        if self._limits and self._limits.exceeded(before, engine.n_vectors, engine.n_subclusters):
            state = engine.state()
            since = engine.n_vectors - 1 if since is None else since
            engine = self._replace(self._limits.apply(state, *self._protected(state), since))
            self._ledger.tidy()
        if not self.track_vectors:
            self._synced()
        return engine

    def _protected(self, state: State) -> tuple[npt.NDArray[np.bool_], set[int]]:
        """Subclusters that no limit makes forgotten, and clusters of which one must stay."""
        ledger = self._synced()
        pins = [pin for law in ledger.laws for side in law.sides for pin in side]
        cared: npt.NDArray[np.bool_] = np.isin(state.numbers, ledger.nodes(pins))
        return cared | (state.flags > 0), set(ledger.names)


class _Pieces:
    """Decisions of a batch that is taken in pieces, of which the newest may have to go again."""

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
        """Take in one more."""
        self._all.append(piece)

    def mark(self) -> None:
        """Note that all pieces so far stay."""
        self._marked = len(self._all)

    def drop_unmarked(self) -> None:
        """Leave out what came after the mark."""
        del self._all[self._marked :]

    def joined(self) -> Decisions:
        """All of them as one batch."""
        return Decisions.joined(self._all) if self._all else Decisions.of(self._first, [])


def _check_key(key: object) -> None:
    if not (key is None or isinstance(key, str)):
        raise ArgumentError(
            f"a group's key of type {type(key).__name__}",
            expected="a text",
            remedy="Name the photo, or whatever the vectors were seen in.",
        )
