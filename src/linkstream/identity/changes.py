"""What changed between two moments: vectors added, removed and moved; clusters joined and split."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.errors import ArgumentError
from linkstream.identity.change_records import ABSENT, GONE, HELD
from linkstream.identity.following import Follower

SHOWN = 10  # clusters of each kind in the text

Integers = npt.NDArray[np.int64]
Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False, slots=True)
class Changes:
    """What differs between two moments; what was done and undone in between does not count.

    `vectors`, `before` and `after` have one entry for each vector whose label differs, by number.
    The label −1 is that of a removed vector, −2 that of a number that no vector has: it came
    later, or was undone. −3 is that of a held vector, which `labels` tells as −1.

    Attributes:
        since: events before the first moment: the sequence number of the first event in between.
        until: events before the second moment.
        vectors: numbers of the vectors whose label differs, rising.
        before: their labels at the first moment.
        after: their labels at the second moment.
        joined: clusters that are gone, each with the one that it is part of now.
        split: clusters, each with a new one that came out of it.
        new: clusters that are new and came out of no other.
        gone: clusters that are gone and are part of no other.
    """

    since: int
    until: int
    vectors: Integers
    before: Integers
    after: Integers
    joined: Pairs = ()
    split: Pairs = ()
    new: tuple[int, ...] = ()
    gone: tuple[int, ...] = ()

    @property
    def moved(self) -> Integers:
        """Vectors that were in one cluster and are in another, or were held and are in one."""
        return self.vectors[_are_there(self.before) & _are_there(self.after)]

    @property
    def added(self) -> Integers:
        """Vectors that are there, in a cluster or held, and were not: new, or brought back."""
        return self.vectors[~_are_there(self.before) & _are_there(self.after)]

    @property
    def removed(self) -> Integers:
        """Vectors that were there and are not: removed, forgotten or undone."""
        return self.vectors[_are_there(self.before) & ~_are_there(self.after)]

    def counts(self) -> dict[str, int]:
        """Return how many vectors were added, removed and moved, and how many clusters changed."""
        names = ("added", "removed", "moved", "joined", "split", "new", "gone")
        return {name: len(getattr(self, name)) for name in names}

    def apply(self, labels: npt.ArrayLike) -> Integers:
        """Return the labels at the second moment, from those at the first.

        Args:
            labels: what `labels()` returned at the first moment.
        """
        given = np.asarray(labels, dtype=np.int64)
        n = max(len(given), int(self.vectors[-1]) + 1 if len(self.vectors) else 0)
        made = np.full(n, ABSENT, dtype=np.int64)
        made[: len(given)] = given
        if not np.array_equal(made[self.vectors], _as_labels(self.before)):
            raise ArgumentError(
                "labels of another moment",
                expected=f"those before event {self.since}",
                remedy="Pass what labels() returned when n_events was that number.",
            )
        made[self.vectors] = _as_labels(self.after)
        there: Integers = made[made != ABSENT]
        return there

    def text(self) -> str:
        """Return the counts as a sentence, then the clusters that changed."""
        n = self.counts()
        lines = [
            f"Events {self.since:,} to {self.until:,}: vectors: {n['added']:,} added, "
            f"{n['removed']:,} removed, {n['moved']:,} moved; clusters: {n['joined']:,} joined, "
            f"{n['split']:,} split off, {n['new']:,} new, {n['gone']:,} gone."
        ]
        lines += _line("joined", (f"{gone} into {into}" for gone, into in self.joined))
        lines += _line("split off", (f"{new} from {cluster}" for cluster, new in self.split))
        lines += _line("new", map(str, self.new)) + _line("gone", map(str, self.gone))
        return "\n".join(lines)

    __str__ = text

    def to_dict(self, *, vectors: bool = True) -> dict[str, Any]:
        """Return plain values for JSON.

        Args:
            vectors: whether to list the vectors with their labels; `counts` has their numbers.
        """
        names = ("vectors", "before", "after") if vectors else ()
        return {
            "since": self.since,
            "until": self.until,
            "counts": self.counts(),
            "joined": [list(pair) for pair in self.joined],
            "split": [list(pair) for pair in self.split],
            "new": list(self.new),
            "gone": list(self.gone),
            **{name: getattr(self, name).tolist() for name in names},
        }


def _are_there(labels: Integers) -> npt.NDArray[np.bool_]:
    there: npt.NDArray[np.bool_] = (labels >= 0) | (labels == HELD)
    return there


def _as_labels(labels: Integers) -> Integers:
    """Return labels as `labels` tells them: those of held vectors are −1."""
    return np.where(labels == HELD, GONE, labels)


def _line(title: str, told: Iterable[str]) -> list[str]:
    """Return the first clusters of a kind as a line; none if there are none."""
    words = list(told)
    more = f" and {len(words) - SHOWN:,} more" if len(words) > SHOWN else ""
    return [f"  {title}: {', '.join(words[:SHOWN])}{more}"] if words else []


def changes_between(follower: Follower, since: int, until: int) -> Changes:
    """Return what the events from `since` up to but excluding `until` changed.

    Costs steps in proportion to these events and to the vectors whose labels they changed.
    """
    vectors, before, after = _net(*follower.vectors.between(since, until).T)
    clusters = _clusters(follower.clusters.between(since, until).tolist())
    return Changes(since, until, vectors, before, after, **clusters)


def _net(
    vectors: Integers, before: Integers, after: Integers
) -> tuple[Integers, Integers, Integers]:
    """Return each vector once, with its first label before and its last label after."""
    numbers, first = np.unique(vectors, return_index=True)
    last = len(vectors) - 1 - np.unique(vectors[::-1], return_index=True)[1]
    differs = before[first] != after[last]
    return numbers[differs], before[first][differs], after[last][differs]


def _clusters(records: list[list[int]]) -> dict[str, Any]:
    """Return the clusters that were joined, split off, are new and are gone."""
    was: dict[int, int] = {}
    now: dict[int, int] = {}
    out_of: dict[int, int] = {}
    into: dict[int, int] = {}
    for cluster, before, after, other in records:
        was.setdefault(cluster, before)
        now[cluster] = after
        (out_of if after else into)[cluster] = other
    came = [each for each in sorted(now) if now[each] > was[each]]
    went = [each for each in sorted(now) if now[each] < was[each]]
    origins = {each: _followed(each, out_of, was) for each in came}
    ends = {each: _followed(each, into, now) for each in went}
    return {
        "joined": tuple((each, end) for each, end in ends.items() if end >= 0),
        "split": tuple((origin, each) for each, origin in origins.items() if origin >= 0),
        "new": tuple(each for each, origin in origins.items() if origin < 0),
        "gone": tuple(each for each, end in ends.items() if end < 0),
    }


def _followed(cluster: int, others: Mapping[int, int], there: Mapping[int, int]) -> int:
    """Return the first cluster on the way that is there at the other moment; −1 for none."""
    seen = {cluster}
    other = others[cluster]
    while other >= 0 and not there.get(other, 1):
        if other in seen:
            return -1
        seen.add(other)
        other = others.get(other, -1)
    return other
