"""Records: the ledger as plain values for a snapshot and back; checks of ledger and event log."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.confidence.answers import Answers
from linkstream.confidence.policy import Policy
from linkstream.engine import events, logrules
from linkstream.engine.forest import FULL, LOCKED
from linkstream.engine.state import Integers, State, damaged, indices_of
from linkstream.errors import SnapshotError
from linkstream.identity import laws
from linkstream.identity.held import Held
from linkstream.identity.lawbook import ENROLLED, Law, LawBook
from linkstream.identity.ledger import CLUSTERS, GONE, KINDS, SPOKEN, VECTORS, Ledger
from linkstream.identity.texts import is_name
from linkstream.identity.timeline import Timeline

_KIND = re.compile(rf"(?:same|different)\(\d+, \d+\) of ({'|'.join(KINDS)}), event \d+")


def to_plain(ledger: Ledger) -> dict[str, Any]:
    """Return a ledger, outside of a change, as plain values."""
    unsure: dict[str, Any] = {"held": list(ledger.held)} if ledger.held else {}
    if ledger.policy is not None:
        unsure["policy"] = ledger.policy
    return {
        **unsure,
        "texts": list(ledger.texts),
        "aliases": sorted(map(list, ledger.aliases.items())),
        "names": sorted(map(list, ledger.names.items())),
        "ignored": sorted(ledger.ignored),
        "locked": sorted(ledger.locked),
        "lights": sorted(map(list, ledger.missing_weights.items())),
        "pins": [[pin.node, pin.vector, pin.group] for pin in ledger.pins],
        "laws": [
            [int(law.together), law.sequence, law.text, law.mover, *map(list, law.sides), law.level]
            for law in ledger.laws
        ],
        "groups": [list(group) for group in ledger.groups],
        "keys": sorted(map(list, ledger.keys.items())),
        **({"answers": ledger.answers.to_plain()} if ledger.answers.given else {}),
    }


def from_plain(values: object, state: State) -> Ledger:
    """Return the ledger from plain values; raise SnapshotError if it does not fit the state."""
    if values is None:
        return Ledger(n_events=state.n_events)
    try:
        ledger = _build(values, state)
    except (TypeError, ValueError, KeyError, AttributeError, IndexError):
        raise _impossible("it has the shape of one") from None
    check(ledger, state)
    return ledger


def check(ledger: Ledger, state: State) -> None:
    """Raise SnapshotError, which names the rule, if a ledger does not fit the state."""
    for rule, holds in _RULES:
        if not holds(ledger, state):
            raise _impossible(rule)


def signature(ledger: Ledger) -> tuple[Any, ...]:
    """Return what of a ledger decides later answers, in a fixed order; may be empty."""

    def places(pins: list[int]) -> list[tuple[int, int]]:
        found = [ledger.pins[pin] for pin in pins]
        return sorted((pin.node, pin.vector) for pin in found if pin.node != GONE)

    laws = [
        (law.together, law.text, law.mover, places(law.sides[0]), places(law.sides[1]))
        for law in ledger.laws
    ]
    groups = [places(group) for group in ledger.groups]
    used = (
        sorted(ledger.names.items()),
        sorted(ledger.ignored),
        sorted(ledger.missing_weights.items()),
        [law for law in laws if law[3] and law[4]],
        sorted(group for group in groups if group),
        sorted((key, groups[group]) for key, group in ledger.keys.items() if groups[group]),
        *([(list(ledger.held), ledger.policy)] if ledger.held or ledger.policy else []),
    )
    return used if any(used) else ()


def _build(values: Any, state: State) -> Ledger:
    ledger = Ledger(
        n_events=state.n_events,
        texts=list(values["texts"]),
        aliases=dict(values["aliases"]),
        names=dict(values["names"]),
        ignored=set(values["ignored"]),
        locked=set(values["locked"]),
        missing_weights=dict(values["lights"]),
        book=LawBook(_law(*row) for row in values["laws"]),
        groups=[list(group) for group in values["groups"]],
        keys=dict(values["keys"]),
        held=Held(values.get("held", [])),
        policy=values.get("policy"),
        tracked=state.track_vectors,
        answers=Answers.from_plain(values["answers"]) if "answers" in values else Answers(),
    )
    for node, vector, group in values["pins"]:
        ledger.add_pin(node, vector, group)
    return ledger


def _law(
    together: Any, sequence: Any, text: Any, mover: Any, a: Any, b: Any, level: Any = None
) -> Law:
    """Return the law of a row; old files have no level."""
    if level is None:
        kind = _KIND.fullmatch(text)
        level = KINDS.index(kind[1]) if kind else ENROLLED if mover < 0 else VECTORS
    return Law(bool(together), sequence, text, mover, level, (list(a), list(b)))


def _whole(values: list[Any], low: int, high: int) -> bool:
    return all(type(value) is int and low <= value < high for value in values)


def _all_there(values: Collection[Any], present: Integers) -> bool:
    """Return whether all values are integers among those present."""
    given = list(values)
    return not given or (_whole(given, 0, 2**62) and bool(np.isin(given, present).all()))


def _numbers_fit(ledger: Ledger, state: State) -> bool:
    n = max(state.n_vectors, 1)
    nodes = [pin.node for pin in ledger.pins]
    return (
        _whole([*ledger.aliases], 0, state.free_cluster)
        and _whole([*ledger.aliases.values()], 0, state.free_cluster)
        and _all_there(ledger.names.keys(), state.clusters)
        and _all_there(ledger.ignored, state.clusters)
        and _all_there(ledger.locked, state.numbers)
        and _whole([*ledger.missing_weights], 0, n)
        and _whole([*ledger.missing_weights.values()], 1, FULL + 1)
        and _whole(nodes, GONE, state.free_subcluster)
        and _all_there([node for node in nodes if node != GONE], state.numbers)
        and _whole([pin.vector for pin in ledger.pins], -1, n)
        and _whole(list(ledger.held), 0, n)
        and _whole([law.mover for law in ledger.laws], -1, n)
        and _whole([law.level for law in ledger.laws], ENROLLED, CLUSTERS + 1)
        and _whole([law.sequence for law in ledger.laws], 0, max(state.n_events, 1))
    )


def _texts_fit(ledger: Ledger, _state: State) -> bool:
    texts = [*ledger.texts, *ledger.keys, *(law.text for law in ledger.laws)]
    return all(isinstance(text, str) for text in texts) and all(
        SPOKEN.match(law.text) for law in ledger.laws if law.level != ENROLLED
    )


def _names_fit(ledger: Ledger, _state: State) -> bool:
    names = list(ledger.names.values())
    return all(map(is_name, names)) and len(set(names)) == len(names)


def _chains_end(ledger: Ledger, state: State) -> bool:
    if np.isin(list(ledger.aliases), state.clusters).any():
        return False
    ending: set[int] = set()
    for cluster in ledger.aliases:
        chain: set[int] = set()
        while cluster in ledger.aliases and cluster not in ending:
            if cluster in chain:
                return False
            chain.add(cluster)
            cluster = ledger.aliases[cluster]
        ending |= chain
    return True


def _locks_fit(ledger: Ledger, state: State) -> bool:
    return ledger.locked == set(state.numbers[state.flags & LOCKED > 0].tolist())


def _weights_fit(ledger: Ledger, state: State) -> bool:
    """Return whether weights of vectors add up to those of their subclusters."""
    if not state.track_vectors:
        return not ledger.missing_weights
    if not ledger.missing_weights:
        return not state.missing_weight.any()
    places = indices_of(state, state.vectors[list(ledger.missing_weights)])
    assert places is not None, "the state was checked before"
    weights = np.array([0, *ledger.missing_weights.values()])
    summed = np.bincount(np.append(-1, places) + 1, weights, minlength=len(state.numbers) + 1)
    return np.array_equal(summed[1:], state.missing_weight)


def _pins_fit(ledger: Ledger, state: State) -> bool:
    n = len(ledger.pins)
    return (
        all(_whole([*a, *b], 0, n) for law in ledger.laws for a, b in [law.sides])
        and _whole([pin.group for pin in ledger.pins], -1, len(ledger.groups))
        and all(_whole(group, 0, n) for group in ledger.groups)
        and _whole([*ledger.keys.values()], 0, max(len(ledger.groups), 1))
        and (not ledger.keys or bool(ledger.groups))
        and _pins_are_where_their_vectors_are(ledger, state)
    )


def _pins_are_where_their_vectors_are(ledger: Ledger, state: State) -> bool:
    """Return whether each pin of a vector is on the subcluster that holds it, or was dropped."""
    if not state.track_vectors:
        return True
    spoken = {pin for law in ledger.laws for side in law.sides for pin in side}
    held = [
        pin
        for number, pin in enumerate(ledger.pins)
        if pin.vector >= 0 and (pin.node != GONE or pin.group >= 0 or number in spoken)
    ]
    nodes = [pin.node for pin in held]
    return nodes == state.vectors[[pin.vector for pin in held]].tolist() if held else True


def _held_fit(ledger: Ledger, state: State) -> bool:
    """Return whether held vectors are in no subcluster."""
    if ledger.held and (state.vectors[list(ledger.held)] != GONE).any():
        return False
    try:
        Policy.from_bounds(ledger.policy)
    except (ValueError, TypeError, RecursionError):
        return False
    return True


def _corrections_fit(ledger: Ledger, _state: State) -> bool:
    return all(_sides_fit(ledger, law) for law in ledger.laws)


def _sides_fit(ledger: Ledger, law: Law) -> bool:
    """Return whether both sides of a correction are of its level."""
    sides = [[ledger.pins[pin].vector for pin in side] for side in law.sides]
    if law.mover >= 0:  # of a vector, and of what it is with or apart from
        return law.level == VECTORS and {*sides[0]} <= {law.mover} and {*sides[1]} <= {-1}
    if law.level in (VECTORS, ENROLLED):
        return all(vector >= 0 for side in sides for vector in side)
    return all(vector == -1 for side in sides for vector in side)


def _groups_fit(ledger: Ledger, _state: State) -> bool:
    """Return whether pins and groups agree on which pins are in which group."""
    told = [(pin, number) for number, group in enumerate(ledger.groups) for pin in group]
    own = [(number, pin.group) for number, pin in enumerate(ledger.pins) if pin.group >= 0]
    return sorted(told) == own


def _owners_fit(ledger: Ledger, _state: State) -> bool:
    """Return whether each pin is of one correction or of a group: retracting drops its pins."""
    owners = {(pin, law.sequence) for law in ledger.laws for side in law.sides for pin in side}
    owners |= {(pin, -1) for group in ledger.groups for pin in group}
    return len(owners) == len({pin for pin, _ in owners})


_RULES = (
    ("numbers are whole and were given", _numbers_fit),
    ("keys are texts", _texts_fit),
    ("names are texts, each of one cluster", _names_fit),
    ("IDs that are gone are not live, and every chain of them ends", _chains_end),
    ("subclusters are locked as the state has it", _locks_fit),
    ("weights of vectors add up to those of the state", _weights_fit),
    ("held vectors are in no subcluster, and the policy can be one", _held_fit),
    ("constraints and groups are between pins, and pins where their vectors are", _pins_fit),
    ("constraints speak of vectors or of wholes, each as it was made", _corrections_fit),
    ("pins and groups agree", _groups_fit),
    ("a pin is of one correction or of a group", _owners_fit),
    ("the graph obeys the constraints", laws.obeyed),
)


def _impossible(rule: str) -> SnapshotError:
    return damaged(f"a ledger where it does not hold that {rule}", "what linkstream wrote")


_ENDS = (events.MERGED, events.VANISHED)
_PUTS = (events.MOVED, events.TRANSFERRED)


def check_log(state: State, ledger: Ledger) -> None:
    """Raise SnapshotError, which names the rule, if a complete log did not lead to the state.

    Edges are not followed and decisions not repeated; that takes a fold, which `undo` does.
    """
    log = state.events
    if not len(log):
        return
    if not _texts_are_there(log, len(ledger.texts)):
        raise _impossible_log("each text it names is there")
    if not state.track_vectors or len(log) != state.n_events:
        return  # nothing before the state can be undone
    undone = bool(np.isin(log[:, 0], (events.UNDONE, events.REDONE)).any())
    standing = Timeline.of(log, 0).rows if undone else log
    if not _vectors_came(standing, state.n_vectors):
        raise _impossible_log("each vector came once, in order")
    lives = _Lives.of(standing, state.free_subcluster)
    if lives is None or not lives.fit(standing, state):
        raise _impossible_log("subclusters are spoken of between birth and end, and these are left")
    if not np.array_equal(lives.holders(standing, state.n_vectors), state.vectors):
        raise _impossible_log("each vector is where the events put it")


def _texts_are_there(log: Integers, n: int) -> bool:
    telling = log[np.isin(log[:, 0], np.flatnonzero(logrules.TEXTS.any(axis=1)))]
    numbers = telling[:, 2:][logrules.TEXTS[telling[:, 0]]]
    return bool(np.all(numbers < n))


def _vectors_came(rows: Integers, n: int) -> bool:
    return np.array_equal(rows[_arrivals(rows), 1], np.arange(n))


def _arrivals(rows: Integers) -> npt.NDArray[np.bool_]:
    """Return which rows add a vector."""
    codes = rows[:, 0]
    arrivals: npt.NDArray[np.bool_] = (codes <= events.LINKED) | (codes == events.DEFERRED)
    return arrivals


@dataclass(frozen=True, slots=True)
class _Lives:
    """The rows of birth and end of each subcluster, by number; `never` is after all rows.

    `rare` are all rows except those of vectors that joined a subcluster, which are most rows.
    """

    born: Integers
    ended: Integers
    never: int
    rare: Integers
    places: Integers  # of the rare rows, in the log

    @classmethod
    def of(cls, log: Integers, n: int) -> _Lives | None:
        """Return births and ends of the subclusters below number n; None if one is born twice."""
        places = np.flatnonzero(log[:, 0] != events.JOINED)
        rows, never = log[places], len(log)
        codes = rows[:, 0]
        born, ended = np.full(n, never), np.full(n, never)
        begun = np.flatnonzero((codes == events.CREATED) | (codes == events.LINKED))
        born[rows[begun, 2]] = places[begun]
        put = np.flatnonzero(np.isin(codes, _PUTS))
        numbers = np.where(codes[put] == events.MOVED, rows[put, 3], rows[put, 4])
        fresh = born[numbers] == never
        np.minimum.at(born, numbers[fresh], places[put[fresh]])  # when it got its first vector
        merged, vanished = (np.flatnonzero(codes == code) for code in _ENDS)
        gone = np.concatenate([rows[merged, 3], rows[vanished, 2]])
        heirs = np.concatenate([rows[merged, 2], rows[vanished, 3]])
        ended[gone] = places[np.concatenate([merged, vanished])]
        unique = len(np.unique(gone)) == len(gone) and not np.any(gone == heirs)
        unique = unique and np.array_equal(born[rows[begun, 2]], places[begun])
        return cls(born, ended, never, rows, places) if unique else None

    def fit(self, log: Integers, state: State) -> bool:
        """Return whether numbers rise with births, and events name living subclusters only."""
        known = np.flatnonzero(self.born < self.never)
        births = self.born[known]
        there = known[self.ended[known] == self.never]
        joined = np.flatnonzero(log[:, 0] == events.JOINED)
        return (
            bool(np.all(births[1:] > births[:-1]))
            and state.next_subcluster == (int(known[-1]) + 1 if len(known) else 0)
            and np.array_equal(there, state.numbers)
            and self._alive(log[joined, 2], joined)
            and all(self._column_fits(column) for column in range(2, events.WIDTH))
        )

    def _column_fits(self, column: int) -> bool:
        """Return whether the subclusters in a column of the rare rows live at that time."""
        named = logrules.KINDS[:, column - 2] == logrules.SUBCLUSTER
        told = named[self.rare[:, 0]] & (self.rare[:, column] >= 0)
        return self._alive(self.rare[told, column], self.places[told])

    def _alive(self, numbers: Integers, places: Integers) -> bool:
        return bool(np.all((self.born[numbers] <= places) & (places <= self.ended[numbers])))

    def holders(self, log: Integers, n: int) -> Integers:
        """Return the subcluster of each vector; −1 if it was removed."""
        holder: Integers = log[_arrivals(log), 2]
        codes = self.rare[:, 0]
        changed = self.rare[np.isin(codes, (*_PUTS, events.REMOVED))]
        for code, _, member, number, target, _ in changed.tolist():
            if 0 <= member < n and code == events.TRANSFERRED:
                holder[member] = target
            elif 0 <= member < n:
                holder[member] = number if code == events.MOVED else -1
        heirs = np.arange(len(self.born) + 1)
        merged = codes == events.MERGED
        heirs[self.rare[merged, 3]] = self.rare[merged, 2]
        heirs = _settled(heirs)
        gone = np.append(self.ended[heirs[:-1]] < self.never, True)
        heirs[gone] = -1
        return heirs[holder]


def _settled(heirs: Integers) -> Integers:
    """Return the last heir of each; a chain of n takes log n rounds."""
    while True:
        further = heirs[heirs]
        if np.array_equal(further, heirs):
            return heirs
        heirs = further


def _impossible_log(rule: str) -> SnapshotError:
    seen = f"a log of events where it does not hold that {rule}"
    return damaged(seen, "the log that led to this state")
