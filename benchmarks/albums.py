"""Photos made of labelled faces, and corrections of a few of them; for `photos.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.protocol import Half, Labels
from linkstream import Links
from linkstream.errors import ContradictionError

LARGEST, FAMILY = 6, 8  # people in a photo, at most; people in a family

Photos = list[list[int]]  # rows of the stream


@dataclass(frozen=True, slots=True)
class Album:
    """A stream of faces, divided into photos."""

    stream: Half
    photos: Photos


# Photos


def strangers(half: Half, rng: np.random.Generator) -> Album:
    """Return shuffled faces in photos; no identity is in a photo twice."""
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
    """Return photos of people who look alike: each shows some of a family of eight.

    A family is a random person and those with the most similar mean vectors.
    """
    left = {who: rng.permutation(rows).tolist() for who, rows in rows_of(half.y).items()}
    families = families_of(half, rng)
    order: list[int] = []
    photos: Photos = []
    while left:
        some = list(left)[int(rng.integers(len(left)))]
        there = [who for who in families[some] if who in left]
        size = min(int(rng.integers(1, LARGEST + 1)), len(there))
        photos.append([])
        for who in rng.permutation(np.array(there, dtype=object))[:size]:
            photos[-1].append(len(order))
            order.append(left[who].pop())
            if not left[who]:
                del left[who]
    return Album(Half(half.X[order], half.y[order]), photos)


def families_of(half: Half, rng: np.random.Generator) -> dict[Any, list[Any]]:
    """Return the family of each identity."""
    rows = rows_of(half.y)
    means = {who: half.X[places].mean(axis=0) for who, places in rows.items()}
    means = {who: mean / np.linalg.norm(mean) for who, mean in means.items()}
    families: dict[Any, list[Any]] = {}
    while means:
        head = means[list(means)[int(rng.integers(len(means)))]]
        family = sorted(means, key=lambda who: -float(means[who] @ head))[:FAMILY]
        families |= dict.fromkeys(family, family)
        for who in family:
            del means[who]
    return families


def rows_of(y: Labels) -> dict[Any, list[int]]:
    """Return the rows of each identity."""
    return {who: np.flatnonzero(y == who).tolist() for who in np.unique(y).tolist()}


# Corrections


def correct(links: Links, y: Labels, looked_at: Sequence[int]) -> Counter[str]:
    """Correct the given vectors; return how often each correction was made."""
    counts: Counter[str] = Counter()
    for vector in looked_at:
        done, verb = remedy(links, y, int(vector))
        try:
            verb()
        except ContradictionError:
            done = "refused"
        counts[done] += 1
    return counts


def remedy(links: Links, y: Labels, vector: int) -> tuple[str, Callable[[], object]]:
    """Return the correction of one vector: none, move, take out, or join its cluster."""
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
    """Return the most frequent identity of a cluster; `mine` in a tie."""
    who, counts = np.unique(identities, return_counts=True)
    held = dict(zip(who.tolist(), counts.tolist(), strict=True))
    return max(held, key=lambda one: (held[one], one == mine))


def home_of(labels: Labels, y: Labels, who: Any) -> int | None:
    """Return the largest cluster that mostly belongs to an identity, or None."""
    clusters = np.unique(labels[y == who]).tolist()
    families = [cluster for cluster in clusters if majority(y[labels == cluster], who) == who]
    return max(families, key=lambda cluster: int((labels == cluster).sum()), default=None)
