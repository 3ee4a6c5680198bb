"""Links a second time, as naively as can be: the oracle of the engines' agreement tests.

Read beside the paper's sections 3.3–3.5. Nothing is kept but each subcluster's member vectors, the
edges, and the cluster of each subcluster; every sum is added up from the members, every product is
of Python integers, every connected component is searched for afresh. What was worked out of the
very same members or coordinates before is remembered, and not worked out again. It shares no code
with the package.
"""

from __future__ import annotations

import math
from functools import lru_cache
from operator import mul
from typing import NamedTuple

import numpy as np


class Answer(NamedTuple):
    kind: str
    similarity: float | None
    threshold: float | None
    cluster: int
    subcluster: int


def fixed_point(x):
    """q = rint(x / ‖x‖ · 2³⁰) of one vector, its squares folded upper half onto lower half."""
    x = [float(value) for value in np.asarray(x).astype(np.float32)]
    squares = [value * value for value in x]
    while len(squares) & (len(squares) - 1):
        squares.append(0.0)
    while len(squares) > 1:
        half = len(squares) // 2
        squares = [low + high for low, high in zip(squares[:half], squares[half:], strict=True)]
    norm = math.sqrt(squares[0])
    return np.array([round(value / norm * 2.0**30) for value in x], dtype=np.int64)


def cosine(a, b):
    assert a.dtype == b.dtype == np.int64
    return float(dot(a.tolist(), b.tolist())) / (length(a.tobytes()) * length(b.tobytes()))


def dot(a, b):
    return sum(map(mul, a, b))


@lru_cache(maxsize=10_000)
def length(coordinates):
    a = np.frombuffer(coordinates, dtype=np.int64).tolist()
    return math.sqrt(float(dot(a, a)))


def s_tilde(t_c, t_p, k, k2):
    """Equation 24 of equation 16."""
    c2 = t_c * t_c
    tan2 = 1.0 / c2 - 1.0
    s = 1.0 / math.sqrt((1.0 + tan2 / k) * (1.0 + tan2 / k2))
    return c2 + max(t_p - c2, 0.0) / (1.0 - c2) * (s - c2)


class NaiveLinks:
    def __init__(self, t_c, t_s, t_p):
        self.t_c, self.t_s, self.t_p = t_c, t_s, t_p
        self.members = {}  # subcluster number → sequence numbers of its vectors
        self.edges = set()  # pairs of subcluster numbers
        self.cluster = {}  # subcluster number → cluster ID
        self.vectors = []
        self.sums = {}  # members → their sum, once it was asked for
        self.events = []
        self.born = 0  # subclusters ever
        self.clusters_born = 0

    # What can be asked of the state.

    def sum(self, node):
        members = tuple(self.members[node])
        if members not in self.sums:
            self.sums[members] = sum(self.vectors[i] for i in members)
        return self.sums[members]

    def count(self, node):
        return len(self.members[node])

    def needed(self, a, b):
        return s_tilde(self.t_c, self.t_p, float(self.count(a)), float(self.count(b)))

    def similarity(self, a, b):
        return cosine(self.sum(a), self.sum(b))

    def margin(self, a, b):
        return self.similarity(a, b) - self.needed(a, b)

    def neighbours(self, node):
        return {b if a == node else a for a, b in self.edges if node in (a, b)}

    def part(self, node):
        """All nodes connected with this one."""
        found, frontier = {node}, [node]
        while frontier:
            new = self.neighbours(frontier.pop()) - found
            found |= new
            frontier += new
        return found

    def size(self, nodes):
        return sum(self.count(node) for node in nodes)

    def labels(self):
        of = {i: self.cluster[node] for node, members in self.members.items() for i in members}
        return [of[i] for i in range(len(self.vectors))]

    # One vector, sections 3.3–3.5.

    def add(self, x):
        q = fixed_point(x)
        sequence = len(self.vectors)
        self.vectors.append(q)
        similarities = {node: cosine(q, self.sum(node)) for node in self.members}
        # Equation 19; max() keeps the first of equals, so in order of birth the older wins.
        nearest = max(sorted(similarities), key=similarities.get, default=None)
        similarity = -math.inf if nearest is None else similarities[nearest]
        lowest = min(self.t_s, s_tilde(self.t_c, self.t_p, 1.0, 1.0))

        if similarity >= self.t_s:  # equation 20
            self.members[nearest].append(sequence)
            self.log("joined", nearest, self.cluster[nearest])
            survivor = self.update(nearest)
            return Answer("joined", similarity, self.t_s, self.cluster[survivor], survivor)

        threshold = None
        if nearest is not None:
            threshold = s_tilde(self.t_c, self.t_p, float(self.count(nearest)), 1.0)
        node = self.born
        self.born += 1
        self.members[node] = [sequence]
        if nearest is not None and similarity >= threshold:  # equations 21 and 25
            self.edges.add((nearest, node))
            self.cluster[node] = self.cluster[nearest]
            self.log("linked", node, nearest, self.cluster[node])
            return Answer("linked", similarity, threshold, self.cluster[node], node)

        self.cluster[node] = self.new_cluster()
        self.log("created", node, self.cluster[node])
        if similarity < lowest:
            similarity = threshold = None
        return Answer("new", similarity, threshold, self.cluster[node], node)

    def update(self, a):
        """Section 3.4 for the touched node; returns it, or the node it has become part of."""
        while near := self.mergeable(a):
            a = self.merge(a, min(near, key=lambda b: (-self.similarity(a, b), b)))

        judged = sorted((self.margin(a, b), b) for b in self.neighbours(a))
        for margin, b in judged:
            if margin < 0:  # equation 22 fails
                self.sever(a, b)
        return a

    def mergeable(self, a):
        return [b for b in self.neighbours(a) if self.similarity(a, b) >= self.t_s]

    def merge(self, a, b):
        survivor, absorbed = min(a, b), max(a, b)
        united = (self.neighbours(a) | self.neighbours(b)) - {a, b}
        self.edges = {edge for edge in self.edges if a not in edge and b not in edge}
        self.edges |= {(survivor, other) for other in united}
        self.members[survivor] = self.members[survivor] + self.members.pop(absorbed)
        del self.cluster[absorbed]
        self.log("merged", survivor, absorbed, self.cluster[survivor])
        return survivor

    def sever(self, a, b):
        cluster = self.cluster[a]
        self.edges -= {(a, b), (b, a)}
        self.log("severed", a, b, cluster)
        partner = min(self.part(b), key=lambda node: (-self.margin(a, node), node))
        if self.margin(a, partner) >= 0:
            self.edges.add((a, partner))
            self.log("rejoined", a, partner, cluster)
            return
        # The larger part keeps the ID; of equals, the one that holds the oldest node.
        ours, theirs = self.part(a), self.part(b)
        kept, left = (a, b) if self.rank(ours) > self.rank(theirs) else (b, a)
        fresh = self.new_cluster()
        for node in self.part(left):
            self.cluster[node] = fresh
        self.log("split", left, kept, cluster, fresh)

    def rank(self, nodes):
        return self.size(nodes), -min(nodes)

    def new_cluster(self):
        self.clusters_born += 1
        return self.clusters_born - 1

    def log(self, kind, *numbers):
        self.events.append((kind, len(self.vectors) - 1, *numbers))
