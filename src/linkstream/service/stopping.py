"""Stopping: end the process in time, whatever runs in it.

A thread of Python cannot be ended from outside, and a process waits for its threads. Everything
that was acknowledged is durable, so the process may end at any moment without a loss.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import NoReturn

EXIT_CODE = 0  # a service that was told to stop has succeeded
LATE = b"Work was still running at the end of stop_seconds; what was acknowledged is kept.\n"
_STDERR = 2


def end_process(words: bytes = b"") -> NoReturn:
    """End the process at once, without waiting for threads; `words` go to stderr before."""
    if words:
        with contextlib.suppress(OSError):  # nobody reads it
            os.write(_STDERR, words)  # not by logging: another thread may hold its lock
    os._exit(EXIT_CODE)


class Watchdog:
    """Ends the process some seconds after `limit` was called, unless the context was left before.

    Args:
        end: called when the time is over.
        clock: returns seconds; never goes back.
    """

    def __init__(
        self,
        end: Callable[[], object] = lambda: end_process(LATE),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._end, self._clock = end, clock
        # Unlike an Event, a SimpleQueue may be used in the handler of a signal.
        self._orders: SimpleQueue[float | None] = SimpleQueue()

    def limit(self, seconds: float) -> None:
        """Let the process end in so many seconds; the first limit stands."""
        self._orders.put(seconds)

    def __enter__(self) -> Watchdog:
        threading.Thread(target=self._watch, name="linkstream-watchdog", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._orders.put(None)

    def _watch(self) -> None:
        if (seconds := self._orders.get()) is None:
            return
        last = self._clock() + seconds
        with contextlib.suppress(Empty):
            while self._orders.get(timeout=max(0.0, last - self._clock())) is not None:
                pass
            return
        self._end()
