"""Migrations of a store: what the other encoder has seen is kept in the file.

Each call of `add` is one durable transaction. The end is an operation `rebuild` of the journal,
and the rows of the migration are dropped in the same transaction, so that a crash leaves one or
the other. The functions that take a model run on the writer thread.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import rebuilding
from linkstream.clusterer.absent import are_there
from linkstream.clusterer.migrating import Moment
from linkstream.clusterer.migration import Migration
from linkstream.clusterer.migration_checks import (
    Flags,
    Kind,
    ended,
    nothing_left,
    nothing_to_migrate,
    target_of,
)
from linkstream.clusterer.migration_items import Target
from linkstream.clusterer.rebuilding import Prepared, RebuildSource
from linkstream.clusterer.verb_values import plain
from linkstream.clusterer.verbs import Rebuild
from linkstream.engine.linkage import Progress
from linkstream.errors import ArgumentError, ChangedError
from linkstream.identity.disagreements import Disagreement
from linkstream.identity.migration_report import MigrationReport
from linkstream.identity.rebuild_report import RebuildReport
from linkstream.identity.rebuild_sums import SubclusterSums
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space
from linkstream.store import about, reencoded, write_requests
from linkstream.store.handle import StoreHandle
from linkstream.store.index import Index
from linkstream.store.model import Model
from linkstream.store.prepared import changed, complete
from linkstream.store.reencoded import Reencoding
from linkstream.store.write_requests import WriteRequest

_ROWS = 4096  # vectors at a time; other calls run in between

Integers = npt.NDArray[np.int64]
Fixed = npt.NDArray[np.int32]
Rows = npt.NDArray[np.float32]
T = TypeVar("T")


def under_way(handle: StoreHandle) -> Migration | None:
    """Return the migration of a store that is under way; None if there is none."""
    found = handle.read(lambda model: _reencoding(handle, model))
    return None if found is None else Migration(_Host(handle, found.number, found.target))


def migrate(
    handle: StoreHandle, space: Space | None, thresholds: Thresholds | str | None
) -> Migration:
    """Begin a migration, or go on with the one that is under way."""
    target = target_of(space, thresholds)
    handle.check_writable()

    def begin(connection: sqlite3.Connection, model: Model) -> None:
        found = _reencoding(handle, model)
        if found is None:
            if not model.links.n_subclusters:
                raise nothing_to_migrate()
            reencoded.begin(connection, handle.path, target)
            handle.reencoding = None
        elif (space, thresholds) != (None, None) and target != found.target:
            raise _another(found.target)

    handle.change(begin)
    made = under_way(handle)
    assert made is not None, "it was begun"
    return made


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a migration, computed at one event.

    Attributes:
        report: what it would change.
        event: the number of events by then.
    """

    report: MigrationReport
    event: int

    def applied(self, handle: StoreHandle, answer: RebuildReport) -> MigrationReport:
        """Return the report after it was applied; reviews ask about disagreements from then on."""
        _keep_disagreements(handle, (self.event, self.report.disagreements))
        return replace(self.report, rebuild=answer)


def prepare_end(
    handle: StoreHandle, progress: Progress, *, apply: bool, key: str | None = None
) -> tuple[Ending, WriteRequest | None]:
    """Compute the end of the migration under way on the thread of the caller; nothing changes.

    With `apply`, also return the request that applies it, which is refused if anything changes
    meanwhile.

    Args:
        handle: the store, which may go on meanwhile.
        progress: called with the share of the work that is done; it may raise to end the work.
        apply: whether to return that request.
        key: the idempotency key of that request.

    Raises:
        ChangedError: the vectors could not be read, since the store has changed.
    """
    advance = _Forward(progress)
    host = _host_of(handle, advance)
    stamp, source = host.stamp(), host.source()
    if source is None:
        raise nothing_left()
    try:
        now = Moment(source, host.fetch, host.received, host.target)
        report = now.report(advance)
    except Exception as error:
        if host.stamp() == stamp:
            raise
        raise changed(stamp[0], host.stamp()[0]) from error
    moment = source.state.n_events, stamp[1]
    made = host.request(now.made(), moment, report.disagreements, key) if apply else None
    return Ending(report, moment[0]), made


