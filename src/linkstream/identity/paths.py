"""Paths: the edges between two of one cluster, or what keeps the two apart."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.engine import events as kinds
from linkstream.engine import linkage
from linkstream.engine.comparison import edge_figures, similarities
from linkstream.engine.events import Event
from linkstream.engine.state import PER_NODE, State
from linkstream.identity.laws import Laws
from linkstream.identity.ledger import KINDS
from linkstream.identity.regrouping import neighbours_of, way
from linkstream.identity.suggestions import nearest
from linkstream.identity.timeline import standing

_MAKERS = kinds.Linked, kinds.Rejoined, kinds.United, kinds.Tied, kinds.Retied, kinds.Moved
EventsOf = Callable[[list[int]], Iterable[Event]]
_FIRM = ("", ", firm", ", a person's word")


@dataclass(frozen=True, slots=True)
class Step:
    """One edge of a path: its similarity, s~, and the event that made it.

    `firm` is 0 if equation 22 tests the edge, 1 if it was settled, 2 if a correction holds it.
    `made` is None if the event is no longer kept, or the edge came from merges only.
    """

    subclusters: tuple[int, int]
    similarity: float
    threshold: float
    margin: float
    firm: int
    made: int | None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two vectors, subclusters or clusters: the edges between them, or what keeps them apart.

    Attributes:
        of: what the two are: "vectors", "subclusters" or "clusters".
        ends: the two, by number or ID.
        subclusters: the subclusters that hold them; of two clusters the most similar ones.
        clusters: the clusters that hold them.
        similarity, threshold, margin: of the two subclusters; the threshold is s~.
        steps: the edges from one to the other; empty if they are apart, or in one subcluster.
        barred: the correction that keeps their clusters apart; None if there is none.
    """

    of: str
    ends: tuple[int, int]
    subclusters: tuple[int, int]
    clusters: tuple[int, int]
    similarity: float
    threshold: float
    margin: float
    steps: tuple[Step, ...]
    barred: str | None = None

    @property
    def together(self) -> bool:
        """Whether the two are in one cluster."""
        return self.clusters[0] == self.clusters[1]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self) | {"together": self.together}

    def __str__(self) -> str:
        if not self.together:
            return f"{self._where()}; {self._why_apart()}"
        a, b = self.ends
        if a == b and self.of != KINDS[0]:
            return f"{self.of.removesuffix('s')} {a} is one"
        if not self.steps:
            return f"{self.of} {a} and {b} are in one subcluster, {self.subclusters[0]}"
        edges = "1 edge" if len(self.steps) == 1 else f"{len(self.steps)} edges"
        lines = [f"{self.of} {a} and {b} are in cluster {self.clusters[0]}, {edges} apart:"]
        for step in self.steps:
            when = "" if step.made is None else f", made by event {step.made}"
            lines.append(
                f"  {step.subclusters[0]} – {step.subclusters[1]}: similarity "
                f"{step.similarity:.4f}, s~ {step.threshold:.4f} ({step.margin:+.4f})"
                f"{_FIRM[step.firm]}{when}"
            )
        return "\n".join(lines)

    def _where(self) -> str:
        (a, b), (left, right), one = self.ends, self.clusters, self.of.removesuffix("s")
        if self.of == KINDS[2]:
            x, y = self.subclusters
            return f"clusters {a} and {b} are nearest in subclusters {x} and {y}"
        return f"{one} {a} is in cluster {left}, {one} {b} in cluster {right}"

    def _why_apart(self) -> str:
        figures = f"{self.similarity:.4f}, s~ {self.threshold:.4f} ({self.margin:+.4f})"
        text = f"their subclusters have similarity {figures}"
        if self.barred is not None:
            return f"{text}; they are kept apart: {self.barred}"
        return text if self.margin < 0 else f"{text}: enough for an edge, but none was made"


def between(
    state: State,
    a: int,
    b: int,
    events_of: EventsOf,
    *,
    of: str = "vectors",
    laws: Laws | None = None,
    subclusters: tuple[int, int] | None = None,
) -> Pair:
    """Return the path between two over the edges of their cluster, or what keeps them apart.

    Both must exist: vectors that were not removed, live subclusters or live clusters. The state
    needs the clusters of the two only, and no vectors if `subclusters` are given.

    Args:
        state: the state, or the two clusters alone.
        a: the number of one.
        b: the number of the other.
        events_of: returns, for the subclusters of a path, all events, or those about the edges
            between them (`EventIndex.of_edges`).
        of: what the two are: "vectors", "subclusters" or "clusters".
        laws: the corrections that hold.
        subclusters: the subclusters that hold the two; of clusters the most similar ones.
    """
    ends = subclusters or _subclusters(state, a, b, of)
    rows = np.searchsorted(state.numbers, ends)
    units, masses = linkage.centroids(state.sums[rows]), state.masses()[rows]
    similarity = float(similarities(units[:1], units[1:])[0])
    threshold = state.thresholds.edge(float(masses[0]), float(masses[1]))
    clusters = int(state.clusters[rows[0]]), int(state.clusters[rows[1]])
    together = clusters[0] == clusters[1]
    return Pair(
        of=of,
        ends=(a, b),
        subclusters=ends,
        clusters=clusters,
        similarity=similarity,
        threshold=threshold,
        margin=similarity - threshold,
        steps=tuple(_steps(state, way(neighbours_of(state), *ends), events_of)) if together else (),
        barred=None if together else _barred(state, clusters, laws or Laws()),
    )


