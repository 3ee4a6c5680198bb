"""History: what became of a cluster's ID, from the events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from linkstream.engine.events import Created, Event, Split, United


@dataclass(frozen=True, slots=True)
class History:
    """An ID's story: how it was born, what left it, what came to it, where it went.

    Attributes:
        cluster: the ID.
        chapters: its events, oldest first: created or split off, splits, joins.
        survivor: the ID it was joined into, or None while it is live.
    """

    cluster: int
    chapters: tuple[Event, ...]
    survivor: int | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "cluster": self.cluster,
            "chapters": [event.to_dict() for event in self.chapters],
            "survivor": self.survivor,
        }

    def __str__(self) -> str:
        return "\n".join(_line(self.cluster, event) for event in self.chapters)


def of(cluster: int, events: Iterable[Event]) -> History:
    """The history of an ID, from all events that are kept."""
    chapters = tuple(event for event in events if _concerns(cluster, event))
    gone = [event for event in chapters if isinstance(event, United) and event.gone == cluster]
    return History(cluster, chapters, gone[-1].cluster if gone else None)


def _concerns(cluster: int, event: Event) -> bool:
    if isinstance(event, Created):
        return event.cluster == cluster
    if isinstance(event, Split):
        return cluster in (event.cluster, event.new_cluster)
    return isinstance(event, United) and cluster in (event.cluster, event.gone)


def _line(cluster: int, event: Event) -> str:
    at = f"event {event.sequence}, vector {event.vector}: "
    if isinstance(event, Split):
        if event.new_cluster == cluster:
            return f"{at}split off from cluster {event.cluster}"
        return f"{at}cluster {event.new_cluster} split off"
    if isinstance(event, United):
        if event.gone == cluster:
            return f"{at}joined into cluster {event.cluster}"
        return f"{at}cluster {event.gone} joined it"
    return f"{at}born"
