"""What reviews and suggestions are defined to be: every question compares all clusters of a state.

It is the oracle of the compiled index, and shares no code with it but the sums of clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from linkstream.engine import linkage
from linkstream.engine.comparison import Totals, gathered
from linkstream.engine.forest import FULL, PINNED, SETTLED, TESTED
from linkstream.engine.linkage import CENTROID_SCALE, Floats, Integers
from linkstream.engine.state import State
from linkstream.identity import review
from linkstream.identity.laws import Laws
from linkstream.identity.review import PRIOR, SHOWN, Exemplars, Question
from linkstream.identity.suggestions import MergeSuggestion, SplitSuggestion
from linkstream.paper.thresholds import Thresholds

SPREAD = 0.03
_SPARE = 8
Worth = Callable[[Floats, Floats, Floats], Floats]
Show = Callable[[int], tuple[int, ...]]


_BLOCK = 512


def directions(sums: Integers) -> Floats:
    """Return unit centroids as integers of 25 bits; 0 where vectors cancel out."""
    some = np.any(sums != 0, axis=1)
    found = np.zeros(sums.shape)
    found[some] = linkage.centroids(sums[some])
    return found


def similarities(left: Floats, right: Floats) -> Floats:
    """Return the cosines of directions, row by row."""
    found: Floats = (left * right).sum(axis=1) / CENTROID_SCALE**2
    return found


@dataclass(frozen=True, slots=True)
class Comparison:
    """All clusters as wholes; a pair is two rows of `totals`.

    Attributes:
        barred: pairs that corrections keep apart.
        labels: a number for the name of each row, −1 for none; rows of two names are apart, too.
        left_out: rows of clusters that are not compared.
    """

    thresholds: Thresholds
    totals: Totals
    units: Floats
    barred: Integers
    labels: Integers
    left_out: Integers

    @classmethod
    def of(cls, state: State, laws: Laws, ignored: Collection[int] = ()) -> Comparison:
        """Return the comparison of a state that obeys these laws."""
        totals = Totals.of(state)
        rows = members(state, totals)
        barred, labels = laws.rows(state, rows), laws.labels(state, rows)
        left_out = np.flatnonzero(np.isin(totals.ids, list(ignored)))
        return cls(state.thresholds, totals, directions(totals.sums), barred, labels, left_out)

    def figures(self, pairs: Integers) -> tuple[Floats, Floats]:
        """Return similarity and s~ of each pair of clusters."""
        first, second = pairs[:, 0], pairs[:, 1]
        masses = self.totals.masses
        required = self.thresholds.edges(masses[first], masses[second])
        return similarities(self.units[first], self.units[second]), required

    def best(self, worth: Worth, limit: int) -> Integers:
        """Return the pairs of the greatest worth, best first (tie: the lower rows).

        Costs n²·d steps for n clusters, and little memory.
        """
        found: list[tuple[float, int, int]] = []
        for start in range(0, len(self.units), _BLOCK):
            values = self._worths(start, worth)
            floor = -found[-1][0] if len(found) == limit else -np.inf
            rows, columns = np.nonzero(values > floor)
            top = values[rows, columns]
            order = np.lexsort((columns, rows, -top))[:limit]
            pairs = -top[order], rows[order] + start, columns[order]
            found += zip(*(column.tolist() for column in pairs), strict=True)
            found = sorted(found)[:limit]
        return np.array([pair[1:] for pair in found], dtype=np.int64).reshape(-1, 2)

    def _worths(self, start: int, worth: Worth) -> Floats:
        """Return the worth of some rows with every later row; −∞ for barred or left-out pairs."""
        rows = np.arange(start, min(start + _BLOCK, len(self.units)))
        cosines = self.units[rows] @ self.units.T / CENTROID_SCALE**2
        masses, counts = self.totals.masses, self.totals.counts.astype(np.float64)
        required = self.thresholds.edges(
            np.broadcast_to(masses[rows, np.newaxis], cosines.shape),
            np.broadcast_to(masses, cosines.shape),
        )
        values = worth(cosines - required, counts[rows, np.newaxis], counts[np.newaxis])
        values[np.arange(len(masses)) <= rows[:, np.newaxis]] = -np.inf
        values[np.isin(rows, self.left_out)] = -np.inf
        values[:, self.left_out] = -np.inf
        both = np.concatenate([self.barred, self.barred[:, ::-1]])
        here = both[np.isin(both[:, 0], rows)]
        values[here[:, 0] - start, here[:, 1]] = -np.inf
        ours = self.labels[rows, np.newaxis]
        values[(ours >= 0) & (self.labels >= 0) & (ours != self.labels)] = -np.inf
        return values


@dataclass(frozen=True, slots=True)
class Parts:
    """The two parts that each edge holds together, as wholes, in the order of the state.

    Attributes:
        sizes: number of vectors on the side of the older end, and of the younger end.
        similarity, threshold: similarity of the centroids of the parts, and s~.
    """

    sizes: Integers
    similarity: Floats
    threshold: Floats

    @classmethod
    def of(cls, state: State, totals: Totals) -> Parts:
        """Return the parts of all edges; costs one addition of sums for each edge."""
        ends = np.searchsorted(state.numbers, state.edges)
        child, sums, counts, missing = _below(state, ends)
        place = totals.place[child]
        whole_missing = gathered(state.missing_weight, totals.place, len(totals.ids))
        rest = totals.counts[place] - counts[child]
        threshold = state.thresholds.edges(
            np.maximum(counts[child] - missing[child] / FULL, 1.0),
            np.maximum(rest - (whole_missing[place] - missing[child]) / FULL, 1.0),
        )
        similarity = similarities(
            directions(sums[child]), directions(totals.sums[place] - sums[child])
        )
        older = (ends[:, 0] == child)[:, np.newaxis]
        sizes = np.stack([counts[child], rest], axis=1)
        return cls(np.where(older, sizes, sizes[:, ::-1]), similarity, threshold)

    @property
    def margin(self) -> Floats:
        """Similarity − s~."""
        return self.similarity - self.threshold


def _below(state: State, ends: Integers) -> tuple[Integers, Integers, Integers, Integers]:
    """Return the lower end of each edge of the rooted trees, and the sum below each row."""
    order, above, child = _hung(len(state.numbers), ends)
    sums, counts, missing = (a.copy() for a in (state.sums, state.counts, state.missing_weight))
    for row in reversed(order):
        if above[row] >= 0:
            sums[above[row]] += sums[row]
            counts[above[row]] += counts[row]
            missing[above[row]] += missing[row]
    return child, sums, counts, missing


def _hung(n: int, ends: Integers) -> tuple[list[int], list[int], Integers]:
    """Return n rows, each after its parent (−1: none), and the lower end of each edge."""
    touching: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for edge, (a, b) in enumerate(ends.tolist()):
        touching[a].append((b, edge))
        touching[b].append((a, edge))
    above, order = [-2] * n, []
    child = np.zeros(len(ends), dtype=np.int64)
    for root in range(n):
        if above[root] != -2:
            continue
        above[root] = -1
        todo = [root]
        while todo:
            row = todo.pop()
            order.append(row)
            for other, edge in touching[row]:
                if above[other] == -2:
                    above[other], child[edge] = row, other
                    todo.append(other)
    return order, above, child


def members(state: State, totals: Totals) -> list[list[int]]:
    """Return the numbers of the subclusters of each cluster, in the order of `totals`."""
    order = np.argsort(totals.place, kind="stable")
    starts = np.searchsorted(totals.place[order], np.arange(1, len(totals.ids)))
    numbers: list[list[int]] = [part.tolist() for part in np.split(state.numbers[order], starts)]
    return numbers[: len(totals.ids)]


def questions(
    state: State,
    *,
    laws: Laws | None = None,
    ignored: Collection[int] = (),
    show: Show | None = None,
    limit: int,
    odds: tuple[float, float] = (0.0, SPREAD),
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
        _joins(wholes, even + odds[0], _SPARE * limit, odds[1]) + _cuts(state, wholes, parts, even),
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


def _joins(wholes: Comparison, even: float, limit: int, spread: float) -> list[_Candidate]:
    def gains(margins: Floats, ours: Floats, theirs: Floats) -> Floats:
        return np.minimum(ours, theirs) * _chance(margins - even, spread)

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


def _chance(lead: Floats, spread: float = SPREAD) -> Floats:
    """Return the logistic function of margins beyond even odds."""
    return 1.0 / (1.0 + np.exp(np.clip(-lead / spread, -60.0, 60.0)))


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


def exemplars(state: State, cluster: int, fetch: Callable, *, limit: int) -> Exemplars:
    """Return exemplars of a cluster, up to `limit` of each kind (tie: the older).

    `fetch` returns vectors by number. Of many vectors, review.LOOKED are used, evenly spread
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


