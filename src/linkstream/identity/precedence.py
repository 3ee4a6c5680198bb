"""Precedence: what gives way to a correction, so that it can be obeyed (docs/choices.md).

A correction of vectors wins over what was said of their subclusters and clusters, and one of
subclusters over what was said of clusters: the vector is taken out, or the general one no longer
speaks of the subcluster. A correction of clusters ties identities: vectors that were said to be
different leave.
Pure functions on a ledger; nothing changes but copies of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from linkstream.identity.laws import Laws, Reason, Subject, closure, contradiction
from linkstream.identity.ledger import CLUSTERS, ENROLLED, GONE, SUBCLUSTERS, VECTORS, Law, Ledger

LIFTED = -2  # stands for a subcluster that is still to be made; the next one for it less 1

# Whether vectors can be taken out of their subclusters; and, if asked, none of these is then empty.
CanLeave = Callable[[Sequence[int], bool], bool]


@dataclass(frozen=True, slots=True)
class Plan:
    """What has to give way to a correction.

    Attributes:
        leaving: groups of vectors to take out, each group into a cluster of its own.
        retracted: numbers of earlier corrections, each with the subcluster that it no longer speaks
            of; −1: it no longer holds at all.
    """

    leaving: tuple[tuple[int, ...], ...] = ()
    retracted: tuple[tuple[int, int], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.leaving or self.retracted)

    def applied(self, ledger: Ledger) -> Ledger:
        """The ledger as it would be with all of it done; a copy."""
        trial = ledger.copy()
        for correction, node in self.retracted:
            trial.retract(correction, node)
        for place, group in enumerate(self.leaving):
            trial.shift(set(group), LIFTED - place)
        return trial

    def node(self, subject: Subject) -> int:
        """The subcluster that a subject would be in."""
        for place, group in enumerate(self.leaving):
            if subject[0] in group:
                return LIFTED - place
        return subject[1]

    def then(self, *, leaving: tuple[int, ...] = (), retracted: Iterable[tuple[int, int]]) -> Plan:
        """The plan, and more."""
        groups = (*self.leaving, leaving) if leaving else self.leaving
        return Plan(groups, (*self.retracted, *retracted))


def to_unite(
    ledger: Ledger, one: Subject, other: Subject, level: int, said: str, can_leave: CanLeave
) -> Iterator[Plan]:
    """Yield what may give way for two subjects to become one, then raise ContradictionError.

    The caller stops at the first plan that can be done: where a vector leaves, others may merge.
    """
    here = Laws.of(ledger)
    pair = here.clash(here.bloc(one[1]), here.bloc(other[1]))
    if pair is None:
        yield Plan()
        return
    if level != VECTORS:
        yield _unite_wholes(ledger, one[1], other[1], level, said, can_leave)
        raise contradiction(said, [here.bar(*pair)])
    for plan in _ways_to_unite(ledger, one, other):
        if can_leave(plan.leaving[0], False):
            there = Laws.of(plan.applied(ledger))
            blocs = (there.bloc(plan.node(subject)) for subject in (one, other))
            if there.clash(*blocs) is None:
                yield plan
    raise contradiction(said, [here.bar(*pair)])


def to_part(
    ledger: Ledger, one: Subject, other: Subject, level: int, said: str, can_leave: CanLeave
) -> Iterator[Plan]:
    """Yield what may give way for two subjects to be put apart, then raise ContradictionError."""
    chain = Laws.of(ledger).chain(one[1], other[1])
    if chain is None:
        yield Plan()
        return
    if level != VECTORS:
        yield _part_wholes(ledger, one[1], other[1], said)
        raise contradiction(said, chain)
    for plan in _ways_to_part(ledger, one, other):
        if can_leave(plan.leaving[0], False):
            there = Laws.of(plan.applied(ledger))
            if there.chain(plan.node(one), plan.node(other)) is None:
                yield plan
    held = (f"both are held by subcluster {one[1]}, which neither can leave",)
    raise contradiction(said, chain or held, "remove() one of them, or others that it holds.")


def _ways_to_unite(ledger: Ledger, one: Subject, other: Subject) -> Iterator[Plan]:
    """Vectors that may leave, the fewest first: alone, then with all that is the same as they."""
    yield Plan(((other[0],),))
    yield Plan(((one[0],),))
    if one[1] != other[1]:
        yield Plan(((one[0], other[0]),))
    ours, theirs = _family(ledger, *one), _family(ledger, *other)
    both = tuple(sorted({*ours, *theirs})) if ours and theirs else ()
    for group in filter(None, (theirs, ours, both)):
        yield Plan((group,), _moves(ledger, group))


def _ways_to_part(ledger: Ledger, one: Subject, other: Subject) -> Iterator[Plan]:
    """The second of two may leave, or the first; alone, or with all that is the same as it."""
    for vector in (other[0], one[0]):
        yield Plan(((vector,),))
    for vector in (other[0], one[0]):
        yield Plan(((vector,),), _moves(ledger, (vector,)))
    families = [_family(ledger, *subject) for subject in (other, one)]
    for group in sorted(filter(None, families), key=len):
        yield Plan((group,), _moves(ledger, group))


def _family(ledger: Ledger, vector: int, node: int) -> tuple[int, ...]:
    """All vectors said to be the same as one; none if prototypes are among them, which stay."""
    found = {member for member, _ in closure(ledger, (vector, node), VECTORS)}
    enrolments = [law.sides for law in ledger.laws if law.level == ENROLLED]
    prototypes = {ledger.pins[pin].vector for ours, theirs in enrolments for pin in ours + theirs}
    return () if found & prototypes else tuple(sorted(found))


def _moves(ledger: Ledger, vectors: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Moves of vectors, to be retracted: a later word on a vector's place counts."""
    moved = set(vectors)
    return tuple(sorted({(law.sequence, GONE) for law in ledger.laws if law.mover in moved}))


