"""The reference engine: sections 3.2–3.5 of the paper in plain Python, the living definition.

Read it with the paper open. Every decision is made on exact integers (fixed_point.py); the only
floating-point search is `_near`, which proposes candidates with a proven error bound and leaves
the decision to the exact similarity. Where the paper is silent, docs/choices.md says what was
chosen and why. The compiled engine follows this file paragraph by paragraph.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from linkstream.engine import events
from linkstream.engine.contract import JOINED, LINKED, NEW, Candidate, Decisions, Keep, Stop
from linkstream.engine.fixed_point import dot
from linkstream.engine.forest import (
    FIRM,
    FULL,
    LOOSE,
    Node,
    Whole,
    add_edge,
)
from linkstream.engine.hands import Hands, Verdict
from linkstream.engine.kept import share
from linkstream.engine.log import EventLog
from linkstream.engine.rollback import whole
from linkstream.engine.state import State
from linkstream.engine.wholes import Wholes


@dataclass(frozen=True, slots=True)
class Nearest:
    """J, the most similar subcluster, and x·μ_J (equation 19)."""

    node: Node
    similarity: float


class ReferenceEngine(Hands):
    """Links on one core in plain Python; see `contract.Engine`."""

    name: ClassVar[str] = "reference"

    @whole
    def add(self, vectors: npt.NDArray[np.int32], stop: Stop | None = None) -> Decisions:
        """Take vectors in order of arrival, until `stop` says so."""
        first = self._n_vectors
        taken: list[tuple[int, int, int, float, float]] = []
        for vector in vectors:
            if stop is not None and taken and stop():
                break
            taken.append(self._add_one(vector))
        return Decisions.of(first, taken)

    def add_floats(self, rows: npt.NDArray[np.float32], stop: Stop | None = None) -> None:
        """Nothing: this engine takes fixed-point vectors only."""

    def add_one(self, x: object) -> None:
        """Nothing: this engine takes fixed-point vectors only."""

    def ask(self, vectors: npt.NDArray[np.int32]) -> Decisions:
        """What equations 20 and 21 say of each vector; nothing changes."""
        answers = [self._ask_one(vector) for vector in vectors.astype(np.int64)]
        return Decisions.of(self._n_vectors, answers)

    # Section 3.3: assessing cluster membership

    def _add_one(
        self, vector: npt.NDArray[np.int32], light: int = 0, verdict: Verdict | None = None
    ) -> tuple[int, int, int, float, float]:
        self._newest = self._n_vectors
        q = vector.astype(np.int64)
        verdict = verdict or self._assess(q, dot(q, q))
        node = self._place(verdict, q, light, self._n_vectors)
        if self.track_vectors:
            self._vector_nodes.append(node.number)
        if self._keep is not None:
            self._keep.append(vector[np.newaxis])
        self._n_vectors += 1
        return node.cluster, node.number, verdict.kind, verdict.similarity, verdict.threshold

    def _place(self, verdict: Verdict, q: npt.NDArray[np.int64], light: int, member: int) -> Node:
        """Do what the verdict says with a vector; the node that holds it then."""
        if verdict.partner is None:
            return self._create(q, light, member)
        if verdict.kind == LINKED:
            return self._link(verdict, q, light, member)
        self._join(verdict.partner, q, light, member)
        return verdict.partner if verdict.partner.locked else self._update(verdict.partner)

    def _nearest(self, q: npt.NDArray[np.int64], square: int) -> Nearest | None:
        """J = argmax x·μ_j (eq 19); None where no similarity reaches the lowest threshold."""
        best: Nearest | None = None
        lowest = self.thresholds.lowest
        for node, score in self._exact(self._table.near(q, at_least=lowest), q, square):
            if score < lowest:
                continue
            # Tie: the older subcluster (choices.md, "ties go to the older").
            if best is None or (score, -node.number) > (best.similarity, -best.node.number):
                best = Nearest(node, score)
        return best

    def _assess(
        self, q: npt.NDArray[np.int64], square: int, k: float = 1.0, *, joins: bool = True
    ) -> Verdict:
        """Which of the three outcomes, and what it was judged by; of a vector, or of k together."""
        nearest = self._nearest(q, square)
        t_s = self.thresholds.subcluster_similarity
        if nearest is not None and nearest.similarity >= t_s and joins:  # equation 20
            return Verdict(JOINED, nearest.similarity, t_s, nearest.node)
        if self._wholes is not None:
            return self._assess_wholes(self._wholes, q, square, nearest, k)
        if nearest is None:
            return Verdict(NEW)
        threshold = self.thresholds.edge(nearest.node.mass, k)  # s~(k_J), equation 25
        if nearest.similarity >= threshold:  # equation 21
            return Verdict(LINKED, nearest.similarity, threshold, nearest.node)
        return Verdict(NEW, nearest.similarity, threshold)

    def _assess_wholes(
        self,
        wholes: Wholes,
        q: npt.NDArray[np.int64],
        square: int,
        nearest: Nearest | None,
        k: float,
    ) -> Verdict:
        """Equation 21 with each whole cluster in J's place (choices.md, "cluster evidence")."""
        best: tuple[float, int, float, float] | None = None
        for cluster, score in wholes.reaching(q, square, at_least=self.thresholds.edge(1, 1)):
            threshold = self.thresholds.edge(self._clusters[cluster].mass, k)
            found = (score - threshold, -cluster, score, threshold)  # tie: the lower ID
            best = found if best is None else max(best, found)
        if best is None:
            return Verdict(NEW)
        margin, cluster, score, threshold = best[0], -best[1], best[2], best[3]
        if margin < 0:
            return Verdict(NEW, score, threshold)
        if nearest is not None and nearest.node.cluster == cluster:
            return Verdict(LINKED, score, threshold, nearest.node, FIRM)
        oldest = min(node.number for node in self._nodes.values() if node.cluster == cluster)
        return Verdict(LINKED, score, threshold, self._nodes[oldest], FIRM)

    def _ask_one(self, q: npt.NDArray[np.int64]) -> tuple[int, int, int, float, float]:
        verdict = self._assess(q, dot(q, q))
        cluster = verdict.partner.cluster if verdict.partner else -1
        number = verdict.partner.number if verdict.partner and verdict.kind == JOINED else -1
        return cluster, number, verdict.kind, verdict.similarity, verdict.threshold

    def _join(self, node: Node, q: npt.NDArray[np.int64], light: int, member: int) -> None:
        """Add x to subcluster J; ‖S+q‖² = ‖S‖² + 2 q·S + ‖q‖² exactly. A locked one only counts."""
        light = FULL if node.locked else light
        self._save(node)
        self._arrive(events.JOINED, member, node.number, -1, node.cluster)
        node.count += 1
        node.light += light
        node.first_seen = min(node.first_seen, member)
        node.last_seen = max(node.last_seen, member)
        self._clusters[node.cluster].size += 1
        self._clusters[node.cluster].light += light
        self._change_sum(node, share(q, light))

    def _change_sum(self, node: Node, added: npt.NDArray[np.int64]) -> None:
        total, square = self._table.sum(node.number), dot(added, added)
        node.square += 2 * dot(added, total) + square
        self._table.set(node.number, total + added, node.square)
        if self._wholes:
            self._wholes.add(node.cluster, added, square)

    def _link(self, verdict: Verdict, q: npt.NDArray[np.int64], light: int, member: int) -> Node:
        """Start a subcluster containing just x, with an edge to J."""
        assert verdict.partner is not None
        self._save(verdict.partner)
        node = self._new_node(verdict.partner.cluster, share(q, light), light, member)
        add_edge(node, verdict.partner, firm=verdict.firm)
        self._arrive(events.LINKED, member, node.number, verdict.partner.number, node.cluster)
        return node

    def _create(self, q: npt.NDArray[np.int64], light: int, member: int) -> Node:
        """Start a subcluster containing just x, in a cluster of its own."""
        node = self._new_node(self._new_cluster(), share(q, light), light, member)
        self._arrive(events.CREATED, member, node.number, -1, node.cluster)
        return node

    def _arrive(self, code: int, member: int, number: int, partner: int, cluster: int) -> None:
        """Record where a vector came to: a new one, or one that was moved."""
        if member < self._n_vectors:
            self._record(events.MOVED, member, number, partner, cluster)
        elif code == events.LINKED:
            self._record(code, number, partner, cluster)
        else:
            self._record(code, number, cluster)

    # Answers and exchange

    def ranked(self, vector: npt.NDArray[np.int32], limit: int) -> list[Candidate]:
        """The most similar subclusters, best first (tie: the older)."""
        q = vector.astype(np.int64)
        found = self._exact(self._table.top(q, limit), q, dot(q, q))
        found.sort(key=lambda pair: (-pair[1], pair[0].number))
        return [
            Candidate(
                subcluster=node.number,
                cluster=node.cluster,
                count=node.count,
                similarity=score,
                join_threshold=self.thresholds.subcluster_similarity,
                link_threshold=self.thresholds.edge(node.mass, 1),
            )
            for node, score in found[:limit]
        ]

    def holder(self, member: int) -> int:
        """The subcluster that holds a vector; −1 if it was removed."""
        number = self._vector_nodes[member]
        while number in self._survivor:
            number = self._survivor[number]
        return number if number in self._nodes else -1

    def cluster_of(self, number: int) -> int:
        """The cluster of a subcluster; −1 if that is no more."""
        return self._nodes[number].cluster if number in self._nodes else -1

    def has_cluster(self, cluster: int) -> bool:
        """Whether a cluster is there."""
        return cluster in self._clusters

    def total_of(self, number: int) -> tuple[int, npt.NDArray[np.int64]]:
        """How many vectors a subcluster holds, and their sum."""
        if number not in self._nodes:
            return 0, np.zeros(self.dimension, dtype=np.int64)
        return self._nodes[number].count, self._table.sum(number).copy()

    def oldest_event(self) -> int:
        """The sequence number from which on events are kept."""
        return self._log.oldest

    def labels(self) -> npt.NDArray[np.int64]:
        """Current cluster of each vector, in order of arrival."""
        nodes = self._nodes
        clusters = [nodes[n].cluster if n >= 0 else -1 for n in self._live_nodes()]
        return np.array(clusters, dtype=np.int64)

    def _live_nodes(self) -> list[int]:
        """Subcluster that now holds each vector; shortens the chains of merges as it goes."""
        live = []
        for place, number in enumerate(self._vector_nodes):
            while number in self._survivor:
                number = self._survivor[number]
            if not self.in_change:  # which may be taken back
                self._vector_nodes[place] = number
            live.append(number)
        return live

    def event_rows(self, since: int) -> tuple[int, npt.NDArray[np.int64]]:
        """Events kept from sequence `since` on."""
        return self._log.since(since)

    def state(self) -> State:
        """All there is to know, as plain arrays."""
        nodes = [self._nodes[number] for number in sorted(self._nodes)]
        edges = [(a.number, b) for a in nodes for b in sorted(a.neighbours) if a.number < b]
        numbers = [node.number for node in nodes]
        return State(
            thresholds=self.thresholds,
            dimension=self.dimension,
            track_vectors=self.track_vectors,
            cluster_evidence=self.cluster_evidence,
            n_vectors=self._n_vectors,
            n_events=self._log.n_events,
            next_subcluster=self._next_subcluster,
            next_cluster=self._next_cluster,
            free_subcluster=self._free_subcluster,
            free_cluster=self._free_cluster,
            numbers=_column(numbers),
            clusters=_column(node.cluster for node in nodes),
            counts=_column(node.count for node in nodes),
            first_seen=_column(node.first_seen for node in nodes),
            last_seen=_column(node.last_seen for node in nodes),
            light=_column(node.light for node in nodes),
            flags=_column(node.flags for node in nodes),
            sums=self._table.sums(numbers),
            edges=np.array(edges, dtype=np.int64).reshape(-1, 2),
            firm=_column(self._nodes[a].firm.get(b, LOOSE) for a, b in edges),
            vectors=_column(self._live_nodes()),
            events=self._log.rows(),
        )

    @classmethod
    def from_state(cls, state: State, keep: Keep | None = None) -> ReferenceEngine:
        """An engine that goes on from a state."""
        engine = cls(
            state.thresholds,
            state.dimension,
            track_vectors=state.track_vectors,
            cluster_evidence=state.cluster_evidence,
            keep=keep,
        )
        engine._n_vectors = state.n_vectors
        engine._newest = max(state.n_vectors - 1, 0)
        engine._next_subcluster, engine._next_cluster = state.next_subcluster, state.next_cluster
        engine._free_subcluster, engine._free_cluster = state.free_subcluster, state.free_cluster
        engine._vector_nodes = state.vectors.tolist()
        engine._log = EventLog.keeping(state.track_vectors, state.n_events, state.events)
        columns = [state.numbers, state.clusters, state.counts, state.first_seen, state.last_seen]
        columns += [state.light, state.flags]
        for place, values in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
            number, cluster, count, *rest = values
            total = state.sums[place]
            node = Node(number, cluster, count, dot(total, total), *rest)
            engine._nodes[number] = node
            engine._table.set(number, total, node.square)
            engine._clusters.setdefault(cluster, Whole()).take(node)
            if engine._wholes:
                engine._wholes.add(cluster, total, node.square)
        for (a, b), firm in zip(state.edges.tolist(), state.firm.tolist(), strict=True):
            add_edge(engine._nodes[a], engine._nodes[b], firm=firm)
        return engine


def _column(values: Iterable[int]) -> npt.NDArray[np.int64]:
    return np.array(list(values), dtype=np.int64)
