"""Precedence: which earlier corrections give way to a new one (docs/choices.md).

A correction of vectors overrides those of their subclusters and clusters, and one of subclusters
overrides those of clusters: the vector is taken out, or the general correction no longer names the
subcluster. A correction of clusters ties identities: vectors declared different leave.
Pure functions on a ledger; only copies of it change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from linkstream.identity.lawbook import ENROLLED, Law
from linkstream.identity.laws import Laws, Subject, closure, contradiction, full_chain
from linkstream.identity.ledger import CLUSTERS, GONE, SUBCLUSTERS, VECTORS, Ledger
from linkstream.identity.regrouping import Edge

LIFTED = -2  # stands for a subcluster that is still to be made; the next one for it less 1

# Whether vectors can be taken out of their subclusters; and, if asked, none of these is then empty.
CanLeave = Callable[[Sequence[int], bool], bool]


@dataclass(frozen=True, slots=True)
class Plan:
    """What must give way to a correction.

    Attributes:
        leaving: groups of vectors to take out, each group into a cluster of its own.
        retracted: numbers of earlier corrections, each with the subcluster that it no longer
            names; −1: it no longer holds at all.
        cuts: whether subclusters that must stay apart are still in the clusters to be joined. They
            are cut off, maybe with so many others that the clusters are not joined.
    """

    leaving: tuple[tuple[int, ...], ...] = ()
    retracted: tuple[tuple[int, int], ...] = ()
    cuts: bool = False

    def __bool__(self) -> bool:
        return bool(self.leaving or self.retracted or self.cuts)

    def applied(self, ledger: Ledger) -> Ledger:
        """Return a copy of the ledger with the plan applied."""
        trial = ledger.copy()
        for correction, node in self.retracted:
            trial.retract(correction, node)
        for place, group in enumerate(self.leaving):
            trial.shift(set(group), LIFTED - place)
        return trial

    def node(self, subject: Subject) -> int:
        """Return the subcluster that a subject would be in."""
        for place, group in enumerate(self.leaving):
            if subject[0] in group:
                return LIFTED - place
        return subject[1]

    def then(self, *, leaving: tuple[int, ...] = (), retracted: Iterable[tuple[int, int]]) -> Plan:
        """Return the plan with more added."""
        groups = (*self.leaving, leaving) if leaving else self.leaving
        return replace(self, leaving=groups, retracted=(*self.retracted, *retracted))


def to_unite(
    ledger: Ledger, one: Subject, other: Subject, level: int, said: str, can_leave: CanLeave
) -> Iterator[Plan]:
    """Yield plans to make two subjects one, then raise ContradictionError.

    The caller stops at the first plan that works: if a vector leaves, others may merge.
    """
    here = Laws.of(ledger)
    pair = here.clash(here.bloc(one[1]), here.bloc(other[1]))
    if pair is None:
        yield Plan()
        return
    chain = here.chain_apart(one, other, pair)
    ledger = ledger.copy()  # the caller's reads events while it tries a plan
    if level != VECTORS:
        yield _Whole(ledger, (one[1], other[1]), can_leave).plan(level, said)
        raise contradiction(said, chain)
    for plan in _ways_to_unite(ledger, one, other):
        if can_leave(plan.leaving[0], False):
            there = Laws.of(plan.applied(ledger))
            blocs = (there.bloc(plan.node(subject)) for subject in (one, other))
            if there.clash(*blocs) is None:
                yield plan
    raise contradiction(said, chain)


def to_unite_clusters(
    ledger: Ledger, clusters: Sequence[Sequence[int]], largest: Edge, said: str, can_leave: CanLeave
) -> Iterator[Plan]:
    """Yield plans to make two clusters one, then raise ContradictionError.

    Args:
        ledger: all corrections; it stays as it is.
        clusters: the subclusters of each.
        largest: the largest subcluster of each, which will be tied.
        said: the correction in words.
        can_leave: whether vectors can be taken out.
    """
    here = Laws.of(ledger)
    pair = here.clash(*clusters)
    if pair is None:
        yield Plan()
        return
    chain = [here.bar(*pair)]
    whole = _Whole(ledger.copy(), largest, can_leave)  # the caller's reads events meanwhile
    for around in (clusters, ((), ())):
        yield replace(whole.plan(CLUSTERS, said, around), cuts=True)
    raise contradiction(said, chain)


def to_part(
    ledger: Ledger, one: Subject, other: Subject, level: int, said: str, can_leave: CanLeave
) -> Iterator[Plan]:
    """Yield plans to separate two subjects, then raise ContradictionError."""
    chain = Laws.of(ledger).chain(one[1], other[1])
    if chain is None:
        yield Plan()
        return
    ledger = ledger.copy()  # the caller's reads events while it tries a plan
    if level != VECTORS:
        yield _part_wholes(ledger, one[1], other[1], said)
        raise contradiction(said, chain)
    steps = full_chain(ledger, one, chain, other)
    for plan in _ways_to_part(ledger, one, other):
        if can_leave(plan.leaving[0], False):
            there = Laws.of(plan.applied(ledger))
            if there.chain(plan.node(one), plan.node(other)) is None:
                yield plan
    held = (f"both are held by subcluster {one[1]}, which neither can leave",)
    raise contradiction(said, steps or held, "remove() one of them, or others that it holds.")


def _ways_to_unite(ledger: Ledger, one: Subject, other: Subject) -> Iterator[Plan]:
    """Yield vectors that may leave, the fewest first: alone, then with all that are the same."""
    yield Plan(((other[0],),))
    yield Plan(((one[0],),))
    if one[1] != other[1]:
        yield Plan(((one[0], other[0]),))
    ours, theirs = _family(ledger, *one), _family(ledger, *other)
    both = tuple(sorted({*ours, *theirs})) if ours and theirs else ()
    for group in filter(None, (theirs, ours, both)):
        yield Plan((group,), _moves(ledger, group))


def _ways_to_part(ledger: Ledger, one: Subject, other: Subject) -> Iterator[Plan]:
    """Yield the second of two, or the first; alone, or with all that are the same."""
    for vector in (other[0], one[0]):
        yield Plan(((vector,),))
    for vector in (other[0], one[0]):
        yield Plan(((vector,),), _moves(ledger, (vector,)))
    families = [_family(ledger, *subject) for subject in (other, one)]
    for group in sorted(filter(None, families), key=len):
        yield Plan((group,), _moves(ledger, group))


def _family(ledger: Ledger, vector: int, node: int) -> tuple[int, ...]:
    """Return all vectors that are the same as one; none if prototypes are among them."""
    found = closure(ledger, (vector, node), VECTORS)
    named = (law for member, node in found for law in ledger.laws_at(node, member))
    if any(law.level == ENROLLED for law in named):
        return ()
    return tuple(sorted({member for member, _ in found}))


def _moves(ledger: Ledger, vectors: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return moves of vectors to retract, because a later correction places the vectors."""
    laws = (law for vector in vectors for law in ledger.book.of_mover(vector))
    return tuple(sorted({(law.sequence, GONE) for law in laws}))


