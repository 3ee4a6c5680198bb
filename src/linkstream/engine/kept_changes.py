"""The newest changes of the reference engine, so that they can be taken back.

C++ twin: `Record` of engine.hpp and of its parts.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from linkstream.engine.cluster_sums import ClusterSums
from linkstream.engine.graph import Before, Graph
from linkstream.engine.log import Journal
from linkstream.engine.members import Members, Record

_MOST = 200  # changes


@dataclass(frozen=True, slots=True)
class Kept:
    """What takes a committed change back, and the number of stored vectors before it."""

    graph: Before
    members: Record
    counters: list[int]
    stored: int


class KeptChanges:
    """The newest changes, oldest first."""

    def __init__(
        self, graph: Graph, members: Members, journal: Journal, cluster_sums: ClusterSums
    ) -> None:
        self._graph, self._members, self._journal = graph, members, journal
        self._cluster_sums = cluster_sums
        self._all = deque[Kept](maxlen=_MOST)

    def __len__(self) -> int:
        return len(self._all)

    def ends(self, *, keep: bool, stored: int) -> None:
        """Keep the open change, which is about to be committed, or end all that were kept.

        A change without events does neither.
        """
        if not self._journal.has_events:
            return
        if keep:
            parts = self._graph.record(), self._members.record(), self._journal.before
            self._all.append(Kept(*parts, stored))
        else:
            self._all.clear()
        self._members.keeps_chains = keep

    def take_back(self, n: int) -> int:
        """Take back the newest n changes; return the number of stored vectors before them.

        No node is due then.
        """
        first = self._all[-n]
        for _ in range(n):
            last = self._all.pop()
            self._graph.take_back(last.graph)
            self._members.take_back(last.members)
            self._journal.take_back(last.counters)
        self._cluster_sums.read()
        self._graph.forget_due()
        self._members.keeps_chains = bool(self._all)
        self._journal.newest = max(self._journal.n_vectors - 1, 0)
        return first.stored
