"""Work that is stopped in good order, at the next good place after Ctrl-C or SIGTERM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

GRACE = 1.0  # seconds to reach a good place; then, as where a read waits for ever, it is broken off


@contextmanager
def until_stopped(*, wanted: bool = True, endless: bool = False) -> Iterator[Callable[[], bool]]:
    """Within it, the first Ctrl-C or SIGTERM is only noted; the answer says whether it came.

    A second one, or the end of `GRACE`, raises KeyboardInterrupt at once. Leaving it raises
    KeyboardInterrupt if one was noted.

    Args:
        wanted: False changes nothing, and the answer is no.
        endless: whether SIGTERM is how the work ends; then it raises nothing.
    """
    if not wanted or threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    seen: list[int] = []
    with _handlers(seen):
        yield lambda: bool(seen)
    if seen and not (endless and seen == [signal.SIGTERM]):
        raise KeyboardInterrupt


@contextmanager
def _handlers(seen: list[int]) -> Iterator[None]:
    """Note the signals that stop, and let `GRACE` run from the first."""

    def note(number: int, frame: FrameType | None) -> None:
        if seen:
            interrupt = before.get(signal.SIGINT)
            if callable(interrupt):
                interrupt(number, frame)
            raise KeyboardInterrupt
        seen.append(number)
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, GRACE)

    numbers = [signal.SIGINT, signal.SIGTERM]
    numbers += [signal.SIGALRM] if hasattr(signal, "setitimer") else []
    before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield
    finally:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, handler in before.items():
            signal.signal(number, handler)
