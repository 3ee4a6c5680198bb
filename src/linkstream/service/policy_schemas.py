"""Schemas of answers about unsure vectors."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel


class Policy(BaseModel):
    """What is done with unsure vectors; margins are null where all decisions are sure."""

    unsure: Literal["take", "hold", "weigh"]
    probability: float | None
    new: float | None
    weight: float
    joined_margin: float | None
    new_margin: float | None


class HeldVector(BaseModel):
    """A vector that waits for a decision, its own key, its payload, and what it would get now.

    Cluster −1 is a new one.
    """

    vector: int
    cluster: int
    kind: Literal["joined", "linked", "new"]
    cluster_margin: float | None
    probability: float | None
    id: str | None
    payload: Any


class Held(BaseModel):
    """Vectors that wait for a decision, newest first."""

    held: list[HeldVector]
