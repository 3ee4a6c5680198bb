"""Requests of users that the engine checks and then carries out (docs/identity.md).

C++ twin: corrections.hpp. A request that cannot be carried out is refused before anything changes.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from linkstream.engine.assess import Verdict
from linkstream.engine.contract import JOINED
from linkstream.engine.fixed_point import dot
from linkstream.engine.forest import FULL, Node
from linkstream.engine.graph import Graph
from linkstream.engine.members import Members
from linkstream.engine.placement import Contribution, Placement
from linkstream.engine.state import Fixed, Integers
from linkstream.errors import ArgumentError


def share(vectors: npt.NDArray[np.integer], missing_weight: int) -> Integers:
    """Return what vectors add to a sum if each lacks `missing_weight` 256ths of the full weight.

    >>> share(np.array([[512, -3]]), 128)
    array([[256,  -1]])
    """
    wide = vectors.astype(np.int64)
    return (wide * (FULL - missing_weight) + FULL // 2) >> 8 if missing_weight else wide


class Corrections:
    """Checked withdrawals and outcomes that a user decides."""

    def __init__(self, graph: Graph, members: Members, placement: Placement) -> None:
        self._graph, self._members, self._placement = graph, members, placement

    def given(self, outcome: int, target: int, rule: int) -> Verdict:
        """Return an outcome that is given instead of assessed."""
        return Verdict(outcome, partner=self._graph.nodes.get(target), rule=rule)

    def check_sum(self, verdict: Verdict, added: Integers) -> None:
        """Raise ArgumentError if the sum that a share joins or starts would be zero."""
        partner = verdict.partner if verdict.kind == JOINED else None
        if partner is not None:
            added = self._graph.rows.sum(partner.number) + (0 if partner.locked else added)
        if not added.any():
            raise _nothing_left()

    def withdraw(self, vector: Fixed, missing_weight: int, target: int, member: int) -> None:
        """Take a vector's share out of the subcluster that holds it, exactly."""
        node, taken = self._graph.nodes[target], share(vector, missing_weight)
        if node.count > 1:
            _check_rest(node, self._graph.rows.sum(target) - taken, missing_weight)
        self._members.moved(member, -1)
        self._placement.withdraw(node, Contribution(taken, missing_weight, member))


def _check_rest(node: Node, left: Integers, missing_weight: int) -> None:
    """Raise ArgumentError if `left` cannot be the sum of the other vectors of a subcluster."""
    if not left.any():
        raise _nothing_left()
    rest, slack = node.count - 1, math.isqrt(len(left))
    if dot(left, left) > (rest * (2**30 + slack)) ** 2:
        raise absent("a vector whose removal leaves no possible sum of vectors")
    if not 0 <= node.missing_weight - missing_weight <= FULL * rest:
        raise absent("a weight that the subcluster does not hold")


def absent(seen: str) -> ArgumentError:
    """Return the error for a vector to withdraw that the subcluster does not hold."""
    return ArgumentError(
        seen,
        expected="a vector that the subcluster holds, with the weight it was added with",
        remedy="Pass the vector that was added, unchanged, and its weight.",
    )


def _nothing_left() -> ArgumentError:
    return ArgumentError(
        "a subcluster whose vectors would sum to zero",
        expected="a centroid with a direction",
        remedy="Put the vector elsewhere, or remove the others first.",
    )
