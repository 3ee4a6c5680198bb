"""Laws: what corrections require of the graph, and the chain behind a contradiction.

A correction names *subjects*: a vector, or a whole subcluster. `closure` finds what follows from
corrections of one level: a correction of a subcluster or a cluster is not one of each of its
vectors (docs/choices.md, "The more specific correction wins"). `Laws` finds what that requires of
subclusters, which vectors share.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from linkstream.engine.contract import Requirements
from linkstream.engine.forest import PINNED, find_root
from linkstream.engine.state import Integers, State
from linkstream.errors import ContradictionError
from linkstream.identity.lawbook import ENROLLED, Law
from linkstream.identity.ledger import GONE, KINDS, SPOKEN, VECTORS, Ledger

Reason = Law | str  # a correction, or what is none: a group


@dataclass(frozen=True, slots=True)
class Laws:
    """What corrections, groups and names require of subclusters and clusters.

    Each is looked up in the ledger when it is asked for, by the subclusters that it names.
    """

    ledger: Ledger = field(default_factory=Ledger)

    @classmethod
    def of(cls, ledger: Ledger) -> Laws:
        """Return the laws of a ledger."""
        return cls(ledger)

    def said(self, node: int) -> list[tuple[frozenset[int], Law]]:
        """Return the subclusters that each correction keeps apart from one, oldest law first."""
        return [(theirs, law) for theirs, law in self._about(node) if not law.together]

    def bonds(self, node: int) -> dict[int, Law]:
        """Return the subclusters that must stay with one, each with the first reason."""
        found: dict[int, Law] = {}
        for theirs, law in self._about(node):
            for other in theirs - {node} if law.together else ():
                found.setdefault(other, law)
        return found

    def _about(self, node: int) -> Iterator[tuple[frozenset[int], Law]]:
        """Yield the other side of each correction that names a subcluster, oldest first."""
        for law in self.ledger.laws_at(node):
            sides = [frozenset(self.ledger.nodes(side)) for side in law.sides]
            for ours, theirs in (sides, sides[::-1]):
                if node in ours:
                    yield theirs, law

    @property
    def names(self) -> Mapping[int, str]:
        """Names of clusters, by ID."""
        return self.ledger.names

    def barred(self, node: int) -> dict[int, str]:
        """Return the subclusters that may not share a cluster with one, and why."""
        said = {other: law.text for others, law in self.said(node) for other in others}
        return {**mates(self.ledger, node), **said}

    def bar(self, a: int, b: int) -> Reason:
        """Return what keeps two subclusters apart: a correction before a group."""
        laws = (law for others, law in self.said(a) if b in others)
        return next(laws, None) or mates(self.ledger, a)[b]

    def bloc(self, node: int) -> dict[int, tuple[Law, ...]]:
        """Return the subclusters that must stay with one, each with the chain of reasons."""
        found: dict[int, tuple[Law, ...]] = {node: ()}
        todo = deque([node])
        while todo:
            here = todo.popleft()
            for other, reason in self.bonds(here).items():
                if other not in found:
                    found[other] = (*found[here], reason)
                    todo.append(other)
        return found

    def chain(self, a: int, b: int) -> tuple[Law, ...] | None:
        """Return why two subclusters must share a cluster; None if they need not."""
        return self.bloc(a).get(b)

    def chain_apart(self, one: Subject, other: Subject, pair: tuple[int, int]) -> list[Reason]:
        """Return every step from a subject to another that keeps them apart.

        `pair` are two subclusters that must stay apart, one that must stay with each subject.
        """
        ours, theirs = (self.bloc(s[1])[node] for s, node in zip((one, other), pair, strict=True))
        reason = self.bar(*pair)
        there = full_chain(self.ledger, other, (*theirs, reason))[:-1]
        return [*full_chain(self.ledger, one, (*ours, reason)), *reversed(there)]

    def clash(self, ones: Iterable[int], others: Iterable[int]) -> tuple[int, int] | None:
        """Return two subclusters, one of each side, that must stay apart (the oldest), if any."""
        return next(self.clashes(ones, others), None)

    def clashes(self, ones: Iterable[int], others: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Yield all pairs of subclusters, one of each side, that must stay apart; oldest first."""
        there = set(others)
        for a in sorted(ones):
            found = there & mates(self.ledger, a).keys()
            found |= {b for barred, _ in self.said(a) for b in there & barred}
            for b in sorted(found):
                yield a, b

    def refuse_names(self, one: int, other: int, said: str) -> None:
        """Raise ContradictionError if two clusters have different names."""
        names = [self.names.get(cluster) for cluster in (one, other)]
        if None not in names and names[0] != names[1]:
            chain = tuple(f"cluster {c} is {n!r}" for c, n in zip((one, other), names, strict=True))
            raise ContradictionError(
                f"{said}, where {' and '.join(chain)}",
                expected="two of one name, or one without a name",
                remedy="rename(cluster, None) takes a name away.",
                chain=chain,
            )

    def requirements(self) -> Requirements:
        """Return what holds when clusters are settled: of subclusters and of clusters."""
        numbers = {name: i for i, name in enumerate(sorted(self.names.values()))}
        barred = {tuple(sorted((a, b))) for a in self.ledger.pinned() for b in self.barred(a)}
        return Requirements(
            frozenset((a, b) for a, b in barred),
            {cluster: numbers[name] for cluster, name in self.names.items()},
        )

    def rows(self, state: State, members: list[list[int]]) -> Integers:
        """Return pairs of rows (groups of subclusters) that corrections and groups keep apart."""
        place = {number: row for row, list_ in enumerate(members) for number in list_}
        pairs = {
            (place[a], place[b])
            for a in self.ledger.pinned()
            for b in self.barred(a)
            if a in place and b in place
        }
        return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)

    def labels(self, state: State, members: list[list[int]]) -> Integers:
        """Return a number for the name of each row, −1 for none.

        Rows of different names may not be united.
        """
        if not self.names:
            return np.full(len(members), -1, dtype=np.int64)
        cluster = dict(zip(state.numbers.tolist(), state.clusters.tolist(), strict=True))
        names = [self.names.get(cluster[row[0]]) for row in members]
        number = {name: i for i, name in enumerate(sorted({n for n in names if n is not None}))}
        found = [-1 if name is None else number[name] for name in names]
        return np.array(found, dtype=np.int64)


