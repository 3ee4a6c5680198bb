"""Records: the ledger as plain values for a snapshot, and back, checked."""

from __future__ import annotations

import re
from typing import Any

from linkstream.engine.forest import FULL
from linkstream.engine.state import State
from linkstream.errors import SnapshotError
from linkstream.identity.ledger import CLUSTERS, ENROLLED, GONE, KINDS, SPOKEN, VECTORS, Law, Ledger

_KIND = re.compile(rf"(?:same|different)\(\d+, \d+\) of ({'|'.join(KINDS)}), event \d+")


def to_plain(ledger: Ledger) -> dict[str, Any]:
    """All of a ledger that is between two changes, as plain values."""
    return {
        "texts": list(ledger.texts),
        "aliases": sorted(map(list, ledger.aliases.items())),
        "names": sorted(map(list, ledger.names.items())),
        "ignored": sorted(ledger.ignored),
        "locked": sorted(ledger.locked),
        "lights": sorted(map(list, ledger.lights.items())),
        "pins": [[pin.node, pin.vector, pin.group] for pin in ledger.pins],
        "laws": [
            [
                int(law.together),
                law.sequence,
                law.text,
                law.mover,
                *map(list, law.sides),
                law.level,
            ]
            for law in ledger.laws
        ],
        "groups": [list(group) for group in ledger.groups],
        "keys": sorted(map(list, ledger.keys.items())),
    }


def from_plain(values: object, state: State) -> Ledger:
    """What `to_plain` gave, checked against the state it came with (SnapshotError)."""
    if values is None:
        return Ledger(n_events=state.n_events)
    try:
        ledger = _build(values, state)
    except (TypeError, ValueError, KeyError, AttributeError, IndexError):
        raise _impossible("it has the shape of one") from None
    for rule, holds in (
        ("numbers are whole and were given", _numbers_fit(ledger, state)),
        ("names and keys are texts", _texts_fit(ledger)),
        (
            "IDs that are gone are not live, and every chain of them ends",
            _chains_end(ledger, state),
        ),
        ("constraints and groups are between pins", _pins_fit(ledger)),
    ):
        if not holds:
            raise _impossible(rule)
    return ledger


def signature(ledger: Ledger) -> tuple[Any, ...]:
    """What of a ledger decides later answers, in one order; empty where nothing was said."""

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
        sorted(ledger.lights.items()),
        [law for law in laws if law[3] and law[4]],
        sorted(group for group in groups if group),
        sorted((key, groups[group]) for key, group in ledger.keys.items() if groups[group]),
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
        lights=dict(values["lights"]),
        laws=[_law(*row) for row in values["laws"]],
        groups=[list(group) for group in values["groups"]],
        keys=dict(values["keys"]),
        tracked=state.track_vectors,
    )
    for node, vector, group in values["pins"]:
        ledger._pin(node, vector, group)
    return ledger


def _law(
    together: Any,
    sequence: Any,
    text: Any,
    mover: Any,
    a: Any,
    b: Any,
    level: Any = None,
) -> Law:
    """A row of a snapshot; files of before corrections had levels leave the last one out."""
    if level is None:
        kind = _KIND.fullmatch(text)
        level = KINDS.index(kind[1]) if kind else ENROLLED if mover < 0 else VECTORS
    return Law(bool(together), sequence, text, mover, level, (list(a), list(b)))


def _whole(values: list[Any], low: int, high: int) -> bool:
    return all(type(value) is int and low <= value < high for value in values)


def _numbers_fit(ledger: Ledger, state: State) -> bool:
    n = max(state.n_vectors, 1)
    live = set(state.numbers.tolist())
    clusters = set(state.clusters.tolist())
    nodes = [pin.node for pin in ledger.pins]
    return (
        _whole([*ledger.aliases], 0, state.free_cluster)
        and _whole([*ledger.aliases.values()], 0, state.free_cluster)
        and clusters.issuperset(ledger.names)
        and clusters.issuperset(ledger.ignored)
        and live.issuperset(ledger.locked)
        and _whole([*ledger.lights], 0, n)
        and _whole([*ledger.lights.values()], 1, FULL + 1)
        and live.issuperset(node for node in nodes if node != GONE)
        and _whole(nodes, GONE, state.free_subcluster)
        and _whole([pin.vector for pin in ledger.pins], -1, n)
        and _whole([law.mover for law in ledger.laws], -1, n)
        and _whole([law.level for law in ledger.laws], ENROLLED, CLUSTERS + 1)
        and _whole([law.sequence for law in ledger.laws], 0, max(state.n_events, 1))
    )


def _texts_fit(ledger: Ledger) -> bool:
    texts = [
        *ledger.texts,
        *ledger.names.values(),
        *ledger.keys,
        *(law.text for law in ledger.laws),
    ]
    return all(type(text) is str for text in texts) and all(
        SPOKEN.match(law.text) for law in ledger.laws if law.level != ENROLLED
    )


def _chains_end(ledger: Ledger, state: State) -> bool:
    if ledger.aliases.keys() & set(state.clusters.tolist()):
        return False
    for cluster in ledger.aliases:
        steps = 0
        while cluster in ledger.aliases:
            cluster, steps = ledger.aliases[cluster], steps + 1
            if steps > len(ledger.aliases):
                return False
    return True


def _pins_fit(ledger: Ledger) -> bool:
    n = len(ledger.pins)
    return (
        all(_whole([*a, *b], 0, n) for law in ledger.laws for a, b in [law.sides])
        and _whole([pin.group for pin in ledger.pins], -1, len(ledger.groups))
        and all(_whole(group, 0, n) for group in ledger.groups)
        and _whole([*ledger.keys.values()], 0, max(len(ledger.groups), 1))
        and (not ledger.keys or bool(ledger.groups))
    )


def _impossible(rule: str) -> SnapshotError:
    return SnapshotError(
        f"a ledger where it does not hold that {rule}",
        expected="what linkstream wrote",
        remedy="The file is damaged or was made by another program; use a backup.",
    )
