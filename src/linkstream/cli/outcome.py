"""The running command, what it has changed so far, and the exit code and line it ends with."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from linkstream import errors
from linkstream.cli.terminal_text import harmless

DONE, NO, REFUSED, MISSING, LOCKED, DAMAGED, PARTLY, STOPPED, UNREAD = 0, 1, 2, 3, 4, 5, 6, 130, 141

EXIT_CODES = {
    DONE: "done",
    NO: "the answer is no: a check failed, or you said no; nothing was changed",
    REFUSED: "a wrong argument, file, store or machine; nothing was changed",
    MISSING: "an optional dependency is not installed; nothing was changed",
    LOCKED: "another process is writing to the store; nothing was changed",
    DAMAGED: "the store or snapshot is damaged; nothing was changed",
    PARTLY: "failed after a part was done; the message says what was kept",
    STOPPED: "stopped by Ctrl-C; the message says what was kept",
    UNREAD: "the reader of the output has closed it, as after `| head`",
}

NO_MEMORY = "there is not enough memory. Close other programs, or split the work."

_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (errors.MissingExtraError, MISSING),
    (errors.StoreLockedError, LOCKED),
    (errors.DamagedStoreError, DAMAGED),
    (errors.SnapshotError, DAMAGED),
    (errors.StoreClosedError, PARTLY),  # a write failed; acknowledged writes are kept
)


class Declined(Exception):  # noqa: N818, RUF100  # an answer, not an error
    """The user answered a question with no."""


@dataclass
class Run:
    """One run of the command line."""

    command: str = ""  # "" before it is known
    flags: dict[str, str] = field(default_factory=dict)  # options as typed, by parameter name
    values: dict[str, Any] = field(default_factory=dict)  # of its arguments and options
    format: str | None = None  # "text" or "json" if one was chosen
    changed: str | None = None  # by the command so far, in words without a full stop
    unchanged: bool = False  # whether a write failed and the store was seen to be as before

    @property
    def store(self) -> str | None:
        """The store as it was typed; None for a command without one."""
        given = self.values.get("store")
        return None if given is None else str(given)

    def paths(self) -> dict[str, str]:
        """Return the files that were typed, by absolute name."""
        typed = [str(value) for value in self.values.values() if isinstance(value, (Path, str))]
        names = [
            name for name in typed if name and "\0" not in name and not Path(name).is_absolute()
        ]
        return {os.path.realpath(name): name for name in names}


_current: ContextVar[Run | None] = ContextVar("linkstream_run", default=None)


def usage_error(seen: str, expected: str, remedy: str) -> errors.ArgumentError:
    """Return the error for a wrong argument or option."""
    return errors.ArgumentError(seen, expected=expected, remedy=remedy)


def begin() -> Run:
    """Begin a run, without anything that an earlier run in this process left."""
    run = Run()
    _current.set(run)
    return run


def current() -> Run:
    """Return the current run."""
    return _current.get() or begin()


def note_change(words: str | None) -> None:
    """Replace the note of what the command has changed so far; None if nothing was changed.

    The words, such as "2,048 rows are in people.links", come in the message of a failure or stop.
    """
    current().changed = words


@contextmanager
def note_if_stopped(words: str | None) -> Iterator[None]:
    """Note a change if Ctrl-C comes inside the block; None notes nothing, as do other errors."""
    try:
        yield
    except KeyboardInterrupt:
        note_change(words)
        raise


def code_of(error: BaseException) -> int:
    """Return the exit code for an error of the running command."""
    if current().changed is not None:
        return PARTLY
    if current().unchanged:
        return REFUSED
    return next((code for kind, code in _CODES if isinstance(error, kind)), REFUSED)


def fail(error: BaseException) -> int:
    """Write the line of an error, with what was kept; return the exit code."""
    code = code_of(error)
    words = f"error: {_sentence(error)}"
    return _write_line(words + _kept() if code == PARTLY else words, code)


def _sentence(error: BaseException) -> str:
    """Return the sentence of an error; there may be too little memory to phrase it."""
    if isinstance(error, MemoryError) and not isinstance(error, errors.LinkstreamError):
        return NO_MEMORY
    try:
        from linkstream.cli.phrasing import sentence

        return sentence(error)
    except MemoryError:
        return NO_MEMORY


def refuse(words: str) -> int:
    """Write the line for an unknown or mistyped command; return the exit code."""
    return _write_line(f"error: {words}", REFUSED)


def decline() -> int:
    """Write the line for a question answered with no; return the exit code."""
    return _write_line("Not done. Nothing was changed.", NO)


def interrupted() -> int:
    """Write the line for a command stopped by Ctrl-C; return the exit code."""
    return _write_line(f"Interrupted.{_kept() or ' Nothing was changed.'}", STOPPED)


def _kept() -> str:
    changed = current().changed
    return "" if changed is None else f" Kept: {changed}."


def _write_line(words: str, code: int) -> int:
    """Write one line to stderr, with control characters spelt out; return the code."""
    try:
        if sys.stderr.isatty():  # a progress bar may have hidden the cursor
            sys.stderr.write("\x1b[?25h\r\x1b[K")
        sys.stderr.write(harmless(words) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):  # stderr is closed
        pass
    return code
