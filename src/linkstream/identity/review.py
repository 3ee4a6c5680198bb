"""Review: questions whose answers correct many vectors, and vectors to look at.

A question is about two clusters that may be one, or about the two parts that an edge holds
together. Its gain is the number of vectors that an answer is expected to correct: those of the
smaller side, times the probability that the answer differs from the current clusters. That
probability is logistic in the margin, similarity − s~, of the two sides as wholes. Its midpoint is
learnt from the answers so far: they show whether the thresholds join too much or too little. Of
two clusters it is the curve of a tuning, if there is one, moved by as much.
Where the encoders of a migration disagree, the mean of both margins takes its place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from linkstream.engine.cluster_index import ClusterIndex, two
from linkstream.engine.comparison import SPREAD, chance, directions
from linkstream.engine.linkage import CENTROID_SCALE, Floats, Integers, Progress
from linkstream.engine.state import State

if TYPE_CHECKING:
    from linkstream.identity.disagreements import Disagreement

PRIOR = 0.05  # how far from 0 even odds are thought to lie before any answer
SHOWN = 3  # vectors of each side
_SPARE = 8  # candidates for each question: some may hang on the answer to another

Shown = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Odds:
    """That two clusters are one identity, logistic in their margin.

    Attributes:
        even: the margin of even odds.
        spread: how far beyond it the odds are e to one.
    """

    even: float = 0.0
    spread: float = SPREAD

    def moved(self, by: float) -> Odds:
        """Return the odds with even odds at a greater margin."""
        return Odds(self.even + by, self.spread)


NO_ODDS = Odds()  # without a tuning

Show = Callable[[int], Shown]  # vectors to show of a subcluster


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
        before: if the two encoders of the last migration disagree on the question, the margin in
            the old one; `margin` is that in the new one. None otherwise.
        probability: of a join, that both clusters are one identity; None if it is unknown.
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
    before: float | None = None
    probability: float | None = None

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
        view = "" if self.before is None else f"; by the old encoder {self.before:+.4f}"
        return (
            f"{who} Similarity {self.similarity:.4f}, s~ {self.threshold:.4f} "
            f"({self.margin:+.4f}{view}); {look}"
        )


def questions(
    index: ClusterIndex,
    barred: Integers,
    *,
    show: Show,
    limit: int,
    odds: Odds = NO_ODDS,
    doubts: Sequence[Doubt] = (),
    progress: Progress | None = None,
) -> list[Question]:
    """Return questions, the greatest gain first, without those that earlier answers decide.

    At most one cut of each cluster is asked, and no join that other questions of the list would
    decide, so that answers may come in any order.

    Args:
        index: all clusters, read with their edges.
        barred: pairs of clusters that corrections keep apart, in order.
        show: returns vectors to look at of a subcluster.
        limit: how many questions.
        odds: what a tuning tells of two clusters.
        doubts: what the encoders of a migration disagree on.
        progress: called now and then; it may raise to end the search.
    """
    even = _even_odds(index.figures(barred).margin, index.pinned_edges().in_order().margin)
    ranked = sorted(
        [
            *(_of_doubt(doubt, even) for doubt in doubts),
            *_joins(index, odds.moved(even), _SPARE * limit, progress),
            *_cuts(index, even, limit),
        ],
        key=lambda candidate: (-candidate.gain, candidate.kind == "cut", candidate.ends),
    )
    chosen = _independent(ranked, barred, limit)
    return [_question(each, index, show) for each in chosen]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A possible question: two clusters, or the ends of an edge."""

    kind: Literal["join", "cut"]
    gain: float
    ends: tuple[int, int]
    clusters: tuple[int, int]
    sizes: tuple[int, int]
    similarity: float
    threshold: float
    before: float | None = None  # ends are subclusters then


