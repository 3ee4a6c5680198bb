"""Links: the object people meet. Vectors in, lasting cluster IDs out."""

from __future__ import annotations

import copy
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream import saving
from linkstream.clusterer.base import check_yes_no, whole_number
from linkstream.clusterer.change import one_change
from linkstream.clusterer.joining import Joining
from linkstream.clusterer.views import EVIDENCE
from linkstream.engine import choice, events, placing
from linkstream.engine.contract import Engine, Keep
from linkstream.engine.state import State
from linkstream.errors import ArgumentError
from linkstream.identity import settling
from linkstream.identity.folding import Base
from linkstream.identity.healing import Healing
from linkstream.identity.ledger import Ledger
from linkstream.identity.limits import Limits
from linkstream.identity.settling import Settlement
from linkstream.paper.thresholds import Thresholds
from linkstream.presets import preset
from linkstream.saving import Saved
from linkstream.space import Space


class Links(Joining):
    """Clusters unit vectors as they arrive (Mansfield et al., "Links").

    Thresholds have no defaults: they belong to an encoder. Vectors are normalised at the door.
    Decisions do not depend on batch size, threads, machine or engine. Not safe to change from
    two threads at once.

    `copy.copy`, `copy.deepcopy` and `pickle` make a clusterer of its own that goes on with the
    same decisions. A pickle holds a snapshot, but opening any pickle may run code: to read bytes
    that others wrote, use `to_bytes` and `from_bytes`.

    >>> links = Links(0.7, 0.6, 0.9)
    >>> links.add([1.0, 0.0, 0.1]).cluster, links.add([0.0, 1.0, 0.0]).cluster
    (0, 1)
    >>> links.add_many([[0.9, 0.1, 0.0], [0.0, 0.9, 0.2]])
    array([0, 1])
    """

    def __init__(
        self,
        cluster_similarity: float,
        subcluster_similarity: float,
        pair_similarity_max: float,
        *,
        space: Space | None = None,
        engine: str = "auto",
        threads: int | None = None,
        track_vectors: bool = True,
        keep_vectors: bool | None = None,
        evidence: str = "nearest",
        heal: Healing | str | None = None,
        max_subclusters: int | None = None,
        max_idle: int | None = None,
        min_size: int = 1,
    ) -> None:
        thresholds = Thresholds(cluster_similarity, subcluster_similarity, pair_similarity_max)
        state = State(thresholds, 0, bool(track_vectors), _whole_clusters(evidence))
        self._healing = Healing.of(heal)
        self._limits = Limits(max_subclusters, max_idle)
        self._min_size = whole_number("min_size", min_size, "how many vectors make a cluster")
        self._keeping = _keeping(keep_vectors, track_vectors=bool(track_vectors))
        self._start(state, Ledger(tracked=state.track_vectors), space, engine, threads)

    def _start(
        self,
        state: State,
        ledger: Ledger,
        space: Space | None,
        engine: str,
        threads: int | None,
        kept: npt.NDArray[np.int32] | None = None,
        undone: npt.NDArray[np.int32] | None = None,
    ) -> None:
        if not (space is None or isinstance(space, Space)):
            raise ArgumentError(
                f"space is of type {type(space).__name__}",
                expected="a Space or None",
                remedy="Build it with linkstream.Space(mean=..., model=...).",
            )
        self._factory = choice.choose(engine, threads)
        self._run_by: dict[str, Any] = {"engine": engine, "threads": threads}
        self._space = space or Space()
        self._changing = threading.RLock()
        self._origin = state  # what the engine starts from, once the dimension is known
        self._ledger = ledger
        empty = replace(self._empty(), dimension=state.dimension)
        whole = state.n_events == len(state.events)
        self._base = Base(empty, Ledger()) if whole else Base(state, copy.deepcopy(ledger))
        self._straight = self._space.mean is None and self._healing is None and not self._limits
        self._keep, self._undone = None, undone
        self._engine: Engine | None = None
        self._synced()
        if state.dimension:
            self._engine = self._new_engine(state)
            if self._keep is not None and kept is not None:
                self._keep.append(kept)

    @classmethod
    def from_thresholds(cls, thresholds: Thresholds, **options: Any) -> Links:
        """A clusterer with these thresholds; options are those of `Links`."""
        return cls(
            thresholds.cluster_similarity,
            thresholds.subcluster_similarity,
            thresholds.pair_similarity_max,
            **options,
        )

    @classmethod
    def preset(cls, name: str, **options: Any) -> Links:
        """A clusterer for an encoder, with measured thresholds (docs/tuning.md).

        >>> Links.preset("arcface").evidence
        'cluster'
        """
        chosen = preset(name)
        return cls.from_thresholds(chosen.thresholds, **{**chosen.options, **options})

    def _replace(self, state: State) -> Engine:
        """Go on from another state."""
        self._engine = self._made(state)
        self._synced()
        return self._engine

    def _begun(self, dimension: int) -> Engine:
        if self._engine is None:
            self._engine = self._new_engine(replace(self._origin, dimension=dimension))
        return self._engine

    def _new_engine(self, state: State) -> Engine:
        if self._keeping and self._keep is None:
            self._keep = self._factory.keep(state.dimension)
        return self._made(state)

    def _empty(self) -> State:
        origin = self._origin
        return State(origin.thresholds, 0, origin.track_vectors, origin.cluster_evidence)

    @one_change
    def settle(self, apply: bool = False, *, thresholds: Thresholds | None = None) -> Settlement:
        """Compare all subclusters with one another: which clusters to join, which to cut.

        Proposals only, unless `apply`. The test is s~ with this clusterer's T_c and T_p, or with
        those given. Costs n²·d steps and 8·n² bytes for n subclusters.
        """
        if self._engine is None:
            return Settlement((), (), 0, 0, applied=apply)
        if not (thresholds is None or isinstance(thresholds, Thresholds)):
            raise ArgumentError(
                f"thresholds of type {type(thresholds).__name__}",
                expected="Thresholds or None",
                remedy="None takes those of the clusterer.",
            )
        check_yes_no("apply", apply)
        state = self._engine.state()
        test = thresholds or self.thresholds
        laws, unite = self._laws(), self._factory.unions
        with self._interruptible():
            changes, after = settling.settle(state, test, unite, laws=laws, asked=True)
        if apply:
            self._replace(after)
        return replace(changes, applied=bool(apply))

    def state_hash(self) -> str:
        """Hex digest of the whole state; equal states, equal digests."""
        return saving.digest(self._saved())

    def to_bytes(self, *, history: bool = True) -> bytes:
        """A snapshot: plain arrays, checksummed, no pickle.

        Without history it is smaller: what came before cannot be undone or redone from it any more.
        """
        saved = self._saved_with_vectors()
        if not check_yes_no("history", history):
            saved = replace(saved, state=replace(saved.state, events=saved.state.events[:0]))
        elif self._undone is not None and len(self._undone) and self._timeline("redo").taken:
            saved = replace(saved, undone=self._undone)
        return saving.pack(saved)

    def _saved_with_vectors(self) -> Saved:
        kept = None
        if self._keep is not None and self.n_vectors:
            kept = self._keep.rows(np.arange(self.n_vectors, dtype=np.int64))
        return replace(self._saved(), kept=kept)

    def _saved(self) -> Saved:
        ledger = self._synced()
        return Saved(
            self.state(),
            self._space,
            self._healing,
            ledger,
            self._limits,
            self._min_size,
            self._keeping,
        )

    # For one who keeps the log and the vectors elsewhere (the store)

    def _without_history(self) -> Saved:
        """All there is to save but the log and the vectors; nothing of it changes any more."""
        saved = self._saved()
        state = replace(saved.state, events=saved.state.events[:0])
        return replace(saved, state=state, ledger=copy.deepcopy(saved.ledger), keeping=False)

    def _lean_on(self, keep: Keep | None) -> None:
        """Have vectors by number from elsewhere. Undo needs `_recall` before."""
        self._elsewhere, self._keep, self._keeping = True, keep, keep is not None
        self._origin = self._empty()
        self._base = Base(replace(self._origin, dimension=self.dimension or 0), Ledger())

    @one_change
    def _recall(self, log: npt.NDArray[np.int64], base: Base | None) -> None:
        """Take over the log that is kept elsewhere, from a base on (None: from nothing)."""
        if self._engine is not None:
            self._replace(replace(self.state(), events=log))
        if base is not None:
            self._base = base

    @one_change
    def drain_events(self) -> list[events.Event]:
        """All events kept, which are then forgotten: what came before cannot be undone any more."""
        drained = self.events(self._oldest_event())
        if self._engine is not None:
            state = self.state()
            state = replace(state, events=state.events[:0])
            self._replace(state)
            self._base = Base(state, copy.deepcopy(self._ledger))
        return drained

    def without_vectors(self) -> Links:
        """A copy that knows its clusters, not which vectors are in them: what a shard sends.

        Raises:
            ArgumentError: people said something of single vectors; it would be lost.
        """
        saved = self._saved()
        if saved.ledger.pins:
            raise ArgumentError(
                "a clusterer with constraints, groups or prototypes",
                expected="one of whose vectors nothing was said",
                remedy="Absorb it as it is, into a clusterer made with track_vectors=True.",
            )
        nothing = np.empty(0, dtype=np.int64)
        state = replace(
            saved.state, track_vectors=False, vectors=nothing, events=saved.state.events[:0]
        )
        ledger = replace(copy.deepcopy(saved.ledger), lights={})  # the state says what they weigh
        return self._of(replace(saved, state=state, ledger=ledger, keeping=False), self.engine)

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        *,
        space: Space | None = None,
        engine: str = "auto",
        threads: int | None = None,
    ) -> Links:
        """A clusterer that goes on from a snapshot with the very same decisions.

        With `space=`, that of the vectors to come: SpaceError if the snapshot has another one.
        """
        saved = saving.unpack(data)
        if space is not None:
            saved.space.check_same(space)
        return cls._of(saved, engine, threads)

    @classmethod
    def _of(cls, saved: Saved, engine: str, threads: int | None = None) -> Links:
        """A clusterer as it was saved."""
        links = cls.__new__(cls)
        links._healing, links._limits = saved.healing, saved.limits
        links._min_size = saved.min_size
        links._keeping = saved.keeping
        links._start(
            saved.state, saved.ledger, saved.space, engine, threads, saved.kept, saved.undone
        )
        return links

    # Copies are made from a snapshot: an engine is never shared, and never pickled.

    def __copy__(self) -> Links:
        """A clusterer of its own with the same state, engine and threads, as `deepcopy` makes."""
        copied = type(self).from_bytes(self.to_bytes(), **self._run_by)
        copied._last = self._last
        if not self._elsewhere:
            copied._base = self._base  # undo goes back as far; a base never changes
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> Links:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), self.to_bytes(), self._run_by)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a snapshot to a file: wholly, or not at all.

        Raises:
            SnapshotError: `load` would refuse this state. The file is left as it was.
        """
        saved = self._saved_with_vectors()
        saving.check(saved)
        placing.write(Path(path), saving.pack(saved))

    @classmethod
    def load(cls, path: str | os.PathLike[str], **options: Any) -> Links:
        """Read a snapshot that `save` wrote; options are those of `from_bytes`.

        A damaged or hostile file gives SnapshotError.
        """
        return cls.from_bytes(Path(path).read_bytes(), **options)


def _unpickled(kind: type[Links], data: bytes, run_by: dict[str, Any]) -> Links:
    """Make the clusterer that a pickle holds the snapshot of."""
    return kind.from_bytes(data, **run_by)


def _whole_clusters(evidence: str) -> bool:
    if evidence not in EVIDENCE:
        raise ArgumentError(
            f"evidence={evidence!r}",
            expected=" or ".join(map(repr, EVIDENCE)),
            remedy="'nearest' is the paper's: the most similar subcluster alone decides.",
        )
    return evidence == EVIDENCE[1]


def _keeping(keep_vectors: bool | None, *, track_vectors: bool) -> bool:
    if keep_vectors and not track_vectors:
        raise ArgumentError(
            "keep_vectors=True with track_vectors=False",
            expected="vectors that are tracked",
            remedy="Leave track_vectors=True; vectors are then kept too, unless you say otherwise.",
        )
    return track_vectors if keep_vectors is None else bool(keep_vectors)
