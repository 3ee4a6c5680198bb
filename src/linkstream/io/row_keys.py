"""The idempotency keys of rows of files and databases, which tell rows that were added before."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkstream.errors import InputFileError

if TYPE_CHECKING:
    from linkstream.io.source import Source
    from linkstream.store import Store


def key_prefix(source: Source, name: str) -> str:
    """Return how the keys of rows begin: with their address, if any, and the user's name for them.

    The address is hashed, so that no store reveals the database it was filled from.
    """
    if not source.location:
        return "rows"
    words = f"{source.location}\0{name}".encode(errors="surrogateescape")
    return f"rows@{hashlib.blake2b(words, digest_size=8).hexdigest()}"


def check_unchanged(store: Store, source: Source, name: str, known: int) -> None:
    """Raise InputFileError if rows that were added before are different now."""
    added = max((each.end for each in added_rows(store, key_prefix(source, name))), default=0)
    if added > known:
        raise InputFileError(
            f"{source.name}: {added:,} rows were taken before, and from row {known:,} on "
            "they are not the same: changed, deleted, or mixed with others",
            expected="the rows as they were, and new ones after them",
            remedy='Cluster into a new store; or, to add all of them again, --source "again".',
        )


@dataclass(frozen=True, slots=True)
class AddedRows:
    """Rows that one operation added and that were not undone, and the vectors they became."""

    first_row: int
    first_vector: int
    vectors: int

    @property
    def end(self) -> int:
        """The row after the last."""
        return self.first_row + self.vectors


def added_rows(store: Store, prefix: str) -> list[AddedRows]:
    """Return the rows that were added under keys of a prefix, by operation."""
    calls = [(_first_row(each.key, prefix), each) for each in store.journal.operations()]
    found = [
        AddedRows(row, each.first_vector, store.journal.vectors_left(each))
        for row, each in calls
        if row is not None
    ]
    return [each for each in found if each.vectors]


def _first_row(key: str | None, prefix: str) -> int | None:
    """Return the first row that a key names; None for a key with another prefix."""
    start, _, rest = (key or "").partition(":")
    return int(rest.partition("-")[0]) if start == prefix else None
