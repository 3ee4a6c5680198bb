"""The command line, one command a file.

It holds no algorithm: a command reads its arguments, calls the library, and shows what came of it.
How it ended is told by the exit code, see `EXIT_CODES`.
"""

from __future__ import annotations

import io
import sys
from contextvars import ContextVar
from typing import Any

from linkstream.errors import (
    DamagedStoreError,
    LinkstreamError,
    MissingExtraError,
    SnapshotError,
    StoreClosedError,
    StoreLockedError,
)

EXIT_CODES = {
    0: "done",
    1: "a check failed, the answer was no, or the work was broken off",
    2: "a wrong argument, file or store; nothing was changed",
    3: "an optional dependency is not installed",
    4: "another process is writing to the store",
    5: "the store is damaged",
    130: "stopped by Ctrl-C; what was acknowledged is kept",
    141: "nobody reads the output any more, as after `| head`",
}
STOPPED, UNREAD = 130, 141

# The name of the command that runs, such as merge: what its step is called.
RUNNING: ContextVar[str] = ContextVar("command", default="linkstream")

_NEEDED = ("typer", "rich", "click")
_CODES: tuple[tuple[type[Exception], int], ...] = (
    (MissingExtraError, 3),
    (StoreLockedError, 4),
    (DamagedStoreError, 5),
    (SnapshotError, 5),
    (StoreClosedError, 1),
    (LinkstreamError, 2),
    (OSError, 1),
)


def main() -> None:
    """Run the command line; errors are one line on stderr, without a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # letters that a terminal lacks are spelt out
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        _app()(prog_name="linkstream")
    except KeyboardInterrupt:  # before a command had begun
        sys.exit(STOPPED)
    except (LinkstreamError, OSError) as error:
        code = next(code for kind, code in _CODES if isinstance(error, kind))
        sys.stderr.write(f"error: {_one_line(str(error))}\n")
        sys.exit(code)


def _app() -> Any:  # a Typer, which may not be installed
    try:
        import rich  # noqa: F401, RUF100  # used later, but missed now

        from linkstream.cli.app import app
    except ModuleNotFoundError as missing:
        module = (missing.name or "").partition(".")[0]
        if module not in _NEEDED:
            raise
        raise MissingExtraError(module, extra="cli", purpose="The command line") from missing
    return app


def _one_line(words: str) -> str:
    """Errors may quote names and files, which are anybody's: nothing of them moves the cursor."""
    from linkstream.cli.words import harmless

    return harmless(words)
