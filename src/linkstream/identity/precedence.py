"""Precedence: which earlier corrections give way to a new one (docs/choices.md).

A correction of vectors overrides those of their subclusters and clusters, and one of subclusters
overrides those of clusters: the vector is taken out, or the general correction no longer names the
subcluster. A correction of clusters ties identities: vectors declared different leave.
Pure functions on a ledger; only copies of it change.
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
    """What must give way to a correction.

    Attributes:
        leaving: groups of vectors to take out, each group into a cluster of its own.
        retracted: numbers of earlier corrections, each with the subcluster that it no longer
            names; −1: it no longer holds at all.
    """

    leaving: tuple[tuple[int, ...], ...] = ()
    retracted: tuple[tuple[int, int], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.leaving or self.retracted)

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
        return Plan(groups, (*self.retracted, *retracted))


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
    """Yield plans to separate two subjects, then raise ContradictionError."""
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
    found = {member for member, _ in closure(ledger, (vector, node), VECTORS)}
    enrolments = [law.sides for law in ledger.laws if law.level == ENROLLED]
    prototypes = {ledger.pins[pin].vector for ours, theirs in enrolments for pin in ours + theirs}
    return () if found & prototypes else tuple(sorted(found))


def _moves(ledger: Ledger, vectors: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return moves of vectors to retract, because a later correction places the vectors."""
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
    """Return the plan with one more exception for what keeps two subclusters apart, if possible."""
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
    """Return a plan to separate two subclusters: ties of their clusters no longer hold."""
    plan = Plan()
    while (chain := Laws.of(plan.applied(ledger)).chain(one, other)) is not None:
        ties = [law.sequence for law in chain if law.level == CLUSTERS]
        if not ties:
            raise contradiction(said, chain)
        plan = plan.then(retracted=[(max(ties), GONE)])
    return plan
