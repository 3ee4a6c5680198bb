"""Notable changes of a journal: the calls of people, and what the stream changes by itself.

A call of a person is one change. The events of a call that adds vectors are decisions; of these
calls only joins and cuts of clusters, limits and drift are notable, each kind once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.engine import events

Rows = npt.NDArray[np.int64]

JOIN, CUT, MOVE, NAME, REMOVE, REBUILD, POLICY, UNDO = KINDS = (
    "join",
    "cut",
    "move",
    "name",
    "remove",
    "rebuild",
    "policy",
    "undo",
)
ADDING = ("add", "add_many", "add_group")  # verbs of which only automatic changes are notable
KIND_OF_VERB = {
    "same": JOIN,
    "different": CUT,
    **dict.fromkeys(("move", "assign"), MOVE),
    **dict.fromkeys(("name", "rename", "enrol"), NAME),
    **dict.fromkeys(("remove", "forget"), REMOVE),
    **dict.fromkeys(("settle", "rebuild"), REBUILD),
    **dict.fromkeys(("accept", "ignore", "judge"), POLICY),
    **dict.fromkeys(("undo", "redo", "retract"), UNDO),
}
# Events that healing, the update and the limits write while vectors are added.
AUTOMATIC = {
    JOIN: (events.UNITED,),
    CUT: (events.SPLIT,),
    REMOVE: (events.FORGOTTEN,),
    POLICY: (events.DRIFTED,),
}
_OF_INTEREST = np.zeros(len(events.CLASSES), dtype=np.bool_)
_OF_INTEREST[[code for codes in AUTOMATIC.values() for code in codes]] = True


@dataclass(frozen=True, slots=True)
class Notable:
    """One change.

    Attributes:
        event: the number of its first event.
        kind: one of `KINDS`.
        automatic: whether the stream or healing made it, and no person.
        count: how many events of this kind the call has; 1 for a call of a person.
    """

    event: int
    kind: str
    automatic: bool
    count: int


@dataclass(frozen=True, slots=True)
class Turn:
    """An undo or a redo: the number of its event.

    Attributes:
        event: the number of the event.
        to: the first event that an undo took; None for a redo.
        undone: the event of the undo that a redo took back; None for an undo.
    """

    event: int
    to: int | None = None
    undone: int | None = None


def is_plain(verb: str, rows: Rows) -> bool:
    """Return whether a call has added vectors and changed nothing else of note; it is fast.

    Args:
        verb: the verb of the call.
        rows: its events, one a row.
    """
    return verb in ADDING and not _OF_INTEREST[rows[:, 0]].any()


def notable(verb: str, first_event: int, rows: Rows) -> list[Notable]:
    """Return the notable changes of a call.

    Args:
        verb: the verb of the call.
        first_event: the number of its first event.
        rows: its events, one a row.
    """
    if not len(rows):
        return []
    if verb not in ADDING:
        kind = KIND_OF_VERB.get(verb)
        return [] if kind is None else [Notable(first_event, kind, automatic=False, count=1)]
    found = []
    for kind, codes in AUTOMATIC.items():
        places = np.flatnonzero(np.isin(rows[:, 0], codes))
        if len(places):
            first = first_event + int(places[0])
            found.append(Notable(first, kind, automatic=True, count=len(places)))
    return sorted(found, key=lambda each: each.event)


def turns(first_event: int, rows: Rows) -> list[Turn]:
    """Return the undos and redos among the events of a call.

    Args:
        first_event: the number of its first event.
        rows: its events, one a row.
    """
    places = np.flatnonzero(np.isin(rows[:, 0], (events.UNDONE, events.REDONE)))
    return [_turn(first_event + place, rows[place]) for place in places.tolist()]


def _turn(event: int, row: Rows) -> Turn:
    named = int(row[2])
    return Turn(event, to=named) if row[0] == events.UNDONE else Turn(event, undone=named)


def automatic_places(kind: str, rows: Rows) -> Rows:
    """Return the places of the events of an automatic change among those of its call.

    Args:
        kind: the kind of the change.
        rows: the events of the call, one a row.
    """
    return np.flatnonzero(np.isin(rows[:, 0], AUTOMATIC.get(kind, ())))
