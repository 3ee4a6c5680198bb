"""Views: what a clusterer can be asked; nothing here changes it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.engine import door, events
from linkstream.engine.choice import Factory
from linkstream.engine.contract import Engine
from linkstream.engine.fixed_point import quantise
from linkstream.engine.state import State
from linkstream.errors import ArgumentError, NotTrackedError, UnknownIdError
from linkstream.explanation import Explanation, explain
from linkstream.identity import aliases, history, paths, suggestions
from linkstream.identity.healing import Healing
from linkstream.identity.history import History
from linkstream.identity.paths import Pair
from linkstream.identity.suggestions import MergeSuggestion, SplitSuggestion
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space

EVIDENCE = ("nearest", "cluster")  # what decides of a vector that joins no subcluster


@dataclass(frozen=True, slots=True)
class Cluster:
    """A view of one cluster; `first_seen` and `last_seen` are sequence numbers of vectors."""

    id: int
    size: int
    subclusters: tuple[int, ...]
    name: str | None
    first_seen: int
    last_seen: int


class Views:
    """The side of `Links` that answers."""

    _engine: Engine | None
    _origin: State  # what the engine started from, or will start from
    _factory: Factory
    _space: Space
    _healing: Healing | None
    _aliases: dict[int, int]

    # Asking about vectors

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Ask for the cluster of each vector, changing nothing; −1 where it would be new."""
        fixed = self._fixed(door.vectors(X, dimension=self.dimension))
        if self._engine is None:
            return np.full(len(fixed), -1, dtype=np.int64)
        return self._engine.ask(fixed).cluster

    def explain(self, x: npt.ArrayLike, *, limit: int = 5) -> Explanation:
        """Why a vector would get the answer it would get; changes nothing."""
        fixed = self._fixed(door.vector(x, dimension=self.dimension))
        return explain(
            self._engine, fixed[0], limit=_positive("limit", limit, "how many subclusters to show")
        )

    def _fixed(self, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.int32]:
        """Rows as the engine's numbers, or VectorError: nothing has changed yet."""
        if self._space.mean is None:
            fixed, lengths = self._factory.quantise(rows)
            door.check_norms(rows, lengths)
        else:
            centred = self._space.centre(rows)
            fixed, lengths = quantise(centred)
            door.check_norms(centred, lengths)
        return fixed

    # What is there

    @property
    def thresholds(self) -> Thresholds:
        """The three thresholds."""
        return self._origin.thresholds

    @property
    def space(self) -> Space:
        """The space vectors are brought to before they are clustered."""
        return self._space

    @property
    def engine(self) -> str:
        """Name of the engine that runs."""
        return self._factory.name

    @property
    def evidence(self) -> str:
        """What decides of a vector that joins no subcluster: J alone, or whole clusters."""
        return EVIDENCE[self._origin.cluster_evidence]

    @property
    def healing(self) -> Healing | None:
        """How clusters are put right as the stream goes on; None: the paper's algorithm."""
        return self._healing

    @property
    def track_vectors(self) -> bool:
        """Whether the vector → subcluster map and the whole log of events are kept."""
        return self._origin.track_vectors

    @property
    def dimension(self) -> int | None:
        """Dimension of the vectors; None until the space or the first vector fixes it."""
        return self._space.dimension if self._engine is None else self._engine.dimension

    @property
    def n_vectors(self) -> int:
        """Vectors taken so far."""
        return self._engine.n_vectors if self._engine else 0

    @property
    def n_subclusters(self) -> int:
        """Nodes of the graph."""
        return self._engine.n_subclusters if self._engine else 0

    @property
    def n_clusters(self) -> int:
        """Connected components of the graph."""
        return self._engine.n_clusters if self._engine else 0

    def labels(self) -> npt.NDArray[np.int64]:
        """Current cluster of every vector seen, in order of arrival."""
        if not self.track_vectors:
            raise NotTrackedError(
                "labels() of a clusterer that does not track vectors",
                expected="track_vectors=True",
                remedy="Keep the IDs that add_many() returns, or track vectors.",
            )
        return self._engine.labels() if self._engine else np.empty(0, dtype=np.int64)

    def clusters(self) -> list[Cluster]:
        """All clusters, by ID."""
        state = self.state()
        order = np.argsort(state.clusters, kind="stable")
        ids, starts = np.unique(state.clusters[order], return_index=True)
        return [
            Cluster(
                id=int(cluster),
                size=int(state.counts[rows].sum()),
                subclusters=tuple(state.numbers[rows].tolist()),
                name=None,
                first_seen=int(state.first_seen[rows].min()),
                last_seen=int(state.last_seen[rows].max()),
            )
            for cluster, rows in zip(ids, np.split(order, starts[1:]), strict=False)
        ]

    def resolve(self, cluster_id: int) -> int:
        """The live cluster that an ID now stands for.

        An ID is never used again. At a split the larger part keeps it (section 3.4); where
        settling or healing joins clusters, the ID that is gone stands for the one that stays.
        """
        self._check_id(cluster_id)
        return aliases.resolve(self._aliases, int(cluster_id))

    def events(self, since: int = 0) -> list[events.Event]:
        """Typed events from sequence number `since` on, oldest first.

        To follow a stream, pass the last event's sequence + 1.
        """
        if isinstance(since, bool) or not isinstance(since, (int, np.integer)) or since < 0:
            raise ArgumentError(
                f"since={since!r}",
                expected="a sequence number, 0 or more",
                remedy="Pass the last event's .sequence + 1.",
            )
        if self._engine is None:
            return []
        return events.from_rows(*self._engine.event_rows(int(since)))

    def history(self, cluster_id: int) -> History:
        """Birth, splits and joins of a cluster's ID, live or gone, with sequence numbers.

        Reads the whole log; with `track_vectors=False` only what is kept of it.
        """
        self._check_id(cluster_id)
        return history.of(int(cluster_id), self.events(self._oldest_event()))

    # Reasons and suggestions

    def explain_pair(self, a: int, b: int) -> Pair:
        """Why two vectors are, or are not, in one cluster: the edges between them.

        Vectors are sequence numbers, in order of arrival from 0.
        """
        if not self.track_vectors:
            raise NotTrackedError(
                "explain_pair() of a clusterer that does not track vectors",
                expected="track_vectors=True",
                remedy="Explain two subclusters by state().edges, or track vectors.",
            )
        for vector in (a, b):
            self._check_vector(vector)
        return paths.between(self.state(), int(a), int(b), self.events())

    def suggest_merges(self, limit: int = 20) -> list[MergeSuggestion]:
        """Pairs of clusters that may be one, by margin, best first; those below 0 would not pass.

        Costs n²·d steps and 8·n² bytes for n clusters.
        """
        limit = _positive("limit", limit, "how many suggestions to make")
        return suggestions.merges(self.state(), limit) if self._engine else []

    def suggest_splits(self, limit: int = 20) -> list[SplitSuggestion]:
        """Edges that hold clusters together by the least margin, weakest first."""
        limit = _positive("limit", limit, "how many suggestions to make")
        return suggestions.splits(self.state(), limit) if self._engine else []

    def state(self) -> State:
        """The whole state as plain arrays; a copy."""
        return self._engine.state() if self._engine else self._origin

    def __repr__(self) -> str:
        t = self.thresholds
        return (
            f"Links({t.cluster_similarity}, {t.subcluster_similarity}, {t.pair_similarity_max}, "
            f"engine={self.engine!r}: {self.n_vectors} vectors, {self.n_subclusters} subclusters, "
            f"{self.n_clusters} clusters)"
        )

    def _check_id(self, cluster_id: int) -> None:
        given = self._engine.n_cluster_ids if self._engine else 0
        if isinstance(cluster_id, bool) or not isinstance(cluster_id, (int, np.integer)):
            raise UnknownIdError(
                f"cluster ID {cluster_id!r} of type {type(cluster_id).__name__}",
                expected="an integer",
                remedy="IDs come from add(), add_many(), labels() or clusters().",
            )
        if not 0 <= cluster_id < given:
            raise UnknownIdError(
                f"cluster ID {cluster_id}",
                expected=f"an ID from 0 to {given - 1}" if given else "no ID: nothing was added",
                remedy="IDs come from add(), add_many(), labels() or clusters().",
            )

    def _oldest_event(self) -> int:
        state = self.state()
        return state.n_events - len(state.events)

    def _check_vector(self, vector: int) -> None:
        whole = isinstance(vector, (int, np.integer)) and not isinstance(vector, bool)
        if not whole or not 0 <= vector < self.n_vectors:
            raise UnknownIdError(
                f"vector {vector!r}",
                expected=f"a sequence number from 0 to {self.n_vectors - 1}"
                if self.n_vectors
                else "none: nothing was added",
                remedy="A vector's number is its place in order of arrival.",
            )


def _positive(name: str, value: int, meaning: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ArgumentError(
            f"{name}={value!r}",
            expected="a whole number of 1 or more",
            remedy=f"It says {meaning}.",
        )
    return int(value)
