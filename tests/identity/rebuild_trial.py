"""One run of the rebuild machine: a clusterer, and a book of what it was told.

The book knows nothing of clusters: it has vectors, weights, groups, corrections of vectors, and
names. After each operation names, IDs and corrections are checked against it. After each rebuild
a twin is told the same set in another order, in another mode and by another engine, and must have
the same partition once it is rebuilt. There is no twin while names may keep clusters apart, or
after something was said of clusters (`move`, `enrol`, `same` of clusters), which history made.
"""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from linkstream import Links, Thresholds
from linkstream.clusterer import rebuilding
from linkstream.engine.forest import CLAIM
from linkstream.errors import ArgumentError
from linkstream.identity.rebuild_rows import LIMIT
from streams import ENGINES, around, unit

# What is done, and how often beside the others.
VERBS = {
    "add_many": 8,
    "add_group": 3,
    "absorb": 3,
    "enrol": 1,
    "same": 6,
    "different": 7,
    "part_equals": 4,
    "same_clusters": 1,
    "move": 1,
    "retract": 2,
    "name": 4,
    "rename": 1,
    "ignore": 1,
    "remove": 6,
    "forget": 1,
    "undo": 3,
    "redo": 2,
    "settle": 1,
    "rebuild": 10,
    "rebuild_with_thresholds": 2,
    "save_and_load": 1,
}
MODES = ({}, {"mode": "best"}, {"evidence": "cluster"}, {"heal": "join"})
THRESHOLDS = (Thresholds(0.75, 0.8, 0.85), Thresholds(0.65, 0.85, 0.9), Thresholds(0.85, 0.9, 0.9))
LIMITS = (LIMIT, LIMIT, 12)
WEIGHTS = (1.0, 1.0, 0.5, 0.25)
POOL, MOST = 40, 60  # vectors to draw from; vectors at a time
LARGEST = 2**16


@dataclass
class Book:
    """What a clusterer was told, by numbers of vectors.

    Attributes:
        rows: the row of the pool and the weight of each vector.
        groups: the vectors of each group.
        said: corrections of vectors, by their numbers.
        names: the ID that a name was given to.
        of_clusters: whether something was said of clusters.
    """

    rows: dict[int, tuple[int, float]] = field(default_factory=dict)
    groups: list[list[int]] = field(default_factory=list)
    said: dict[int, tuple[str, int, int]] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    of_clusters: bool = False

    def standing(self):
        """Return the corrections of vectors that were not removed."""
        return [(verb, a, b) for verb, a, b in self.said.values() if {a, b} <= self.rows.keys()]


