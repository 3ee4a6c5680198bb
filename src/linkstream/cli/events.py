"""`linkstream events`: what happened, or what is happening."""

from __future__ import annotations

import sys
import time
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated

import typer

from linkstream.cli import opening, screen
from linkstream.cli.options import AsJson, StorePath
from linkstream.cli.stopping import until_stopped
from linkstream.cli.words import harmless, short

if TYPE_CHECKING:
    from linkstream.engine.events import Event


def events(
    store: StorePath,
    since: Annotated[int, typer.Option(min=0, help="Begin with the event of this number.")] = 0,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many.", show_default="all")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for more, until you press Ctrl-C.")
    ] = False,
    every: Annotated[
        float, typer.Option(min=0.01, help="Seconds between two looks, when following.")
    ] = 0.5,
    as_json: AsJson = False,
) -> None:
    """Tell what happened in a store, from the beginning or as it happens.

    One line an event, as docs/events.md describes them; JSON lines into a pipe. Following works
    while another process writes: what it has committed is seen.

    Example: linkstream events people.links --since 10 --limit 5
    """
    write = _as_json if screen.speaks_json(as_json) else _as_words
    left = limit
    with opening.reading(store) as opened, until_stopped(wanted=follow, endless=True) as stopped:
        while True:
            for event in opened.journal.events(since):
                if left == 0:
                    return
                write(event)
                since, left = event.sequence + 1, None if left is None else left - 1
            sys.stdout.flush()
            if left == 0 or not follow:
                return
            while not opened.refresh():
                if stopped():
                    return
                time.sleep(every)
            if stopped():
                return


def _as_json(event: Event) -> None:
    screen.write_json(event.to_dict())


def _as_words(event: Event) -> None:
    told = (f"{field.name} {_value(event, field.name)}" for field in fields(event)[2:])
    line = f"{event.sequence:>8}  vector {event.vector:<8} {event.kind:<10} {', '.join(told)}"
    sys.stdout.write(line.rstrip() + "\n")


def _value(event: Event, name: str) -> str:
    value = getattr(event, name)
    return repr(short(value)) if name in event.texts else harmless(value)
