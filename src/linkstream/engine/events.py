"""Events: each change of the graph, typed, in order, with a sequence number.

The engine writes an event as one row of integers; people read it as one of the classes below.
Replaying the events onto an empty map gives the same subclusters, edges and cluster IDs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    texts: ClassVar[tuple[str, ...]] = ()  # fields that are texts; rows hold their numbers
    sequence: int
    vector: int

    def to_dict(self) -> dict[str, Any]:
        """The event as plain values, for JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"kind": self.kind, "version": VERSION, **values}


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


@dataclass(frozen=True, slots=True)
class Weighed(Event):
    """The vector on its way in counts `weight` 256ths of a full one."""

    kind: ClassVar[str] = "weighed"
    weight: int


@dataclass(frozen=True, slots=True)
class Moved(Event):
    """Vector `member` was put into a subcluster.

    It is new if it was not there before: tied to `partner` by an edge that is law, or, where
    `partner` is −1, a cluster of its own.
    """

    kind: ClassVar[str] = "moved"
    member: int
    subcluster: int
    partner: int
    cluster: int


@dataclass(frozen=True, slots=True)
class Removed(Event):
    """The share of vector `member` (−1: not tracked) was taken out of a subcluster."""

    kind: ClassVar[str] = "removed"
    member: int
    subcluster: int
    cluster: int


@dataclass(frozen=True, slots=True)
class Vanished(Event):
    """A subcluster is no more, nor what it held; its edges went to `heir`.

    −1: it had no neighbour, and the cluster is gone with it.
    """

    kind: ClassVar[str] = "vanished"
    subcluster: int
    heir: int
    cluster: int


@dataclass(frozen=True, slots=True)
class Tied(Event):
    """Two clusters became one by a person's word: an edge that is law. `gone` is `cluster` now."""

    kind: ClassVar[str] = "tied"
    subcluster: int
    partner: int
    cluster: int
    gone: int


@dataclass(frozen=True, slots=True)
class Retied(Event):
    """Within a cluster the edge of `old` and `old_partner` gave way to one that is law."""

    kind: ClassVar[str] = "retied"
    subcluster: int
    partner: int
    old: int
    old_partner: int


@dataclass(frozen=True, slots=True)
class Held(Event):
    """An edge's firmness was set: 0 judged by equation 22, 1 settled, 2 law."""

    kind: ClassVar[str] = "held"
    subcluster: int
    partner: int
    firmness: int


@dataclass(frozen=True, slots=True)
class Settled(Event):
    """A settlement begins, of so many cuts and joins; each edge there is has become firm.

    `asked`: 1 where a person asked for it, 0 where healing did.
    """

    kind: ClassVar[str] = "settled"
    cuts: int
    joins: int
    asked: int


@dataclass(frozen=True, slots=True)
class Flagged(Event):
    """A subcluster was locked (1), given a claim to its cluster's ID (2), both (3) or none (0)."""

    kind: ClassVar[str] = "flagged"
    subcluster: int
    flags: int


@dataclass(frozen=True, slots=True)
class Same(Event):
    """A person said that two are one: vectors (`of` 0), subclusters (1) or clusters (2)."""

    kind: ClassVar[str] = "same"
    a: int
    b: int
    of: int


@dataclass(frozen=True, slots=True)
class Different(Event):
    """A person said that two are not one: vectors (`of` 0), subclusters (1) or clusters (2)."""

    kind: ClassVar[str] = "different"
    a: int
    b: int
    of: int


@dataclass(frozen=True, slots=True)
class Pinned(Event):
    """What the constraint before it speaks of: a subcluster, or `member` (if not −1) in it.

    `side` 0 and 1 are the two sides of `same` and `different`. After `relocated` they are the
    vector and what it is now the same as, and 2 is what it is different from.
    """

    kind: ClassVar[str] = "pinned"
    subcluster: int
    member: int
    side: int


@dataclass(frozen=True, slots=True)
class Relocated(Event):
    """A person moved vector `member` to a cluster; what follows in the log is how."""

    kind: ClassVar[str] = "relocated"
    member: int
    cluster: int


@dataclass(frozen=True, slots=True)
class Dropped(Event):
    """A person removed vector `member` (−1: not tracked)."""

    kind: ClassVar[str] = "dropped"
    member: int


@dataclass(frozen=True, slots=True)
class Forgotten(Event):
    """A cluster was forgotten: `reason` 0 a person's word, 1 too many subclusters, 2 idle."""

    kind: ClassVar[str] = "forgotten"
    cluster: int
    reason: int


@dataclass(frozen=True, slots=True)
class Named(Event):
    """A cluster was given a name, or, by None, lost it."""

    kind: ClassVar[str] = "named"
    texts: ClassVar[tuple[str, ...]] = ("name",)
    cluster: int
    name: str | None


@dataclass(frozen=True, slots=True)
class Ignored(Event):
    """A cluster is to be ignored (`on` 1) or no longer (0)."""

    kind: ClassVar[str] = "ignored"
    cluster: int
    on: int


