"""Which engine runs: the compiled one where it is there, else the reference."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.engine.contract import Engine, Keep
from linkstream.engine.linkage import Floats, Unions
from linkstream.engine.state import State
from linkstream.errors import ArgumentError, EngineUnavailableError
from linkstream.paper.thresholds import Thresholds

Quantised = tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]

NAMES = ("auto", "native", "reference")
THREADS_MAX = 1024


@dataclass(frozen=True, slots=True)
class Factory:
    """Makes engines of one kind from a state, and does what goes with them."""

    name: str
    make: Callable[[State, Keep | None], Engine]
    keep: Callable[[int], Keep]
    quantise: Callable[[npt.NDArray[np.float32]], Quantised]
    unions: Callable[[Floats, Floats, Floats, Thresholds], Unions]


def choose(name: str, threads: int | None) -> Factory:
    """The factory that `engine=` and `threads=` stand for."""
    if name not in NAMES:
        raise ArgumentError(
            f"engine={name!r}",
            expected=f"one of {', '.join(map(repr, NAMES))}",
            remedy="'auto' takes the fastest engine that is installed.",
        )
    if threads is not None and not (type(threads) is int and 1 <= threads <= THREADS_MAX):
        raise ArgumentError(
            f"threads={threads!r}",
            expected=f"a whole number from 1 to {THREADS_MAX}, or None",
            remedy="None takes as many as the machine has cores. Results do not depend on it.",
        )
    missing = native_missing()
    if name == "native" and missing:
        raise EngineUnavailableError(
            f"engine='native', but {missing}",
            expected="an installation with the compiled core",
            remedy="Use engine='auto'; `linkstream doctor` says what is installed.",
        )
    return _reference() if name == "reference" or missing else _native(threads)


@functools.cache
def native_missing() -> str | None:
    """Why the compiled engine cannot run here; None where it can."""
    try:
        importlib.import_module("linkstream._core")
    except ImportError as error:
        return f"the compiled core is not there ({error})"
    return None


# Each engine is imported when it is chosen: the other's time is saved.


def _reference() -> Factory:
    from linkstream.engine import fixed_point, kept, linkage, reference

    make = reference.ReferenceEngine.from_state
    return Factory("reference", make, kept.Kept, fixed_point.quantise, linkage.unions)


def _native(threads: int | None) -> Factory:
    from linkstream.engine import native

    def make(state: State, keep: Keep | None) -> Engine:
        return native.NativeEngine.from_state(state, keep, threads=threads)

    return Factory("native", make, native.Kept, native.quantise, native.unions)
