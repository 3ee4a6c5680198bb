"""`linkstream compact`: forgetting for good."""

from __future__ import annotations

from linkstream.cli import opening, screen
from linkstream.cli.options import AsJson, StorePath, Yes


def compact(store: StorePath, yes: Yes = False, as_json: AsJson = False) -> None:
    """Erase for good what was removed and forgotten, and shrink the file.

    No byte of such vectors and their payloads is left in the files. What came before cannot be
    undone afterwards; IDs and names stay as they are. You are asked first; without a terminal to
    ask on, --yes is needed.

    Example: linkstream compact people.links --yes
    """
    with opening.reading(store):  # refuses what is no store, before it asks
        pass
    opening.confirm(f"erase what was removed from {store}, and all undo before it", yes=yes)
    with opening.writing(store) as opened:
        before = int(opened.info()["bytes"])
        opening.compact(opened, store)
        after = int(opened.info()["bytes"])
    words = f"Compacted: {before:,} bytes before, {after:,} now."
    screen.answer({"bytes_before": before, "bytes": after}, words, as_json=as_json)