def mates(ledger: Ledger, node: int) -> dict[int, str]:
    """Return the subclusters that groups keep apart from this one, and why."""
    found: dict[int, str] = {}
    for pin in ledger.at(node):
        group = ledger.groups[pin.group] if pin.group >= 0 else []
        for mate in map(ledger.pins.__getitem__, group):
            if mate is not pin and mate.node != GONE:
                reason = f"vectors {pin.vector} and {mate.vector} were seen together"
                found.setdefault(mate.node, reason)
    return found


def blocs(state: State) -> list[list[int]]:
    """Return groups of subclusters that pinned edges tie, by number; groups by their oldest."""
    root = {number: number for number in state.numbers.tolist()}
    for a, b in state.edges[state.edge_rules == PINNED].tolist():
        one, other = sorted((find_root(root, a), find_root(root, b)))
        root[other] = one
    found: dict[int, list[int]] = {}
    for number in root:
        found.setdefault(find_root(root, number), []).append(number)
    return [found[number] for number in sorted(found)]


def obeyed(ledger: Ledger, state: State) -> bool:
    """Return whether a graph obeys all corrections and groups, as it does after each verb.

    Subjects that are the same are tied by pinned edges; those that are different, or were seen
    together, are in different clusters.
    """
    if not ledger.pins:
        return True
    cluster = dict(zip(state.numbers.tolist(), state.clusters.tolist(), strict=True))
    bloc = {number: place for place, some in enumerate(blocs(state)) for number in some}
    for law in ledger.laws:
        ours, theirs = (ledger.nodes(side) for side in law.sides)
        if law.together and ours and theirs and len({bloc[n] for n in (*ours, *theirs)}) > 1:
            return False
        if not law.together and {cluster[n] for n in ours} & {cluster[n] for n in theirs}:
            return False
    for group in ledger.groups:
        held = [cluster[node] for node in ledger.nodes(group)]
        if len(set(held)) < len(held):
            return False
    return True


