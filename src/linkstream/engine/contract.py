"""The interface of an engine, which both engines implement.

An engine is a state machine, (state, vector) → (state, decision, events): it uses no clock, no
randomness, no input and no output. A call that raises an error has changed nothing; this includes
MemoryError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from linkstream.engine.cluster_index import ClusterIndex
from linkstream.engine.decisions import HELD as HELD
from linkstream.engine.decisions import JOINED as JOINED
from linkstream.engine.decisions import KINDS as KINDS
from linkstream.engine.decisions import LINKED as LINKED
from linkstream.engine.decisions import NEW as NEW
from linkstream.engine.decisions import Decision as Decision
from linkstream.engine.decisions import Decisions as Decisions
from linkstream.engine.decisions import Kind as Kind
from linkstream.engine.forest import TESTED
from linkstream.engine.linkage import Blocs, Floats, Progress, Restrictions, Unions
from linkstream.engine.policy import Doubt
from linkstream.engine.regroup import Regrouped
from linkstream.engine.state import Fixed, Integers, State
from linkstream.paper.thresholds import Thresholds

RULES = 1  # increased whenever the same vectors would get other decisions than before

Wholes = tuple[Integers, npt.NDArray[np.float64], npt.NDArray[np.float64]]
Stop = Callable[[], bool]  # called between vectors; True ends the call there


@dataclass(frozen=True, slots=True)
class Candidate:
    """A subcluster, its similarity to one vector, and the thresholds to join and to link to it."""

    subcluster: int
    cluster: int
    count: int
    similarity: float
    join_threshold: float
    link_threshold: float


class VectorStore(Protocol):
    """Fixed-point vectors in order of arrival, kept so that they can be moved or removed.

    It outlives the engines that append to it.
    """

    def __len__(self) -> int:
        """Return the number of vectors."""

    def append(self, rows: Fixed) -> None:
        """Append vectors."""

    def rows(self, numbers: npt.NDArray[np.int64]) -> Fixed:
        """Return the vectors of these numbers, each below the length."""

    def cut(self, size: int) -> None:
        """Keep only the first `size` vectors."""


@dataclass(frozen=True, slots=True)
class Requirements:
    """What corrections require of groups.

    Attributes:
        barred: pairs of subclusters, by number, that stay apart; so do those that absorb them.
        labels: labels of clusters, by ID. Clusters of different labels are never united, and a
            labelled one keeps its ID.
    """

    barred: frozenset[tuple[int, int]] = frozenset()
    labels: Mapping[int, int] = field(default_factory=dict)


class Subclusters(Protocol):
    """Subclusters that are compared with one another: of an engine, or of a state (totals.py)."""

    def outline(self) -> State:
        """Return the state; sums, vectors and events may be missing."""

    def unions(
        self,
        blocs: Blocs,
        thresholds: Thresholds,
        restrictions: Restrictions,
        progress: Progress | None,
    ) -> Unions:
        """Unite rows of subclusters by margin (engine/linkage.py); change nothing.

        The caller must not change the subclusters meanwhile, not even in `progress`.
        """

    def totals(self, numbers: Integers, places: Integers, n: int) -> Integers:
        """Return n sums: row i is the sum of the subclusters whose place is i."""


class Engine(Subclusters, Protocol):
    """A Links engine.

    Vectors come in by `add` (rows in order of arrival; `add_one` is its fast path for one vector),
    by `place` (one vector of less weight, or with a given outcome) and by `absorb` (sums of
    vectors). `missing_weight` is what a vector lacks to the full weight, in 256ths: 0 is full
    weight, 256 is weight zero.
    """

    name: ClassVar[str]
    thresholds: Thresholds
    dimension: int
    track_vectors: bool
    cluster_evidence: bool
    clusters: ClusterIndex

    @property
    def n_vectors(self) -> int:
        """Return the number of vectors added so far."""

    @property
    def n_events(self) -> int:
        """Return the number of events so far: the sequence number of the next one."""

    @property
    def n_subclusters(self) -> int:
        """Return the number of nodes of the graph."""

    @property
    def n_clusters(self) -> int:
        """Return the number of connected components of the graph."""

    @property
    def n_cluster_ids(self) -> int:
        """Return the number of cluster IDs given so far; they are never reused."""

    def begin(self) -> None:
        """Begin a change of several calls. A call outside of a change is a change of its own.

        After a call within a change has raised an error, only `rollback` may follow.
        """

    def commit(self, *, keep: bool = False) -> None:
        """Keep all calls since `begin`.

        A change without events leaves earlier changes as they are; any other that is not kept ends
        all that were kept.

        Args:
            keep: whether `take_back` may be called for the change; old changes are dropped to stay
                within a bound of memory.
        """

    @property
    def can_keep(self) -> bool:
        """Return whether the open change is small enough to be kept."""

    @property
    def n_kept(self) -> int:
        """Return how many of the newest changes `take_back` can take back."""

    def take_back(self, n: int, code: int, number: int) -> None:
        """Take back the newest changes, outside of a change.

        The state is that before them; no cluster is due to be settled. Their events stay, numbers
        that were given are not given again, and what corrections require must be told again.

        Args:
            n: how many changes.
            code: the kind of the event that tells of it.
            number: the number of that event.
        """

    def rollback(self) -> None:
        """Take back all calls since `begin`: state, events, IDs and stored vectors."""

    def add(self, rows: Fixed | npt.NDArray[np.float32], stop: Stop | None = None) -> Decisions:
        """Add vectors in order of arrival; the result is that of adding them one by one.

        Args:
            rows: fixed-point vectors (int32), or vectors as they come (float32).
            stop: called now and then between two vectors. If it returns True, no more vectors are
                added, and there are fewer decisions than vectors.

        Raises:
            VectorError: a float32 row's norm is out of bounds; no vector was added.
        """

    def add_one(self, x: object) -> Decision | None:
        """Add one float32 vector in the fewest steps.

        Return None, and change nothing, if `x` is not such a vector, if another thread uses the
        engine, or if the engine has no such path; the caller then uses `add`.
        """

    def ask(self, vectors: Fixed) -> Decisions:
        """Return what equations 20 and 21 say of each vector; cluster −1 if it would be new."""

    def place(
        self,
        vector: Fixed,
        *,
        missing_weight: int = 0,
        outcome: int = -1,
        target: int = -1,
        member: int = -1,
        rule: int = TESTED,
    ) -> Decision:
        """Place one fixed-point vector, a new one or one that was withdrawn.

        Args:
            vector: the vector, a row of its own.
            missing_weight: what it lacks to the full weight, in 256ths.
            outcome: JOINED, LINKED or NEW; −1: as the tests of equations 20 and 21 decide.
            target: the subcluster to join or to link to; −1 for NEW.
            member: the number of a vector that was withdrawn; −1: the vector is new.
            rule: the rule of the edge to the target (forest.TESTED, SETTLED, PINNED).
        """

    def absorb(
        self,
        totals: npt.NDArray[np.int64],
        missing_weights: npt.NDArray[np.int64],
        sizes: npt.NDArray[np.int64] | None = None,
        *,
        rows: Fixed | None = None,
        flags: int = 0,
        apart: bool = False,
    ) -> Decisions:
        """Add vectors by their sums, one sum after the other; return one decision for each sum.

        The vectors of a sum go to one subcluster, under the tests of one vector with s~(k, k') for
        the k' of them.

        Args:
            totals: a sum, or rows of sums.
            missing_weights: what each vector lacks to the full weight, in 256ths, sum after sum.
            sizes: how many vectors each sum has; None: there is one sum.
            rows: the vectors, to be stored; None: they are not stored.
            flags: set on the subcluster of each sum (forest.LOCKED, CLAIM).
            apart: each sum begins a cluster, whatever the tests decide.
        """

    def withdraw(self, vector: Fixed, *, missing_weight: int, target: int, member: int) -> None:
        """Take a vector's share out of the subcluster that holds it, exactly.

        Args:
            vector: the vector as it was added.
            missing_weight: what it lacks to the full weight, in 256ths.
            target: the subcluster that holds it.
            member: its number; −1 if vectors are not tracked.
        """

    def flag(self, number: int, flags: int) -> None:
        """Set the flags of a subcluster: forest.LOCKED, CLAIM, both or none."""

    def note(self, rows: Iterable[tuple[int, ...]]) -> None:
        """Append events that the engine does not produce itself: code and numbers of each."""

    def set_healing(
        self, growth: float, steadiness: float, *, alone: bool, final_after: int = 0
    ) -> None:
        """Mark clusters that grow from now on, so that `heal` looks at them again.

        Args:
            growth: growth of a cluster, as a factor, between two looks; 0: healing is off.
            steadiness: how much greater a margin must be to change an ID.
            alone: whether `add` heals at each point; otherwise the caller does.
            final_after: number of vectors after which the subclusters of a cluster that are older
                stay together; 0: never.
        """

    def require(self, requirements: Requirements) -> None:
        """Replace what corrections require when clusters are settled.

        The engine follows subclusters through merges, and takes that back with the merges. After
        any other change of what is required, and after a rollback of the change in which this was
        called, it must be called again.
        """

    def set_cluster_margins(self, on: bool) -> None:
        """Compute the cluster margin of each decision from now on, or no longer.

        Vectors that come as sums (`absorb`) have none. Keeps the sums of clusters once it is on.
        """

    def set_policy(self, doubt: Doubt | None) -> None:
        """Say what to do with new vectors whose decision is unsure; None: nothing special.

        It applies to vectors that the tests place. Margins must be on. The first vector is sure. A
        vector that is held gets a number, but no subcluster: cluster and subcluster are −1.
        """

    def heal(self) -> None:
        """Settle the clusters that are due with what is near them (engine/healing.py)."""

    def regroup(self, given: Regrouped) -> None:
        """Replace the edges and clusters of the subclusters; append the events.

        Costs what takes part in the compiled engine.
        """

    def ranked(self, vector: Fixed, limit: int) -> list[Candidate]:
        """Return the most similar subclusters, best first (tie: the older)."""

    def holder(self, member: int) -> int:
        """Return the subcluster that holds a vector, −1 if removed; needs `track_vectors`."""

    def cluster_of(self, number: int) -> int:
        """Return the cluster of a subcluster; −1 if there is no such subcluster."""

    def has_cluster(self, cluster: int) -> bool:
        """Return whether a cluster exists."""

    def total_of(self, number: int) -> tuple[int, npt.NDArray[np.int64]]:
        """Return how many vectors a subcluster holds, and their sum; 0 and zeros if none."""

    def oldest_event(self) -> int:
        """Return the sequence number of the oldest event that is kept."""

    def labels(self) -> npt.NDArray[np.int64]:
        """Return the cluster of each vector, in order of arrival; needs `track_vectors`."""

    def members(self, cluster: int, limit: int, before: int) -> npt.NDArray[np.int64]:
        """Return the vectors of a cluster, the newest first; needs `track_vectors`.

        The compiled engine looks only at the subclusters of the cluster and at their vectors.

        Args:
            cluster: the ID of the cluster; one that does not exist has no vectors.
            limit: how many vectors to return at most.
            before: only vectors that arrived before the vector of this number.
        """

    def held_by(self, number: int, limit: int, before: int) -> npt.NDArray[np.int64]:
        """Return the vectors of a subcluster, as `members` does; it must exist."""

    def elsewhere(self, vectors: Fixed, cluster: int) -> npt.NDArray[np.float64]:
        """Return the greatest similarity of each vector to another cluster; −1 if there is none."""

    def wholes(self, vector: Fixed) -> Wholes:
        """Return the IDs of all clusters, in order, their weights and similarities to a vector.

        A cluster whose vectors cancel out has similarity −1.
        """

    def near_clusters(self, vectors: Fixed, limit: int) -> tuple[Integers, Floats]:
        """Return the clusters with the greatest margins to each vector, and these margins.

        A margin is the similarity to a whole cluster, less s~(k, 1) for its k vectors. Best first
        (tie: the older); a cluster whose vectors cancel out is left out. Where there are fewer
        clusters, IDs are −1 and margins NaN. Keeps the sums of clusters from now on; costs one scan
        of them in the compiled engine.

        Args:
            vectors: the vectors, in fixed point.
            limit: how many clusters to return for each vector.
        """

    def parts(self, *clusters: int) -> State:
        """Return the subclusters of clusters, their sums and edges; no vectors and no events.

        The compiled engine looks only at these subclusters.

        Args:
            clusters: IDs, each once; one that does not exist has no subclusters.
        """

    def event_rows(self, since: int) -> tuple[int, npt.NDArray[np.int64]]:
        """Return the first sequence number and the rows of the events from `since` on."""

    def state(self) -> State:
        """Return the whole state as plain arrays that alias nothing."""