@dataclass(frozen=True, slots=True)
class Doubt:
    """Two subclusters whose vectors the encoders of a migration see differently.

    Attributes:
        clusters: their clusters; the same one twice if the new encoder has them together.
        subclusters: the two.
        view: the sets of vectors that they stand for, with the margins of both encoders.
    """

    clusters: tuple[int, int]
    subclusters: tuple[int, int]
    view: Disagreement


def _of_doubt(doubt: Doubt, even: float) -> _Candidate:
    """Return the question; its gain takes the mean of both margins."""
    view, is_join = doubt.view, doubt.clusters[0] != doubt.clusters[1]
    margin = (view.before + view.after) / 2 - even
    odds = chance(np.array([margin if is_join else -margin]))
    return _Candidate(
        kind="join" if is_join else "cut",
        gain=min(view.sizes) * float(odds[0]),
        ends=doubt.subclusters,
        clusters=doubt.clusters,
        sizes=view.sizes,
        similarity=view.similarity,
        threshold=view.threshold,
        before=view.before,
    )


def _joins(
    index: ClusterIndex, odds: Odds, limit: int, progress: Progress | None
) -> list[_Candidate]:
    pairs = index.best_gains(odds.even, limit, progress, odds.spread)
    gains = pairs.sizes.min(axis=1) * chance(pairs.margin - odds.even, odds.spread)
    order = np.lexsort((pairs.clusters[:, 1], pairs.clusters[:, 0], -gains))[:limit]
    columns = (gains, pairs.clusters, pairs.clusters, pairs.sizes)
    return _candidates("join", columns, pairs.similarity, pairs.threshold, order)


def _cuts(index: ClusterIndex, even: float, limit: int) -> list[_Candidate]:
    edges = index.best_cuts(even, limit)
    gains = edges.sizes.min(axis=1) * chance(even - edges.margin)
    both = np.stack([edges.clusters, edges.clusters], axis=1)
    columns = (gains, edges.subclusters, both, edges.sizes)
    return _candidates("cut", columns, edges.similarity, edges.threshold, np.arange(len(gains)))


def _candidates(
    kind: Literal["join", "cut"],
    columns: tuple[Floats, Integers, Integers, Integers],
    similarity: Floats,
    threshold: Floats,
    rows: Integers,
) -> list[_Candidate]:
    gains, ends, clusters, sizes = columns
    return [
        _Candidate(kind, float(gains[i]), two(ends[i]), two(clusters[i]), two(sizes[i]), *figures)
        for i, *figures in zip(
            rows.tolist(), similarity[rows].tolist(), threshold[rows].tolist(), strict=True
        )
    ]


def _even_odds(apart: Floats, together: Floats) -> float:
    """Return the margin at which "same" and "different" are equally likely, from corrections.

    It is the most likely midpoint of a logistic function, with a normal prior of width PRIOR.

    Args:
        apart: margins of the pairs of clusters that corrections keep apart.
        together: margins of the parts that pinned edges hold together.
    """
    even = 0.0
    for _ in range(30):  # Newton's steps on a concave function, none of them far
        doubt_apart, doubt_together = chance(apart - even), chance(even - together)
        slope = (doubt_apart.sum() - doubt_together.sum()) / SPREAD - even / PRIOR**2
        bend = sum(float((p * (1.0 - p)).sum()) for p in (doubt_apart, doubt_together))
        even += float(np.clip(slope / (bend / SPREAD**2 + PRIOR**-2), -PRIOR, PRIOR))
    return even


def _independent(ranked: Sequence[_Candidate], barred: Integers, limit: int) -> list[_Candidate]:
    """Return the first questions without those that answers to earlier ones may decide."""
    groups = _Groups(barred)
    cut, chosen = set(), list[_Candidate]()
    for each in ranked:
        if len(chosen) == limit:
            break
        if each.kind == "join":
            fresh = groups.unite(*each.clusters)
        else:
            fresh = each.clusters[0] not in cut
            cut.add(each.clusters[0])
        if fresh:
            chosen.append(each)
    return chosen


