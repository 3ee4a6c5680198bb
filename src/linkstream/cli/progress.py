"""Progress on a terminal: how far, how fast, how long still; nothing where nobody looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from linkstream.cli import screen
from linkstream.cli.outputs import STDOUT

if TYPE_CHECKING:
    from linkstream.io import Source

Advance = Callable[[int], None]


class _Count(ProgressColumn):
    """Rows done, of how many if that is known."""

    def render(self, task: Task) -> Text:
        total = task.fields["n"]
        done = f"{int(task.completed):,}"
        return Text(done if total is None else f"{done}/{total:,}")


class _Rate(ProgressColumn):
    """Rows a second, of late."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s")


@contextmanager
def of_source(words: str, source: Source, *, output: str | None = None) -> Iterator[Advance]:
    """A bar over the rows of a source; where their number is not known, over its bytes.

    Where neither is known: rows so far, their rate, and the time taken. There is no bar where the
    output goes to stdout, which may be the same terminal: a bar would break its lines.
    """
    console = screen.people(stderr=True)
    known = source.n is not None or source.progress is not None
    last = TimeRemainingColumn() if known else TimeElapsedColumn()
    columns = (TextColumn(words), BarColumn(), _Count(), _Rate(), last)
    hidden = not console.is_terminal or output == STDOUT
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task(words, total=source.n, n=source.n)

        def advance(rows: int) -> None:
            progress.advance(task, rows)
            share = source.progress if source.n is None and not hidden else None
            if share:
                progress.update(task, total=progress.tasks[0].completed / share)

        yield advance
