"""All verbs of Links on the naive graph, to compare both engines with.

Everything is worked out again each time from the kept vectors, the members of each node, and what
people said: where a pin stands, who is barred from whom, which way leads through a tree. It shares
no code with the package. Settling is not done here: the model takes over the graph that comes of
it (`adopt`) and the machine checks what must hold of it. Of assignments of a group that are
equally good it takes the one it is told of, once it has found that none is better.
"""

from __future__ import annotations

import copy

from identity.graph_model import CLAIM, FULL, LOCKED, PINNED, SETTLED, TESTED
from identity.laws_model import CLUSTERS, ENROLLED, Law, LawsModel, Pin, RefusedError, speaks
from linkstream.paper.algorithm import Answer, cosine, fixed_point
from linkstream.paper.thresholds import anisotropic_pair_threshold

OF = ("vectors", "subclusters", "clusters")
LASTING = (
    "events",
    "marks",
    "next_subcluster",
    "next_cluster",
    "undone",
)  # what no undo takes back
SCALE = 2**40  # totals of similarities are sums of whole numbers


class Model(LawsModel):
    def __init__(self, t_c, t_s, t_p, **options):
        super().__init__(t_c, t_s, t_p, **options)
        self.marks = []  # sequence numbers at which a change or an undo begins
        self.changes = []  # that stand: sequence of the first event, and a copy of all before it
        self.undone = []  # that can be redone: sequence of the event, and a copy of all before it

    # Changes, and taking them back.

    def copy(self):
        twin = copy.copy(self)
        for name, value in vars(self).items():
            if name == "members":
                twin.members = {node: list(held) for node, held in value.items()}
            elif name == "groups":
                twin.groups = [list(group) for group in value]
            elif isinstance(value, dict | list | set):
                setattr(twin, name, copy.copy(value))
        return twin

    def begin(self):
        """Begin a change; it lasts to the next beginning."""
        self.marks.append(len(self.events))
        self.undone.clear()
        before = self.copy()
        self.changes.append((len(self.events), before))

    def undo(self, to=None):
        """Undo the last change, or all back to the change of event `to`."""
        place = len(self.changes) - 1 if to is None else self.change_of(to)
        if place is None or place < 0:
            raise RefusedError("UndoError")
        first, before = self.changes[place]
        self.undone.append((len(self.events), self.copy()))
        self.go_to(before)
        self.log("undone", first)

    def redo(self):
        """Redo the last undo if nothing has changed since."""
        if not self.undone:
            raise RefusedError("UndoError")
        first, before = self.undone.pop()
        self.go_to(before)
        self.log("redone", first)

    def go_to(self, before):
        """Restore a copy; the log continues and numbers are not reused."""
        lasting = {name: vars(self)[name] for name in LASTING}
        vars(self).clear()
        vars(self).update(vars(before.copy()) | lasting)
        self.marks.append(len(self.events))

    def change_of(self, sequence):
        """Return the index of the change of an event; None if it was undone."""
        for place, (first, _) in enumerate(self.changes):
            later = [mark for mark in self.marks if mark > first]
            if first <= sequence < min(later, default=len(self.events)):
                return place
        return None

    def adopt(self, events, clusters, edges):
        """Copy the graph after settling; read joins from its events."""
        self.begin()
        self.events += events
        for kind, _, *numbers in events:
            if kind == "split":
                self.next_cluster = max(self.next_cluster, numbers[3] + 1)
            elif kind == "united":
                self.leave(numbers[3], numbers[2])
        self.cluster, self.edges = dict(clusters), dict(edges)

    def adopt_rebuild(self, events, clusters, edges):
        """Follow the events of a rebuild; copy what they say of clusters and edges."""
        self.begin()
        self.events += events
        for kind, _, *numbers in events:
            if kind == "parted":
                self.next_cluster = max(self.next_cluster, numbers[1] + 1)
            elif kind == "transferred" and numbers[0] >= 0:
                self.transfer(*numbers[:3])
            elif kind == "vanished":
                assert self.members.pop(numbers[0]) == []
                del self.seen[numbers[0]]
                self.flags.pop(numbers[0], None)
                self.became[numbers[0]] = numbers[1]
            elif kind == "replaced":
                self.leave(numbers[1], numbers[0])
        self.cluster, self.edges = dict(clusters), dict(edges)
        self.unjudged = set()

    def transfer(self, member, origin, node):
        """Put a vector of one node into another, which may be new."""
        self.members[origin].remove(member)
        if self.missing_weight[member] == FULL:
            self.missing_weight[member] = 0
        self.members.setdefault(node, []).append(member)
        first, last = self.seen.get(node, (member, member))
        self.seen[node] = min(first, member), max(last, member)
        self.next_subcluster = max(self.next_subcluster, node + 1)

    # Corrections.

    def same(self, a, b, of="vectors"):
        one, other = (self.pins(number, of, every=False)[0] for number in (a, b))
        if one == other:
            return
        level = OF.index(of)
        if self.said_apart(one, other, level):
            raise RefusedError("ContradictionError")
        names = {self.names.get(self.cluster[pin.node]) for pin in (one, other)} - {None}
        if len(names) > 1:
            raise RefusedError("ContradictionError")
        if of == "clusters":
            sides = [[pin.node for pin in self.pins(number, of, every=True)] for number in (a, b)]
            plans = self.to_unite_clusters(one, other, sides)
        else:
            plans = self.to_unite(one, other, level)
        self.enact("same", a, b, Law(True, (one,), (other,), level, len(self.events)), plans)

    def different(self, a, b, of="vectors"):
        ours, theirs = (self.pins(number, of, every=True) for number in (a, b))
        if ours == theirs:
            raise RefusedError("ArgumentError")
        level = OF.index(of)
        if of != "clusters" and any(
            speaks(pin, theirs[0]) for pin in self.closure(ours[0], level) if pin != ours[0]
        ):
            raise RefusedError("ContradictionError")
        plans = self.to_part(ours[0], theirs[0], level)
        self.enact("different", a, b, Law(False, ours, theirs, level, len(self.events)), plans)

    def retract(self, correction):
        if all(law.sequence != correction or law.level == ENROLLED for law in self.laws):
            raise RefusedError("UnknownIdError")
        self.begin()
        self.log("retracted", correction, -1, 1)
        self.retract_words(correction)
        self.judge(self.obey())

    def corrections(self):
        """Return the numbers of the corrections that hold."""
        return sorted({law.sequence for law in self.laws if law.level != ENROLLED})

    def pins(self, number, of, every):
        """Return the pins of an argument of same() or different()."""
        if of == "vectors":
            self.check_vector(number)
            return (Pin(self.node_of(number), number),)
        if of == "subclusters":
            if number not in self.members:
                raise RefusedError("UnknownIdError")
            return (Pin(number, None),)
        nodes = self.nodes_of(self.check_cluster(number))
        if every:
            return tuple(Pin(node, None) for node in nodes)
        return (Pin(max(nodes, key=lambda node: (self.count(node), -node)), None),)

    def enact(self, verb, a, b, law, plans):
        """Carry out a correction by the first possible plan."""
        for plan in plans:
            twin = self.copy()
            try:
                twin.begin()
                twin.log(verb, a, b, law.level)
                twin.follow(law, plan)
            except RefusedError:
                continue
            if (verb, law.level) == ("same", CLUSTERS) and twin.resolve(a) != twin.resolve(b):
                continue
            vars(self).update(vars(twin))
            return
        raise RefusedError("ContradictionError")

    def follow(self, law, plan):
        """Record a correction, apply its plan and enforce the laws."""
        self.laws.append(law)
        for side, pins in enumerate((law.a, law.b)):
            for pin in pins:
                self.log_pin(pin, side)
        for correction, node in plan.retracted:
            self.log("retracted", correction, node, 0)
            self.retract_words(correction, node)
        for group in plan.leaving:
            for vector in group:
                if self.hollow_without(vector):
                    raise RefusedError("ArgumentError")
                self.withdraw(vector)
                if vector == group[0]:
                    self.put(vector, "new")
                else:
                    self.put(vector, "linked", self.node_of(group[0]))
        self.enforce()

    def log_pin(self, pin, side):
        self.log("pinned", pin.node, -1 if pin.vector is None else pin.vector, side)

    def move(self, vector, cluster):
        self.check_vector(vector)
        target = self.check_cluster(cluster)
        old = self.node_of(vector)
        if self.cluster[old] == target:
            raise RefusedError("ArgumentError")
        self.check_move(vector, target)
        if self.hollow_without(vector):
            raise RefusedError("ArgumentError")
        self.begin()
        sequence = len(self.events)
        self.log("relocated", vector, target)
        self.log_pin(Pin(old, None), 2)
        self.laws = [law for law in self.laws if law.mover != vector]
        self.withdraw(vector)
        outcome, nearest, _ = self.nearest_in(self.vectors[vector], target)
        outcome, held = self.put_into(target, vector, outcome, nearest)
        answer = Answer(outcome, None, None, self.cluster[held], held)
        ours, theirs = Pin(held, vector), Pin(nearest if outcome == "linked" else held, None)
        self.log_pin(ours, 0)
        self.log_pin(theirs, 1)
        self.laws.append(Law(False, (ours,), (Pin(old, None),), 0, sequence, vector))
        self.laws.append(Law(True, (ours,), (theirs,), 0, sequence, vector))
        self.enforce()
        return answer

    def put_into(self, cluster, vector, outcome, nearest):
        """Put a vector into a cluster so that no part of the cluster is cut off."""
        before = self.copy()
        held = self.put(vector, outcome, nearest)
        staying = [node for node in before.nodes_of(cluster) if node in self.members]
        if any(self.cluster[node] != cluster for node in staying):
            vars(self).update(vars(before))
            outcome, held = "linked", self.put(vector, "linked", nearest)
        return outcome, held

    def nearest_in(self, q, cluster):
        """Return outcome, most similar node and similarity of a vector in a cluster."""
        near = {node: cosine(q, self.sum(node)) for node in self.nodes_of(cluster)}
        nearest = max(near, key=near.get)
        return "joined" if near[nearest] >= self.t_s else "linked", nearest, near[nearest]

    def check_move(self, vector, target):
        for law in self.laws:
            for ours, theirs in ((law.a, law.b), (law.b, law.a)):
                if law.mover == vector or all(pin.vector != vector for pin in ours):
                    continue
                inside = [self.cluster[node] == target for node in self.places(theirs)]
                if not all(inside) if law.together else any(inside):
                    raise RefusedError("ContradictionError")
        labels = self.labels()
        for group in self.groups:
            if vector in group and target in [labels[mate] for mate in group if mate != vector]:
                raise RefusedError("ContradictionError")

    def check_vector(self, number):
        if not 0 <= number < len(self.vectors):
            raise RefusedError("UnknownIdError")
        if self.node_of(number) is None:
            raise RefusedError("RemovedError")

    def check_cluster(self, number):
        if not 0 <= number < self.next_cluster:
            raise RefusedError("UnknownIdError")
        live = self.resolve(number)
        if live < 0:
            raise RefusedError("RemovedError")
        return live

    # Vectors in.

    def add(self, x, weight=1.0, group=None, told=None):
        self.begin()
        if group is not None:
            return self.place_together([x], weight, group, told)[0]
        answer = self.take(fixed_point(x), missing_weight=missing_weight_of(weight))
        self.tend(len(self.vectors) - 1)
        return answer

    def add_many(self, X, weight=1.0, group=None, told=None):
        each = [None] * len(X) if told is None else [[cluster] for cluster in told]
        answers = [self.add(x, weight, group, one) for x, one in zip(X, each, strict=True)]
        return [answer.cluster for answer in answers]

    def add_group(self, X, group=None, weight=1.0, told=None):
        if not len(X):
            return []
        self.begin()
        return [answer.cluster for answer in self.place_together(X, weight, group, told)]

    def place_together(self, X, weight, key, told):
        """Place a group into the given clusters (None: a new one); check that none is better."""
        place = self.keys.get(key, len(self.groups))
        labels = self.labels()
        taken = {labels[member] for group in self.groups[place:][:1] for member in group}
        fixed = [fixed_point(x) for x in X]
        options = [self.options(q, taken) for q in fixed]
        for cluster, row in zip(told, options, strict=True):
            assert cluster is None or cluster in row
        assert total_of(told, options) == best_total(options)
        before = len(self.vectors)
        self.log("grouped", key, len(X))
        if place == len(self.groups):
            self.groups.append([])
        if key is not None:
            self.keys[key] = place
        answers = []
        for q, cluster, row in zip(fixed, told, options, strict=True):
            outcome, target, similarity, threshold, rule = row.get(
                cluster, ("new", None, None, None, TESTED)
            )
            self.groups[place].append(len(self.vectors))
            how = {
                "missing_weight": missing_weight_of(weight),
                "outcome": outcome,
                "target": target,
                "rule": rule,
            }
            answer = self.take(q, **how)
            answers.append(answer._replace(similarity=similarity, threshold=threshold))
        self.tend(before)
        return answers

    def options(self, q, taken):
        """Return the clusters that accept a vector by equations 20 and 21, with the outcome."""
        found = {}
        for cluster in sorted(self.live() - taken):
            nodes = self.nodes_of(cluster)
            outcome, nearest, similarity = self.nearest_in(q, cluster)
            threshold, rule = self.t_s, TESTED
            if outcome == "linked" and self.whole_clusters:
                if not self.total(nodes).any():
                    continue
                if similarity < min(
                    self.t_s, anisotropic_pair_threshold(self.t_c, self.t_p, 1.0, 1.0)
                ):
                    nearest = min(nodes)
                similarity, rule = cosine(q, self.total(nodes)), SETTLED
                threshold = anisotropic_pair_threshold(self.t_c, self.t_p, self.mass(nodes), 1.0)
            elif outcome == "linked":
                threshold = anisotropic_pair_threshold(
                    self.t_c, self.t_p, self.mass([nearest]), 1.0
                )
            if similarity >= threshold:
                found[cluster] = outcome, nearest, similarity, threshold, rule
        return found

    def enrol(self, name, X, locked=True):
        self.begin()
        since = len(self.events)
        self.log("enrolled", name, len(X), int(locked))
        cluster = next((c for c, text in self.names.items() if text == name), None)
        before, nodes = len(self.vectors), []
        for x in X:
            q, outcome, target = fixed_point(x), "new", None
            if cluster is not None:
                outcome, target = "linked", self.nearest_in(q, cluster)[1]
            self.names[self.next_cluster if cluster is None else cluster] = name
            answer = self.take(q, outcome=outcome, target=target, rule=PINNED)
            cluster = answer.cluster
            nodes.append(answer.subcluster)
        first, *others = (Pin(-1, vector) for vector in range(before, len(self.vectors)))
        self.laws += [Law(True, (first,), (other,), ENROLLED, since) for other in others]
        for node in nodes:
            self.flag(node, CLAIM | (LOCKED if locked else 0))
        self.enforce()
        self.tend(before)
        return cluster

    # Names and removal.

    def name(self, cluster, text):
        cluster = self.check_cluster(cluster)
        if self.names.get(cluster, text) != text:
            raise RefusedError("ArgumentError")
        self.rename(cluster, text)

    def rename(self, cluster, text):
        cluster = self.check_cluster(cluster)
        if text is not None and any(c != cluster and t == text for c, t in self.names.items()):
            raise RefusedError("ArgumentError")
        if self.names.get(cluster) == text:
            return
        self.begin()
        self.names.pop(cluster, None)
        if text is not None:
            self.names[cluster] = text
        self.log("named", cluster, text)

    def ignore(self, cluster, on=True):
        cluster = self.check_cluster(cluster)
        self.begin()
        (self.ignored.add if on else self.ignored.discard)(cluster)
        self.log("ignored", cluster, int(on))

    def remove(self, vector):
        self.check_vector(vector)
        if self.hollow_without(vector):
            raise RefusedError("ArgumentError")
        self.begin()
        self.log("dropped", vector)
        self.withdraw(vector)
        self.enforce()

    def forget(self, cluster):
        cluster = self.check_cluster(cluster)
        self.begin()
        self.forget_for(cluster, 0)
        self.enforce()


def missing_weight_of(weight):
    return FULL - max(round(weight * FULL), 1)


def total_of(choice, options):
    return sum(
        round(row[cluster][2] * SCALE)
        for cluster, row in zip(choice, options, strict=True)
        if cluster is not None
    )


def best_total(options, taken=frozenset()):
    """Return the greatest total of all one-to-one assignments by trying each."""
    if not options:
        return 0
    row, *rest = options
    ways = [
        round(row[cluster][2] * SCALE) + best_total(rest, taken | {cluster})
        for cluster in row.keys() - taken
    ]
    return max([best_total(rest, taken), *ways])
