"""Links: the object that users meet. Each method calls one function of a capability module."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import adding, checks, corrections, maintenance, modes, removal, snapshots
from linkstream.clusterer.absorb import Absorbed, absorb
from linkstream.clusterer.confidence import check_model
from linkstream.clusterer.core import Core
from linkstream.clusterer.correcting import LinksCorrections
from linkstream.clusterer.migration import Migration
from linkstream.clusterer.migration_in_memory import migrate
from linkstream.clusterer.rebuilding import rebuild
from linkstream.confidence import Model
from linkstream.engine.contract import Decision, Decisions
from linkstream.engine.events import Event
from linkstream.engine.linkage import Progress
from linkstream.engine.state import State
from linkstream.identity.ledger import Ledger
from linkstream.identity.limits import Limits
from linkstream.identity.rebuild_report import RebuildReport
from linkstream.identity.settling import Healing, Settlement
from linkstream.paper.thresholds import Thresholds
from linkstream.presets import preset
from linkstream.saving import Saved
from linkstream.space import Space


class Links(LinksCorrections):
    """Cluster unit vectors as they arrive (Mansfield et al., "Links").

    Vectors are normalised first. Decisions do not depend on batch size, threads, machine or
    engine. Do not change a clusterer from two threads at once.

    `copy.copy`, `copy.deepcopy` and `pickle` make an independent clusterer that continues with the
    same decisions. A pickle holds a snapshot, but opening any pickle may run code: to read bytes
    from others, use `to_bytes` and `from_bytes`.

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
        mode: str = "paper",
        evidence: str | None = None,
        heal: Healing | str | bool | None = None,
        max_subclusters: int | None = None,
        max_idle: int | None = None,
        min_size: int = 1,
        rebuild_thresholds: Thresholds | None = None,
        confidence: Model | bool | None = None,
    ) -> None:
        """Make an empty clusterer. Thresholds have no defaults: they belong to an encoder.

        Args:
            cluster_similarity: T_c in (0, 1), such as 0.70.
            subcluster_similarity: T_s in (0, 1), such as 0.60.
            pair_similarity_max: T_p in [T_c², 1], such as 0.90.
            space: mean vector and model tag, such as `Space(mean=mean, model="ge2e")`, or None.
            engine: "auto" (the fastest that is installed), "native" or "reference".
            threads: threads of the native engine, such as 4; None takes one for each core.
            track_vectors: whether to remember where each vector is, as `labels` and corrections of
                vectors need. False bounds the memory of an endless stream.
            keep_vectors: whether to keep vectors, for `move` and `undo`; None as `track_vectors`.
            mode: "paper", or "best": evidence="cluster", heal="settle", with thresholds for these.
            evidence: what decides on a vector that joins no subcluster: "nearest" (the most
                similar subcluster) or "cluster" (the sums of clusters); None does as `mode`.
            heal: "join" or "settle" to repair clusters while vectors arrive, or a `Healing`;
                False for none; None does as `mode`.
            max_subclusters: most subclusters to keep, such as 100_000; None sets no limit.
            max_idle: vectors after which an unused cluster is forgotten; None sets no limit.
            min_size: vectors that a cluster without a name needs to be more than pending.
            rebuild_thresholds: of `rebuild`, as `tune(…, rebuild=True)` finds; None: those above.
            confidence: model of the probability of decisions, such as `tune(X, y).confidence`,
                valid for its settings; True learns one from answers; None has none.
        """
        thresholds = Thresholds(cluster_similarity, subcluster_similarity, pair_similarity_max)
        chosen = modes.configuration(mode, evidence, heal)
        state = State(thresholds, 0, bool(track_vectors), checks.check_evidence(chosen.evidence))
        saved = Saved(
            state=state,
            space=checks.check_space(space),
            healing=chosen.healing,
            ledger=Ledger(tracked=state.track_vectors),
            limits=Limits(max_subclusters, max_idle),
            min_size=checks.whole_number("min_size", min_size, "how many vectors make a cluster"),
            keep_vectors=checks.check_keep_vectors(keep_vectors, track_vectors=bool(track_vectors)),
            rebuild_thresholds=checks.for_rebuilds(rebuild_thresholds, thresholds),
            confidence=None if confidence is True else check_model(confidence),
        )
        super().__init__(Core(saved, engine=engine, threads=threads))
        if confidence is True:
            self.core.confidence.update()

    @classmethod
    def from_thresholds(cls, thresholds: Thresholds, **options: Any) -> Links:
        """Return an empty clusterer with these thresholds.

        Args:
            thresholds: the three thresholds.
            options: options of `Links`, such as `heal="join"`.
        """
        t = thresholds
        return cls(t.cluster_similarity, t.subcluster_similarity, t.pair_similarity_max, **options)

    @classmethod
    def preset(cls, name: str, *, granularity: str | float | None = None, **options: Any) -> Links:
        """Return an empty clusterer with measured thresholds for an encoder (docs/tuning.md).

        Args:
            name: the preset, such as "ge2e".
            granularity: the name of a level of the preset, such as "topics", or a number from 0
                (few large clusters) to 1 (many small ones). None takes the default level.
            options: options of `Links`, which override those of the preset.

        >>> Links.preset("arcface").evidence
        'cluster'
        >>> Links.preset("minilm", granularity="topics").space.model
        'minilm'
        """
        chosen = preset(name, granularity)
        return cls.from_thresholds(chosen.thresholds, **modes.over_preset(chosen.options, options))

    # Add vectors

    def add(self, x: npt.ArrayLike, *, weight: float = 1.0, group: str | None = None) -> Decision:
        """Add one vector; return the cluster it belongs to, and why.

        Args:
            x: the vector.
            weight: from 0 to 1, lower for a vector of low quality; 0 asks and learns nothing.
            group: name of what the vector was seen in, such as a photo; vectors of one group get
                different clusters.
        """
        return adding.add(self.core, x, weight, group)

    def add_many(
        self, X: npt.ArrayLike, *, weight: npt.ArrayLike = 1.0, group: str | None = None
    ) -> npt.NDArray[np.int64]:
        """Add vectors in order; return their IDs, the same as `add` one by one.

        If one vector is not usable, none is added. Ctrl-C ends the call between two vectors: those
        before stay added, `last_decisions` has their IDs, and the others can be added later.

        Args:
            X: rows of vectors.
            weight: one weight for all, or one for each; as in `add`.
            group: as in `add`.
        """
        return adding.add_many(self.core, X, weight, group)

    def decide_many(
        self, X: npt.ArrayLike, *, weight: npt.ArrayLike = 1.0, group: str | None = None
    ) -> Decisions:
        """Add vectors as `add_many` does; return what was decided on each, as columns.

        Args:
            X: rows of vectors.
            weight: one weight for all, or one for each; as in `add`.
            group: as in `add`.
        """
        return adding.decide_many(self.core, X, weight, group)

    def add_group(
        self, X: npt.ArrayLike, *, group: str | None = None, weight: npt.ArrayLike = 1.0
    ) -> npt.NDArray[np.int64]:
        """Add vectors seen together, such as faces of one photo; each gets a different cluster.

        Of all ways to do so, the one with the greatest total similarity is taken.

        Args:
            X: rows of vectors.
            group: name of the group, if more of its vectors may follow.
            weight: one weight above 0 for all, or one for each; as in `add`.
        """
        return adding.add_group(self.core, X, group, weight)

    def enrol(self, name: str, X: npt.ArrayLike, *, locked: bool = True) -> int:
        """Add vectors of a known identity as prototypes; return the ID of its cluster.

        Each prototype is a subcluster of its own. At a split the part with most prototypes keeps
        the ID and the name. Other clusters stay as they are: tie them to it with `same`.

        Args:
            name: name of the cluster, which is made if no cluster has this name.
            X: rows of vectors.
            locked: whether prototypes take vectors in without drifting.
        """
        return corrections.enrol(self.core, name, X, locked=locked)

    # Removal

    def remove(
        self,
        vector: npt.ArrayLike,
        *,
        x: npt.ArrayLike | None = None,
        cluster: int | None = None,
        weight: float | None = None,
    ) -> None:
        """Remove a vector exactly, as if it had never been added to the sums; its label is −1.

        Args:
            vector: number of the vector, or a list of several, which one `undo` takes back; if
                vectors are not tracked, the vector itself, which is taken from the subcluster it
                is most similar to.
            x: the vector itself, if vectors are tracked but not kept.
            cluster: ID of the cluster that holds it, if known; only if vectors are not tracked.
            weight: the weight it was added with; only if vectors are not tracked.
        """
        removal.remove(self.core, vector, x=x, cluster=cluster, weight=weight)

    def forget(self, cluster: int) -> None:
        """Remove a cluster and all its vectors; if its identity comes back it is new.

        Args:
            cluster: ID of the cluster.
        """
        removal.forget(self.core, cluster)

    def undo(self, *, to: int | None = None) -> None:
        """Undo the last change or vector; the state is then bit for bit what it was before.

        IDs given since are not used again. `redo` restores them until something else changes.

        Args:
            to: sequence number of an event: undo everything from there on.
        """
        removal.undo(self.core, to=to)

    def redo(self) -> None:
        """Redo what the last `undo` took, with the same IDs; call it again for the undo before.

        Raises:
            UndoError: nothing was undone, or something else changed since.
        """
        removal.redo(self.core)

    # Whole clusterers

    def settle(
        self,
        apply: bool = False,
        *,
        thresholds: Thresholds | None = None,
        progress: Progress | None = None,
    ) -> Settlement:
        """Compare all subclusters with one another; propose which clusters to join and to cut.

        Takes up to n²·d steps, and memory in proportion to n·d, for n subclusters.

        Args:
            apply: whether to apply the proposals.
            thresholds: thresholds for the test s~; None takes those of the clusterer.
            progress: called now and then with the share of the work that is done, from 0 to 1. If
                it raises, the settlement ends and nothing is changed.
        """
        return maintenance.settle(self.core, apply, thresholds=thresholds, progress=progress)

    def rebuild(
        self,
        apply: bool = False,
        *,
        thresholds: Thresholds | str | None = None,
        space: Space | None = None,
        vectors: npt.ArrayLike | None = None,
        progress: Progress | None = None,
    ) -> RebuildReport:
        """Cluster all vectors again: the same set gives the same clusters, whatever its order.

        Corrections, groups and prototypes hold. IDs and names stay with most of their vectors. If
        two names compete, another may move more. Where vectors are not kept, it needs `vectors`.

        Args:
            apply: whether to apply the proposals.
            thresholds: thresholds to cluster and to continue with; "from clusters" finds those for
                which a rebuild agrees best with the present clusters, named and corrected ones
                above all (docs/tuning.md). None takes those of the clusterer.
            space: the space to change to; None keeps the present one, or with `vectors` takes them
                as they are given.
            vectors: the same items by another encoder, one row for each vector number; rows of
                removed vectors are not read. None keeps the vectors.
            progress: as in `settle`.
        """
        given: dict[str, Any] = {"thresholds": thresholds, "space": space, "vectors": vectors}
        return rebuild(self.core, apply, **given, progress=progress)

    def migrate(
        self, *, space: Space | None = None, thresholds: Thresholds | str | None = None
    ) -> Migration:
        """Begin to change to another encoder; its vectors of the same items come batch by batch.

        Nothing changes until `finish`. The migration is in memory; a store keeps it in its file.

        Args:
            space: the space of the other encoder; None takes its vectors as they are given.
            thresholds: thresholds for it; "from clusters" finds those for which its clusters agree
                best with the present ones; None takes those of the clusterer.
        """
        return migrate(self.core, space=space, thresholds=thresholds)

    def absorb(self, other: Links) -> Absorbed:
        """Add all that another clusterer has; the other stays as it is. All or nothing.

        Its subclusters arrive as groups of vectors, the largest first, under the same tests. Its
        corrections, names and prototypes hold here. The answer maps its IDs to those here.

        Args:
            other: the other clusterer.

        Raises:
            SpaceError, DimensionError: the two are of different spaces.
            NotTrackedError: vectors are tracked or kept here, and not there.
            ContradictionError: corrections of the two contradict each other.
        """
        return absorb(self.core, other)

    def without_vectors(self) -> Links:
        """Return a copy that knows its clusters but not their vectors, as a shard sends it.

        Raises:
            ArgumentError: corrections of single vectors would be lost.
        """
        return self._around(snapshots.without_vectors(self.core))

    # Snapshots

    def drain_events(self) -> list[Event]:
        """Return all events and drop them; earlier changes cannot be undone any more."""
        return snapshots.drain_events(self.core)

    def __copy__(self) -> Links:
        return self._around(snapshots.copied(self.core))

    def __deepcopy__(self, memo: dict[int, Any]) -> Links:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), self.to_bytes(), self.core.engine_options)


def _unpickled(kind: type[Links], data: bytes, engine_options: dict[str, Any]) -> Links:
    """Return the clusterer whose snapshot a pickle holds."""
    return kind.from_bytes(data, **engine_options)
