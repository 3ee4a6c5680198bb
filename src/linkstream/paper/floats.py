"""NumPy without warnings, and without a crash where memory runs out."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import numpy as np

T = TypeVar("T")

# Since NumPy 2 the settings belong to a context. Entering `numpy.errstate` ends the process if
# memory runs out there (seen with NumPy 2.4), so `quietly` copies a context that is set already.
_CONTEXT = contextvars.copy_context() if int(np.__version__.split(".")[0]) >= 2 else None
if _CONTEXT is not None:
    _CONTEXT.run(np.seterr, all="ignore")

# The arrays of this library hold these types alone.
_TYPES = frozenset(np.dtype(kind).char for kind in ("?", "u1", "i4", "i8", "f4", "f8"))


def _fill_caches() -> None:
    """Let NumPy look up each loop once.

    NumPy keeps a loop at its first use. Without memory for that, the first call with operands of
    two types (as `array / 2`) ends the process (seen with NumPy 2.4). A loop found is kept.
    """
    for ufunc in vars(np).values():
        if not isinstance(ufunc, np.ufunc) or not hasattr(ufunc, "resolve_dtypes"):
            continue
        for types in (each.replace("->", "") for each in ufunc.types):
            if _TYPES.issuperset(types):
                loop = tuple(map(np.dtype, types))
                with suppress(TypeError):  # a version that resolves a loop in another way
                    ufunc.resolve_dtypes(loop[: ufunc.nin] + (None,) * ufunc.nout, signature=loop)


_fill_caches()


def quietly(compute: Callable[[], T]) -> T:
    """Return what a function returns; overflow and division by zero in it give no warning.

    >>> quietly(lambda: 1.0 / np.zeros(2))
    array([inf, inf])
    """
    if _CONTEXT is not None:
        return _CONTEXT.copy().run(compute)
    with np.errstate(all="ignore"):
        return compute()
