"""Outputs of `cluster`: IDs as an array, a JSON line for each vector; and progress bars."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn
from rich.progress import TimeElapsedColumn as Elapsed
from rich.progress import TimeRemainingColumn as Remaining
from rich.text import Text

from linkstream.cli import outcome, screen
from linkstream.cli.screen import STDOUT

SUFFIXES = (".npy", ".jsonl")

Ids = npt.NDArray[np.int64]
Advance = Callable[[int], None]


def check(output: str | None) -> None:
    """Raise ArgumentError if an output cannot be written, before the work begins."""
    if output is not None and output != STDOUT:
        screen.check_target(Path(output), SUFFIXES)


@contextmanager
def lines(output: str) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Yield a function that writes JSON lines to stdout, or to a file that appears at the end."""
    from linkstream.io import atomic_file

    if output == STDOUT:
        yield screen.write_json
        return
    with atomic_file(output, "w") as stream:
        yield lambda record: screen.write_json(record, stream)
    outcome.note_change(f"{output} is written")


@contextmanager
def array(output: str) -> Iterator[Callable[[Ids], None]]:
    """Yield a function that appends IDs to a .npy file, which appears when complete."""
    from linkstream.io import atomic_file

    with atomic_file(output, "wb") as stream:
        _header(stream, 0)
        written = 0

        def append(ids: Ids) -> None:
            nonlocal written
            stream.write(ids.astype("<i8").tobytes())
            written += len(ids)

        yield append
        stream.seek(0)
        _header(stream, written)
    outcome.note_change(f"{output} is written")


def _header(stream: IO[bytes], n: int) -> None:
    # NumPy pads the header so that the length can grow, so this header can be overwritten.
    npy.write_array_header_1_0(stream, {"descr": "<i8", "fortran_order": False, "shape": (n,)})


class Measured(Protocol):
    """Rows to read: their number and the share that was read, each None if it is not known."""

    @property
    def n(self) -> int | None: ...  # noqa: D102
    @property
    def progress(self) -> float | None: ...  # noqa: D102


class _Count(ProgressColumn):
    """Rows done, and their total if it is known."""

    def render(self, task: Task) -> Text:
        total = task.fields["n"]
        done = f"{int(task.completed):,}"
        return Text(done if total is None else f"{done}/{total:,}")


class _Rate(ProgressColumn):
    """Rows a second, recently."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s")


@contextmanager
def progress_bar(words: str, source: Measured, *, output: str | None = None) -> Iterator[Advance]:
    """Show a bar over the rows of a source, or over its bytes if their number is not known.

    If neither is known: rows so far, their rate, and the time taken. There is no bar if the output
    goes to stdout, which may be the same terminal.
    """
    console = screen.console(stderr=True)
    known = source.n is not None or source.progress is not None
    last = Remaining() if known else Elapsed()
    columns = (words, BarColumn(), _Count(), _Rate(), last)
    hidden = not console.is_terminal or output == STDOUT
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task(words, total=source.n, n=source.n)

        def advance(rows: int) -> None:
            progress.advance(task, rows)
            share = source.progress if source.n is None and not hidden else None
            if share:
                progress.update(task, total=progress.tasks[0].completed / share)

        yield advance


@contextmanager
def share_bar(words: str) -> Iterator[Callable[[float], None]]:
    """Show a bar of the share of some work that is done; the function takes the share."""
    console = screen.console(stderr=True)
    columns = (words, BarColumn(), TaskProgressColumn(), Remaining())
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task(words, total=1.0)
        yield lambda share: progress.update(task, completed=share)
