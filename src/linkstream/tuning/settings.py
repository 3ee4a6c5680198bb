"""How to search, checked before any work."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from linkstream.engine import choice
from linkstream.errors import ArgumentError
from linkstream.tuning.candidate import Objective


@dataclass(frozen=True, slots=True)
class Settings:
    """What `tune` was asked for. `workers` of None means one a core."""

    objective: Objective
    trials: int
    orders: int
    seed: int
    workers: int | None
    engine: str

    def __post_init__(self) -> None:
        _check("trials", self.trials, least=1, remedy="It says how many settings to try.")
        _check("orders", self.orders, least=1, remedy="The first is the order given.")
        _check("seed", self.seed, least=0, remedy="The same seed gives the same outcome.")
        if self.workers is not None:
            _check("workers", self.workers, least=1, remedy="Leave it out for one a core.")
        choice.choose(self.engine, 1)

    @property
    def threads(self) -> int:
        """Threads to judge trials with."""
        return self.workers or os.cpu_count() or 1


def _check(name: str, value: object, *, least: int, remedy: str) -> None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < least:  # type: ignore[operator]  # a whole number by now
        raise ArgumentError(
            f"{name}={value!r}", expected=f"a whole number of {least} or more", remedy=remedy
        )
