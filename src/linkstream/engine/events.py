"""Events: every change of the graph, typed, in order, with a sequence number.

The engine writes an event as a row of integers; `event_values.from_rows` returns a class below.
Replaying all events on an empty graph gives the same subclusters, edges and cluster IDs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from linkstream.engine.event_base import PROBABILITY as PROBABILITY
from linkstream.engine.event_base import VERSION as VERSION
from linkstream.engine.event_base import Decided as Decided
from linkstream.engine.event_base import Event as Event

WIDTH = 6  # code, vector, and up to four numbers


@dataclass(frozen=True, slots=True)
class Created(Decided):
    """A vector began a new cluster, with one new subcluster (section 3.3)."""

    subcluster: int
    cluster: int


@dataclass(frozen=True, slots=True)
class Joined(Decided):
    """A vector joined a subcluster (equation 20)."""

    subcluster: int
    cluster: int


@dataclass(frozen=True, slots=True)
class Linked(Decided):
    """A vector began a new subcluster with an edge to `partner` (equation 21)."""

    subcluster: int
    partner: int
    cluster: int


@dataclass(frozen=True, slots=True)
class Merged(Event):
    """Two subclusters joined by an edge became one; `absorbed` was removed (section 3.4)."""

    subcluster: int
    absorbed: int
    cluster: int


@dataclass(frozen=True, slots=True)
class Severed(Event):
    """An edge failed equation 22 and was removed."""

    subcluster: int
    partner: int
    cluster: int


@dataclass(frozen=True, slots=True)
class Rejoined(Event):
    """The part that was cut off was joined again by an edge to `partner` (section 3.4)."""

    subcluster: int
    partner: int
    cluster: int


@dataclass(frozen=True, slots=True)
class Split(Event):
    """A cluster was split: the part that holds `subcluster` is now `new_cluster`.

    The part that holds `partner` keeps the ID `cluster`.
    """

    subcluster: int
    partner: int
    cluster: int
    new_cluster: int


@dataclass(frozen=True, slots=True)
class United(Event):
    """Two clusters became one by an edge between two subclusters; `gone` is now `cluster`.

    The edge is settled: equation 22 does not test it. Settling and healing write this event.
    """

    subcluster: int
    partner: int
    cluster: int
    gone: int


@dataclass(frozen=True, slots=True)
class Weighed(Event):
    """The vector that is added next has a weight of `weight` 256ths."""

    weight: int


@dataclass(frozen=True, slots=True)
class Moved(Event):
    """Vector `member` was put into a subcluster.

    If the subcluster did not exist before, it has a pinned edge to `partner`, or, if `partner` is
    −1, is a cluster of its own.
    """

    member: int
    subcluster: int
    partner: int
    cluster: int


@dataclass(frozen=True, slots=True)
class Removed(Event):
    """The share of vector `member` (−1: not tracked) was taken out of a subcluster."""

    member: int
    subcluster: int
    cluster: int


@dataclass(frozen=True, slots=True)
class Vanished(Event):
    """An empty subcluster was removed; its edges moved to `heir`.

    `heir` −1: it had no neighbour, and its cluster was removed too.
    """

    subcluster: int
    heir: int
    cluster: int


@dataclass(frozen=True, slots=True)
class Tied(Event):
    """A user united two clusters by a pinned edge; `gone` is now `cluster`."""

    subcluster: int
    partner: int
    cluster: int
    gone: int


@dataclass(frozen=True, slots=True)
class Retied(Event):
    """Within a cluster, a pinned edge replaced the edge of `old` and `old_partner`."""

    subcluster: int
    partner: int
    old: int
    old_partner: int


@dataclass(frozen=True, slots=True)
class Held(Event):
    """The rule of an edge was set: 0 tested by equation 22, 1 settled, 2 pinned."""

    subcluster: int
    partner: int
    firmness: int


@dataclass(frozen=True, slots=True)
class Settled(Event):
    """A settlement begins, with its numbers of cuts and joins; all edges became settled.

    `asked`: 1 if a user asked for it, 0 if healing did.
    """

    cuts: int
    joins: int
    asked: int


@dataclass(frozen=True, slots=True)
class Flagged(Event):
    """A subcluster was locked (1), given a claim to its cluster's ID (2), both (3) or none (0)."""

    subcluster: int
    flags: int


