"""Events: each change of the graph, typed, in order, with a sequence number.

The engine writes an event as one row of integers; people read it as one of the classes below.
Replaying the events onto an empty map gives the same subclusters, edges and cluster IDs.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

WIDTH = 6  # code, vector, and up to four numbers


@dataclass(frozen=True, slots=True)
class Event:
    """Something changed; `vector` is the number of the vector that brought it about."""

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


# A class's place here is its code in the engine's rows. Append only.
CLASSES: tuple[type[Event], ...] = (Created, Joined, Linked, Merged, Severed, Rejoined, Split)
CREATED, JOINED, LINKED, MERGED, SEVERED, REJOINED, SPLIT = range(len(CLASSES))


def from_rows(first_sequence: int, rows: npt.NDArray[np.int64]) -> list[Event]:
    """Events from rows, the first of which has the sequence number given."""
    return [
        _from_row(sequence, values) for sequence, values in enumerate(rows.tolist(), first_sequence)
    ]


def _from_row(sequence: int, row: list[int]) -> Event:
    event = CLASSES[row[0]]
    return event(sequence, *row[1 : len(fields(event))])
