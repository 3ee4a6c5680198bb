"""Migration: the items of a clusterer are embedded again by another encoder, a batch at a time.

Until the end the clusterer goes on with the old encoder: it adds vectors, answers and takes
corrections as before, and new vectors are missing in the migration until they are re-embedded. The
end is `rebuild(vectors=…)`, which keeps IDs, names and corrections with the items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from linkstream.clusterer.checks import (
    check_numbers,
    whole_number,
)
from linkstream.clusterer.migrating import Moment
from linkstream.clusterer.migration_checks import (
    TRIES,
    Flags,
    Kind,
    kept_changing,
    nothing_left,
    texts,
)
from linkstream.clusterer.migration_items import Target
from linkstream.clusterer.rebuilding import Prepared, RebuildSource
from linkstream.clusterer.reencoded import Reencoded, Rows
from linkstream.engine import door
from linkstream.engine.linkage import Progress
from linkstream.engine.state import Fixed, Integers
from linkstream.epochs import in_space
from linkstream.errors import (
    ArgumentError,
    ChangedError,
    NotTrackedError,
    StoreClosedError,
    UnknownIdError,
)
from linkstream.identity.disagreements import Disagreement
from linkstream.identity.migration_report import MigrationReport, MigrationStatus
from linkstream.identity.rebuild_report import RebuildReport
from linkstream.space import Space

T = TypeVar("T")


class Host(Protocol):
    """The clusterer that a migration belongs to.

    Attributes:
        target: the space and the thresholds that the migration leads to.
    """

    target: Target

    @property
    def kind(self) -> Kind:
        """Whether the clusterer tracks and keeps its vectors."""

    def dimension(self) -> int:
        """Return the dimension of the present encoder."""

    def present_space(self) -> Space:
        """Return the space of the present encoder."""

    @property
    def received(self) -> Reencoded:
        """The vectors of the other encoder."""

    def check_open(self) -> None:
        """Raise ArgumentError if the migration has ended."""

    def stamp(self) -> tuple[int, int]:
        """Return numbers that differ after each change of the clusterer or of `received`."""

    def n_vectors(self) -> int:
        """Return the number of vectors that came so far."""

    def holds(self, numbers: Integers) -> Flags:
        """Return whether each of some vectors that came is there: in a cluster, or held."""

    def source(self) -> RebuildSource | None:
        """Return the clusterer at this moment; None if it has no vectors."""

    def fetch(self, numbers: Integers) -> Fixed:
        """Return vectors of the present encoder by number."""

    def numbers_of(self, keys: Sequence[str]) -> Integers:
        """Return the numbers of vectors by their own keys."""

    def rebuild(
        self, made: Prepared, stamp: tuple[int, int], found: tuple[Disagreement, ...]
    ) -> RebuildReport:
        """Go on with the vectors of the other encoder; the migration has ended then.

        Keep the disagreements that were found, for reviews. Raise ChangedError, before any change,
        if the stamp is another one by now.
        """

    def end(self) -> None:
        """Drop the vectors that were received; the migration has ended then."""


class Migration:
    """A change to another encoder that is under way; `Links.migrate` and `Store.migrate` begin one.

    >>> from linkstream import Links
    >>> links = Links(0.7, 0.6, 0.9)
    >>> links.add_many([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1]])
    array([0, 1, 0])
    >>> migration = links.migrate()
    >>> migration.add([[0.0, 0.0, 1.0], [0.0, 0.2, 0.9]], [0, 2])
    2
    >>> migration.missing()
    array([1])
    >>> migration.add([[1.0, 0.0, 0.0]], [1])
    1
    >>> migration.predict([[0.1, 0.0, 1.0]])
    array([0])
    >>> migration.finish().rebuild.n_moved, links.dimension
    (0, 3)
    """

    def __init__(self, host: Host) -> None:
        """Wrap a migration; call `migrate` instead.

        Args:
            host: the clusterer, with what the migration has received.
        """
        self._host = host
        self._moment: Moment | None = None
        self._source: RebuildSource | None = None
        self._stamp = (-1, -1)

    def add(
        self,
        vectors: npt.ArrayLike,
        numbers: npt.ArrayLike | None = None,
        *,
        keys: Sequence[str] | None = None,
        old: npt.ArrayLike | None = None,
    ) -> int:
        """Add vectors of the other encoder, in any order; return how many were taken.

        A vector of an item that has one already replaces it. Those of items that were removed are
        left out; those of items that are held are kept for when they are decided on. All are taken
        or, if an error is raised, none.

        Args:
            vectors: rows of vectors, not centred.
            numbers: the number of the item of each row. Where vectors are not tracked: None.
            keys: the items' own keys instead, in a store: texts alone, also if they are digits.
            old: where vectors are not kept, the vectors of the present encoder of the same items:
                what is missing is translated the better for them. None if they are not at hand;
                needed where vectors are not tracked.
        """
        host = self._host
        host.check_open()
        rows, before = self._checked(vectors), None if old is None else self._checked_old(old)
        if host.kind.tracked:
            wanted = self._numbers(numbers, keys, host.n_vectors())
        else:
            wanted = self._pairs_alone(numbers, keys, rows, before)
        for each, what in ((rows, "vectors"), (before, "old vectors")):
            if each is not None and len(wanted) != len(each):
                raise ArgumentError(
                    f"{len(each)} {what} and {len(wanted)} numbers or keys",
                    expected="one number or one key for each vector",
                    remedy="Row i of the vectors is the item that number or key i names.",
                )
        taken = host.holds(wanted) if host.kind.tracked else np.ones(len(wanted), dtype=np.bool_)
        if taken.any():
            host.received.put(wanted[taken], rows[taken], None if before is None else before[taken])
        return int(np.count_nonzero(taken))

    def _pairs_alone(
        self,
        numbers: npt.ArrayLike | None,
        keys: Sequence[str] | None,
        rows: Rows,
        old: Rows | None,
    ) -> Integers:
        """Return numbers for new pairs of vectors whose items nobody knows."""
        if old is None or not (numbers is None and keys is None):
            raise NotTrackedError(
                "vectors of a migration by number or key, where vectors are not tracked",
                expected="vectors, and the old vectors of the same items",
                remedy="Leave numbers and keys out; pairs of vectors alone are needed.",
            )
        if len(rows) != len(old):
            raise ArgumentError(
                f"{len(rows)} vectors and {len(old)} old vectors",
                expected="one old vector for each vector",
                remedy="Row i of both is the same item.",
            )
        first = self._host.received.n_pairs()
        return np.arange(first, first + len(rows), dtype=np.int64)

    def _checked_old(self, old: npt.ArrayLike) -> Rows:
        """Return vectors of the present encoder; raise ArgumentError where they are kept."""
        kind = self._host.kind
        if kind.kept:
            raise ArgumentError(
                "old vectors, where vectors are kept",
                expected="vectors of the other encoder alone",
                remedy="Leave the old vectors out: they are known.",
            )
        rows = door.vectors(old, dimension=self._host.dimension())
        in_space(self._host.present_space(), rows)
        return rows

    def _numbers(
        self, numbers: npt.ArrayLike | None, keys: Sequence[str] | None, n: int
    ) -> Integers:
        """Return the numbers of items; raise ArgumentError unless they are known and differ."""
        if (numbers is None) == (keys is None):
            raise ArgumentError(
                f"{'neither' if keys is None else 'both'} of numbers and keys",
                expected="one of the two",
                remedy="Name the item of each row by its number, or by its own key.",
            )
        wanted = check_numbers(numbers) if keys is None else self._host.numbers_of(texts(keys))
        unknown = wanted[(wanted < 0) | (wanted >= n)]
        if len(unknown):
            raise UnknownIdError(
                f"vector {int(unknown[0])}",
                expected=f"a number from 0 to {n - 1}",
                remedy="A vector's number is its place in order of arrival; add it first.",
            )
        each, counts = np.unique(wanted, return_counts=True)
        if len(each) < len(wanted):
            raise ArgumentError(
                f"two vectors for item {int(each[counts > 1][0])}",
                expected="one vector for each item of a call",
                remedy="Pass the one that is right; a later call replaces it.",
            )
        return wanted

    def _checked(self, vectors: npt.ArrayLike) -> Rows:
        """Return rows that the other encoder can have given; raise VectorError for others."""
        space = self._host.target.space
        dimension = space.dimension or self._host.received.dimension()
        rows = door.vectors(vectors, dimension=dimension)
        in_space(space, rows)
        return rows

    def status(self) -> MigrationStatus:
        """Return how many vectors were re-embedded, and how many are missing."""
        self._host.check_open()
        found = self._present()
        return self._status_of_none() if found is None else self._now().status()

    def _status_of_none(self) -> MigrationStatus:
        space = self._host.target.space
        dimension = space.dimension or self._host.received.dimension()
        return MigrationStatus(0, 0, 0, dimension=dimension, model=space.model)

    def missing(self, limit: int | None = None) -> npt.NDArray[np.int64]:
        """Return the numbers of vectors that were not re-embedded yet, the oldest first.

        Args:
            limit: how many; None returns all.
        """
        self._host.check_open()
        if not self._host.kind.tracked:
            raise NotTrackedError(
                "the vectors that are missing, where vectors are not tracked",
                expected="a clusterer that tracks its vectors",
                remedy="The status says how many pairs came.",
            )
        n = None if limit is None else whole_number("limit", limit, "how many numbers to return")
        return np.zeros(0, np.int64) if self._present() is None else self._now().missing[:n]

    def stamp(self) -> tuple[int, int]:
        """Return numbers that differ after each change of the clusterer or of the migration."""
        self._host.check_open()
        return self._host.stamp()

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the cluster that each vector of the other encoder would get, −1 for a new one.

        It is compared with the present clusters: the sums of their vectors as the other encoder
        sees them, translated where they are missing. Meanwhile `predict` of the clusterer answers
        for vectors of the old encoder.

        Args:
            X: rows of vectors of the other encoder.
        """
        return self._steadily(lambda now: now.predicted(self._checked(X)))

    def report(self, progress: Progress | None = None) -> MigrationReport:
        """Return what `finish` would change, and what translation loses; change nothing.

        Args:
            progress: as in `Links.rebuild`.
        """
        return self._steadily(lambda now: now.report(progress))

    def finish(self, progress: Progress | None = None) -> MigrationReport:
        """Go on with the other encoder, and return what changed.

        Vectors that are missing are translated. All are clustered again as by
        `rebuild(apply=True, vectors=…)`, which `undo` takes back as one step. The migration has
        ended then: its vectors are dropped, and after an undo they have to be added to a new one.
        Look at `report` first, which changes nothing. In a store, vectors may come from other
        threads meanwhile; then it begins again, a few times.

        Args:
            progress: as in `Links.rebuild`.

        Raises:
            ArgumentError: vectors are missing, and too few are there to translate them.
            ChangedError: vectors keep coming; nothing has changed.
        """

        def finished(now: Moment) -> MigrationReport:
            report = now.report(progress)
            rebuilt = self._host.rebuild(now.made(), self._stamp, report.disagreements)
            return replace(report, rebuild=rebuilt)

        report = self._steadily(finished)
        self._moment = self._source = None
        return report

    def _steadily(self, work: Callable[[Moment], T]) -> T:
        """Return the result of work at the present moment; begin again if something changes."""
        for tries_left in range(TRIES - 1, -1, -1):
            self._host.check_open()
            now = self._now()
            try:
                return work(now)
            except ChangedError as error:
                if not tries_left:
                    raise kept_changing(error) from error
            except Exception:
                if self._stamp == self._host.stamp() or not tries_left:
                    raise
        raise AssertionError("the last try returns or raises")

    def abandon(self) -> None:
        """End the migration; the clusterer stays with the old encoder."""
        self._host.check_open()
        self._moment = None
        self._host.end()

    def _now(self) -> Moment:
        """Return the present moment; it is kept until something changes."""
        host, stamp = self._host, self._host.stamp()
        if self._moment is None or stamp != self._stamp:
            source = self._source_now()
            self._moment = Moment(source, host.fetch, host.received, host.target)
            self._stamp = source.state.n_events, stamp[1]
        return self._moment

    def _source_now(self) -> RebuildSource:
        """Return the clusterer at this moment; it is read again after each change of it."""
        found = self._present()
        if found is None:
            raise nothing_left()
        return found

    def _present(self) -> RebuildSource | None:
        """Return the clusterer at this moment; None if all its vectors were removed."""
        if self._source is None or self._source.state.n_events != self._host.stamp()[0]:
            self._source = self._host.source()
        return self._source

    def __repr__(self) -> str:
        try:
            return f"Migration({self.status()})"
        except (ArgumentError, StoreClosedError):
            return "Migration(ended)"
