"""How a command ends: the exit codes, and the line that says what went wrong and what was kept."""

from __future__ import annotations

import sys

from linkstream.cli import call
from linkstream.cli.words import harmless
from linkstream.errors import (
    DamagedStoreError,
    MissingExtraError,
    SnapshotError,
    StoreClosedError,
    StoreLockedError,
)

DONE, NO, REFUSED, MISSING, LOCKED, DAMAGED, PARTLY, STOPPED, UNREAD = 0, 1, 2, 3, 4, 5, 6, 130, 141

EXIT_CODES = {
    DONE: "done",
    NO: "the answer is no: a check failed, or you said no; nothing was changed",
    REFUSED: "a wrong argument, file, store or machine; nothing was changed",
    MISSING: "an optional dependency is not installed; nothing was changed",
    LOCKED: "another process is writing to the store; nothing was changed",
    DAMAGED: "the store or snapshot is damaged; nothing was changed",
    PARTLY: "broken off after a part was done; the message says what was kept",
    STOPPED: "stopped by Ctrl-C; the message says what was kept",
    UNREAD: "nobody reads the output any more, as after `| head`",
}

_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (MissingExtraError, MISSING),
    (StoreLockedError, LOCKED),
    (DamagedStoreError, DAMAGED),
    (SnapshotError, DAMAGED),
    (StoreClosedError, PARTLY),  # a write failed: what was acknowledged before is there
)


class Declined(Exception):  # noqa: N818, RUF100  # an answer, not an error
    """A question was answered with no."""


def code_of(error: BaseException) -> int:
    """Return the exit code for an error of the running command."""
    if call.now().kept is not None:
        return PARTLY
    return next((code for kind, code in _CODES if isinstance(error, kind)), REFUSED)


def fail(error: BaseException) -> int:
    """Write the line of an error, with what was kept; return the exit code."""
    from linkstream.cli.phrasing import spoken

    code = code_of(error)
    words = f"error: {spoken(error)}"
    return _say(words + _kept() if code == PARTLY else words, code)


def refuse(words: str) -> int:
    """Write the line of a command that is not there or was typed wrongly; return the exit code."""
    return _say(f"error: {words}", REFUSED)


def decline() -> int:
    """Write the line of a question that was answered with no; return the exit code."""
    return _say("Not done. Nothing was changed.", NO)


def interrupted() -> int:
    """Write the line of a command that was stopped by Ctrl-C; return the exit code."""
    kept = _kept() if call.now().kept is not None else " Nothing was changed."
    return _say(f"Interrupted.{kept}", STOPPED)


def _kept() -> str:
    kept = call.now().kept
    return "" if kept is None else f" Kept: {kept}."


def _say(words: str, code: int) -> int:
    """Write one line to stderr; it may quote names and files, and moves no cursor."""
    try:
        if sys.stderr.isatty():  # where a progress bar was, the cursor may be hidden
            sys.stderr.write("\x1b[?25h\r\x1b[K")
        sys.stderr.write(harmless(words) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):  # nobody listens any more
        pass
    return code
