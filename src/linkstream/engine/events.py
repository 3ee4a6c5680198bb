"""Events: each change of the graph, typed, in order, with a sequence number.

The engine writes an event as one row of integers; people read it as one of the classes below.
Replaying the events onto an empty map gives the same subclusters, edges and cluster IDs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from linkstream.errors import ArgumentError

WIDTH = 6  # code, vector, and up to four numbers
VERSION = 1  # of the plain values; a change that old readers would misread raises it


@dataclass(frozen=True, slots=True)
class Event:
    """Something changed; `vector` is the newest vector then: the one that brought it about."""

    kind: ClassVar[str] = "event"
    sequence: int
    vector: int

    def to_dict(self) -> dict[str, Any]:
        """The event as plain values, for JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"kind": self.kind, **values}


@dataclass(frozen=True, slots=True)
class Created(Event):
    """A vector began a new cluster, with one new subcluster (section 3.3)."""

    kind: ClassVar[str] = "created"
    subcluster: int
    cluster: int


@dataclass(frozen=True, slots=True)
class Joined(Event):
    """A vector joined a subcluster (equation 20)."""

    kind: ClassVar[str] = "joined"
    subcluster: int
    cluster: int


@dataclass(frozen=True, slots=True)
class Linked(Event):
    """A vector began a new subcluster, tied by an edge to `partner` (equation 21)."""

    kind: ClassVar[str] = "linked"
    subcluster: int
    partner: int
    cluster: int


@dataclass(frozen=True, slots=True)
class Merged(Event):
    """Two subclusters joined by an edge became one; `absorbed` is no more (section 3.4)."""

    kind: ClassVar[str] = "merged"
    subcluster: int
    absorbed: int
    cluster: int


@dataclass(frozen=True, slots=True)
class Severed(Event):
    """An edge failed equation 22 and was removed."""

    kind: ClassVar[str] = "severed"
    subcluster: int
    partner: int
    cluster: int


@dataclass(frozen=True, slots=True)
class Rejoined(Event):
    """The part cut off was tied again, through `partner` (section 3.4)."""

    kind: ClassVar[str] = "rejoined"
    subcluster: int
    partner: int
    cluster: int


@dataclass(frozen=True, slots=True)
class Split(Event):
    """A cluster fell in two: the part holding `subcluster` is now `new_cluster`.

    The part holding `partner` keeps the ID `cluster`.
    """

    kind: ClassVar[str] = "split"
    subcluster: int
    partner: int
    cluster: int
    new_cluster: int


@dataclass(frozen=True, slots=True)
class United(Event):
    """Two clusters became one, tied between two subclusters: `gone` now stands for `cluster`.

    The edge is firm: equation 22 does not judge it. Comes from settling or healing.
    """

    kind: ClassVar[str] = "united"
    subcluster: int
    partner: int
    cluster: int
    gone: int


# A class's place here is its code in the engine's rows. Append only.
CLASSES: tuple[type[Event], ...] = (
    Created,
    Joined,
    Linked,
    Merged,
    Severed,
    Rejoined,
    Split,
    United,
)
CREATED, JOINED, LINKED, MERGED, SEVERED, REJOINED, SPLIT, UNITED = range(len(CLASSES))


def from_rows(first_sequence: int, rows: npt.NDArray[np.int64]) -> list[Event]:
    """Events from rows, the first of which has the sequence number given."""
    return [
        _from_row(sequence, values) for sequence, values in enumerate(rows.tolist(), first_sequence)
    ]


def from_dict(values: Mapping[str, Any]) -> Event:
    """The event that `to_dict` made plain values of; ArgumentError for anything else."""
    known = {event.kind: event for event in CLASSES}
    event = known.get(values.get("kind", ""))
    if event is None or values.get("version", VERSION) != VERSION:
        raise ArgumentError(
            f"an event of kind {values.get('kind')!r}, version {values.get('version', VERSION)!r}",
            expected=f"version {VERSION}, of kind {', '.join(known)}",
            remedy="A newer linkstream may have written it.",
        )
    given = {name: value for name, value in values.items() if name not in ("kind", "version")}
    wanted = [field.name for field in fields(event)]
    if sorted(given) != sorted(wanted) or not all(type(v) is int for v in given.values()):
        raise ArgumentError(
            f"a {event.kind!r} event with {given}",
            expected=f"whole numbers for {', '.join(wanted)}",
            remedy="Pass on what to_dict() gave, whole.",
        )
    return event(**given)


def _from_row(sequence: int, row: list[int]) -> Event:
    event = CLASSES[row[0]]
    return event(sequence, *row[1 : len(fields(event))])
