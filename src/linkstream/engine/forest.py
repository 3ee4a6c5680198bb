"""The graph of the reference engine: subclusters, edges between them, always a forest; clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

FULL = 256  # the weight of a vector of full weight
LOOSE, FIRM, LAW = range(3)  # judged by equation 22; settled; a person's word
LOCKED, CLAIM = 1, 2  # flags of a node: its centroid stays; its part keeps the ID at a split


@dataclass(slots=True)
class Node:
    """A subcluster (section 3.2): its count k, S·S, its edges; its sum S stands in the table."""

    number: int
    cluster: int
    count: int
    square: int
    first_seen: int
    last_seen: int
    light: int = 0  # how much less than `count` the vectors weigh, in 256ths
    flags: int = 0
    neighbours: set[int] = field(default_factory=set)
    firm: dict[int, int] = field(default_factory=dict)  # neighbours not judged by equation 22

    @property
    def mass(self) -> float:
        """k, as the formulas of the paper take it."""
        return mass(self.count, self.light)

    @property
    def locked(self) -> bool:
        """Whether the centroid is to stay as it is."""
        return bool(self.flags & LOCKED)


@dataclass(slots=True)
class Whole:
    """A cluster: vectors in it, what these weigh less, how many of its nodes claim its ID."""

    size: int = 0
    light: int = 0
    claims: int = 0

    def take(self, node: Node, sign: int = 1) -> None:
        """A node comes to the cluster, or leaves it."""
        self.size += sign * node.count
        self.light += sign * node.light
        self.claims += sign * bool(node.flags & CLAIM)

    @property
    def mass(self) -> float:
        """What all vectors weigh together, as k."""
        return mass(self.size, self.light)


def mass(count: int, light: int) -> float:
    """What so many vectors weigh, as k; one at the least."""
    return max(count - light / FULL, 1.0)


def add_edge(a: Node, b: Node, *, firm: int = LOOSE) -> None:
    """Tie two nodes."""
    for end, other in ((a, b), (b, a)):
        end.neighbours.add(other.number)
        if firm:
            end.firm[other.number] = firm


def remove_edge(a: Node, b: Node) -> int:
    """Take an edge away; how firm it was."""
    firm = a.firm.get(b.number, LOOSE)
    for end, other in ((a, b), (b, a)):
        end.neighbours.remove(other.number)
        end.firm.pop(other.number, None)
    return firm


def part_of(nodes: Mapping[int, Node], start: Node) -> set[int]:
    """Numbers of the nodes in one piece with `start`."""
    seen = {start.number}
    todo = [start]
    while todo:
        for number in todo.pop().neighbours - seen:
            seen.add(number)
            todo.append(nodes[number])
    return seen
