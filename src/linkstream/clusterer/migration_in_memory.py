"""The migration of a `Links`: its vectors of the other encoder are in memory."""

from __future__ import annotations

from collections.abc import Sequence

from linkstream.clusterer.absent import are_there
from linkstream.clusterer.core import Core
from linkstream.clusterer.migration import Migration
from linkstream.clusterer.migration_checks import (
    Flags,
    Kind,
    ended,
    nothing_to_migrate,
    target_of,
)
from linkstream.clusterer.migration_items import Target
from linkstream.clusterer.rebuilding import Prepared, RebuildSource, own_source, rebuild
from linkstream.clusterer.reencoded import RowsInMemory
from linkstream.engine.state import Fixed, Integers
from linkstream.errors import ArgumentError
from linkstream.identity.disagreements import Disagreement
from linkstream.identity.rebuild_report import RebuildReport
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space


class _InMemory:
    """The migration of a `Links`; its vectors are in memory and in no snapshot."""

    def __init__(self, core: Core, target: Target) -> None:
        self.target = target
        self._core, self._ended, self._seen = core, False, len(core.cuts)
        self._rows, self._epoch = RowsInMemory(), core.epochs.last.event

    @property
    def received(self) -> RowsInMemory:
        """The vectors of the other encoder, without those of vectors that were undone."""
        epoch = self._core.epochs.last.event
        if epoch != self._epoch:  # old vectors are those of an encoder that is gone
            self._epoch = epoch
            self._rows.drop_old(pairs=not self.kind.tracked)
        cuts = self._core.cuts[self._seen :]
        if cuts:
            self._seen += len(cuts)
            self._rows.cut(min(cuts))
        return self._rows

    @property
    def kind(self) -> Kind:
        """Whether the clusterer tracks and keeps its vectors."""
        return Kind.of(self._core)

    def dimension(self) -> int:
        """Return the dimension of the present encoder."""
        return self._core.running().dimension

    def present_space(self) -> Space:
        """Return the space of the present encoder."""
        return self._core.space

    def check_open(self) -> None:
        """Raise ArgumentError if the migration has ended."""
        if self._ended:
            raise ended()

    def stamp(self) -> tuple[int, int]:
        """Return numbers that differ after each change."""
        return self._core.running().n_events, self.received.revision

    def n_vectors(self) -> int:
        """Return the number of vectors that came so far."""
        return self._core.n_vectors

    def holds(self, numbers: Integers) -> Flags:
        """Return whether each of some vectors that came is there."""
        return are_there(self._core, numbers)

    def source(self) -> RebuildSource | None:
        """Return the clusterer at this moment."""
        return own_source(self._core)

    def fetch(self, numbers: Integers) -> Fixed:
        """Return vectors of the present encoder by number."""
        return self._core.kept(numbers)

    def numbers_of(self, keys: Sequence[str]) -> Integers:
        """Raise ArgumentError: vectors have keys in a store alone."""
        raise ArgumentError(
            f"{len(keys)} keys in a clusterer without a store",
            expected="numbers=",
            remedy="Vectors have keys of their own in a Store.",
        )

    def rebuild(
        self, made: Prepared, stamp: tuple[int, int], found: tuple[Disagreement, ...]
    ) -> RebuildReport:
        """Go on with the vectors of the other encoder."""
        core, wanted = self._core, made.wanted
        core.prepared = made
        try:
            report = rebuild(
                core,
                True,
                thresholds=wanted.thresholds,
                space=wanted.space,
                vectors=wanted.vectors,
            )
        finally:
            core.prepared = None
        core.disagreements = stamp[0], found
        self.end()
        return report

    def end(self) -> None:
        """Drop the vectors that were received."""
        self._ended = True
        self._rows.clear()


def migrate(
    core: Core, *, space: Space | None = None, thresholds: Thresholds | str | None = None
) -> Migration:
    """Begin a migration to another encoder."""
    target = target_of(space, thresholds)
    core.check_usable()
    if core.engine is None or not core.engine.n_subclusters:
        raise nothing_to_migrate()
    return Migration(_InMemory(core, target))
