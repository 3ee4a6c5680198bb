"""Photos made of labelled faces, and somebody who looks at a few of them; for `photos.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.protocol import Half, Labels
from linkstream import Links
from linkstream.errors import ContradictionError

LARGEST, FAMILY = 6, 8  # people in a photo, at most; in a family

Photos = list[list[int]]  # places in the stream


@dataclass(frozen=True, slots=True)
class Album:
    """A stream of faces, and the photos that it comes in."""

    stream: Half
    photos: Photos


# Photos


def strangers(half: Half, rng: np.random.Generator) -> Album:
    """Shuffled faces, cut into photos; nobody is in a photo twice."""
    order = rng.permutation(len(half.y))
    stream = Half(half.X[order], half.y[order])
    photos: Photos = []
    size = 0
    for place, who in enumerate(stream.y):
        there = [stream.y[other] for other in photos[-1]] if photos else []
        if not photos or len(there) == size or who in there:
            photos.append([])
            size = int(rng.integers(1, LARGEST + 1))
        photos[-1].append(place)
    return Album(stream, photos)


def families(half: Half, rng: np.random.Generator) -> Album:
    """Photos of people who look alike: each shows some of a family of eight.

    A family is somebody taken at random and those whose mean vectors are the most similar.
    """
    left = {who: rng.permutation(rows).tolist() for who, rows in rows_of(half.y).items()}
    homes = kin(half, rng)
    order: list[int] = []
    photos: Photos = []
    while left:
        some = list(left)[int(rng.integers(len(left)))]
        there = [who for who in homes[some] if who in left]
        size = min(int(rng.integers(1, LARGEST + 1)), len(there))
        photos.append([])
        for who in rng.permutation(np.array(there, dtype=object))[:size]:
            photos[-1].append(len(order))
            order.append(left[who].pop())
            if not left[who]:
                del left[who]
    return Album(Half(half.X[order], half.y[order]), photos)


def kin(half: Half, rng: np.random.Generator) -> dict[Any, list[Any]]:
    """The family of each identity."""
    rows = rows_of(half.y)
    means = {who: half.X[places].mean(axis=0) for who, places in rows.items()}
    means = {who: mean / np.linalg.norm(mean) for who, mean in means.items()}
    homes: dict[Any, list[Any]] = {}
    while means:
        head = means[list(means)[int(rng.integers(len(means)))]]
        family = sorted(means, key=lambda who: -float(means[who] @ head))[:FAMILY]
        homes |= dict.fromkeys(family, family)
        for who in family:
            del means[who]
    return homes


def rows_of(y: Labels) -> dict[Any, list[int]]:
    """Places of each identity."""
    return {who: np.flatnonzero(y == who).tolist() for who in np.unique(y).tolist()}


# The oracle


def correct(links: Links, y: Labels, looked_at: Sequence[int]) -> Counter[str]:
    """Look at some vectors, put right what is wrong; says how often what was done."""
    deeds: Counter[str] = Counter()
    for vector in looked_at:
        deed, verb = remedy(links, y, int(vector))
        try:
            verb()
        except ContradictionError:
            deed = "refused"
        deeds[deed] += 1
    return deeds


def remedy(links: Links, y: Labels, vector: int) -> tuple[str, Callable[[], object]]:
    """What to do about one vector: nothing, to move it, take it out, or join its cluster."""
    labels, who = links.labels(), y[vector]
    here, home = int(labels[vector]), home_of(labels, y, who)
    if majority(y[labels == here], who) == who:
        if home in (None, here):
            return "right", lambda: None
        other = int(np.flatnonzero((labels == home) & (y == who))[0])
        return "joined", lambda: links.same(other, vector)
    if home is not None:
        return "moved", lambda: links.move(vector, home)
    stranger = majority(y[labels == here], who)
    first = int(np.flatnonzero((labels == here) & (y == stranger))[0])
    return "taken out", lambda: links.different(first, vector)


def majority(identities: Labels, mine: Any) -> Any:
    """Who holds the most of a cluster; mine, if nobody holds more."""
    who, counts = np.unique(identities, return_counts=True)
    held = dict(zip(who.tolist(), counts.tolist(), strict=True))
    return max(held, key=lambda one: (held[one], one == mine))


def home_of(labels: Labels, y: Labels, who: Any) -> int | None:
    """The largest cluster that is mostly somebody's; None if there is none."""
    clusters = np.unique(labels[y == who]).tolist()
    homes = [cluster for cluster in clusters if majority(y[labels == cluster], who) == who]
    return max(homes, key=lambda cluster: int((labels == cluster).sum()), default=None)
