"""Search in the payloads of a store; `StoreReader` takes `search` as a method.

The search index names rows; each is compared with the stored payload, and with the vectors that
are there, before it is returned. One search looks at a bounded number of rows.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from linkstream.clusterer import absent
from linkstream.clusterer.checks import whole_number
from linkstream.errors import ArgumentError, NotTrackedError
from linkstream.store import blocks, file, search_index
from linkstream.store.journal import Journal, Operation
from linkstream.store.model import Model
from linkstream.store.search_index import ROWS
from linkstream.store.words import Query, query_of

if TYPE_CHECKING:
    from linkstream.store.reader import StoreReader

LIMIT_MAX = 1_000  # hits in one answer, and hits that order="best" compares
LOOKED_AT = 5_000  # rows of the index that one search looks at
ORDERS = ("newest", "best")
_AT_ONCE = 64  # rows that are looked at together
_ALL = 2**62  # above every row of the index


@dataclass(frozen=True, slots=True)
class Hit:
    """A vector whose payload matches.

    Attributes:
        vector: its number.
        cluster: the cluster that it is in now; −1 if it is held.
        payload: its payload.
        rank: the share of the words of the payload that were sought; 0 if only fields were sought.
    """

    vector: int
    cluster: int
    payload: Any
    rank: float


@dataclass(frozen=True, slots=True)
class Found:
    """What a search has found.

    Attributes:
        hits: the vectors, newest first, or best first.
        next: pass it as `before` to go on; None if there is no more. It is set, too, if so many
            rows were looked at that the search ended early, maybe without any hit.
    """

    hits: tuple[Hit, ...]
    next: int | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"hits": [asdict(hit) for hit in self.hits], "next": self.next}


def search(  # noqa: D417  # `self` is that of a method
    self: StoreReader,
    words: str | None = None,
    *,
    where: Mapping[str, str | float] | None = None,
    cluster: int | None = None,
    limit: int = 20,
    offset: int = 0,
    before: int | None = None,
    order: str = "newest",
) -> Found:
    """Return vectors whose payloads have all the words and fields, with their clusters.

    The store must have a search index: `Store.open(path, ..., search=True)`. Capital letters and
    accents make no difference. A search looks at up to 5,000 rows; `next` tells how to go on.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/cars.links"
    >>> from linkstream import Thresholds
    >>> from linkstream.store import Store
    >>> store = Store.open(path, thresholds=Thresholds(0.7, 0.6, 0.9), search=True)
    >>> store.add([1.0, 0.0], payload={"file": "a.jpg", "text": "a red car"}).cluster
    0
    >>> [hit.payload["file"] for hit in store.search('"RED car"', where={"file": "a.jpg"}).hits]
    ['a.jpg']
    >>> store.close()

    Args:
        words: words to find in any text of the payload; a "phrase in quotes" has words that follow
            each other, and wor* finds all words that begin so. None: any.
        where: fields of the payload with the values that they must have, or contain if they are
            lists. Values are compared as texts: 3 equals "3".
        cluster: only vectors of this cluster; None (default): of all.
        limit: how many at most, up to 1,000.
        offset: how many to leave out first.
        before: only vectors with a lower number; the `next` of the answer before.
        order: "newest" first, or "best": of the newest 1,000 that match, those first in which the
            words make up most of the payload.
    """
    query = query_of(words, where)
    most = whole_number("limit", limit, "how many to return")
    first = whole_number("offset", offset, "how many to leave out", least=0)
    if most > LIMIT_MAX or first > LOOKED_AT or order not in ORDERS:
        raise ArgumentError(
            f"limit {most}, offset {first}, order {order!r:.80}",
            expected=f"limit to {LIMIT_MAX:,}, offset to {LOOKED_AT:,}, order of {ORDERS}",
            remedy="Go on with before=, the next of the answer.",
        )
    end = None if before is None else whole_number("before", before, "a vector", least=0)
    with _Search.of(self, query, cluster, end) as run:
        if order == "newest":
            return run.found(first, most)
        hits = sorted(run.found(0, LIMIT_MAX).hits, key=lambda hit: -hit.rank)
        return Found(tuple(hits[first : first + most]), None)


class _Search:
    """One search: its view of the index and the journal, and how far it got."""

    def __init__(
        self, store: StoreReader, connection: sqlite3.Connection, query: Query, cluster: int | None
    ) -> None:
        self._store, self._connection = store, connection
        self._query, self._expression, self._cluster = query, query.expression(), cluster
        self._journal = Journal(connection, store.path)
        self._below = _ALL  # rows of the index that were not looked at
        self._next: int | None = None  # vectors that were not looked at have lower numbers

    @classmethod
    @contextlib.contextmanager
    def of(
        cls, store: StoreReader, query: Query, cluster: int | None, end: int | None
    ) -> Iterator[_Search]:
        """Begin a search below a vector, through a connection of its own."""
        live = store.handle.read(lambda model: _checked_cluster(model, cluster))
        search_index.check_available()
        with (
            file.guarded(store.path),
            contextlib.closing(file.connect(store.path, read_only=True)) as connection,
            file.view(connection),
        ):
            if not search_index.exists(connection):
                raise _without_index()
            made = cls(store, connection, query, live)
            if end is not None:
                made._begin_below(end)
            yield made

    def _begin_below(self, end: int) -> None:
        def holding(model: Model) -> tuple[int, int] | None:
            return model.index.holding(end) if end < model.links.n_vectors else None

        place = self._store.handle.read(holding)
        if place is not None:
            number, position = place
            self._below = number * ROWS + self._journal.operation(number).row(position)

    def found(self, offset: int, limit: int) -> Found:
        """Return hits after leaving some out, the newest first."""
        hits = tuple(islice(self._hits(), offset, offset + limit + 1))
        if len(hits) > limit:
            return Found(hits[:limit], hits[limit - 1].vector)
        return Found(hits, self._next or None)

    def _hits(self) -> Iterator[Hit]:
        """Yield hits, the newest first, until there are no more or enough rows were looked at."""
        for _ in range(0, LOOKED_AT, _AT_ONCE):
            rows = search_index.hits(self._connection, self._expression, self._below, _AT_ONCE)
            yield from self._checked(rows)
            if len(rows) < _AT_ONCE:
                self._next = None
                return

    def _checked(self, rows: list[int]) -> Iterator[Hit]:
        """Yield those rows of the index that are hits."""
        operations = {
            number: self._journal.operation(number) for number in {r // ROWS for r in rows}
        }
        places = [(r // ROWS, _position(operations[r // ROWS], r % ROWS)) for r in rows]
        found = self._store.handle.read(lambda model: [_found(model, *place) for place in places])
        for row, (vector, cluster, below, ceiling) in zip(rows, found, strict=True):
            self._below, self._next = min(row, ceiling), below
            if vector < 0 or self._cluster not in (None, cluster):
                continue
            operation = operations[row // ROWS]
            payload = self._payload(operation, row % ROWS)
            share = self._query.share(payload)
            if share is not None:
                yield Hit(vector, cluster, payload, round(share, 6))

    def _payload(self, operation: Operation, row: int) -> Any:
        block, within = divmod(row, blocks.ROWS)
        lines = self._journal.payload_lines(operation, block)
        return None if lines is None else self._journal.parsed(operation, lines[within])


def _position(operation: Operation, row: int) -> tuple[int, bool]:
    """Return how many vectors of an operation come before a row, and whether it is a vector."""
    if not isinstance(operation.arguments.get("weight"), list):
        return row, True
    taken = operation.taken()
    position = int(np.searchsorted(taken, row))
    return position, position < len(taken) and int(taken[position]) == row


def _found(model: Model, operation: int, place: tuple[int, bool]) -> tuple[int, int, int, int]:
    """Return the vector and cluster of a row, −1 for none; and where older ones begin.

    The cluster of a held vector is −1. Older ones begin below a vector, and a row of the index.
    """
    first, end, there = model.index.stretch_at(operation, model.links.n_vectors)
    if not there or first + place[0] >= end:
        return -1, -1, end, (_last_of(model, end) + 1) * ROWS
    number = first + place[0]
    if not (place[1] and absent.are_there(model.links.core, [number])[0]):
        return -1, -1, number, _ALL
    engine = model.links.core.running()
    node = engine.holder(number)
    return number, engine.cluster_of(node) if node >= 0 else -1, number, _ALL


def _last_of(model: Model, end: int) -> int:
    """Return the operation of the vector before a number; 0 for none."""
    return model.index.holding(end - 1)[0] if end else 0


def _checked_cluster(model: Model, cluster: int | None) -> int | None:
    """Return the live cluster of an ID; raise UnknownIdError if there is none."""
    model.links.core.check_tracked("search()")
    return None if cluster is None else model.links.core.live(cluster)


def _without_index() -> NotTrackedError:
    return NotTrackedError(
        "a search in a store without a search index",
        expected="a store with search=True",
        remedy="Make the index once: Store.open(path, search=True), or set_search(True).",
    )