def central(
    state: State, subcluster: int, fetch: Callable | None, *, limit: int
) -> tuple[int, ...]:
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
    """Return all numbers, or review.LOOKED of them if there are more."""
    if len(numbers) <= review.LOOKED:
        return numbers
    return numbers[np.arange(review.LOOKED) * len(numbers) // review.LOOKED]


def _cosines(rows: Integers, units: Floats) -> Floats:
    return directions(rows.astype(np.int64)) @ units.T / CENTROID_SCALE**2


def _first(numbers: Integers, rank: Floats, limit: int) -> tuple[int, ...]:
    return tuple(numbers[np.argsort(rank, kind="stable")[:limit]].tolist())


def merges(
    state: State, limit: int, *, laws: Laws | None = None, ignored: Collection[int] = ()
) -> list[MergeSuggestion]:
    """Return the pairs of clusters with the greatest margins, best first (tie: the lower IDs).

    Pairs that corrections keep apart, and ignored clusters, are left out. Costs n²·d steps for n
    clusters.
    """
    wholes = Comparison.of(state, laws or Laws(), ignored)
    totals = wholes.totals
    pairs = wholes.best(lambda margins, _, __: margins, limit)
    units = linkage.centroids(state.sums) if len(pairs) else np.empty((0, 0))
    similarity, threshold = wholes.figures(pairs)
    return [
        MergeSuggestion(
            clusters=(int(totals.ids[one]), int(totals.ids[other])),
            sizes=(int(totals.counts[one]), int(totals.counts[other])),
            similarity=score,
            threshold=required,
            margin=score - required,
            subclusters=nearest(state, units, totals.place, one, other),
        )
        for (one, other), score, required in zip(
            pairs.tolist(), similarity.tolist(), threshold.tolist(), strict=True
        )
    ]


def splits(state: State, limit: int, *, ignored: Collection[int] = ()) -> list[SplitSuggestion]:
    """Return the edges with the least margins, weakest first (tie: the older); no pinned ones.

    The margin of an edge is its own or that of the two parts, whichever is less; of a settled edge
    that of the parts.
    """
    similarity, threshold = edge_figures(state)
    totals = Totals.of(state)
    parts = Parts.of(state, totals)
    blended = (parts.margin < similarity - threshold) | (state.edge_rules != TESTED)
    scores = np.where(blended, parts.similarity, similarity)
    required = np.where(blended, parts.threshold, threshold)
    place = totals.place[np.searchsorted(state.numbers, state.edges[:, 0])]
    clusters = totals.ids[place]
    asked = (state.edge_rules != PINNED) & ~np.isin(clusters, list(ignored))
    order = np.argsort(np.where(asked, scores - required, np.inf), kind="stable")
    return [
        SplitSuggestion(
            cluster=int(clusters[i]),
            subclusters=(int(state.edges[i, 0]), int(state.edges[i, 1])),
            sizes=(int(parts.sizes[i, 0]), int(parts.sizes[i, 1])),
            similarity=float(scores[i]),
            threshold=float(required[i]),
            margin=float(scores[i] - required[i]),
            firm=bool(state.edge_rules[i] == SETTLED),
            evidence="parts" if blended[i] else "edge",
        )
        for i in order[: min(limit, int(asked.sum()))].tolist()
    ]


def edge_figures(state: State) -> tuple[Floats, Floats]:
    """Return similarity and s~ of each edge."""
    ends = np.searchsorted(state.numbers, state.edges)
    units = linkage.centroids(state.sums)
    masses = state.masses()
    threshold = state.thresholds.edges(masses[ends[:, 0]], masses[ends[:, 1]])
    return similarities(units[ends[:, 0]], units[ends[:, 1]]), threshold


def nearest(state: State, units: Floats, place: Integers, one: int, other: int) -> tuple[int, int]:
    """Return the two most similar subclusters of two clusters (tie: the older), by number."""
    rows, columns = np.flatnonzero(place == one), np.flatnonzero(place == other)
    best = int(np.argmax(units[rows] @ units[columns].T))
    a, b = rows[best // len(columns)], columns[best % len(columns)]
    return int(state.numbers[a]), int(state.numbers[b])
