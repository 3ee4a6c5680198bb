"""Links: the object people meet. Vectors in, lasting cluster IDs out."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream import saving
from linkstream.engine import choice, door, snapshot
from linkstream.engine.contract import Decision, Decisions, Engine
from linkstream.engine.fixed_point import VECTORS_MAX
from linkstream.engine.state import State
from linkstream.errors import ArgumentError
from linkstream.identity import aliases, settling
from linkstream.identity.healing import Healing
from linkstream.identity.settling import Settlement
from linkstream.paper.thresholds import Thresholds
from linkstream.presets import preset
from linkstream.saving import Saved
from linkstream.space import Space
from linkstream.views import EVIDENCE, Views


class Links(Views):
    """Clusters unit vectors as they arrive (Mansfield et al., "Links").

    Thresholds have no defaults: they belong to an encoder. Vectors are normalised at the door.
    Decisions do not depend on batch size, threads, machine or engine. Not safe to change from
    two threads at once.

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
        evidence: str = "nearest",
        heal: Healing | str | None = None,
    ) -> None:
        thresholds = Thresholds(cluster_similarity, subcluster_similarity, pair_similarity_max)
        self._healing = Healing.of(heal)
        self._aliases: dict[int, int] = {}
        state = State(thresholds, 0, bool(track_vectors), _whole_clusters(evidence))
        self._start(state, space, engine, threads)

    def _start(self, state: State, space: Space | None, engine: str, threads: int | None) -> None:
        if not (space is None or isinstance(space, Space)):
            raise ArgumentError(
                f"space is of type {type(space).__name__}",
                expected="a Space or None",
                remedy="Build it with linkstream.Space(mean=..., model=...).",
            )
        self._factory = choice.choose(engine, threads)
        self._space = space or Space()
        self._beginning = threading.Lock()
        self._origin = state  # what the engine starts from, once the dimension is known
        self._engine: Engine | None = self._factory.make(state) if state.dimension else None

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

    # Vectors in

    def add(self, x: npt.ArrayLike) -> Decision:
        """Take one vector; say at once which cluster it belongs to, and why."""
        if self._engine is not None and self._space.mean is None and self._healing is None:
            decision = self._engine.add_one(x)
            if decision is not None:
                return decision
        return self._add_rows(door.vector(x, dimension=self.dimension)).at(0)

    def add_many(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Take vectors in order; the same IDs as `add` one by one. All of them or, if one is
        not usable, none.
        """  # noqa: D205
        rows = door.vectors(X, dimension=self.dimension)
        if not len(rows):
            return np.empty(0, dtype=np.int64)
        return self._add_rows(rows).cluster

    def _add_rows(self, rows: npt.NDArray[np.float32]) -> Decisions:
        """Take rows, or raise an error before anything has changed."""
        if self._engine is None:
            with self._beginning:  # two threads may come with the first vectors
                return self._add_to(self._engine or self._new_engine(rows.shape[1]), rows)
        return self._add_to(self._engine, rows)

    def _add_to(self, engine: Engine, rows: npt.NDArray[np.float32]) -> Decisions:
        if engine.n_vectors + len(rows) > VECTORS_MAX:
            raise ArgumentError(
                f"{len(rows)} vectors after {engine.n_vectors}",
                expected=f"no more than {VECTORS_MAX} in one clusterer",
                remedy="Begin a new one, or one for each source of vectors.",
            )
        if self._healing is not None:
            return self._add_healing(engine, self._fixed(rows), self._healing)
        decisions = engine.add_floats(rows) if self._space.mean is None else None
        if decisions is None:
            decisions = engine.add(self._fixed(rows))
        self._engine = engine
        return decisions

    def _add_healing(
        self, engine: Engine, fixed: npt.NDArray[np.int32], healing: Healing
    ) -> Decisions:
        """Take vectors up to each place where clusters are healed, and heal them there."""
        taken, pieces = 0, []
        self._engine = engine
        while taken < len(fixed):
            mark = healing.after(engine.n_vectors)
            piece = engine.add(fixed[taken : taken + mark - engine.n_vectors])
            pieces.append(piece)
            taken += len(piece.cluster)
            if engine.n_vectors == mark:
                _, state = healing.run(engine.state(), self._factory.unions)
                engine = self._replace(state)
        return Decisions.joined(pieces)

    def _replace(self, state: State) -> Engine:
        """Go on from another state, of the same vectors."""
        assert self._engine is not None
        self._aliases.update(aliases.since(self._engine.state().n_events, state))
        self._engine = self._factory.make(state)
        return self._engine

    def _new_engine(self, dimension: int) -> Engine:
        return self._factory.make(replace(self._origin, dimension=dimension))

    # Putting clusters right

    def settle(self, apply: bool = False, *, thresholds: Thresholds | None = None) -> Settlement:
        """Compare all subclusters with one another: which clusters to join, which to cut.

        Proposals only, unless `apply`. The test is s~ with this clusterer's T_c and T_p, or with
        those given. Costs n²·d steps and 8·n² bytes for n subclusters.
        """
        if self._engine is None:
            return Settlement((), (), 0, 0, applied=apply)
        state = self._engine.state()
        test = thresholds or self.thresholds
        changes, after = settling.settle(state, test, self._factory.unions)
        if apply:
            self._replace(after)
        return replace(changes, applied=bool(apply))

    # State, files

    def state_hash(self) -> str:
        """Hex digest of the whole state; equal states, equal digests."""
        return saving.digest(Saved(self.state(), self._space, self._healing, self._aliases))

    def to_bytes(self) -> bytes:
        """A snapshot: plain arrays, checksummed, no pickle."""
        return saving.pack(Saved(self.state(), self._space, self._healing, self._aliases))

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
        links = cls.__new__(cls)
        links._healing, links._aliases = saved.healing, saved.aliases
        links._start(saved.state, saved.space, engine, threads)
        return links

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a snapshot to a file: wholly, or not at all."""
        snapshot.write(Path(path), self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str], **options: Any) -> Links:
        """Read a snapshot that `save` wrote; options are those of `from_bytes`.

        A damaged or hostile file gives SnapshotError.
        """
        return cls.from_bytes(Path(path).read_bytes(), **options)


def _whole_clusters(evidence: str) -> bool:
    if evidence not in EVIDENCE:
        raise ArgumentError(
            f"evidence={evidence!r}",
            expected=" or ".join(map(repr, EVIDENCE)),
            remedy="'nearest' is the paper's: the most similar subcluster alone decides.",
        )
    return evidence == EVIDENCE[1]
