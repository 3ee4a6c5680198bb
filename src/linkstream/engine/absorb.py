"""Vectors that arrive as one sum, as a subcluster of another clusterer does.

C++ twin: absorb.hpp. Paper: equations 20 and 21 with s~(k, k') for the k' of them (docs/choices.md,
"Absorbing is arriving together").
"""

from __future__ import annotations

from dataclasses import dataclass

from linkstream.engine import events
from linkstream.engine.assess import Assess, Verdict
from linkstream.engine.cluster_sums import ClusterSums
from linkstream.engine.contract import JOINED
from linkstream.engine.fixed_point import dot
from linkstream.engine.forest import FULL, LOCKED, Node, add_edge, mass
from linkstream.engine.graph import Graph
from linkstream.engine.log import Journal
from linkstream.engine.members import Members
from linkstream.engine.placement import Placement
from linkstream.engine.state import Integers


@dataclass(frozen=True, slots=True)
class IncomingSum:
    """The sum of vectors, how many there are, the weight they lack in 256ths, and S·S."""

    total: Integers
    n: int
    missing_weight: int
    square: int


class Absorb:
    """Test sums and put them into the graph."""

    def __init__(
        self,
        graph: Graph,
        journal: Journal,
        members: Members,
        cluster_sums: ClusterSums,
        assess: Assess,
        placement: Placement,
    ) -> None:
        self._graph, self._journal, self._members = graph, journal, members
        self._cluster_sums, self._assess, self._placement = cluster_sums, assess, placement

    def __call__(
        self, total: Integers, missing: Integers, flags: int, *, apart: bool
    ) -> tuple[Node, Verdict]:
        """Add a sum, `apart` as a new cluster; return its subcluster and the verdict."""
        x = IncomingSum(total, len(missing), int(missing.sum()), dot(total, total))
        verdict = Verdict() if apart else self._test(x, locked=bool(flags & LOCKED))
        node = self._put(verdict, x, missing.tolist())
        if flags:
            self._placement.flag(node, flags)
        return node, verdict

    def _test(self, x: IncomingSum, *, locked: bool) -> Verdict:
        """Return the outcome of a sum; a locked subcluster neither joins nor is joined."""
        nearest = self._assess.nearest(x.total, x.square)
        joins = not locked and (nearest is None or not nearest.node.locked)
        return self._assess(nearest, x.total, x.square, mass(x.n, x.missing_weight), joins=joins)

    def _put(self, verdict: Verdict, x: IncomingSum, missing_weights: list[int]) -> Node:
        """Add the vectors to one subcluster, record each, and return the subcluster."""
        journal, first = self._journal, self._journal.n_vectors
        joined = verdict.kind == JOINED
        node = self._join(verdict, x) if joined else self._make(verdict, x)
        for i, missing_weight in enumerate(missing_weights):
            journal.newest = first + i
            if missing_weight:
                journal.record(events.WEIGHED, FULL - missing_weight)
            if i > 0 or joined:
                journal.record(events.JOINED, node.number, node.cluster)
            elif verdict.partner is None:
                journal.record(events.CREATED, node.number, node.cluster)
            else:
                journal.record(events.LINKED, node.number, verdict.partner.number, node.cluster)
        self._members.joined(node.number, x.n)
        journal.n_vectors += x.n
        return node

    def _join(self, verdict: Verdict, x: IncomingSum) -> Node:
        node, first = verdict.partner, self._journal.n_vectors
        assert node is not None, "a subcluster to join"
        self._graph.add_vectors(node, x.n, x.missing_weight, first, first + x.n - 1)
        self._placement.change_sum(node, x.total)
        return node

    def _make(self, verdict: Verdict, x: IncomingSum) -> Node:
        graph, partner, first = self._graph, verdict.partner, self._journal.n_vectors
        if partner is None:
            cluster = graph.open_cluster(self._journal.new_cluster())
        else:
            graph.save(partner)
            cluster = partner.cluster
        number, last = self._journal.new_subcluster(), first + x.n - 1
        node = Node(number, cluster, x.n, x.square, first, last, x.missing_weight)
        graph.add_node(node, x.total)
        self._cluster_sums.add(cluster, x.total, x.square)
        if partner is not None:
            add_edge(node, partner, rule=verdict.rule)
        return node