class _Groups:
    """Clusters that would be one if all answers were "same", and those kept apart from each."""

    def __init__(self, barred: Integers) -> None:
        self._root: dict[int, int] = {}
        self._members: dict[int, set[int]] = {}
        self._barred = defaultdict[int, set[int]](set)
        for one, other in barred.tolist():
            self._barred[one].add(other)
            self._barred[other].add(one)

    def unite(self, one: int, other: int) -> bool:
        """Unite two groups; return False if they are one already, or may not be."""
        ours, theirs = self._group(one), self._group(other)
        if ours == theirs or self._barred[ours] & self._members[theirs]:
            return False
        for member in self._members[theirs]:
            self._root[member] = ours
        self._members[ours] |= self._members[theirs]
        self._barred[ours] |= self._barred[theirs]
        return True

    def _group(self, cluster: int) -> int:
        self._members.setdefault(self._root.setdefault(cluster, cluster), {cluster})
        return self._root[cluster]


def _question(candidate: _Candidate, index: ClusterIndex, show: Show) -> Question:
    ends = candidate.ends
    if candidate.kind == "join" and candidate.before is None:
        one, other = index.hearts(np.array(ends, dtype=np.int64)).tolist()
        ends = (one, other)
    return Question(
        kind=candidate.kind,
        clusters=candidate.clusters,
        subclusters=ends,
        vectors=(show(ends[0]), show(ends[1])),
        sizes=candidate.sizes,
        similarity=candidate.similarity,
        threshold=candidate.threshold,
        margin=candidate.similarity - candidate.threshold,
        gain=candidate.gain,
        before=candidate.before,
    )


def _list(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))


Fetch = Callable[[Integers], npt.NDArray[np.int32]]  # vectors as they are kept, by number
Elsewhere = Callable[[npt.NDArray[np.int32]], Floats]

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


def exemplars(
    part: State, members: Integers, fetch: Fetch, elsewhere: Elsewhere, *, limit: int
) -> Exemplars:
    """Return exemplars of a cluster, up to `limit` of each kind (tie: the older).

    Of more than LOOKED vectors, LOOKED are used, evenly spread over the stream.

    Args:
        part: the subclusters of the cluster.
        members: its vectors by number, the oldest first.
        fetch: returns vectors by number.
        elsewhere: returns the greatest similarity of each vector to another cluster; -1 if none.
        limit: how many of each kind.
    """
    numbers = some(members)
    rows = fetch(numbers)
    to_own = _cosines(rows, part.sums.sum(axis=0, keepdims=True))
    return Exemplars(
        central=_first(numbers, -to_own, limit),
        newest=tuple(members[::-1][:limit].tolist()),
        doubtful=_first(numbers, to_own - elsewhere(rows), limit),
    )


def central(members: Integers, total: Integers, fetch: Fetch | None, *, limit: int) -> Shown:
    """Return vectors of a subcluster, the most similar to its centroid first.

    Without kept vectors the oldest come first; without tracking there are none.

    Args:
        members: its vectors by number, the oldest first.
        total: their sum.
        fetch: returns vectors by number; None if they are not kept.
        limit: how many to return.
    """
    numbers = some(members)
    if fetch is None or len(numbers) <= 1:
        return tuple(numbers[:limit].tolist())
    return _first(numbers, -_cosines(fetch(numbers), total[np.newaxis]), limit)


def some(numbers: Integers) -> Integers:
    """Return all numbers, or LOOKED of them if there are more."""
    if len(numbers) <= LOOKED:
        return numbers
    return numbers[np.arange(LOOKED) * len(numbers) // LOOKED]


def _cosines(rows: npt.NDArray[np.int32], total: Integers) -> Floats:
    """Return the similarity of each row to a sum."""
    found: Floats = directions(rows.astype(np.int64)) @ directions(total)[0]
    return found / CENTROID_SCALE**2


def _first(numbers: Integers, rank: Floats, limit: int) -> tuple[int, ...]:
    return tuple(numbers[np.argsort(rank, kind="stable")[:limit]].tolist())
