"""Ctrl-C: one line that says what was kept, and exit code 130, at whatever moment it comes.

The first Ctrl-C raises KeyboardInterrupt, so that files are put away and stores are closed. A
second one ends the process at once; a store survives that. Once the command is done, Ctrl-C ends
the process with the command's own exit code.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
from typing import Any

from linkstream.cli import ending

_AGAIN = 0.02  # seconds until an interrupt that a destructor swallowed is raised again


class Interrupts:
    """The SIGINT handler of a run of the command line."""

    def __init__(self) -> None:
        self.came = False
        self._code: int | None = None  # of the command that has ended
        self._said = False
        self._before: tuple[Any, Any] | None = None

    def install(self) -> None:
        """Handle SIGINT from now on; elsewhere than in the main thread there is none to handle."""
        if threading.current_thread() is threading.main_thread():
            self._before = sys.unraisablehook, signal.signal(signal.SIGINT, self._handle)
            sys.unraisablehook = self._unraisable

    def remove(self) -> None:
        """Put back what handled SIGINT before."""
        if self._before is not None:
            sys.unraisablehook = self._before[0]
            signal.signal(signal.SIGINT, self._before[1])
            self._before = None

    def say(self) -> int:
        """Write the line, once; return the exit code."""
        if not self._said:
            self._said = True
            ending.interrupted()
        return ending.STOPPED

    def finished(self, code: int) -> None:
        """Note that the command has ended, and is only to be put away."""
        self._code = code

    def _handle(self, number: int, frame: object) -> None:  # noqa: ARG002, RUF100
        if self._code is not None:
            os._exit(self._code)
        if self.came:
            os._exit(self.say())
        self.came = True
        raise KeyboardInterrupt

    def _unraisable(self, told: Any) -> None:
        """Raise an interrupt again that came within a destructor, where Python drops it."""
        if not issubclass(told.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(told)
        elif self._code is None:
            self.came = False
            threading.Timer(_AGAIN, _thread.interrupt_main).start()
