"""The command that is running: its name, its options, and what it has changed so far.

Errors, interrupts and output need to know these, wherever they come up.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Call:
    """One run of the command line.

    Attributes:
        command: the command's name, "" before it is known.
        flags: the command's options as they are typed, by the names they have in the code.
        values: the values of its arguments and options.
        format: "text" or "json" where --format was given, else None.
        kept: what the command has changed so far, as a sentence without its full stop; None if it
            has changed nothing.
    """

    command: str = ""
    flags: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    format: str | None = None
    kept: str | None = None

    @property
    def store(self) -> str | None:
        """The store as it was typed; None for a command without one."""
        given = self.values.get("store")
        return None if given is None else str(given)

    def paths(self) -> dict[str, str]:
        """Absolute names of the files that were typed, with what was typed."""
        typed = [str(value) for value in self.values.values() if isinstance(value, (Path, str))]
        names = [
            name for name in typed if name and "\0" not in name and not Path(name).is_absolute()
        ]
        return {os.path.realpath(name): name for name in names}


_now: ContextVar[Call | None] = ContextVar("linkstream_call", default=None)


def begin() -> Call:
    """Begin a run; what an earlier run in the same process left is forgotten."""
    call = Call()
    _now.set(call)
    return call


def now() -> Call:
    """Return the current run."""
    return _now.get() or begin()


def keep(words: str | None) -> None:
    """Note what has been changed so far, for the message if the command is broken off.

    Args:
        words: a sentence without its full stop, such as "2,048 rows are in people.links"; it
            replaces what was noted before. None if nothing is changed after all.
    """
    now().kept = words


@contextmanager
def kept_if_stopped(words: str) -> Iterator[None]:
    """Note what is kept if Ctrl-C comes within; other errors leave things as they were."""
    try:
        yield
    except KeyboardInterrupt:
        keep(words)
        raise
