"""The command line, one command a file.

It holds no algorithm: a command reads its arguments, calls the library, and shows what came of it.
How it ended is told by the exit code, see `EXIT_CODES`.
"""

from __future__ import annotations

import io
import sys
from contextvars import ContextVar
from typing import Any

from linkstream.cli import call, ending
from linkstream.cli.ending import EXIT_CODES, STOPPED, UNREAD
from linkstream.cli.interrupts import Interrupts
from linkstream.errors import LinkstreamError, MissingExtraError

__all__ = ["EXIT_CODES", "STOPPED", "UNREAD", "main", "run"]

# The name of the command that runs, such as merge: what its step is called.
RUNNING: ContextVar[str] = ContextVar("command", default="linkstream")

_NEEDED = ("typer", "rich", "click")


def main() -> None:
    """Run the command line, and end the process with its exit code."""
    interrupts = Interrupts()
    interrupts.install()
    code = _run(interrupts)
    interrupts.finished(code)
    sys.exit(code)


def run() -> int:
    """Run the command line within a process that goes on; return the exit code."""
    interrupts = Interrupts()
    interrupts.install()
    try:
        return _run(interrupts)
    finally:
        interrupts.remove()


def _run(interrupts: Interrupts) -> int:
    """Run the command of sys.argv; errors are one line on stderr, without a traceback."""
    call.begin()
    try:
        try:
            if isinstance(sys.stdout, io.TextIOWrapper):  # spell out what a terminal lacks
                sys.stdout.reconfigure(errors="backslashreplace")
            code: int = _app().run()
        except (LinkstreamError, OSError, MemoryError) as error:
            code = STOPPED if interrupts.came else ending.fail(error)
        except ending.Declined:
            code = STOPPED if interrupts.came else ending.decline()
        return interrupts.say() if interrupts.came or code == STOPPED else code
    except KeyboardInterrupt:
        return interrupts.say()


def _app() -> Any:  # the module of the commands, which needs Typer
    try:
        import rich  # noqa: F401, RUF100  # used later, but missed now

        from linkstream.cli import app
    except ModuleNotFoundError as missing:
        module = (missing.name or "").partition(".")[0]
        if module not in _NEEDED:
            raise
        raise MissingExtraError(module, extra="cli", purpose="The command line") from missing
    return app
