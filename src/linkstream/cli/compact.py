"""`linkstream compact`: forgetting for good."""

from __future__ import annotations

from linkstream.cli import opening, screen
from linkstream.cli.options import AsJson, StorePath


def compact(store: StorePath, as_json: AsJson = False) -> None:
    """Erase for good what was removed and forgotten, and shrink the file.

    No byte of such vectors and their payloads is left in the files. What came before cannot be
    undone afterwards; IDs and names stay as they are.

    Example: linkstream compact people.links
    """
    with opening.writing(store) as opened:
        before = int(opened.info()["bytes"])
        opening.compact(opened)
        after = int(opened.info()["bytes"])
    words = f"Compacted: {before:,} bytes before, {after:,} now."
    screen.answer({"bytes_before": before, "bytes": after}, words, as_json=as_json)
