"""The graph of the reference engine: subclusters and the edges between them, always a forest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class Node:
    """A subcluster (section 3.2): its count k, S·S, its edges; its sum S stands in the table."""

    number: int
    cluster: int
    count: int
    square: int
    first_seen: int
    last_seen: int
    neighbours: set[int] = field(default_factory=set)
    firm: set[int] = field(default_factory=set)  # neighbours that equation 22 does not judge


def add_edge(a: Node, b: Node, *, firm: bool = False) -> None:
    """Tie two nodes."""
    for end, other in ((a, b), (b, a)):
        end.neighbours.add(other.number)
        if firm:
            end.firm.add(other.number)


def remove_edge(a: Node, b: Node) -> bool:
    """Take an edge away; whether it was firm."""
    firm = b.number in a.firm
    for end, other in ((a, b), (b, a)):
        end.neighbours.remove(other.number)
        end.firm.discard(other.number)
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
