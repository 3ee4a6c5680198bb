"""The command line.

A command reads its arguments, calls the library and shows the result. `EXIT_CODES` lists the exit
codes.
"""

from __future__ import annotations

import io
import sys
from typing import Any

from linkstream.cli import outcome
from linkstream.cli.outcome import EXIT_CODES, STOPPED, UNREAD
from linkstream.cli.signals import Interrupts
from linkstream.errors import LinkstreamError, MissingExtraError

__all__ = ["EXIT_CODES", "STOPPED", "UNREAD", "main", "run"]

_NEEDED = ("typer", "rich", "click")


def main() -> None:
    """Run the command line, and end the process with its exit code."""
    interrupts = Interrupts()
    interrupts.install()
    code = _run(interrupts)
    interrupts.finished(code)
    sys.exit(code)


def run() -> int:
    """Run the command line within a running process; return the exit code."""
    interrupts = Interrupts()
    interrupts.install()
    try:
        return _run(interrupts)
    finally:
        interrupts.remove()


def _run(interrupts: Interrupts) -> int:
    """Run the command of sys.argv; write errors as one line on stderr."""
    outcome.begin()
    try:
        try:
            if isinstance(sys.stdout, io.TextIOWrapper):  # some encodings lack letters
                sys.stdout.reconfigure(errors="backslashreplace")
            code: int = _app().run()
        except (LinkstreamError, OSError, MemoryError) as error:
            code = STOPPED if interrupts.came else outcome.fail(error)
        except outcome.Declined:
            code = STOPPED if interrupts.came else outcome.decline()
        return interrupts.say() if interrupts.came or code == STOPPED else code
    except KeyboardInterrupt:
        return interrupts.say()


def _app() -> Any:  # the module of the commands
    try:
        import rich  # noqa: F401, RUF100  # needed later; fail now

        from linkstream.cli import app
    except ModuleNotFoundError as missing:
        module = (missing.name or "").partition(".")[0]
        if module not in _NEEDED:
            raise
        raise MissingExtraError(module, extra="cli", purpose="The command line") from missing
    return app
