"""Add the rows of a source to a store, each row once, however often the work is interrupted.

Rows are added in pieces. The idempotency key of a piece holds its first and last row, and a digest
of *all* rows up to its end and of the name the user gave the source, if any. A piece is therefore
in the store only if it and everything before it are the same vectors, whatever the file is called.
The same file again adds nothing, an interrupted file continues where it stopped, and a file that
has grown continues with its new rows. Rows that were undone are added again, under the same key.

The key of rows of a database holds their table as well, see `row_keys`: if rows that were
added before have changed, that is an error.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from linkstream.errors import DimensionError, VectorError
from linkstream.io.row_keys import check_unchanged, key_prefix

if TYPE_CHECKING:
    from linkstream.io.source import Block, Source
    from linkstream.store import Batch, Store

MOST = 1024  # rows of a piece

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a source that are in the store, and the IDs they got."""

    first_row: int
    first_vector: int
    ids: Ids
    fresh: bool  # added now; False if they were in the store before

    @property
    def end(self) -> int:
        """The row after the last."""
        return self.first_row + len(self.ids)


class Blocks(Protocol):
    """A source, or the rows of one that can be added."""

    row: int

    def __iter__(self) -> Iterator[Block]:
        """Yield the blocks, front to back."""


class Rows:
    """The rows of a source in order, with a look at the next ones."""

    def __init__(self, source: Blocks) -> None:
        self._blocks = iter(source)
        self._held: deque[Block] = deque()
        self.row = source.row  # the next row

    def peek(self, most: int) -> npt.NDArray[Any]:
        """Return the next rows without consuming them; fewer at the end."""
        there = sum(map(len, self._held))
        while there < most:
            block = next(self._blocks, None)
            if block is None:
                break
            self._held.append(block)
            there += len(block)
        if not self._held:
            return np.empty((0, 0), dtype=np.float32)
        held = [block.vectors for block in self._held]
        joined: npt.NDArray[Any] = held[0] if len(held) == 1 else np.concatenate(held)
        return joined[:most]

    def drop(self, rows: int) -> None:
        """Consume rows that were peeked at."""
        self.row += rows
        while rows:
            block = self._held.popleft()
            if len(block) > rows:
                self._held.appendleft(block.tail(rows))
                return
            rows -= len(block)

    def __iter__(self) -> Iterator[Block]:
        while self._held:
            yield self._held.popleft()
        yield from self._blocks


class Digest:
    """The digest of all rows so far; it makes idempotency keys."""

    def __init__(self, name: str, prefix: str = "rows") -> None:
        self._prefix = prefix
        self._hash = hashlib.blake2b(f"linkstream {name}".encode(errors="surrogateescape"))

    def after(self, vectors: npt.NDArray[Any]) -> Digest:
        """Return the digest with more rows; this one stays as it is."""
        longer = Digest.__new__(Digest)
        longer._prefix = self._prefix
        longer._hash = self._hash.copy()
        with np.errstate(over="ignore", invalid="ignore"):  # bad numbers are refused later
            longer._hash.update(np.ascontiguousarray(vectors, dtype="<f4").data)
        return longer

    def key(self, first_row: int, rows: int) -> str:
        """Return the idempotency key of the last piece."""
        return f"{self._prefix}:{first_row}-{first_row + rows}:{self._hash.hexdigest()[:32]}"


def feed(
    store: Store,
    source: Source,
    *,
    name: str = "",
    live: bool = False,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[Piece]:
    """Add the rows of a source to a store; yield each piece when it is durable.

    Pieces that are in the store already come first. To find them, up to 1,024 rows are read before
    the first piece. Rows that are `live` are all new: they are added as they arrive, without keys.
    The user's `name` for the source is part of the keys. `stopped` is asked before each piece.
    """
    rows, digest = Rows(source), Digest(name, key_prefix(source, name))
    while not live:
        known = known_piece(rows, digest, store)
        if known is None:
            break
        digest, piece = known
        yield piece
    if source.location and not live:
        check_unchanged(store, source, name, rows.row)
    pending = _Pending(rows, None if live else digest, stopped)
    first_vector = store.n_vectors
    try:
        for ids in store.feed(pending.batches(), renew=True):
            first_row, _ = pending.pieces.popleft()
            yield Piece(first_row, first_vector, ids, fresh=True)
            first_vector += len(ids)
    except VectorError as error:
        raise in_source(error, source.name, pending.refused(store)) from error


def known_piece(rows: Rows, digest: Digest, store: Store) -> tuple[Digest, Piece] | None:
    """Return the next piece if the store has it: the longest possible, else the shortest.

    If the end of the piece was undone, return the part that is left.
    """
    vectors = rows.peek(MOST)
    if not len(vectors):
        return None
    found = _left(store, digest.after(vectors).key(rows.row, len(vectors)))
    after = digest
    for length in range(1, len(vectors)) if found is None else ():
        after = after.after(vectors[length - 1 : length])
        found = _left(store, after.key(rows.row, length))
        if found is not None:
            break
    if found is None:
        return None
    first_vector, ids = found
    piece = Piece(rows.row, first_vector, ids, fresh=False)
    rows.drop(len(ids))
    return digest.after(vectors[: len(ids)]), piece


def _left(store: Store, key: str) -> tuple[int, Ids] | None:
    """Return the first vector and the IDs added under a key and not undone; None if none are."""
    found = store.journal.find(key)
    left = 0 if found is None else store.journal.vectors_left(found)
    if found is None or not left:
        return None
    return found.first_vector, store.journal.answer(found)[:left]


class _Pending:
    """Pieces that were sent to a store and are not answered yet."""

    def __init__(self, rows: Rows, digest: Digest | None, stopped: Callable[[], bool]) -> None:
        self._rows, self._digest, self._stopped = rows, digest, stopped
        self.pieces: deque[tuple[int, str | None]] = deque()  # first row and key

    def batches(self) -> Iterator[Batch]:
        from linkstream.store import Batch

        for block in self._rows:
            if self._stopped():
                return
            key = None
            if self._digest is not None:
                self._digest = self._digest.after(block.vectors)
                key = self._digest.key(block.first_row, len(block))
            self.pieces.append((block.first_row, key))
            columns = {"payloads": block.payloads, "at": block.at, "ids": block.ids}
            yield Batch(block.vectors, idempotency_key=key, **columns)

    def refused(self, store: Store) -> int:
        """Return the first row of the first piece that is not in the store."""
        for first_row, key in self.pieces:
            if key is None or _left(store, key) is None:
                return first_row
        return self.pieces[-1][0]


# Errors that name the row of a source


@contextmanager
def naming_rows(name: str, first_row: int) -> Iterator[None]:
    """Let errors name the row of the source, for vectors that begin with this row."""
    try:
        yield
    except VectorError as error:
        raise in_source(error, name, first_row) from error


def in_source(error: VectorError, name: str, first_row: int) -> VectorError:
    """Return an error about a row of a source, from one about a row of a block."""
    row = first_row + (error.row or 0)
    seen = error.seen.removeprefix(f"row {error.row} ")
    other_encoder = isinstance(error, DimensionError)
    return type(error)(
        f"{name}, row {row} {seen}" if seen != error.seen else f"{name}, row {row}: {seen}",
        expected=error.expected,
        remedy=error.remedy if other_encoder else "Drop or mend such rows and run again.",
        row=row,
    )
