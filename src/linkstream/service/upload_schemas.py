"""Schemas of the routes of uploads and presets."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StrictBool

from linkstream.service.schemas import Body, Problem, Whole

PAIRS_MAX = 600  # answers of each kind

Name = Annotated[str, Field(min_length=1, max_length=1000)]
Pair = Annotated[list[Whole], Field(min_length=2, max_length=2)]
Pairs = Annotated[list[Pair], Field(fail_fast=True, max_length=PAIRS_MAX)]


class NewUpload(Body):
    """A file that will be sent in pieces: its name, whose end tells the kind, and its bytes."""

    file: Annotated[str, Field(min_length=1, max_length=255)]
    size: Annotated[int, Field(ge=1, le=2**53)]


class Columns(Body):
    """What the columns of a file are; of a .npz the arrays."""

    column: Name | None = Field(None, description="The vectors; null: the usual column.")
    id_column: Name | None = Field(None, description="The vectors' own keys.")
    time_column: Name | None = Field(None, description="Their times.")
    payload: Annotated[list[Name], Field(max_length=1000)] = Field(
        [], description="Columns to store with the vectors."
    )


class AddUpload(Columns):
    """Add the rows of a file."""

    skip_bad: StrictBool = Field(False, description="Leave out rows that cannot be added.")


class AskPairs(Columns):
    """Ask for pairs of rows."""

    count: Annotated[int, Field(ge=1, le=PAIRS_MAX)] = 60


class Calibrate(Columns):
    """Answers about pairs of rows; without any, thresholds follow from the vectors alone."""

    same: Pairs = Field([], description="Pairs of rows that are the same.")
    different: Pairs = Field([], description="Pairs of rows that are not.")


class Bad(BaseModel):
    """The rows that cannot be added: how many, and the first of them."""

    count: int
    first: list[Problem]


class Upload(BaseModel):
    """A file and how far it is; `share` is that of the present state."""

    upload: str
    file: str
    size: int
    received: int
    state: Literal[
        "receiving", "ready", "checking", "adding", "done", "bad-rows", "failed", "cancelled"
    ]
    share: float
    rows: int
    added: int
    known: int
    bad: Bad
    before: int | None
    event: int | None
    error: Problem | None


class Uploads(BaseModel):
    """The uploads of a namespace, the oldest first."""

    uploads: list[Upload]


class Look(BaseModel):
    """What a file holds, and which column is probably what."""

    kind: str
    columns: list[str]
    vectors: list[str]
    others: list[str]
    column: str | None
    id_column: str | None
    time_column: str | None
    rows: list[Any]
    sample: list[list[float]]
    n: int | None
    dimension: int | None
    error: Problem | None


class PairQuestion(BaseModel):
    """Two rows with their payloads, and the cosine of their vectors."""

    rows: list[int]
    payloads: list[Any]
    similarity: float


class PairQuestions(BaseModel):
    """Pairs to answer, in the order to ask them, and how many rows they were chosen from."""

    sampled: int
    pairs: list[PairQuestion]


class Level(BaseModel):
    """A level of a preset: what one cluster is, and its thresholds."""

    name: str
    granularity: float
    words: str
    thresholds: dict[str, float]


class Preset(BaseModel):
    """A preset: encoder, dimension, levels, and what it was made from and measured on."""

    name: str
    encoder: str
    model: str
    dimension: int
    default: str
    levels: list[Level]
    made_from: list[str]
    figures: dict[str, Any]


class Presets(BaseModel):
    """All presets."""

    presets: list[Preset]
