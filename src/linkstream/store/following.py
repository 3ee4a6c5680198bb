"""Follow the journal of a store, for `Store.changes`."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import numpy as np

from linkstream.clusterer.views import check_moments
from linkstream.engine.events import WIDTH
from linkstream.errors import StoreError
from linkstream.identity.change_records import Rows
from linkstream.identity.changes import Changes, changes_between
from linkstream.identity.following import Fetch, Follower
from linkstream.store import file
from linkstream.store.handle import StoreHandle
from linkstream.store.journal import Journal
from linkstream.store.model import Model

AT_ONCE = 50_000  # events that are read together


class FollowedJournal:
    """What was read of the journal so far; many threads may ask.

    The journal is read through a connection of its own, so that a reader blocks no writer.

    Args:
        handle: the open store.
    """

    def __init__(self, handle: StoreHandle) -> None:
        self._handle = handle
        self._lock = threading.Lock()
        self._follower: Follower | None = None

    def changes(self, since: int, until: int | None) -> Changes:
        """Return what `Store.changes` returns."""
        n_events, last = self._handle.read(_position)
        since, end = check_moments(since, until, n_events)
        with self._lock, self._journal() as journal:
            follower = self._read(n_events, lambda *span: self._rows(journal, last, *span))
            return changes_between(follower, since, end)

    def _read(self, n_events: int, fetch: Fetch) -> Follower:
        """Read what is new; a failure half-way begins again at the next call."""
        follower, self._follower = self._follower or Follower(fetch), None
        follower.fetch = fetch
        while follower.n_events < n_events:
            end = min(n_events, follower.n_events + AT_ONCE)
            with file.distrusted(self._handle.path, "the log"):
                follower.read(fetch(follower.n_events, end))
        self._follower = follower
        return follower

    @contextlib.contextmanager
    def _journal(self) -> Iterator[Journal]:
        path = self._handle.path
        with (
            file.guarded(path),
            contextlib.closing(file.connect(path, read_only=True)) as connection,
        ):
            yield Journal(connection, path)

    def _rows(self, journal: Journal, last: int, first: int, end: int) -> Rows:
        """Return events by sequence numbers; raise StoreError if some of them were lost."""
        found = [np.empty((0, WIDTH), dtype=np.int64)]
        for operation in journal.operations(journal.before_event(first, last), last):
            if operation.first_event >= end:
                break
            skipped = max(0, first - operation.first_event)
            found.append(operation.events[skipped : end - operation.first_event])
        rows = np.concatenate(found)
        if len(rows) < end - first:
            raise StoreError(
                f"{self._handle.path}: events {first} to {end} are not all there",
                expected="a journal with all its events, which changes() reads from the first on",
                remedy="A repair could not read some; the copy that it made may have them.",
            )
        return rows


def _position(model: Model) -> tuple[int, int]:
    """Return how many events and operations were acknowledged."""
    model.links.core.check_tracked("changes()")
    return model.n_events, model.number
