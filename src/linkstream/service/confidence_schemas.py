"""Schemas of answers about probabilities."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class Probabilities(BaseModel):
    """For each vector clusters, −1 for a new one, and probabilities; empty if unknown."""

    clusters: list[list[int]]
    probabilities: list[list[float]]


class Bin(BaseModel):
    """Answers to decisions that were told about the same probability.

    `told` is the mean of the probabilities, `right` the share that was right, `error` its standard
    error.
    """

    told: float
    right: float
    error: float
    answers: int


class Confidence(BaseModel):
    """Why probabilities are unknown (empty: they are known), what they rest on, and the model.

    `answered`: the probability that was told of each judged decision, and whether it was right;
    `bins`: the same as points of the reliability diagram. A brief answer has no model, and no
    `answered`.
    """

    why: str
    identities: int | None
    answers: int | None
    check: dict[str, Any] | None
    drifted: bool
    bins: list[Bin]
    answered: list[tuple[float, bool]]
    model: dict[str, Any] | None
