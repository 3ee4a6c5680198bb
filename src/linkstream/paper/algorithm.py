"""Links as the paper describes it: section 3 in one short class.

Read this file with the paper open (Mansfield et al., arXiv:1801.10123). The methods follow sections
3.2 to 3.5 in order, use the paper's verbs, and name the equation that they carry out. Speed is
not a goal: every sum is added up from its vectors, and every connected component is searched for
anew.

The agreement tests compare both engines of linkstream with this class, bit for bit: every answer,
event, sum and edge. Where the paper leaves a choice, a comment names the entry of docs/choices.md.
The engines add what the paper does not have (corrections, weights, removal, cluster evidence).
"""

from __future__ import annotations

import math
from functools import lru_cache
from operator import mul
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from linkstream.paper.thresholds import anisotropic_pair_threshold, anisotropic_vector_threshold

Vector = npt.NDArray[np.int64]


class Answer(NamedTuple):
    """The answer about one vector (section 3.1).

    Attributes:
        kind: "joined" (an existing subcluster), "linked" (a new subcluster in the cluster of J) or
            "new" (a new subcluster in a new cluster).
        similarity: x·μ_J, that to the most similar subcluster J; None for the first vector.
        threshold: the threshold for it: T_s if the vector joined, s~(k_J) otherwise.
        cluster: the ID of the vector's cluster.
        subcluster: the number of the subcluster that holds the vector.
    """

    kind: str
    similarity: float | None
    threshold: float | None
    cluster: int
    subcluster: int


