"""Ctrl-C and SIGTERM: stop at a safe place, say what was kept, and exit with code 130.

The first Ctrl-C raises KeyboardInterrupt, so that files and stores are closed. A second one ends
the process at once; a store survives that. After the command has ended, Ctrl-C ends the process
with the exit code of the command.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from linkstream.cli import outcome

GRACE = 1.0  # seconds to reach a safe place; a read that waits longer is interrupted
_AGAIN = 0.02  # seconds until an interrupt that a destructor swallowed is raised again


class Interrupts:
    """The SIGINT handler of a run of the command line."""

    def __init__(self) -> None:
        self.came = False
        self._code: int | None = None  # of the command that has ended
        self._said = False
        self._before: tuple[Any, Any] | None = None

    def install(self) -> None:
        """Handle SIGINT from now on, if this is the main thread."""
        if threading.current_thread() is threading.main_thread():
            self._before = sys.unraisablehook, signal.signal(signal.SIGINT, self._handle)
            sys.unraisablehook = self._unraisable

    def remove(self) -> None:
        """Restore the earlier handlers."""
        if self._before is not None:
            sys.unraisablehook = self._before[0]
            signal.signal(signal.SIGINT, self._before[1])
            self._before = None

    def say(self) -> int:
        """Write the line, once; return the exit code."""
        if not self._said:
            self._said = True
            outcome.interrupted()
        return outcome.STOPPED

    def finished(self, code: int) -> None:
        """Note that the command has ended with an exit code."""
        self._code = code

    def _handle(self, number: int, frame: object) -> None:  # noqa: ARG002, RUF100
        if self._code is not None:
            os._exit(self._code)
        if self.came:
            os._exit(self.say())
        self.came = True
        raise KeyboardInterrupt

    def _unraisable(self, told: Any) -> None:
        """Raise an interrupt again that came inside a destructor, where Python drops it."""
        if not issubclass(told.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(told)
        elif self._code is None:
            self.came = False
            threading.Timer(_AGAIN, _thread.interrupt_main).start()


def import_numpy() -> None:
    """Import NumPy; raise MemoryError if there is too little memory for the threads of OpenBLAS.

    OpenBLAS sends SIGINT to its own process in that case, which must not pass for Ctrl-C.
    """
    known = "numpy" in sys.modules or not hasattr(signal, "sigtimedwait")
    if known or threading.current_thread() is not threading.main_thread():
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with suppress(ImportError):  # the command says what is missing
            import numpy  # noqa: F401, ICN001, RUF100
    finally:
        came = signal.sigtimedwait({signal.SIGINT}, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if came is not None and came.si_pid == os.getpid():
        raise MemoryError("too little for the threads of OpenBLAS")
    if came is not None:
        signal.raise_signal(signal.SIGINT)


@contextmanager
def until_stopped(*, wanted: bool = True, endless: bool = False) -> Iterator[Callable[[], bool]]:
    """Only note the first Ctrl-C or SIGTERM inside the block; yield a function that asks for it.

    A second signal, or the end of `GRACE`, raises KeyboardInterrupt at once. Leaving the block
    raises KeyboardInterrupt if a signal was noted, except SIGTERM for `endless` work. If not
    `wanted`, the handlers are left alone and the function returns False.
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
    """Append signals to a list, and start `GRACE` with the first."""

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
