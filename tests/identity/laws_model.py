"""What people said, on the naive graph: pins, constraints, groups, IDs; and a graph that obeys.

Where a pin stands, who is barred from whom and which way leads through a tree is worked out
again each time.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from identity.graph_model import LAW, LOOSE, GraphModel, pair


class RefusedError(Exception):
    """The verb must raise the error of this name, and change nothing."""


class Pin(NamedTuple):
    """A vector, or a node as a whole."""

    node: int
    vector: int | None


LIFTED = -2  # stands for a node that vectors would be taken out into


class Law(NamedTuple):
    together: bool
    a: tuple[Pin, ...]
    b: tuple[Pin, ...]
    mover: int | None = None


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
        """The node a pin stands on; None if it is dropped. `lifted`: if some were taken out."""
        if pin.vector is not None:
            return LIFTED if pin.vector in lifted else self.node_of(pin.vector)
        node = pin.node
        while node in self.became:
            node = self.became[node]
        return node

    def places(self, pins, lifted=()):
        found = [self.place_of(pin, lifted) for pin in pins]
        return [node for node in found if node is not None]

    def pairs(self, together, lifted=()):
        """Nodes that people have put together, or apart; both ways round, in order."""
        found = set()
        for law in self.laws:
            if law.together == together:
                sides = self.places(law.a, lifted), self.places(law.b, lifted)
                found |= set(itertools.product(*sides))
        return sorted(found | {(b, a) for a, b in found})

    def barred_pairs(self, lifted=()):
        """Nodes that may never share a cluster, both ways round."""
        found = set(self.pairs(False, lifted))
        for group in self.groups:
            there = self.places([Pin(-1, vector) for vector in group], lifted)
            found |= set(itertools.permutations(there, 2))
        return found

    def bloc(self, node, lifted=()):
        """Nodes reached by what people have put together."""
        bonds = self.pairs(True, lifted)
        found, frontier = {node}, [node]
        while frontier:
            here = frontier.pop()
            new = {b for a, b in bonds if a == here} - found
            found |= new
            frontier += new
        return found

    def clash(self, ones, others, lifted=()):
        """The first two nodes, one of each, that are barred from one another."""
        barred = self.barred_pairs(lifted)
        return min((p for p in itertools.product(ones, others) if p in barred), default=None)

    # What follows from people's word alone, whoever shares a node by likeness.

    def standing(self, pins):
        return [
            pin._replace(node=self.place_of(pin)) for pin in pins if self.place_of(pin) is not None
        ]

    def closure(self, pin):
        """All that was said, by steps, to be the same; nearest first."""
        found = [pin]
        for here in found:
            for law in self.laws:
                for ours, theirs in ((law.a, law.b), (law.b, law.a)) if law.together else ():
                    if any(speaks(one, here) for one in self.standing(ours)):
                        found += [new for new in self.standing(theirs) if new not in found]
        return found

    def said_apart(self, one, other):
        """Whether it follows from what was said that two are different."""
        apart = [(law.a, law.b) for law in self.laws if not law.together]
        for group in self.groups:
            apart += itertools.combinations([(Pin(-1, vector),) for vector in group], 2)
        ours, theirs = self.closure(one), self.closure(other)
        for a, b in itertools.chain(apart, [(b, a) for a, b in apart]):
            left = any(speaks(x, pin) for x in self.standing(a) for pin in ours)
            if left and any(speaks(y, pin) for y in self.standing(b) for pin in theirs):
                return True
        return False

    def to_unite(self, one, other):
        """Vectors to take out where what shares their nodes by likeness alone is in the way."""
        if self.clash(self.bloc(one.node), self.bloc(other.node)) is None:
            return []
        for leaving in ([other.vector], [one.vector], [one.vector, other.vector]):
            if self.can_leave(leaving):
                ends = [LIFTED if pin.vector in leaving else pin.node for pin in (one, other)]
                if self.clash(*(self.bloc(end, leaving) for end in ends), leaving) is None:
                    return leaving
        raise RefusedError("ContradictionError")

    def to_part(self, one, other):
        """The vector to take out for two to be put apart: the second, else the first."""
        if other.node not in self.bloc(one.node):
            return []
        for stays, leaves in ((one, other), (other, one)):
            leaving = [leaves.vector]
            if self.can_leave(leaving) and stays.node not in self.bloc(LIFTED, leaving):
                return leaving
        raise RefusedError("ContradictionError")

    def can_leave(self, vectors):
        """Whether these are vectors, of as many nodes, that the others there can do without."""
        if None in vectors or any(map(self.hollow_without, vectors)):
            return False
        return len({self.node_of(vector) for vector in vectors}) == len(vectors)

    def hollow_without(self, vector):
        """Whether a node would be left with vectors and no direction."""
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
        """Release what is law for nobody; part what is to be apart; tie what is to be one."""
        if not self.laws:
            return
        bonds = self.pairs(True)
        for edge, firm in sorted(self.edges.items()):
            if firm == LAW and edge not in bonds:
                self.hold(*edge, LOOSE)
                self.unjudged.add(edge)
        for a, b in self.pairs(False):
            while self.cluster[a] == self.cluster[b]:
                self.cut_weakest([self.weakest(a, b)])
        for a, b in bonds:
            self.bind(a, b)

    def way(self, a, b):
        """Edges between two nodes of one cluster; the forest has one way only."""
        ways, frontier = {a: []}, [a]
        while b not in ways:
            here = frontier.pop()
            for other in self.neighbours(here) - ways.keys():
                ways[other] = [*ways[here], pair(here, other)]
                frontier.append(other)
        return ways[b]

    def weakest(self, a, b):
        """Of the edges between two nodes that are not law, the one of least margin."""
        loose = [edge for edge in self.way(a, b) if self.edges[edge] != LAW]
        return min(loose, key=lambda edge: (self.margin(*edge), edge), default=None)

    def cut_weakest(self, edges):
        """Of some edges the weakest goes for good; where there is none, all of it is refused."""
        found = [edge for edge in edges if edge is not None]
        if not found:
            raise RefusedError("ContradictionError")
        a, b = min(found, key=lambda edge: (self.margin(*edge), edge))
        self.cut(a, b)
        self.split(a, b)

    def bind(self, a, b):
        """Two nodes are of one cluster from now on."""
        if a == b:
            return
        if self.cluster[a] != self.cluster[b]:
            while (barred := self.clash(self.part(a), self.part(b))) is not None:
                self.cut_weakest([self.weakest(barred[0], a), self.weakest(barred[1], b)])
            self.tie(a, b)
        elif pair(a, b) in self.edges:
            self.hold(a, b, LAW)
        elif (old := self.weakest(a, b)) is not None:
            del self.edges[old]
            self.edges[pair(a, b)] = LAW
            self.log("retied", a, b, *old)

    def tie(self, a, b):
        one, other = self.cluster[a], self.cluster[b]
        kept, gone = sorted((one, other), key=lambda c: (c not in self.names, c))
        for node in self.part(a if gone == one else b):
            self.cluster[node] = kept
        self.edges[pair(a, b)] = LAW
        self.log("tied", a, b, kept, gone)
        self.leave(gone, kept)

    def hold(self, a, b, firm):
        if self.edges[pair(a, b)] != firm:
            self.edges[pair(a, b)] = firm
            self.log("held", a, b, firm)

    # Forgetting.

    def forget_for(self, cluster, reason):
        self.log("forgotten", cluster, reason)
        for node in self.nodes_of(cluster):
            self.log("vanished", node, -1, cluster)
            del self.members[node], self.cluster[node], self.seen[node]
            self.flags.pop(node, None)
            self.became[node] = None
            self.edges = {edge: firm for edge, firm in self.edges.items() if node not in edge}
        self.leave(cluster, -1)

    def tend(self, before):
        """Forget clusters that nobody cares for: the idle, then the least recently used."""
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
        """Which go first: alone in a cluster, at the edge of one, of one with a name; −1: never."""
        near, named = self.neighbours(node), self.cluster[node] in self.names
        if len(near) > 1 or (named and not near):
            return -1
        return 1 + named if near else 0

    def evict(self, node):
        """A node at the edge of its cluster goes with what it holds."""
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
        """Nodes that people have said something of, or that are prototypes."""
        pinned = {node for law in self.laws for node in self.places(law.a + law.b)}
        return pinned | {node for node, flags in self.flags.items() if flags}


def speaks(one, other):
    """Whether what is said of one holds of another: the same vector, or a whole and its parts."""
    if None in (one.vector, other.vector):
        return one.node == other.node
    return one.vector == other.vector
