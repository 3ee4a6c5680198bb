"""Erasing: vectors and clusters taken out exactly, and changes undone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from linkstream.clusterer.base import Fixed, whole_number
from linkstream.clusterer.change import one_change
from linkstream.clusterer.reasons import Reasons
from linkstream.engine import events
from linkstream.engine.contract import JOINED, LINKED, Engine
from linkstream.engine.forest import FULL
from linkstream.engine.kept import share
from linkstream.engine.state import State
from linkstream.errors import ArgumentError, NotTrackedError, RemovedError, UndoError
from linkstream.identity import corrections, folding, grouping, limits, weights
from linkstream.identity.ledger import Ledger
from linkstream.identity.regrouping import Regrouping
from linkstream.identity.timeline import Timeline


class Erasing(Reasons):
    """The side of `Links` that takes back."""

    @one_change
    def remove(
        self,
        vector: npt.ArrayLike,
        *,
        x: npt.ArrayLike | None = None,
        cluster: int | None = None,
        weight: float | None = None,
    ) -> None:
        """Take a vector out, exactly: as if the sums had never seen it. Its label becomes −1.

        By number; with `x`, the vector itself, where vectors are not kept. Where they are not even
        tracked `remove(x)` alone, with the weight it came with, and the cluster that holds it if
        that is known: it is taken from the subcluster it is most similar to.
        """
        if self.track_vectors:
            if not (cluster is None and weight is None):
                raise ArgumentError(
                    "a cluster or a weight for a vector that is tracked",
                    expected="its number alone",
                    remedy="Both are known.",
                )
            node = self._holder(vector)  # type: ignore[arg-type]
            number = int(vector)  # type: ignore[arg-type]
            q = self._kept([number])[0] if x is None else self._only(x)
        else:
            number, q = -1, self._only(vector)
            node = self._likely_holder(q, cluster)
        light = self._synced().lights.get(number, 0)
        if not self.track_vectors:
            light = weights.lights(1.0 if weight is None else weight, 1)[0]
            light = FULL if node in self._ledger.locked else light
        self._refuse_hollow(node, q, light)
        engine = self._running()
        engine.note([(events.DROPPED, number)])
        engine.withdraw(q, light=light, target=node, member=number)
        self._enforce()

    def _only(self, x: npt.ArrayLike) -> Fixed:
        """A vector that the caller passes, where none are kept."""
        if self._keep is not None:
            raise ArgumentError(
                "a vector's coordinates, where vectors are kept",
                expected="its number alone",
                remedy="It is known: a vector's number is its place in order of arrival.",
            )
        only: Fixed = self._fixed(self._vector(x))[0]
        return only

    @one_change
    def forget(self, cluster: int) -> None:
        """Forget a cluster and all it held; if it comes back it is new."""
        live = self._live(cluster)
        self._replace(limits.forget(self.state(), [live], limits.ASKED))
        self._enforce()

    @one_change
    def undo(self, *, to: int | None = None) -> None:
        """Take back the last change or vector; or all from the event of sequence `to` on.

        The state is then, bit for bit, what it was. IDs given since are not used again. `redo`
        brings it back, until something else changes.
        """
        if to is not None:
            to = whole_number("to", to, "the event from which on all is undone", least=-(2**40))
        timeline = self._timeline("undo")
        stays = timeline.before(to)
        state, ledger = self._folded(timeline.until(stays))
        undone = self._undone_from(state.n_vectors, timeline)
        self._go_on(state, ledger, (events.UNDONE, int(timeline.sequences[stays])))
        self._undone = undone

    @one_change
    def redo(self) -> None:
        """Bring back what the last `undo` took, with the IDs it had; several, one after the other.

        UndoError where something else was changed since, or nothing was undone.
        """
        timeline = self._timeline("redo")
        after, last = timeline.redone(), timeline.taken[-1]
        before = self._running().n_vectors
        self._restore(last.n_vectors)
        state, ledger = self._folded(after)
        self._go_on(state, ledger, (events.REDONE, last.undone))
        if self._undone is not None:
            self._undone = self._undone[state.n_vectors - before :]

    # How it is done

    def _timeline(self, verb: str) -> Timeline:
        """What stands of the log, as far back as undo goes; refused where there is none."""
        if not (self.track_vectors and self._keeping):
            raise NotTrackedError(
                f"{verb} in a clusterer that does not keep its vectors",
                expected="track_vectors=True and keep_vectors=True",
                remedy="Save snapshots, and go back to one of them.",
            )
        if self._engine is None or self._keep is None:
            raise UndoError(
                f"{verb} where nothing was added",
                expected="a vector or a change",
                remedy="Undo goes back to the empty clusterer and no further.",
            )
        start = self._base.ledger.n_events
        state = self._engine.state()
        return Timeline.of(state.events[len(state.events) - (state.n_events - start) :], start)

    def _folded(self, timeline: Timeline) -> tuple[State, Ledger]:
        """The state and the ledger that events lead to; nothing has changed yet."""
        assert self._keep is not None, "looked at before"
        with self._interruptible():
            state = folding.state_after(self.state(), timeline, self._keep, self._base)
        return state, folding.ledger_after(self._synced(), timeline, self._base, state)

    def _undone_from(self, n: int, timeline: Timeline) -> Fixed | None:
        """The vectors from number n on, and those that can be redone already."""
        if self._elsewhere:
            return None
        gone = self._kept_rows(np.arange(n, self.n_vectors, dtype=np.int64))
        if self._undone is None or not timeline.taken:
            return gone
        both: Fixed = np.concatenate([gone, self._undone])
        return both

    def _go_on(self, state: State, ledger: Ledger, said: tuple[int, ...]) -> None:
        """Go on from another state and ledger, with an event that says why."""
        assert self._change is not None, "a verb is a change"
        engine = self._made(state)
        engine.note([said])
        self._engine, self._ledger = engine, ledger
        self._change.cut_kept(state.n_vectors)

    def _restore(self, n: int) -> None:
        """Keep so many vectors again that an undo took."""
        if self._elsewhere or self._keep is None or not n:
            return
        if self._undone is None or len(self._undone) < n:
            raise UndoError(
                f"a redo of {n} vectors that were not kept",
                expected="a snapshot that was saved with its history, by this version or later",
                remedy="Add the vectors again.",
            )
        self._keep.append(np.ascontiguousarray(self._undone[:n]))

    def _enforce(self) -> None:
        """See to it that the graph obeys the laws there are, by as few changes as it takes."""
        if not self._synced().laws:
            return
        here = self._laws()
        graph = Regrouping(self.state(), here.names)
        corrections.enforce(graph, here)
        if graph.rows:
            self._replace(graph.finish())

    def _refuse_hollow(self, node: int, q: Fixed, light: int) -> None:
        """A subcluster must not be left with vectors and no direction."""
        if self._hollow(node, q, light):
            raise ArgumentError(
                f"a vector that subcluster {node} cannot do without",
                expected="one of the vectors that make it up, and not the only prototype of others",
                remedy="forget() its cluster, or pass the very vector that was added.",
            )

    def _hollow(self, node: int, q: Fixed, light: int) -> bool:
        count, total = self._running().total_of(node)
        return is_hollow(count - 1, total - share(q, light))

    def _likely_holder(self, q: Fixed, cluster: int | None) -> int:
        if cluster is not None:
            live = self._live(cluster)
            return self._nearest_in(self._running(), q, live).target
        ranked = self._engine.ranked(q, 1) if self._engine else []
        if not ranked:
            raise RemovedError(
                "a vector to remove where there is none",
                expected="one that was added",
                remedy="Nothing is left to remove it from.",
            )
        return ranked[0].subcluster

    def _nearest_in(self, engine: Engine, q: Fixed, cluster: int) -> grouping.Place:
        """Where in a cluster a vector belongs: the subcluster it is most similar to."""
        limit = 32
        while True:
            ranked = engine.ranked(q, limit)
            best = next((c for c in ranked if c.cluster == cluster), None)
            if best is not None:
                joins = best.similarity >= best.join_threshold
                return grouping.Place(
                    cluster,
                    JOINED if joins else LINKED,
                    best.subcluster,
                    best.similarity,
                    best.join_threshold,
                )
            limit *= 8

    # What the whole has to do for its sides

    def _replace(self, state: State) -> Engine:
        """Go on from another state."""
        raise NotImplementedError

    def _begun(self, dimension: int) -> Engine:
        """The engine, now that the dimension is known."""
        raise NotImplementedError

    def _tend(self, before: int, *, since: int | None = None) -> Engine:
        """Heal and limit, where the stream has come to a place to do it."""
        raise NotImplementedError


def is_hollow(count: int, rest: npt.NDArray[np.int64]) -> bool:
    """Whether no so many vectors can have this sum, or their centroid would have no direction."""
    length = float(np.sqrt(np.square(rest.astype(np.float64)).sum()))
    longest = count * (2.0**30 + np.sqrt(len(rest))) * (1.0 + 1e-9)
    return bool((count and not rest.any()) or length > longest)