@dataclass(frozen=True, slots=True)
class Grouped(Event):
    """The next `size` vectors were seen together; `key` ties groups of several calls."""

    kind: ClassVar[str] = "grouped"
    texts: ClassVar[tuple[str, ...]] = ("key",)
    key: str | None
    size: int


@dataclass(frozen=True, slots=True)
class Enrolled(Event):
    """The next `size` vectors are prototypes of a name; `locked`: they do not drift."""

    kind: ClassVar[str] = "enrolled"
    texts: ClassVar[tuple[str, ...]] = ("name",)
    name: str | None
    size: int
    locked: int


@dataclass(frozen=True, slots=True)
class Undone(Event):
    """All events from sequence `to` on were undone: the state is what it was then."""

    kind: ClassVar[str] = "undone"
    to: int


@dataclass(frozen=True, slots=True)
class Absorbed(Event):
    """The next `size` vectors came together from another clusterer, as so many subclusters."""

    kind: ClassVar[str] = "absorbed"
    subclusters: int
    size: int


@dataclass(frozen=True, slots=True)
class Retracted(Event):
    """The correction whose event has the number `correction` was taken back.

    `subcluster` −1: all of it; else only what it said of that subcluster. `asked`: 1 where a person
    asked for it, 0 where it gave way to the later, more specific correction before it in the log.
    """

    kind: ClassVar[str] = "retracted"
    correction: int
    subcluster: int
    asked: int


@dataclass(frozen=True, slots=True)
class Redone(Event):
    """What the `undone` event of sequence `undone` took back stands again, as it was."""

    kind: ClassVar[str] = "redone"
    undone: int


# A class's place here is its code in the engine's rows. Append only.
CLASSES: tuple[type[Event], ...] = (
    *(Created, Joined, Linked, Merged, Severed, Rejoined, Split, United),
    *(Weighed, Moved, Removed, Vanished, Tied, Retied, Held, Settled, Flagged),
    *(Same, Different, Pinned, Relocated, Dropped, Forgotten, Named, Ignored),
    *(Grouped, Enrolled, Undone, Absorbed, Retracted, Redone),
)
CREATED, JOINED, LINKED, MERGED, SEVERED, REJOINED, SPLIT, UNITED = range(8)
WEIGHED, MOVED, REMOVED, VANISHED, TIED, RETIED, HELD, SETTLED, FLAGGED = range(8, 17)
SAME, DIFFERENT, PINNED, RELOCATED, DROPPED, FORGOTTEN, NAMED, IGNORED = range(17, 25)
GROUPED, ENROLLED, UNDONE, ABSORBED, RETRACTED, REDONE = range(25, 31)


def row(code: int, vector: int, *numbers: int) -> tuple[int, ...]:
    """An event as the engine's row."""
    return (code, vector, *numbers) + (-1,) * (WIDTH - 2 - len(numbers))


def from_rows(
    first_sequence: int, rows: npt.NDArray[np.int64], texts: Sequence[str] = ()
) -> list[Event]:
    """Events from rows, the first of which has the sequence number given."""
    return [
        _from_row(sequence, values, texts)
        for sequence, values in enumerate(rows.tolist(), first_sequence)
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
    if sorted(given) != sorted(wanted) or not all(
        _fits(value, text=name in event.texts) for name, value in given.items()
    ):
        raise ArgumentError(
            f"a {event.kind!r} event with {given}",
            expected=f"whole numbers (texts for {event.texts}) for {', '.join(wanted)}",
            remedy="Pass on what to_dict() gave, whole.",
        )
    return event(**given)


def _fits(value: object, *, text: bool) -> bool:
    return value is None or type(value) is str if text else type(value) is int


# What the numbers of a row stand for, by the names of the fields; WIDTH − 2 of each class.
NOTHING, SUBCLUSTER, CLUSTER, VECTOR, NUMBER = range(5)
_MEANINGS = {
    **dict.fromkeys(
        ("subcluster", "partner", "absorbed", "heir", "old", "old_partner"), SUBCLUSTER
    ),
    **dict.fromkeys(("cluster", "new_cluster", "gone"), CLUSTER),
    "member": VECTOR,
}
KINDS_OF_NUMBERS = [
    [_MEANINGS.get(field.name, NUMBER) for field in fields(event)[2:]]
    + [NOTHING] * (WIDTH - len(fields(event)))
    for event in CLASSES
]

# Of each class: how many numbers its rows hold after the code, and which of them stand for texts.
_WIDTHS = [len(fields(event)) - 1 for event in CLASSES]
_TEXTS = [
    [place for place, field in enumerate(fields(event)[1:]) if field.name in event.texts]
    for event in CLASSES
]


def _from_row(sequence: int, row: list[int], texts: Sequence[str]) -> Event:
    code = row[0]
    values: list[Any] = row[1 : 1 + _WIDTHS[code]]
    for place in _TEXTS[code]:
        values[place] = None if values[place] < 0 else texts[values[place]]
    return CLASSES[code](sequence, *values)
