"""Floating-point arithmetic without the warnings of NumPy."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import TypeVar

import numpy as np

T = TypeVar("T")

# Since NumPy 2 the settings belong to a context. Entering `numpy.errstate` ends the process if
# memory runs out there (seen with NumPy 2.4), so `quietly` copies a context that is set already.
_CONTEXT = contextvars.copy_context() if int(np.__version__.split(".")[0]) >= 2 else None
if _CONTEXT is not None:
    _CONTEXT.run(np.seterr, all="ignore")


def quietly(compute: Callable[[], T]) -> T:
    """Return what a function returns; overflow and division by zero in it give no warning.

    >>> quietly(lambda: 1.0 / np.zeros(2))
    array([inf, inf])
    """
    if _CONTEXT is not None:
        return _CONTEXT.copy().run(compute)
    with np.errstate(all="ignore"):
        return compute()