@dataclass(frozen=True, slots=True)
class Same(Event):
    """A user said that two are the same: vectors (`of` 0), subclusters (1) or clusters (2)."""

    a: int
    b: int
    of: int


@dataclass(frozen=True, slots=True)
class Different(Event):
    """A user said that two are different: vectors (`of` 0), subclusters (1) or clusters (2)."""

    a: int
    b: int
    of: int


@dataclass(frozen=True, slots=True)
class Pinned(Event):
    """A subject of the correction before it: a subcluster, or `member` (if not −1) in it.

    `side` 0 and 1 are the two sides of `same` and `different`. After `relocated` they are the
    vector and the subject it is now the same as, and 2 is the subject it is different from.
    """

    subcluster: int
    member: int
    side: int


@dataclass(frozen=True, slots=True)
class Relocated(Event):
    """A user moved vector `member` to a cluster (−1: a new one); the next events are the steps."""

    member: int
    cluster: int


@dataclass(frozen=True, slots=True)
class Dropped(Event):
    """A user removed vector `member` (−1: not tracked, or several, which the next events name)."""

    member: int


@dataclass(frozen=True, slots=True)
class Forgotten(Event):
    """A cluster was forgotten: `reason` 0 a user asked, 1 too many subclusters, 2 idle."""

    cluster: int
    reason: int


@dataclass(frozen=True, slots=True)
class Named(Event):
    """A cluster got a name, or lost it (`name` None)."""

    texts: ClassVar[tuple[str, ...]] = ("name",)
    cluster: int
    name: str | None


@dataclass(frozen=True, slots=True)
class Ignored(Event):
    """A cluster is ignored (`on` 1) or no longer ignored (0)."""

    cluster: int
    on: int


@dataclass(frozen=True, slots=True)
class Grouped(Event):
    """The next `size` vectors were seen together; groups with the same `key` are one group."""

    texts: ClassVar[tuple[str, ...]] = ("key",)
    key: str | None
    size: int


@dataclass(frozen=True, slots=True)
class Enrolled(Event):
    """The next `size` vectors are prototypes of a name; `locked`: they do not drift."""

    texts: ClassVar[tuple[str, ...]] = ("name",)
    name: str | None
    size: int
    locked: int


@dataclass(frozen=True, slots=True)
class Undone(Event):
    """All events from sequence `to` on were undone; the state is that before event `to`."""

    to: int


@dataclass(frozen=True, slots=True)
class Absorbed(Event):
    """The next `size` vectors come from another clusterer, where they had `subclusters`."""

    subclusters: int
    size: int


@dataclass(frozen=True, slots=True)
class Retracted(Event):
    """The correction whose event has the number `correction` was retracted.

    `subcluster` −1: all of it; else only for that subcluster. `asked`: 1 if a user asked for it, 0
    if the more specific correction just before it in the log replaced it.
    """

    correction: int
    subcluster: int
    asked: int


@dataclass(frozen=True, slots=True)
class Redone(Event):
    """The changes that the `undone` event of sequence `undone` took back were restored."""

    undone: int


@dataclass(frozen=True, slots=True)
class Rebuilt(Event):
    """All was clustered again, without the old edges; `moved` vectors change their subcluster."""

    texts: ClassVar[tuple[str, ...]] = ("settings",)  # before → after; None: the same
    settings: str | None
    moved: int
    subclusters: int
    clusters: int


@dataclass(frozen=True, slots=True)
class Parted(Event):
    """A rebuild makes a cluster `new_cluster`; most of its vectors come from `cluster`."""

    cluster: int
    new_cluster: int


@dataclass(frozen=True, slots=True)
class Transferred(Event):
    """A rebuild puts a vector, or (`member` and `origin` −1) a subcluster as it is, elsewhere."""

    member: int
    origin: int
    subcluster: int
    cluster: int


