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

from linkstream.clusterer.checks import check_rebuild_thresholds, check_space, whole_number
from linkstream.clusterer.core import Core
from linkstream.clusterer.migrating import Moment, Target, check_kept
from linkstream.clusterer.rebuilding import Prepared, RebuildSource, rebuild, source_for_read
from linkstream.clusterer.reencoded import Reencoded, Rows, RowsInMemory
from linkstream.engine import door
from linkstream.engine.linkage import Progress
from linkstream.engine.state import Fixed, Integers
from linkstream.epochs import in_space
from linkstream.errors import ArgumentError, ChangedError, StoreClosedError, UnknownIdError
from linkstream.identity.disagreements import Disagreement
from linkstream.identity.migration_report import MigrationReport, MigrationStatus
from linkstream.identity.rebuild_report import RebuildReport
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space

_TRIES = 5

T = TypeVar("T")


class Host(Protocol):
    """The clusterer that a migration belongs to.

    Attributes:
        target: the space and the thresholds that the migration leads to.
    """

    target: Target

    @property
    def received(self) -> Reencoded:
        """The vectors of the other encoder."""

    def check_open(self) -> None:
        """Raise ArgumentError if the migration has ended."""

    def stamp(self) -> tuple[int, int]:
        """Return numbers that differ after each change of the clusterer or of `received`."""

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
    ) -> int:
        """Add vectors of the other encoder, in any order; return how many were taken.

        A vector of an item that has one already replaces it. Those of items that were removed are
        left out. All are taken or, if an error is raised, none.

        Args:
            vectors: rows of vectors, not centred.
            numbers: the number of the item of each row.
            keys: the items' own keys instead, in a store: texts alone, also if they are digits.
        """
        host = self._host
        host.check_open()
        state = self._source_now().state
        wanted = self._numbers(numbers, keys, state.n_vectors)
        rows = self._checked(vectors)
        if len(wanted) != len(rows):
            raise ArgumentError(
                f"{len(rows)} vectors and {len(wanted)} numbers or keys",
                expected="one number or one key for each vector",
                remedy="Row i of the vectors is the item that number or key i names.",
            )
        taken = state.vectors[wanted] >= 0
        if taken.any():
            host.received.put(wanted[taken], rows[taken])
        return int(np.count_nonzero(taken))

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
        wanted = _integers(numbers) if keys is None else self._host.numbers_of(texts(keys))
        unknown = wanted[(wanted < 0) | (wanted >= n)]
        if len(unknown):
            raise UnknownIdError(
                f"vector {int(unknown[0])}",
                expected=f"a number from 0 to {n - 1}",
                remedy="A vector's number is its place in order of arrival; add it first.",
            )
        twice = np.flatnonzero(np.bincount(wanted) > 1)
        if len(twice):
            raise ArgumentError(
                f"two vectors for item {int(twice[0])}",
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
        for tries_left in range(_TRIES - 1, -1, -1):
            self._host.check_open()
            now = self._now()
            try:
                return work(now)
            except ChangedError as error:
                if not tries_left:
                    raise _kept_changing(error) from error
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
            raise _nothing_left()
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


def _integers(numbers: npt.ArrayLike | None) -> Integers:
    try:
        given = np.asarray(numbers)
    except ValueError:  # rows of unequal lengths
        given = np.empty((0, 0))
    if given.ndim != 1 or (len(given) and given.dtype.kind not in "iu"):
        raise ArgumentError(
            f"numbers of shape {given.shape} and type {given.dtype}",
            expected="a list or 1-D array of integers",
            remedy="A vector's number is its place in order of arrival.",
        )
    return given.astype(np.int64)


def texts(keys: Sequence[str]) -> list[str]:
    """Return keys as a list; raise ArgumentError unless each is a text."""
    found = keys.tolist() if isinstance(keys, np.ndarray) else keys
    remedy = "Pass keys as texts, such as '17'; the numbers of vectors go into numbers=."
    if not isinstance(found, (list, tuple)):
        seen, expected = f"keys of type {type(keys).__name__}", "a list of texts"
        raise ArgumentError(seen, expected=expected, remedy=remedy)
    for place, key in enumerate(found):
        if not isinstance(key, str):
            seen = f"key {place}, {key!r:.80}, of type {type(key).__name__}"
            raise ArgumentError(seen, expected="a text for each key", remedy=remedy)
    return list(found)


def nothing_to_migrate() -> ArgumentError:
    """Return the error for a clusterer without vectors."""
    return ArgumentError(
        "a migration of a clusterer without vectors",
        expected="a clusterer with vectors",
        remedy="Begin a new clusterer for the other encoder.",
    )


def _nothing_left() -> ArgumentError:
    """Return the error for a migration whose vectors were all removed."""
    return ArgumentError(
        "a migration of a clusterer whose vectors were all removed",
        expected="a clusterer with vectors",
        remedy="Abandon the migration, or add vectors first.",
    )


def _kept_changing(error: ChangedError) -> ChangedError:
    """Return the error for changes during each try of a long call."""
    return ChangedError(
        error.seen,
        expected=f"no change meanwhile in one of {_TRIES} tries",
        remedy="Nothing has changed and the migration goes on: try again when fewer vectors come.",
    )


def ended() -> ArgumentError:
    """Return the error for a migration that has ended."""
    return ArgumentError(
        "a migration that was finished or abandoned",
        expected="one that is under way",
        remedy="Call migrate() to begin another one.",
    )


def target_of(space: Space | None, thresholds: Thresholds | str | None) -> Target:
    """Return what a migration leads to; raise ArgumentError for values of other types."""
    check_rebuild_thresholds(thresholds)
    return Target(check_space(space), thresholds)


class _InMemory:
    """The migration of a `Links`; its vectors are in memory and in no snapshot."""

    def __init__(self, core: Core, target: Target) -> None:
        self.target = target
        self._core, self._ended, self._seen = core, False, len(core.cuts)
        self._rows = RowsInMemory()

    @property
    def received(self) -> RowsInMemory:
        """The vectors of the other encoder, without those of vectors that were undone."""
        cuts = self._core.cuts[self._seen :]
        if cuts:
            self._seen += len(cuts)
            self._rows.cut(min(cuts))
        return self._rows

    def check_open(self) -> None:
        """Raise ArgumentError if the migration has ended."""
        if self._ended:
            raise ended()

    def stamp(self) -> tuple[int, int]:
        """Return numbers that differ after each change."""
        return self._core.running().n_events, self.received.revision

    def source(self) -> RebuildSource | None:
        """Return the clusterer at this moment."""
        return source_for_read(self._core, "migrate")

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
    check_kept(kept=core.track_vectors and core.keep_vectors)
    if source_for_read(core, "migrate") is None:
        raise nothing_to_migrate()
    return Migration(_InMemory(core, target))
