"""Where words and numbers go: tables to people, JSON lines to programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.table import Table

from linkstream.errors import ArgumentError

_PLAIN_WIDTH = 100


def speaks_json(asked: bool) -> bool:
    """Whether stdout gets JSON lines: when asked for, or when nobody looks at it."""
    return asked or not sys.stdout.isatty()


def people(*, stderr: bool) -> Console:
    """A console for people; without a terminal it has no colour and a fixed width."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PLAIN_WIDTH
    return Console(stderr=stderr, width=width, highlight=False, markup=False)


def write_json(record: Mapping[str, Any], to: IO[str] | None = None) -> None:
    """One record, one line."""
    stream = sys.stdout if to is None else to
    stream.write(json.dumps(record, allow_nan=False) + "\n")


def table(title: str, *columns: str) -> Table:
    """An empty table: the first column of words, the others of numbers."""
    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for place, name in enumerate(columns):
        made.add_column(name, justify="right" if place else "left")
    return made


def check_writable(path: Path) -> None:
    """Refuse a target that cannot be written, before the work and not after it."""
    if path.is_dir() or not os.access(path.absolute().parent, os.W_OK):
        raise ArgumentError(
            f"{str(path)!r} cannot be written",
            expected="a file in a folder that is there and may be written to",
            remedy="Make the folder first, or choose another one.",
        )