class _Forward:
    """Passes a share on, and the greatest so far instead of a smaller one."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._share = progress, 0.0

    def __call__(self, share: float) -> None:
        self._share = max(self._share, share)
        self._progress(self._share)


def _host_of(handle: StoreHandle, progress: Progress | None = None) -> _Host:
    """Return the host of the migration that is under way; raise ArgumentError without one."""
    found = handle.read(lambda model: _reencoding(handle, model))
    if found is None:
        raise ended()
    return _Host(handle, found.number, found.target, progress)


def _keep_disagreements(handle: StoreHandle, found: tuple[int, tuple[Disagreement, ...]]) -> None:
    handle.read_core(lambda core: setattr(core, "disagreements", found))


def _another(there: Target) -> ArgumentError:
    """Return the error for a migration to something else than that under way."""
    return ArgumentError(
        "another space or other thresholds than those of the migration under way",
        expected=f"{there.space.text()}, thresholds {plain(there.thresholds)}",
        remedy="Leave both out to go on with it, or finish or abandon it first.",
    )


def _reencoding(handle: StoreHandle, model: Model) -> Reencoding | None:
    """Return the migration that is under way, read once for a model."""
    known = handle.reencoding
    if known is None or known[0] is not model:
        handle.reencoding = known = model, reencoded.load(model.connection, handle.path)
    found: Reencoding | None = known[1]
    return found


def _dimension(model: Model, found: Reencoding) -> int | None:
    """Return the dimension of the vectors whose items are there; None if there are none."""
    return found.dimension if found.has_any(_index(model), model.links.n_vectors) else None


def _index(model: Model) -> Index | None:
    """Return where vectors are found by number; None if they are not tracked."""
    return model.index if model.links.track_vectors else None


def _other_dimension(seen: int, found: Reencoding) -> ChangedError:
    """Return the error for vectors that came while those of another dimension did."""
    return ChangedError(
        f"vectors of dimension {seen}",
        expected=f"dimension {found.dimension}, which others of the migration have",
        remedy="Embed them with the same encoder.",
    )


class _Received:
    """The vectors of the other encoder, in the file."""

    def __init__(self, host: _Host) -> None:
        self._host = host

    def numbers(self) -> Integers:
        """Return the numbers that there is a vector of, in order."""
        return self._host.read(
            lambda model, found: found.numbers(_index(model), model.links.n_vectors)
        )

    def n_pairs(self) -> int:
        """Return how many numbers are in use where pairs of vectors alone come."""
        return self._host.read(lambda model, found: len(found.numbers(None, 0)))

    def old_numbers(self) -> Integers:
        """Return the numbers of items that came with their vector of the present encoder."""
        return self._host.read(
            lambda model, found: found.with_old(model.links.core.epochs.last.event)
        )

    def dimension(self) -> int | None:
        """Return the dimension of the vectors; None if there are none."""
        return self._host.read(lambda model, found: _dimension(model, found))

    def rows(self, numbers: Integers) -> Rows:
        """Return the vectors of some items that there is one of, in order of number."""
        return self._read(reencoded.rows, numbers)

    def old_rows(self, numbers: Integers) -> Rows:
        """Return the vectors of the present encoder that some items came with, likewise."""
        return self._read(reencoded.old_rows, numbers)

    def _read(self, read: Callable[..., Rows], numbers: Integers) -> Rows:
        path = self._host.path
        pieces = [
            self._host.read(
                lambda model, found, some=some: read(  # type: ignore[misc]
                    model.connection, path, found.number, some
                )
            )
            for some in self._host.pieces(numbers)
        ]
        return np.concatenate(pieces)

    def put(self, numbers: Integers, rows: Rows, old: Rows | None = None) -> None:
        """Add vectors, `old` those of the present encoder; those before are replaced."""
        self._host.put(numbers, rows, old)


class _Host:
    """A store whose migration of a number is under way."""

    def __init__(
        self,
        handle: StoreHandle,
        number: int,
        target: Target,
        progress: Progress | None = None,
    ) -> None:
        self.target = target
        self._handle, self._number, self._progress = handle, number, progress

    @property
    def path(self) -> Path:
        """The path of the store."""
        return self._handle.path

    @property
    def received(self) -> _Received:
        """The vectors of the other encoder."""
        return _Received(self)

    def read(self, work: Callable[[Model, Reencoding], T]) -> T:
        """Call a function with the model and the migration on the writer thread."""
        return self._handle.read(lambda model: work(model, self._mine(model)))

    def _mine(self, model: Model) -> Reencoding:
        """Return this migration; raise ArgumentError if it has ended."""
        found = _reencoding(self._handle, model)
        if found is None or found.number != self._number:
            raise ended()
        return found

    @property
    def kind(self) -> Kind:
        """Whether the store tracks and keeps its vectors."""
        return self._handle.read_core(Kind.of)

    def dimension(self) -> int:
        """Return the dimension of the present encoder."""
        return self._handle.read_core(lambda core: core.running().dimension)

    def present_space(self) -> Space:
        """Return the space of the present encoder."""
        return self._handle.read_core(lambda core: core.space)

    def check_open(self) -> None:
        """Raise ArgumentError if the migration has ended."""
        self.read(lambda model, found: None)

    def stamp(self) -> tuple[int, int]:
        """Return numbers that differ after each change."""
        return self.read(lambda model, found: (model.n_events, found.revision))

    def n_vectors(self) -> int:
        """Return the number of vectors that came so far."""
        return self._handle.read(lambda model: model.links.n_vectors)

    def holds(self, numbers: Integers) -> Flags:
        """Return whether each of some vectors that came is there."""
        return self._handle.read_core(lambda core: are_there(core, numbers))

    def source(self) -> RebuildSource | None:
        """Return the clusterer at this moment."""
        return self._handle.read_core(rebuilding.own_source)

    def fetch(self, numbers: Integers) -> Fixed:
        """Return vectors of the present encoder by number."""
        pieces = [
            self._handle.read_core(lambda core, some=some: core.kept(some))  # type: ignore[misc]
            for some in self.pieces(numbers)
        ]
        return np.concatenate(pieces)

    def pieces(self, numbers: Integers) -> Iterator[Integers]:
        """Yield numbers a few at a time; `progress` may raise in between to end the work."""
        for start in range(0, max(len(numbers), 1), _ROWS):
            if self._progress is not None:
                self._progress(0.0)
            yield numbers[start : start + _ROWS]

    def numbers_of(self, keys: Sequence[str]) -> Integers:
        """Return the numbers of vectors by their own keys."""
        return self._handle.read(lambda model: model.keyed.numbers(list(keys)))

    def put(self, numbers: Integers, rows: Rows, old: Rows | None) -> None:
        """Write vectors of the other encoder; those of items that are gone are left out."""

        def write(connection: sqlite3.Connection, model: Model) -> int:
            found = self._mine(model)
            if found.dimension not in (None, rows.shape[1]):
                if _dimension(model, found) is not None:
                    raise _other_dimension(rows.shape[1], found)
                reencoded.clear(connection, found)
            places, items, origins = _items(model, found, numbers)
            if not len(items):
                return 0
            size = reencoded.write(connection, found.number, items, origins, rows[places])
            if old is not None:
                epochs = np.full(len(items), reencoded.mark(model.links.core.epochs.last.event))
                size += reencoded.write(connection, found.number, -1 - items, epochs, old[places])
                found.note_old(items, epochs)
            found.note(items, origins, rows.shape[1])
            return size

        self._handle.check_writable()
        self._handle.change(write)

    def rebuild(
        self, made: Prepared, stamp: tuple[int, int], found: tuple[Disagreement, ...]
    ) -> RebuildReport:
        """Go on with the vectors of the other encoder, and drop those of the migration."""
        answer: RebuildReport = self._handle.submit(self.request(made, stamp, found)).result()
        _keep_disagreements(self._handle, (stamp[0], found))
        return answer

    def request(
        self,
        made: Prepared,
        stamp: tuple[int, int],
        found: tuple[Disagreement, ...],
        key: str | None = None,
    ) -> WriteRequest:
        """Return the request that does it, if nothing has changed since the stamp."""
        handle, wanted = self._handle, made.wanted
        verb = Rebuild(
            True, thresholds=wanted.thresholds, space=wanted.space, vectors=wanted.vectors
        )
        request = write_requests.request_of(verb, key=key)
        if not isinstance(wanted.vectors, SubclusterSums):
            wanted = replace(wanted, vectors=request.rows)
        request.prepared = replace(made, wanted=wanted)
        complete(request)
        request.check = self._check_for(stamp)

        def drop(connection: sqlite3.Connection) -> None:
            reencoded.end(connection, handle.path)
            about.set_disagreements(connection, handle.path, (stamp[0], found))
            handle.reencoding = None

        request.within = drop
        return request

    def _check_for(self, stamp: tuple[int, int]) -> Callable[[int], None]:
        """Return what raises ChangedError, on the writer thread, if something has changed."""

        def check(event: int) -> None:
            known = self._handle.reencoding
            found = None if known is None else known[1]
            if event != stamp[0] or found is None or found.revision != stamp[1]:
                raise changed(stamp[0], event)

        return check

    def end(self) -> None:
        """Drop the vectors of the migration."""
        handle = self._handle

        def drop(connection: sqlite3.Connection, model: Model) -> None:
            self._mine(model)
            reencoded.end(connection, handle.path)
            handle.reencoding = None

        handle.check_writable()
        handle.change(drop)


def _items(
    model: Model, found: Reencoding, numbers: Integers
) -> tuple[Integers, Integers, Integers]:
    """Return the places of items that are there, their numbers, and what brought each."""
    if not model.links.track_vectors:
        first = len(found.numbers(None, 0))
        places = np.arange(len(numbers), dtype=np.int64)
        return places, first + places, np.ones_like(places)
    places = np.flatnonzero(numbers < model.links.n_vectors)
    items = numbers[places]
    origins = [model.index.holding(item)[0] for item in items.tolist()]
    return places, items, np.array(origins, dtype=np.int64)