def _unite_wholes(
    ledger: Ledger, one: int, other: int, level: int, said: str, can_leave: CanLeave
) -> Plan:
    plan = Plan()
    while True:
        trial = plan.applied(ledger)
        here = Laws.of(trial)
        pair = here.clash(here.bloc(one), here.bloc(other))
        if pair is None:
            return plan
        reason = here.bar(*pair)
        more = _exception(trial, plan, pair, reason, level, can_leave)
        if more is None:
            raise contradiction(said, [reason])
        plan = more


def _exception(
    ledger: Ledger,
    plan: Plan,
    pair: tuple[int, int],
    reason: Reason,
    level: int,
    can_leave: CanLeave,
) -> Plan | None:
    """The plan, with one more exception for what bars two subclusters; None if there is none."""
    if not isinstance(reason, Law):
        return None
    if reason.level == CLUSTERS and level == SUBCLUSTERS:
        return plan.then(retracted=[(reason.sequence, pair[1])])
    if level != CLUSTERS or reason.level != VECTORS:
        return None
    if reason.mover >= 0:  # it was moved from one of two that are one
        return plan.then(retracted=[(reason.sequence, GONE)])
    for node in reversed(pair):
        for pin in map(ledger.pins.__getitem__, reason.sides[0] + reason.sides[1]):
            group = _family(ledger, pin.vector, node) if pin.node == node else ()
            leaving = [vector for other in (*plan.leaving, group) for vector in other]
            if group and can_leave(leaving, True):
                return plan.then(leaving=group, retracted=_moves(ledger, group))
    return None


def _part_wholes(ledger: Ledger, one: int, other: int, said: str) -> Plan:
    """Two subclusters are parted; ties of the clusters that they stood for no longer hold."""
    plan = Plan()
    while (chain := Laws.of(plan.applied(ledger)).chain(one, other)) is not None:
        ties = [law.sequence for law in chain if law.level == CLUSTERS]
        if not ties:
            raise contradiction(said, chain)
        plan = plan.then(retracted=[(max(ties), GONE)])
    return plan
