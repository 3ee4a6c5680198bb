"""`linkstream redo`: what was undone, again."""

from __future__ import annotations

from linkstream.cli import opening, screen
from linkstream.cli.options import AsJson, StorePath
from linkstream.cli.undo import moved, told, undone


def redo(store: StorePath, as_json: AsJson = False) -> None:
    """Bring back what the last undo took.

    All of it, with the IDs, names and corrections it had. Several undos can be redone one after the
    other. Anything else that changes the store ends what can be redone.

    Example: linkstream redo people.links
    """
    with opening.writing(store) as opened:
        before, command = (opened.n_vectors, opened.n_clusters), undone(opened)
        opened.redo()
        record = moved(opened, before) | {"command": command}
    screen.answer(record, f"Redone: {told(record, before)}", as_json=as_json)