class PaperLinks:
    """The Links clusterer of section 3, written for reading.

    Args:
        t_c: T_c, the cluster similarity threshold.
        t_s: T_s, the subcluster similarity threshold.
        t_p: T_p, the pair similarity maximum; at least T_c².

    Attributes:
        vectors: all vectors, in order of arrival.
        members: the vectors of each subcluster, as positions in `vectors`.
        edges: the edges of the graph, as pairs of subcluster numbers.
        cluster: the cluster ID of each subcluster.
        events: every step, as a tuple: its name, the newest vector, then the numbers concerned.

    In the methods, `node`, `a` and `b` are subcluster numbers and `nodes` a set of them; `j` is the
    most similar subcluster J; `similarity` and `threshold` are those of the answer; `kind` and
    `numbers` make an event.

    Three vectors point in similar directions, a fourth does not:

    >>> links = PaperLinks(t_c=0.8, t_s=0.95, t_p=0.9)
    >>> for x in ([1.0, 0.0], [0.99, 0.1], [0.8, 0.6], [-1.0, 0.2]):
    ...     answer = links.add(x)
    ...     print(answer.kind, answer.cluster)
    new 0
    joined 0
    linked 0
    new 1
    >>> links.members, links.edges
    ({0: [0, 1], 1: [2], 2: [3]}, {(0, 1)})
    """

    def __init__(self, t_c: float, t_s: float, t_p: float) -> None:
        self.t_c, self.t_s, self.t_p = t_c, t_s, t_p
        self.vectors: list[Vector] = []
        self.members: dict[int, list[int]] = {}
        self.edges: set[tuple[int, int]] = set()
        self.cluster: dict[int, int] = {}
        self.events: list[tuple[str | int, ...]] = []
        self.next_subcluster = 0
        self.next_cluster = 0
        self._sums: dict[tuple[int, ...], Vector] = {}

    # Section 3.2, internal representation: subclusters are nodes, clusters connected components.

    def sum(self, node: int) -> Vector:
        """Return the sum of a subcluster's vectors; it has the direction of the centroid μ."""
        members = tuple(self.members[node])
        if members not in self._sums:
            self._sums[members] = np.sum([self.vectors[i] for i in members], axis=0)
        return self._sums[members]

    def count(self, node: int) -> int:
        """Return k, the number of vectors in a subcluster."""
        return len(self.members[node])

    def similarity(self, a: int, b: int) -> float:
        """Return μ_a·μ_b, the cosine similarity of two centroids."""
        return cosine(self.sum(a), self.sum(b))

    def needed(self, a: int, b: int) -> float:
        """Return s~(k_a, k_b), the similarity that an edge needs (equation 24)."""
        return anisotropic_pair_threshold(
            self.t_c, self.t_p, float(self.count(a)), float(self.count(b))
        )

    def margin(self, a: int, b: int) -> float:
        """Return by how much an edge satisfies inequality 22; negative if it does not."""
        return self.similarity(a, b) - self.needed(a, b)

    def neighbours(self, node: int) -> set[int]:
        """Return the nodes that an edge joins to this one."""
        return {b if a == node else a for a, b in self.edges if node in (a, b)}

    def part(self, node: int) -> set[int]:
        """Return the connected component of a node: all subclusters of its cluster."""
        found, frontier = {node}, [node]
        while frontier:
            new = self.neighbours(frontier.pop()) - found
            found |= new
            frontier += new
        return found

    def size(self, nodes: set[int]) -> int:
        """Return the number of vectors in some subclusters."""
        return sum(self.count(node) for node in nodes)

    def labels(self) -> list[int]:
        """Return the current cluster ID of each vector, in order of arrival."""
        of = {i: self.cluster[node] for node, members in self.members.items() for i in members}
        return [of[i] for i in range(len(self.vectors))]

    # Section 3.3, assessing cluster membership.

    def add(self, x: npt.ArrayLike) -> Answer:
        """Assign a new vector to a cluster and return the cluster's ID (sections 3.1 and 3.3).

        Args:
            x: the vector, of any length but 0.
        """
        self.vectors.append(fixed_point(x))
        j = self.most_similar()
        if j is None:
            return self.create(None, None)
        similarity = cosine(self.vectors[-1], self.sum(j))
        if similarity >= self.t_s:  # inequality 20
            return self.join(j, similarity)
        threshold = anisotropic_vector_threshold(self.t_c, self.t_p, float(self.count(j)))
        if similarity >= threshold:  # inequality 21, with s~ of equation 25 for s
            return self.link(j, similarity, threshold)
        return self.create(similarity, threshold)

    def most_similar(self) -> int | None:
        """Return J, the subcluster most similar to the new vector (equation 19)."""
        similarities = {j: cosine(self.vectors[-1], self.sum(j)) for j in sorted(self.members)}
        # max() returns the first of equals: docs/choices.md, "ties go to the older".
        return max(similarities, key=similarities.__getitem__, default=None)

    def join(self, j: int, similarity: float) -> Answer:
        """Add the new vector to subcluster J, then update the clusters."""
        self.members[j].append(len(self.vectors) - 1)
        self.log("joined", j, self.cluster[j])
        node = self.update(j)
        return Answer("joined", similarity, self.t_s, self.cluster[node], node)

    def link(self, j: int, similarity: float, threshold: float) -> Answer:
        """Start a new subcluster containing just the new vector, with an edge to subcluster J."""
        node = self.start_subcluster()
        self.edges.add((j, node))
        self.cluster[node] = self.cluster[j]
        self.log("linked", node, j, self.cluster[node])
        return Answer("linked", similarity, threshold, self.cluster[node], node)

    def create(self, similarity: float | None, threshold: float | None) -> Answer:
        """Start a new subcluster containing just the new vector, in a cluster of its own."""
        node = self.start_subcluster()
        self.cluster[node] = self.new_cluster()
        self.log("created", node, self.cluster[node])
        return Answer("new", similarity, threshold, self.cluster[node], node)

    def start_subcluster(self) -> int:
        """Start a new subcluster containing just the new vector; return its number."""
        node = self.next_subcluster
        self.next_subcluster += 1
        self.members[node] = [len(self.vectors) - 1]
        return node

    def new_cluster(self) -> int:
        """Return a cluster ID that was never used."""
        self.next_cluster += 1
        return self.next_cluster - 1

    # Section 3.4, updating clusters.

    def update(self, a: int) -> int:
        """Merge, then check the edges, after a vector was added to node a; return a's survivor."""
        while near := self.mergeable(a):  # the check is continued recursively
            # docs/choices.md, "merges take the most similar first".
            a = self.merge(a, min(near, key=lambda b: (-self.similarity(a, b), b)))
        # docs/choices.md, "edges are judged once, after the merges".
        checked = sorted((self.margin(a, b), b) for b in self.neighbours(a))
        for margin, b in checked:
            if margin < 0:  # inequality 22 does not continue to hold
                self.sever(a, b)
        return a

    def mergeable(self, a: int) -> list[int]:
        """Return the neighbours within the subcluster similarity threshold of a node."""
        return [b for b in self.neighbours(a) if self.similarity(a, b) >= self.t_s]

    def merge(self, a: int, b: int) -> int:
        """Replace two nodes with one that has the vectors and the edges of both; return it."""
        survivor, absorbed = min(a, b), max(a, b)
        joined = (self.neighbours(a) | self.neighbours(b)) - {a, b}
        self.edges = {edge for edge in self.edges if a not in edge and b not in edge}
        self.edges |= {(survivor, other) for other in joined}
        self.members[survivor] = self.members[survivor] + self.members.pop(absorbed)
        del self.cluster[absorbed]
        self.log("merged", survivor, absorbed, self.cluster[survivor])
        return survivor

    def sever(self, a: int, b: int) -> None:
        """Remove an edge of the affected node a; re-join the two parts or split the cluster."""
        self.edges -= {(a, b), (b, a)}
        self.log("severed", a, b, self.cluster[a])
        # docs/choices.md, "re-join by the greatest margin".
        partner = min(self.part(b), key=lambda node: (-self.margin(a, node), node))
        if self.margin(a, partner) >= 0:  # inequality 22
            self.edges.add((a, partner))
            self.log("rejoined", a, partner, self.cluster[a])
        else:
            self.split(a, b)

    def split(self, a: int, b: int) -> None:
        """Give a new ID to the part of node a or to that of node b: the cluster remains split."""
        # docs/choices.md, "at a split, the larger part keeps the ID".
        kept, left = (a, b) if self.rank(self.part(a)) > self.rank(self.part(b)) else (b, a)
        cluster, fresh = self.cluster[a], self.new_cluster()
        for node in self.part(left):
            self.cluster[node] = fresh
        self.log("split", left, kept, cluster, fresh)

    def rank(self, nodes: set[int]) -> tuple[int, ...]:
        """Return what decides which part keeps the ID: more vectors, then the oldest node."""
        return self.size(nodes), -min(nodes)

    def log(self, kind: str, *numbers: int) -> None:
        """Append a step to `events`."""
        self.events.append((kind, len(self.vectors) - 1, *numbers))