@dataclass(frozen=True, slots=True)
class Replaced(Event):
    """A rebuild leaves no cluster of the ID `gone`; `cluster` holds most of its vectors."""

    cluster: int
    gone: int


@dataclass(frozen=True, slots=True)
class Bound(Event):
    """A rebuild ties two subclusters of a cluster by a settled edge."""

    subcluster: int
    partner: int


@dataclass(frozen=True, slots=True)
class Judged(Event):
    """A user said whether the decision on vector `member` was right.

    `margin` is the cluster margin of the decision in billionths, `told` the probability that it is
    right in millionths, by the model at this time (−1: unknown). `verdict`: of a vector that was
    given a cluster 0 wrong and 1 right, of a new cluster 2 and 3.
    """

    member: int
    margin: int
    told: int
    verdict: int


@dataclass(frozen=True, slots=True)
class Compared(Event):
    """The correction before it answers a question on two clusters: whether they are the `same`.

    `margin` is that of the two as wholes, `told` the probability that they are one; as in `judged`.
    `smaller` is the number of vectors of the smaller one.
    """

    margin: int
    told: int
    same: int
    smaller: int


@dataclass(frozen=True, slots=True)
class Drifted(Event):
    """The newest answers contradict the probabilities more than chance explains.

    `about`: 0 of decisions, 1 that two clusters are one identity. `told` and `right` are the mean
    probability and the share that was right of `answers` answers, in millionths.
    """

    about: int
    answers: int
    told: int
    right: int


@dataclass(frozen=True, slots=True)
class Deferred(Event):
    """The vector is held: it got a number but is in no subcluster until it is decided."""


@dataclass(frozen=True, slots=True)
class Accepted(Event):
    """A user said what is done with unsure vectors from now on; None: nothing special."""

    texts: ClassVar[tuple[str, ...]] = ("policy",)
    policy: str | None


@dataclass(frozen=True, slots=True)
class Assigned(Event):
    """A user decided on the held vector `member`: the next events put it somewhere."""

    member: int


# The index of a class is its code in the engine's rows. Append only.
CLASSES: tuple[type[Event], ...] = (
    *(Created, Joined, Linked, Merged, Severed, Rejoined, Split, United),
    *(Weighed, Moved, Removed, Vanished, Tied, Retied, Held, Settled, Flagged),
    *(Same, Different, Pinned, Relocated, Dropped, Forgotten, Named, Ignored),
    *(Grouped, Enrolled, Undone, Absorbed, Retracted, Redone),
    *(Rebuilt, Parted, Transferred, Replaced, Bound),
    *(Judged, Compared, Drifted, Deferred, Accepted, Assigned),
)
CREATED, JOINED, LINKED, MERGED, SEVERED, REJOINED, SPLIT, UNITED = range(8)
WEIGHED, MOVED, REMOVED, VANISHED, TIED, RETIED, HELD, SETTLED, FLAGGED = range(8, 17)
SAME, DIFFERENT, PINNED, RELOCATED, DROPPED, FORGOTTEN, NAMED, IGNORED = range(17, 25)
GROUPED, ENROLLED, UNDONE, ABSORBED, RETRACTED, REDONE = range(25, 31)
REBUILT, PARTED, TRANSFERRED, REPLACED, BOUND = range(31, 36)
JUDGED, COMPARED, DRIFTED, DEFERRED, ACCEPTED, ASSIGNED = range(36, 42)
ARRIVALS = (CREATED, JOINED, LINKED, DEFERRED)  # one for each vector


def methods(reader: type) -> dict[int, Callable[..., None]]:
    """Return the methods of a class that are named after kinds of events, such as `_created`."""
    named = {code: f"_{event.kind}" for code, event in enumerate(CLASSES)}
    return {code: getattr(reader, name) for code, name in named.items() if hasattr(reader, name)}


def row(code: int, vector: int, *numbers: int) -> tuple[int, ...]:
    """Return an event as a row of the engine."""
    return (code, vector, *numbers) + (-1,) * (WIDTH - 2 - len(numbers))
