"""Review: questions whose answers correct many vectors, and vectors to look at.

A question is about two clusters that may be one, or about the two parts that an edge holds
together. Its gain is the number of vectors that an answer is expected to correct: those of the
smaller side, times the probability that the answer differs from the current clusters. That
probability is logistic in the margin, similarity − s~, of the two sides as wholes. Its midpoint is
learnt from the answers so far: they show whether the thresholds join too much or too little.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from linkstream.engine.forest import PINNED
from linkstream.engine.linkage import CENTROID_SCALE, Floats, Integers
from linkstream.engine.state import State
from linkstream.identity.comparison import Comparison, Parts, Totals, directions
from linkstream.identity.laws import Laws

SPREAD = 0.03  # margins so far from even odds have odds of e to one
PRIOR = 0.05  # how far from 0 even odds are thought to lie before any answer
SHOWN = 3  # vectors of each side
_SPARE = 8  # candidates for each question: some may hang on the answer to another

Show = Callable[[int], tuple[int, ...]]  # vectors to show of a subcluster


@dataclass(frozen=True, slots=True)
class Question:
    """A question: are these two the same? Answer with `same` or `different(a, b, of=of)`.

    Attributes:
        kind: "join", two clusters that may be one; "cut", two parts of a cluster that may be two.
        clusters: the two clusters; for a cut, the same one twice.
        subclusters: the two that are compared: the most central of two clusters, or an edge's ends.
        vectors: vectors of each of these to look at; empty if vectors are not tracked.
        sizes: vectors of the two clusters, or of the two parts.
        similarity, threshold, margin: of the two sides as wholes; the threshold is s~.
        gain: how many vectors the answer is expected to correct.
        a, b, of: what to pass to `same` or `different`.
    """

    kind: Literal["join", "cut"]
    clusters: tuple[int, int]
    subclusters: tuple[int, int]
    vectors: tuple[tuple[int, ...], tuple[int, ...]]
    sizes: tuple[int, int]
    similarity: float
    threshold: float
    margin: float
    gain: float

    @property
    def a(self) -> int:
        """The first of the two."""
        return self.subclusters[0]

    @property
    def b(self) -> int:
        """The second of the two."""
        return self.subclusters[1]

    @property
    def of(self) -> str:
        """What the two are."""
        return "subclusters"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self) | {"a": self.a, "b": self.b, "of": self.of}

    def __str__(self) -> str:
        (one, other), (k, k2) = self.clusters, self.sizes
        if self.kind == "join":
            who = f"are clusters {one} ({k} vectors) and {other} ({k2}) the same?"
        else:
            who = f"are the two parts of cluster {one}, of {k} and {k2} vectors, the same?"
        look = f"look at subclusters {self.a} and {self.b}"
        if all(self.vectors):
            look += f", vectors {_list(self.vectors[0])} and {_list(self.vectors[1])}"
        return (
            f"{who} Similarity {self.similarity:.4f}, s~ {self.threshold:.4f} "
            f"({self.margin:+.4f}); {look}"
        )


def questions(
    state: State,
    *,
    laws: Laws | None = None,
    ignored: Collection[int] = (),
    show: Show | None = None,
    limit: int,
) -> list[Question]:
    """Return questions, the greatest gain first, without those that earlier answers decide.

    At most one cut of each cluster is asked, and no join that other questions of the list would
    decide, so that answers may come in any order. Costs n²·d steps for n clusters, and one
    sum for each edge.
    """
    if not len(state.numbers):
        return []
    wholes = Comparison.of(state, laws or Laws(), ignored)
    parts = Parts.of(state, wholes.totals)
    even = _even_odds(state, wholes, parts)
    ranked = sorted(
        _joins(wholes, even, _SPARE * limit) + _cuts(state, wholes, parts, even),
        key=lambda candidate: (-candidate.gain, candidate.kind == "cut", candidate.places),
    )
    chosen = _independent(ranked, wholes, state)[:limit]
    shown = show or (lambda number: central(state, number, None, limit=SHOWN))
    return [_question(each, state, wholes, parts, shown) for each in chosen]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A possible question: rows of two clusters, or the row of an edge."""

    kind: Literal["join", "cut"]
    gain: float
    places: tuple[int, ...]


