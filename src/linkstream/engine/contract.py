"""What an engine is: vectors in, decisions and events out; both engines keep this contract.

An engine is a state machine, (state, vector) → (state, decision, events): no clock, no
randomness, no input or output. It takes fixed-point vectors (engine/fixed_point.py) that the
door has checked. A call that raises, where memory runs out for one, has changed nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt

from linkstream.engine.forest import LOOSE
from linkstream.engine.state import State
from linkstream.paper.thresholds import Thresholds

Kind = Literal["joined", "linked", "new"]
RULES = 1  # goes up whenever the same vectors would be decided otherwise than before
KINDS: tuple[Kind, ...] = ("joined", "linked", "new")
JOINED, LINKED, NEW = range(3)

Stop = Callable[[], bool]  # long work asks it now and then whether to end


@dataclass(frozen=True, slots=True)
class Decision:
    """What happened to one vector.

    `similarity` and `threshold` are those against J, the most similar subcluster (eq 19). Where
    nothing reaches the lowest threshold possible they are None: the outcome is then the same
    whoever is nearest. `sequence` is the vector's number, in order of arrival from 0.
    """

    cluster: int
    subcluster: int
    kind: Kind
    similarity: float | None
    threshold: float | None
    sequence: int

    def as_batch(self) -> Decisions:
        """The decision as a batch of one."""
        near = self.similarity is not None and self.threshold is not None
        figures = (self.similarity, self.threshold) if near else (math.nan, math.nan)
        row = (self.cluster, self.subcluster, KINDS.index(self.kind), *figures)
        return Decisions.of(self.sequence, [row])  # type: ignore[list-item]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "cluster": self.cluster,
            "subcluster": self.subcluster,
            "kind": self.kind,
            "similarity": self.similarity,
            "threshold": self.threshold,
            "margin": self.margin,
            "sequence": self.sequence,
        }

    @property
    def margin(self) -> float | None:
        """How far the similarity lies above (or below) the threshold it was judged by."""
        if self.similarity is None or self.threshold is None:
            return None
        return self.similarity - self.threshold


@dataclass(frozen=True, slots=True)
class Decisions:
    """Decisions of a batch as columns; NaN stands for a similarity that is None."""

    first_sequence: int
    cluster: npt.NDArray[np.int64]
    subcluster: npt.NDArray[np.int64]
    kind: npt.NDArray[np.int8]
    similarity: npt.NDArray[np.float64]
    threshold: npt.NDArray[np.float64]

    @classmethod
    def of(cls, first_sequence: int, rows: list[tuple[int, int, int, float, float]]) -> Decisions:
        """Decisions from rows of cluster, subcluster, kind, similarity and threshold."""
        cluster, subcluster, kind, score, threshold = zip(*rows, strict=True) if rows else ((),) * 5
        return cls(
            first_sequence=first_sequence,
            cluster=np.array(cluster, dtype=np.int64),
            subcluster=np.array(subcluster, dtype=np.int64),
            kind=np.array(kind, dtype=np.int8),
            similarity=np.array(score, dtype=np.float64),
            threshold=np.array(threshold, dtype=np.float64),
        )

    @classmethod
    def joined(cls, pieces: list[Decisions]) -> Decisions:
        """Decisions of one batch that was taken in pieces."""
        return cls(
            pieces[0].first_sequence,
            np.concatenate([piece.cluster for piece in pieces]),
            np.concatenate([piece.subcluster for piece in pieces]),
            np.concatenate([piece.kind for piece in pieces]),
            np.concatenate([piece.similarity for piece in pieces]),
            np.concatenate([piece.threshold for piece in pieces]),
        )

    def part(self, start: int, length: int) -> Decisions:
        """Some of them, one after the other."""
        here = slice(start, start + length)
        return Decisions(
            self.first_sequence + start,
            self.cluster[here],
            self.subcluster[here],
            self.kind[here],
            self.similarity[here],
            self.threshold[here],
        )

    def at(self, index: int) -> Decision:
        """The decision of one row."""
        similarity = float(self.similarity[index])
        near = similarity == similarity  # NaN differs from itself
        return Decision(
            cluster=int(self.cluster[index]),
            subcluster=int(self.subcluster[index]),
            kind=KINDS[self.kind[index]],
            similarity=similarity if near else None,
            threshold=float(self.threshold[index]) if near else None,
            sequence=self.first_sequence + index,
        )


@dataclass(frozen=True, slots=True)
class Candidate:
    """A subcluster as seen from one vector: how similar, and what each test would ask."""

    subcluster: int
    cluster: int
    count: int
    similarity: float
    join_threshold: float
    link_threshold: float


class Keep(Protocol):
    """Fixed-point vectors in order of arrival, kept so that they can be moved or removed."""

    def __len__(self) -> int:
        """How many are kept."""

    def append(self, rows: npt.NDArray[np.int32]) -> None:
        """Keep some more."""

    def rows(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """The vectors of these numbers, each below the length."""

    def cut(self, size: int) -> None:
        """Keep only the first so many."""


class Engine(Protocol):
    """A Links engine. Vectors are rows of fixed-point int32, checked at the door."""

    name: ClassVar[str]
    thresholds: Thresholds
    dimension: int
    track_vectors: bool
    cluster_evidence: bool

    @property
    def n_vectors(self) -> int:
        """Vectors added so far."""

    @property
    def n_subclusters(self) -> int:
        """Nodes of the graph."""

    @property
    def n_clusters(self) -> int:
        """Connected components of the graph."""

    @property
    def n_cluster_ids(self) -> int:
        """Cluster IDs given so far; they are never used again."""

    def begin(self) -> None:
        """Begin a change of several calls. A call outside of one is a change of its own.

        A change is kept wholly or taken back. A call that raises has changed nothing; within a
        change, nothing but `rollback` may follow it.
        """

    def commit(self) -> None:
        """Keep all calls since `begin`."""

    def rollback(self) -> None:
        """Take back all calls since `begin`: state, events, IDs given and vectors kept."""

    def add(self, vectors: npt.NDArray[np.int32], stop: Stop | None = None) -> Decisions:
        """Take vectors in order of arrival; the same as taking them one by one.

        `stop` is called now and then, between two vectors. Where it says True no more are taken:
        there are fewer decisions than vectors.
        """

    def add_floats(
        self, rows: npt.NDArray[np.float32], stop: Stop | None = None
    ) -> Decisions | None:
        """Take rows before they are fixed-point, if the engine can.

        None: nothing has changed, because a row's norm is out of bounds or the engine cannot.
        """

    def add_one(self, x: object) -> Decision | None:
        """Take one vector straight from the caller, if it is a float32 array and the engine can."""

    def ask(self, vectors: npt.NDArray[np.int32]) -> Decisions:
        """What the tests of eqs 20 and 21 say of each vector; cluster −1 where it would be new."""

    def take(
        self,
        vector: npt.NDArray[np.int32],
        *,
        light: int = 0,
        outcome: int = -1,
        target: int = -1,
        member: int = -1,
        firm: int = LOOSE,
    ) -> Decision:
        """Take one vector (a row of its own) that weighs `light` 256ths less than a full one.

        With an outcome it is not assessed: JOINED to the target, LINKED to it by an edge so firm,
        or NEW. With a member's number it is that vector, withdrawn before, put in a new place.
        """

    def receive_all(
        self,
        totals: npt.NDArray[np.int64],
        sizes: npt.NDArray[np.int64],
        lights: npt.NDArray[np.int64],
    ) -> Decisions:
        """The same as `receive` for each total, one after the other; vectors are not kept.

        `lights` are those of all vectors: so many for each total as `sizes` says. The decisions
        are one a total.
        """

    def receive(
        self,
        total: npt.NDArray[np.int64],
        lights: npt.NDArray[np.int64],
        *,
        rows: npt.NDArray[np.int32] | None = None,
        flags: int = 0,
        apart: bool = False,
    ) -> Decision:
        """Take vectors together: their sum, how many 256ths less each weighs, the vectors if kept.

        They come to one subcluster, under the tests of one vector with s~(k, k') for the k' of
        them; or, `apart`, begin a cluster. With flags, that subcluster gets them.
        """

    def withdraw(
        self, vector: npt.NDArray[np.int32], *, light: int, target: int, member: int
    ) -> None:
        """Take a vector's share out of the subcluster that holds it, exactly.

        Member −1: its number is not known.
        """

    def flag(self, number: int, flags: int) -> None:
        """Lock a subcluster, or give it a claim to the ID at a split (forest.LOCKED, CLAIM)."""

    def note(self, rows: Iterable[tuple[int, ...]]) -> None:
        """Write events of what is not the engine's to do: code and numbers of each."""

    def ranked(self, vector: npt.NDArray[np.int32], limit: int) -> list[Candidate]:
        """The most similar subclusters, best first (tie: the older)."""

    def holder(self, member: int) -> int:
        """The subcluster that holds a vector, −1 if it was removed; needs `track_vectors`."""

    def cluster_of(self, number: int) -> int:
        """The cluster of a subcluster that is there; −1 if it is not."""

    def has_cluster(self, cluster: int) -> bool:
        """Whether a cluster is there."""

    def total_of(self, number: int) -> tuple[int, npt.NDArray[np.int64]]:
        """How many vectors a subcluster holds, and their sum; 0 and zeros if it is not there."""

    def oldest_event(self) -> int:
        """The sequence number from which on events are kept."""

    def labels(self) -> npt.NDArray[np.int64]:
        """Current cluster of each vector, in order of arrival; needs `track_vectors`."""

    def event_rows(self, since: int) -> tuple[int, npt.NDArray[np.int64]]:
        """Events kept from sequence `since` on: the first one's sequence, and their rows."""

    def state(self) -> State:
        """All there is to know, as plain arrays that alias nothing."""
