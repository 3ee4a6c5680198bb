"""Laws: what people's constraints ask of the graph, and the chain behind a contradiction.

A constraint speaks of *subjects*: a vector, or a subcluster as a whole. What follows from the word
of people alone is found among these (`closure`); what it means for the graph, where vectors share
subclusters, among subclusters (`Laws`).
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from linkstream.engine.forest import LAW
from linkstream.engine.state import Integers, State
from linkstream.errors import ContradictionError
from linkstream.identity.ledger import GONE, Ledger

LIFTED = -2  # stands for a subcluster that is still to be made


@dataclass(frozen=True, slots=True)
class Laws:
    """What a ledger's constraints, groups and names ask of subclusters and clusters.

    Attributes:
        said: of each subcluster that a person has put apart, those from which, and the reason.
        bonds: of each subcluster, those that are always with it, and the reason.
    """

    ledger: Ledger = field(default_factory=Ledger)
    said: dict[int, list[tuple[frozenset[int], str]]] = field(default_factory=dict)
    bonds: dict[int, dict[int, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, ledger: Ledger) -> Laws:
        """The laws as the graph is now."""
        laws = cls(ledger)
        for law in ledger.laws:
            sides = [frozenset(ledger.nodes(side)) for side in law.sides]
            for ours, theirs in (sides, sides[::-1]):
                for node in ours:
                    if not law.together:
                        laws.said.setdefault(node, []).append((theirs, law.text))
                    for other in theirs - {node} if law.together else ():
                        laws.bonds.setdefault(node, {}).setdefault(other, law.text)
        return laws

    @property
    def names(self) -> Mapping[int, str]:
        """Of the clusters that have one."""
        return self.ledger.names

    def barred(self, node: int) -> dict[int, str]:
        """Subclusters that one may never share a cluster with, and why."""
        said = {other: text for others, text in self.said.get(node, []) for other in others}
        return {**self.ledger.mates(node), **said}

    def bloc(self, node: int) -> dict[int, tuple[str, ...]]:
        """Subclusters that are with one for ever, each with the chain of reasons."""
        found: dict[int, tuple[str, ...]] = {node: ()}
        todo = deque([node])
        while todo:
            here = todo.popleft()
            for other, reason in self.bonds.get(here, {}).items():
                if other not in found:
                    found[other] = (*found[here], reason)
                    todo.append(other)
        return found

    def chain(self, a: int, b: int) -> tuple[str, ...] | None:
        """Why two subclusters are in one cluster for ever; None if they are not."""
        return self.bloc(a).get(b)

    def clash(self, ones: Iterable[int], others: Iterable[int]) -> tuple[int, int] | None:
        """Two subclusters, one of each side, that are barred from one another (the oldest)."""
        there = set(others)
        for a in sorted(ones):
            found = there & self.ledger.mates(a).keys()
            found |= {b for barred, _ in self.said.get(a, []) for b in there & barred}
            if found:
                return a, min(found)
        return None

    def refuse_names(self, one: int, other: int, said: str) -> None:
        """ContradictionError where two clusters have different names."""
        names = [self.names.get(cluster) for cluster in (one, other)]
        if None not in names and names[0] != names[1]:
            chain = tuple(f"cluster {c} is {n!r}" for c, n in zip((one, other), names, strict=True))
            raise contradiction(said, chain)

    def rows(self, state: State, members: list[list[int]]) -> Integers:
        """Pairs of rows (groups of subclusters) that may not be united."""
        place = {number: row for row, list_ in enumerate(members) for number in list_}
        pairs = {
            (place[a], place[b])
            for a in self.ledger.pinned()
            for b in self.barred(a)
            if a in place and b in place
        }
        barred = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
        return np.concatenate([barred, self._named_pairs(state, members)])

    def _named_pairs(self, state: State, members: list[list[int]]) -> Integers:
        """Rows of clusters with different names."""
        cluster = dict(zip(state.numbers.tolist(), state.clusters.tolist(), strict=True))
        names = [self.names.get(cluster[row[0]]) for row in members]
        number = {name: i for i, name in enumerate(sorted({n for n in names if n is not None}))}
        rows = np.array([i for i, name in enumerate(names) if name is not None], dtype=np.int64)
        which = np.array([number[name] for name in names if name is not None], dtype=np.int64)
        a, b = np.nonzero(which[:, np.newaxis] != which)
        return np.stack([rows[a], rows[b]], axis=1)


def blocs(state: State) -> list[list[int]]:
    """Subclusters by what law edges tie, each by number; the blocs by their oldest."""
    root = {number: number for number in state.numbers.tolist()}

    def find(number: int) -> int:
        while root[number] != number:
            root[number] = root[root[number]]
            number = root[number]
        return number

    for a, b in state.edges[state.firm == LAW].tolist():
        one, other = sorted((find(a), find(b)))
        root[other] = one
    found: dict[int, list[int]] = {}
    for number in root:
        found.setdefault(find(number), []).append(number)
    return [found[number] for number in sorted(found)]


Subject = tuple[int, int]  # a vector, or −1 for the whole, and its subcluster


def closure(ledger: Ledger, subject: Subject) -> dict[Subject, tuple[str, ...]]:
    """All that people have said, by steps, to be the same as a subject; each with the steps."""
    found: dict[Subject, tuple[str, ...]] = {subject: ()}
    todo = deque([subject])
    while todo:
        here = todo.popleft()
        for law in ledger.laws:
            for ours, theirs in (law.sides, law.sides[::-1]) if law.together else ():
                if any(_speaks(one, here) for one in _subjects(ledger, ours)):
                    for other in _subjects(ledger, theirs):
                        if other not in found:
                            found[other] = (*found[here], law.text)
                            todo.append(other)
    return found


def refuse_same(ledger: Ledger, a: Subject, b: Subject, said: str) -> None:
    """ContradictionError where it follows from what was said that two are different."""
    ours, theirs = closure(ledger, a), closure(ledger, b)
    for ones, others, text in _apart(ledger, ours):
        for left, right in ((ones, others), (others, ones)):
            x = next((s for s in ours for one in left if _speaks(one, s)), None)
            y = next((s for s in theirs for one in right if _speaks(one, s)), None)
            if x is not None and y is not None:
                raise contradiction(said, (*ours[x], text, *reversed(theirs[y])))


def refuse_different(ledger: Ledger, a: Subject, b: Subject, said: str) -> None:
    """ContradictionError where it follows from what was said that two are the same."""
    for subject, chain in closure(ledger, a).items():
        if chain and _speaks(subject, b):
            raise contradiction(said, chain)


def lifted(ledger: Ledger, vectors: Iterable[int]) -> Ledger:
    """The ledger as it would be if some vectors were taken out into a subcluster of their own."""
    trial, leaving = copy.deepcopy(ledger), set(vectors)
    trial.shift(leaving, LIFTED)
    return trial


def _subjects(ledger: Ledger, pins: list[int]) -> list[Subject]:
    found = [ledger.pins[pin] for pin in pins]
    return [(pin.vector, pin.node) for pin in found if pin.node != GONE]


def _speaks(one: Subject, other: Subject) -> bool:
    """Whether what is said of one holds of another: the same vector, or a whole and its parts."""
    return one[0] == other[0] if min(one[0], other[0]) >= 0 else one[1] == other[1]


def _apart(
    ledger: Ledger, subjects: Iterable[Subject]
) -> Iterator[tuple[list[Subject], list[Subject], str]]:
    """What was said to be different, and what was seen together with one of some subjects."""
    for law in ledger.laws:
        if not law.together:
            yield _subjects(ledger, law.sides[0]), _subjects(ledger, law.sides[1]), law.text
    for subject in subjects:
        for pin in ledger.at(subject[1]):
            here = (pin.vector, pin.node)
            if pin.group >= 0 and _speaks(here, subject):
                for mate in _subjects(ledger, ledger.groups[pin.group]):
                    if mate != here:
                        text = f"vectors {here[0]} and {mate[0]} were seen together"
                        yield [here], [mate], text


def contradiction(said: str, chain: tuple[str, ...]) -> ContradictionError:
    """The error for a correction that others forbid."""
    return ContradictionError(
        f"{said}, which others forbid",
        expected="a correction that agrees with those made before",
        remedy="Undo one of them first, or rename one of two clusters.",
        chain=chain,
    )
