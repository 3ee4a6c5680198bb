"""`linkstream verify`: is all of it sound?"""

from __future__ import annotations

from linkstream.cli import opening, screen
from linkstream.cli.options import AsJson, StorePath


def verify(store: StorePath, as_json: AsJson = False) -> None:
    """Read all of a store and decide everything again.

    Every checksum is tested and every answer ever given is compared with the one decided now.
    Exit code 5, and the place, if anything differs. Takes about as long as the store took to fill.

    Example: linkstream verify people.links
    """
    with opening.reading(store) as opened:
        found = opened.verify()
    record = {
        "sound": True,
        "operations": found.operations,
        "vectors": found.vectors,
        "events": found.events,
        "snapshots": found.snapshots,
    }
    words = (
        f"Sound: {found.operations:,} operations, {found.vectors:,} vectors, "
        f"{found.events:,} events and {found.snapshots} snapshots read and decided again."
    )
    screen.answer(record, words, as_json=as_json)