@dataclass(frozen=True, slots=True)
class Correction:
    """A correction that holds.

    Attributes:
        number: sequence number of its event, which `retract` takes.
        verb: "same", "different" or "move".
        a: number or ID of the first, as it was given; of a move, the vector.
        b: number or ID of the second; of a move, the cluster, −1 if it was a new one.
        of: what the two are: "vectors", "subclusters" or "clusters"; "vectors" of a move.
    """

    number: int
    verb: str
    a: int
    b: int
    of: str

    @property
    def vectors(self) -> tuple[int, ...]:
        """The single vectors that the correction names."""
        if self.verb == "move":
            return (self.a,)
        return (self.a, self.b) if self.of == KINDS[VECTORS] else ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        of = "" if self.verb == "move" else f" of {self.of}"
        return f"{self.number}: {self.verb}({self.a}, {self.b}){of}"


def corrections_of(ledger: Ledger) -> list[Correction]:
    """Return the corrections of a ledger, oldest first; a move, which makes two laws, once."""
    found = {law.sequence: _correction(law) for law in ledger.laws if law.level != ENROLLED}
    return [found[number] for number in sorted(found)]


def _correction(law: Law) -> Correction:
    spoken = SPOKEN.match(law.text)
    assert spoken is not None, "the ledger writes the texts"
    return Correction(
        law.sequence, spoken[1], int(spoken[2]), int(spoken[3]), KINDS[max(law.level, 0)]
    )


Subject = tuple[int, int]  # a vector, or −1 for the whole, and its subcluster


def full_chain(
    ledger: Ledger, subject: Subject, chain: Sequence[Reason], end: Subject | None = None
) -> list[Reason]:
    """Return a chain of corrections with a step for each subcluster that vectors share.

    Each law of `chain` names the subcluster that the one before leads to, the first one that of the
    subject, the last one that of `end`. Two laws may name different vectors of one subcluster: that
    is a step of its own.
    """
    steps: list[Reason] = []
    for reason in chain:
        if isinstance(reason, Law):
            sides = [_subjects(ledger, side) for side in reason.sides]
            at_first = any(one[1] == subject[1] for one in sides[0])
            ours, theirs = sides if at_first else sides[::-1]
            here = next((one for one in ours if one[1] == subject[1]), subject)
            steps += _shared(subject, here)
            subject = theirs[0] if theirs else here
        steps.append(reason)
    return steps + _shared(subject, end) if steps and end is not None else steps


def _shared(one: Subject, other: Subject) -> list[Reason]:
    """Return the step from a subject to another of its subcluster; none if they are the same."""
    vectors = sorted({one[0], other[0]} - {-1})
    if _is_same(one, other) or not vectors:
        return []
    if len(vectors) == 1:
        return [f"vector {vectors[0]} is in subcluster {one[1]}"]
    return [f"vectors {vectors[0]} and {vectors[1]} are in subcluster {one[1]}"]


