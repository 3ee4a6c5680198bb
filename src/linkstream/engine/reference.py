"""The reference engine: sections 3.2–3.5 of the paper in plain Python, the living definition.

Read it with the paper open. Every decision is made on exact integers (fixed_point.py); the only
floating-point search is `_near`, which proposes candidates with a proven error bound and leaves
the decision to the exact similarity. Where the paper is silent, docs/choices.md says what was
chosen and why. The compiled engine follows this file paragraph by paragraph.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from linkstream.engine import events
from linkstream.engine.contract import JOINED, LINKED, NEW, Candidate, Decision, Decisions, Keep
from linkstream.engine.fixed_point import dot
from linkstream.engine.forest import (
    CLAIM,
    FIRM,
    FULL,
    LAW,
    LOOSE,
    Node,
    Whole,
    add_edge,
    remove_edge,
)
from linkstream.engine.graph import Graph
from linkstream.engine.kept import share
from linkstream.engine.log import EventLog
from linkstream.engine.state import State
from linkstream.engine.wholes import Wholes
from linkstream.errors import ArgumentError


@dataclass(frozen=True, slots=True)
class Nearest:
    """J, the most similar subcluster, and x·μ_J (equation 19)."""

    node: Node
    similarity: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which outcome, by which similarity and threshold; whom to join or to link to."""

    kind: int
    similarity: float = math.nan
    threshold: float = math.nan
    partner: Node | None = None
    firm: int = LOOSE  # the edge of a link: where whole clusters gave the evidence it is firm


