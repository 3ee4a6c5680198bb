"""The base of all classes of events; see events.py."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

PROBABILITY = "probability"  # the field of `Decided` that is no part of a row
VERSION = 1  # of the plain values; a change that old readers would misread raises it


@dataclass(frozen=True, slots=True)
class Event:
    """A change; `vector` is the newest vector at that time, which caused it."""

    kind: ClassVar[str] = "event"  # the name of the class, in lower case
    texts: ClassVar[tuple[str, ...]] = ()  # fields whose numbers in rows stand for texts
    sequence: int
    vector: int

    def __init_subclass__(cls) -> None:
        cls.kind = cls.__name__.lower()

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain values for JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        told = values.pop(PROBABILITY, None)
        told = {} if told is None else {PROBABILITY: told}
        return {"kind": self.kind, "version": VERSION, **values, **told}


@dataclass(frozen=True, slots=True)
class Decided(Event):
    """The decision on a vector, and the probability that it is right, which is told on reading."""

    probability: float | None = field(default=None, kw_only=True, compare=False, repr=False)
