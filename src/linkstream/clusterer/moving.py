"""Move vectors into another cluster, or out into a new one: one or several, as one change."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from linkstream.clusterer.change import one_change
from linkstream.clusterer.checks import several_vectors
from linkstream.clusterer.core import Core, Fixed
from linkstream.clusterer.maintenance import enforce
from linkstream.clusterer.removal import refuse_hollow
from linkstream.engine import events
from linkstream.engine.contract import JOINED, LINKED, NEW, Decision
from linkstream.engine.forest import PINNED
from linkstream.errors import ArgumentError
from linkstream.identity import laws
from linkstream.identity.grouping import NOWHERE, Place, nearest_in

FRESH = -1  # in place of a cluster: a new one

Rows = list[tuple[int, Fixed]]  # vectors by number, in the order of the call


@one_change
def move(core: Core, vector: int | Sequence[int], cluster: int) -> Decision | list[Decision]:
    """Move one vector or several into another cluster, or into a new one."""
    several = several_vectors(vector)
    given: list[int] = [vector] if several is None else several  # type: ignore[list-item]
    nodes = [core.holder(each) for each in given]
    numbers = [int(each) for each in given]
    fresh = isinstance(cluster, (int, np.integer)) and not isinstance(cluster, bool)
    target = FRESH if fresh and cluster == FRESH else core.live(cluster)
    _refuse_there(core, numbers, nodes, target)
    for number in numbers:
        _refuse_move(core, number, target, numbers)
    rows = list(zip(numbers, core.kept(numbers), strict=True))
    since, book = core.running().n_events, core.ledger.book
    freed = core.ledger.nodes_of(law for number in numbers for law in book.of_mover(number))
    found = _moved(core, rows, target)
    enforce(core, since, freed=freed)
    return found[0] if several is None else found


def _refuse_there(core: Core, numbers: list[int], nodes: list[int], target: int) -> None:
    """Raise ArgumentError if a vector is in the cluster that it is moved to."""
    for number, node in zip(numbers, nodes, strict=True):
        if core.running().cluster_of(node) == target:
            raise ArgumentError(
                f"move({number}, {target})",
                expected="another cluster than the one that holds the vector",
                remedy="It is there already; same() keeps it there.",
            )


def _refuse_move(core: Core, vector: int, target: int, moving: Collection[int]) -> None:
    """Raise ContradictionError if a correction or a group keeps a vector out of a cluster.

    Vectors in `moving` go there, too.
    """
    ledger, engine = core.up_to_date_ledger(), core.running()
    said = f"move({vector}, {target})"
    pins = ledger.pins_at(engine.holder(vector), vector)

    def is_inside(pin: int) -> bool:
        other, node = ledger.pins[pin].vector, ledger.pins[pin].node
        return (other != vector and other in moving) or engine.cluster_of(node) == target >= 0

    for law in ledger.book.of_pins(pins):
        for ours, theirs in (law.sides, law.sides[::-1]):
            if law.mover == vector or all(ledger.pins[pin].vector != vector for pin in ours):
                continue
            inside = [is_inside(pin) for pin in theirs if ledger.pins[pin].node >= 0]
            if (law.together and not all(inside)) or (not law.together and any(inside)):
                raise laws.contradiction(said, (law,))
    for group in sorted({ledger.pins[pin].group for pin in pins} - {-1}):
        mates = [pin for pin in ledger.groups[group] if ledger.pins[pin].vector != vector]
        if any(is_inside(pin) for pin in mates if ledger.pins[pin].node >= 0):
            raise laws.contradiction(said, (f"a vector seen together with {vector} is there",))


def _moved(core: Core, rows: Rows, target: int) -> list[Decision]:
    """Take vectors out and put each into its nearest subcluster of a cluster, or linked to that.

    A vector that joins a subcluster changes its sum, so that edges may fail equation 22. If that
    splits the cluster, the vectors get subclusters of their own instead.
    """
    assert core.change is not None, "a move is a change"
    back = core.change.savepoint()
    before = [] if target == FRESH else core.running().parts(target).numbers.tolist()
    found = _relocated(core, rows, target, JOINED)
    engine = core.running()
    if any(each.kind == "joined" for each in found):
        into = found[-1].cluster
        nodes = {*before, *(engine.holder(number) for number, _ in rows)}
        if not {engine.cluster_of(node) for node in nodes} <= {into, -1}:
            back()
            found = _relocated(core, rows, target, LINKED)
    return found


def _relocated(core: Core, rows: Rows, target: int, outcome: int) -> list[Decision]:
    """Move vectors one after the other; `outcome`: JOINED where the test allows, or LINKED.

    The pins of a vector that another one follows end with those of side 0: thus the log tells
    that the next vector belongs to the same change (`identity/timeline.py`).
    """
    found: list[Decision] = []
    for vector, q in rows:
        engine, node = core.running(), core.holder(vector)
        into = engine.cluster_of(engine.holder(rows[0][0])) if target == FRESH and found else target
        missing_weight = core.up_to_date_ledger().missing_weights.get(vector, 0)
        refuse_hollow(core, node, q, missing_weight)
        engine.note([(events.RELOCATED, vector, target), (events.PINNED, node, -1, 2)])
        engine.withdraw(q, missing_weight=missing_weight, target=node, member=vector)
        place = NOWHERE if into == FRESH else nearest_in(engine, q, into)
        decision = _put(core, vector, q, place, min(outcome, place.outcome, key=_caution))
        held = decision.subcluster
        other = place.target if decision.kind == "linked" else held
        pins = [(events.PINNED, held, vector, 0), (events.PINNED, other, -1, 1)]
        core.running().note(pins if vector == rows[-1][0] else pins[::-1])
        found.append(decision)
    return found


def _caution(outcome: int) -> int:
    """Return the order of outcomes: a new subcluster comes before one that takes the vector."""
    return (NEW, LINKED, JOINED).index(outcome)


def _put(core: Core, vector: int, q: Fixed, place: Place, outcome: int) -> Decision:
    """Put a vector that was taken out into a subcluster, or next to it."""
    return core.running().place(
        q,
        missing_weight=core.up_to_date_ledger().missing_weights.get(vector, 0),
        outcome=outcome,
        target=place.target,
        member=vector,
        rule=PINNED,
    )