class ReferenceEngine(Graph):
    """Links on one core in plain Python; see `contract.Engine`."""

    name: ClassVar[str] = "reference"

    def add(self, vectors: npt.NDArray[np.int32]) -> Decisions:
        """Take vectors in order of arrival."""
        first = self._n_vectors
        return Decisions.of(first, [self._add_one(vector) for vector in vectors])

    def add_floats(self, rows: npt.NDArray[np.float32]) -> None:
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

    def _assess(self, q: npt.NDArray[np.int64], square: int) -> Verdict:
        """Which of the three outcomes, and what it was judged by."""
        nearest = self._nearest(q, square)
        t_s = self.thresholds.subcluster_similarity
        if nearest is not None and nearest.similarity >= t_s:  # equation 20
            return Verdict(JOINED, nearest.similarity, t_s, nearest.node)
        if self._wholes is not None:
            return self._assess_wholes(self._wholes, q, square, nearest)
        if nearest is None:
            return Verdict(NEW)
        threshold = self.thresholds.edge(nearest.node.mass, 1)  # s~(k_J), equation 25
        if nearest.similarity >= threshold:  # equation 21
            return Verdict(LINKED, nearest.similarity, threshold, nearest.node)
        return Verdict(NEW, nearest.similarity, threshold)

    def _assess_wholes(
        self, wholes: Wholes, q: npt.NDArray[np.int64], square: int, nearest: Nearest | None
    ) -> Verdict:
        """Equation 21 with each whole cluster in J's place (choices.md, "cluster evidence")."""
        best: tuple[float, int, float, float] | None = None
        for cluster, score in wholes.reaching(q, square, at_least=self.thresholds.edge(1, 1)):
            threshold = self.thresholds.edge(self._clusters[cluster].mass, 1)
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

    # Beyond the paper: a person's side (docs/identity.md)

    def take(
        self,
        vector: npt.NDArray[np.int32],
        *,
        light: int = 0,
        outcome: int = -1,
        target: int = -1,
        member: int = -1,
        firm: int = LOOSE,
    ) -> Decision:
        """Take one vector of less weight, or with an outcome that is given; or put an old one."""
        verdict = None
        if outcome >= 0:
            verdict = Verdict(outcome, partner=self._nodes.get(target), firm=firm)
            self._refuse_nothing(verdict, share(vector, light))
        if member < 0:
            if light:
                self._newest = self._n_vectors
                self._record(events.WEIGHED, FULL - light)
            first = self._n_vectors
            return Decisions.of(first, [self._add_one(vector, light, verdict)]).at(0)
        assert verdict is not None
        node = self._place(verdict, vector.astype(np.int64), light, member)
        if self.track_vectors:
            self._vector_nodes[member] = node.number
        return Decisions.of(member, [(node.cluster, node.number, outcome, math.nan, math.nan)]).at(
            0
        )

    def withdraw(
        self, vector: npt.NDArray[np.int32], *, light: int, target: int, member: int
    ) -> None:
        """Take a vector's share out of the subcluster that holds it, exactly."""
        node = self._nodes[target]
        taken = share(vector, light)
        if node.count > 1 and not (self._table.sum(target) - taken).any():
            raise _nothing()
        whole = self._clusters[node.cluster]
        node.count, whole.size = node.count - 1, whole.size - 1
        node.light, whole.light = node.light - light, whole.light - light
        if self.track_vectors:
            self._vector_nodes[member] = -1
        self._record(events.REMOVED, member, target, node.cluster)
        if not node.count:
            self._vanish(node)
        elif taken.any():
            self._change_sum(node, -taken)
            self._update(node)

    def _refuse_nothing(self, verdict: Verdict, added: npt.NDArray[np.int64]) -> None:
        """A centroid must have a direction: refuse what would cancel out."""
        partner = verdict.partner if verdict.kind == JOINED else None
        if partner is not None:
            added = self._table.sum(partner.number) + (0 if partner.locked else added)
        if not added.any():
            raise _nothing()

    def _vanish(self, node: Node) -> None:
        """An empty subcluster goes; its edges become those of its heir.

        That is a neighbour by likeness, if there is one, not by law; the largest, then the oldest.
        """
        heir = max(
            (self._nodes[number] for number in node.neighbours),
            key=lambda other: (node.firm.get(other.number) != LAW, other.count, -other.number),
            default=None,
        )
        for number in list(node.neighbours):
            firm = remove_edge(node, self._nodes[number])
            if heir is not None and number != heir.number:
                add_edge(heir, self._nodes[number], firm=firm)
        if self._wholes and heir is not None:
            self._wholes.add(node.cluster, -self._table.sum(node.number), node.square)
        self._clusters[node.cluster].take(node, -1)
        self._table.remove(node.number)
        del self._nodes[node.number]
        self._record(events.VANISHED, node.number, heir.number if heir else -1, node.cluster)
        if heir is not None:
            self._update(heir)
            return
        del self._clusters[node.cluster]
        if self._wholes:
            self._wholes.remove(node.cluster)

    def flag(self, number: int, flags: int) -> None:
        """Lock a subcluster, or give it a claim to the ID at a split, or neither."""
        node = self._nodes[number]
        self._clusters[node.cluster].claims += bool(flags & CLAIM) - bool(node.flags & CLAIM)
        node.flags = flags
        self._note((events.FLAGGED, number, flags))

    def note(self, rows: Iterable[tuple[int, ...]]) -> None:
        """Write events of what is not the engine's to do: code and numbers of each."""
        for code, *numbers in rows:
            self._note((code, *numbers))

    def _note(self, row: tuple[int, ...]) -> None:
        code, *numbers = row
        self._log.append(events.row(code, self._newest, *numbers))

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
        for place, number in enumerate(self._vector_nodes):
            while number in self._survivor:
                number = self._survivor[number]
            self._vector_nodes[place] = number
        return self._vector_nodes

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


def _nothing() -> ArgumentError:
    return ArgumentError(
        "a subcluster whose vectors would sum to nothing",
        expected="a centroid with a direction",
        remedy="Put the vector elsewhere, or remove the others first.",
    )


def _column(values: Iterable[int]) -> npt.NDArray[np.int64]:
    return np.array(list(values), dtype=np.int64)
