"""`linkstream undo`: back to how it was."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linkstream.cli import opening, screen
from linkstream.cli.options import AsJson, StorePath
from linkstream.errors import ArgumentError

if TYPE_CHECKING:
    from linkstream.store import Step, Store


def undo(
    store: StorePath,
    to: Annotated[
        int | None,
        typer.Option(help="Take back all from this event on.", show_default="the last step"),
    ] = None,
    vector: Annotated[
        bool, typer.Option("--vector", help="Take back the newest vector only.")
    ] = False,
    list_: Annotated[
        bool, typer.Option("--list", help="Show the steps; take back nothing.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="Steps to show with --list.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Take back all that the last command did, or all from an event on.

    The state is then, bit for bit, what it was; IDs given since are not used again. `linkstream
    redo` brings it back, until something else changes. Rows of a file that were undone are taken
    again when the file is clustered again. --list shows the steps, the newest first, and the event
    that each began with. What was compacted cannot be undone.

    Example: linkstream undo people.links
    """
    if list_ + vector + (to is not None) > 1:
        raise ArgumentError(
            f"--to {to}, --vector {vector} and --list {list_}",
            expected="one of them, or none",
            remedy="--list shows the steps; --to or --vector says how much to take back.",
        )
    if list_:
        _list(store, limit, as_json=as_json)
        return
    with opening.writing(store) as opened:
        before = opened.n_vectors, opened.n_clusters
        if vector:
            _take_back_vector(opened)
        else:
            opened.undo(to=to, step=to is None)
        record = moved(opened, before) | {"undone_from": to, "command": undone(opened)}
    words = f"Undone: {told(record, before)} linkstream redo brings it back."
    screen.answer(record, words, as_json=as_json)


def moved(opened: Store, before: tuple[int, int]) -> dict[str, Any]:
    """What there is after an undo or a redo, and how many vectors went or came."""
    vectors = opened.n_vectors
    change = abs(vectors - before[0])
    return {"vectors": vectors, "clusters": opened.n_clusters, "moved": change}


def undone(opened: Store) -> str | None:
    """The command whose step a redo brings back; None: there is nothing to redo."""
    found = _next(opened.steps(limit=1), undone=True)
    return None if found is None else found.command


def told(record: dict[str, Any], before: tuple[int, int]) -> str:
    """The same in words."""
    return (
        f"{record['command']}. {before[0]:,} vectors in {before[1]:,} clusters before, "
        f"{record['vectors']:,} in {record['clusters']:,} now."
    )


def _take_back_vector(opened: Store) -> None:
    newest = next((step for step in opened.steps(limit=1) if not step.undone), None)
    if newest is not None and not newest.vectors:
        raise ArgumentError(
            f"--vector, where the last step is {newest.command}, which brought no vectors",
            expected="a step that brought vectors",
            remedy="Take that step back first: linkstream undo STORE.",
        )
    opened.undo()


def _list(path: Path, limit: int, *, as_json: bool) -> None:
    with opening.reading(path) as opened:
        found = opened.steps(limit=limit)
    if screen.speaks_json(as_json):
        for step in found:
            screen.write_json(step.to_dict())
        return
    console = screen.people(stderr=False)
    if not found:
        console.print("Nothing was done that could be undone.")
        return
    table = screen.table("Steps, the newest first", "command", "vectors", "calls", "event", "")
    table.columns[-1].justify = "left"
    nexts = {_next(found, undone=True): "redo", _next(found, undone=False): "undo"}
    for step in found:
        state = "undone; " if step.undone else ""
        words = f"{state}next to {nexts[step]}" if step in nexts else state.rstrip("; ")
        figures = screen.figure(step.vectors), screen.figure(step.calls), str(step.event)
        table.add_row(step.command, *figures, words)
    console.print(table)


def _next(steps: list[Step], *, undone: bool) -> Step | None:
    """What redo brings back next, or undo takes back next."""
    some = [step for step in steps if step.undone == undone]
    return (some[-1] if undone else some[0]) if some else None
