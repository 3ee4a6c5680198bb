"""History: what became of a cluster's ID, from the events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from linkstream.engine.events import (
    Created,
    Event,
    Forgotten,
    Moved,
    Named,
    Split,
    Tied,
    United,
    Vanished,
)


@dataclass(frozen=True, slots=True)
class History:
    """An ID's story: how it was born, what left it, what came to it, where it went.

    Attributes:
        cluster: the ID.
        chapters: its events, oldest first: born or split off, splits, joins, names, its end.
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
        return "\n".join(
            f"event {event.sequence}, vector {event.vector}: "
            f"{_line(self.cluster, event, born=place > 0)}"
            for place, event in enumerate(self.chapters)
        )


def of(cluster: int, events: Iterable[Event]) -> History:
    """The history of an ID, from all events that are kept."""
    chapters: list[Event] = []
    survivor = None
    for event in events:
        over = any(isinstance(chapter, (Forgotten, Vanished)) for chapter in chapters)
        if _line(cluster, event, born=bool(chapters), over=over) is None:
            continue
        chapters.append(event)
        if isinstance(event, (United, Tied)) and event.gone == cluster:
            survivor = event.cluster
    return History(cluster, tuple(chapters), survivor)


def _line(cluster: int, event: Event, *, born: bool, over: bool = False) -> str | None:
    """What an event was to an ID; None if it was nothing."""
    match event:
        case Created(cluster=here) if here == cluster:
            return "born"
        case Moved(cluster=here, member=member) if here == cluster and not born:
            return f"born when vector {member} was taken out"
        case Split(cluster=here, new_cluster=fresh) if fresh == cluster:
            return f"split off from cluster {here}"
        case Split(cluster=here, new_cluster=fresh) if here == cluster:
            return f"cluster {fresh} split off"
        case United(cluster=kept, gone=gone) | Tied(cluster=kept, gone=gone) if gone == cluster:
            return f"joined into cluster {kept}"
        case United(cluster=kept, gone=gone) | Tied(cluster=kept, gone=gone) if kept == cluster:
            return f"cluster {gone} joined it"
        case Forgotten(cluster=here) if here == cluster:
            return "forgotten"
        case Vanished(cluster=here, heir=-1) if here == cluster and not over:
            return "its last subcluster vanished"
        case Named(cluster=here, name=name) if here == cluster:
            return f"named {name!r}" if name else "its name taken away"
    return None
