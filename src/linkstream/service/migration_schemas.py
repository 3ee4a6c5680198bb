"""Schemas of the routes of a migration to another encoder."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from linkstream.service.schemas import AnyThresholds, Body, KeyText, Rows, Space, Whole


class Migration(Body):
    """What another encoder needs; null takes what the namespace has."""

    space: Space | None = None
    thresholds: AnyThresholds = None


class Reencoded(Body):
    """Vectors of another encoder, and the numbers of their items, or their own keys.

    `old` are their vectors of the present encoder, where a namespace does not keep them.
    """

    vectors: Rows
    numbers: Annotated[list[Whole], Field(fail_fast=True)] | None = None
    ids: Annotated[list[KeyText], Field(fail_fast=True)] | None = None
    old: Rows | None = None


class Finish(Body):
    """What the job that ends a migration does."""

    apply: bool = True
    hold: bool = False


class Asked(Body):
    """Vectors to ask about."""

    vectors: Rows


class MigrationStatus(BaseModel):
    """How many vectors another encoder has seen."""

    n_vectors: int
    reencoded: int
    missing: int
    dimension: int | None
    model: str | None
    pairs: int
    held: int
    share: float


class MigrationUnderWay(BaseModel):
    """The migration that is under way; null if there is none."""

    migration: MigrationStatus | None


class MigrationAdded(BaseModel):
    """How many vectors were taken: those of items that are there."""

    taken: int
