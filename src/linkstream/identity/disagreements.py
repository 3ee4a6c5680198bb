"""Disagreements of two encoders: vectors that one has in a cluster with others, and one has not.

Each is about two sets of vectors, A that changed its cluster and B. If a part of a cluster left
it, B is the rest of that cluster: the old encoder has both together. If a whole cluster joined
another one, B is the rest of that: the new encoder has both together. The margins of both encoders
are those of the same two sets; of more than 4,096 vectors of a set, 4,096 give its direction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from linkstream.engine.comparison import similarities
from linkstream.engine.linkage import Floats, centroids
from linkstream.engine.state import Fixed, Integers
from linkstream.identity.content import Content
from linkstream.identity.rebuild_report import JOINED, Flow
from linkstream.identity.review import central, some
from linkstream.paper.thresholds import Thresholds

MOST = 100  # the largest are kept

Old = Callable[[Integers], Fixed]  # vectors of the old encoder, by number


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two sets of vectors that one encoder has in one cluster and the other has not.

    Attributes:
        kind: "joined", "split" or "moved", as in `Flow`.
        clusters: the cluster of the first set before, and after.
        vectors: the most central vector of each set, in the new encoder.
        sizes: numbers of vectors of the two sets.
        before: margin of the two sets in the old encoder: similarity − s~.
        similarity, threshold: of the two sets in the new encoder, and s~.
    """

    kind: str
    clusters: tuple[int, int]
    vectors: tuple[int, int]
    sizes: tuple[int, int]
    before: float
    similarity: float
    threshold: float

    @property
    def after(self) -> float:
        """The margin of the two sets in the new encoder."""
        return self.similarity - self.threshold

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `from_dict` takes them back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Disagreement:
        """Return the disagreement of `to_dict`; ValueError or TypeError for other values."""
        pairs = {name: _pair(given[name]) for name in ("clusters", "vectors", "sizes")}
        return cls(**{**given, **pairs})

    def __str__(self) -> str:
        (n, m), (one, other) = self.sizes, self.clusters
        where = f"rest of {other if self.kind == JOINED else one}"
        return (
            f"{self.kind} {one} → {other}: {n:,} vectors and the {where} ({m:,}): "
            f"old margin {self.before:+.3f}, new {self.after:+.3f}"
        )


def _pair(values: Any) -> tuple[int, int]:
    one, other = values
    if type(one) is not int or type(other) is not int:
        raise TypeError("two whole numbers")
    return one, other


@dataclass(frozen=True, slots=True)
class Sides:
    """The vectors of the new encoder with their clusters, and those of the old one.

    Attributes:
        content: the vectors that were clustered.
        before: the cluster of each before.
        after: the cluster of each after.
        old: reads vectors of the old encoder.
        thresholds: those of the old encoder and of the new one.
    """

    content: Content
    before: Integers
    after: Integers
    old: Old
    thresholds: tuple[Thresholds, Thresholds]

    def disagreements(self, flows: tuple[Flow, ...]) -> tuple[Disagreement, ...]:
        """Return the disagreement of each flow, the one with the most vectors first."""
        pairs = [(flow, *sets_of(flow, self.before, self.after)) for flow in flows[:MOST]]
        found = [self._of(flow, ours, theirs) for flow, ours, theirs in pairs if len(theirs)]
        return tuple(found)

    def _of(self, flow: Flow, ours: Integers, theirs: Integers) -> Disagreement:
        new = [self.content.part(some(places)) for places in (ours, theirs)]
        old = [Content(c.numbers, self.old(c.numbers), c.missing_weights) for c in new]
        weights = self.content.weights()
        masses = weights[ours].sum(keepdims=True), weights[theirs].sum(keepdims=True)
        (cosine, required), (then, needed) = (
            _figures(sides, masses, test)
            for sides, test in zip((new, old), self.thresholds[::-1], strict=True)
        )
        return Disagreement(
            kind=flow.kind,
            clusters=(flow.cluster, flow.to),
            vectors=(_central(new[0]), _central(new[1])),
            sizes=(len(ours), len(theirs)),
            before=then - needed,
            similarity=cosine,
            threshold=required,
        )


def sets_of(flow: Flow, before: Integers, after: Integers) -> tuple[Integers, Integers]:
    """Return the places of the items of the two sets, from the cluster of each."""
    from_here, there = before == flow.cluster, after == flow.to
    ours = from_here & there
    theirs = (there if flow.kind == JOINED else from_here) & ~ours
    if not theirs.any():
        theirs = there & ~ours
    return np.flatnonzero(ours), np.flatnonzero(theirs)


def _figures(
    sides: list[Content], masses: tuple[Floats, Floats], thresholds: Thresholds
) -> tuple[float, float]:
    """Return the similarity of two sets of vectors, and s~ for their weights."""
    one, other = (centroids(_sum(each)) for each in sides)
    required = thresholds.edges(*masses)
    return float(similarities(one, other)[0]), float(required[0])


def _sum(content: Content) -> Integers:
    return content.sums(np.zeros(len(content), dtype=np.int64), 1)


def _central(content: Content) -> int:
    """Return the number of the vector nearest to the sum (tie: the first)."""
    rows = lambda numbers: content.fixed[content.places(numbers)]  # noqa: E731
    (found,) = central(content.numbers, _sum(content)[0], rows, limit=1)
    return found
