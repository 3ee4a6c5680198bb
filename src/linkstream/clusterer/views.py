"""Views: what is there to be seen of a clusterer; nothing here changes it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.clusterer.base import Ground, whole_number
from linkstream.clusterer.change import UNUSABLE
from linkstream.engine import events
from linkstream.errors import NotTrackedError
from linkstream.identity import history, timeline
from linkstream.identity.healing import Healing
from linkstream.identity.history import History
from linkstream.identity.limits import Limits
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space

EVIDENCE = ("nearest", "cluster")  # what decides of a vector that joins no subcluster


@dataclass(frozen=True, slots=True)
class Cluster:
    """A view of one cluster; `first_seen` and `last_seen` are sequence numbers of vectors.

    `pending`: it has fewer vectors than `min_size`, and no name. `ignored`: a person said so.
    """

    id: int
    size: int
    subclusters: tuple[int, ...]
    name: str | None
    first_seen: int
    last_seen: int
    pending: bool = False
    ignored: bool = False


class Views(Ground):
    """What a clusterer is, and what is in it."""

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Ask for the cluster of each vector, changing nothing; −1 where it would be new."""
        fixed = self._fixed(self._vectors(X))
        if self._engine is None:
            return np.full(len(fixed), -1, dtype=np.int64)
        return self._engine.ask(fixed).cluster

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
    def keep_vectors(self) -> bool:
        """Whether the vectors themselves are kept: to be moved, removed or undone by number."""
        return self._keeping

    @property
    def limits(self) -> Limits:
        """The bounds on memory; none by default."""
        return self._limits

    @property
    def min_size(self) -> int:
        """Vectors that a cluster without a name needs to be more than pending."""
        return self._min_size

    @property
    def n_subclusters(self) -> int:
        """Nodes of the graph."""
        return self._engine.n_subclusters if self._engine else 0

    @property
    def n_clusters(self) -> int:
        """Connected components of the graph."""
        return self._engine.n_clusters if self._engine else 0

    def labels(self) -> npt.NDArray[np.int64]:
        """Current cluster of every vector seen, in order of arrival; −1 for one removed."""
        self._check_usable()
        if not self.track_vectors:
            raise NotTrackedError(
                "labels() of a clusterer that does not track vectors",
                expected="track_vectors=True",
                remedy="Keep the IDs that add_many() returns, or track vectors.",
            )
        return self._engine.labels() if self._engine else np.empty(0, dtype=np.int64)

    def clusters(self) -> list[Cluster]:
        """All clusters, by ID."""
        state, ledger = self.state(), self._synced()
        order = np.argsort(state.clusters, kind="stable")
        ids, starts = np.unique(state.clusters[order], return_index=True)
        sizes = np.add.reduceat(state.counts[order], starts) if len(ids) else state.counts
        return [
            Cluster(
                id=cluster,
                size=size,
                subclusters=tuple(state.numbers[rows].tolist()),
                name=ledger.names.get(cluster),
                first_seen=int(state.first_seen[rows].min()),
                last_seen=int(state.last_seen[rows].max()),
                pending=size < self._min_size and cluster not in ledger.names,
                ignored=cluster in ledger.ignored,
            )
            for cluster, size, rows in zip(
                ids.tolist(), sizes.tolist(), np.split(order, starts[1:]), strict=False
            )
        ]

    @property
    def n_events(self) -> int:
        """Events so far: the number that the next one will have."""
        return self._synced().n_events

    def events(self, since: int = 0) -> list[events.Event]:
        """Typed events from sequence number `since` on, oldest first.

        To follow a stream, pass the last event's sequence + 1.
        """
        since = whole_number("since", since, "the first event to tell of", least=0)
        if self._engine is None:
            return []
        texts = self._synced().texts
        return events.from_rows(*self._engine.event_rows(int(since)), texts)

    def history(self, cluster_id: int) -> History:
        """Birth, splits and joins of a cluster's ID, live or gone, with sequence numbers.

        What was undone is left out.

        Reads the whole log; with `track_vectors=False` only what is kept of it.
        """
        self._check_id(cluster_id)
        log = self.events(self._oldest_event())
        return history.of(int(cluster_id), timeline.standing(log))

    def __repr__(self) -> str:
        t = self.thresholds
        if self._engine is UNUSABLE:
            return f"Links({t.cluster_similarity}, …: unusable, a change failed)"
        return (
            f"Links({t.cluster_similarity}, {t.subcluster_similarity}, {t.pair_similarity_max}, "
            f"engine={self.engine!r}: {self.n_vectors} vectors, {self.n_subclusters} subclusters, "
            f"{self.n_clusters} clusters)"
        )

    def _oldest_event(self) -> int:
        return self._engine.oldest_event() if self._engine else 0
