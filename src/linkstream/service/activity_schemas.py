"""Schemas of the answers about changes and times, as described by /openapi.json."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

ChangeKind = Literal["join", "cut", "move", "name", "remove", "rebuild", "policy", "undo"]


class Possible(BaseModel):
    """Whether something is possible, and why not."""

    possible: bool
    why: str


class Named(BaseModel):
    """A cluster with its name."""

    id: int
    name: str | None


class Moment(BaseModel):
    """When something happened, in seconds since 1970: by `time`, and after `after`."""

    time: float | None
    after: float | None


class Change(Moment):
    """A change of the namespace by a person, or by the stream itself."""

    event: int
    until: int
    verb: str
    command: str | None
    kind: ChangeKind
    automatic: bool
    count: int
    said: dict[str, Any]
    clusters: list[Named]
    joins: int
    cuts: int
    vectors: int
    vectors_since: int
    undone: bool
    undo: Possible
    redo: bool
    retract: Possible


class Activity(BaseModel):
    """Changes, the newest first; `next` is the `before` of the next page."""

    changes: list[Change]
    next: int | None
    complete: bool


class Moments(BaseModel):
    """When events happened, and when vectors came, in the order they were asked for."""

    events: list[Moment]
    vectors: list[Moment]


class Timeline(BaseModel):
    """Counts over time, in bins of equal width up to now."""

    now: float
    start: float
    width: float
    known: float | None
    before: int
    time: list[float]
    vectors: list[int | None]
    clusters: list[int | None]
    added: list[int]
