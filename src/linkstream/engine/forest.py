"""Nodes, edges and clusters of the reference engine (section 3.2). C++ twin: forest.hpp.

The edges form a forest; each of its trees is one cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

FULL = 256  # the weight of a vector of full weight
# Edge rules: equation 22 tests the edge; a settlement or cluster evidence holds it; a user did.
TESTED, SETTLED, PINNED = range(3)
# Flags of a node: its centroid stays; its part keeps the ID at a split; healing looks at it again.
LOCKED, CLAIM, DUE = 1, 2, 4
GIVEN_FLAGS = LOCKED | CLAIM  # those that users set


@dataclass(slots=True)
class Node:
    """A subcluster: its count k, S·S and its edges. The sum S is a row of `Rows`."""

    number: int
    cluster: int
    count: int
    square: int
    first_seen: int
    last_seen: int
    missing_weight: int = 0  # the weight that the vectors lack, in 256ths: 256·count − their weight
    flags: int = 0
    neighbours: set[int] = field(default_factory=set)
    rules: dict[int, int] = field(default_factory=dict)  # by neighbour, where not TESTED

    @property
    def mass(self) -> float:
        """Return the weight of the vectors as the k of the paper's formulas."""
        return mass(self.count, self.missing_weight)

    def take_in(self, gone: Node) -> None:
        """Count the vectors of another node in this one."""
        self.count += gone.count
        self.missing_weight += gone.missing_weight
        self.flags |= gone.flags
        self.first_seen = min(self.first_seen, gone.first_seen)
        self.last_seen = max(self.last_seen, gone.last_seen)

    @property
    def locked(self) -> bool:
        """Return whether the centroid is fixed."""
        return bool(self.flags & LOCKED)


@dataclass(slots=True)
class ClusterStats:
    """A cluster: its vectors, the weight they lack, and how many of its nodes claim its ID."""

    size: int = 0
    missing_weight: int = 0
    claims: int = 0

    def count(self, node: Node, sign: int = 1) -> None:
        """Add a node to the statistics; subtract it with sign −1."""
        self.size += sign * node.count
        self.missing_weight += sign * node.missing_weight
        self.claims += sign * bool(node.flags & CLAIM)

    @property
    def mass(self) -> float:
        """Return the weight of all vectors as k."""
        return mass(self.size, self.missing_weight)


def mass(count: int, missing_weight: int) -> float:
    """Return the weight of `count` vectors that lack `missing_weight` 256ths, as k; at least 1."""
    return max(count - missing_weight / FULL, 1.0)


def add_edge(a: Node, b: Node, *, rule: int = TESTED) -> None:
    """Add an edge between two nodes."""
    for end, other in ((a, b), (b, a)):
        end.neighbours.add(other.number)
        if rule:
            end.rules[other.number] = rule


def remove_edge(a: Node, b: Node) -> int:
    """Remove the edge between two nodes and return its rule."""
    rule = a.rules.get(b.number, TESTED)
    for end, other in ((a, b), (b, a)):
        end.neighbours.remove(other.number)
        end.rules.pop(other.number, None)
    return rule


def move_edges(nodes: Mapping[int, Node], gone: Node, heir: Node | None) -> None:
    """Move the edges of a node to one of its neighbours; remove them if there is no heir."""
    for number in list(gone.neighbours):
        rule = remove_edge(gone, nodes[number])
        if heir is not None and number != heir.number:
            add_edge(heir, nodes[number], rule=rule)


def find_root(root: dict[int, int] | list[int], node: int) -> int:
    """Return the root of a node's tree in a disjoint-set forest, and shorten the path to it."""
    while root[node] != node:
        root[node] = root[root[node]]
        node = root[node]
    return node


def part_of(nodes: Mapping[int, Node], start: Node) -> set[int]:
    """Return the numbers of all nodes that edges connect to `start`. C++ twin: sides.hpp."""
    seen = {start.number}
    todo = [start]
    while todo:
        for number in todo.pop().neighbours - seen:
            seen.add(number)
            todo.append(nodes[number])
    return seen
