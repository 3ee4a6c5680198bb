"""Settling: an offline pass over the subclusters that proposes joins and cuts of clusters.

Margin linkage (engine/linkage.py) groups all subclusters by the paper's test. If the groups differ
from the clusters, edges are cut or tied; edges within a group become settled and hold until the
next settlement. Memory grows with n·d for n subclusters; time with n²·d at worst.

Healing does so while vectors arrive. Sections 3.3 and 3.4 of the paper never join two clusters, so
fragments would stay. Mode "settle" is a part of the engine (engine/healing.py). Mode "join" runs
here after 50 vectors, then each time the stream has grown by 30 per cent.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from linkstream.engine import linkage
from linkstream.engine.comparison import Totals, gathered, similarities
from linkstream.engine.comparison import members as all_members
from linkstream.engine.contract import Subclusters
from linkstream.engine.forest import find_root
from linkstream.engine.graph import column
from linkstream.engine.healing import POINT
from linkstream.engine.linkage import Blocs, Progress, Restrictions, Unions, Unite
from linkstream.engine.state import State, damaged
from linkstream.engine.totals import StateSubclusters
from linkstream.errors import ArgumentError
from linkstream.identity.laws import Laws, blocs
from linkstream.identity.regrouping import Regrouping
from linkstream.paper.thresholds import Thresholds

ALIKE = 0.9  # mean similarity of two clusters over that within the tighter of them
FINAL_MAX = 10**12  # vectors

_BLOCK = 16_384  # cuts compared at a time
NO_LAWS = Laws()


@dataclass(frozen=True, slots=True)
class Join:
    """Two clusters to join, by an edge between the largest subclusters of each.

    `margin` is how far the two groups' similarity lay above s~ when they were united.
    """

    clusters: tuple[int, int]
    subclusters: tuple[int, int]
    margin: float


@dataclass(frozen=True, slots=True)
class Cut:
    """An edge to cut.

    `margin` is how far the similarity of the two groups lies above s~: below 0, unless a third
    group had the greater margin.
    """

    cluster: int
    subclusters: tuple[int, int]
    margin: float


@dataclass(frozen=True, slots=True)
class Settlement:
    """The joins and cuts that settling proposes, or has applied."""

    joins: tuple[Join, ...]
    cuts: tuple[Cut, ...]
    n_clusters_before: int
    n_clusters_after: int
    applied: bool = False

    def text(self) -> str:
        """Return the proposals, one a line."""
        done = "settled" if self.applied else "proposed"
        lines = [f"{done}: {self.n_clusters_before} clusters → {self.n_clusters_after}"]
        lines += [f"cut  {cut.cluster} between {_pair(cut)}" for cut in self.cuts]
        lines += [f"join {j.clusters[0]} and {j.clusters[1]} at {_pair(j)}" for j in self.joins]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return self.text()


def _pair(change: Join | Cut) -> str:
    return f"subclusters {change.subclusters[0]} and {change.subclusters[1]} ({change.margin:+.3f})"


def settle(
    subclusters: Subclusters,
    thresholds: Thresholds,
    *,
    laws: Laws = NO_LAWS,
    asked: bool = False,
    progress: Progress | None = None,
) -> tuple[Settlement, Regrouping]:
    """Return the changes that margin linkage proposes, and the graph with them applied.

    Subclusters that corrections tie are one from the start; those kept apart are never united.
    """
    state = subclusters.outline()
    members = blocs(state)
    restrictions = Restrictions(laws.rows(state, members), laws.labels(state, members))
    rows = _rows(state, members)
    unions = subclusters.unions(rows, thresholds, restrictions, progress)
    del rows
    plan = _Plan.of(state, unions, members)
    margins = _cut_margins(subclusters, state, plan.tree, thresholds)
    return _change(state, plan, margins, laws, asked=asked)


def heal(
    state: State, thresholds: Thresholds, unite: Unite, *, min_size: int, laws: Laws = NO_LAWS
) -> tuple[Settlement, State]:
    """Return the same for whole clusters of at least `min_size` vectors: joins only.

    A cluster is tested by the centroid and the count of all its vectors, so that one stray
    subcluster cannot tie two clusters. Two clusters must also be nearly as similar to each other as
    each is within itself, as fragments of one identity are: thresholds that were tuned without
    healing may have a T_p that nothing ever tested (accuracy fell from .61 to .28). No group holds
    two clusters that are not.
    """
    totals = Totals.of(state)
    large = np.flatnonzero(totals.counts >= min_size)
    inside = all_members(state, totals)
    members = [inside[cluster] for cluster in large.tolist()]
    restrictions = Restrictions(laws.rows(state, members), laws.labels(state, members), ALIKE)
    unions = unite(totals.sums[large], totals.masses[large], thresholds, restrictions, None)
    plan = _Plan.of(state, unions, members)
    margins = _cut_margins(StateSubclusters(state, unite), state, plan.tree, thresholds)
    changes, graph = _change(state, plan, margins, laws)
    return changes, graph.finish()


def _rows(state: State, members: list[list[int]]) -> Blocs:
    """Return subclusters that are one from the start as rows."""
    numbers = column(number for bloc in members for number in bloc)
    places = column(row for row, bloc in enumerate(members) for _ in bloc)
    masses = state.masses()[np.searchsorted(state.numbers, numbers)]
    return Blocs(numbers, places, gathered(masses, places, len(members)))


@dataclass(frozen=True, slots=True)
class _Plan:
    """The edges to cut, in `tree`, and those to tie, with their margins."""

    tree: _Trees
    ties: list[tuple[tuple[int, int], float]]

    @classmethod
    def of(cls, state: State, unions: Unions, members: list[list[int]]) -> _Plan:
        """Return cuts between groups and ties within them; `members` are those of each row."""
        ties = []
        tree = _Trees(state, _groups(unions, members, state))
        size = dict(zip(state.numbers.tolist(), state.counts.tolist(), strict=True))
        heads = [max(row, key=lambda number: (size[number], -number)) for row in members]
        columns = (unions.kept.tolist(), unions.gone.tolist(), unions.margins.tolist())
        for kept, gone, margin in zip(*columns, strict=True):
            a, b = sorted((heads[kept], heads[gone]))
            if not tree.together(a, b):
                tree.tie(a, b)
                ties.append(((a, b), margin))
            heads[kept] = max(a, b, key=lambda number: (size[number], -number))
        return cls(tree, ties)


def _change(
    state: State, plan: _Plan, margins: list[float], laws: Laws, *, asked: bool | None = None
) -> tuple[Settlement, Regrouping]:
    """Carry out a plan; `margins` are those of the cuts.

    `asked` says whether the user asked for a settlement; None: this is no settlement.
    """
    graph, crossing = Regrouping(state, laws.names), plan.tree.crossing
    if asked is not None:
        graph.begin(len(crossing), len(plan.ties), asked=asked)
    cuts = []
    for (a, b), margin in zip(crossing, margins, strict=True):
        cuts.append(Cut(graph.clusters[a], (a, b), margin))
        graph.cut(a, b)
    joins = []
    for (a, b), margin in plan.ties:
        joins.append(Join((graph.clusters[a], graph.clusters[b]), (a, b), margin))
        graph.tie(a, b)
    before, after = len(np.unique(state.clusters)), len(set(graph.clusters.values()))
    return Settlement(tuple(joins), tuple(cuts), before, after), graph


def _groups(unions: Unions, members: list[list[int]], state: State) -> dict[int, int]:
    """Return the final group of each subcluster; others stay with their cluster."""
    root = list(range(len(members)))
    for kept, gone in zip(unions.kept.tolist(), unions.gone.tolist(), strict=True):
        root[gone] = kept
    for row in range(len(root)):
        top = row
        while root[top] != top:
            top = root[top]
        root[row] = top
    numbers, clusters = state.numbers.tolist(), state.clusters.tolist()
    groups = {n: -1 - cluster for n, cluster in zip(numbers, clusters, strict=True)}
    groups.update((number, root[row]) for row, list_ in enumerate(members) for number in list_)
    return groups


class _Trees:
    """Which subclusters are connected by the edges that stay and those tied so far."""

    def __init__(self, state: State, groups: dict[int, int]) -> None:
        self.groups = groups
        self._root = {number: number for number in groups}
        self.crossing: list[tuple[int, int]] = []
        for a, b in state.edges.tolist():
            if groups[a] == groups[b]:
                self.tie(a, b)
            else:
                self.crossing.append((a, b))

    def together(self, a: int, b: int) -> bool:
        return find_root(self._root, a) == find_root(self._root, b)

    def tie(self, a: int, b: int) -> None:
        self._root[find_root(self._root, a)] = find_root(self._root, b)


def _cut_margins(
    subclusters: Subclusters, state: State, tree: _Trees, thresholds: Thresholds
) -> list[float]:
    """Return the margin of the final groups on both sides of each edge to cut."""
    if not tree.crossing:
        return []
    ends = np.searchsorted(state.numbers, np.array(tree.crossing))
    groups = np.array([tree.groups[number] for number in state.numbers.tolist()])
    cut, ends = np.unique(groups[ends], return_inverse=True)
    rows = np.flatnonzero(np.isin(groups, cut))
    place = np.searchsorted(cut, groups[rows])
    masses = gathered(state.masses()[rows], place, len(cut))
    sums = subclusters.totals(state.numbers[rows], place, len(cut))
    a, b = ends.reshape(-1, 2).T
    cosines = np.empty(len(a))
    for start in range(0, len(a), _BLOCK):
        part = slice(start, start + _BLOCK)
        left, right = (linkage.centroids(sums[side[part]]) for side in (a, b))
        cosines[part] = similarities(left, right)
    return list((cosines - thresholds.edges(masses[a], masses[b])).tolist())


MODES = ("join", "settle")


@dataclass(frozen=True, slots=True)
class Healing:
    """When and how clusters are healed.

    Attributes:
        mode: "settle" settles clusters that have grown with what is near them, every 32 vectors
            (engine/healing.py); "join" ties clusters of at least `min_size` vectors that pass s~ as
            wholes.
        first: number of vectors after which "join" runs first.
        growth: growth, as a factor, of a cluster between two looks at it ("settle"), or of the
            stream between two runs ("join").
        min_size: vectors a cluster needs to take part in "join".
        steadiness: how much greater a margin must be to change the ID of a subcluster than to keep
            it ("settle"): margins within a cluster are raised by it, others lowered. None: all
            subclusters are settled each time the stream has grown, as the first version did; files
            of that version go on with it.
        final_after: number of vectors after which an ID is final ("settle"): subclusters of one
            cluster whose first vectors are older stay together, so that from then on a join changes
            the ID, and hardly anything else. None: no ID is final.

    >>> Healing("join").after(1000)
    1141
    """

    mode: str = "join"
    first: int = 50
    growth: float = 1.3
    min_size: int = 5
    steadiness: float | None = 0.01
    final_after: int | None = None

    def __post_init__(self) -> None:
        _require(self.mode in MODES, "mode", self.mode, "'join' or 'settle'")
        whole = all(type(value) is int and value >= 1 for value in (self.first, self.min_size))
        seen = (self.first, self.min_size)
        _require(whole, "first and min_size", seen, "whole numbers from 1 on")
        number = isinstance(self.growth, float) and 1.0 < self.growth <= 1000.0
        _require(number, "growth", self.growth, "a float above 1, at most 1000")
        if self.mode == "join":
            object.__setattr__(self, "steadiness", None)
        number = isinstance(self.steadiness, float) and 0.0 <= self.steadiness <= 1.0
        steadiness = self.steadiness
        expected = "a float from 0 to 1, or None"
        _require(number or steadiness is None, "steadiness", steadiness, expected)
        final = self.final_after
        number = type(final) is int and 1 <= final <= FINAL_MAX and self.as_it_goes
        expected = 'None, or a whole number from 1 to 10**12 with "settle" and steadiness'
        _require(number or final is None, "final_after", final, expected)

    @property
    def as_it_goes(self) -> bool:
        """Return whether the engine settles clusters that have grown while vectors arrive."""
        return self.steadiness is not None

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.to_dict().items())
        return f"Healing({values})"

    def after(self, n_vectors: int) -> int:
        """Return the number of vectors at which healing runs next, after `n_vectors`."""
        if self.as_it_goes:
            return n_vectors - n_vectors % POINT + POINT
        mark = self.first
        while mark <= n_vectors:
            mark = max(mark + 1, int(mark * self.growth))
        return mark

    def run(self, state: State, unite: Unite, laws: Laws) -> tuple[Settlement, State]:
        """Return the changes of healing at fixed places, and the state with them applied."""
        if self.mode == "settle":
            changes, graph = settle(StateSubclusters(state, unite), state.thresholds, laws=laws)
            return changes, graph.finish()
        return heal(state, state.thresholds, unite, min_size=self.min_size, laws=laws)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for snapshots; without a steadiness or `final_after` of None."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def read(cls, values: object) -> Healing | None:
        """Return the healing of a snapshot; raise SnapshotError if it is not valid."""
        if values is None:
            return None
        first: dict[str, Any] = {"steadiness": None}  # of the first version, unless it is given
        try:
            return cls(**(first | values))  # type: ignore[operator]
        except (TypeError, ArgumentError) as error:
            raise damaged(f"healing that cannot be ({error})", "what linkstream wrote") from None

    @classmethod
    def of(cls, given: object) -> Healing | None:
        """Return the healing that `heal=` means: None, a mode, or a Healing."""
        if given is None or isinstance(given, Healing):
            return given
        if isinstance(given, str):
            return cls(given)
        _require(False, "heal", given, "None, 'join', 'settle' or a Healing")
        return None


def _require(holds: bool, name: str, seen: object, expected: str) -> None:
    if not holds:
        raise ArgumentError(
            f"{name}: {seen!r}",
            expected=expected,
            remedy="Healing is opt-in: leave heal=None for the paper's algorithm.",
        )
