"""Paths: the edges between two vectors of one cluster, or why there are none."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from linkstream.engine import linkage
from linkstream.engine.events import Event, Linked, Merged, Rejoined, United
from linkstream.engine.linkage import CENTROID_SCALE
from linkstream.engine.state import State
from linkstream.identity.regrouping import neighbours_of
from linkstream.identity.suggestions import edge_figures


@dataclass(frozen=True, slots=True)
class Step:
    """An edge on the way: what it has, what s~ asks of it, and the event that made it.

    `made` is None where that event is no longer kept, or the edge came through merges alone.
    """

    subclusters: tuple[int, int]
    similarity: float
    threshold: float
    margin: float
    firm: bool
    made: int | None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two vectors: their subclusters, their clusters, and the edges between them."""

    vectors: tuple[int, int]
    subclusters: tuple[int, int]
    clusters: tuple[int, int]
    similarity: float
    steps: tuple[Step, ...]

    @property
    def together(self) -> bool:
        """Whether they are in one cluster."""
        return self.clusters[0] == self.clusters[1]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self) | {"together": self.together}

    def __str__(self) -> str:
        (a, b), (left, right) = self.vectors, self.clusters
        if not self.together:
            return (
                f"vector {a} is in cluster {left}, vector {b} in cluster {right}; their "
                f"subclusters have similarity {self.similarity:.4f}"
            )
        if not self.steps:
            return f"vectors {a} and {b} are in one subcluster, {self.subclusters[0]}"
        lines = [f"vectors {a} and {b} are in cluster {left}, {len(self.steps)} edges apart:"]
        for step in self.steps:
            when = "" if step.made is None else f", made by event {step.made}"
            lines.append(
                f"  {step.subclusters[0]} – {step.subclusters[1]}: similarity "
                f"{step.similarity:.4f}, s~ {step.threshold:.4f} ({step.margin:+.4f})"
                f"{', firm' if step.firm else ''}{when}"
            )
        return "\n".join(lines)


def between(state: State, a: int, b: int, events: Sequence[Event]) -> Pair:
    """The way from one vector to another over the edges of their cluster."""
    ends = int(state.vectors[a]), int(state.vectors[b])
    rows = np.searchsorted(state.numbers, ends)
    units = linkage.centroids(state.sums[rows])
    way = _way(state, *ends) if state.clusters[rows[0]] == state.clusters[rows[1]] else []
    return Pair(
        vectors=(a, b),
        subclusters=ends,
        clusters=(int(state.clusters[rows[0]]), int(state.clusters[rows[1]])),
        similarity=float((units[0] * units[1]).sum() / CENTROID_SCALE**2),
        steps=tuple(_steps(state, way, events)),
    )


def _way(state: State, start: int, end: int) -> list[int]:
    """Numbers of the subclusters from start to end; the forest has one way only."""
    neighbours = neighbours_of(state)
    before, todo = {start: start}, [start]
    while todo and end not in before:
        number = todo.pop()
        for other in neighbours[number]:
            if other not in before:
                before[other] = number
                todo.append(other)
    way = [end]
    while way[-1] != start:
        way.append(before[way[-1]])
    return way[::-1]


def _steps(state: State, way: list[int], events: Sequence[Event]) -> list[Step]:
    if len(way) < 2:
        return []
    similarity, threshold = edge_figures(state)
    place = {edge: i for i, edge in enumerate(map(tuple, state.edges.tolist()))}
    made = _makers(events)
    steps = []
    for a, b in itertools.pairwise(way):
        edge = (a, b) if a < b else (b, a)
        i = place[edge]
        margin = float(similarity[i] - threshold[i])
        figures = float(similarity[i]), float(threshold[i]), margin, bool(state.firm[i])
        steps.append(Step((a, b), *figures, made.get(edge)))
    return steps


def _makers(events: Sequence[Event]) -> dict[tuple[int, int], int]:
    """The event that last made each edge, merges followed: an edge moves with its ends."""
    made: dict[tuple[int, int], int] = {}
    for event in events:
        if isinstance(event, (Linked, Rejoined, United)):
            a, b = sorted((event.subcluster, event.partner))
            made[a, b] = event.sequence
        elif isinstance(event, Merged):
            made = _renamed(made, event.absorbed, event.subcluster)
    return made


def _renamed(
    made: dict[tuple[int, int], int], absorbed: int, survivor: int
) -> dict[tuple[int, int], int]:
    moved = {}
    for (a, b), sequence in made.items():
        ends = sorted(survivor if end == absorbed else end for end in (a, b))
        if ends[0] != ends[1]:
            moved[ends[0], ends[1]] = sequence
    return moved