class RebuildTrial:
    """A clusterer, its book, and the books before each change that can be undone."""

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng([seed, 7])
        centres = unit(rng.standard_normal((4, 6)))
        places = centres[rng.integers(4, size=POOL)]
        self.pool = np.float32(around(rng, places, rng.uniform(0.7, 0.95)))
        self.limit, self.named = LIMITS[rng.integers(len(LIMITS))], bool(seed % 2)
        self.links = self.fresh(THRESHOLDS[rng.integers(len(THRESHOLDS))])
        self.book, self.past, self.taken = Book(), [], []
        self.counts, self.given = Counter(), 0

    def fresh(self, thresholds):
        """Return an empty clusterer of any mode and engine."""
        mode = MODES[self.rng.integers(len(MODES))]
        engine = ENGINES[self.rng.integers(len(ENGINES))]
        return Links.from_thresholds(thresholds, engine=engine, threads=1, **mode)

    def do(self, verb, numbers):
        """Do one operation; undo needs the book before it. Then check all."""
        if verb in ("undo", "redo"):
            getattr(self, verb)(*numbers)
        else:
            before, first = copy.deepcopy(self.book), self.links.n_events
            self.hold = self.links.state_hash()
            getattr(self, verb)(*numbers)
            if self.links.n_events > first:
                self.past.append((first, before, self.hold))
                self.taken.clear()
        self.counts[verb] += 1
        self.check()

    # Verbs.

    def add_many(self, row, size, weight, *_):
        numbers = [(row + i) % POOL for i in range(1 + size % 7)]
        if len(self.book.rows) + len(numbers) <= MOST:
            self.add(numbers, WEIGHTS[weight % len(WEIGHTS)], self.links.add_many)

    def add_group(self, row, size, step, *_):
        numbers = [(row + i * (step % 3)) % POOL for i in range(2 + size % 3)]  # equal ones, too
        if len(self.book.rows) + len(numbers) <= MOST:
            self.book.groups.append(self.add(numbers, 1.0, self.links.add_group))

    def absorb(self, row, size, verb, *_):
        """Absorb another clusterer with vectors and a correction."""
        numbers = [(row + i) % POOL for i in range(2 + size % 6)]
        if len(self.book.rows) + len(numbers) <= MOST:
            other, known = self.fresh(self.links.thresholds), set(self.numbers())
            other.add_many(self.pool[numbers])
            said = ("same", "different")[verb % 2]
            getattr(other, said)(0, 1)
            try:
                place = self.links.absorb(other).vectors.tolist()
            except ArgumentError:  # `same` across two names
                self.refused("absorb")
                return
            self.book.rows |= {place[i]: (n, 1.0) for i, n in enumerate(numbers)}
            self.record(known, (said, place[0], place[1]))

    def enrol(self, row, size, *_):
        if self.named and len(self.book.names) < 4:
            numbers = [(row + i) % POOL for i in range(1 + size % 2)]
            self.given += 1
            text, first = f"name {self.given}", self.links.n_vectors
            self.book.names[text] = self.links.enrol(text, self.pool[numbers])
            self.book.rows |= {first + i: (n, 1.0) for i, n in enumerate(numbers)}
            self.book.of_clusters = True

    def add(self, numbers, weight, verb):
        first = self.links.n_vectors
        verb(self.pool[numbers], weight=weight)
        told = list(range(first, self.links.n_vectors))
        self.book.rows |= dict(zip(told, [(n, weight) for n in numbers], strict=True))
        return told

    def same(self, a, b, *_):
        self.correct("same", self.vector(a), self.vector(b))

    def different(self, a, b, *_):
        self.correct("different", self.vector(a), self.vector(b))

    def part_equals(self, a, b, *_):
        """Call different() or same() on two equal vectors."""
        held = {}
        for vector, (row, _) in self.book.rows.items():
            held.setdefault(row, []).append(vector)
        several = [vectors for vectors in held.values() if len(vectors) > 1]
        if several:
            mine = several[a % len(several)]
            verb = "different" if a % 4 else "same"
            self.correct(verb, mine[b % len(mine)], mine[b // 64 % len(mine)])

    def correct(self, verb, a, b):
        if None in (a, b) or a == b:
            return
        known = set(self.numbers())
        try:
            getattr(self.links, verb)(a, b)
        except ArgumentError:
            self.refused(verb)
            return
        labels = self.links.labels()
        assert (labels[a] == labels[b]) == (verb == "same")
        self.record(known, (verb, a, b))

    def record(self, known, said):
        """Record a correction by its number, if it was recorded."""
        self.book.said |= dict.fromkeys(set(self.numbers()) - known, said)

    def same_clusters(self, a, b, *_):
        self.of_clusters("same", a, b, of="clusters")

    def move(self, a, b, *_):
        self.of_clusters("move", a, b)

    def of_clusters(self, verb, a, b, **options):
        """Call a verb on clusters, or a vector and a cluster, of which history decides."""
        ids = [view.id for view in self.links.clusters()]
        if ids and self.named:
            first = self.vector(a) if verb == "move" else ids[a % len(ids)]
            names = {view.name for view in self.links.clusters()}
            try:
                getattr(self.links, verb)(first, ids[b % len(ids)], **options)
            except ArgumentError:
                self.refused(verb)
                return
            self.book.of_clusters = True
            self.lose(names - {view.name for view in self.links.clusters()})

    def lose(self, names):
        """Take names out of the book, of clusters that a move emptied."""
        for name in names - {None}:
            assert self.links.resolve(self.book.names[name]) == -1
            del self.book.names[name]

    def ignore(self, a, *_):
        clusters = self.links.clusters()
        if clusters:
            chosen = clusters[a % len(clusters)]
            self.links.ignore(chosen.id, on=not chosen.ignored)

    def retract(self, a, *_):
        if self.book.said:
            number = sorted(self.book.said)[a % len(self.book.said)]
            if number in self.numbers():
                self.links.retract(number)
                del self.book.said[number]

    def name(self, a, *_):
        clusters = [view for view in self.links.clusters() if view.name is None]
        if clusters and self.named and len(self.book.names) < 4:
            self.given += 1
            text, cluster = f"name {self.given}", clusters[a % len(clusters)].id
            self.links.name(cluster, text)
            self.book.names[text] = cluster

    def rename(self, a, clear, *_):
        if self.book.names:
            old = sorted(self.book.names)[a % len(self.book.names)]
            self.given += 1
            cluster = self.links.named(old)
            self.links.rename(cluster, None if clear % 2 else f"name {self.given}")
            del self.book.names[old]
            if not clear % 2:
                self.book.names[f"name {self.given}"] = cluster

    def remove(self, a, *_):
        vector = self.vector(a)
        if vector is not None:
            before, self.book = self.book, copy.deepcopy(self.book)
            self.drop([vector])
            try:
                self.links.remove(vector)
            except ArgumentError:  # the only prototype of a subcluster that took others in
                assert before.of_clusters
                self.book = before

    def forget(self, a, *_):
        clusters = self.links.clusters()
        if clusters and a % 3 == 0:
            chosen = clusters[a % len(clusters)].id
            self.drop(np.flatnonzero(self.links.labels() == chosen).tolist())
            self.links.forget(chosen)

    def drop(self, vectors):
        """Take vectors out of the book, and the names of clusters that have no others."""
        labels = self.links.labels()
        left = np.delete(labels, vectors).tolist()
        for name in list(self.book.names):
            if self.links.named(name) not in left:
                del self.book.names[name]
        for vector in vectors:
            del self.book.rows[vector]

    def settle(self, *_):
        self.links.settle(apply=True)

    def rebuild(self, *_):
        self.rebuilt(None)

    def rebuild_with_thresholds(self, a, *_):
        if self.links.n_clusters:  # else other settings are refused
            self.rebuilt(THRESHOLDS[a % len(THRESHOLDS)])

    def save_and_load(self, *_):
        self.links = Links.from_bytes(self.links.to_bytes(), engine=self.links.engine, threads=1)

    def undo(self, back, *_):
        """Undo the last change or some of them."""
        if self.past:
            back = 1 + back % min(3, len(self.past))
            first, book, hash_ = self.past[-back]
            self.taken.append((self.past[-back:], self.book, self.links.state_hash()))
            del self.past[-back:]
            self.links.undo(to=first)
            self.book = book
            assert self.links.state_hash() == hash_

    def redo(self, *_):
        if self.taken:
            past, book, hash_ = self.taken.pop()
            self.links.redo()
            self.past += past
            self.book = book
            assert self.links.state_hash() == hash_

    # Checks.

    def rebuilt(self, thresholds):
        """Rebuild; check IDs, events, and that a twin has the same partition."""
        before, state = self.links.labels(), self.links.state()
        claimed = state.clusters[state.flags & CLAIM > 0].tolist()
        proposed = rebuilding.rebuild(
            self.links.core, False, thresholds=thresholds, limit=self.limit
        )
        assert self.links.state_hash() == self.hold
        done = rebuilding.rebuild(self.links.core, True, thresholds=thresholds, limit=self.limit)
        assert done.flows == proposed.flows
        after = self.links.labels()
        for cluster in set(before[before >= 0].tolist()):
            inside, home = after[before == cluster], self.links.resolve(cluster)
            most = np.count_nonzero(inside == home) == np.bincount(inside).max()
            assert most or cluster in claimed  # prototypes count before vectors
        moved = self.links.resolve_many(before) != after
        assert np.count_nonzero(moved) == done.n_moved
        if not (self.book.names or self.book.of_clusters):
            self.check_twin()

    def check_twin(self):
        """Tell another clusterer the same set in another order, and rebuild it."""
        twin, book, rng = self.fresh(self.links.thresholds), self.book, self.rng
        grouped = {v for group in book.groups for v in group}
        steps = [[v for v in group if v in book.rows] for group in book.groups]
        steps = [group for group in steps if group]
        steps += [[vector] for vector in book.rows if vector not in grouped]
        place = {}
        for step in (steps[i] for i in rng.permutation(len(steps))):
            rows, weights = zip(*(book.rows[v] for v in step), strict=True)
            add = twin.add_many if step[0] not in grouped else twin.add_group
            place |= dict(zip(step, range(twin.n_vectors, twin.n_vectors + len(step)), strict=True))
            add(self.pool[list(rows)], weight=weights)
        said = book.standing()
        for verb, a, b in (said[i] for i in rng.permutation(len(said))):
            getattr(twin, verb)(place[a], place[b])
        rebuilding.rebuild(twin.core, True, limit=self.limit)
        assert twin.partition_hash() == self.links.partition_hash()
        self.counts["twins"] += 1

    def check(self):
        """Check vectors, corrections, groups, names and IDs against the book."""
        labels, book, links = self.links.labels(), self.book, self.links
        assert np.flatnonzero(labels >= 0).tolist() == sorted(book.rows)
        for verb, a, b in book.standing():
            assert (labels[a] == labels[b]) == (verb == "same")
        for group in book.groups:
            there = [labels[vector] for vector in group if vector in book.rows]
            assert len(set(there)) == len(there)
        assert {view.name for view in links.clusters()} - {None} == book.names.keys()
        for name, cluster in book.names.items():
            assert links.named(name) == links.resolve(cluster)

    def refused(self, verb):
        """Check that a refused correction changed nothing."""
        assert self.links.state_hash() == self.hold
        self.counts[f"{verb} refused"] += 1

    def numbers(self):
        return [each.number for each in self.links.corrections()]

    def vector(self, number):
        there = sorted(self.book.rows)
        return there[number % len(there)] if there else None
