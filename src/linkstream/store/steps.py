"""Steps: the calls of one command, or a single call; `undo(step=True)` undoes one step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np

from linkstream.clusterer import Links, former, removal
from linkstream.errors import ArgumentError
from linkstream.identity.timeline import Taken, Timeline, n_arrivals
from linkstream.store.journal import ADDING, Journal, Operation

COMMAND_MAX = 64  # characters


@dataclass(frozen=True, slots=True)
class Step:
    """One step, without the parts that were undone; with `undone`, what one `redo` brings back.

    Attributes:
        number: the number of its first operation.
        command: the name of the step, or the verb of a single call; several names with commas if
            one undo took several steps.
        calls: the number of its operations.
        vectors: its vectors that were not undone; if `undone`, those that come back.
        event: its first event: `undo(to=event)` undoes the step and everything after it.
        undone: whether it was undone and `redo` can bring it back.
    """

    number: int
    command: str
    calls: int
    vectors: int
    event: int
    undone: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def check_command(command: object) -> str:
    """Return the name of a step; raise ArgumentError if it is invalid."""
    if not isinstance(command, str) or not 0 < len(command) <= COMMAND_MAX:
        raise ArgumentError(
            f"a step called {command!r:.80}",
            expected=f"a string of 1 to {COMMAND_MAX} characters",
            remedy="Use the name of a command, not of a person: compact() does not erase it.",
        )
    return command


def kept(
    links: Links, journal: Journal, newest: int, arguments: dict[str, Any]
) -> dict[str, Any] | None:
    """Return the arguments for the clusterer of an undo that needs no event log.

    None if the clusterer has not kept what takes the changes back.
    """
    engine, inverses = links.core.engine, links.core.inverses
    if engine is None:
        return None
    links.core.up_to_date_ledger()
    before = former.standing(links.core)
    if before is not None and _is_its_step(journal, newest, before.first, arguments):
        return {"to": None}
    if not arguments.get("step"):
        return arguments if inverses.undone(engine, arguments.get("to")) else None
    event = inverses.newest_event(engine)
    if event < 0:
        return None
    operation = journal.holding(event, newest)
    if operation.step is not None:
        operation = journal.operation(operation.step.first)
    to = operation.first_event
    return {"to": to} if inverses.beginning_at(engine, to) else None


def _is_its_step(journal: Journal, newest: int, first: int, arguments: dict[str, Any]) -> bool:
    """Return whether an undo takes back the one call that began with an event."""
    if not arguments.get("step"):
        return arguments.get("to") in (None, first)
    step = journal.holding(first, newest).step
    return step is None or journal.operation(step.first).first_event == first


def last(links: Links, journal: Journal, newest: int) -> int:
    """Return the first event of the last step; raise UndoError if there is none."""
    timeline = removal.timeline(links.core, "undo")
    timeline.before(None)  # raises if there is nothing to undo
    return next(_steps(timeline, journal, newest)).event


def listed(links: Links, journal: Journal, newest: int, limit: int) -> list[Step]:
    """Return steps, the newest first: those that can be redone, then up to `limit` others."""
    if links.dimension is None:
        return []
    before = former.standing(links.core)
    if before is not None:
        return [_call(journal.holding(before.first, newest), before.first)][:limit]
    timeline = removal.timeline(links.core, "undo")
    again = [_joined(list(_steps(taken, journal, newest))) for taken in timeline.taken]
    return again + list(islice(_steps(timeline, journal, newest), limit))


def _call(operation: Operation, event: int) -> Step:
    """Return the step of a call that added no vectors."""
    command = operation.verb if operation.step is None else operation.step.command
    return Step(number=operation.number, command=command, calls=1, vectors=0, event=event)


def coming_back(links: Links, journal: Journal, newest: int) -> Iterator[Operation]:
    """Yield the operations whose vectors the next redo brings back completely."""
    timeline = removal.timeline(links.core, "redo")
    timeline.redone()  # raises if there is nothing to redo
    sequences = timeline.taken[-1].sequences.tolist()
    again = set(sequences)
    after = journal.before_event(sequences[0], newest)
    until = journal.holding(sequences[-1], newest).number
    for operation in list(journal.operations(after, until)):
        complete = operation.first_event in again and len(operation.events)
        if complete and operation.verb in ADDING and len(operation.taken()):
            yield operation


def _steps(some: Timeline | Taken, journal: Journal, newest: int) -> Iterator[Step]:
    """Yield the steps of events, the newest first."""
    rows, sequences = some.rows, some.sequences
    end = len(sequences)
    while end:
        operation = journal.holding(int(sequences[end - 1]), newest)
        mark = operation.step
        first = operation if mark is None else journal.operation(mark.first)
        start = min(int(np.searchsorted(sequences, first.first_event)), end - 1)
        yield Step(
            number=first.number,
            command=operation.verb if mark is None else mark.command,
            calls=operation.number - first.number + 1,
            vectors=n_arrivals(rows[start:end]),
            event=int(sequences[start]),
        )
        end = start


def _joined(steps: list[Step]) -> Step:
    steps = steps[::-1]
    commands = dict.fromkeys(step.command for step in steps)
    return Step(
        number=steps[0].number,
        command=", ".join(commands),
        calls=sum(step.calls for step in steps),
        vectors=sum(step.vectors for step in steps),
        event=steps[0].event,
        undone=True,
    )
