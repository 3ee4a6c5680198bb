"""Rows of a database, which stay in their place: what was taken of them, and which IDs they have.

The idempotency keys of such rows begin with a mark of the place. From the keys in the store comes
how many rows of the place were taken, and which vector each of them became.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from linkstream.cli import call
from linkstream.errors import ArgumentError, InputFileError

if TYPE_CHECKING:
    from linkstream.io import Source
    from linkstream.store import Store

_NOBODY = -1

Numbers = npt.NDArray[np.int64]


def mark_of(source: Source, name: str) -> str:
    """How keys of rows begin: with their place, if they have one, and the caller's name for them.

    A digest, so that no store tells which database it was fed from.
    """
    if not source.location:
        return "rows"
    words = f"{source.location}\0{name}".encode(errors="surrogateescape")
    return f"rows@{hashlib.blake2b(words, digest_size=8).hexdigest()}"


def check(file: str, field: str, store: Path | None) -> None:
    """Refuse to write back what has no database or no store, before anything is opened."""
    from linkstream.io import is_address

    if store is None or not is_address(file) or not field:
        raise ArgumentError(
            f"--write-back {field!r} for {'a database' if is_address(file) else 'a file'} "
            f"{'without' if store is None else 'with'} a store",
            expected="the name of a column or field, a database and a store",
            remedy="IDs of files go to --output; IDs change, and a store knows the current ones.",
        )


def prepare(source: Source, field: str, *, live: bool) -> None:
    """Make ready to write back; refuse where IDs could not be told apart from others."""
    from linkstream.io import DatabaseSource

    assert isinstance(source, DatabaseSource)
    if live:
        raise ArgumentError(
            "--write-back and --live",
            expected="one of them",
            remedy="Of live rows nobody knows which they were.",
        )
    source.prepare(field)


def check_labels(store: Store, source: Source) -> None:
    """Where IDs are to be written back, NotTrackedError before the work if there will be none."""
    if getattr(source, "is_prepared", False):
        store.labels()


def check_unchanged(store: Store, source: Source, name: str, known: int) -> None:
    """Refuse rows of a place that are not those taken from it before, up to the last one."""
    taken = max((each.end for each in _taken(store, mark_of(source, name))), default=0)
    if taken > known:
        raise InputFileError(
            f"{source.name}: {taken:,} rows were taken before, and from row {known:,} on "
            "they are not the same: changed, deleted, or others among them",
            expected="the rows as they were, and new ones after them",
            remedy='Cluster into a new store; or, to take all of them again, --source "again".',
        )


def write_back(store: Store, source: Source, name: str, stopped: Callable[[], bool]) -> int | None:
    """Write the current ID of each row to the database; how many rows. None: nobody asked."""
    from linkstream.io import DatabaseSource

    if not isinstance(source, DatabaseSource) or not source.is_prepared:
        return None
    labels = store.labels()
    vectors = _vectors(store, mark_of(source, name), source.row)
    there = np.flatnonzero(vectors != _NOBODY)
    ids = np.full(len(vectors), _NOBODY, dtype=np.int64)
    ids[there] = labels[vectors[there]]
    for done in source.write_back(ids):
        if stopped() and done < len(ids):
            call.keep(f"{done:,} IDs are written back; the same command writes them all")
            raise KeyboardInterrupt
    return len(ids)


@dataclass(frozen=True, slots=True)
class _Took:
    """Rows of a place that one operation took and nobody undid, and the vectors they became."""

    first_row: int
    first_vector: int
    vectors: int

    @property
    def end(self) -> int:
        """The row after the last."""
        return self.first_row + self.vectors


def _taken(store: Store, mark: str) -> list[_Took]:
    """What was taken from a place and not undone."""
    calls = [(each, _rows(each.key, mark)) for each in store.journal.operations()]
    took = [(rows[0], each) for each, rows in calls if rows is not None]
    found = [_Took(row, each.first_vector, store.journal.vectors_left(each)) for row, each in took]
    return [each for each in found if each.vectors]


def _rows(key: str | None, mark: str) -> tuple[int, int] | None:
    """The first row and the end in a key of a place; None: a key of something else."""
    start, _, rest = (key or "").partition(":")
    if start != mark:
        return None
    first, _, end = rest.partition(":")[0].partition("-")
    return int(first), int(end)


def _vectors(store: Store, mark: str, rows: int) -> Numbers:
    """The vector that each row became; −1 where it was undone."""
    found = np.full(rows, _NOBODY, dtype=np.int64)
    for took in _taken(store, mark):
        here = slice(took.first_row, took.first_row + took.vectors)
        found[here] = took.first_vector + np.arange(took.vectors)
    return found