@dataclass(frozen=True, slots=True)
class _Whole:
    """Two subclusters to be tied, or two clusters by their largest subclusters."""

    ledger: Ledger
    tied: Edge
    can_leave: CanLeave

    def plan(self, level: int, said: str, clusters: Sequence[Iterable[int]] = ((), ())) -> Plan:
        """Return a plan with an exception for all that keeps the two, or their clusters, apart.

        Raise ContradictionError if there is no exception for what must stay with the two.
        """
        plan: Plan | None = Plan()
        while plan is not None:
            last, plan = plan, self._with_next(plan, level, said, clusters)
        return last

    def _with_next(
        self, plan: Plan, level: int, said: str, clusters: Sequence[Iterable[int]]
    ) -> Plan | None:
        """Return the plan with the next exception; None if there are no more."""
        here = Laws.of(plan.applied(self.ledger))
        blocs = [here.bloc(node) for node in self.tied]
        sides = [{*bloc, *cluster} for bloc, cluster in zip(blocs, clusters, strict=True)]
        for pair in here.clashes(*sides):
            more = self._exception(here, plan, pair, level)
            if more is not None:
                return more
            if pair[0] in blocs[0] and pair[1] in blocs[1]:
                ends = [(-1, node) for node in self.tied]
                raise contradiction(said, here.chain_apart(ends[0], ends[1], pair))
        return None

    def _exception(self, here: Laws, plan: Plan, pair: Edge, level: int) -> Plan | None:
        """Return the plan with an exception for what keeps two subclusters apart, if possible."""
        reason = here.bar(*pair)
        if not isinstance(reason, Law):
            return None
        if reason.level == CLUSTERS and level == SUBCLUSTERS:
            return plan.then(retracted=[(reason.sequence, pair[1])])
        if level != CLUSTERS or reason.level != VECTORS:
            return None
        if reason.mover >= 0:  # it was moved from one of two that are one
            return plan.then(retracted=[(reason.sequence, GONE)])
        for node in reversed(pair):
            for pin in map(here.ledger.pins.__getitem__, reason.sides[0] + reason.sides[1]):
                group = _family(here.ledger, pin.vector, node) if pin.node == node else ()
                if group and self._can_all_leave(plan, group):
                    return plan.then(leaving=group, retracted=_moves(here.ledger, group))
        return None

    def _can_all_leave(self, plan: Plan, group: tuple[int, ...]) -> bool:
        """Return whether a group can leave as well, and what must be tied keeps other vectors."""
        leaving = [vector for other in (*plan.leaving, group) for vector in other]
        here = Laws.of(self.ledger)
        tied = {node for each in self.tied for node in here.bloc(each)}
        held = {pin.vector for node in tied for pin in self.ledger.at(node)}
        staying = [vector for vector in leaving if vector in held]
        return self.can_leave(leaving, False) and (not staying or self.can_leave(staying, True))


def _part_wholes(ledger: Ledger, one: int, other: int, said: str) -> Plan:
    """Return a plan to separate two subclusters: ties of their clusters no longer hold."""
    plan = Plan()
    while (chain := Laws.of(plan.applied(ledger)).chain(one, other)) is not None:
        ties = [law.sequence for law in chain if law.level == CLUSTERS]
        if not ties:
            raise contradiction(said, full_chain(ledger, (-1, one), chain, (-1, other)))
        plan = plan.then(retracted=[(max(ties), GONE)])
    return plan
