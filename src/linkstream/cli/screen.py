"""Output: tables and sentences on a terminal, JSON lines into a pipe."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from linkstream.cli import outcome
from linkstream.cli.outcome import usage_error
from linkstream.cli.terminal_text import harmless

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

STDOUT = "-"  # as the name of a file
PICTURES = (".png", ".svg", ".pdf")
_PLAIN_WIDTH = 100


def speaks_json() -> bool:
    """Return whether stdout gets JSON lines: as --format or --json says, else if it is a pipe."""
    chosen = outcome.current().format
    return not sys.stdout.isatty() if chosen is None else chosen == "json"


def console(*, stderr: bool = False) -> Console:
    """Return a console; without a terminal it has no colour and a fixed width."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            """Leave it to the caller; Rich would end with exit code 1."""
            raise  # noqa: PLE0704, RUF100  # the BrokenPipeError that is being handled

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PLAIN_WIDTH
    return Plain(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def write_json(record: Mapping[str, Any], to: IO[str] | None = None) -> None:
    """Write one record as one line."""
    stream = sys.stdout if to is None else to
    stream.write(json.dumps(record, allow_nan=False) + "\n")


def wrote_json(records: Iterable[Mapping[str, Any]]) -> bool:
    """Write records if the output is JSON lines; return whether it is."""
    if not speaks_json():
        return False
    for record in records:
        write_json(record)
    return True


def answer(record: Mapping[str, Any], words: str) -> None:
    """Write the result of a command: a record as JSON, or a sentence."""
    if not wrote_json([record]):
        console().print(harmless(words))


def note(words: str) -> None:
    """Write a remark beside the output: to stderr."""
    console(stderr=True).print(harmless(words))


def table(title: str, *columns: str) -> Table:
    """Return an empty table: the first column of words, the others of numbers."""
    from rich.table import Table

    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for place, name in enumerate(columns):
        made.add_column(name, justify="right" if place else "left")
    return made


def listing(title: str, *columns: str) -> Table:
    """Return an empty table of words."""
    made = table(title, *columns)
    for column in made.columns:
        column.justify = "left"
    return made


def pairs(title: str, values: Mapping[str, object]) -> Table:
    """Return a table of names and values."""
    made = listing(title, "", "")
    made.show_header = False
    for name, value in values.items():
        made.add_row(name, figure(value))
    return made


def figure(value: object) -> str:
    """Return a value for reading: thousands separated, fractions short."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "—"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else harmless(value)


def check_writable(path: Path) -> None:
    """Raise ArgumentError if a file cannot be written, before the work begins."""
    if path.is_dir() or not os.access(path.absolute().parent, os.W_OK):
        raise usage_error(
            f"{str(path)!r} cannot be written",
            "a file in an existing folder that may be written to",
            "Make the folder first, or choose another one.",
        )


def check_folder(path: Path) -> None:
    """Raise ArgumentError if files cannot be written into a folder, before the work begins."""
    there = next(each for each in (path, *path.absolute().parents) if each.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        problem = "may not be written to" if there.is_dir() else "is a file"
        raise usage_error(
            f"{str(there)!r} {problem}",
            "a folder that may be written to, or a new name",
            "Choose another folder.",
        )


def check_target(path: Path, suffixes: tuple[str, ...]) -> None:
    """Raise ArgumentError if a file has another suffix, or cannot be written."""
    if path.suffix not in suffixes:
        raise usage_error(
            f"a file named {str(path)!r}",
            f"a name that ends in {' or '.join(suffixes)}",
            f"Try {path.with_suffix(suffixes[0])}.",
        )
    check_writable(path)
