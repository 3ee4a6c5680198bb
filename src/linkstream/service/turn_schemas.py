"""Schemas of the routes of recordings: segments in, turns out."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, create_model

from linkstream import turn_model
from linkstream.service.schemas import Body, Number, Rows

AT_ONCE = 256  # segments in one request; each is a commit of its own

Span = Annotated[list[Number], Field(min_length=2, max_length=2)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


_NUMBERS: dict[str, Any] = {
    each.name: (Number, each.default) for each in fields(turn_model.TimeModel)
}
TimeModel: Any = create_model(
    "TimeModel",
    __base__=Body,
    __doc__="Parameters of the evidence of time; those that are left out have their defaults.",
    **_NUMBERS,
)


class Segments(Body):
    """Segments of speech in order of time, and with the first of them the parameters.

    `times` has the start and the end of each segment in seconds. `delay` null decides on each
    segment by itself, in any order, and allows `groups`: segments of one group have different
    speakers.
    """

    vectors: Rows
    times: Annotated[list[Span], Field(min_length=1, max_length=AT_ONCE, fail_fast=True)]
    groups: Annotated[list[str | None], Field(max_length=AT_ONCE, fail_fast=True)] | None = None
    delay: Seconds | None = 1.0
    gap: Seconds = 0.5
    overlaps: Literal["cut", "keep"] = "cut"
    model: TimeModel = TimeModel()


class Turn(BaseModel):
    """A turn of a speaker, in seconds."""

    start: float
    end: float
    speaker: str
    cluster: int | None


class Final(BaseModel):
    """Turns that became final, and the number of segments that the recording has now."""

    segments: int
    final: list[Turn]


class Recording(BaseModel):
    """A recording: its size, whether it has ended, and its parameters."""

    recording: str
    segments: int
    seconds: float
    final: int
    finished: bool
    delay: float | None
    gap: float
    overlaps: str
    model: TimeModel


class Recordings(BaseModel):
    """The recordings in memory, the one that was used last first."""

    recordings: list[Recording]


class Turns(Recording):
    """A recording, its turns at a moment, and those that may still change."""

    moment: str
    turns: list[Turn]
    pending: list[Turn]
