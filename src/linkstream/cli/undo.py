"""`linkstream undo`: back to how it was."""

from __future__ import annotations

from typing import Annotated

import typer

from linkstream.cli import opening, screen
from linkstream.cli.options import AsJson, StorePath


def undo(
    store: StorePath,
    to: Annotated[
        int | None,
        typer.Option(help="Take back all from this event on.", show_default="the last change"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Take back the last change or vector, or all from an event on.

    The state is then, bit for bit, what it was; IDs given since are not used again. `linkstream
    events` shows the numbers of events. What was compacted cannot be undone.

    Example: linkstream undo people.links
    """
    with opening.writing(store) as opened:
        before = opened.n_vectors, opened.n_clusters
        opened.undo(to=to)
        after = opened.n_vectors, opened.n_clusters
    record = {"vectors": after[0], "clusters": after[1], "undone_from": to}
    words = (
        f"Undone: {before[0]:,} vectors in {before[1]:,} clusters before, "
        f"{after[0]:,} in {after[1]:,} now."
    )
    screen.answer(record, words, as_json=as_json)
