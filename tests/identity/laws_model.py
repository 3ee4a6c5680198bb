"""Corrections on the naive graph: pins, constraints, groups, IDs and their enforcement.

Where a pin stands, who is barred from whom and which way leads through a tree is worked out
again each time.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from identity.graph_model import PINNED, SETTLED, TESTED, GraphModel, pair
from linkstream.paper.algorithm import cosine
from linkstream.paper.thresholds import anisotropic_pair_threshold


class RefusedError(Exception):
    """The verb must raise the error of this name and change nothing."""


class Pin(NamedTuple):
    """A vector, or a node as a whole."""

    node: int
    vector: int | None


LIFTED = -2  # stands for a node that vectors would be taken out into; the next for it less 1
ENROLLED, VECTORS, SUBCLUSTERS, CLUSTERS = range(-1, 3)  # what people spoke of


class Law(NamedTuple):
    together: bool
    a: tuple[Pin, ...]
    b: tuple[Pin, ...]
    level: int
    sequence: int
    mover: int | None = None


class Plan(NamedTuple):
    """Vectors that must leave, and corrections that must be retracted."""

    leaving: tuple[tuple[int, ...], ...] = ()
    retracted: tuple[tuple[int, int], ...] = ()

    def everyone(self):
        return [vector for group in self.leaving for vector in group]


class LawsModel(GraphModel):
    def __init__(self, t_c, t_s, t_p, *, max_subclusters=None, max_idle=None, **options):
        super().__init__(t_c, t_s, t_p, **options)
        self.max_subclusters, self.max_idle = max_subclusters, max_idle
        self.laws = []
        self.groups = []  # lists of vectors
        self.keys = {}  # key → place in groups
        self.names = {}
        self.ignored = set()
        self.aliases = {}

    # What people said.

    def place_of(self, pin, lifted=()):
        """Return the node of a pin, None if dropped. `lifted`: groups that are taken out."""
        if pin.vector is not None:
            taken = [LIFTED - i for i, group in enumerate(lifted) if pin.vector in group]
            return taken[0] if taken else self.node_of(pin.vector)
        node = pin.node
        while node in self.became:
            node = self.became[node]
        return node

    def places(self, pins, lifted=()):
        found = [self.place_of(pin, lifted) for pin in pins]
        return [node for node in found if node is not None]

    def pairs(self, together, lifted=()):
        """Return pairs of nodes that corrections join or separate, in both orders."""
        found = set()
        for law in self.laws:
            if law.together == together:
                sides = self.places(law.a, lifted), self.places(law.b, lifted)
                found |= set(itertools.product(*sides))
        return sorted(found | {(b, a) for a, b in found})

    def barred_pairs(self, lifted=()):
        """Return pairs of nodes that must not share a cluster, in both orders."""
        found = set(self.pairs(False, lifted))
        for group in self.groups:
            there = self.places([Pin(-1, vector) for vector in group], lifted)
            found |= set(itertools.permutations(there, 2))
        return found

    def bloc(self, node, lifted=()):
        """Return the nodes that corrections connect with a node."""
        bonds = self.pairs(True, lifted)
        found, frontier = {node}, [node]
        while frontier:
            here = frontier.pop()
            new = {b for a, b in bonds if a == here} - found
            found |= new
            frontier += new
        return found

    def clash(self, ones, others, lifted=()):
        """Return the first pair of nodes, one of each side, that must stay apart."""
        barred = self.barred_pairs(lifted)
        return min((p for p in itertools.product(ones, others) if p in barred), default=None)

    # What follows from people's word alone, whoever shares a node by likeness.

    def standing(self, pins):
        return [
            pin._replace(node=self.place_of(pin)) for pin in pins if self.place_of(pin) is not None
        ]

    def words(self, together, level):
        """Return the laws of one level; moves have no level."""
        levels = (level, ENROLLED) if level == VECTORS else (level,)
        return [
            law
            for law in self.laws
            if law.together == together and law.mover is None and law.level in levels
        ]

    def closure(self, pin, level):
        """Return all pins connected by `same`, nearest first."""
        found = [pin]
        for here in found:
            for law in self.words(True, level):
                for ours, theirs in ((law.a, law.b), (law.b, law.a)):
                    if any(speaks(one, here) for one in self.standing(ours)):
                        found += [new for new in self.standing(theirs) if new not in found]
        return found

    def said_apart(self, one, other, level):
        """Return whether the corrections imply that two pins are different."""
        apart = [(law.a, law.b) for law in self.words(False, level)]
        for group in self.groups:
            apart += itertools.combinations([(Pin(-1, vector),) for vector in group], 2)
        ours, theirs = self.closure(one, level), self.closure(other, level)
        for a, b in itertools.chain(apart, [(b, a) for a, b in apart]):
            left = any(speaks(x, pin) for x in self.standing(a) for pin in ours)
            if left and any(speaks(y, pin) for y in self.standing(b) for pin in theirs):
                return True
        return False

    # What gives way to a correction.

    def retract_words(self, correction, node=-1):
        """Retract a correction, or only its part about one node."""
        if node < 0:
            self.laws = [law for law in self.laws if law.sequence != correction]
            return
        for place, law in enumerate(self.laws):
            if law.sequence == correction:
                left = [
                    tuple(pin for pin in side if self.place_of(pin) != node)
                    for side in (law.a, law.b)
                ]
                self.laws[place] = law._replace(a=left[0], b=left[1])

    def without(self, plan):
        """Return a copy without the corrections that a plan retracts."""
        twin = self.copy()
        for correction, node in plan.retracted:
            twin.retract_words(correction, node)
        return twin

    def end_of(self, pin, plan):
        return self.place_of(pin, plan.leaving) if pin.vector is not None else pin.node

    def to_unite(self, one, other, level):
        """Yield plans that allow two pins to be joined; the first possible one is used."""
        if self.clash(self.bloc(one.node), self.bloc(other.node)) is None:
            return [Plan()]
        if level != VECTORS:
            return [self.to_unite_wholes(one, other, level)]
        plans = [Plan(((other.vector,),)), Plan(((one.vector,),))]
        if one.node != other.node:
            plans.append(Plan(((one.vector, other.vector),)))
        ours, theirs = self.family(one), self.family(other)
        both = sorted({*ours, *theirs}) if ours and theirs else ()
        plans += [self.with_moves(group) for group in (theirs, ours, both) if group]
        good = []
        for plan in plans:
            if self.can_leave(plan.everyone()):
                twin = self.without(plan)
                blocs = [twin.bloc(self.end_of(pin, plan), plan.leaving) for pin in (one, other)]
                if twin.clash(*blocs, plan.leaving) is None:
                    good.append(plan)
        return good

    def to_unite_clusters(self, one, other, clusters):
        """Yield plans to join two clusters; exceptions for all of both, then only for the two."""
        if self.clash(*clusters) is None:
            yield Plan()
            return
        for around in (clusters, ((), ())):
            yield self.to_unite_wholes(one, other, CLUSTERS, around)

    def to_unite_wholes(self, one, other, level, around=((), ())):
        """Collect exceptions for everything that separates two nodes, or all nodes `around`."""
        plan = more = Plan()
        tied = self.bloc(one.node) | self.bloc(other.node)
        while more is not None:
            plan, more = more, None
            twin, lifted = self.without(plan), plan.leaving
            blocs = twin.bloc(one.node, lifted), twin.bloc(other.node, lifted)
            sides = [{*bloc, *nodes} for bloc, nodes in zip(blocs, around, strict=True)]
            barred = twin.barred_pairs(lifted)
            for both in sorted(p for p in itertools.product(*sides) if p in barred):
                try:
                    more = twin.with_exception(plan, both, level, tied)
                    break
                except RefusedError:
                    if both[0] in blocs[0] and both[1] in blocs[1]:
                        raise
        return plan

    def can_all_leave(self, vectors, tied):
        """Return whether vectors can leave, and no tied node is then empty."""
        staying = [vector for vector in vectors if self.node_of(vector) in tied]
        return self.can_leave(vectors) and self.can_leave(staying, leaves_others=True)

    def with_exception(self, plan, barred, level, tied):
        laws = [law for law in self.laws if not law.together]
        laws = [law for law in laws if barred in self.pairs_of(law, plan.leaving)]
        if laws and laws[0].level == CLUSTERS and level == SUBCLUSTERS:
            return plan._replace(retracted=(*plan.retracted, (laws[0].sequence, barred[1])))
        if laws and laws[0].level == VECTORS and level == CLUSTERS:
            if laws[0].mover is not None:
                return plan._replace(retracted=(*plan.retracted, (laws[0].sequence, -1)))
            for node in reversed(barred):
                for pin in laws[0].a + laws[0].b:
                    group = self.family(pin)
                    if self.place_of(pin, plan.leaving) == node and group:
                        more = Plan((*plan.leaving, tuple(group)))
                        if self.can_all_leave(more.everyone(), tied):
                            moves = plan.retracted + self.with_moves(group).retracted
                            return more._replace(retracted=moves)
        raise RefusedError("ContradictionError")

    def to_part(self, one, other, level):
        """Yield plans that separate two pins: the second leaves, else the first."""
        if other.node not in self.bloc(one.node):
            return [Plan()]
        if level != VECTORS:
            return [self.to_part_wholes(one.node, other.node)]
        alone = [Plan(((pin.vector,),)) for pin in (other, one)]
        families = sorted((self.family(pin) for pin in (other, one)), key=len)
        plans = [*alone, *(self.with_moves(plan.leaving[0]) for plan in alone)]
        good = []
        for plan in [*plans, *(self.with_moves(group) for group in families if group)]:
            if self.can_leave(plan.everyone()):
                ends = [self.end_of(pin, plan) for pin in (one, other)]
                if ends[1] not in self.without(plan).bloc(ends[0], plan.leaving):
                    good.append(plan)
        return good

    def to_part_wholes(self, one, other):
        """Retract joins of clusters on the shortest path between two nodes, newest first."""
        plan = Plan()
        while (chain := self.without(plan).chain(one, other)) is not None:
            ties = [law.sequence for law in chain if law.level == CLUSTERS]
            if not ties:
                raise RefusedError("ContradictionError")
            plan = plan._replace(retracted=(*plan.retracted, (max(ties), -1)))
        return plan

    def chain(self, a, b):
        """Return the laws of the first shortest path between nodes; None if there is no path."""
        ways, frontier = {a: []}, [a]
        for here in frontier:
            for law in [law for law in self.laws if law.together]:
                for x, y in self.pairs_of(law):
                    if x == here and y not in ways:
                        ways[y] = [*ways[here], law]
                        frontier.append(y)
        return ways.get(b)

    def pairs_of(self, law, lifted=()):
        """Return the pairs of nodes of one law, in both orders."""
        sides = self.places(law.a, lifted), self.places(law.b, lifted)
        found = list(itertools.product(*sides))
        return found + [(b, a) for a, b in found]

    def family(self, pin):
        """Return the vectors declared the same as one; none if one is a prototype."""
        found = {other.vector for other in self.closure(pin, VECTORS)}
        enrolled = [law for law in self.laws if law.level == ENROLLED]
        prototypes = {pin.vector for law in enrolled for pin in law.a + law.b}
        return () if found & prototypes else tuple(sorted(found))

    def with_moves(self, group):
        """Let a group leave and retract the moves of its vectors."""
        moves = {(law.sequence, -1) for law in self.laws if law.mover in group}
        return Plan((tuple(group),), tuple(sorted(moves)))

    def can_leave(self, vectors, leaves_others=False):
        """Return whether these vectors can be removed from their nodes one by one."""
        if None in vectors:
            return False
        for place, vector in enumerate(vectors):
            held = self.members[self.node_of(vector)]
            rest = [self.share(i) for i in held if i not in vectors[: place + 1]]
            if (rest and not sum(rest).any()) or (leaves_others and set(held) <= set(vectors)):
                return False
        return True

    def hollow_without(self, vector):
        """Return whether the rest of a node would have vectors but no direction."""
        rest = [self.share(i) for i in self.members[self.node_of(vector)] if i != vector]
        return bool(rest) and not sum(rest).any()

    # IDs.

    def resolve(self, cluster):
        while cluster in self.aliases:
            cluster = self.aliases[cluster]
        return cluster if cluster in self.live() else -1  # one that an undo took back is gone

    def leave(self, gone, heir):
        self.aliases[gone] = heir
        name = self.names.pop(gone, None)
        if name is not None and heir >= 0:
            self.names.setdefault(heir, name)
        self.ignored.discard(gone)

    def vanish(self, node):
        cluster = self.cluster[node]
        super().vanish(node)
        if cluster not in self.live():
            self.leave(cluster, -1)

    # The graph obeys.

    def enforce(self):
        """Unpin edges without a law; separate and join nodes as the laws say."""
        if not self.laws:
            return []
        return self.obey()

    def obey(self):
        """Enforce the laws; return the edges that are no longer pinned."""
        bonds = self.pairs(True)
        released = []
        for edge, rule in sorted(self.edges.items()):
            if rule == PINNED and edge not in bonds:
                self.hold(*edge, TESTED)
                self.unjudged.add(edge)
                released.append(edge)
        for a, b in self.pairs(False):
            while self.cluster[a] == self.cluster[b]:
                self.cut_weakest([self.weakest(a, b)])
        for a, b in bonds:
            self.bind(a, b)
        return released

    def judge(self, edges):
        """Test edges that were pinned; keep those that the evidence supports."""
        for a, b in edges:
            if self.edges.get((a, b)) != TESTED:
                continue
            del self.edges[a, b]
            ones, others = self.part(a), self.part(b)
            self.edges[a, b] = TESTED
            if self.whole_clusters:
                if self.wholes_hold(ones, others):
                    self.hold(a, b, SETTLED)
                else:
                    self.cut(a, b)
                    self.split(a, b)
                continue
            self.unjudged.discard((a, b))
            if self.margin(a, b) >= 0:
                continue
            new = min(
                (pair(*both) for both in itertools.product(ones, others)),
                key=lambda edge: (-self.margin(*edge), edge),
            )
            self.cut(a, b)
            if self.margin(*new) >= 0:
                self.edges[new] = TESTED
                self.log("rejoined", *new, self.cluster[a])
            else:
                self.split(a, b)

    def wholes_hold(self, ones, others):
        totals = [self.total(part) for part in (ones, others)]
        if not all(total.any() for total in totals):
            return False
        needed = anisotropic_pair_threshold(self.t_c, self.t_p, self.mass(ones), self.mass(others))
        return cosine(*totals) >= needed

    def way(self, a, b):
        """Return the edges of the only path between two nodes of one cluster."""
        ways, frontier = {a: []}, [a]
        while b not in ways:
            here = frontier.pop()
            for other in self.neighbours(here) - ways.keys():
                ways[other] = [*ways[here], pair(here, other)]
                frontier.append(other)
        return ways[b]

    def weakest(self, a, b):
        """Return the edge of least margin between two nodes that is not pinned."""
        loose = [edge for edge in self.way(a, b) if self.edges[edge] != PINNED]
        return min(loose, key=lambda edge: (self.margin(*edge), edge), default=None)

    def cut_weakest(self, edges):
        """Cut the weakest of some edges; refuse the verb if there is none."""
        found = [edge for edge in edges if edge is not None]
        if not found:
            raise RefusedError("ContradictionError")
        a, b = min(found, key=lambda edge: (self.margin(*edge), edge))
        self.cut(a, b)
        self.split(a, b)

    def bind(self, a, b):
        """Join two nodes with a pinned edge."""
        if a == b:
            return
        if self.cluster[a] != self.cluster[b]:
            while (barred := self.clash(self.part(a), self.part(b))) is not None:
                self.cut_weakest([self.weakest(barred[0], a), self.weakest(barred[1], b)])
            self.tie(a, b)
        elif pair(a, b) in self.edges:
            self.hold(a, b, PINNED)
        elif (old := self.weakest(a, b)) is not None:
            del self.edges[old]
            self.edges[pair(a, b)] = PINNED
            self.log("retied", a, b, *old)

    def tie(self, a, b):
        one, other = self.cluster[a], self.cluster[b]
        kept, gone = sorted((one, other), key=lambda c: (c not in self.names, c))
        for node in self.part(a if gone == one else b):
            self.cluster[node] = kept
        self.edges[pair(a, b)] = PINNED
        self.log("tied", a, b, kept, gone)
        self.leave(gone, kept)

    def hold(self, a, b, rule):
        if self.edges[pair(a, b)] != rule:
            self.edges[pair(a, b)] = rule
            self.log("held", a, b, rule)

    # Forgetting.

    def forget_for(self, cluster, reason):
        self.log("forgotten", cluster, reason)
        for node in self.nodes_of(cluster):
            self.log("vanished", node, -1, cluster)
            del self.members[node], self.cluster[node], self.seen[node]
            self.flags.pop(node, None)
            self.became[node] = None
            self.edges = {edge: rule for edge, rule in self.edges.items() if node not in edge}
        self.leave(cluster, -1)

    def tend(self, before):
        """Forget unprotected clusters: the idle, then the least recently used."""
        n = len(self.vectors)
        free = self.live() - self.names.keys() - {self.cluster[node] for node in self.cared_for()}
        last = {c: max(self.seen[node][1] for node in self.nodes_of(c)) for c in self.live()}
        step = max(self.max_idle // 10, 1) if self.max_idle else 0
        crowded = self.max_subclusters is not None and len(self.members) > self.max_subclusters
        if step and (crowded or before // step < n // step):
            for cluster in sorted(c for c in free if last[c] < n - self.max_idle):
                self.forget_for(cluster, 2)
        if self.max_subclusters is None or len(self.members) <= self.max_subclusters:
            return
        surplus = len(self.members) - self.max_subclusters + self.max_subclusters // 10
        staying = self.cared_for() | {n for n, (_, last) in self.seen.items() if last >= before}
        for _ in range(surplus):
            ranked = [
                (rank, self.seen[n][1], n) for n in self.members if (rank := self.rank_of(n)) >= 0
            ]
            ranked = [row for row in ranked if row[2] not in staying]
            if not ranked:
                return
            self.evict(min(ranked)[2])

    def rank_of(self, node):
        """Return the rank of a node for eviction; −1 if it must stay."""
        near, named = self.neighbours(node), self.cluster[node] in self.names
        if len(near) > 1 or (named and not near):
            return -1
        return 1 + named if near else 0

    def evict(self, node):
        """Remove a leaf of a cluster with its vectors."""
        cluster, near = self.cluster[node], self.neighbours(node)
        if not near:
            self.forget_for(cluster, 1)
            return
        (heir,) = near
        self.log("vanished", node, heir, cluster)
        del self.edges[pair(node, heir)]
        del self.members[node], self.cluster[node], self.seen[node]
        self.flags.pop(node, None)
        self.became[node] = heir

    def cared_for(self):
        """Return the nodes that have corrections or prototypes."""
        pinned = {node for law in self.laws for node in self.places(law.a + law.b)}
        return pinned | {node for node, flags in self.flags.items() if flags}


def speaks(one, other):
    """Return whether two pins are equal; a vector is not equal to its node."""
    return one.vector == other.vector and (one.vector is not None or one.node == other.node)
