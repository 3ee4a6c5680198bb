"""Choose the engine: the compiled one if it is installed, else the reference engine."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.engine.contract import Engine, VectorStore
from linkstream.engine.linkage import Unite
from linkstream.engine.state import State
from linkstream.errors import ArgumentError, EngineUnavailableError

Quantised = tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]

NAMES = ("auto", "native", "reference")
THREADS_MAX = 1024


@dataclass(frozen=True, slots=True)
class Factory:
    """The functions that belong to one kind of engine."""

    name: str
    make: Callable[[State, VectorStore | None], Engine]
    vector_store: Callable[[int], VectorStore]
    quantise: Callable[[npt.NDArray[np.float32]], Quantised]
    unions: Unite


def choose(name: str, threads: int | None) -> Factory:
    """Return the factory that the options `engine=` and `threads=` name."""
    if name not in NAMES:
        raise ArgumentError(
            f"engine={name!r}",
            expected=f"one of {', '.join(map(repr, NAMES))}",
            remedy="Use 'auto' for the fastest engine that is installed.",
        )
    if threads is not None and not (type(threads) is int and 1 <= threads <= THREADS_MAX):
        raise ArgumentError(
            f"threads={threads!r}",
            expected=f"a whole number from 1 to {THREADS_MAX}, or None",
            remedy="Pass None to use all cores. Results do not depend on the number of threads.",
        )
    missing = native_missing()
    if name == "native" and missing:
        raise EngineUnavailableError(
            f"engine='native', but {missing}",
            expected="an installation with the compiled core",
            remedy="Use engine='auto'; `linkstream doctor` shows what is installed.",
        )
    return _reference() if name == "reference" or missing else _native(threads)


@functools.cache
def native_missing() -> str | None:
    """Return why the compiled engine cannot run here; None if it can."""
    try:
        importlib.import_module("linkstream._core")
    except ImportError as error:
        return f"the compiled core is not installed ({error})"
    return None


# Each engine is imported only when it is chosen, to save the import time of the other.


def _reference() -> Factory:
    from linkstream.engine import fixed_point, linkage, reference, vector_store

    make = reference.ReferenceEngine.from_state
    store = vector_store.ReferenceVectorStore
    return Factory("reference", make, store, fixed_point.quantise, linkage.unions)


def _native(threads: int | None) -> Factory:
    from linkstream.engine import native

    def make(state: State, vector_store: VectorStore | None) -> Engine:
        return native.NativeEngine.from_state(state, vector_store, threads=threads)

    unions = functools.partial(native.unions, threads=threads)
    return Factory("native", make, native.NativeVectorStore, native.quantise, unions)
