"""A naive graph of Links with weights, locks, claims, edge rules and removal.

It extends paper/algorithm.py and shares no code with the engines: a node is the list of
its member vectors, every sum is added up from the kept vectors each time, every component is
searched for afresh, and all numbers that decide are Python integers.
"""

from __future__ import annotations

import math

from linkstream.paper.algorithm import Answer, PaperLinks, cosine
from linkstream.paper.thresholds import anisotropic_pair_threshold

FULL = 256
TESTED, SETTLED, PINNED = range(3)
LOCKED, CLAIM = 1, 2


def pair(a, b):
    return min(a, b), max(a, b)


class GraphModel(PaperLinks):
    """Nodes are lists of members; `edges` maps a pair (the older first) to its rule."""

    def __init__(self, t_c, t_s, t_p, *, whole_clusters=False):
        super().__init__(t_c, t_s, t_p)
        self.whole_clusters = whole_clusters
        self.edges = {}
        self.missing_weight = []  # of each vector where it is, in 256ths
        self.flags = {}
        self.seen = {}  # node → its first and last vector's numbers; removal leaves them
        self.became = {}  # a node that is no more → the node that holds its members, or None
        self.unjudged = set()  # loose edges that equation 22 was not asked about since

    # What can be asked of the state.

    def share(self, member):
        missing_weight = self.missing_weight[member]
        q = self.vectors[member]
        return (q * (FULL - missing_weight) + FULL // 2) // FULL if missing_weight else q

    def sum(self, node):
        return self.total([node])

    def total(self, nodes):
        return sum(self.share(i) for node in nodes for i in self.members[node])

    def mass(self, nodes):
        missing_weight = sum(self.missing_weight[i] for node in nodes for i in self.members[node])
        return max(self.size(nodes) - missing_weight / FULL, 1.0)

    def missing_weight_of(self, node):
        return sum(self.missing_weight[i] for i in self.members[node])

    def needed(self, a, b):
        return anisotropic_pair_threshold(self.t_c, self.t_p, self.mass([a]), self.mass([b]))

    def node_of(self, member):
        return next((node for node, held in self.members.items() if member in held), None)

    def nodes_of(self, cluster):
        return [node for node in sorted(self.cluster) if self.cluster[node] == cluster]

    def live(self):
        return set(self.cluster.values())

    def labels(self):
        of = {i: self.cluster[node] for node, held in self.members.items() for i in held}
        return [of.get(i, -1) for i in range(len(self.vectors))]

    def locked(self, node):
        return bool(self.flags.get(node, 0) & LOCKED)

    def rank(self, nodes):
        claims = sum(bool(self.flags.get(node, 0) & CLAIM) for node in nodes)
        return claims, self.size(nodes), -min(nodes)

    # Section 3.3, and outcomes that are given.

    def take(self, q, *, missing_weight=0, outcome=None, target=None, rule=TESTED):
        """Add a new vector; the tests of the paper decide if no outcome is given."""
        similarity = threshold = None
        if outcome is None:
            outcome, target, similarity, threshold, rule = self.assess(q)
        member = len(self.vectors)
        self.vectors.append(q)
        self.missing_weight.append(missing_weight)
        if missing_weight:
            self.log("weighed", FULL - missing_weight)
        node = self.place(member, outcome, target, rule)
        return Answer(outcome, similarity, threshold, self.cluster[node], node)

    def put(self, member, outcome, target=None, rule=PINNED):
        """Put a withdrawn vector into another subcluster."""
        return self.place(member, outcome, target, rule)

    def assess(self, q):
        """Return outcome, target, similarity, threshold and edge rule."""
        near = {node: cosine(q, self.sum(node)) for node in sorted(self.members)}
        nearest = max(near, key=near.get, default=None)
        similarity = -math.inf if nearest is None else near[nearest]
        lowest = min(self.t_s, anisotropic_pair_threshold(self.t_c, self.t_p, 1.0, 1.0))
        if similarity >= self.t_s:
            return "joined", nearest, similarity, self.t_s, TESTED
        if self.whole_clusters:
            return self.assess_wholes(q, nearest if similarity >= lowest else None)
        if similarity < lowest:
            return "new", None, None, None, TESTED
        threshold = anisotropic_pair_threshold(self.t_c, self.t_p, self.mass([nearest]), 1.0)
        if similarity >= threshold:
            return "linked", nearest, similarity, threshold, TESTED
        return "new", None, similarity, threshold, TESTED

    def assess_wholes(self, q, nearest):
        best = None
        for cluster in sorted(self.live()):
            nodes = self.nodes_of(cluster)
            if not self.total(nodes).any():
                continue  # what cancels out is similar to nothing
            similarity = cosine(q, self.total(nodes))
            threshold = anisotropic_pair_threshold(self.t_c, self.t_p, self.mass(nodes), 1.0)
            if similarity < anisotropic_pair_threshold(self.t_c, self.t_p, 1.0, 1.0):
                continue
            if best is None or similarity - threshold > best[1] - best[2]:
                best = nodes, similarity, threshold
        if best is None:
            return "new", None, None, None, TESTED
        nodes, similarity, threshold = best
        if similarity - threshold < 0:
            return "new", None, similarity, threshold, TESTED
        return "linked", nearest if nearest in nodes else min(nodes), similarity, threshold, SETTLED

    def place(self, member, outcome, target, rule):
        new = member == len(self.vectors) - 1 and not self.settled_in(member)
        if outcome == "joined":
            self.members[target].append(member)
            first, last = self.seen[target]
            self.seen[target] = min(first, member), max(last, member)
            self.arrived(new, "joined", member, target, None)
            if not self.locked(target):
                return self.update(target)
            self.missing_weight[member] = FULL
            return target
        node = self.next_subcluster
        self.next_subcluster += 1
        self.members[node] = [member]
        self.seen[node] = member, member
        if outcome == "linked":
            self.edges[pair(node, target)] = rule
            self.cluster[node] = self.cluster[target]
        else:
            self.cluster[node] = self.new_cluster()
        self.arrived(new, "linked" if outcome == "linked" else "created", member, node, target)
        return node

    def settled_in(self, member):
        """Return whether the log holds the arrival of this vector."""
        return member < self.arrivals

    arrivals = 0  # vectors whose arrival the log tells of

    def arrived(self, new, kind, member, node, partner):
        cluster = self.cluster[node]
        if not new:
            self.log("moved", member, node, -1 if partner is None else partner, cluster)
            return
        self.arrivals = member + 1
        self.log(kind, node, *([] if partner is None else [partner]), cluster)

    # Section 3.4.

    def mergeable(self, a):
        return [b for b in super().mergeable(a) if not (self.locked(a) or self.locked(b))]

    def update(self, a):
        while near := self.mergeable(a):
            a = self.merge(a, min(near, key=lambda b: (-self.similarity(a, b), b)))
        judged = sorted((self.margin(a, b), b) for b in self.neighbours(a))
        for margin, b in judged:
            if margin < 0 and self.edges[pair(a, b)] == TESTED:
                self.sever(a, b)
        self.unjudged = {edge for edge in self.unjudged if a not in edge and edge in self.edges}
        return a

    def merge(self, a, b):
        survivor, absorbed = min(a, b), max(a, b)
        del self.edges[survivor, absorbed]
        self.inherit(survivor, absorbed)
        self.members[survivor] = self.members[survivor] + self.members.pop(absorbed)
        self.flags[survivor] = self.flags.get(survivor, 0) | self.flags.pop(absorbed, 0)
        first, last = self.seen.pop(absorbed)
        ours = self.seen[survivor]
        self.seen[survivor] = min(ours[0], first), max(ours[1], last)
        del self.cluster[absorbed]
        self.became[absorbed] = survivor
        self.log("merged", survivor, absorbed, self.cluster[survivor])
        return survivor

    def inherit(self, heir, gone):
        """Move all edges of a node to another node."""
        for edge in [edge for edge in self.edges if gone in edge]:
            other = edge[0] if edge[1] == gone else edge[1]
            self.edges[pair(heir, other)] = self.edges.pop(edge)

    def sever(self, a, b):
        """Cut an edge that fails equation 22, then re-join or split."""
        self.cut(a, b)
        partner = min(self.part(b), key=lambda node: (-self.margin(a, node), node))
        if self.margin(a, partner) >= 0:
            self.edges[pair(a, partner)] = TESTED
            self.log("rejoined", a, partner, self.cluster[a])
        else:
            self.split(a, b)

    def cut(self, a, b):
        del self.edges[pair(a, b)]
        self.log("severed", a, b, self.cluster[a])

    def split(self, a, b):
        """Split a cluster; more claims, more vectors, then the oldest node keep the ID."""
        kept, left = (a, b) if self.rank(self.part(a)) > self.rank(self.part(b)) else (b, a)
        cluster, fresh = self.cluster[a], self.new_cluster()
        for node in self.part(left):
            self.cluster[node] = fresh
        self.log("split", left, kept, cluster, fresh)

    # Removal.

    def withdraw(self, member):
        """Subtract the share of a vector from its node; remove an empty node."""
        node = self.node_of(member)
        taken = self.share(member)
        self.members[node].remove(member)
        if self.missing_weight[member] == FULL:
            self.missing_weight[member] = 0  # a lock made it a visitor; elsewhere it counts in full
        self.log("removed", member, node, self.cluster[node])
        if not self.members[node]:
            self.vanish(node)
        elif taken.any():
            self.update(node)

    def vanish(self, node):
        near = self.neighbours(node)
        heir = max(near, key=lambda other: self.kinship(node, other), default=None)
        cluster = self.cluster.pop(node)
        if heir is not None:
            del self.edges[pair(node, heir)]
            self.inherit(heir, node)
        del self.members[node], self.seen[node]
        self.flags.pop(node, None)
        self.became[node] = heir
        self.log("vanished", node, -1 if heir is None else heir, cluster)
        if heir is not None:
            self.update(heir)

    def kinship(self, node, other):
        """Order heirs: tested before pinned edges, then the largest, then the oldest."""
        return self.edges[pair(node, other)] != PINNED, self.count(other), -other

    def flag(self, node, flags):
        self.flags[node] = flags
        self.log("flagged", node, flags)

    def log(self, kind, *numbers):
        self.events.append((kind, max(len(self.vectors) - 1, 0), *numbers))
