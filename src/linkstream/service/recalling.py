"""The newest decisions of a store, read from its journal: those that were made before a restart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from linkstream.engine import events
from linkstream.engine.contract import Decision
from linkstream.store import Store
from linkstream.store.journal import ADDING, Operation, decoded

CALLS = 200  # calls of the journal that are read, the newest first
_KINDS = {
    events.CREATED: ("new", 3),
    events.JOINED: ("joined", 3),
    events.LINKED: ("linked", 4),
}  # the kind, and the column of the cluster


def recalled(store: Store, most: int) -> list[Decision]:
    """Return the newest decisions, the oldest first; those before an undo are left out.

    The journal has no similarities of vectors that came in batches: they are None.

    Args:
        store: the store.
        most: how many decisions.
    """
    found: list[Decision] = []
    last = store.journal.n_operations
    for number in range(last, max(0, last - CALLS), -1):
        operation = _operation(store, number)
        if operation.verb in ("undo", "redo") or len(found) >= most:
            break
        if operation.verb in ADDING:
            found = _decisions(operation, most - len(found)) + found
    return _told(store, found)


def _operation(store: Store, number: int) -> Operation:
    return store.handle.read(lambda model: model.journal.operation(number))


def _decisions(operation: Operation, most: int) -> list[Decision]:
    """Return the last decisions of a call."""
    if operation.verb == "add":
        answer = decoded(operation)
        return [answer] if isinstance(answer, Decision) else []
    rows = operation.events
    rows = rows[np.isin(rows[:, 0], events.ARRIVALS)][-most:]
    return [_decision(*row) for row in rows.tolist()]


def _decision(code: int, vector: int, *numbers: int) -> Decision:
    if code == events.DEFERRED:
        return Decision(-1, -1, "held", None, None, vector)
    kind, column = _KINDS[code]
    return Decision(numbers[column - 2], numbers[0], kind, None, None, vector)  # type: ignore[arg-type]


def _told(store: Store, found: list[Decision]) -> list[Decision]:
    """Return decisions with their margins and probabilities, where they are known."""
    if not found:
        return found
    first = min(each.sequence for each in found)
    span = max(each.sequence for each in found) + 1 - first
    if span > 10 * len(found) or first + span > store.n_vectors:
        return found
    told = store.how_sure(first, span)
    if not told:
        return found
    return [_with(each, {n: told[n][each.sequence - first] for n in told}) for each in found]


def _with(decision: Decision, figures: dict[str, float | None]) -> Decision:
    margin, probability = figures["cluster_margin"], figures["probability"]
    return replace(decision, cluster_margin=margin, probability=probability)
