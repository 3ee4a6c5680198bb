"""One run of the identity machine: compare both engines with the model.

A verb takes whole numbers only and makes of them what it needs, so that Hypothesis and a plain
random generator can drive the same set. After each operation everything is compared and every
invariant checked.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from identity.comparison import Comparison, edges_of, plain, plain_events
from identity.graph_model import PINNED
from identity.laws_model import RefusedError
from identity.model import OF, Model
from linkstream import Links, errors
from replay import Replay
from streams import ENGINES, around, make, unit

# Beside the crowds: streams of ties, of mirror images, of sums that cancel out.
KINDS = ("chains", "drifting", "grid", "mirrored", "opposite", "duplicates")
THRESHOLDS = ((0.7, 0.85, 0.8), (0.75, 0.9, 0.9), (0.85, 0.9, 0.95), (0.9, 0.92, 0.95))
OPTIONS = (
    {},
    {},
    {"evidence": "cluster"},
    {"max_subclusters": 9},
    {"max_idle": 12},
    {"min_size": 2, "max_subclusters": 14, "max_idle": 25},
)
WEIGHTS = (1.0, 1.0, 1.0, 0.5, 0.25, 1 / 256)
# What is done, and how often beside the others.
VERBS = {
    "add": 12,
    "add_many": 6,
    "add_in_group": 3,
    "add_group": 4,
    "enrol": 3,
    "same": 5,
    "different": 5,
    "part_neighbours": 2,
    "cut_after_joining": 2,
    "join_after_moving": 2,
    "move": 5,
    "move_where_it_joins": 5,
    "retract": 3,
    "name": 2,
    "rename": 1,
    "ignore": 1,
    "remove": 5,
    "forget": 2,
    "undo": 3,
    "undo_to": 2,
    "redo": 2,
    "undo_and_redo": 3,
    "settle": 2,
    "rebuild": 3,
    "save_and_load": 1,
    "ask": 2,
}
NAMES = ("Ann", "Bob", "Cid")
KEYS = (None, None, "photo", "call")
POOL = 80  # vectors to draw from
LARGEST = 2**16  # of the numbers that verbs are given


def crowd(rng):
    """Return lobes in few dimensions whose subclusters link, merge, split and re-join."""
    d = int(rng.integers(3, 9))
    identities = unit(rng.standard_normal((2, d)))
    centres = around(rng, np.repeat(identities, 4, axis=0), rng.uniform(0.8, 0.95))
    places = centres[rng.integers(len(centres), size=POOL)]
    vectors = around(rng, places, rng.uniform(0.85, 0.97, size=POOL))
    return np.float32(vectors), THRESHOLDS[rng.integers(len(THRESHOLDS))]


def corners(rng):
    """Return wide clouds around three axes, where a moved vector often joins and then splits."""
    centres = np.eye(3)[rng.integers(3, size=POOL)]
    return np.float32(centres + 0.5 * rng.standard_normal((POOL, 3))), (0.7, 0.8, 0.9)


def stream(rng, seed):
    """Return the vectors and thresholds of a trial."""
    chance = rng.random()
    if chance < 0.2:
        return corners(rng)
    return crowd(rng) if chance < 0.7 else make(rng.choice(KINDS), seed, POOL)


class Trial(Comparison):
    """Links on each engine, the model, and the IDs seen so far."""

    def __init__(self, seed, vectors=None):
        rng = np.random.default_rng(seed)
        options = OPTIONS[rng.integers(len(OPTIONS))]
        self.pool, thresholds = vectors(rng) if vectors else stream(rng, seed)
        self.links = [Links(*thresholds, engine=name, threads=1, **options) for name in ENGINES]
        bounds = {name: options.get(name) for name in ("max_subclusters", "max_idle")}
        whole = options.get("evidence") == "cluster"
        self.model = Model(*thresholds, whole_clusters=whole, **bounds)
        self.replay = Replay(whole_clusters=whole)
        self.ids = set()  # every cluster ID ever seen
        self.hashes = {}  # length of the log → hash of the state, where one was taken
        self.counts = Counter()  # operations by verb, and those that were refused
        self.done = []  # what was done, to tell of a failure

    def do(self, verb, numbers):
        """Do one operation, then all comparisons."""
        self.hashes[len(self.model.events)] = self.links[0].state_hash()
        self.done.append((verb, *numbers))
        getattr(self, verb)(*numbers)
        self.counts[verb] += 1
        self.check()

    # Verbs.

    def add(self, row, weight, *_):
        self.agree("add", self.x(row), weight=WEIGHTS[weight % len(WEIGHTS)])

    def add_many(self, row, size, weight, *_):
        X = self.pool[row % 70 :][: size % 8]
        self.agree("add_many", X, weight=WEIGHTS[weight % len(WEIGHTS)])

    def add_in_group(self, row, key, size, weight):
        options = {"weight": WEIGHTS[weight % len(WEIGHTS)], "group": KEYS[2 + key % 2]}
        if size % 2:
            self.agree_on_group("add", self.x(row), **options)
        else:
            self.agree_on_group("add_many", self.pool[row % 70 :][: 1 + size % 3], **options)

    def add_group(self, row, key, size, weight):
        X = self.pool[row % 70 :][: size % 5]
        options = {"group": KEYS[key % len(KEYS)], "weight": WEIGHTS[weight % len(WEIGHTS)]}
        self.agree_on_group("add_group", X, **options)

    def enrol(self, name, row, size, locked):
        X, name = self.pool[row % 70 :][: 1 + size % 3], NAMES[name % len(NAMES)]
        cluster = self.agree("enrol", name, X, locked=bool(locked % 3))
        assert [links.named(name) for links in self.links] == [cluster] * len(self.links)

    def same(self, a, b, of, *_):
        kind = OF[of % 3]
        self.agree("same", self.anchor(a, kind), self.anchor(b, kind), of=kind)

    def different(self, a, b, of, *_):
        kind = OF[of % 3]
        self.agree("different", self.anchor(a, kind), self.anchor(b, kind), of=kind)

    def part_neighbours(self, a, b, *_):
        """Call different() or same() on two vectors of one node, which is rare by chance."""
        nodes = [held for held in self.model.members.values() if len(held) > 1]
        if nodes:
            held = nodes[a % len(nodes)]
            one, other = held[b % len(held)], held[(b // 64) % len(held)]
            self.agree("different" if b % 3 else "same", one, other)

    def cut_after_joining(self, a, b, verb, *_):
        """Join the two largest clusters, then separate two of their vectors."""
        largest = self.largest()
        if len(largest) == 2:
            self.agree("same", *largest, of="clusters")
            joined = self.model.resolve(largest[0])
            members = [i for i, label in enumerate(self.model.labels()) if label == joined]
            pair = members[a % len(members)], members[b % len(members)]
            self.agree("different" if verb % 4 else "same", *pair)

    def join_after_moving(self, a, times, *_):
        """Move vectors of one of the two largest clusters to the other, then join the two."""
        largest = self.largest()
        if len(largest) < 2:
            return
        for i in range(1 + times % 3):
            members = [v for v, label in enumerate(self.model.labels()) if label == largest[1]]
            if members:
                self.move_to(members[(a + i) % len(members)], largest[0])
        self.agree("same", *(largest if times % 2 else largest[::-1]), of="clusters")

    def largest(self):
        """Return the two largest clusters, or all if there are fewer."""
        model = self.model
        sizes = {cluster: model.size(model.nodes_of(cluster)) for cluster in model.live()}
        return sorted(sizes, key=lambda cluster: (-sizes[cluster], cluster))[:2]

    def move(self, vector, cluster, *_):
        self.move_to(self.anchor(vector, "vectors"), self.anchor(cluster, "clusters"))

    def move_where_it_joins(self, a, *_):
        """Move a vector that is similar to a subcluster of another cluster, which is rare."""
        model, labels = self.model, self.model.labels()
        several = [cluster for cluster in sorted(model.live()) if len(model.nodes_of(cluster)) > 1]
        found = [
            (vector, cluster)
            for vector, label in enumerate(labels)
            for cluster in several
            if label not in (-1, cluster)
            and model.nearest_in(model.vectors[vector], cluster)[0] == "joined"
        ]
        if found:
            self.move_to(*found[a % len(found)])

    def move_to(self, vector, cluster):
        """Move a vector; count those that are linked because to join would split the cluster."""
        before = self.model
        answer = self.agree("move", vector, cluster)
        if answer is not None and answer.cluster == before.resolve(cluster):
            staying = [v for v, label in enumerate(before.labels()) if label == answer.cluster]
            labels = self.links[0].labels()[[vector, *staying]]
            assert set(labels.tolist()) == {answer.cluster}
            outcome, *_ = before.nearest_in(before.vectors[vector], answer.cluster)
            self.counts["moved alone"] += (outcome, plain(answer)[0]) == ("joined", "linked")

    def retract(self, number, *_):
        """Retract a correction that holds, or (rarely) another event."""
        there = self.model.corrections()
        for links in self.links:
            assert [correction.number for correction in links.corrections()] == there
        chosen = there[number // 32 % len(there)] if there and number % 32 else number // 32
        self.agree("retract", chosen)

    def name(self, cluster, text, *_):
        self.agree("name", self.anchor(cluster, "clusters"), NAMES[text % len(NAMES)])

    def rename(self, cluster, text, *_):
        self.agree("rename", self.anchor(cluster, "clusters"), (None, *NAMES)[text % 4])

    def ignore(self, cluster, on, *_):
        self.agree("ignore", self.anchor(cluster, "clusters"), on=bool(on % 2))

    def remove(self, vector, *_):
        self.agree("remove", self.anchor(vector, "vectors"))

    def forget(self, cluster, *_):
        self.agree("forget", self.anchor(cluster, "clusters"))

    def undo(self, *_):
        self.agree("undo")
        self.check_restored()

    def undo_to(self, sequence, *_):
        n = len(self.model.events)
        self.agree("undo", to=max(n - 1 - sequence % 30, 0) if sequence % 16 else n + sequence)
        self.check_restored()

    def redo(self, *_):
        self.agree("redo")

    def undo_and_redo(self, times, sequence, *_):
        """Undo some changes, redo one or all, and check state and IDs."""
        before, depth = self.links[0].state_hash(), len(self.model.undone)
        for _ in range(1 + times % 3):
            self.undo()
        if sequence % 4 == 0:
            self.save_and_load()
        while len(self.model.undone) > depth and (sequence % 3 or times % 2):
            self.agree("redo")
        if len(self.model.undone) == depth:
            assert {links.state_hash() for links in self.links} == {before}

    def check_restored(self):
        """Check that the state has its former hash."""
        kind, _, *numbers = self.model.events[-1] if self.model.events else ("", 0)
        if kind == "undone" and numbers[0] in self.hashes:
            for links in self.links:
                assert links.state_hash() == self.hashes[numbers[0]]

    def settle(self, *_):
        """Settle; the model copies the graph."""
        law = {edge for edge, rule in self.model.edges.items() if rule == PINNED}
        said = [links.settle(apply=True).to_dict() for links in self.links]
        assert all(one == said[0] for one in said)
        if self.model.vectors or self.links[0].dimension is not None:
            self.model.adopt(*self.graph())
        assert law <= self.model.edges.keys()

    def rebuild(self, *_):
        """Rebuild; the model follows the events. Without names, a second one changes nothing."""
        said = [links.rebuild(apply=True).to_dict() for links in self.links]
        assert all(one == said[0] for one in said)
        if self.model.members:
            self.model.adopt_rebuild(*self.graph())
            again = {links.rebuild().text() for links in self.links}
            assert self.model.names or again == {_still(self.links[0])}

    def graph(self):
        """Return the events that the model has not seen, and the clusters and edges since."""
        state = self.links[0].state()
        new = plain_events(self.links[0].events(len(self.model.events)))
        clusters = zip(state.numbers.tolist(), state.clusters.tolist(), strict=True)
        return new, clusters, edges_of(state)

    def save_and_load(self, *_):
        again = []
        for links in self.links:
            data = links.to_bytes()
            again.append(Links.from_bytes(data, engine=links.engine, threads=1))
            assert again[-1].to_bytes() == data
            assert again[-1].state_hash() == links.state_hash()
        self.links = again

    def ask(self, row, *_):
        """Check that predict(), settle() without apply and weight 0 change nothing."""
        before = self.links[0].state_hash(), len(self.links[0].events())
        if self.model.vectors:
            told = {
                (int(links.predict([self.x(row)])[0]), links.add(self.x(row), weight=0.0).cluster)
                for links in self.links
            }
            assert len(told) == 1
        self.links[0].settle()
        assert (self.links[0].state_hash(), len(self.links[0].events())) == before

    # How they are done.

    def x(self, number):
        return self.pool[number % len(self.pool)]

    def anchor(self, number, kind):
        """Return a live, a former or (rarely) an unknown vector, subcluster or cluster."""
        model = self.model
        if number % 32 == 31:
            return number
        number //= 32
        there = {
            "vectors": [i for i, label in enumerate(model.labels()) if label >= 0],
            "subclusters": sorted(model.members),
            "clusters": sorted(model.live()),
        }[kind]
        ever = {"vectors": len(model.vectors), "subclusters": model.next_subcluster}
        if number % 8 and there:
            return there[number % len(there)]
        return number % (ever.get(kind, model.next_cluster) + 1)

    def agree(self, verb, *arguments, **options):
        """Call the verb on the model and on each engine; all do it or all refuse it."""
        twin = self.model.copy()
        try:
            expected = getattr(twin, verb)(*arguments, **options)
        except RefusedError as refused:
            self.refuse(str(refused), verb, *arguments, **options)
            self.counts[f"{verb} refused"] += 1
            return None
        for links in self.links:
            answer = getattr(links, verb)(*arguments, **options)
            assert plain(answer) == plain(expected)
            self.check_done(links, verb, *arguments, **options)
        self.model = twin
        return expected

    def check_done(self, links, verb, *numbers, of="vectors", **_):
        """Check that a correction that was accepted did what it says."""
        if verb == "move":
            assert links.labels()[numbers[0]] == links.resolve(numbers[1])
        elif verb in ("same", "different"):
            clusters = links.explain_pair(*numbers, of=of).clusters
            assert (clusters[0] == clusters[1]) == (verb == "same")
            if of == "vectors":
                assert list(clusters) == links.labels()[list(numbers)].tolist()
            elif of == "clusters":
                assert list(clusters) == [links.resolve(number) for number in numbers]

    def agree_on_group(self, verb, X, **options):
        """Add a group on each engine; the model checks that no choice is better."""
        n = len(self.model.events)
        answers = [plain(getattr(links, verb)(X, **options)) for links in self.links]
        assert all(answer == answers[0] for answer in answers)
        kinds = ("created", "joined", "linked")
        new = self.links[0].events(n) if self.links[0].dimension else []
        told = [e.cluster if e.kind != "created" else None for e in new if e.kind in kinds]
        assert plain(getattr(self.model, verb)(X, told=told, **options)) == answers[0]

    def refuse(self, error, verb, *arguments, **options):
        """Check that each engine raises the error and changes nothing."""
        for links in self.links:
            before = links.state_hash(), links.events()
            with pytest.raises(getattr(errors, error)) as raised:
                getattr(links, verb)(*arguments, **options)
            assert getattr(raised.value, "chain", True)
            assert (links.state_hash(), links.events()) == before


def _still(links):
    """Return what a rebuild says that changes nothing."""
    n = links.n_clusters, links.n_subclusters, int((links.labels() >= 0).sum())
    return (
        f"proposed: {n[0]:,} clusters → {n[0]:,}, {n[1]:,} subclusters → {n[1]:,}; "
        f"0 of {n[2]:,} vectors move"
    )
