"""Events from what stands for them: the rows of the engine, and plain values of JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.engine.events import CLASSES, PROBABILITY, VERSION, Decided, Event
from linkstream.errors import ArgumentError


def numbers_of(event: Event | type[Event]) -> list[str]:
    """Return the names of the fields after `sequence` and `vector`, in the order of a row."""
    return [each.name for each in fields(event)[2:] if each.name != PROBABILITY]


def from_rows(
    first_sequence: int, rows: npt.NDArray[np.int64], texts: Sequence[str] = ()
) -> list[Event]:
    """Return events from rows, the first of which has the sequence number given."""
    return [
        _from_row(sequence, values, texts)
        for sequence, values in enumerate(rows.tolist(), first_sequence)
    ]


def from_dict(values: Mapping[str, Any]) -> Event:
    """Return the event whose `to_dict` gave these values; raise ArgumentError for others."""
    known = {event.kind: event for event in CLASSES}
    event = known.get(values.get("kind", ""))
    if event is None or values.get("version", VERSION) != VERSION:
        raise ArgumentError(
            f"an event of kind {values.get('kind')!r}, version {values.get('version', VERSION)!r}",
            expected=f"version {VERSION}, of kind {', '.join(known)}",
            remedy="Upgrade linkstream; a newer version may have written the event.",
        )
    given = {name: value for name, value in values.items() if name not in ("kind", "version")}
    wanted = ["sequence", "vector", *numbers_of(event)]
    told = _told(event, given)
    kinds = {name: (str, type(None)) if name in event.texts else (int,) for name in given}
    if sorted(given) != sorted(wanted) or any(type(given[n]) not in kinds[n] for n in given):
        raise ArgumentError(
            f"a {event.kind!r} event with {given}",
            expected=f"integers (texts for {event.texts}) for {', '.join(wanted)}",
            remedy="Pass the result of to_dict() unchanged.",
        )
    return event(**given, **told)


def _told(event: type[Event], given: dict[str, Any]) -> dict[str, Any]:
    """Take the probability out of the values of an event, if it is one of a decision."""
    told = given.get(PROBABILITY)
    if not issubclass(event, Decided) or type(told) is not float or not 0.0 <= told <= 1.0:
        return {}
    return {PROBABILITY: given.pop(PROBABILITY)}


# For each class: how many numbers follow the code, and which of them name texts.
_WIDTHS = [1 + len(numbers_of(event)) for event in CLASSES]
_TEXTS = [
    [i for i, name in enumerate(numbers_of(event), start=1) if name in event.texts]
    for event in CLASSES
]


def _from_row(sequence: int, row: list[int], texts: Sequence[str]) -> Event:
    code = row[0]
    values: list[Any] = row[1 : 1 + _WIDTHS[code]]
    for i in _TEXTS[code]:
        values[i] = None if values[i] < 0 else texts[values[i]]
    return CLASSES[code](sequence, *values)
