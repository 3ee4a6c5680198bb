"""A change of the reference engine that can be taken back: the parts it touched, as they were.

The compiled twin notes single steps instead (`begin`, `commit` and `rollback` of forest.hpp,
graph.hpp, members.hpp and log.hpp).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from linkstream.engine.forest import Node, Whole

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(slots=True)
class Before:
    """What a change found; None stands for a node or cluster that was not there."""

    counters: tuple[int, ...]
    n_members: int
    n_kept: int
    nodes: dict[int, Node | None] = field(default_factory=dict)
    sums: dict[int, npt.NDArray[np.int64]] = field(default_factory=dict)
    clusters: dict[int, Whole | None] = field(default_factory=dict)
    members: dict[int, int] = field(default_factory=dict)  # vectors moved or removed → their nodes
    survivors: list[int] = field(default_factory=list)  # subclusters that were absorbed

    def save_node(self, node: Node, total: npt.NDArray[np.int64]) -> None:
        """Save a node that is about to change, unless the change made it or saved it before."""
        if node.number not in self.nodes:
            image = replace(node, neighbours=set(node.neighbours), firm=dict(node.firm))
            self.sums[node.number] = total.copy()
            self.nodes[node.number] = image

    def save_cluster(self, cluster: int, whole: Whole | None) -> None:
        """Save a cluster that is about to change; None if it is about to be made."""
        if cluster not in self.clusters:
            self.clusters[cluster] = None if whole is None else replace(whole)


class Changeable(Protocol):
    """An engine whose calls are changes."""

    @property
    def in_change(self) -> bool:
        """Whether a change of several calls is open."""

    def begin(self) -> None:
        """Begin a change."""

    def commit(self) -> None:
        """Keep it."""

    def rollback(self) -> None:
        """Take it back."""


E = TypeVar("E", bound=Changeable)


def whole(call: Callable[Concatenate[E, P], R]) -> Callable[Concatenate[E, P], R]:
    """Make a call a change of its own, unless it is part of a larger one."""

    @wraps(call)
    def changing(self: E, /, *args: P.args, **options: P.kwargs) -> R:
        if self.in_change:
            return call(self, *args, **options)
        self.begin()
        try:
            answer = call(self, *args, **options)
            self.commit()
        except BaseException:
            self.rollback()
            raise
        return answer

    return changing
