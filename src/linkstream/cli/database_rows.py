"""Rows of a database: how many were added before, and writing their IDs back.

The idempotency keys of such rows begin with a digest of their address. The keys in a store
therefore tell which rows were added, and which vector each of them became.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from linkstream.cli import outcome
from linkstream.cli.outcome import usage_error
from linkstream.io.row_keys import added_rows, key_prefix

if TYPE_CHECKING:
    from linkstream.io import Source
    from linkstream.store import Store

_NO_VECTOR = -1

Numbers = npt.NDArray[np.int64]


def check_write_back(file: str, field: str, store: Path | None) -> None:
    """Raise ArgumentError if there is no database or no store, before anything is opened."""
    from linkstream.io import is_address

    if store is None or not is_address(file) or not field:
        raise usage_error(
            f"--write-back {field!r} for {'a database' if is_address(file) else 'a file'} "
            f"{'without' if store is None else 'with'} a store",
            "the name of a column or field, a database and a store",
            "IDs of files go to --output; IDs change, and a store knows the current ones.",
        )


def prepare_write_back(source: Source, field: str, *, live: bool) -> None:
    """Prepare the column or field for IDs; raise ArgumentError if the rows are live."""
    from linkstream.io import DatabaseSource

    assert isinstance(source, DatabaseSource)
    if live:
        raise usage_error(
            "--write-back and --live",
            "one of them",
            "The store does not know which rows of the database live rows were.",
        )
    source.prepare(field)


def check_labels(store: Store, source: Source) -> None:
    """Raise NotTrackedError if IDs are to be written back and the store has no labels."""
    if getattr(source, "is_prepared", False):
        store.labels()


def write_back(store: Store, source: Source, name: str, stopped: Callable[[], bool]) -> int | None:
    """Write the current ID of each row to the database; return how many, or None if not asked."""
    from linkstream.io import DatabaseSource

    if not isinstance(source, DatabaseSource) or not source.is_prepared:
        return None
    labels = store.labels()
    vectors = _vectors(store, key_prefix(source, name), source.row)
    there = np.flatnonzero(vectors != _NO_VECTOR)
    ids = np.full(len(vectors), _NO_VECTOR, dtype=np.int64)
    ids[there] = labels[vectors[there]]
    for done in source.write_back(ids):
        if stopped() and done < len(ids):
            outcome.note_change(f"{done:,} IDs are written back; the same command writes them all")
            raise KeyboardInterrupt
    return len(ids)


def _vectors(store: Store, prefix: str, rows: int) -> Numbers:
    """Return the vector that each row became; −1 if it was undone."""
    found = np.full(rows, _NO_VECTOR, dtype=np.int64)
    for each in added_rows(store, prefix):
        found[each.first_row : each.end] = each.first_vector + np.arange(each.vectors)
    return found
