"""Which engine runs: the compiled one where it is there, else the reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.engine.contract import Engine
from linkstream.engine.fixed_point import quantise
from linkstream.engine.reference import ReferenceEngine
from linkstream.engine.state import State
from linkstream.errors import ArgumentError, EngineUnavailableError

Quantised = tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]

NAMES = ("auto", "native", "reference")
NATIVE_MISSING = "this version of linkstream has no compiled engine"


@dataclass(frozen=True, slots=True)
class Factory:
    """Makes engines of one kind from a state, and fixed-point rows for them."""

    name: str
    make: Callable[[State], Engine]
    quantise: Callable[[npt.NDArray[np.float32]], Quantised]


def choose(name: str, threads: int | None) -> Factory:
    """The factory that `engine=` and `threads=` stand for."""
    if name not in NAMES:
        raise ArgumentError(
            f"engine={name!r}",
            expected=f"one of {', '.join(map(repr, NAMES))}",
            remedy="'auto' takes the fastest engine that is installed.",
        )
    if threads is not None and (type(threads) is not int or threads < 1):
        raise ArgumentError(
            f"threads={threads!r}",
            expected="a whole number of 1 or more, or None",
            remedy="None takes as many as the machine has cores. Results do not depend on it.",
        )
    if name == "native":
        raise EngineUnavailableError(
            f"engine='native', but {NATIVE_MISSING}",
            expected="an installation with the compiled core",
            remedy="Use engine='auto'; `linkstream doctor` says what is installed.",
        )
    return Factory("reference", ReferenceEngine.from_state, quantise)
