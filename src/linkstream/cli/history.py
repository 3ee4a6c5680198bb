"""Commands about the past of a store: events, undo, redo."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from linkstream.cli import screen, stores
from linkstream.cli.options import Limit, StorePath
from linkstream.cli.outcome import usage_error
from linkstream.cli.signals import until_stopped
from linkstream.cli.terminal_text import harmless, short

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkstream.engine.events import Event
    from linkstream.store import Step, Store


_AT_ONCE = 1_000  # events whose keys are read together


def events(
    store: StorePath,
    since: Annotated[int, Option(min=0, help="Begin with the event of this number.")] = 0,
    limit: Annotated[int | None, Option(min=1, help="How many to show; else all.")] = None,
    follow: Annotated[bool, Option("--follow", "-f", help="Wait for more, until Ctrl-C.")] = False,
    every: Annotated[float, Option(min=0.01, help="Seconds between two looks.")] = 0.5,
) -> None:
    """Show the events of a store, from the beginning or as they happen.

    One line an event, as docs/events.md describes them; JSON lines into a pipe. With --follow, the
    events that another process commits are shown as well.

    Example: linkstream events people.links --since 10 --limit 5
    """
    as_json, left = screen.speaks_json(), limit
    with stores.reading(store) as opened, until_stopped(wanted=follow, endless=True) as stopped:
        for event, key in _events(opened, since, every if follow else None, stopped):
            if as_json:
                screen.write_json(event.to_dict() | ({} if key is None else {"id": key}))
            else:
                sys.stdout.write(_line(event, key) + "\n")
            left = None if left is None else left - 1
            if left == 0:
                return


def _events(
    store: Store, since: int, every: float | None, stopped: Callable[[], bool]
) -> Iterator[tuple[Event, str | None]]:
    """Yield events with keys of vectors; unless `every` is None, wait for more until stopped."""
    while True:
        found = store.journal.events(since)
        while block := list(islice(found, _AT_ONCE)):
            since = block[-1].sequence + 1
            keys = store.event_keys(block)
            yield from zip(store.with_probabilities(block), keys, strict=True)
        sys.stdout.flush()
        if every is None:
            return
        while not store.refresh():
            if stopped():
                return
            time.sleep(every)
        if stopped():
            return


def _line(event: Event, key: str | None) -> str:
    from linkstream.engine.event_values import numbers_of
    from linkstream.engine.events import Decided

    told = [f"{name} {_value(event, name)}" for name in numbers_of(event)]
    if isinstance(event, Decided) and event.probability is not None:
        told.append(f"probability {event.probability:.3f}")
    line = f"{event.sequence:>8}  vector {event.vector:<8} {event.kind:<10} {', '.join(told)}"
    return line.rstrip() + ("" if key is None else f", id {short(key)!r}")


def _value(event: Event, name: str) -> str:
    value = getattr(event, name)
    return repr(short(value)) if name in event.texts else harmless(value)


def undo(
    store: StorePath,
    to: Annotated[int | None, "Undo everything from this event on, not only the last step."] = None,
    vector: Annotated[bool, "Undo the newest vector only."] = False,
    list_: Annotated[bool, Option("--list", help="Show the steps; undo nothing.")] = False,
    limit: Limit = 20,
) -> None:
    """Undo the last command, or everything from an event on.

    The state is then, bit for bit, what it was; IDs given since are not used again. `linkstream
    redo` brings it back, until something else changes. Rows of a file that were undone are added
    again when the file is clustered again. --list shows the steps, the newest first, and the event
    that each began with. What was compacted cannot be undone.

    Example: linkstream undo people.links
    """
    if list_ + vector + (to is not None) > 1:
        raise usage_error(
            f"--to {to}, --vector {vector} and --list {list_}",
            "one of them, or none",
            "--list shows the steps; --to or --vector says how much to undo.",
        )
    if list_:
        _list_steps(store, limit)
        return
    with stores.writing(store) as opened:
        before = opened.n_vectors, opened.n_clusters
        if vector:
            _check_newest_has_vectors(opened)
        step = to is None and not vector
        stores.perform(opened, "undo", to=to, own={"step": step})
        record = _counts(opened, before) | {"undone_from": to, "command": _undone_command(opened)}
        back = " linkstream redo brings it back." if _keeps(opened) else ""
    words = f"Undone: {_in_words(record, before)}{back}"
    screen.answer(record, words)


def redo(store: StorePath) -> None:
    """Redo what the last undo took.

    All of it comes back, with its IDs, names and corrections. Several undos can be redone one after
    the other. Any other change of the store ends what can be redone.

    Example: linkstream redo people.links
    """
    with stores.writing(store) as opened:
        before, command = (opened.n_vectors, opened.n_clusters), _undone_command(opened)
        stores.perform(opened, "redo")
        record = _counts(opened, before) | {"command": command}
    screen.answer(record, f"Redone: {_in_words(record, before)}")


def _check_newest_has_vectors(opened: Store) -> None:
    newest = _next(opened.steps(limit=1), undone=False)
    if newest is not None and not newest.vectors:
        raise usage_error(
            f"--vector, where the last step is {newest.command}, which added no vectors",
            "a step that added vectors",
            "Undo that step first: linkstream undo STORE.",
        )


def _counts(opened: Store, before: tuple[int, int]) -> dict[str, Any]:
    """Return the vectors and clusters now, and how many vectors were undone or redone."""
    vectors = opened.n_vectors
    return {"vectors": vectors, "clusters": opened.n_clusters, "moved": abs(vectors - before[0])}


def _in_words(record: dict[str, Any], before: tuple[int, int]) -> str:
    return (
        f"{record['command']}. {before[0]:,} vectors in {before[1]:,} clusters before, "
        f"{record['vectors']:,} in {record['clusters']:,} now."
    )


def _undone_command(opened: Store) -> str | None:
    """Return the command that was undone, which a redo brings back; None if there is none."""
    if not _keeps(opened):
        return "rebuild"  # nothing else can be undone there
    found = _next(opened.steps(limit=1), undone=True)
    return None if found is None else found.command


def _keeps(opened: Store) -> bool:
    """Return whether a store keeps its vectors, as redo needs."""
    return opened.track_vectors and opened.keep_vectors


def _list_steps(path: Path, limit: int) -> None:
    with stores.reading(path) as opened:
        found = opened.steps(limit=limit)
    if screen.wrote_json(step.to_dict() for step in found):
        return
    if not found:
        screen.console().print("There is nothing to undo.")
        return
    table = screen.table("Steps, the newest first", "command", "vectors", "calls", "event", "")
    table.columns[-1].justify = "left"
    nexts = {_next(found, undone=True): "redo", _next(found, undone=False): "undo"}
    for step in found:
        state = "undone; " if step.undone else ""
        words = f"{state}next to {nexts[step]}" if step in nexts else state.rstrip("; ")
        figures = screen.figure(step.vectors), screen.figure(step.calls), str(step.event)
        table.add_row(step.command, *figures, words)
    screen.console().print(table)


def _next(steps: list[Step], *, undone: bool) -> Step | None:
    """Return the step that redo brings back next, or that undo takes next."""
    some = [step for step in steps if step.undone == undone]
    return (some[-1] if undone else some[0]) if some else None
