"""Migrations of a store: what the other encoder has seen is kept in the file.

Each call of `add` is one durable transaction. The end is an operation `rebuild` of the journal,
and the rows of the migration are dropped in the same transaction, so that a crash leaves one or
the other. The functions that take a model run on the writer thread.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import rebuilding
from linkstream.clusterer.migrating import Target, check_kept
from linkstream.clusterer.migration import Migration, ended, nothing_to_migrate, target_of
from linkstream.clusterer.rebuilding import Prepared, RebuildSource
from linkstream.clusterer.verb_values import plain
from linkstream.clusterer.verbs import Rebuild
from linkstream.errors import ArgumentError, ChangedError
from linkstream.identity.disagreements import Disagreement
from linkstream.identity.migration_report import MigrationReport
from linkstream.identity.rebuild_report import RebuildReport
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space
from linkstream.store import about, reencoded, write_requests
from linkstream.store.handle import StoreHandle
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
            check_kept(kept=model.links.track_vectors and model.links.keep_vectors)
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


def finish(handle: StoreHandle) -> tuple[MigrationReport, WriteRequest]:
    """Finish the migration that is under way; also return the request that did it."""
    found = handle.read(lambda model: _reencoding(handle, model))
    if found is None:
        raise ended()
    host = _Host(handle, found.number, found.target)
    report = Migration(host).finish()
    assert host.request is not None, "it was submitted"
    return report, host.request


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
    return found.dimension if len(found.numbers(model.index, model.links.n_vectors)) else None


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
            lambda model, found: found.numbers(model.index, model.links.n_vectors)
        )

    def dimension(self) -> int | None:
        """Return the dimension of the vectors; None if there are none."""
        return self._host.read(lambda model, found: _dimension(model, found))

    def rows(self, numbers: Integers) -> Rows:
        """Return the vectors of some items that there is one of, in order of number."""
        path = self._host.path
        pieces = [
            self._host.read(
                lambda model, found, some=some: reencoded.rows(  # type: ignore[misc]
                    model.connection, path, found.number, some
                )
            )
            for some in _pieces(numbers)
        ]
        return np.concatenate(pieces)

    def put(self, numbers: Integers, rows: Rows) -> None:
        """Add vectors; those of the same items before are replaced."""
        self._host.put(numbers, rows)


class _Host:
    """A store whose migration of a number is under way."""

    def __init__(self, handle: StoreHandle, number: int, target: Target) -> None:
        self.target = target
        self._handle, self._number = handle, number
        self.request: WriteRequest | None = None  # the rebuild at the end

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

    def check_open(self) -> None:
        """Raise ArgumentError if the migration has ended."""
        self.read(lambda model, found: None)

    def stamp(self) -> tuple[int, int]:
        """Return numbers that differ after each change."""
        return self.read(lambda model, found: (model.n_events, found.revision))

    def source(self) -> RebuildSource | None:
        """Return the clusterer at this moment."""
        work = lambda core: rebuilding.source_for_read(core, "migrate")  # noqa: E731
        return self._handle.read_core(work)

    def fetch(self, numbers: Integers) -> Fixed:
        """Return vectors of the present encoder by number."""
        pieces = [
            self._handle.read_core(lambda core, some=some: core.kept(some))  # type: ignore[misc]
            for some in _pieces(numbers)
        ]
        return np.concatenate(pieces)

    def numbers_of(self, keys: Sequence[str]) -> Integers:
        """Return the numbers of vectors by their own keys."""
        return self._handle.read(lambda model: model.keyed.numbers(list(keys)))

    def put(self, numbers: Integers, rows: Rows) -> None:
        """Write vectors of the other encoder; those of items that are gone are left out."""

        def write(connection: sqlite3.Connection, model: Model) -> int:
            found = self._mine(model)
            if found.dimension not in (None, rows.shape[1]):
                if _dimension(model, found) is not None:
                    raise _other_dimension(rows.shape[1], found)
                reencoded.clear(connection, found)
            places = np.flatnonzero(numbers < model.links.n_vectors)
            items = numbers[places]
            if not len(items):
                return 0
            origins = model.index.operations_of(items)
            size = reencoded.write(connection, found.number, items, origins, rows[places])
            found.note(items, origins, rows.shape[1])
            return size

        self._handle.check_writable()
        self._handle.change(write)

    def rebuild(
        self, made: Prepared, stamp: tuple[int, int], found: tuple[Disagreement, ...]
    ) -> RebuildReport:
        """Go on with the vectors of the other encoder, and drop those of the migration."""
        handle, wanted = self._handle, made.wanted
        verb = Rebuild(
            True, thresholds=wanted.thresholds, space=wanted.space, vectors=wanted.vectors
        )
        request = write_requests.request_of(verb)
        request.prepared = replace(made, wanted=replace(wanted, vectors=request.rows))
        complete(request)
        request.check, disagreements = self._check_for(stamp), (stamp[0], found)

        def drop(connection: sqlite3.Connection) -> None:
            reencoded.end(connection, handle.path)
            about.set_disagreements(connection, handle.path, disagreements)
            handle.reencoding = None

        request.within = drop
        self.request = handle.submit(request)
        answer: RebuildReport = self.request.result()
        handle.read_core(lambda core: setattr(core, "disagreements", disagreements))
        return answer

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


def _pieces(numbers: Integers) -> list[Integers]:
    return [numbers[start : start + _ROWS] for start in range(0, len(numbers), _ROWS)] or [numbers]
