"""Commands that run until they are told to stop: Ctrl-C and SIGTERM end them in good order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def until_stopped(*, wanted: bool = True) -> Iterator[Callable[[], bool]]:
    """Within it, the first Ctrl-C or SIGTERM is only noted; the answer says whether it came.

    A second one stops at once. Where it is not wanted, nothing is changed and the answer is no.
    """
    seen: list[int] = []

    def note(number: int, _: object) -> None:
        if seen:
            raise KeyboardInterrupt
        seen.append(number)

    if not wanted or threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(seen)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
