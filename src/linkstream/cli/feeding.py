"""Rows of a source into a store, each once, however often the work is broken off.

Every piece of rows is added under an idempotency key made of where it begins and ends, and of a
digest of *all* rows up to its end and of the name the caller gave the source, if any. So a piece is
known to be in the store only if it and everything before it are the same vectors, whatever the file
is called and wherever it lies. The same file again adds nothing, a file that was cut short by a
kill goes on where it was, and one that has grown goes on with its new rows. Rows that were undone
are taken again, under the key they had.

Rows of a database stay in their place, which the key says, too. So it is known how many of that
place were taken, and rows that are no longer what they were are told, not taken again.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from linkstream.cli.places import check_unchanged, mark_of
from linkstream.cli.rows import Rows, in_source
from linkstream.errors import VectorError

if TYPE_CHECKING:
    from linkstream.io import Source
    from linkstream.store import Batch, Store

MOST = 1024  # rows of a piece

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a source that are in the store: where they stand in both, and the IDs given."""

    first_row: int
    first_vector: int
    ids: Ids
    fresh: bool  # taken now; else they were there

    @property
    def end(self) -> int:
        """The row after the last."""
        return self.first_row + len(self.ids)


class Chain:
    """The digest of all rows so far."""

    def __init__(self, name: str, mark: str = "rows") -> None:
        self._mark = mark
        self._hash = hashlib.blake2b(f"linkstream {name}".encode(errors="surrogateescape"))

    def after(self, vectors: npt.NDArray[Any]) -> Chain:
        """The chain with more rows; this one stays as it is."""
        longer = Chain.__new__(Chain)
        longer._mark = self._mark
        longer._hash = self._hash.copy()
        with np.errstate(over="ignore", invalid="ignore"):  # what cannot be used is refused later
            longer._hash.update(np.ascontiguousarray(vectors, dtype="<f4").data)
        return longer

    def key(self, first_row: int, rows: int) -> str:
        """The idempotency key of the piece that ends the chain."""
        return f"{self._mark}:{first_row}-{first_row + rows}:{self._hash.hexdigest()[:32]}"


def feed(
    store: Store,
    source: Source,
    *,
    name: str = "",
    live: bool = False,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[Piece]:
    """Bring the rows of a source into a store; each piece is handed over when it is durable.

    First come the pieces that were there already; to know them, up to 1,024 rows are waited for.
    Rows of a `live` source are new, and taken as they come. `stopped` is asked before each piece.
    """
    rows, chain = Rows(source), Chain(name, mark_of(source, name))
    while not live:
        known = _known(rows, chain, store)
        if known is None:
            break
        chain, piece = known
        yield piece
    if source.location and not live:
        check_unchanged(store, source, name, rows.row)
    flight = _Flight(rows, None if live else chain, stopped)
    first_vector = store.n_vectors
    try:
        for ids in store.feed(flight.batches(), renew=True):
            first_row, _ = flight.under_way.popleft()
            yield Piece(first_row, first_vector, ids, fresh=True)
            first_vector += len(ids)
    except VectorError as error:
        raise in_source(error, source.name, flight.refused(store)) from error


def _known(rows: Rows, chain: Chain, store: Store) -> tuple[Chain, Piece] | None:
    """The next piece, if the store has it: one as long as can be, or else a shorter one.

    Where the end of a piece was undone it is what is left of the piece.
    """
    vectors = rows.peek(MOST)
    if not len(vectors):
        return None
    after, length = chain.after(vectors), len(vectors)
    found = _left(store, after.key(rows.row, length))
    if found is None:
        after = chain
        for length in range(1, len(vectors)):
            after = after.after(vectors[length - 1 : length])
            found = _left(store, after.key(rows.row, length))
            if found is not None:
                break
    if found is None:
        return None
    first_vector, ids = found
    piece = Piece(rows.row, first_vector, ids, fresh=False)
    rows.drop(len(ids))
    return chain.after(vectors[: len(ids)]), piece


def _left(store: Store, key: str) -> tuple[int, Ids] | None:
    """What is left of the vectors taken under a key: the first and the IDs; None: nothing."""
    found = store.journal.find(key)
    left = 0 if found is None else store.journal.vectors_left(found)
    if found is None or not left:
        return None
    return found.first_vector, store.journal.answer(found)[:left]


class _Flight:
    """Pieces on their way into a store, and which of them are not answered yet."""

    def __init__(self, rows: Rows, chain: Chain | None, stopped: Callable[[], bool]) -> None:
        self._rows, self._chain, self._stopped = rows, chain, stopped
        self.under_way: deque[tuple[int, str | None]] = deque()  # first row and key

    def batches(self) -> Iterator[Batch]:
        from linkstream.store import Batch

        for block in self._rows:
            if self._stopped():
                return
            key = None
            if self._chain is not None:
                self._chain = self._chain.after(block.vectors)
                key = self._chain.key(block.first_row, len(block))
            self.under_way.append((block.first_row, key))
            yield Batch(block.vectors, payloads=block.payloads, idempotency_key=key)

    def refused(self, store: Store) -> int:
        """The first row of the piece that was refused: the first that is not in the store."""
        for first_row, key in self.under_way:
            if key is None or _left(store, key) is None:
                return first_row
        return self.under_way[-1][0]
