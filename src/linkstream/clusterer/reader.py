"""Read a clusterer: predictions, explanations, suggestions, views, settings and counts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from linkstream import saving
from linkstream.clusterer import explain, rebuilding, snapshots, tabular, views
from linkstream.clusterer.checks import EVIDENCE
from linkstream.clusterer.confidence import Confidence
from linkstream.clusterer.core import Core
from linkstream.clusterer.probabilities import predict_proba
from linkstream.clusterer.views import Cluster
from linkstream.engine.contract import Decisions
from linkstream.engine.events import Event
from linkstream.engine.state import State
from linkstream.explanation import Explanation
from linkstream.identity.changes import Changes
from linkstream.identity.laws import Correction, corrections_of
from linkstream.identity.limits import Limits
from linkstream.identity.paths import Pair
from linkstream.identity.review import Exemplars, Question
from linkstream.identity.settling import Healing
from linkstream.identity.suggestions import MergeSuggestion, SplitSuggestion
from linkstream.identity.timeline import History
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space

if TYPE_CHECKING:
    from typing_extensions import Self


class LinksReader:
    """Everything that can be asked of a clusterer. Nothing here changes it.

    Attributes:
        core: engine, ledger, vectors and settings; for `Store` and adapters.
    """

    def __init__(self, core: Core) -> None:
        self.core = core

    @classmethod
    def _around(cls, core: Core) -> Self:
        links = cls.__new__(cls)
        links.core = core
        return links

    # Explanations and suggestions

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the cluster that each vector would get, −1 for a new one; change nothing.

        Args:
            X: rows of vectors.
        """
        return views.predict(self.core, X)

    def predict_proba(self, X: npt.ArrayLike, *, limit: int = 5) -> list[dict[int, float]]:
        """Return for each vector the clusters it may belong to, with probabilities; change nothing.

        −1 stands for a new cluster. Probabilities sum to 1; that of what `add` would decide is
        `Decision.probability`. If it is unknown, the dictionary is empty.

        Args:
            X: rows of vectors.
            limit: how many clusters to return of each vector, beside "new".
        """
        return predict_proba(self.core, X, limit)

    def explain(self, x: npt.ArrayLike, *, limit: int = 5) -> Explanation:
        """Return why a vector would get the answer that it would get; change nothing.

        Args:
            x: the vector.
            limit: how many subclusters to show.
        """
        return explain.explain(self.core, x, limit=limit)

    def explain_pair(self, a: int, b: int, *, of: str = "vectors") -> Pair:
        """Return why two vectors, subclusters or clusters share a cluster, or do not.

        The answer has the edges between them, or what keeps them apart.

        Args:
            a: number of the first.
            b: number of the second.
            of: what the numbers are: "vectors", "subclusters" or "clusters".
        """
        return explain.explain_pair(self.core, a, b, of=of)

    def exemplars(self, cluster_id: int, limit: int = 5) -> Exemplars:
        """Return vectors of a cluster to look at: the most central, newest and most doubtful.

        Args:
            cluster_id: ID of the cluster.
            limit: how many vectors of each kind.
        """
        return explain.exemplars(explain.Direct(self.core), cluster_id, limit)

    def review_queue(self, limit: int = 20) -> list[Question]:
        """Return the questions whose answers would correct most, best first.

        Answer with `same(q.a, q.b, of=q.of)` or `different(q.a, q.b, of=q.of)`, then ask again.

        Args:
            limit: how many questions.
        """
        return explain.review_queue(explain.Direct(self.core), limit)

    def suggest_merges(self, limit: int = 20) -> list[MergeSuggestion]:
        """Return pairs of clusters that may be one, by margin, best first.

        A margin below 0 would not pass the test. Pairs that corrections keep apart, and ignored
        clusters, are left out. The first call compares all clusters with one another; later ones
        compare those that changed since.

        Args:
            limit: how many pairs.
        """
        return explain.suggest_merges(explain.Direct(self.core), limit)

    def suggest_splits(self, limit: int = 20) -> list[SplitSuggestion]:
        """Return the edges that hold clusters together by the least margin, weakest first.

        Args:
            limit: how many edges.
        """
        return explain.suggest_splits(explain.Direct(self.core), limit)

    # Views

    def labels(self) -> npt.NDArray[np.int64]:
        """Return the present cluster of every vector, by number; −1 if removed or held."""
        return views.labels(self.core)

    def members(
        self, cluster_id: int, *, limit: int | None = None, before: int | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the numbers of a cluster's vectors, newest first.

        Reads this cluster only, however many vectors there are. To read page by page, pass the last
        number of a page as `before`.

        Args:
            cluster_id: ID of the cluster; if it was joined into another, that one is read.
            limit: how many vectors at most; None for all.
            before: only vectors with a lower number; None for all.
        """
        return views.members(self.core, cluster_id, limit, before)

    def cluster(self, cluster_id: int) -> Cluster:
        """Return one cluster: its size, subclusters, name, first and newest vector.

        Reads this cluster only, however many clusters there are.

        Args:
            cluster_id: ID of the cluster; if it was joined into another, that one is returned.
        """
        return views.cluster(self.core, cluster_id)

    def cluster_state(self, cluster_id: int) -> State:
        """Return one cluster as plain arrays: its subclusters, their sums and edges.

        Args:
            cluster_id: ID of the cluster; if it was joined into another, that one is returned.
        """
        return views.cluster_state(self.core, cluster_id)

    def clusters(self) -> list[Cluster]:
        """Return all clusters, by ID."""
        return views.clusters(self.core)

    def resolve(self, cluster_id: int) -> int:
        """Return the live cluster that an ID stands for; −1 if the cluster is gone.

        An ID is never used again. At a split the larger part keeps it (section 3.4). When clusters
        are joined, the ID that is gone stands for the one that stays.

        Args:
            cluster_id: an ID that was given at any time.
        """
        return self.core.resolve(cluster_id)

    def resolve_many(self, ids: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the live cluster that each ID stands for, as `resolve` does; −1 stays −1.

        Args:
            ids: IDs that were given at any time, such as those that `add_many` returned.
        """
        return views.resolve_many(self.core, ids)

    def named(self, name: str) -> int:
        """Return the cluster that has a name; raise ArgumentError if none has.

        Args:
            name: the name.
        """
        return views.named(self.core, name)

    def corrections(self) -> list[Correction]:
        """Return all corrections by `same`, `different` and `move` that hold, oldest first."""
        return corrections_of(self.core.up_to_date_ledger())

    @property
    def last_decisions(self) -> Decisions | None:
        """Decisions of the last batch, also after Ctrl-C; None if no batch was added."""
        return self.core.confidence.told_last()

    def events(self, since: int = 0) -> list[Event]:
        """Return typed events, oldest first. To follow, pass the last event's sequence + 1.

        Args:
            since: sequence number of the first event to return.
        """
        return views.events(self.core, since)

    def changes(self, since: int = 0, until: int | None = None) -> Changes:
        """Return what changed between two moments: vectors added and moved, clusters joined.

        A moment is a number of events: keep `n_events` now to ask for the changes since. The first
        call reads the log once, later calls only what is new; the answer then costs what the
        events between the two moments changed.

        Args:
            since: sequence number of the first event in between.
            until: sequence number of the first event after; None for now.
        """
        return views.changes(self.core, since, until)

    def history(self, cluster_id: int) -> History:
        """Return birth, splits and joins of a cluster's ID, without what was undone.

        Reads the whole event log; with `track_vectors=False` only the newest part is kept.

        Args:
            cluster_id: an ID that was given at any time.
        """
        return views.history(self.core, cluster_id)

    # Tables

    def to_frame(
        self,
        kind: str = "pandas",
        *,
        cluster: int | None = None,
        since: int | None = None,
        columns: Sequence[str] | None = None,
    ) -> Any:
        """Return a table with one row for each vector that is there, in order of arrival.

        Columns: `vector` (its number), `cluster`, `name` (of the cluster; None if it has none),
        with a model of confidence `cluster_margin`, `probability` of the decision, and `held`.

        Args:
            kind: "pandas" for a DataFrame, "arrow" for a pyarrow Table, "numpy" for a dict of
                arrays, which needs neither.
            cluster: only vectors of this cluster; None for all.
            since: only vectors with this number or a later one; None for all.
            columns: the columns to return, in order; None for all. Others are not read.
        """
        return tabular.to_frame(self.core, kind, cluster, since, columns)

    def clusters_frame(
        self,
        kind: str = "pandas",
        *,
        order: str = "id",
        limit: int | None = None,
        exemplars: int = 3,
    ) -> Any:
        """Return a table with one row for each cluster.

        Columns: `cluster` (its ID), `name`, `size`, `first_seen` and `last_seen` (the numbers of
        its first and newest vector), `pending`, `ignored`, `exemplars` (its newest vectors).

        Args:
            kind: as in `to_frame`.
            order: "id", "size" (largest first) or "recent" (last seen first).
            limit: how many clusters at most; None for all.
            exemplars: how many vectors to show of each cluster; none if they are not tracked.
        """
        return tabular.clusters_frame(
            self.core, kind, order=order, limit=limit, exemplars=exemplars
        )

    def state(self) -> State:
        """Return the whole state as plain arrays; a copy."""
        return self.core.state()

    def state_hash(self) -> str:
        """Return a hex digest of the whole state; equal states have equal digests."""
        return saving.digest(snapshots.saved(self.core))

    # Settings and counts

    def partition_hash(self) -> str:
        """Return a digest of the partition alone: equal sets in equal clusters, equal digests.

        It is made of the vectors and their weights, without IDs, numbers and order.

        Raises:
            NotTrackedError: vectors are not kept.
        """
        return rebuilding.partition_hash(self.core)

    # Snapshots

    def to_bytes(self, *, history: bool = True) -> bytes:
        """Return a snapshot: plain arrays with checksums, no pickle.

        Args:
            history: False leaves the event log out: smaller, but earlier changes cannot be undone.
        """
        return snapshots.to_bytes(self.core, history=history)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a snapshot to a file, completely or not at all.

        Args:
            path: the file.

        Raises:
            SnapshotError: `load` would refuse this state; the file stays as it was.
        """
        snapshots.save(self.core, path)

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        *,
        space: Space | None = None,
        engine: str = "auto",
        threads: int | None = None,
    ) -> Self:
        """Return a clusterer that continues from a snapshot with the same decisions.

        Args:
            data: what `to_bytes` returned.
            space: space of the vectors to come; SpaceError if the snapshot has another one.
            engine: as in `Links`.
            threads: as in `Links`.
        """
        saved = saving.unpack(data)
        if space is not None:
            saved.space.check_same(space)
        return cls._around(Core(saved, engine=engine, threads=threads))

    @classmethod
    def load(cls, path: str | os.PathLike[str], **options: Any) -> Self:
        """Read a snapshot that `save` wrote; raise SnapshotError if the file is damaged.

        Args:
            path: the file.
            options: options of `from_bytes`.
        """
        return cls.from_bytes(Path(path).read_bytes(), **options)

    # Settings and counts

    @property
    def thresholds(self) -> Thresholds:
        """The three thresholds."""
        return self.core.origin.thresholds

    @property
    def rebuild_thresholds(self) -> Thresholds | None:
        """The thresholds that `rebuild` takes; None: those of the clusterer."""
        return rebuilding.own_thresholds(self.core)

    @property
    def space(self) -> Space:
        """The space that vectors are brought to before they are clustered."""
        return self.core.space

    @property
    def engine(self) -> str:
        """Name of the engine."""
        return self.core.factory.name

    @property
    def evidence(self) -> str:
        """What decides on a vector that joins no subcluster: "nearest" or "cluster"."""
        return EVIDENCE[self.core.origin.cluster_evidence]

    @property
    def confidence(self) -> Confidence:
        """The model of probabilities, and why they may be unknown."""
        return self.core.confidence

    @property
    def healing(self) -> Healing | None:
        """How clusters are repaired while vectors arrive; None for the paper's algorithm."""
        return self.core.healing

    @property
    def track_vectors(self) -> bool:
        """Whether the vector → subcluster map and the whole event log are kept."""
        return self.core.track_vectors

    @property
    def keep_vectors(self) -> bool:
        """Whether the vectors themselves are kept, to be moved, removed or undone by number."""
        return self.core.keep_vectors

    @property
    def limits(self) -> Limits:
        """The limits on memory; none by default."""
        return self.core.limits

    @property
    def min_size(self) -> int:
        """Vectors that a cluster without a name needs to be more than pending."""
        return self.core.min_size

    @property
    def dimension(self) -> int | None:
        """Dimension of the vectors; None until the space or the first vector fixes it."""
        return self.core.dimension

    @property
    def n_vectors(self) -> int:
        """Vectors added so far."""
        return self.core.n_vectors

    @property
    def n_subclusters(self) -> int:
        """Nodes of the graph."""
        return self.core.engine.n_subclusters if self.core.engine else 0

    @property
    def n_clusters(self) -> int:
        """Connected components of the graph."""
        return self.core.engine.n_clusters if self.core.engine else 0

    @property
    def n_events(self) -> int:
        """Events so far: the sequence number that the next one will have."""
        return self.core.up_to_date_ledger().n_events

    def __repr__(self) -> str:
        return views.summary(self.core)
