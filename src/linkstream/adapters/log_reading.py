"""What a `Diarizer` reads of the event log: new events, names of clusters, vectors that left."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from linkstream.engine.events import Dropped, Event, Redone, Undone
from linkstream.errors import NotTrackedError

if TYPE_CHECKING:
    from linkstream.adapters.turns import Span
    from linkstream.clusterer import Links
    from linkstream.store import Store
    from linkstream.turn_model.chain import Floats

UNDECIDED = -2  # in place of a cluster: the vector is held, and no speaker is known
UNDECIDED_NAME = "undecided"
_EVENTS_MAX = 100_000  # more new events than this are not examined one by one
_RESERVED = re.compile(rf"speaker-[0-9]+|{UNDECIDED_NAME}")
_ARRIVALS = ("created", "joined", "linked", "deferred")
# Kinds of events that change no name.
_NAME_STAYS = {
    *("created", "joined", "linked", "deferred", "merged", "severed", "rejoined", "split"),
    *("weighed", "grouped", "judged", "compared", "drifted", "accepted", "assigned"),
}

News = Sequence[Event] | None  # new events; None: they cannot be examined


class LogReader:
    """New events of a clusterer or store, each read once.

    Args:
        links: the clusterer or store.
    """

    def __init__(self, links: Links | Store) -> None:
        self._links = links
        self._seen = links.n_events

    def read(self) -> News:
        """Return the events since the last call; None if they are too many, or dropped."""
        since, now = self._seen, self._links.n_events
        if since == now:
            return ()
        self._seen = now
        if not 0 <= now - since <= _EVENTS_MAX:
            return None
        try:
            fresh = self._links.events(since)
        except NotTrackedError:  # the log no longer holds these events
            return None
        self._seen = max(now, fresh[-1].sequence + 1) if fresh else now
        return fresh


class Names:
    """Names of clusters, read again only after events that may change them.

    Args:
        links: the clusterer or store.
    """

    def __init__(self, links: Links | Store) -> None:
        self._links = links
        self._names: dict[int, str] = {}
        self._stale = True

    def __call__(self, cluster: int) -> str:
        """Return the name of a cluster, or else `speaker-` and its ID."""
        if cluster < 0:
            return UNDECIDED_NAME
        return self._names.get(cluster, f"speaker-{cluster}")

    def named(self) -> list[int]:
        """Return the clusters with names, as of the last update, in order."""
        return sorted(self._names)

    def note(self, news: News) -> None:
        """Note whether new events may have changed names.

        Args:
            news: the new events.
        """
        if news is None or any(event.kind not in _NAME_STAYS for event in news):
            self._stale = True

    def update(self) -> set[int]:
        """Read the names again if they may have changed; return the renamed clusters.

        A name such as `speaker-3` is not used: it would be taken for the ID of a cluster. Neither
        is `undecided`.
        """
        if not self._stale:
            return set()
        before, self._stale = self._names, False
        self._names = {
            each.id: each.name
            for each in self._links.clusters()
            if each.name and not _RESERVED.fullmatch(each.name)
        }
        every = {*before, *self._names}
        return {each for each in every if before.get(each) != self._names.get(each)}


class Segment(NamedTuple):
    """A segment of a recording with the decision on it, as it came.

    Attributes:
        span: start and end.
        number: number of its vector.
        arrival: event with which the vector came; −1 if it is not known.
        cluster: cluster of the decision; UNDECIDED if the vector was held.
        sure: how probably the decision is right, if that is known.
        row: its vector, rounded; None where evidence of time is not used.
    """

    span: Span
    number: int
    arrival: int
    cluster: int
    sure: float | None
    row: Floats | None


class Leaving:
    """Vectors that left: removed while they were held, or taken by an undo until a redo."""

    def __init__(self) -> None:
        self._dropped: dict[int, int] = {}  # vector that was removed → event
        self._taken: dict[int, tuple[list[Segment], dict[int, int]]] = {}  # by event of the undo

    def was_removed(self, vector: int) -> bool:
        """Return whether a vector was removed.

        Args:
            vector: its number.
        """
        return vector in self._dropped

    def after(self, event: Event, segments: Callable[[], list[Segment]]) -> list[Segment] | None:
        """Return the segments that stand after an event; None if they stay as they are.

        Args:
            event: the next event of the log.
            segments: returns the segments that stood before.
        """
        if isinstance(event, Dropped):
            self._dropped[event.member] = event.sequence
        elif isinstance(event, Undone):
            return self._undone(event, segments())
        elif isinstance(event, Redone):
            again, dropped = self._taken.pop(event.undone, ([], {}))
            self._dropped |= dropped
            return [*segments(), *again] if again else None
        elif event.kind in _ARRIVALS:
            self._taken.clear()  # nothing can be redone any more
        return None

    def _undone(self, event: Undone, segments: Sequence[Segment]) -> list[Segment] | None:
        gone = [each for each in segments if each.arrival >= event.to]
        dropped = {one: at for one, at in self._dropped.items() if at >= event.to}
        self._taken[event.sequence] = gone, dropped
        self._dropped = {one: at for one, at in self._dropped.items() if one not in dropped}
        return [each for each in segments if each.arrival < event.to] if gone else None


def arrival_of(news: News, vector: int) -> int:
    """Return the sequence number of the event with which a vector came; −1 if it is not there.

    Args:
        news: the events since the vector came.
        vector: number of the vector.
    """
    came = [each for each in news or () if each.kind in _ARRIVALS and each.vector == vector]
    return came[-1].sequence if came else -1


def may_miss_undo(news: News) -> bool:
    """Return whether vectors may be gone of which it is not known when they came.

    Args:
        news: the new events.
    """
    return news is None or any(isinstance(event, Undone) for event in news)
