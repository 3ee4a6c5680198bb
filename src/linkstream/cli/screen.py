"""Where words and numbers go: tables to people, JSON lines to programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from linkstream.cli import call
from linkstream.cli.words import harmless
from linkstream.errors import ArgumentError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PICTURES = (".png", ".svg", ".pdf")
_PLAIN_WIDTH = 100


def speaks_json(asked: bool) -> bool:
    """Return whether stdout gets JSON lines: as --format says; else if asked, or in a pipe."""
    chosen = call.now().format
    return asked or not sys.stdout.isatty() if chosen is None else chosen == "json"


def people(*, stderr: bool) -> Console:
    """A console for people; without a terminal it has no colour and a fixed width."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PLAIN_WIDTH
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def write_json(record: Mapping[str, Any], to: IO[str] | None = None) -> None:
    """One record, one line."""
    stream = sys.stdout if to is None else to
    stream.write(json.dumps(record, allow_nan=False) + "\n")


def answer(record: Mapping[str, Any], words: str, *, as_json: bool = False) -> None:
    """What came of a command: a record for programs, a sentence for people."""
    if speaks_json(as_json):
        write_json(record)
    else:
        people(stderr=False).print(harmless(words))


def note(words: str) -> None:
    """A word to people beside the output: on stderr."""
    people(stderr=True).print(harmless(words))


def table(title: str, *columns: str) -> Table:
    """An empty table: the first column of words, the others of numbers."""
    from rich.table import Table

    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for place, name in enumerate(columns):
        made.add_column(name, justify="right" if place else "left")
    return made


def listing(title: str, *columns: str) -> Table:
    """An empty table of words: all columns begin at the left."""
    made = table(title, *columns)
    for column in made.columns:
        column.justify = "left"
    return made


def pairs(title: str, values: Mapping[str, object]) -> Table:
    """A table of names and what they are."""
    made = listing(title, "", "")
    made.show_header = False
    for name, value in values.items():
        made.add_row(name, figure(value))
    return made


def figure(value: object) -> str:
    """A value as people read it: thousands apart, fractions short."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "—"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else harmless(value)


def check_writable(path: Path) -> None:
    """Refuse a target that cannot be written, before the work and not after it."""
    if path.is_dir() or not os.access(path.absolute().parent, os.W_OK):
        raise ArgumentError(
            f"{str(path)!r} cannot be written",
            expected="a file in a folder that is there and may be written to",
            remedy="Make the folder first, or choose another one.",
        )


def check_target(path: Path, suffixes: tuple[str, ...]) -> None:
    """Refuse a file of another kind than can be written there, or where none can be."""
    if path.suffix not in suffixes:
        raise ArgumentError(
            f"a file named {str(path)!r}",
            expected=f"a name that ends in {' or '.join(suffixes)}",
            remedy=f"Try {path.with_suffix(suffixes[0])}.",
        )
    check_writable(path)