def _subclusters(state: State, a: int, b: int, of: str) -> tuple[int, int]:
    if of == KINDS[0]:
        return int(state.vectors[a]), int(state.vectors[b])
    if of == KINDS[1]:
        return a, b
    if a == b:
        oldest = int(state.numbers[state.clusters == a][0])
        return oldest, oldest
    return nearest(part_of(state, a), part_of(state, b))


def part_of(state: State, cluster: int) -> State:
    """Return one cluster of a state: its subclusters, their sums and edges."""
    rows = state.clusters == cluster
    edges = np.isin(state.edges[:, 0], state.numbers[rows])
    return _some(state, rows, edges)


def joined(one: State, other: State) -> State:
    """Return the subclusters and edges of two clusters, which may be one, as one state."""
    if np.array_equal(one.numbers, other.numbers):
        return one
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(one, name), getattr(other, name)])
        for name in (*PER_NODE, "sums", "edges", "edge_rules")
    }
    both = replace(one, **columns)
    order = np.lexsort((both.edges[:, 1], both.edges[:, 0]))
    return _some(both, np.argsort(both.numbers), order)


def _some(state: State, rows: npt.NDArray[Any], edges: npt.NDArray[Any]) -> State:
    columns: dict[str, Any] = {name: getattr(state, name)[rows] for name in (*PER_NODE, "sums")}
    columns |= {name: getattr(state, name)[edges] for name in ("edges", "edge_rules")}
    return replace(state, **columns)


def _barred(state: State, clusters: tuple[int, int], laws: Laws) -> str | None:
    """Return the reason why two clusters may not be one, if any."""
    names = [laws.names.get(cluster) for cluster in clusters]
    if None not in names and names[0] != names[1]:
        return f"one is named {names[0]!r}, the other {names[1]!r}"
    ours, theirs = (state.numbers[state.clusters == cluster].tolist() for cluster in clusters)
    pair = laws.clash(ours, theirs)
    return None if pair is None else laws.barred(pair[0])[pair[1]]


def _steps(state: State, way: list[int], events_of: EventsOf) -> list[Step]:
    if len(way) < 2:
        return []
    similarity, threshold = edge_figures(state)
    place = {edge: i for i, edge in enumerate(map(tuple, state.edges.tolist()))}
    made = _makers(events_of(way))
    steps = []
    for a, b in itertools.pairwise(way):
        edge = (a, b) if a < b else (b, a)
        i = place[edge]
        margin = float(similarity[i] - threshold[i])
        figures = float(similarity[i]), float(threshold[i]), margin, int(state.edge_rules[i])
        steps.append(Step((a, b), *figures, made[a].get(b, (0, None))[1]))
    return steps


# By subcluster and neighbour: the place of the first event of the edge, and the newest event.
_Made = defaultdict[int, dict[int, tuple[int, int]]]


def _makers(events: Iterable[Event]) -> _Made:
    """Return the event that last made each edge; an edge moves with its ends through merges."""
    made: _Made = defaultdict(dict)
    for place, event in enumerate(standing(events)):
        if isinstance(event, _MAKERS) and event.partner >= 0:
            a, b = event.subcluster, event.partner
            first = made[a].get(b, (place, 0))[0]
            made[a][b] = made[b][a] = first, event.sequence
        elif isinstance(event, kinds.Merged):
            _rename(made, event.absorbed, event.subcluster)
        elif isinstance(event, kinds.Vanished) and event.heir >= 0:
            _rename(made, event.subcluster, event.heir)
    return made


def _rename(made: _Made, absorbed: int, survivor: int) -> None:
    """Give the edges of a subcluster to another; of two edges that become one, the later stays."""
    for other, record in made.pop(absorbed, {}).items():
        del made[other][absorbed]
        if other != survivor:
            held = made[survivor].get(other, record)
            both = min(held, record)[0], max(held, record)[1]
            made[survivor][other] = made[other][survivor] = both
