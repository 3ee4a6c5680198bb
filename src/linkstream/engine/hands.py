"""A person's side of the reference engine: beyond the paper (docs/identity.md).

The compiled twin is hands.hpp.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.engine import events
from linkstream.engine.contract import JOINED, NEW, Decision, Decisions
from linkstream.engine.fixed_point import dot
from linkstream.engine.forest import (
    CLAIM,
    FULL,
    LAW,
    LOCKED,
    LOOSE,
    Node,
    add_edge,
    mass,
    remove_edge,
)
from linkstream.engine.graph import Graph
from linkstream.engine.kept import share
from linkstream.engine.rollback import whole
from linkstream.errors import ArgumentError


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which outcome, by which similarity and threshold; whom to join or to link to."""

    kind: int
    similarity: float = math.nan
    threshold: float = math.nan
    partner: Node | None = None
    firm: int = LOOSE  # the edge of a link: where whole clusters gave the evidence it is firm


class Hands(Graph):
    """Vectors and whole subclusters put, moved and taken out as somebody says."""

    def _assess(
        self, q: npt.NDArray[np.int64], square: int, k: float = 1.0, *, joins: bool = True
    ) -> Verdict:
        """Which of the three outcomes (section 3.3)."""
        raise NotImplementedError

    def _place(self, verdict: Verdict, q: npt.NDArray[np.int64], light: int, member: int) -> Node:
        """Do what a verdict says with a vector."""
        raise NotImplementedError

    def _change_sum(self, node: Node, added: npt.NDArray[np.int64]) -> None:
        """Add to a subcluster's sum, or take from it."""
        raise NotImplementedError

    def _add_one(
        self, vector: npt.NDArray[np.int32], light: int = 0, verdict: Verdict | None = None
    ) -> tuple[int, int, int, float, float]:
        """Take a new vector."""
        raise NotImplementedError

    @whole
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
            self._save_member(member)
            self._vector_nodes[member] = node.number
        return Decisions.of(member, [(node.cluster, node.number, outcome, math.nan, math.nan)]).at(
            0
        )

    @whole
    def withdraw(
        self, vector: npt.NDArray[np.int32], *, light: int, target: int, member: int
    ) -> None:
        """Take a vector's share out of the subcluster that holds it, exactly."""
        node = self._nodes[target]
        taken = share(vector, light)
        if node.count > 1:
            self._refuse_absent(node, self._table.sum(target) - taken, light)
        self._save(node)
        cluster = self._clusters[node.cluster]
        node.count, cluster.size = node.count - 1, cluster.size - 1
        node.light, cluster.light = node.light - light, cluster.light - light
        if self.track_vectors:
            self._save_member(member)
            self._vector_nodes[member] = -1
        self._record(events.REMOVED, member, target, node.cluster)
        if not node.count:
            self._vanish(node)
        elif taken.any():
            self._change_sum(node, -taken)
            self._update(node)

    def _refuse_absent(self, node: Node, left: npt.NDArray[np.int64], light: int) -> None:
        """Refuse a vector or a weight that is no part of a subcluster: what is left must be one."""
        if not left.any():
            raise _nothing()
        rest, slack = node.count - 1, math.isqrt(len(left))
        if dot(left, left) > (rest * (2**30 + slack)) ** 2:
            raise absent("what is left is no sum of vectors")
        if not 0 <= node.light - light <= FULL * rest:
            raise absent("a weight that is not there")

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
        self._save(node, *map(self._nodes.__getitem__, node.neighbours))
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

    @whole
    def flag(self, number: int, flags: int) -> None:
        """Lock a subcluster, or give it a claim to the ID at a split, or neither."""
        node = self._nodes[number]
        self._save(node)
        self._clusters[node.cluster].claims += bool(flags & CLAIM) - bool(node.flags & CLAIM)
        node.flags = flags
        self._note((events.FLAGGED, number, flags))

    @whole
    def note(self, rows: Iterable[tuple[int, ...]]) -> None:
        """Write events of what is not the engine's to do: code and numbers of each."""
        for code, *numbers in rows:
            self._note((code, *numbers))

    def _note(self, row: tuple[int, ...]) -> None:
        code, *numbers = row
        self._log.append(events.row(code, self._newest, *numbers))

    # Whole subclusters, as another clusterer has them

    @whole
    def receive(
        self,
        total: npt.NDArray[np.int64],
        lights: npt.NDArray[np.int64],
        *,
        rows: npt.NDArray[np.int32] | None = None,
        flags: int = 0,
        apart: bool = False,
    ) -> Decision:
        """Take vectors together, by their sum and by how much less each weighs.

        Under the same tests as one vector, with s~(k, k') for the k' of them (docs/choices.md,
        "Absorbing is arriving together"); or, `apart`, in a cluster of their own.
        """
        first, n, light = self._n_vectors, len(lights), int(lights.sum())
        verdict = Verdict(NEW) if apart else self._assess_all(total, n, light, flags)
        node = self._put_all(verdict, total, n, light)
        for place, weighs_less in enumerate(lights.tolist()):
            self._newest = first + place
            if weighs_less:
                self._record(events.WEIGHED, FULL - weighs_less)
            self._arrive_with(verdict, node, alone=place == 0)
        if self.track_vectors:
            self._vector_nodes.extend([node.number] * n)
        if self._keep is not None and rows is not None:
            self._keep.append(rows)
        self._n_vectors += n
        if flags:
            self.flag(node.number, flags)
        if verdict.kind == JOINED:
            node = self._update(node)
        figures = verdict.similarity, verdict.threshold
        return Decisions.of(first, [(node.cluster, node.number, verdict.kind, *figures)]).at(0)

    @whole
    def receive_all(
        self,
        totals: npt.NDArray[np.int64],
        sizes: npt.NDArray[np.int64],
        lights: npt.NDArray[np.int64],
    ) -> Decisions:
        """The same as `receive` for each total, one after the other; vectors are not kept."""
        parts = np.split(lights, np.cumsum(sizes)[:-1])
        taken = [self.receive(total, part) for total, part in zip(totals, parts, strict=True)]
        return Decisions.joined([each.as_batch() for each in taken])

    def _assess_all(self, total: npt.NDArray[np.int64], n: int, light: int, flags: int) -> Verdict:
        """What the tests say; a locked subcluster neither joins nor is joined."""
        square, k = dot(total, total), mass(n, light)
        verdict = self._assess(total, square, k, joins=not flags & LOCKED)
        if verdict.kind == JOINED and verdict.partner is not None and verdict.partner.locked:
            return self._assess(total, square, k, joins=False)
        return verdict

    def _put_all(self, verdict: Verdict, total: npt.NDArray[np.int64], n: int, light: int) -> Node:
        """Have a subcluster hold them."""
        first, last, partner = self._n_vectors, self._n_vectors + n - 1, verdict.partner
        if partner is not None:
            self._save(partner)
        if partner is not None and verdict.kind == JOINED:
            partner.count, partner.light = partner.count + n, partner.light + light
            partner.first_seen = min(partner.first_seen, first)
            partner.last_seen = max(partner.last_seen, last)
            self._clusters[partner.cluster].size += n
            self._clusters[partner.cluster].light += light
            self._change_sum(partner, total)
            return partner
        cluster = self._new_cluster() if partner is None else partner.cluster
        node = self._new_node(cluster, total, light, first)
        node.count, node.last_seen = n, last
        self._clusters[cluster].size += n - 1
        if partner is not None:
            add_edge(node, partner, firm=verdict.firm)
        return node

    def _arrive_with(self, verdict: Verdict, node: Node, *, alone: bool) -> None:
        """Record where one of them came to; the first makes the place, the others follow."""
        if not alone or verdict.kind == JOINED:
            self._record(events.JOINED, node.number, node.cluster)
        elif verdict.partner is None:
            self._record(events.CREATED, node.number, node.cluster)
        else:
            self._record(events.LINKED, node.number, verdict.partner.number, node.cluster)


def absent(seen: str) -> ArgumentError:
    """The error for a vector to take out that is no part of the subcluster."""
    return ArgumentError(
        seen,
        expected="a vector that the subcluster holds, with the weight it came with",
        remedy="Pass the very vector that was added, and its weight.",
    )


def _nothing() -> ArgumentError:
    return ArgumentError(
        "a subcluster whose vectors would sum to nothing",
        expected="a centroid with a direction",
        remedy="Put the vector elsewhere, or remove the others first.",
    )