def _joins(wholes: Comparison, even: float, limit: int) -> list[_Candidate]:
    def gains(margins: Floats, ours: Floats, theirs: Floats) -> Floats:
        return np.minimum(ours, theirs) * _chance(margins - even)

    pairs = wholes.best(gains, limit)
    similarity, threshold = wholes.figures(pairs)
    counts = wholes.totals.counts[pairs].astype(np.float64)
    worth = gains(similarity - threshold, counts[:, 0], counts[:, 1])
    return [
        _Candidate("join", gain, tuple(pair))
        for gain, pair in zip(worth.tolist(), pairs.tolist(), strict=True)
    ]


def _cuts(state: State, wholes: Comparison, parts: Parts, even: float) -> list[_Candidate]:
    gains = parts.sizes.min(axis=1) * _chance(even - parts.margin)
    asked = (state.edge_rules != PINNED) & ~np.isin(_clusters(state, wholes), wholes.left_out)
    return [_Candidate("cut", float(gains[i]), (i,)) for i in np.flatnonzero(asked).tolist()]


def _chance(lead: Floats) -> Floats:
    """Return the logistic function of margins beyond even odds."""
    return 1.0 / (1.0 + np.exp(np.clip(-lead / SPREAD, -60.0, 60.0)))


def _even_odds(state: State, wholes: Comparison, parts: Parts) -> float:
    """Return the margin at which "same" and "different" are equally likely, from corrections.

    It is the most likely midpoint of a logistic function, with a normal prior of width PRIOR.
    """
    similarity, threshold = wholes.figures(np.unique(np.sort(wholes.barred, axis=1), axis=0))
    apart, together = similarity - threshold, parts.margin[state.edge_rules == PINNED]
    even = 0.0
    for _ in range(30):  # Newton's steps on a concave function, none of them far
        doubt_apart, doubt_together = _chance(apart - even), _chance(even - together)
        slope = (doubt_apart.sum() - doubt_together.sum()) / SPREAD - even / PRIOR**2
        bend = sum(float((p * (1.0 - p)).sum()) for p in (doubt_apart, doubt_together))
        even += float(np.clip(slope / (bend / SPREAD**2 + PRIOR**-2), -PRIOR, PRIOR))
    return even


def _independent(
    ranked: Sequence[_Candidate], wholes: Comparison, state: State
) -> list[_Candidate]:
    """Return questions without those that answers to earlier ones may decide."""
    owner = _clusters(state, wholes)
    groups = _Groups(len(wholes.totals.ids), wholes.barred)
    cut, chosen = set(), []
    for each in ranked:
        if each.kind == "join":
            fresh = groups.unite(*each.places)
        else:
            cluster = int(owner[each.places[0]])
            fresh = cluster not in cut
            cut.add(cluster)
        if fresh:
            chosen.append(each)
    return chosen


class _Groups:
    """Clusters that would be one if all answers were "same", and those kept apart from each."""

    def __init__(self, n: int, barred: Integers) -> None:
        self._root = list(range(n))
        self._members = [{place} for place in range(n)]
        self._barred: list[set[int]] = [set() for _ in range(n)]
        for one, other in barred.tolist():
            self._barred[one].add(other)
            self._barred[other].add(one)

    def unite(self, one: int, other: int) -> bool:
        """Unite two groups; return False if they are one already, or may not be."""
        ours, theirs = self._root[one], self._root[other]
        if ours == theirs or self._barred[ours] & self._members[theirs]:
            return False
        for member in self._members[theirs]:
            self._root[member] = ours
        self._members[ours] |= self._members[theirs]
        self._barred[ours] |= self._barred[theirs]
        return True


def _clusters(state: State, wholes: Comparison) -> Integers:
    """Return the row of the cluster of each edge."""
    return wholes.totals.place[np.searchsorted(state.numbers, state.edges[:, 0])]


