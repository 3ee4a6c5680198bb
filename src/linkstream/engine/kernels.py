"""The kernel and the number of threads of the compiled core."""

from __future__ import annotations

import os

from linkstream import _core
from linkstream.errors import EngineUnavailableError

KERNEL_VARIABLE = "LINKSTREAM_KERNEL"


def default_threads() -> int:
    """Return the number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def kernel_name() -> str:
    """Return the kernel that LINKSTREAM_KERNEL names; empty: the fastest of this machine."""
    name = os.environ.get(KERNEL_VARIABLE, "")
    if name and name not in _core.kernels():
        raise EngineUnavailableError(
            f"{KERNEL_VARIABLE}={name!r}",
            expected=f"one of {', '.join(_core.kernels())} on this machine",
            remedy=f"Unset {KERNEL_VARIABLE} to take the fastest.",
        )
    return name