# Numerics. The text above needs a unit vector and a cosine, and floating point would do. The
# engines decide on integers, so that every machine gives the same answer; to agree with them in
# the last bit, so do the functions below (docs/choices.md, "decisions are made on integers").


def fixed_point(x: npt.ArrayLike) -> Vector:
    """Return the direction of one vector, cast to float32, as integers: x / ‖x‖ · 2³⁰, rounded."""
    values = np.asarray(x).astype(np.float32).tolist()
    squares = [value * value for value in values]
    squares += [0.0] * ((1 << (len(squares) - 1).bit_length()) - len(squares))
    while len(squares) > 1:  # docs/choices.md, "the norm is summed by folding halves"
        half = len(squares) // 2
        squares = [low + high for low, high in zip(squares[:half], squares[half:], strict=True)]
    norm = math.sqrt(squares[0])
    return np.array([round(value / norm * 2.0**30) for value in values], dtype=np.int64)


def cosine(a: Vector, b: Vector) -> float:
    """Return the cosine of two integer vectors; each product is exact and rounded once."""
    assert a.dtype == b.dtype == np.int64
    return float(_dot(a.tolist(), b.tolist())) / (_length(a.tobytes()) * _length(b.tobytes()))


def _dot(a: list[int], b: list[int]) -> int:
    return sum(map(mul, a, b))


@lru_cache(maxsize=10_000)
def _length(coordinates: bytes) -> float:
    a = np.frombuffer(coordinates, dtype=np.int64).tolist()
    return math.sqrt(float(_dot(a, a)))