def _question(
    candidate: _Candidate, state: State, wholes: Comparison, parts: Parts, show: Show
) -> Question:
    totals = wholes.totals
    if candidate.kind == "join":
        one, other = candidate.places
        similarity, threshold = (float(f[0]) for f in wholes.figures(np.array([[one, other]])))
        ends = (_heart(state, wholes, one), _heart(state, wholes, other))
        sizes = totals.counts[[one, other]].tolist()
    else:
        (edge,) = candidate.places
        one = other = int(_clusters(state, wholes)[edge])
        similarity, threshold = float(parts.similarity[edge]), float(parts.threshold[edge])
        ends = (int(state.edges[edge, 0]), int(state.edges[edge, 1]))
        sizes = parts.sizes[edge].tolist()
    return Question(
        kind=candidate.kind,
        clusters=(int(totals.ids[one]), int(totals.ids[other])),
        subclusters=ends,
        vectors=(show(ends[0]), show(ends[1])),
        sizes=(sizes[0], sizes[1]),
        similarity=similarity,
        threshold=threshold,
        margin=similarity - threshold,
        gain=candidate.gain,
    )


def _heart(state: State, wholes: Comparison, place: int) -> int:
    """Return the subcluster most similar to the whole cluster (tie: the older)."""
    rows = np.flatnonzero(wholes.totals.place == place)
    scores = directions(state.sums[rows]) @ wholes.units[place]
    return int(state.numbers[rows[np.argmax(scores)]])


def _list(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))


Fetch = Callable[[Integers], npt.NDArray[np.int32]]  # vectors as they are kept, by number

LOOKED = 4096  # vectors that are looked at, of a cluster or subcluster that has more


@dataclass(frozen=True, slots=True)
class Exemplars:
    """Vectors of one cluster, by number.

    Attributes:
        central: the most similar to the cluster's centroid, the most similar first.
        newest: the last to arrive, the last first.
        doubtful: those for which another cluster is nearest, compared with their own; the most
            doubtful first.
    """

    central: tuple[int, ...]
    newest: tuple[int, ...]
    doubtful: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = (f"{name:8} {_list(numbers) or 'none'}" for name, numbers in asdict(self).items())
        return "\n".join(lines)


def exemplars(state: State, cluster: int, fetch: Fetch, *, limit: int) -> Exemplars:
    """Return exemplars of a cluster, up to `limit` of each kind (tie: the older).

    `fetch` returns vectors by number. Of more than LOOKED vectors, LOOKED are used, evenly spread
    over the stream. Costs m·n·d steps for m vectors and n clusters.
    """
    totals = Totals.of(state)
    units = directions(totals.sums)
    own = int(np.searchsorted(totals.ids, cluster))
    members = _vectors_of(state, state.numbers[state.clusters == cluster])
    numbers = _some(members)
    scores = _cosines(fetch(numbers), units)
    to_own = scores[:, own].copy()
    scores[:, own] = -1.0
    return Exemplars(
        central=_first(numbers, -to_own, limit),
        newest=tuple(members[::-1][:limit].tolist()),
        doubtful=_first(numbers, to_own - scores.max(axis=1), limit),
    )


def central(state: State, subcluster: int, fetch: Fetch | None, *, limit: int) -> tuple[int, ...]:
    """Return vectors of a subcluster, the most similar to its centroid first.

    Without kept vectors the oldest come first; without tracking there are none.
    """
    numbers = _some(_vectors_of(state, np.array([subcluster])))
    if fetch is None or len(numbers) <= 1:
        return tuple(numbers[:limit].tolist())
    row = np.searchsorted(state.numbers, [subcluster])
    return _first(numbers, -_cosines(fetch(numbers), directions(state.sums[row]))[:, 0], limit)


def _vectors_of(state: State, subclusters: Integers) -> Integers:
    return np.flatnonzero(np.isin(state.vectors, subclusters)).astype(np.int64)


def _some(numbers: Integers) -> Integers:
    """Return all numbers, or LOOKED of them if there are more."""
    if len(numbers) <= LOOKED:
        return numbers
    return numbers[np.arange(LOOKED) * len(numbers) // LOOKED]


def _cosines(rows: npt.NDArray[np.int32], units: Floats) -> Floats:
    return directions(rows.astype(np.int64)) @ units.T / CENTROID_SCALE**2


def _first(numbers: Integers, rank: Floats, limit: int) -> tuple[int, ...]:
    return tuple(numbers[np.argsort(rank, kind="stable")[:limit]].tolist())