def closure(ledger: Ledger, subject: Subject, level: int) -> dict[Subject, tuple[Law, ...]]:
    """Return all subjects that corrections make the same as one, each with the corrections."""
    found: dict[Subject, tuple[Law, ...]] = {subject: ()}
    todo = deque([subject])
    while todo:
        here = todo.popleft()
        for law in ledger.laws_at(here[1], here[0]):
            if not (law.together and _is_of(law, level)):
                continue
            for ours, theirs in (law.sides, law.sides[::-1]):
                if any(_is_same(one, here) for one in _subjects(ledger, ours)):
                    for other in _subjects(ledger, theirs):
                        if other not in found:
                            found[other] = (*found[here], law)
                            todo.append(other)
    return found


def refuse_same(ledger: Ledger, a: Subject, b: Subject, level: int, said: str) -> None:
    """Raise ContradictionError if corrections imply that two subjects are different."""
    ours, theirs = closure(ledger, a, level), closure(ledger, b, level)
    for ones, others, reason in _apart(ledger, ours, level):
        for left, right in ((ones, others), (others, ones)):
            x = next((s for s in ours for one in left if _is_same(one, s)), None)
            y = next((s for s in theirs for one in right if _is_same(one, s)), None)
            if x is not None and y is not None:
                raise contradiction(said, (*ours[x], reason, *reversed(theirs[y])))


def refuse_different(ledger: Ledger, a: Subject, b: Subject, level: int, said: str) -> None:
    """Raise ContradictionError if corrections imply that two subjects are the same."""
    for subject, chain in closure(ledger, a, level).items():
        if chain and _is_same(subject, b):
            raise contradiction(said, chain)


def _subjects(ledger: Ledger, pins: list[int]) -> list[Subject]:
    found = [ledger.pins[pin] for pin in pins]
    return [(pin.vector, pin.node) for pin in found if pin.node != GONE]


def _is_same(one: Subject, other: Subject) -> bool:
    """Return whether two subjects are identical; a vector is not the subcluster that holds it."""
    return one[0] == other[0] >= 0 or (one[0] == other[0] and one[1] == other[1])


def _is_of(law: Law, level: int) -> bool:
    """Return whether a law is of a level; a move, of a vector and a cluster, is of none."""
    return law.mover < 0 and (law.level == level or (law.level, level) == (ENROLLED, VECTORS))


def _apart(
    ledger: Ledger, subjects: Collection[Subject], level: int
) -> Iterator[tuple[list[Subject], list[Subject], Reason]]:
    """Yield what corrections make different, and what was seen together with some subjects."""
    pins = (pin for vector, node in subjects for pin in ledger.pins_at(node, vector))
    for law in ledger.book.of_pins(pins):
        if not law.together and _is_of(law, level):
            yield _subjects(ledger, law.sides[0]), _subjects(ledger, law.sides[1]), law
    for subject in subjects:
        for pin in ledger.at(subject[1]):
            here = (pin.vector, pin.node)
            if pin.group >= 0 and _is_same(here, subject):
                for mate in _subjects(ledger, ledger.groups[pin.group]):
                    if mate != here:
                        yield [here], [mate], f"vectors {here[0]} and {mate[0]} were seen together"


def contradiction(said: str, chain: Sequence[Reason], remedy: str = "") -> ContradictionError:
    """Return the error for a correction that contradicts others; it names the newest of them."""
    laws = [reason for reason in chain if isinstance(reason, Law)]
    newest = max(laws, key=lambda law: (law.level != ENROLLED, law.sequence), default=None)
    texts = [each.text if isinstance(each, Law) else each for each in chain]
    seen, number = f"{said} cannot be: {texts[0]}", None
    remedy = remedy or "Vectors seen together stay apart; remove() or move() one of them."
    if newest is not None:
        seen = f"{said} contradicts {newest.text}"
        remedy = "Prototypes of one name stay together; forget() their cluster, or undo enrol()."
        if newest.level != ENROLLED:
            number = newest.sequence
            remedy = f"retract({number}) takes that correction back."
    return ContradictionError(
        seen,
        expected="a correction that agrees with those made before",
        remedy=remedy,
        chain=tuple(dict.fromkeys(texts)),
        correction=number,
    )
